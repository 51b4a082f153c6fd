"""What the paper says of its experiments, each sentence put to the numbers of a run."""

from collections.abc import Iterable

from experiments.claims.accuracy import CLAIMS as ACCURACY
from experiments.claims.claim import Checked, Claim, Finding, Verdict
from experiments.claims.numbers import Numbers
from experiments.claims.passing import CLAIMS as PASSING
from experiments.claims.time import CLAIMS as TIME
from experiments.results import Results
from experiments.scale import Scale

CLAIMS: tuple[Claim, ...] = PASSING + TIME + ACCURACY

__all__ = ["CLAIMS", "Checked", "Claim", "Finding", "Verdict", "check"]


def check(results: Results, scale: Scale, claims: Iterable[Claim] = CLAIMS) -> list[Checked]:
    """Put every claim to the numbers."""
    numbers = Numbers(results, scale)
    return [Checked(claim, claim.check(numbers)) for claim in claims]

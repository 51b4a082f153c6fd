"""A claim, what was found of it, and what counts as worse than before."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

CLEAR = 3.0  # a timed claim this many times over its threshold does not fail by a busy machine


class Verdict(IntEnum):
    """How a claim stands, from worst to best."""

    DOES_NOT_HOLD = 0
    WITH_A_DIFFERENCE = 1
    HOLDS = 2

    @property
    def title(self) -> str:
        """The verdict in words."""
        return {0: "does not hold", 1: "holds with a difference", 2: "holds"}[self]

    @property
    def plural(self) -> str:
        """The same of several claims."""
        return {0: "do not hold", 1: "hold with a difference", 2: "hold"}[self]


@dataclass(frozen=True)
class Finding:
    """A verdict and the figures behind it.

    ``margin`` is how many times over its threshold a measured time is, for the claims about times.
    """

    verdict: Verdict
    figures: str
    margin: float = float("nan")


@dataclass(frozen=True)
class Claim:
    """Something that the paper says, in our words, and how it is put to the numbers.

    ``ours`` marks what is said of ridgepass instead.
    """

    name: str
    place: str
    says: str
    check: Callable[[Any], Finding]
    timed: bool = False
    ours: bool = False


@dataclass(frozen=True)
class Checked:
    """A claim with its finding."""

    claim: Claim
    finding: Finding

    def worse_than(self, verdict: Verdict, margin: float) -> bool:
        """Whether the claim has stopped holding as it did.

        A time is judged only where it was clear before: others may differ for a busy machine.
        """
        if self.claim.timed:
            return margin >= CLEAR and not self.finding.margin >= 1.0
        return self.finding.verdict < verdict


def graded(here: bool, partly: bool) -> Verdict:
    """Return the verdict of a claim that holds, or holds in a part of the cases only."""
    if here:
        return Verdict.HOLDS
    return Verdict.WITH_A_DIFFERENCE if partly else Verdict.DOES_NOT_HOLD

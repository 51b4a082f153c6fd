"""A second look: where rows can be read again, one pass proves the answer, a few make it exact."""

from ridgepass.refining.certify import certify
from ridgepass.refining.loop import Progress, Read, Refining, Watch
from ridgepass.refining.refined import Refined, Refinement

__all__ = ["Progress", "Read", "Refined", "Refinement", "Refining", "Watch", "certify"]

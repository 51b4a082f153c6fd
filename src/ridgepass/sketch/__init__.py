"""Sketches of AᵀA: one small file per family, one line each in the registry."""

from ridgepass.sketch.base import Dense, LowRank, Sketch
from ridgepass.sketch.exact import ExactCovariance
from ridgepass.sketch.frequent_directions import (
    FrequentDirections,
    IncrementalSVD,
    RobustFrequentDirections,
)
from ridgepass.sketch.legacy import AnchoredFrequentDirections
from ridgepass.sketch.projection import CountSketch, SignProjection
from ridgepass.sketch.tracked import TrackedSubspace
from ridgepass.sketch.tracked_covariance import TrackedCovariance
from ridgepass.sketch.two_level import TwoLevelFrequentDirections

SKETCHES: dict[str, type[Sketch]] = {
    "exact": ExactCovariance,
    "fd": FrequentDirections,
    "rfd": RobustFrequentDirections,
    "isvd": IncrementalSVD,
    "2lfd": TwoLevelFrequentDirections,
    "rp": SignProjection,
    "cs": CountSketch,
    "tracked": TrackedSubspace,
}
# Methods that are gone: models of them are read, and neither learn nor merge.
LEGACY: dict[str, type[Sketch]] = {"anchored": AnchoredFrequentDirections}

__all__ = [
    "LEGACY",
    "SKETCHES",
    "CountSketch",
    "Dense",
    "ExactCovariance",
    "FrequentDirections",
    "IncrementalSVD",
    "LowRank",
    "RobustFrequentDirections",
    "SignProjection",
    "Sketch",
    "TrackedCovariance",
    "TrackedSubspace",
    "TwoLevelFrequentDirections",
]

"""Sketches of AᵀA: one small file per family, one line each in the registry."""

from ridgepass.sketch.anchored import AnchoredFrequentDirections
from ridgepass.sketch.base import Dense, LowRank, Sketch
from ridgepass.sketch.exact import ExactCovariance
from ridgepass.sketch.frequent_directions import (
    FrequentDirections,
    IncrementalSVD,
    RobustFrequentDirections,
)
from ridgepass.sketch.projection import CountSketch, SignProjection
from ridgepass.sketch.two_level import TwoLevelFrequentDirections

SKETCHES: dict[str, type[Sketch]] = {
    "exact": ExactCovariance,
    "fd": FrequentDirections,
    "rfd": RobustFrequentDirections,
    "isvd": IncrementalSVD,
    "2lfd": TwoLevelFrequentDirections,
    "rp": SignProjection,
    "cs": CountSketch,
    "anchored": AnchoredFrequentDirections,
}

__all__ = [
    "SKETCHES",
    "AnchoredFrequentDirections",
    "CountSketch",
    "Dense",
    "ExactCovariance",
    "FrequentDirections",
    "IncrementalSVD",
    "LowRank",
    "RobustFrequentDirections",
    "SignProjection",
    "Sketch",
    "TwoLevelFrequentDirections",
]

"""Ridge regression in one pass, in memory that does not grow, with a certificate of its error."""

from importlib.metadata import version

from ridgepass.estimators import (
    RidgePath,
    StreamingRidge,
    StreamingRidgeClassifier,
    StreamingRidgeCV,
)
from ridgepass.solve import Certificate
from ridgepass.store import FormatError, load
from ridgepass.stream import RidgeStream

__version__ = version("ridgepass")
__all__ = [
    "Certificate",
    "FormatError",
    "RidgePath",
    "RidgeStream",
    "StreamingRidge",
    "StreamingRidgeCV",
    "StreamingRidgeClassifier",
    "__version__",
    "load",
]

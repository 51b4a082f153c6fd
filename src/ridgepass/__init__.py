"""Ridge regression in one pass, in memory that does not grow, with a certificate of its error."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ridgepass.estimators import (
        RidgePath,
        StreamingRidge,
        StreamingRidgeClassifier,
        StreamingRidgeCV,
    )
    from ridgepass.estimators.verifying import verify
    from ridgepass.guard import BrokenModelError
    from ridgepass.solve import Certificate
    from ridgepass.store import FormatError, load
    from ridgepass.stream import RidgeStream

    __version__: str

# Where names come from. They are fetched when asked for, since scikit-learn takes a second to
# import, which `ridgepass --help` should not.
_HOMES = {
    "BrokenModelError": "ridgepass.guard",
    "Certificate": "ridgepass.solve",
    "FormatError": "ridgepass.store",
    "RidgePath": "ridgepass.estimators",
    "RidgeStream": "ridgepass.stream",
    "StreamingRidge": "ridgepass.estimators",
    "StreamingRidgeCV": "ridgepass.estimators",
    "StreamingRidgeClassifier": "ridgepass.estimators",
    "load": "ridgepass.store",
    "verify": "ridgepass.estimators.verifying",
}
_MODULES = ("data", "datasets", "estimators", "store", "theory")

__all__ = [
    "BrokenModelError",
    "Certificate",
    "FormatError",
    "RidgePath",
    "RidgeStream",
    "StreamingRidge",
    "StreamingRidgeCV",
    "StreamingRidgeClassifier",
    "__version__",
    "load",
    "verify",
]


def __getattr__(name: str) -> Any:
    value: Any
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    elif name in _MODULES:
        value = import_module(f"ridgepass.{name}")
    elif name == "__version__":
        value = import_module("importlib.metadata").version("ridgepass")
    else:
        raise AttributeError(f"module 'ridgepass' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})

"""Ridge regression in one pass, in memory that does not grow, with a certificate of its error."""

from importlib.metadata import version

from ridgepass.solve import Certificate
from ridgepass.stream import RidgeStream

__version__ = version("ridgepass")
__all__ = ["Certificate", "RidgeStream", "__version__"]

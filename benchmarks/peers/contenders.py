"""Who takes part, and the settings that make each solve the same ridge problem."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.peers.storage import Rows


@dataclass(frozen=True)
class Contender:
    """A tool with its settings; ``module`` has its ``fit(rows, alpha, **options)``."""

    key: str
    label: str
    module: str
    options: Mapping[str, Any] = field(default_factory=dict)
    reads_text: bool = False

    @property
    def ours(self) -> bool:
        """Whether it is ridgepass."""
        return self.module == "ours"

    def load(self) -> Any:
        """Import its tool, which is not part of what is measured."""
        return import_module(f"benchmarks.peers.tools.{self.module}")

    def fit(self, rows: Rows, alpha: float) -> np.ndarray:
        """Return its coefficients; the passes are counted in ``rows``."""
        return np.asarray(self.load().fit(rows, alpha, **self.options), np.float64)


CONTENDERS = (
    Contender("cholesky", "scikit-learn Ridge, cholesky", "in_memory", {"solver": "cholesky"}),
    Contender("lsqr", "scikit-learn Ridge, lsqr", "in_memory", {"solver": "lsqr"}),
    Contender("sag", "scikit-learn Ridge, sag", "in_memory", {"solver": "sag"}),
    Contender("sgd", "SGDRegressor, defaults", "sgd", {"tuned": False}),
    Contender("sgd-tuned", "SGDRegressor, tuned", "sgd", {"tuned": True}),
    Contender("ipca", "IncrementalPCA 64 + ridge", "components", {"n_components": 64}),
    Contender("river", "river LinearRegression", "river_linear"),
    Contender("vw", "Vowpal Wabbit, defaults", "vowpal", {"bfgs": False}, reads_text=True),
    Contender("vw-bfgs", "Vowpal Wabbit, --bfgs", "vowpal", {"bfgs": True}, reads_text=True),
    Contender("stacked-svd", "FD 64 by stacked SVD", "stacked_svd", {"size": 64}),
    Contender("tracked-64", "ridgepass tracked 64", "ours", {"size": 64}),
    Contender("tracked-256", "ridgepass tracked 256", "ours", {"size": 256}),
    Contender("rfd-256", "ridgepass rfd 256", "ours", {"method": "rfd", "size": 256}),
    Contender("exact", "ridgepass exact", "ours", {"method": "exact"}),
)
BY_KEY = {contender.key: contender for contender in CONTENDERS}

"""A run's tables in the shapes that claims ask for: means over the draws of the data."""

import numpy as np
import pandas as pd

from experiments.errors import CHOSEN, DATA, PAPERS
from experiments.results import Results
from experiments.scale import Scale

FD_TYPES = ("FDrr", "RFDrr", "iSVDrr", "2LFDrr")
PROJECTIONS = ("RPrr", "CSrr")
SKETCHES = FD_TYPES + PROJECTIONS
BOTH = {"at the paper's alpha": PAPERS, "at ours": CHOSEN}


class Numbers:
    """The tables of one run, averaged."""

    def __init__(self, results: Results, scale: Scale) -> None:
        self.results, self.scale = results, scale

    def coef_errors(self, at: str, data: str) -> pd.DataFrame:
        """Return mean coefficient errors, a row for each ℓ and a column for each algorithm."""
        return self._errors("coef_error", at, data)

    def prediction_errors(self, at: str, data: str) -> pd.DataFrame:
        """Return mean test errors over those of exact ridge."""
        table = self._errors("prediction_error", at, data)
        return table / float(self._mean("prediction_error", at, data).loc[0, "rr"])

    def _errors(self, field: str, at: str, data: str) -> pd.DataFrame:
        table = self._mean(field, at, data)
        return table.loc[table.index != 0].drop(columns="rr", errors="ignore")

    def _mean(self, field: str, at: str, data: str) -> pd.DataFrame:
        errors = self.results.errors
        cells = errors[(errors["at"] == at) & (errors.data == data)]
        return cells.pivot_table(index="size", columns="algorithm", values=field)

    def equal_sizes(self, at: str, data: str) -> pd.DataFrame:
        """Return mean coefficient errors at the sizes that all sketches have."""
        return self.coef_errors(at, data).loc[list(self.scale.sizes)]

    def seconds(self, against: str, form: str, what: str) -> pd.DataFrame:
        """Return mean seconds, a row for each value of the axis, a column for each algorithm.

        ``what`` is train, query, once (both) or often: a query after each batch of ℓ rows.
        """
        costs = self.results.costs()
        cells = costs[(costs.against == against) & (costs.form == form)]
        axis = {"ℓ": "size", "d": "n_features", "n": "n_rows"}[against]
        return cells.pivot_table(index=axis, columns="algorithm", values=what)

    def one(self, what: str, data: str, algorithm: str) -> float:
        """Return a number of the table of properties."""
        table = self.results.properties
        found = table[(table.what == what) & (table.data == data) & (table.algorithm == algorithm)]
        return float(found.value.iloc[0])

    def each(self, what: str, algorithms: tuple[str, ...]) -> dict[str, float]:
        """Return a property of each algorithm on each data set."""
        return {f"{a} on {data}": self.one(what, data, a) for data in DATA for a in algorithms}


def exponent(seconds: pd.Series) -> float:
    """Return the exponent of growth over the upper half of an axis."""
    upper = seconds.dropna()
    upper = upper.iloc[len(upper) // 2 :]
    return float(np.polyfit(np.log(upper.index.to_numpy(float)), np.log(upper.to_numpy()), 1)[0])

"""The tables of a run: kept task by task while it goes on, gathered as CSV at its end."""

import hashlib
import json
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy

from benchmarks.temperatures import read

ROOT = Path(__file__).parent.parent
# The modules each table is measured by, beside ridgepass and the data.
MEASURED_BY = {
    "alphas": ("errors",),
    "errors": ("errors", "algorithms", "published"),
    "times": ("times", "algorithms", "published"),
    "singular_values": ("spectra",),
    "eigenvalues": ("spectra", "published"),
    "properties": ("properties", "algorithms", "published"),
}


@dataclass(frozen=True)
class Results:
    """Every number of a run, a table for each kind."""

    alphas: pd.DataFrame
    errors: pd.DataFrame
    times: pd.DataFrame
    singular_values: pd.DataFrame
    eigenvalues: pd.DataFrame
    properties: pd.DataFrame

    def save(self, folder: Path) -> None:
        """Write each table as a CSV file, to six digits."""
        for name in MEASURED_BY:
            table: pd.DataFrame = getattr(self, name)
            table.to_csv(folder / f"{name}.csv", index=False, float_format="%.6g")

    def costs(self) -> pd.DataFrame:
        """Return the times with training and one query, and with a query each batch of ℓ rows.

        rr, which has no ℓ, is queried once.
        """
        times = self.times
        queries = times.n_rows / times["size"].where(times["size"] > 0, times.n_rows)
        return times.assign(
            once=times.train + times["query"], often=times.train + queries * times["query"]
        )

    def often(self, form: str) -> pd.DataFrame:
        """Return mean seconds with a query each batch, a row for each ℓ, a column an algorithm.

        As published RFDrr and iSVDrr take the time of FDrr, from which they differ by one number a
        batch.
        """
        costs = self.costs()
        cells = costs[(costs.against == "ℓ") & (costs.form == form) & (costs["size"] > 0)]
        table = cells.pivot_table(index="size", columns="algorithm", values="often")
        return table if "RFDrr" in table else table.assign(RFDrr=table.FDrr, iSVDrr=table.FDrr)

    @classmethod
    def load(cls, folder: Path) -> "Results":
        """Read what `save` wrote."""
        return cls(**{name: pd.read_csv(folder / f"{name}.csv") for name in MEASURED_BY})


class Kept:
    """What tasks have found, a file for each, so that a run can be taken up where it stopped.

    The folder's name is made of everything the numbers depend on: sources, sizes, temperatures.
    """

    def __init__(self, folder: Path, key: str) -> None:
        self.folder = folder / key
        self.folder.mkdir(parents=True, exist_ok=True)

    def __contains__(self, task: str) -> bool:
        return self._path(task).exists()

    def get(self, task: str) -> pd.DataFrame:
        """Return what the task found."""
        return pd.DataFrame(json.loads(self._path(task).read_text(encoding="utf-8")))

    def put(self, task: str, found: Iterable[Any]) -> None:
        """Write down what the task found, all or nothing."""
        path = self._path(task)
        draft = path.with_suffix(".part")
        draft.write_text(json.dumps([asdict(one) for one in found]), encoding="utf-8")
        draft.replace(path)

    def _path(self, task: str) -> Path:
        return self.folder / f"{hashlib.sha256(task.encode()).hexdigest()[:24]}.json"


def key_of(table: str, *settings: object, temperatures: Path | None) -> str:
    """Return a name for everything that the numbers of a table depend on."""
    tools = platform.python_version(), np.__version__, scipy.__version__
    digest = hashlib.sha256(repr((settings, tools)).encode())
    sources = [ROOT / "experiments" / f"{name}.py" for name in MEASURED_BY[table]]
    sources += [ROOT / "benchmarks" / "streams.py"]
    sources += sorted((ROOT / "src" / "ridgepass").rglob("*.py"))
    for path in sources:
        digest.update(path.read_bytes())
    if table not in ("times", "eigenvalues"):  # of synthetic rows only
        for series in read(temperatures):
            digest.update(series.tobytes())
    return f"{table}-{digest.hexdigest()[:16]}"

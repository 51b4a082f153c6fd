"""Rows of the table, and a folder that keeps them so that a run can be taken up again."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = (
    ROOT / "src" / "ridgepass",
    ROOT / "benchmarks" / "peers",
    ROOT / "benchmarks" / "streams.py",
)


@dataclass(frozen=True)
class Row:
    """A contender on a workload: what it took and erred by, or the reason why it did not."""

    workload: str
    contender: str
    seconds: float | None = None
    megabytes: float | None = None
    passes: float | None = None
    coef_error: float | None = None
    test_error: float | None = None
    reason: str = ""

    @property
    def ran(self) -> bool:
        """Whether there are numbers."""
        return not self.reason


class Ledger:
    """Keeps rows measured with the same sources and settings, one file each."""

    def __init__(self, folder: Path, settings: Iterable[object]) -> None:
        self.folder = folder / digest(settings)

    def find(self, workload: str, contender: str) -> Row | None:
        """Return a row of an earlier run."""
        path = self._path(workload, contender)
        return Row(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None

    def keep(self, row: Row) -> None:
        """Write a row, whole or not at all."""
        path = self._path(row.workload, row.contender)
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        unfinished.write_text(json.dumps(asdict(row)), encoding="utf-8")
        unfinished.replace(path)

    def _path(self, workload: str, contender: str) -> Path:
        return self.folder / f"{workload}.{contender}.json"


def digest(settings: Iterable[object], sources: Iterable[Path] = SOURCES) -> str:
    """Return a name for the code and the settings together."""
    total = hashlib.sha256(repr(tuple(settings)).encode())
    for source in sources:
        for path in sorted(source.rglob("*.py")) if source.is_dir() else [source]:
            total.update(path.relative_to(source.parent).as_posix().encode())
            total.update(path.read_bytes())
    return total.hexdigest()[:16]

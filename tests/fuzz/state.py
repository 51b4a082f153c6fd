"""How far a seed has come and what failed, as lines of JSON that a later run goes on from."""

import hashlib
import json
from collections import Counter
from pathlib import Path

import ridgepass

CHUNK = 20  # configurations of one line


def digest(*folders):
    """Return a short name for the content of all Python files in some folders."""
    found = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            found.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return found.hexdigest()[:10]


class State:
    """One file for a seed, this fuzzer and this source: with others, numbers mean other things.

    Parameters
    ----------
    folder : Path
        Where files are kept.
    seed : int
        The seed.
    """

    def __init__(self, folder, seed):
        own, source = Path(__file__).parent, Path(ridgepass.__file__).parent
        self.folder, self.stem = folder, f"seed-{seed}-{digest(own)}"
        self.path = folder / f"{self.stem}-{digest(source)}.jsonl"
        self.counts, self.failures, self.done = Counter(), [], set()
        for line in self._lines(self.path):
            self._take(line)

    def add(self, start, counts, failures):
        """Keep what a chunk came to."""
        line = {"from": start, "counts": dict(counts), "failures": failures}
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._take(line)

    def chunks(self):
        """Yield where the chunks begin that were not yet run."""
        start = 0
        while True:
            if start not in self.done:
                yield start
            start += CHUNK

    def failed_before(self):
        """Return the numbers that have failed with this fuzzer, whatever the source was."""
        numbers = set()
        for path in sorted(self.folder.glob(f"{self.stem}-*.jsonl")):
            for line in self._lines(path):
                numbers.update(failure["number"] for failure in line["failures"])
        return sorted(numbers)

    def _take(self, line):
        self.done.add(line["from"])
        self.counts.update(line["counts"])
        self.failures += line["failures"]

    @staticmethod
    def _lines(path):
        """Read whole lines; the last one may have been cut off."""
        if not path.exists():
            return
        for text in path.read_text(encoding="utf-8").splitlines():
            try:
                yield json.loads(text)
            except ValueError:
                continue

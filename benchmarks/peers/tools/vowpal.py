"""Vowpal Wabbit on a file of text, which it parses itself."""

import math
import tempfile
from pathlib import Path

import numpy as np
from vowpalwabbit import Workspace

from benchmarks.peers.storage import CannotRunError, Rows

ONLINE = ""
# Its defaults stop at a decrease of the loss below 0.1 %, a percent from the solution.
BFGS = "--bfgs --passes 50 --termination 1e-7"


def fit(rows: Rows, alpha: float, bfgs: bool) -> np.ndarray:
    if not rows.text.exists():
        raise CannotRunError("needs its rows as text, which were not written")
    # Online it is left without a penalty: at ridge's, its adaptive steps err more, or diverge.
    return run(rows, BFGS, alpha) if bfgs else run(rows, ONLINE, 0.0)


def run(rows: Rows, settings: str, alpha: float) -> np.ndarray:
    """Return the weights after Vowpal Wabbit has read the file; numbered columns are their hash.

    Its loss is (y − x·w)² and its penalty ½·l2·‖w‖², of all rows with --bfgs, otherwise of each.
    """
    l2 = 2 * alpha / (1 if "--bfgs" in settings else rows.n_rows)
    bits = max(1, math.ceil(math.log2(rows.n_features)))
    with tempfile.TemporaryDirectory(dir=rows.folder) as folder:
        cache = f"--cache_file {folder}/cache" if "--passes" in settings else ""
        model = Workspace(
            f"{settings} --l2 {l2!r} -d {rows.text} {cache} -b {bits} --noconstant --holdout_off "
            "--predict_only_model --quiet"
        )
        model.save(str(Path(folder) / "model"))  # the penalty reaches the weights only now
        coef = np.array([model.get_weight(j) for j in range(rows.n_features)])
        rows.passes = model.get_weighted_examples() / rows.n_rows
        model.finish()
    return coef

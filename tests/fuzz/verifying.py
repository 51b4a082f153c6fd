"""`ridgepass.verify`: anybody's coefficients against exact ridge."""

import numpy as np

from fuzz.certificates import draw_new_rows, judge
from fuzz.exact import Exact
from fuzz.models import NO_SOLUTION, TOO_FAR, draw_alphas, draw_options
from fuzz.tables import draw_table
from fuzz.training import Again
from ridgepass import StreamingRidge, verify


def run_verify(rng, out):
    """Certify coefficients that are nearly right, or not at all."""
    # Up to eight times as many features as the sketch has rows, XᵀX is kept as it is.
    d = int(rng.integers(17, 25)) if rng.random() < 0.3 else int(rng.integers(1, 8))
    options = draw_options(rng, d, kind=StreamingRidge, method="exact")
    table = draw_table(rng, int(rng.integers(1, 40)), d, block=256)
    (alpha,) = draw_alphas(rng, options, table, 1)
    alpha = max(alpha, 1e-290)
    scale = options.parameters["feature_scale"]
    how = str(rng.choice(["fitted", "none", "zero", "not wanted"], p=[0.5, 0.2, 0.15, 0.15]))
    centred = how == "fitted"
    exact = Exact(table.X, table.y, table.weights, centred=centred, scale=scale)
    found = exact.solution(alpha)
    if found is None:
        return
    coefs, intercepts = _changed(rng, *found)
    if how in ("none", "zero"):
        intercepts = np.zeros_like(intercepts)
    elif how == "not wanted":
        intercepts = 10.0 ** rng.uniform(-3, 3) * rng.standard_normal(len(intercepts))
    fits = {"fitted": None, "none": None, "zero": False, "not wanted": False}[how]
    given = None if how == "none" else intercepts
    single = len(coefs) == 1 and rng.random() < 0.7
    table.single = single
    coef = coefs[0] if single else coefs
    rows = draw_new_rows(rng, table)
    out.notes += [f"verify, intercept {how}, alpha={alpha!r}, scale={scale!r}", table.describe()]
    try:
        proof = verify(
            coef,
            given,
            _source(rng, table),
            alpha,
            scale=scale,
            fit_intercept=fits,
            sketch_size=int(rng.choice([2, 8])),
        )
        bounds = proof.prediction_bound(rows)
    except ValueError as error:
        allowed = NO_SOLUTION if options.is_tame(table) else NO_SOLUTION + TOO_FAR
        if any(word in str(error) for word in allowed):
            out.counts["refused"] += 1
        else:
            out.fail("refused", f"verify: {error}")
        return
    predictions = rows @ coefs.T + intercepts
    judge(out, exact, coefs, intercepts, scale, proof, predictions, bounds, rows, "by verify")


def _changed(rng, coefs, intercepts):
    """Return coefficients that are off by anything from rounding to everything."""
    by = float(rng.choice([0.0, 10.0 ** rng.uniform(-17, -10), 10.0 ** rng.uniform(-10, 1)]))
    coefs = coefs * (1 + by * rng.standard_normal(coefs.shape))
    if rng.random() < 0.1:
        coefs = np.zeros_like(coefs)
    if rng.random() < 0.3:
        intercepts = intercepts * (1 + by)
    return np.nan_to_num(coefs), np.nan_to_num(intercepts)


def _source(rng, table):
    """Return the rows as arrays, as a list, or as a generator that uses its buffers again."""
    how = rng.choice(["arrays", "list", "generator"])
    if how == "arrays" and len(table.runs) == 1:
        return table.batches(rng, "whole")[0]
    if how == "generator":
        return iter(Again(table, rng.integers(2**32)))
    return table.batches(rng)

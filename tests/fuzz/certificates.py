"""Certificates against exact ridge."""

from functools import partial

import numpy as np
from scipy import sparse

from fuzz.exact import Answer
from fuzz.models import ask
from ridgepass import StreamingRidgeClassifier

LARGEST = 1e300  # what is beyond may overflow on its way to a prediction


def draw_new_rows(rng, table, count=4):
    """Draw rows to predict: seen ones, zero, the mean, far ones, others."""
    X = table.X
    rows = [X[rng.integers(len(X))], X.mean(axis=0), np.zeros(X.shape[1])]
    size = np.abs(X).max(axis=0)
    rows.append(rng.standard_normal(X.shape[1]) * np.where(size > 0, size, 1.0))
    rows.append(rows[-1] * 10.0 ** rng.uniform(-6, 6))
    rows.append(X[-1] * 2.0 - X[0])
    chosen = rng.permutation(len(rows))[:count]
    return np.array(rows)[chosen]


def check_model(out, rng, model, exact, table, alphas, when):
    """Compare all that a model claims at these alphas with the truth."""
    options = {"csr": sparse.csr_array, "dense": np.asarray}
    give = options["csr" if rng.random() < 0.2 else "dense"]
    rows = draw_new_rows(rng, table)
    if rng.random() < 0.15:
        with np.errstate(all="ignore"):
            short = rows.astype(np.float32)
        if np.isfinite(short).all():
            rows = short
    for alpha in alphas:
        first = str(rng.choice(["certificate", "coef_", "path"], p=[0.65, 0.32, 0.03]))
        found = ask(out, partial(_ask, model, alpha, give(rows), first))
        if found is not None:
            judge(out, exact, *found, rows, f"{when}, alpha={alpha!r}")


def check_path(out, model, exact, alphas, when):
    """Do the same for a path, which has no predictions."""
    path = ask(out, lambda: model.path(alphas))
    if path is None:
        return
    scale = _scale(model)
    for i, alpha in enumerate(alphas):
        answer = Answer(
            alpha,
            np.atleast_2d(path.coefs[i]),
            np.atleast_1d(path.intercepts[i]),
            scale,
            np.atleast_1d(path.coef_bounds[i]),
            np.atleast_1d(path.relative_bounds[i]),
        )
        _judge(out, exact, answer, f"{when}, path at alpha={alpha!r}")


def judge(out, exact, coef, intercept, scale, certificate, predictions, bounds, rows, when):
    """Compare one certificate with the truth."""
    n_targets = np.atleast_2d(coef).shape[0]
    shape = len(rows), n_targets
    answer = Answer(
        certificate.alpha,
        np.atleast_2d(coef),
        np.broadcast_to(np.atleast_1d(np.asarray(intercept, float)), (n_targets,)),
        scale,
        np.atleast_1d(certificate.coef_bound),
        np.atleast_1d(certificate.relative),
        np.atleast_1d(certificate.energy_bound),
        rows.astype(float),
        np.reshape(predictions, shape),
        np.reshape(bounds, shape),
    )
    others = {"covariance_bound": certificate.covariance_bound, "offset": certificate.offset}
    _judge(out, exact, answer, when, others)


def _ask(model, alpha, rows, first):
    """Return what a model says at alpha; what is asked first may settle how it solves."""
    one = model.at(alpha)
    if first == "coef_":
        _ = one.coef_
    elif first == "path":
        one.path(np.geomspace(1.0, 2.0, 25) * (alpha or 1.0))
    certificate = one.certificate()
    ask = one.decision_function if isinstance(one, StreamingRidgeClassifier) else one.predict
    bounds = certificate.prediction_bound(rows)
    return one.coef_, one.intercept_, _scale(one), certificate, ask(rows), bounds


def _scale(model):
    try:
        return model.scale_
    except AttributeError:
        return None


def _judge(out, exact, answer, when, others=None):
    """Count bounds; a failure is one that is false, or NaN, or below zero."""
    bounds = {
        "coef_bound": answer.coef_bounds,
        "relative": answer.relative_bounds,
        "energy_bound": answer.energy_bounds,
        "prediction_bound": answer.prediction_bounds,
    } | (others or {})
    for name, values in bounds.items():
        if values is None:
            continue
        values = np.atleast_1d(values)
        out.counts["bounds"] += values.size
        out.counts["infinite bounds"] += int(np.isinf(values).sum())
        if not (values >= 0).all():
            out.fail("no bound", f"{name} is {values.tolist()} {when}")
    if not (np.isfinite(answer.coefs).all() and np.isfinite(answer.intercepts).all()):
        out.fail("no number", f"coefficients or intercepts are NaN or infinite {when}")
        return
    if answer.predictions is not None and not np.isfinite(answer.predictions).all():
        truth = exact.predictions(answer.alpha, answer.rows)
        far = np.zeros(answer.predictions.shape, bool)
        if truth is not None:
            reach = np.abs(answer.rows) @ np.abs(answer.coefs.T)
            far = (np.abs(truth) > LARGEST) | ~(reach < LARGEST)
        if not (far | np.isfinite(answer.predictions)).all():
            out.fail("no number", f"predictions are NaN or infinite {when}")
    for what, holds, how in exact.judge(answer):
        if holds is None:
            out.counts["open comparisons"] += 1
        elif not holds:
            kind = what.split(" of ")[0]
            out.fail(f"false {kind}", f"{what}: {how} {when}")

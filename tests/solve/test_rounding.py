"""Rounding is part of the certificate: streams on which there is no other error, no slack given."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ridgepass import RidgeStream
from streams import CERTIFIED

WIDE = np.longdouble


def solve_wide(K, c, alpha):
    """Gaussian elimination in extended precision; K + alpha·I needs no pivots."""
    M, x = K + WIDE(alpha) * np.eye(len(K), dtype=WIDE), c.copy()
    for i in range(len(M)):
        for j in range(i + 1, len(M)):
            ratio = M[j, i] / M[i, i]
            M[j] -= ratio * M[i]
            x[j] -= ratio * x[i]
    for i in reversed(range(len(M))):
        x[i] = (x[i] - M[i, i + 1 :] @ x[i + 1 :]) / M[i, i]
    return x


def covariance_error(model, A):
    """‖AᵀA − K̂‖₂ of a stream, with AᵀA in extended precision."""
    found = model._query().solver.covariance
    rows = found.mix @ np.vstack(found.rows).astype(float)
    gap = A.T.astype(WIDE) @ A - rows.T.astype(WIDE) @ rows
    return np.linalg.norm(gap.astype(float) - found.shift * np.eye(A.shape[1]), 2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("method", CERTIFIED)
@given(data=st.data())
@settings(max_examples=25)
def test_the_bound_covers_rounding_alone(method, dtype, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    d, n = data.draw(st.integers(1, 3)), data.draw(st.integers(50, 1500))
    kind = data.draw(st.sampled_from(["random", "alike", "repeated", "fading"]))
    A = rng.standard_normal((n, d))
    if kind == "alike":
        A = 1 + 1e-3 * A
    if kind == "repeated":
        A = np.repeat(A[:5], -(-n // 5), axis=0)[:n]
    if kind == "fading":
        A *= np.geomspace(1, 1e-6, n)[:, None]
    A = A.astype(dtype)
    b = A.astype(float) @ rng.standard_normal(d) + 0.1 * rng.standard_normal(n) + 1 / 3
    model = RidgeStream(method, sketch_size=data.draw(st.integers(8, 12)))
    for part in np.array_split(np.arange(n), data.draw(st.integers(1, 3))):
        size = data.draw(st.sampled_from([8, 9, 70, 300]))
        model.merge(RidgeStream(method, sketch_size=size).update(A[part], b[part]))
    wide = A.astype(WIDE)
    K, c = wide.T @ wide, wide.T @ b
    mass = float(np.trace(K))
    for factor in (1e-6, 1e-2, 1.0, 1e6):
        certificate, exact = model.certificate(factor * mass), solve_wide(K, c, factor * mass)
        error = np.linalg.norm((model.solve(factor * mass) - exact).astype(float))
        assert error <= certificate.coef_bound
        assert error <= certificate.relative * np.linalg.norm(exact.astype(float))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("method", ["2lfd", "fd", "rfd"])
@pytest.mark.parametrize("sketch_size", [2, 10, 70])
def test_a_long_faint_stream_after_a_loud_start_does_not_drift_out(method, sketch_size, dtype):
    rng = np.random.default_rng(0)
    sizes = np.where(np.arange(20_000) < 5, 1.0, 1e-6)
    A = (sizes[:, None] * rng.standard_normal((20_000, 1))).astype(dtype)
    model = RidgeStream(method, sketch_size=sketch_size).update(A, np.ones(20_000))
    assert covariance_error(model, A) <= model.certificate(1.0).covariance_bound

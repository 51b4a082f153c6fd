"""A turn against the same written out: V, K̂V and VK̂Vᵀ."""

import numpy as np
import pytest

from ridgepass.sketch import turning
from ridgepass.sketch.tracked_covariance import MixedRows
from ridgepass.sketch.turning import NewRows, Turn

N_FEATURES, SIZE = 90, 6
UNIT = {"float32": 6e-8, "float64": 1.1e-16}


def case(seed, n_new):
    """Ω, Y = ΩK, rows X, YᵀM⁻¹Y, and leading eigenpairs V of that and XᵀX together."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((200, N_FEATURES)) * np.exp(rng.standard_normal(N_FEATURES))
    basis = np.linalg.qr(rng.standard_normal((N_FEATURES, SIZE)))[0].T
    image = basis @ A.T @ A
    middle = image @ basis.T
    X = 20 * rng.standard_normal((n_new, N_FEATURES))
    low = image.T @ np.linalg.solve(middle, image)
    values, vectors = np.linalg.eigh(low + X.T @ X)
    return basis, image, X, low, values[: -SIZE - 1 : -1], vectors[:, : -SIZE - 1 : -1].T


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", UNIT)
@pytest.mark.parametrize("n_new", [0, 3])
@pytest.mark.parametrize("is_diagonal", [False, True])
def test_a_turn_is_what_it_is_written_out(monkeypatch, is_diagonal, n_new, dtype, order):
    monkeypatch.setattr(turning, "panel_width", lambda n_rows: 25)  # four panels, one narrower
    basis, image, X, low, values, turned = case(n_new, n_new)
    factor = 0.25
    stacked = np.vstack([image, factor * X])
    by = np.linalg.lstsq(stacked.T, turned.T, rcond=None)[0].T
    np.testing.assert_allclose(by @ stacked, turned, atol=1e-9)
    new = NewRows(MixedRows(((factor * X).astype(dtype),)), factor, by[:, SIZE:], turned @ X.T)
    turn = Turn(values, by[:, :SIZE], turned @ basis.T, new if n_new else None)

    rng = np.random.default_rng(9)
    tails = rng.random(N_FEATURES) * 100 if is_diagonal else 42.0
    outside = np.eye(N_FEATURES) - basis.T @ basis
    known = low + outside @ (tails * outside.T).T
    points = np.array(np.vstack([basis, basis]), dtype, order=order)
    images = np.array(np.vstack([image, image]), dtype, order=order)
    kept = np.empty(N_FEATURES)
    found = turn.carry_out(points[:SIZE], images[:SIZE], tails, kept)

    slack = 3e3 * UNIT[dtype]
    np.testing.assert_allclose(points[:SIZE], turned, atol=slack)
    np.testing.assert_allclose(images[:SIZE], turned @ known, atol=slack * values[0])
    np.testing.assert_allclose(found, turned @ known @ turned.T, atol=slack * values[0])
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(kept, values @ np.square(turned), atol=slack * values[0])
    np.testing.assert_array_equal(points[SIZE:], basis.astype(dtype))
    np.testing.assert_array_equal(images[SIZE:], image.astype(dtype))


def test_a_large_tail_leaves_small_eigenvalues_alone_where_v_stays():
    # In float32 a difference of squares, times T, would be off by hundreds.
    basis, _, _, _, values, _ = case(1, 0)
    tails = np.full(N_FEATURES, 1e11)
    points, images = basis.astype("float32"), (values[:, None] * basis).astype("float32")
    found = Turn(values, np.diag(1 / values), np.eye(SIZE)).carry_out(points, images, tails)
    np.testing.assert_allclose(found, np.diag(values), rtol=1e-5, atol=1.0)

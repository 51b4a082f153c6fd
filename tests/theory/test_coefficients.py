"""Equations (1) and (2), Lemmas 1 and 2, Theorems 1 and 2, on a plain reading of the paper."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_reading import exact, fd, solve
from ridgepass import theory
from theory_streams import equal_rows, norm, spectral, stream, streams, tail

ROUNDING = 1e-13
COVARIANCE_BOUND = {"fd": theory.fd_covariance_bound, "rfd": theory.rfd_covariance_bound}
rules = st.sampled_from(["fd", "rfd"])
sizes = st.integers(1, 8)


@given(A=streams(), ell=sizes, rule=rules)
def test_equations_1_and_2_hold_at_every_rank(A, ell, rule):
    state = fd(A, ell, rule)
    error = spectral(A.T @ A - state.covariance)
    for k in range(ell):
        # Keeping ℓ rows and shrinking by σ²_{ℓ+1} earns one row more than the paper claims.
        for size in (ell, ell + 1):
            bound = COVARIANCE_BOUND[rule](tail(A, k), size, k)
            assert error <= bound + ROUNDING * tail(A, 0)


@pytest.mark.parametrize("ell", [1, 2, 5])
@pytest.mark.parametrize(("rule", "share"), [("fd", 1.0), ("rfd", 0.5)])
def test_equations_1_and_2_are_attained_by_equal_rows(ell, rule, share):
    A = equal_rows(ell + 1, 3.0)
    error = spectral(A.T @ A - fd(A, ell, rule).covariance)
    assert error == pytest.approx(share * 3.0, rel=1e-12)
    assert error == pytest.approx(COVARIANCE_BOUND[rule](tail(A, 0), ell + 1, 0), rel=1e-12)


def test_equation_2_does_not_hold_without_the_shift():
    A = equal_rows(5, 3.0)
    error = spectral(A.T @ A - fd(A, 4, "fd").covariance)
    assert error > 1.5 * theory.rfd_covariance_bound(tail(A, 0), 4, 0)


@given(A=streams(), ell=sizes, robust=st.booleans())
def test_best_covariance_bound_is_the_least_over_ranks(A, ell, robust):
    values = np.linalg.svd(A, compute_uv=False)
    best = theory.best_covariance_bound(values[::-1], ell, robust=robust)
    each = [COVARIANCE_BOUND["rfd" if robust else "fd"](tail(A, k), ell, k) for k in range(ell)]
    # A tail within rounding of nothing may be reached at several ranks.
    assert best.bound == pytest.approx(min(each), rel=1e-12)
    assert each[best.k] == pytest.approx(min(each), rel=1e-12)


def test_best_covariance_bound_survives_squares_beyond_the_largest_float():
    best = theory.best_covariance_bound([1e200, 1.0, 1.0, 1.0], 4)
    assert best == (1.0, 1)


def coefficients(A, ell, rule, gamma, seed):
    b = np.random.default_rng(seed).standard_normal(len(A))
    state = fd(A, ell, rule)
    return state, solve(state, A.T @ b, gamma), exact(A, b, gamma)


penalties = st.floats(-3, 3).map(lambda power: 10.0**power)


@given(
    A=streams(),
    ell=sizes,
    rule=st.sampled_from(["fd", "rfd", "isvd"]),
    relative=penalties,
    seed=st.integers(0, 999),
)
def test_lemma_1_bounds_the_coefficients(A, ell, rule, relative, seed):
    gamma = relative * spectral(A) ** 2
    state, x_hat, x = coefficients(A, ell, rule, gamma, seed)
    K, K_hat = A.T @ A, state.covariance
    error = spectral(K - K_hat)
    rounding = ROUNDING * (1 + 1 / relative) * norm(x)
    off = norm(x_hat - x)

    plain = theory.relative_error_bound(error, gamma)
    least = max(np.linalg.eigvalsh(K_hat)[0], 0.0)
    assert off <= theory.relative_error_bound(error, gamma, least) * norm(x) + rounding
    assert off <= plain * norm(x) + rounding
    assert off <= plain * norm(x_hat) + rounding  # the two matrices exchanged


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
@pytest.mark.parametrize(("offset", "kept"), [(0.5, 2.0), (-0.5, 2.0), (3.0, 0.0)])
def test_lemma_2_attains_lemma_1(scale, offset, kept):
    alpha, square = 0.25 * scale**2, scale**2
    c = np.array([1.0, -2.0, 0.5])
    x = c / ((kept + offset) * square + alpha)
    x_hat = c / (kept * square + alpha)
    bound = theory.relative_error_bound(abs(offset) * square, alpha, kept * square)
    assert norm(x_hat - x) == pytest.approx(bound * norm(x), rel=1e-12, abs=0)


def test_lemma_1_needs_no_penalty_when_the_sketch_has_full_rank():
    assert theory.relative_error_bound(1.0, 0.0, 4.0) == 0.25


@given(
    A=streams(rows=(8, 40), columns=(4, 10)),
    k=st.integers(0, 3),
    eps=st.floats(0.01, 2.0),
    gap=st.floats(0.2, 6.0),
    rule=rules,
    seed=st.integers(0, 999),
)
def test_theorems_keep_their_promise(A, k, eps, gap, rule, seed):
    robust = rule == "rfd"
    share = 0.5 if robust else 1.0
    # With the low-rank spectrum the tail is rounding: keep the penalty well above it.
    alpha = max(share * tail(A, k) / (eps * gap), 1e-6 * tail(A, 0))
    ell = theory.sketch_size_for(eps, alpha, tail(A, k), k, robust=robust)

    def promised(size):
        return theory.relative_error_bound(COVARIANCE_BOUND[rule](tail(A, k), size, k), alpha)

    assert ell > k
    assert promised(ell) <= eps
    assert ell == k + 1 or promised(ell - 1) > eps

    lowest = theory.alpha_for(eps, ell, tail(A, k), k, robust=robust)
    assert lowest <= alpha * (1 + 1e-12)
    for penalty in {alpha, max(lowest, 1e-6 * tail(A, 0))}:
        _, x_hat, x = coefficients(A, ell, rule, penalty, seed)
        rounding = ROUNDING * (1 + spectral(A) ** 2 / penalty)
        assert norm(x_hat - x) <= (eps + rounding) * norm(x)


@pytest.mark.parametrize(("rule", "share"), [("fd", 1.0), ("rfd", 0.5)])
def test_theorems_are_close_to_what_equal_rows_attain(rule, share):
    ell, gamma = 9, 7.0
    _, x_hat, x = coefficients(equal_rows(ell + 1, 2.0), ell, rule, gamma, seed=1)
    attained = norm(x_hat - x) / norm(x)
    lowered = 2.0 * share / (gamma + (1.0 if rule == "rfd" else 0.0))
    assert attained == pytest.approx(lowered, rel=1e-12)
    if rule == "fd":  # the theorem asks for one row more than this stream needs, never two
        assert theory.sketch_size_for(attained, gamma, 20.0) == ell + 1


@given(
    eps=st.floats(1e-3, 10.0),
    tail_=st.floats(1e-3, 1e3),
    alpha=st.floats(1e-3, 1e3),
    k=st.integers(0, 20),
    robust=st.booleans(),
    exponent=st.sampled_from([-200, 0, 200]),
)
def test_sizes_and_penalties_are_the_least(eps, tail_, alpha, k, robust, exponent):
    rule, scale = ("rfd" if robust else "fd"), 10.0**exponent
    tail_, alpha = tail_ * scale, alpha * scale

    def promised(size, penalty):
        return theory.relative_error_bound(COVARIANCE_BOUND[rule](tail_, size, k), penalty)

    ell = theory.sketch_size_for(eps, alpha, tail_, k, robust=robust)
    assert promised(ell, alpha) <= eps
    assert ell == k + 1 or promised(ell - 1, alpha) > eps
    lowest = theory.alpha_for(eps, ell, tail_, k, robust=robust)
    assert promised(ell, lowest) <= eps < promised(ell, lowest * (1 - 1e-14))


def test_a_rounded_fraction_is_settled_by_the_bound_as_computed():
    # In floats 2.1 / 0.3 / 0.25 is above 28, yet 2.1 / 28 / 0.3 is not above 0.25.
    assert theory.sketch_size_for(0.25, 0.3, 2.1) == 28
    # And 0.9 / 0.1 / 0.09 is 100, yet 0.9 / 100 / 0.1 is above 0.09.
    assert theory.sketch_size_for(0.09, 0.1, 0.9) == 101


def test_without_a_tail_one_row_more_than_the_rank_is_exact():
    assert theory.sketch_size_for(1e-9, 1e-9, 0.0, 4) == 5
    assert theory.alpha_for(0.1, 5, 0.0, 4) == 0.0
    assert theory.best_covariance_bound([2.0, 1.0], 3) == (0.0, 2)
    assert theory.best_sketch_size_for(1e-9, 1e-9, [2.0, 1.0]) == 3
    A = stream(3, 20, 8, "low rank")
    _, x_hat, x = coefficients(A, 3, "fd", 1e-2 * spectral(A) ** 2, seed=3)
    assert norm(x_hat - x) <= 1e-11 * norm(x)


@given(A=streams(), eps=st.floats(0.01, 2.0), relative=penalties, robust=st.booleans())
def test_best_sketch_size_is_the_least_over_ranks(A, eps, relative, robust):
    alpha = relative * spectral(A) ** 2
    values = np.linalg.svd(A, compute_uv=False)
    best = theory.best_sketch_size_for(eps, alpha, values, robust=robust)
    rows = COVARIANCE_BOUND["rfd" if robust else "fd"]

    def reached(size):
        return min(rows(tail(A, k), size, k) for k in range(size)) / alpha

    assert reached(best) <= eps * (1 + 1e-12)
    assert best == 1 or reached(best - 1) > eps * (1 - 1e-12)
    assert best <= len(values) + 1


@given(A=streams(), ell=sizes, rule=rules, seed=st.integers(0, 999))
def test_predictions_are_bounded_by_row_and_together(A, ell, rule, seed):
    gamma = spectral(A) ** 2
    state, x_hat, x = coefficients(A, ell, rule, gamma, seed)
    eps = theory.relative_error_bound(spectral(A.T @ A - state.covariance), gamma) + 1e-12
    rows = np.random.default_rng(seed).standard_normal((5, A.shape[1]))
    rows[0] = x_hat - x  # the direction in which Cauchy and Schwarz agree
    off = rows @ (x_hat - x)

    bounds = theory.prediction_bound(eps, norm(x), rows)
    assert bounds.shape == (5,)
    assert (np.abs(off) <= bounds * (1 + ROUNDING)).all()
    assert float(theory.prediction_bound(eps, norm(x), rows[1])) == bounds[1]
    together = theory.predictions_norm_bound(eps, norm(x), rows)
    assert norm(off) <= together
    assert together <= norm(bounds) * (1 + ROUNDING)


@pytest.mark.parametrize("scale", [1e-250, 1e250])
def test_prediction_bounds_neither_overflow_nor_vanish(scale):
    rows = scale * np.array([[3.0, 4.0], [0.0, 0.0], [0.0, 1.0]])
    assert theory.prediction_bound(0.5, 2.0, rows) == pytest.approx(
        [5 * scale, 0, scale], rel=1e-14, abs=0
    )
    together = theory.predictions_norm_bound(0.5, 2.0, rows[::2])
    assert together == pytest.approx(scale * np.linalg.norm(rows[::2] / scale, 2), rel=1e-14, abs=0)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: theory.fd_covariance_bound(1.0, 3, 3), "k must be below sketch_size"),
        (lambda: theory.rfd_covariance_bound(1.0, 3, -1), "k must be at least 0"),
        (lambda: theory.fd_covariance_bound(1.0, 0), "sketch_size must be at least 1"),
        (lambda: theory.fd_covariance_bound(1.0, 2.5), "sketch_size must be an integer"),
        (lambda: theory.fd_covariance_bound(-1.0, 3), "tail must be at least 0"),
        (lambda: theory.fd_covariance_bound(math.nan, 3), "tail must be at least 0"),
        (lambda: theory.best_covariance_bound([[1.0]], 2), "singular_values must have 1 axes"),
        (lambda: theory.best_covariance_bound([-1.0], 2), "singular_values must be at least 0"),
        (lambda: theory.best_covariance_bound([math.inf], 2), "singular_values must be finite"),
        (lambda: theory.relative_error_bound(1.0, 0.0), "raise the ridge penalty"),
        (lambda: theory.relative_error_bound(1.0, -1.0, 5.0), "alpha must be at least 0"),
        (lambda: theory.relative_error_bound(-1.0, 1.0), "covariance_error"),
        (lambda: theory.relative_error_bound(1.0, 1.0, -1.0), "smallest_eigenvalue"),
        (lambda: theory.sketch_size_for(0.0, 1.0, 1.0), "eps must be positive"),
        (lambda: theory.sketch_size_for(0.1, 0.0, 1.0), "alpha must be positive"),
        (lambda: theory.sketch_size_for(0.1, 1.0, -1.0), "tail must be at least 0"),
        (lambda: theory.sketch_size_for(0.1, 1.0, 1.0, -1), "k must be at least 0"),
        (lambda: theory.sketch_size_for(1e-9, 1e-9, 1.0), "raise eps or alpha"),
        (lambda: theory.best_sketch_size_for(-1.0, 1.0, [1.0]), "eps must be positive"),
        (lambda: theory.best_sketch_size_for(0.1, 0.0, [1.0]), "alpha must be positive"),
        (lambda: theory.alpha_for(0.0, 3, 1.0), "eps must be positive"),
        (lambda: theory.alpha_for(0.1, 3, 1.0, 3), "k must be below sketch_size"),
        (lambda: theory.alpha_for(1e-300, 3, 1e300), "raise eps"),
        (lambda: theory.prediction_bound(-1.0, 1.0, [1.0]), "relative_error"),
        (lambda: theory.prediction_bound(0.1, -1.0, [1.0]), "coef_norm"),
        (lambda: theory.prediction_bound(0.1, 1.0, [[[1.0]]]), "rows must have 2 axes"),
        (lambda: theory.predictions_norm_bound(0.1, 1.0, [1.0]), "rows must have 2 axes"),
    ],
)
def test_bad_arguments_are_named(call, named):
    with pytest.raises(ValueError, match=named):
        call()

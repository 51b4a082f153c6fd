"""Lemma 3, the risk in both theorems and the supplement's lemmas: the bounds that hold."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_reading import exact, fd, solve
from ridgepass import theory
from theory_ratios import ROUNDING, below, one_column, ratios, sketch_of, worst_ratios
from theory_streams import equal_rows, spectral, stream, streams

penalties = st.floats(-2, 2).map(lambda power: 10.0**power)
small = streams(rows=(1, 14), columns=(1, 7))
sizes = st.integers(1, 6)
seeds = st.integers(0, 999)


def mean_loss(A, x, noise, estimate):
    """E‖A(x̂ - x)‖², exactly: the points ±√n eᵢ have the mean and covariance of Z."""
    n = len(A)
    points = math.sqrt(n) * np.vstack([np.eye(n), -np.eye(n)])
    losses = [np.sum((A @ (estimate(A @ x + noise * z) - x)) ** 2) for z in points]
    return math.fsum(losses) / len(losses)


@given(A=small, ell=sizes, rule=st.sampled_from(["fd", "rfd", "isvd"]), rel=penalties, seed=seeds)
def test_risk_is_the_mean_loss_of_the_estimates(A, ell, rule, rel, seed):
    alpha = rel * spectral(A) ** 2
    x = np.random.default_rng(seed).standard_normal(A.shape[1])
    state = fd(A, ell, rule)
    zero, noise = np.zeros_like(x), 0.3 * spectral(A)

    def check(formula, estimate):
        both = formula(x, noise)
        assert both.total == pytest.approx(mean_loss(A, x, noise, estimate), rel=ROUNDING, abs=0)
        assert both.bias2 == pytest.approx(mean_loss(A, x, 0.0, estimate), rel=ROUNDING, abs=0)
        alone = mean_loss(A, zero, noise, estimate)
        assert both.variance == pytest.approx(alone, rel=ROUNDING, abs=0)
        assert both.total == both.bias2 + both.variance

    check(lambda x, s: theory.exact_risk(A, x, alpha, s), lambda b: exact(A, b, alpha))
    check(
        lambda x, s: theory.sketched_risk(A, x, alpha, s, state.sketch, state.alpha_shift),
        lambda b: solve(state, A.T @ b, alpha),
    )


@given(A=small, rel=penalties, seed=seeds)
def test_a_sketch_that_lost_nothing_has_the_exact_risk(A, rel, seed):
    alpha = rel * spectral(A) ** 2
    x = np.random.default_rng(seed).standard_normal(A.shape[1])
    same, truth = theory.sketched_risk(A, x, alpha, 2.0, A), theory.exact_risk(A, x, alpha, 2.0)
    assert same.bias2 == pytest.approx(truth.bias2, rel=ROUNDING, abs=0)
    assert same.variance == pytest.approx(truth.variance, rel=ROUNDING, abs=0)


def test_an_empty_sketch_leaves_the_penalty_alone():
    A, x = stream(5, 9, 4, "flat"), np.array([1.0, -1.0, 2.0, 0.5])
    risk = theory.sketched_risk(A, x, 3.0, 2.0, np.empty((0, 4)), shift=1.0)
    K = A.T @ A
    assert risk.bias2 == pytest.approx(np.sum((A @ (K @ x / 4.0 - x)) ** 2), rel=1e-12)
    assert risk.variance == pytest.approx(4.0 * np.sum(K**2) / 16.0, rel=1e-12)


def conditioned(A, error, alpha, **printed):
    sigma = np.linalg.svd(A, compute_uv=False)
    least = sigma[sigma > 1e-6 * sigma[0]][-1]
    return theory.conditioned_variance_factor(error, alpha, sigma[0], least, **printed)


@given(A=streams(rows=(2, 25)), ell=sizes, rule=st.sampled_from(["fd", "rfd"]), rel=penalties)
def test_both_theorems_bound_the_risk_of_their_sketch(A, ell, rule, rel):
    alpha, top = rel * spectral(A) ** 2, spectral(A)
    state = fd(A, ell, rule)
    error = spectral(A.T @ A - state.covariance)
    values = np.linalg.svd(A, compute_uv=False)
    promised = theory.best_covariance_bound(values, ell, robust=rule == "rfd").bound
    eps = max(promised / alpha, 1e-12)
    found = worst_ratios(A, state.sketch, state.alpha_shift, alpha)

    factors = {"fd": theory.fd_risk_factors, "rfd": theory.rfd_risk_factors}[rule]
    assert below(found, factors(eps, alpha, top))
    assert below(found, theory.risk_factors(error, alpha, top))
    assert below(found, theory.sharp_risk_factors(error, alpha, top))
    assert found.variance <= conditioned(A, error, alpha) * (1 + ROUNDING)

    printed = factors(eps, alpha, top, as_printed=True)
    assert found.variance <= printed.variance * (1 + ROUNDING)  # true in both theorems
    if rule == "rfd" and eps * top**2 / alpha >= 2 / 3:
        assert found.bias2 <= printed.bias2 * (1 + ROUNDING)


def any_sketch(A, kind, size, seed):
    K, rng = A.T @ A, np.random.default_rng(seed)
    top, noise = spectral(K), rng.standard_normal(K.shape)
    return sketch_of(
        {
            "unrelated": size * top * (noise @ noise.T),
            "near": K + size * top / 10 * (noise + noise.T),
            "multiple": size * K,
            "raised": K + size * top * np.eye(len(K)),
        }[kind]
    )


@given(
    A=streams(rows=(2, 25)),
    kind=st.sampled_from(["unrelated", "near", "multiple", "raised"]),
    size=st.floats(0.0, 2.0),
    rel=penalties,
    seed=seeds,
)
def test_lemma_3_and_the_supplement_bound_any_sketch(A, kind, size, rel, seed):
    alpha, top = rel * spectral(A) ** 2, spectral(A)
    C = any_sketch(A, kind, size, seed)
    error = spectral(A.T @ A - C.T @ C)
    x = np.random.default_rng(seed).standard_normal(A.shape[1])
    for found in (worst_ratios(A, C, 0.0, alpha), ratios(A, C, 0.0, alpha, x)):
        assert below(found, theory.risk_factors(error, alpha, top))
        assert below(found, theory.sharp_risk_factors(error, alpha, top))
        assert found.variance <= conditioned(A, error, alpha) * (1 + ROUNDING)


@given(
    d=st.integers(1, 7), eta=st.floats(0.01, 0.95), power=st.floats(-6, 2), seed=seeds, lift=sizes
)
def test_supplement_2_bounds_any_sketch_of_full_rank_data(d, eta, power, seed, lift):
    A = stream(seed, d + 3 + lift, d, "flat")
    least = np.linalg.svd(A, compute_uv=False)[-1]
    noise = np.random.default_rng(seed).standard_normal((d, d))
    noise += noise.T
    C = sketch_of(A.T @ A + eta * least**2 / spectral(noise) * noise)
    factor = theory.full_rank_variance_factor(spectral(A.T @ A - C.T @ C), least)
    alpha = 10.0**power * least**2
    assert ratios(A, C, 0.0, alpha, np.ones(d)).variance <= factor * (1 + ROUNDING)


@given(error=st.floats(0, 1e3), alpha=st.floats(1e-3, 1e3), top=st.floats(0, 1e3))
def test_sharper_factors_are_never_looser(error, alpha, top):
    plain = theory.risk_factors(error, alpha, top)
    sharp = theory.sharp_risk_factors(error, alpha, top)
    assert 1.0 <= sharp.bias2 <= plain.bias2
    assert 1.0 <= sharp.variance <= plain.variance
    robust = theory.rfd_risk_factors(1.0, alpha, top).variance
    printed = theory.rfd_risk_factors(1.0, alpha, top, as_printed=True).variance
    assert robust <= min(4.0, printed) * (1 + 1e-15)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_factors_do_not_depend_on_the_unit(scale):
    at = theory.sharp_risk_factors(0.5 * scale**2, scale**2, 3.0 * scale)
    assert at.bias2 == pytest.approx(theory.sharp_risk_factors(0.5, 1.0, 3.0).bias2, rel=1e-12)
    assert theory.conditioned_variance_factor(
        0.5 * scale**2, scale**2, 3.0 * scale, scale
    ) == pytest.approx(6.25, rel=1e-12)


# Bounds that are attained: none of these factors can be made smaller.


def test_equal_rows_attain_the_variance_of_both_theorems():
    alpha, square, ell = 0.7, 3.0, 4
    A, s = equal_rows(ell + 1, square), square / alpha
    for rule, factors in (("fd", theory.fd_risk_factors), ("rfd", theory.rfd_risk_factors)):
        state = fd(A, ell, rule)
        found = ratios(A, state.sketch, state.alpha_shift, alpha, np.ones(ell + 1))
        wanted = factors(1.0, alpha, math.sqrt(square)).variance
        assert found.variance == pytest.approx(wanted, rel=1e-12)
    assert wanted == pytest.approx(((1 + s) / (1 + s / 2)) ** 2, rel=1e-12)
    assert theory.conditioned_variance_factor(
        square, alpha, math.sqrt(square), math.sqrt(square)
    ) == pytest.approx((1 + s) ** 2, rel=1e-12)


def test_the_bias_of_lemma_3_is_attained_as_the_penalty_grows():
    found = one_column(K=1.0, K_hat=1.5, alpha=1e3)
    allowed = theory.risk_factors(0.5, 1e3, 1.0)
    assert (found.bias2 - 1) / (allowed.bias2 - 1) == pytest.approx(1, rel=5e-3)


def test_the_sharp_bias_must_grow_with_the_norm_of_the_data():
    # An error between a strong and a weak direction reaches half of ε√s; none that commutes would.
    A = np.diag([100.0, 1.0])
    D = 0.01 * np.array([[0.0, 1.0], [1.0, 0.0]])
    found = worst_ratios(A, sketch_of(A.T @ A - D), 0.0, 1.0)
    factors = theory.sharp_risk_factors(0.01, 1.0, 100.0)
    assert below(found, factors)
    assert found.bias2 > (1 + 0.25 * 0.01 * 100) ** 2
    assert factors.bias2 < 1e-3 * theory.risk_factors(0.01, 1.0, 100.0).bias2


def test_the_second_lemma_of_the_supplement_is_attained_as_the_penalty_vanishes():
    found = one_column(K=1.0, K_hat=0.4, alpha=1e-9)
    assert found.variance == pytest.approx(theory.full_rank_variance_factor(0.6, 1.0), rel=1e-7)


A = np.eye(2)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: theory.exact_risk(A, [1.0, 1.0], 0.0, 1.0), "alpha must be positive"),
        (lambda: theory.exact_risk(A, [1.0], 1.0, 1.0), "x must have last axis 2"),
        (lambda: theory.exact_risk(A, [[1.0, 1.0]], 1.0, 1.0), "x must have 1 axes"),
        (lambda: theory.exact_risk(A[0], [1.0, 1.0], 1.0, 1.0), "A must have 2 axes"),
        (lambda: theory.exact_risk(A[:0], [1.0, 1.0], 1.0, 1.0), "A must not be empty"),
        (lambda: theory.exact_risk(A * math.nan, [1.0, 1.0], 1.0, 1.0), "A must be finite"),
        (lambda: theory.exact_risk(A, [1.0, 1.0], 1.0, -1.0), "noise must be at least 0"),
        (lambda: theory.sketched_risk(A, [1.0, 1.0], 1.0, 1.0, [[1.0]]), "sketch must have last"),
        (lambda: theory.sketched_risk(A, [1.0, 1.0], 1.0, 1.0, A, -1.0), "shift must be at least"),
        (lambda: theory.risk_factors(-1.0, 1.0, 1.0), "covariance_error must be at least 0"),
        (lambda: theory.risk_factors(1.0, 0.0, 1.0), "alpha must be positive"),
        (lambda: theory.sharp_risk_factors(1.0, 1.0, -1.0), "spectral_norm must be at least 0"),
        (lambda: theory.fd_risk_factors(0.0, 1.0, 1.0), "eps must be positive"),
        (lambda: theory.fd_risk_factors(0.1, -1.0, 1.0), "alpha must be positive"),
        (lambda: theory.rfd_risk_factors(-0.1, 1.0, 1.0), "eps must be positive"),
        (lambda: theory.rfd_risk_factors(0.1, 0.0, 1.0), "alpha must be positive"),
        (lambda: theory.conditioned_variance_factor(1.0, 1.0, 1.0, 0.0), "leave out the zeros"),
        (lambda: theory.conditioned_variance_factor(1.0, 1.0, 1.0, 2.0), "exchange them"),
        (lambda: theory.full_rank_variance_factor(4.0, 2.0), "take a larger sketch"),
        (lambda: theory.full_rank_variance_factor(4.0, 0.0), "full column rank"),
        (lambda: theory.full_rank_variance_factor(-4.0, 1.0), "covariance_error"),
    ],
)
def test_bad_arguments_are_named(call, named):
    with pytest.raises(ValueError, match=named):
        call()

"""Printed bounds on the risk that are not bounds: a counterexample to each."""

import math

import numpy as np
import pytest

from paper_reading import fd
from ridgepass import theory
from theory_ratios import below, one_column, ratios, sketch_of, worst_ratios
from theory_streams import spectral, tail


def test_printed_bias_of_lemma_3_fails_when_the_sketch_exceeds_the_data():
    found = one_column(K=1.0, K_hat=1.1, alpha=1.0)
    printed = theory.risk_factors(0.1, 1.0, 1.0, as_printed=True)
    assert found.bias2 == pytest.approx((1 + 0.1 / 2.1) ** 2, rel=1e-12)
    assert printed.bias2 == pytest.approx(1.01, rel=1e-12)
    assert found.bias2 > printed.bias2
    assert below(found, theory.risk_factors(0.1, 1.0, 1.0))


def test_printed_bias_of_theorem_1_fails_for_a_real_pass():
    # Four small equal rows are shrunk away whole, which leaves K - K̂ = 10⁻⁴ diag(1, 1, 1, 1, 0).
    # Two large rows then arrive, aligned with none of those axes, and are kept without a loss.
    ell, alpha, turn = 3, 1.0, 1.0
    first, last = np.eye(5)[0], np.eye(5)[4]
    A = np.vstack(
        [
            1e-2 * np.eye(5)[:4],
            np.zeros((2, 5)),
            0.4 * (math.cos(turn) * last + math.sin(turn) * first),
            math.cos(turn) * first - math.sin(turn) * last,
        ]
    )
    state, top = fd(A, ell, "fd"), spectral(A)
    D = A.T @ A - state.covariance
    assert pytest.approx(1e-4 * np.diag([1.0, 1, 1, 1, 0]), rel=0, abs=1e-14 * top**2) == D
    found = worst_ratios(A, state.sketch, 0.0, alpha)
    eps = min(tail(A, k) / (alpha * (ell - k)) for k in range(ell))

    printed = theory.fd_risk_factors(eps, alpha, top, as_printed=True)
    assert found.bias2 - 1 > 5 * (printed.bias2 - 1)  # about 9e-7, and 9e-8: far above rounding
    lemma = theory.risk_factors(spectral(D), alpha, top, as_printed=True)
    assert found.bias2 - 1 > 50 * (lemma.bias2 - 1)
    assert below(found, theory.fd_risk_factors(eps, alpha, top))


def test_printed_bias_of_theorem_2_fails_for_a_real_pass():
    shift, alpha = 0.05, 1.0
    A = np.sqrt(np.diag([2 * shift, 2 * shift, shift / 2]))
    state, top = fd(A, 1, "rfd"), spectral(A)
    assert state.alpha_shift == pytest.approx(shift, rel=1e-12)
    found = worst_ratios(A, state.sketch, state.alpha_shift, alpha)
    eps = tail(A, 0) / (2 * alpha)
    printed = theory.rfd_risk_factors(eps, alpha, top, as_printed=True)
    assert found.bias2 == pytest.approx(1.0023269, rel=1e-7)
    assert printed.bias2 == pytest.approx(1.0005063, rel=1e-7)
    assert below(found, theory.rfd_risk_factors(eps, alpha, top))


def test_printed_bias_of_theorem_2_is_provable_exactly_from_two_thirds():
    def gap(m):
        allowed = theory.rfd_risk_factors(m, 1.0, 1.0, as_printed=True).bias2
        return allowed - theory.rfd_risk_factors(m, 1.0, 1.0).bias2

    assert gap(2 / 3 * (1 - 1e-9)) < 0 < gap(2 / 3 * (1 + 1e-9))


def test_printed_first_lemma_of_the_supplement_changes_with_the_unit_and_fails():
    for scale, holds in ((1e-3, False), (1e3, True)):
        square = scale**2
        found = one_column(K=0.5 * square, K_hat=0.0, alpha=square)
        arguments = (0.5 * square, square, scale * math.sqrt(0.5), scale * math.sqrt(0.5))
        printed = theory.conditioned_variance_factor(*arguments, as_printed=True)
        assert found.variance == pytest.approx(2.25, rel=1e-12)
        assert (found.variance <= printed) is holds
        assert theory.conditioned_variance_factor(*arguments) == pytest.approx(2.25, rel=1e-12)
    # With its units mended, and no other change, it would still fail: 2.25 against 1.25.
    assert found.variance > 1 + 0.5**2


def test_printed_second_lemma_of_the_supplement_lacks_a_square():
    found = one_column(K=1.0, K_hat=0.5, alpha=1e-3)
    assert found.variance == pytest.approx((1.001 / 0.501) ** 2, rel=1e-12)
    assert found.variance > 1.9 * theory.full_rank_variance_factor(0.5, 1.0, as_printed=True)
    assert found.variance <= theory.full_rank_variance_factor(0.5, 1.0)


def test_second_lemma_of_the_supplement_fails_without_full_column_rank():
    A, alpha = np.array([[1.0, 0.0]]), 1e-6
    K_hat = np.array([[1.0, 0.09], [0.09, 0.009]])
    error = spectral(A.T @ A - K_hat)
    found = ratios(A, sketch_of(K_hat), 0.0, alpha, np.ones(2))
    assert found.variance > 50 * theory.full_rank_variance_factor(error, 1.0)
    assert below(found, theory.risk_factors(error, alpha, 1.0))

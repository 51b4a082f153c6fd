"""Certificates against exact ridge: never below the truth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ridgepass import RidgeStream
from ridgepass.datasets import Synthetic
from ridgepass.solve.bounds import by_lemma
from streams import BOUNDED, CERTIFIED, METHODS, SPECTRA, exact_ridge, make_rows, norm, streams

UNIT = np.finfo(float).eps


def test_all_but_the_projections_have_a_certificate():
    assert {"2lfd", "tracked", "exact", "fd", "isvd", "rfd"} <= set(CERTIFIED)
    assert not {"rp", "cs"} & set(CERTIFIED)
    assert set(CERTIFIED) - set(BOUNDED) == {"tracked"}


def errors(coef, exact):
    columns = (coef - exact).reshape(len(exact), -1).T
    return np.array([norm(column) for column in columns])


@pytest.mark.parametrize("method", METHODS)
@given(stream=streams(), factor=st.sampled_from([1e-4, 1e-2, 1.0, 1e3]))
def test_never_below_the_true_error_in_float64(method, stream, factor):
    alpha = stream.alpha * factor
    model = RidgeStream(method, sketch_size=stream.sketch_size).update(stream.A, stream.b)
    exact = exact_ridge(stream.A, stream.b, alpha)[:, 0]
    assert_not_below(model, alpha, exact, factor)


def assert_not_below(model, alpha, exact, factor):
    """With what is certain, and with probes."""
    error = norm(model.solve(alpha) - exact)
    reference = 1e3 * UNIT * norm(exact) / min(factor, 1.0)  # rounding of the reference itself
    for confidence in (1.0, 1 - 1e-6):
        certificate = model.certificate(alpha, confidence)
        assert error <= certificate.coef_bound + reference
        assert norm(exact) == 0 or error <= certificate.relative * norm(exact) + reference


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("given_as", ["float32", "float64"])
@given(
    stream=streams(scales=[1e-10, 1.0, 1e6], max_rows=200),
    factor=st.sampled_from([1e-3, 1.0, 1e3]),
)
@settings(max_examples=40)
def test_never_below_the_true_error_in_float32(method, given_as, stream, factor):
    A, alpha = stream.A.astype(given_as), stream.alpha * factor
    model = RidgeStream(method, sketch_size=stream.sketch_size, dtype="float32")
    model.update(A, stream.b)
    assert_not_below(model, alpha, exact_ridge(A, stream.b, alpha)[:, 0], factor)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("method", ["fd", "isvd", "rfd", "tracked"])
def test_where_the_rank_fits_only_rounding_is_certified(method, dtype):
    rng = np.random.default_rng(0)
    A = make_rows(rng, 3000, 50, "low rank").astype(dtype)
    b = A @ rng.standard_normal(50) + rng.standard_normal(3000)
    model = RidgeStream(method, sketch_size=4).update(A, b)
    unit, top = np.finfo(dtype).eps / 2, norm(A) ** 2
    for alpha in (1e-4 * top, 1e-2 * top):
        exact = exact_ridge(A, b, alpha)[:, 0]
        error = norm(model.solve(alpha) - exact) / norm(exact)
        certificate = model.certificate(alpha, confidence=1)
        assert error <= certificate.relative
        assert error <= 20 * unit * top / alpha
        assert certificate.relative <= 50000 * unit * top / alpha
        assert error <= 1e-10 or dtype == "float32"


@pytest.mark.parametrize("method", ["fd", "rfd"])
def test_certificates_on_the_paper_s_data_are_of_use(method):
    A, b = Synthetic.high_rank(256).sample(2048)
    alpha = 4096.0
    model = RidgeStream(method, sketch_size=64).update(A, b)
    exact = exact_ridge(A, b, alpha)[:, 0]
    relative = norm(model.solve(alpha) - exact) / norm(exact)
    assert relative <= model.certificate(alpha, confidence=1).relative <= 0.6


@pytest.mark.parametrize(
    ("make", "alpha", "most"),
    [(Synthetic.low_rank, 512.0, 0.5), (Synthetic.high_rank, 4096.0, 0.5)],
)
def test_probes_make_those_of_a_tracked_sketch_of_use(make, alpha, most):
    A, b = make(256).sample(2048)
    model = RidgeStream("tracked", sketch_size=64, alpha=alpha).update(A, b)
    exact = exact_ridge(A, b, alpha)[:, 0]
    relative = norm(model.solve(alpha) - exact) / norm(exact)
    certificate = model.certificate(alpha)
    assert relative <= certificate.relative <= most
    assert relative / 5 <= certificate.relative_estimate <= 5 * relative


# Without the spiked spectrum, whose condition of 1e10 lets rounding show.
@given(stream=streams(min_rows=20, spectra=[kind for kind in SPECTRA if kind != "spiked"]))
def test_the_relative_bound_of_rfd_is_below_one_for_any_stream(stream):
    model = RidgeStream("rfd", sketch_size=stream.sketch_size, probes=0)
    model.update(stream.A, stream.b)
    shift = model._query().solver.covariance.shift
    relative = model.certificate(stream.alpha).relative
    lemma_1 = shift / (shift + stream.alpha)
    if stream.A.any():
        assert relative <= lemma_1 + 1e-6
        assert lemma_1 < 1


def test_many_targets_are_certified_each():
    rng = np.random.default_rng(4)
    A = rng.standard_normal((300, 40))
    b = np.c_[A @ rng.standard_normal(40), 1e-6 * rng.standard_normal(300), 100 + A[:, 0]]
    model = RidgeStream("fd", sketch_size=10).update(A, b)
    certificate = model.certificate(500.0)
    exact = exact_ridge(A, b, 500.0)
    assert certificate.coef_bound.shape == certificate.relative.shape == (3,)
    assert (errors(model.solve(500.0), exact) <= certificate.coef_bound).all()
    fresh = rng.standard_normal((20, 40))
    gap = np.abs(fresh @ (model.solve(500.0) - exact))
    assert (gap <= certificate.prediction_bound(fresh)).all()
    alone = RidgeStream("fd", sketch_size=10).update(A, b[:, 0]).certificate(500.0)
    assert alone.coef_bound == pytest.approx(certificate.coef_bound[0])
    assert alone.prediction_bound(fresh).shape == (20,)


@pytest.mark.parametrize("method", ["rp", "cs"])
def test_projections_claim_nothing(method):
    A = np.random.default_rng(0).standard_normal((30, 10))
    model = RidgeStream(method, sketch_size=4).update(A, A[:, 0])
    for certificate in (
        model.certificate(1.0, confidence=1),
        RidgeStream(method, sketch_size=4, probes=0).update(A, A[:, 0]).certificate(1.0),
    ):
        assert certificate.coef_bound == certificate.relative == np.inf
        assert certificate.energy_bound == np.inf
        assert np.isinf(certificate.coefficient_bounds()).all()
        assert np.isinf(certificate.prediction_bound(A[:2])).all()
    assert np.isfinite(model.certificate(1.0).coef_bound)


def test_alpha_zero_leaves_rfd_a_relative_bound_only():
    A = np.random.default_rng(0).standard_normal((100, 30))
    certificate = RidgeStream("rfd", sketch_size=5).update(A, A[:, 0]).certificate(0.0)
    assert certificate.coef_bound == np.inf
    assert certificate.relative == pytest.approx(1.0)
    assert certificate.rests_on == "sketch"
    assert certificate.confidence == 1.0
    assert certificate.estimate is None


@pytest.mark.parametrize("method", METHODS)
def test_what_a_bound_rests_on_is_told(method):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((200, 30))
    b = A @ rng.standard_normal(30) + rng.standard_normal(200)
    model = RidgeStream(method, sketch_size=4).update(A, b)
    proof, certain = model.certificate(1e3), model.certificate(1e3, confidence=1)
    assert certain.rests_on == ("exact" if method == "exact" else "sketch")
    assert proof.rests_on == ("exact" if method == "exact" else "probes")
    assert proof.confidence == (1.0 if method == "exact" else 1 - 1e-6)
    assert certain.confidence == 1.0
    assert model.certificate(1e3, confidence=0.5).coef_bound <= proof.coef_bound
    refined = model.refine([(A, b)], 1e3, passes=3).certificate(1e3, confidence=1)
    assert refined.rests_on == "passes"
    assert refined.passes == 4 if method != "exact" else refined.passes >= 2


@pytest.mark.parametrize(
    ("solving", "coef_norm", "absolute", "relative"),
    [
        (0.0, 0.0, 0.0, 0.0),  # nothing learned, nothing wrong
        (0.0, 2.0, 1.0, 0.5),  # Lemma 1 alone
        (1e-3, 0.0, 1.5e-3, np.inf),  # rounding of something that may be zero
        (0.1, 2.0, 0.1 + 0.5 * 2.1, 0.5 + 0.1 * 1.5 / 1.9),  # both
    ],
)
def test_lemma_1_and_the_rounding_of_the_solution(solving, coef_norm, absolute, relative):
    found = by_lemma(2.0, 0.0, 1.0, np.array([coef_norm]), np.array([solving]))
    assert found[0] == pytest.approx([absolute])
    assert found[1] == pytest.approx([relative])

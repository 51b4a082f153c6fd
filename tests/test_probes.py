"""Probes: exact sums, an exact law, and certificates that hold as often as they say."""

import copy

import numpy as np
import pytest
from scipy import sparse, stats

from ridgepass import RidgeStream
from ridgepass.probes import Probes, residual_factor

METHODS = ["exact", "fd", "rfd", "isvd", "2lfd", "rp", "cs", "tracked"]
OPTIONS = {
    "plain": {},
    "intercept": {"fit_intercept": True},
    "standardize": {"fit_intercept": True, "standardize": True},
    "given scale": {"fit_intercept": True, "feature_scale": np.geomspace(0.1, 10, 12)},
}
BY_OPTIONS = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)


def make_rows(n_rows=300, n_features=12, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n_rows, n_features)) * np.geomspace(3, 0.1, n_features) + 2.0
    A *= rng.random(A.shape) < 0.7
    b = A @ rng.standard_normal((n_features, 2)) + rng.standard_normal((n_rows, 2))
    return A, b, 0.5 + rng.random(n_rows)


def prepared(A, b, weights, *, fit_intercept=False, standardize=False, feature_scale=None):
    """Rows and targets as ridge sees them, written out."""
    roots = np.sqrt(weights)[:, None]
    if fit_intercept:
        A, b = A - np.average(A, 0, weights), b - np.average(b, 0, weights)
    if standardize:
        feature_scale = np.sqrt(np.average(np.square(A), 0, weights))
    return roots * (A if feature_scale is None else A / feature_scale), roots * b


@BY_OPTIONS
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("n_rows", [5, 300])  # rows that wait, and finished blocks
def test_they_know_the_residual_of_any_coefficients(options, kind, n_rows):
    A, b, weights = make_rows(n_rows)
    stream = RidgeStream("rfd", sketch_size=4, probes=6, **options)
    stream.update(kind(A), b, weights)
    query, (X, y) = stream._query(), prepared(A, b, weights, **options)
    coef = np.random.default_rng(1).standard_normal((12, 2))
    residual = X.T @ (y - X @ coef) - 3.0 * coef
    points = query.probes.points
    found = query.probes.residuals(query.solver.exact_cross - 3.0 * coef, coef)
    np.testing.assert_allclose(found, points @ residual, rtol=1e-9, atol=1e-9 * np.square(X).sum())
    if "standardize" not in options:
        drawn = Probes.draw(6, 12, np.dtype(float))
        np.testing.assert_array_equal(points, drawn.points)
        assert (query.probes.stretch == 1.0).all()
    else:
        np.testing.assert_allclose(points * query.probes.stretch, Probes.draw(6, 12, "f8").points)


def test_any_split_gives_the_same_bits_and_a_merger_the_sums_of_both():
    A, b, weights = make_rows()
    whole, cut = (RidgeStream("rfd", sketch_size=4, probes=5) for _ in range(2))
    whole.update(A, b, weights)
    for part in np.array_split(np.arange(300), 7):
        cut.update(A[part], b[part], weights[part])
    np.testing.assert_array_equal(whole._query().probes.images, cut._query().probes.images)
    left = RidgeStream("rfd", sketch_size=4, probes=5, dtype="float32").update(A[:120], b[:120])
    right = RidgeStream("rfd", sketch_size=7, probes=5, dtype="float64").update(A[120:], b[120:])
    merged = RidgeStream("rfd", sketch_size=4, probes=5, dtype="float64").merge(right).merge(left)
    images = merged._query().probes.points @ A.T @ A
    np.testing.assert_allclose(merged._query().probes.images, images, rtol=1e-4)


@pytest.mark.parametrize("method", ["rfd", "tracked", "rp"])
@pytest.mark.parametrize("other", [{"probes": 6}, {"probes": 0}, {"probes": 5, "probe_seed": 1}])
def test_other_probes_are_dropped_by_a_merger_and_the_certificate_says_so(method, other):
    A, b, _ = make_rows()
    mine = RidgeStream(method, sketch_size=4, probes=5).update(A, b)
    before = mine.certificate(100.0)
    assert before.estimate is not None
    assert before.remark == ""
    theirs = RidgeStream(method, **{"sketch_size": 4, **other}).update(A, b)
    mine.merge(theirs)
    proof = mine.certificate(100.0)
    assert proof.estimate is None
    assert proof.rests_on == "sketch"
    assert proof.confidence == 1.0
    assert "merging" in proof.remark
    assert "dropped" in proof.remark
    # Nor do they come back, with rows or in another merger.
    mine.update(A, b).merge(RidgeStream(method, sketch_size=4, probes=5).update(A, b))
    assert mine.certificate(100.0).estimate is None
    assert (theirs.certificate(100.0).estimate is not None) == (other["probes"] > 0)


@pytest.mark.parametrize("method", ["rfd", "tracked"])
def test_probes_of_the_same_seed_stay_and_an_empty_stream_takes_those_of_another(method):
    A, b, _ = make_rows()
    options = {"sketch_size": 4, "probes": 5, "probe_seed": 3}
    left, right = (
        RidgeStream(method, **options).update(A[p], b[p]) for p in (slice(99), slice(99, None))
    )
    merged = RidgeStream(method, **options).merge(right).merge(left)
    probes = merged._query().probes
    np.testing.assert_array_equal(probes.points, Probes.draw(5, 12, "f8", 3).points)
    np.testing.assert_allclose(probes.images, probes.points @ A.T @ A, rtol=1e-9, atol=1e-9)
    assert merged.certificate(100.0).remark == ""


@pytest.mark.parametrize("method", METHODS)
def test_a_stream_without_probes_says_so_where_it_matters(method):
    A, b, _ = make_rows()
    stream = RidgeStream(method, sketch_size=4, probes=0).update(A, b)
    stream.merge(RidgeStream(method, sketch_size=4, probes=0, probe_seed=1).update(A, b))
    proof = stream.certificate(100.0)
    assert proof.confidence == 1.0
    assert ("no probes" in proof.remark) == (method != "exact")
    assert "merger" not in proof.remark
    assert (proof.estimate is None) == (method != "exact")
    assert proof.rests_on == ("exact" if method == "exact" else "sketch")


@BY_OPTIONS
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_bound_holds_and_the_estimate_is_near(method, dtype, options):
    A, b, weights = make_rows(500)
    stream = RidgeStream(method, sketch_size=4, probes=24, dtype=dtype, alpha=50.0, **options)
    stream.update(A, b, weights)
    X, y = prepared(A, b, weights, **options)
    scale = 1.0 if stream.scale is None else stream.scale[:, None]
    for alpha in (5.0, 50.0, 500.0):
        exact = np.linalg.solve(X.T @ X + alpha * np.eye(12), X.T @ y)
        wrong = stream.solve(alpha) * scale - exact
        proof = stream.certificate(alpha)
        assert (np.linalg.norm(wrong, axis=0) <= proof.coef_bound).all()
        assert (
            np.linalg.norm(wrong, axis=0) <= proof.relative * np.linalg.norm(exact, axis=0)
        ).all()
        energy = np.sqrt(np.square(X @ wrong).sum(axis=0) + alpha * np.square(wrong).sum(axis=0))
        assert (energy <= proof.energy_bound).all()
        certain = stream.certificate(alpha, confidence=1)
        assert (proof.coef_bound <= certain.coef_bound).all()
        assert certain.confidence == 1.0
        assert proof.rests_on in ("sketch", "exact", "probes")
        assert certain.rests_on in ("sketch", "exact")
        # Another bound may cut it off, and nothing else.
        assert (proof.estimate <= proof.coef_bound).all()
        np.testing.assert_array_equal(proof.estimate, np.fmin(certain.estimate, proof.coef_bound))
        np.testing.assert_allclose(
            proof.relative_estimate,
            np.minimum(proof.estimate / np.linalg.norm(wrong + exact, axis=0), proof.relative),
        )
        if proof.rests_on == "probes":
            assert proof.confidence == 1 - 1e-6
        if method == "exact":
            continue
        # They measure the residual, and the sketch knows by how much to divide it.
        query = stream._query()
        residual = np.linalg.norm(X.T @ X @ wrong + alpha * wrong, axis=0)
        stretch = query.probes.stretch
        near = 2 * stretch.max() / stretch.min()  # with standardize, units have changed
        below = np.sqrt(alpha) * np.sqrt(alpha + query.solver.typical_tail())
        true, little = residual / below, 1e-5 * np.linalg.norm(exact, axis=0)
        assert (proof.estimate >= np.fmin(true / near, proof.coef_bound)).all()
        assert (proof.estimate < near * true + little).all()


def test_random_projections_have_a_certificate_now():
    A, b, _ = make_rows()
    stream = RidgeStream("rp", sketch_size=4, probes=24).update(A, b)
    assert np.isinf(stream.certificate(10.0, confidence=1).relative).all()
    assert np.isfinite(stream.certificate(1e4).coef_bound).all()


@pytest.mark.parametrize("n_probes", [1, 4, 24])
@pytest.mark.parametrize("doubt", [0.05, 0.01])
def test_the_law_holds_over_many_draws(n_probes, doubt):
    rng = np.random.default_rng(2)
    K = np.diag(np.geomspace(100, 0.1, 20))
    cross, coef = rng.standard_normal((20, 1)), 0.1 * rng.standard_normal((20, 1))
    true, n_draws, short = float(np.linalg.norm(cross - K @ coef - 2 * coef)), 4000, 0
    for seed in range(n_draws):
        probes = Probes.draw(n_probes, 20, np.dtype(float), seed)
        probes.images[:] = probes.points @ K
        found = np.linalg.norm(probes.residuals(cross - 2.0 * coef, coef))
        short += found * residual_factor(n_probes, doubt) < true
    # Within what 4,000 draws leave open, but once in a million.
    low, high = stats.binom.interval(1 - 1e-6, n_draws, doubt)
    assert low <= short <= high


@pytest.mark.parametrize("method", ["rfd", "rp", "tracked"])
def test_bounds_of_streams_fail_as_often_as_they_say_at_most(method):
    A, b, _ = make_rows(150)
    K, c, n_draws, doubt = A.T @ A, A.T @ b[:, :1], 100, 0.2
    exact = np.linalg.solve(K + 20.0 * np.eye(12), c)
    short, far, below, near = 0, 0, 0, 0
    for seed in range(n_draws):
        stream = RidgeStream(method, sketch_size=4, probes=6, probe_seed=seed).update(A, b[:, :1])
        query, coef = stream._query(), stream.solve(20.0)
        true = float(np.linalg.norm(c - K @ coef - 20.0 * coef))
        rest = query.solver.exact_cross - 20.0 * coef
        short += query.probed(20.0, rest, coef, np.zeros(1)).bound(doubt).item() < true
        wrong = np.abs(coef - exact)
        error = np.linalg.norm(wrong, axis=0)
        relative = query.relative_bound(20.0, coef, error, doubt)
        near += relative.item() < error.item() / np.linalg.norm(exact)
        proof = stream.certificate(20.0, 1 - doubt)
        below += bool((wrong > proof.coefficient_bounds().T).any())
        if method == "tracked":
            off = np.linalg.norm(K - query.solver.covariance.multiply(np.eye(12)), 2)
            far += query.distance(doubt) < off
    low, high = stats.binom.interval(1 - 1e-6, n_draws, doubt)
    assert short <= high
    assert far <= high
    assert below <= high
    assert near <= high
    if method != "tracked":  # whose choice of the tail is paid for
        assert low <= short


@pytest.mark.parametrize("factor", [1.0, 1e-120, 1e120])
@pytest.mark.parametrize("method", ["tracked", "rfd"])
def test_a_relative_bound_needs_no_length_of_exact_ridge(factor, method):
    A, b, _ = make_rows(500, 40)
    stream = RidgeStream(method, sketch_size=30, probes=24).update(A * factor, b)
    alpha = 500.0 * factor**2
    exact = np.linalg.solve(A.T @ A + 500.0 * np.eye(40), A.T @ b) / factor
    coef, lengths = stream.solve(alpha), np.linalg.norm(exact, axis=0)
    errors = np.linalg.norm(coef - exact, axis=0)
    for absolute in (errors, 0.5 * lengths, lengths, 100 * lengths, np.full(2, np.inf)):
        found = stream._query().relative_bound(alpha, coef, absolute, 1e-6)
        assert (found >= errors / lengths).all()
        assert (found <= 2 * absolute / lengths).all()
        assert (found <= 2).all()  # a bound that says nothing is one nevertheless


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("method", ["rp", "cs"])
def test_coefficients_that_are_too_short_or_too_long_have_a_relative_bound(method, seed):
    """A v that solves (K + γI)v = x̂ must not be stretched then."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((900, 3))
    b = A @ [1.0, 2.0, 3.0]
    stream = RidgeStream(method, sketch_size=30, seed=seed, probes=24).update(A, b)
    exact, found = np.linalg.solve(A.T @ A + 1e6 * np.eye(3), A.T @ b), stream.solve(1e6)
    error = np.linalg.norm(found - exact) / np.linalg.norm(exact)
    assert error <= stream.certificate(1e6).relative <= 3 * error


def test_after_a_further_pass_the_measured_residual_takes_over():
    A, b, _ = make_rows()
    stream = RidgeStream("rp", sketch_size=4, probes=24).update(A, b)
    assert stream.certificate(50.0).rests_on == "probes"
    proof = stream.refine([(A, b)], 50.0).certificate(50.0)
    assert proof.rests_on == "passes"
    certain = stream.certificate(50.0, confidence=1)
    assert certain.confidence == 1.0
    np.testing.assert_array_equal(proof.coef_bound, certain.coef_bound)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_a_further_pass_does_not_loosen_what_is_certified(kind):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((3000, 150)) * (rng.random((3000, 150)) < 0.1)
    A /= np.sqrt(1 + np.arange(150))
    b = A @ rng.standard_normal(150) + rng.standard_normal(3000)
    stream = RidgeStream("tracked", sketch_size=12).update(kind(A), b)
    exact = np.linalg.solve(A.T @ A + 2.0 * np.eye(150), A.T @ b)
    before = stream.certificate(2.0).relative
    for _ in range(3):
        stream.refine([(kind(A), b)], 2.0, passes=1)
        found = stream.certificate(2.0).relative
        assert found < before
        wrong = np.linalg.norm(stream.solve(2.0) - exact)
        assert wrong <= found * np.linalg.norm(exact)
        before = found


@pytest.mark.parametrize("method", ["tracked", "rfd", "rp"])
def test_of_a_refined_answer_they_measure_the_step_beyond_the_last_pass(method):
    A, b, _ = make_rows(500)
    stream = RidgeStream(method, sketch_size=6, probes=24).update(A, b)
    for passes in (1, 1, 2):
        stream.refine([(A, b)], 50.0, passes=passes)
        proof, certain = stream.certificate(50.0), stream.certificate(50.0, confidence=1)
        wrong = stream.solve(50.0) - np.linalg.solve(A.T @ A + 50 * np.eye(12), A.T @ b)
        error = np.linalg.norm(wrong, axis=0)
        assert (error <= proof.coef_bound).all()
        assert (np.abs(wrong) <= proof.coefficient_bounds().T).all()
        assert (np.abs(A @ wrong) <= proof.prediction_bound(A)).all()
        assert (proof.coef_bound <= certain.coef_bound).all()
        assert (proof.relative <= certain.relative).all()
        assert proof.rests_on in ("probes", "passes")
        assert certain.rests_on == "passes"
        if method == "tracked":  # whose step nothing else knows
            assert proof.rests_on == "probes"
            assert (error > proof.estimate / 20).all()
            assert (error < 20 * proof.estimate).all()


def test_fewer_probes_are_less_sure():
    factors = [residual_factor(n, 1e-6) * np.sqrt(n) for n in (1, 8, 24, 64)]
    assert np.diff(factors).max() < 0
    assert factors[2] == pytest.approx(2.487, abs=1e-3)
    assert residual_factor(24, 1e-9) > residual_factor(24, 1e-6)


def test_a_snapshot_keeps_them():
    A, b, weights = make_rows()
    options = {"sketch_size": 4, "probes": 5, "fit_intercept": True, "standardize": True}
    stream = RidgeStream("rfd", **options).update(A, b, weights)
    again = RidgeStream("rfd", **options).restore(copy.deepcopy(stream.snapshot()))
    for one in (stream, again):
        one.update(A[:50], b[:50])
    np.testing.assert_array_equal(stream._query().probes.images, again._query().probes.images)
    assert again.certificate(3.0).estimate is not None
    kept = stream.snapshot()
    del kept["state"]["probes"]
    assert RidgeStream("rfd", **options).restore(kept).certificate(3.0).estimate is None


def test_they_count_as_bytes():
    A, b, _ = make_rows()
    plain, probed = (RidgeStream("rfd", sketch_size=4, probes=p).update(A, b) for p in (0, 5))
    assert probed.nbytes - plain.nbytes == 8 * (2 * 5 * 12 + 12)


@pytest.mark.parametrize("probes", [-1, 2.5, True, "many", None])
def test_bad_numbers_of_probes_are_named(probes):
    with pytest.raises(ValueError, match=r"probes=.*: pass a whole number of at least 0"):
        RidgeStream("rfd", probes=probes)


@pytest.mark.parametrize("confidence", [0, -0.1, 1.1, np.nan, True, "sure", None])
def test_bad_confidences_are_named(confidence):
    A, b, _ = make_rows()
    stream = RidgeStream("rfd", sketch_size=4, probes=5).update(A, b)
    with pytest.raises(ValueError, match=r"confidence=.*: pass a number above 0, of at most 1"):
        stream.certificate(1.0, confidence)

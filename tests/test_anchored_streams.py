"""Streams with an anchor: against a plain reading of the design, exact ridge, and themselves."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from estimator_data import classification, regression
from prepared import FORMATS, make_weights, wide_ridge
from ridgepass import RidgeStream
from ridgepass.datasets import Synthetic
from ridgepass.estimators import StreamingRidge, StreamingRidgeClassifier, StreamingRidgeCV
from same_bits import assert_same_bits, assert_unchanged, everything
from streams import exact_ridge, make_rows, norm, split_points, streams


class Reading:
    """docs/anchored.md line by line, with stacked SVDs and d x d matrices."""

    TAIL, GROWTH, PAIRED = 0.2, 1.1, 64

    def __init__(self, d, size, n_targets, alpha=None):
        self.d, self.size, self.alpha = d, size, alpha
        self.sigma2, self.V, self.L = np.zeros(size), np.zeros((size, d)), np.zeros((size, size))
        self.removed, self.mass, self.n, self.due, self.share = 0.0, 0.0, 0, 2 * size, None
        self.c, self.w, self.h = (np.zeros((d, n_targets)) for _ in range(3))

    def tail(self):
        if self.share is not None:
            return min(self.share, 1.0) * self.removed
        return self.removed / 2

    def shrink(self, block):
        stack = np.vstack([np.sqrt(self.sigma2)[:, None] * self.V, block])
        _, s, Vt = np.linalg.svd(stack, full_matrices=False)
        s, Vt = np.pad(s, (0, self.size + 1)), np.pad(Vt, ((0, self.size + 1), (0, 0)))
        kept, V, cut = np.square(s[: self.size]), Vt[: self.size], s[self.size] ** 2
        sigma2, n_shrunk = kept.copy(), max(1, round(self.TAIL * self.size))
        sigma2[-n_shrunk:] = np.maximum(sigma2[-n_shrunk:] - cut, 0.0)
        C = V @ self.V.T  # rows of V that are not there yet are zero
        self.L = C @ self.L @ C.T + self.tail() * (np.eye(self.size) - C @ C.T)
        self.L += np.diag(kept - sigma2)
        self.sigma2, self.V = sigma2, V * (sigma2 > 1e-13 * kept[0])[:, None]
        self.removed += cut
        self.mass += np.square(block).sum()

    def add(self, rows, targets):
        for start in range(0, len(rows), self.size):
            self.shrink(rows[start : start + self.size])
        self.c += rows.T @ targets
        self.h += rows.T @ (rows @ self.w)
        self.n += len(rows)

    def measured(self, alpha):
        """What the anchor tells of directions outside the sketch."""
        u, g = (v - self.V.T @ (self.V @ v) for v in (self.w, self.h))
        if np.square(u).sum() <= 1e-10 * np.square(self.w).sum():
            return self.tail()
        v = g + alpha * u
        if (u * v).sum() <= 0:
            return self.tail()
        return np.clip(np.square(v).sum() / (u * v).sum() - alpha, 0.0, self.removed)

    def solve(self, alpha):
        V, tail, eye = self.V, self.measured(alpha), np.eye(self.d)
        there = (V.any(axis=1)).astype(float)
        inner = np.diag(self.sigma2) + self.L * np.outer(there, there)
        K = V.T @ inner @ V + tail * (eye - V.T @ V)
        below = (self.w * (self.h + alpha * self.w)).sum(axis=0)
        along = (self.w * self.c).sum(axis=0)
        t = np.divide(along, below, out=np.zeros_like(below), where=below > 0)
        delta = np.linalg.solve(K + alpha * eye, self.c - t * (self.h + alpha * self.w))
        return t * self.w + delta, t * self.h + K @ delta

    def move(self):
        alpha = self.alpha or self.mass / self.d
        x, image = self.solve(alpha)
        norms = np.linalg.norm(x, axis=0)
        self.w, self.h = x / np.where(norms > 0, norms, 1), image / np.where(norms > 0, norms, 1)
        self.share = self.measured(alpha) / self.removed if self.removed else None
        self.due = int(self.GROWTH * self.n) + 1

    def read(self, A, b):
        pair = self.size * (2 if self.size <= self.PAIRED else 1)
        for start in range(0, len(A), pair):
            self.add(A[start : start + pair], b[start : start + pair])
            if len(A) - start >= pair and self.n >= self.due:
                self.move()
        return self


@pytest.mark.parametrize("n_targets", [1, 3])
@pytest.mark.parametrize("hint", [None, 0.3, 300.0])
@pytest.mark.parametrize(
    ("size", "d", "n"), [(2, 9, 47), (5, 30, 400), (16, 60, 777), (70, 90, 1000)]
)
def test_it_does_what_the_design_says(size, d, n, hint, n_targets):
    rng = np.random.default_rng([size, n_targets])
    A = rng.standard_normal((n, d)) * np.exp(-np.arange(d) / d)
    A[n // 2 :] *= 1 + np.arange(d) % 3  # the rows change half-way
    b = A @ rng.standard_normal((d, n_targets)) + rng.standard_normal((n, n_targets))
    reading = Reading(d, size, n_targets, hint).read(A, b)
    model = RidgeStream("anchored", sketch_size=size, alpha=hint).update(A, b)
    anchor = model._state.anchor
    assert anchor.due == reading.due
    assert anchor.placed
    for alpha in (0.1, 30.0, 1e4):
        expected = reading.solve(alpha)[0]
        assert norm(model.solve(alpha) - expected) <= 1e-6 * norm(expected)
    # It is neither exact ridge nor the sketch alone.
    assert norm(model.solve(30.0) - exact_ridge(A, b, 30.0)) >= 1e-5 * norm(expected)


# Bits


@pytest.mark.parametrize("store", ["dense", "csr_array"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@given(data=st.data(), seed=st.integers(0, 999))
@settings(max_examples=6)
def test_any_split_gives_the_same_bits(store, dtype, fit_intercept, weighted, data, seed):
    rng = np.random.default_rng(seed)
    n, d = data.draw(st.integers(1, 300)), data.draw(st.sampled_from([1, 3, 13, 37]))
    A = (1 + rng.standard_normal((n, d))) * (rng.random((n, d)) < 0.5)
    A, b = A.astype(dtype), rng.standard_normal((n, data.draw(st.integers(1, 4))))
    weights = make_weights(rng, n, "fractions") if weighted else None
    options = {"sketch_size": data.draw(st.integers(2, 6)), "fit_intercept": fit_intercept}

    def fed(cuts):
        model = RidgeStream("anchored", **options)
        for start, stop in itertools.pairwise(cuts):
            part = slice(start, stop)
            rows = FORMATS[store](np.ascontiguousarray(A[part]))
            model.update(rows, b[part], None if weights is None else weights[part])
            if len(cuts) > 2:
                model.certificate(1.0)
        return model

    whole, pieces = fed([0, n]), fed(split_points(data.draw, n))
    assert_same_bits(whole, pieces)
    np.testing.assert_array_equal(whole.solve([1e-3, 9.0]), pieces.solve([1e-3, 9.0]))
    assert_same_bits(whole, fed([0, n]))


def noisy(n=500, d=60, n_targets=2, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * np.exp(-np.arange(d) / 20)
    return A, A @ rng.standard_normal((d, n_targets)) + rng.standard_normal((n, n_targets))


def test_questions_leave_no_trace_and_copies_go_their_own_way():
    A, b = noisy()
    model = RidgeStream("anchored", sketch_size=8).update(A[:300], b[:300])
    before = everything(model)
    first = model.solve([0.1, 10.0])
    model.certificate(1.0)
    model.generalised_error([1.0])
    model.mean_squared_error(first, model.intercept(first))
    assert_unchanged(before, model)
    twin = model.copy()
    assert_same_bits(twin, model)
    twin.update(A[300:], b[300:])
    assert_unchanged(before, model)
    np.testing.assert_array_equal(model.solve([0.1, 10.0]), first)
    assert_same_bits(twin, model.update(A[300:], b[300:]))


# Scales


@pytest.mark.parametrize("power", [-300, -7, 1, 300])
@pytest.mark.parametrize("options", [{}, {"fit_intercept": True}])
def test_powers_of_two_come_out_as_they_went_in(power, options):
    A, b = noisy()
    plain = RidgeStream("anchored", sketch_size=8, **options).update(A, b)
    scale = 2.0**power
    rows = RidgeStream("anchored", sketch_size=8, **options).update(A * scale, b)
    targets = RidgeStream("anchored", sketch_size=8, **options).update(A, b * [1.0, scale])
    for alpha in (0.1, 10.0, 1e4):
        expected = plain.solve(alpha)
        found = rows.solve(alpha * scale * scale)
        np.testing.assert_allclose(found * scale, expected, rtol=1e-9, atol=1e-13)
        # The other target does not notice.
        np.testing.assert_array_equal(targets.solve(alpha), expected * [1.0, scale])
        np.testing.assert_array_equal(
            targets.certificate(alpha).relative, plain.certificate(alpha).relative
        )


def test_targets_of_other_units_hardly_change_each_other():
    A, b = noisy(n_targets=3)
    units = np.array([1e-100, 1.0, 1e100])
    plain = RidgeStream("anchored", sketch_size=8).update(A, b).solve(5.0)
    found = RidgeStream("anchored", sketch_size=8).update(A, b * units).solve(5.0)
    np.testing.assert_allclose(found / units, plain, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("options", [{}, {"fit_intercept": True}, {"standardize": True}])
def test_zero_targets_have_zero_coefficients_and_bounds(options):
    A, b = noisy()
    b[:, 1] = 0.0
    model = RidgeStream("anchored", sketch_size=8, **options)
    for part in np.array_split(np.arange(500), 3):
        model.merge(RidgeStream("anchored", sketch_size=6, **options).update(A[part], b[part]))
    for alpha in (1e-3, 1.0, 1e6):
        assert not model.solve(alpha)[:, 1].any()
        certificate = model.certificate(alpha)
        assert certificate.coef_bound[1] == certificate.relative[1] == 0.0
    silent = RidgeStream("anchored", sketch_size=8, **options).update(A, np.zeros(500))
    assert not silent.solve(1.0).any()


# Exact ridge


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("store", ["dense", "csr_array"])
@pytest.mark.parametrize(("d", "rank"), [(1, 1), (6, 6), (40, 5)])
def test_where_the_rank_fits_it_is_scikit_learn_s_ridge(d, rank, store, fit_intercept):
    rng = np.random.default_rng(d)
    A = rng.standard_normal((400, rank)) @ rng.standard_normal((rank, d)) + fit_intercept
    b = A @ rng.standard_normal(d) + rng.standard_normal(400)
    options = {"sketch_size": 8, "fit_intercept": fit_intercept}
    for n in (1, 7, 15, 16, 17, 400):
        model = RidgeStream("anchored", **options).update(FORMATS[store](A[:n]), b[:n])
        for alpha in (1e-2, 1.0, 1e3):
            exact = Ridge(alpha, fit_intercept=fit_intercept, solver="svd").fit(A[:n], b[:n])
            assert norm(model.solve(alpha) - exact.coef_) <= 1e-9 * norm(exact.coef_)


@given(stream=streams(spectra=["low rank", "repeated", "zero"]))
def test_below_the_rank_it_can_hold_every_answer_is_exact(stream):
    size = max(stream.sketch_size, 3)
    model = RidgeStream("anchored", sketch_size=size).update(stream.A, stream.b)
    exact = exact_ridge(stream.A, stream.b, stream.alpha)[:, 0]
    assert norm(model.solve(stream.alpha) - exact) <= 1e-10 * norm(exact)


@pytest.mark.parametrize("faint", [1e-2, 1e-3])
@pytest.mark.parametrize("factor", [1e-2, 1.0])
def test_faint_directions_in_float32_are_no_worse_than_with_rfd(faint, factor):
    rng = np.random.default_rng(0)
    spread = np.array([1, 1, 1, faint, faint, faint])
    A = (rng.standard_normal((400, 6)) * spread).astype("float32")
    b = A @ (1 / spread) + 0.1 * rng.standard_normal(400)
    alpha = factor * 400 * faint**2
    exact = wide_ridge(A, b, alpha / norm(A) ** 2).coef[:, 0].astype(float)

    def error(method):
        return norm(RidgeStream(method, sketch_size=8).update(A, b).solve(alpha) - exact)

    assert error("anchored") <= 2 * error("rfd")


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("size", [16, 32, 64])
@pytest.mark.parametrize(
    ("make", "alpha"), [(Synthetic.low_rank, 512.0), (Synthetic.high_rank, 4096.0)]
)
def test_it_errs_less_than_rfd_on_the_paper_s_data(make, alpha, size, seed):
    A, b = make(256, seed=seed).sample(2048)
    streams_of = {
        method: RidgeStream(method, sketch_size=size, alpha=alpha).update(A, b)
        for method in ("rfd", "anchored")
    }
    for factor, gain in ((0.1, 1.0), (1.0, 1.5), (10.0, 1.0)):
        exact = exact_ridge(A, b, factor * alpha)[:, 0]
        errors = {m: norm(s.solve(factor * alpha) - exact) for m, s in streams_of.items()}
        assert gain * errors["anchored"] <= errors["rfd"]


# Estimators


def decaying(n_targets=None):
    """Rows of 80 features, of which the first twenty or so matter."""
    X = regression(n_rows=600, n_features=80)[0] * np.exp(-np.arange(80) / 10)
    rng = np.random.default_rng(1)
    y = X @ rng.standard_normal((80,) if n_targets is None else (80, n_targets))
    return X, y + rng.standard_normal(y.shape) + 7.0


@pytest.mark.parametrize("n_targets", [None, 1, 3])
@pytest.mark.parametrize("standardize", [False, True])
def test_streaming_ridge_takes_it_beyond_exact(n_targets, standardize):
    X, y = decaying(n_targets)
    options = {"sketch_size": 8, "standardize": standardize}
    auto = StreamingRidge(alpha=20.0, **options).fit(X, y)
    assert auto.method_ == "anchored"
    assert StreamingRidge(sketch_size=10).fit(X, y).method_ == "exact"
    named = StreamingRidge(alpha=20.0, method="anchored", **options)
    for part in np.array_split(np.arange(600), 7):
        named.partial_fit(X[part], y[part])
    np.testing.assert_array_equal(named.coef_, auto.coef_)
    stream = RidgeStream("anchored", alpha=20.0, fit_intercept=True, **options).update(X, y)
    np.testing.assert_array_equal(auto.coef_, stream.solve(20.0).T.reshape(auto.coef_.shape))
    exact = StreamingRidge(alpha=20.0, method="exact", standardize=standardize).fit(X, y)
    scale = auto.scale_ if standardize else 1.0
    gap = np.linalg.norm(np.atleast_2d((auto.coef_ - exact.coef_) * scale), axis=1)
    assert (gap <= auto.certificate().coef_bound).all()
    misfit = np.abs(auto.predict(X) - exact.predict(X))
    assert (misfit <= auto.certificate().prediction_bound(X)).all()
    for alpha in (0.2, 2000.0):
        expected = stream.solve(alpha).T.reshape(auto.coef_.shape)
        np.testing.assert_array_equal(auto.at(alpha).coef_, expected)


@pytest.mark.parametrize("alphas", [None, [1.0, 100.0, 1e4]])
@pytest.mark.parametrize("cv", [None, 3])
def test_a_chosen_alpha_predicts_nearly_as_well_as_with_exact(alphas, cv):
    X, y = decaying()
    found = StreamingRidgeCV(alphas=alphas, cv=cv, sketch_size=8).fit(X, y)
    assert found.method_ == "anchored"
    exact = StreamingRidgeCV(alphas=alphas, cv=cv, method="exact").fit(X, y)
    assert found.score(X, y) >= exact.score(X, y) - 0.12
    assert np.isfinite(found.coef_).all()


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_classifier_takes_it_too(n_classes):
    X, y = classification(n_classes, n_rows=600, n_features=70)
    X = X * np.exp(-np.arange(70) / 10)
    found = StreamingRidgeClassifier(alpha=5.0, sketch_size=8).fit(X, y)
    assert found.method_ == "anchored"
    exact = StreamingRidgeClassifier(alpha=5.0, method="exact").fit(X, y)
    assert np.mean(found.predict(X) == exact.predict(X)) >= 0.95


def test_a_path_is_the_answers_one_by_one():
    A, b = noisy(n_targets=4)
    model = RidgeStream("anchored", sketch_size=8).update(A, b)
    alphas = [1e-4, 1.0, 1e6]
    for found, alpha in zip(model.solve(alphas), alphas, strict=True):
        np.testing.assert_allclose(found, model.solve(alpha), rtol=1e-9, atol=1e-13)


def test_rows_that_come_late_are_in_the_anchor_before_their_block_is_full():
    A, b = noisy(n=437)
    model = RidgeStream("anchored", sketch_size=16).update(A, b)
    assert model._state.intake.filled
    anchor = model._query().solver.anchor
    truth = A.T @ (A @ anchor.point)
    assert (np.linalg.norm(anchor.image - truth, axis=0) <= anchor.error + 1e-9).all()


def test_a_single_column_and_fewer_rows_than_a_block_are_no_special_case():
    for n, d, size in itertools.product((1, 2, 5, 9, 40), (1, 2, 3), (2, 4)):
        A = make_rows(np.random.default_rng([n, d]), n, d, "flat")
        model = RidgeStream("anchored", sketch_size=size).update(A, A[:, 0] + 1)
        exact = exact_ridge(A, A[:, 0] + 1, 0.5)[:, 0]
        assert norm(model.solve(0.5) - exact) <= model.certificate(0.5).coef_bound
        if d <= size:
            assert norm(model.solve(0.5) - exact) <= 1e-11 * norm(exact)


@pytest.mark.parametrize("hint", [1e-4, 100.0, None])
@pytest.mark.parametrize("seed", [0, 11, 54])
def test_one_giant_row_is_no_worse_than_with_rfd(seed, hint):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((200, 8))
    A[100] *= 1e6
    b = A @ rng.standard_normal(8) + 1e5 * rng.standard_normal(200)
    exact = wide_ridge(A, b, 100.0 / norm(A) ** 2).coef[:, 0].astype(float)

    def error(method):
        model = RidgeStream(method, sketch_size=8, alpha=hint).update(A, b)
        return norm(model.solve(100.0) - exact)

    rounding = 1000 * 2.0**-53 * norm(A) ** 2 / 100.0  # of h, which rfd does without
    assert error("anchored") <= 5 * error("rfd") + rounding * norm(exact)


@pytest.mark.parametrize(("n", "d", "size", "alpha"), [(500, 1000, 64, 1.0), (1500, 750, 16, 1.0)])
def test_a_flat_spectrum_and_a_small_alpha_are_no_worse_than_with_rfd(n, d, size, alpha):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, d))
    b = A @ rng.standard_normal(d) + rng.standard_normal(n)
    exact = exact_ridge(A, b, alpha)[:, 0]

    def error(method):
        model = RidgeStream(method, sketch_size=size, alpha=alpha).update(A, b)
        return norm(model.solve(alpha) - exact)

    assert error("anchored") <= error("rfd")


def test_an_empty_stream_takes_over_the_anchor_of_another():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((300, 40)) / (1 + np.arange(40))
    other = RidgeStream("anchored", sketch_size=8, alpha=3.0).update(A, A[:, 0] + A[:, 20])
    merged = RidgeStream("anchored", sketch_size=8, alpha=3.0).merge(other)
    assert norm(merged.solve(3.0) - other.solve(3.0)) <= 1e-9 * norm(other.solve(3.0))
    assert merged._state.anchor.due == other._state.anchor.due

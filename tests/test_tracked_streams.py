"""Tracked streams: against a plain reading of the design, exact ridge, and themselves."""

import copy
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import Ridge

from estimator_data import classification, regression
from prepared import FORMATS, PREPARATIONS, make_weights, wide_ridge
from ridgepass import RidgeStream
from ridgepass.datasets import Synthetic
from ridgepass.estimators import StreamingRidge, StreamingRidgeClassifier, StreamingRidgeCV
from ridgepass.probes import Probes
from same_bits import assert_same_bits, assert_unchanged, everything
from streams import exact_ridge, make_rows, norm, split_points, streams


class Reading:
    """docs/tracked.md with every K̂ written out as a matrix, in float64 and without tricks."""

    def __init__(self, d, size, n_targets, alpha=None, n_probes=24):
        self.d, self.size, self.alpha, self.n = d, size, alpha, 0
        self.n_followed = size
        self.block_rows = max(size, min(768, 8 * size))
        self.probes = Probes.draw(n_probes, d, np.dtype(float)).points
        self.K, self.c = np.zeros((d, d)), np.zeros((d, n_targets))  # of which only parts are known
        self.mixing = np.eye(n_targets)
        if 2 * n_targets > size:
            rng = np.random.Generator(np.random.Philox(n_targets))
            self.mixing = rng.choice([-1.0, 1.0], (n_targets, min(8, n_targets)))
        self.mixed = 2 * n_targets > size
        self.w = self.h = np.zeros((d, self.mixing.shape[1]))
        self.V = None  # all rows fit
        self.share = self.outside = 0.0
        self.outside_shares = np.zeros(d)
        self.due_turn = self.due_move = self.due_share = self.due_check = 0
        self.n_turns = self.n_moves = self.n_new = self.n_missing = 0

    # K̂

    def low(self):
        return self.Y @ np.linalg.solve(self.M, self.Y.T)

    def out(self):
        return np.eye(self.d) - self.V @ self.V.T

    def tail(self):
        """τ, as the starting points measure it."""
        u = self.out() @ self.w
        left = np.trace(self.K) - np.trace(self.M)
        if np.square(u).sum() <= 1e-10 * np.square(self.w).sum():
            n_outside = min(self.n, self.d) - self.size
            return left / n_outside if n_outside > 0 else 0.0
        g = self.h - self.low() @ self.w
        return np.clip((u * g).sum() / np.square(u).sum(), 0.0, np.trace(self.K))

    def tails(self, fresh):
        """T, with the diagonal of E as it is, or with its shares as of the last turn."""
        diagonal = self.outside_shares * np.diagonal(self.K)
        if fresh:
            diagonal = np.maximum(np.diagonal(self.K - self.low()), 0.0)
        return np.diag(self.share * diagonal + (1 - self.share) * self.tail())

    def k_hat(self, fresh):
        return self.low() + self.out() @ self.tails(fresh) @ self.out()

    def near_alpha(self):
        return self.alpha or np.trace(self.K) / self.d

    # Training

    def leading(self, matrix):
        values, vectors = np.linalg.eigh(matrix)
        return values[::-1][: self.size], vectors[:, ::-1][:, : self.size]

    def begin(self, X):
        values = np.linalg.eigvalsh(self.K)[::-1]
        if len(values) <= self.size or values[self.size] <= 64 * 2.0**-53 * values[0]:
            return
        values, self.V = self.leading(self.K)
        self.Y, self.M = self.V * values, np.diag(values)
        self.outside = max(self.outside_others(X), 1 - values.sum() / np.trace(self.K))
        self.learn_share(values)

    def outside_others(self, X):
        """The share of squares of some rows of the first block outside the span of others."""
        norms = np.linalg.norm(X, axis=1)
        chosen = np.isin(
            np.arange(len(X)), np.linspace(0, len(X) - 1, min(self.size, len(X) // 2)).astype(int)
        )
        units, others = (X / norms[:, None])[chosen], (X / norms[:, None])[~chosen]
        inside = np.linalg.solve(units @ units.T + 1e-6 * np.eye(len(units)), units @ others.T)
        left = 1 - ((units @ others.T) * inside).sum(axis=0)
        return np.average(np.clip(left, 0, 1), weights=np.square(norms[~chosen]))

    def learn_share(self, values):
        self.due_share = int(2 * self.n) + 1
        self.choose((self.V * values) @ self.V.T)

    def learn_share_again(self, n):
        self.due_share = int(1.5 * n) + 1
        self.choose(self.low())

    def choose(self, known):
        left = np.maximum(np.diagonal(self.K - known), 0.0)
        sizes = np.maximum(left, 1e-4 * np.diagonal(self.K))
        images = (self.K - known) @ self.probes.T
        whole = (np.square(images) / sizes[:, None]).sum(axis=0).mean()
        alone = left.sum() / max(whole, left.sum())
        even = left.sum() ** 2 / self.d / np.square(left).sum()
        found = min(3.2 * min(2 * (1 - even), 1.0) * alone, 1.0)
        if self.mixed and alone < 0.5:
            found = 0.0
        if alone >= 0.9:
            found = max(found, self.share)
        if abs(found - self.share) > 0.35:
            self.share = min((0.0, 0.5, 0.95), key=lambda level: abs(found - level))
        self.set_outside_shares(known)

    def set_outside_shares(self, known):
        self.outside_shares = np.maximum(1 - np.diagonal(known) / np.diagonal(self.K), 0.0)

    def few_sums(self, X, times=1):
        """A few rows with the leading directions of many."""
        most = times * max(self.size, 64)
        if len(X) <= most:
            return X
        rng = np.random.Generator(np.random.Philox(self.n))
        sums = rng.choice([-1.0, 1.0], (most, len(X))) / np.sqrt(most) @ X
        return np.linalg.qr(X @ sums.T)[0].T @ X

    def widen(self, X):
        """Put directions of new rows beside the basis, with what K̂ makes of them.

        But with no more of the tail along them than E can have.
        """
        for times in (1, 4):
            squares, new = np.linalg.svd(self.few_sums(X, times) @ self.out(), full_matrices=False)[
                1:
            ]
            new = new[squares**2 > 1e-8 * squares[0] ** 2].T
            if not self.leaves_more(X, np.hstack([self.V, new]), 1.1):
                break
        left = np.maximum(np.diagonal(self.K - self.low()), 0.0)
        tail = self.tails(fresh=True)
        found, most = np.diagonal(new.T @ tail @ new), np.square(np.sqrt(left) @ np.abs(new))
        cap = np.eye(self.d) + new @ np.diag(np.sqrt(np.minimum(most / found, 1)) - 1) @ new.T
        image = (self.low() + self.out() @ cap @ tail @ cap @ self.out()) @ new
        self.V, self.Y = np.hstack([self.V, new]), np.hstack([self.Y, image])
        self.M = self.V.T @ self.Y
        self.size = self.V.shape[1]

    def turn(self, X=None):
        n_more, target = 0, self.low()
        if X is not None:
            n_more, X = len(X), self.few_sums(X)
            target = target + X.T @ X
            self.n_new += 1
        values, V = self.leading(target)
        Y = self.k_hat(fresh=False) @ V
        self.V, self.Y, self.M = V, Y, V.T @ Y
        self.M = (self.M + self.M.T) / 2
        self.postpone_turn(self.n + n_more)
        if X is None and self.n >= self.due_share:
            self.learn_share(values)
        elif X is None:
            self.set_outside_shares((V * values) @ V.T)
        if X is None:
            self.due_share = max(self.due_share, self.due_turn)

    def steps(self, gamma, c, fresh):
        """The t for which c − t(h + γw) is shortest outside Ω, divided by the tail and γ.

        Where nothing lies outside, that of the exact line search.
        """
        ridges = self.tails(fresh) + gamma * np.eye(self.d)
        image = self.h + gamma * self.w
        over, under = (c * self.w).sum(axis=0), (image * self.w).sum(axis=0)
        if self.V.shape[1] < self.d:
            # And beside the directions that are followed, in those of rows that wait.
            beside, held = self.V[:, self.n_followed :], np.diagonal(self.M)[self.n_followed :]
            c, b = (
                np.vstack(
                    [
                        np.linalg.solve(ridges, self.out() @ v),
                        (beside.T @ v) / (held[:, None] + gamma),
                    ]
                )
                for v in (c, image)
            )
            over, under = (c * b).sum(axis=0), np.square(b).sum(axis=0)
        return np.divide(over, under, out=np.zeros_like(under), where=under > 0)

    def move(self):
        gamma = max(self.near_alpha(), 300 * 2.0**-53 * np.diagonal(self.M).max())
        ridges = self.tails(fresh=False) + gamma * np.eye(self.d)
        w, h = self.moved(gamma)
        if self.n >= self.due_check:
            self.due_check = int(1.3 * self.n) + 1
            held = ridges @ self.out() @ w
            lost, seen = self.probes @ (h - self.K @ w), self.probes @ held
            along = -(lost * seen).sum()
            missing = along / np.square(seen).sum()
            if missing >= 1.2 and along > 0.75 * norm(lost) * norm(seen):
                factor = 2.0 ** round(np.log2(1 + missing))
                shares = self.outside_shares
                self.w, self.h = w, h + (factor - 1) * held
                self.outside_shares = factor * shares
                w, h = self.moved(gamma)
                self.outside_shares = shares
                self.n_missing += 1
        self.w, self.h = w, h
        self.due_move, self.n_moves = int(1.1 * self.n) + 1, self.n_moves + 1

    def moved(self, gamma):
        c = self.c @ self.mixing
        t = self.steps(gamma, c, fresh=False)
        rest = c - t * (self.h + gamma * self.w)
        # As if Y were MΩ; the image is that of K̂ all the same.
        out, ridges = self.out(), self.tails(fresh=False) + gamma * np.eye(self.d)
        inner = np.linalg.solve(self.M + gamma * np.eye(self.size), self.V.T @ rest)
        delta = self.V @ inner + out @ np.linalg.solve(ridges, out @ rest)
        x, image = t * self.w + delta, t * self.h + self.k_hat(fresh=False) @ delta
        norms = np.linalg.norm(x, axis=0)
        return x / norms, image / norms

    def add(self, X, y):
        """Take rows in with what is followed, and change nothing else."""
        if self.V is not None:
            Z = X @ self.V
            self.Y, self.M = self.Y + X.T @ Z, self.M + Z.T @ Z
        self.h = self.h + X.T @ (X @ self.w)
        self.K, self.c = self.K + X.T @ X, self.c + X.T @ y

    def postpone_turn(self, n):
        self.due_turn = int(2.5 * n) + 1
        self.n_turns += 1

    def take(self, X, y):
        if self.V is None:
            start, step = 0, max(self.size, 768)
            while self.V is None and start < len(X):
                self.add(X[start : start + step], y[start : start + step])
                self.begin(X[start : start + step])
                self.n += len(X[start : start + step])
                start += step
            if self.V is not None:
                self.postpone_turn(self.n + len(X[start:]))
                self.n_turns -= 1
                self.due_share = max(self.due_share, self.due_turn)
            if start < len(X):
                self.follow(X[start:], y[start:])
        else:
            self.follow(X, y)
        if self.V is not None and self.n >= self.due_turn:
            self.turn()
        elif self.V is not None and self.n >= self.due_share:
            self.learn_share_again(self.n)
        if self.V is not None and self.n >= self.due_move:
            self.move()

    def outside_of(self, X):
        return 1 - np.square(X @ self.V).sum() / np.square(X).sum()

    def is_new(self, X, waits=False):
        factor = 1.1 if waits or 3 * len(X) >= self.n else 2.2
        least, squares = np.diagonal(self.M).min(), np.square(X).sum(axis=0)
        columns = squares - 2.2 * np.diagonal(self.K) * len(X) / max(self.n, 1) > 2.2 * least
        columns &= np.square(self.V).sum(axis=1) < 0.5
        return self.leaves_more(X, self.V, factor) or columns.any()

    def leaves_more(self, X, basis, factor):
        outside = 1 - np.square(X @ basis).sum() / np.square(X).sum()
        usual = (np.trace(self.K) - np.trace(self.M)) * len(X) / max(self.n, 1)
        least = np.diagonal(self.M).min()
        giant = outside * np.square(X).sum() > max(2.2 * usual, least)
        more = outside > factor * self.outside + 0.02
        return more or 2.2 * (1 - outside) < 1 - self.outside or giant

    def follow(self, X, y):
        is_new = self.is_new(X)
        if is_new:
            self.turn(X)
        least = 1 - max(2.2 * (1 - self.outside), 1e-3)
        self.outside = 0.8 * self.outside + 0.2 * max(self.outside_of(X), least)
        self.add(X, y)
        if is_new:
            self.learn_share_again(self.n + len(X))
            self.due_check = self.due_move = 0
        self.n += len(X)

    def read(self, A, b):
        cut = len(A) - len(A) % self.block_rows
        for start in range(0, cut, self.block_rows):
            self.take(A[start : start + self.block_rows], b[start : start + self.block_rows])
        self.waiting = A[cut:], b[cut:]
        return self

    def solve(self, gamma):
        """Answer with the rows that wait."""
        now = copy.deepcopy(self)
        if self.V is not None and len(self.waiting[0]) and self.is_new(self.waiting[0], True):
            now.widen(self.waiting[0])
        now.add(*self.waiting)
        now.n += len(self.waiting[0])
        if now.V is None:
            return np.linalg.solve(now.K + gamma * np.eye(self.d), now.c)
        K = now.k_hat(fresh=True) + gamma * np.eye(self.d)
        if self.mixed:
            return np.linalg.solve(K, now.c)
        t = now.steps(gamma, now.c, fresh=True)
        return t * now.w + np.linalg.solve(K, now.c - t * (now.h + gamma * now.w))


def changing(size, d, n, n_targets, kind="mixed"):
    """Rows whose columns are mixed or of very different sizes, and which change half-way or not."""
    rng = np.random.default_rng([size, n_targets])
    A = rng.standard_normal((n, d)) * np.exp(-2 * np.arange(d) / (size if kind == "new" else d))
    if kind == "new":
        A[n // 2 :] = A[n // 2 :, ::-1]
    elif kind != "steady":
        A[n // 2 :] *= 1 + np.arange(d) % 3
    A = A * np.exp(1.5 * rng.standard_normal(d)) if kind == "uneven" else A @ ortho_group(rng, d)
    return A, A @ rng.standard_normal((d, n_targets)) + rng.standard_normal((n, n_targets))


def ortho_group(rng, d):
    return np.linalg.qr(rng.standard_normal((d, d)))[0]


KINDS = ["mixed", "uneven", "steady", "new"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_targets", [1, 3])
@pytest.mark.parametrize("hint", [None, 0.3, 300.0])
@pytest.mark.parametrize(
    ("size", "d", "n"), [(2, 9, 147), (5, 30, 400), (16, 60, 777), (70, 90, 1000)]
)
def test_it_does_what_the_design_says(size, d, n, hint, n_targets, kind):
    A, b = changing(size, d, n, n_targets, kind)
    reading = Reading(d, size, n_targets, hint).read(A, b)
    model = RidgeStream("tracked", sketch_size=size, alpha=hint).update(A, b)
    sketch = model._state.sketch
    assert sketch.start is None
    assert (sketch.due_turn, sketch.due_move) == (reading.due_turn, reading.due_move)
    assert sketch.n_moves == reading.n_moves > 0
    assert sketch.share == reading.share
    assert sketch.outside == pytest.approx(reading.outside, rel=1e-6)
    for alpha in (0.1, 30.0, 1e4):
        expected = reading.solve(alpha)
        assert norm(model.solve(alpha) - expected) <= 1e-6 * norm(expected)
    # It is neither exact ridge nor the sketch alone.
    assert norm(model.solve(30.0) - exact_ridge(A, b, 30.0)) >= 1e-5 * norm(expected)


def test_the_design_is_read_to_its_end():
    """The cases above leave the start, turn for time and for novelty, and have either tail."""
    found = [
        Reading(d, size, 3).read(*changing(size, d, n, 3, kind))
        for size, d, n in ((5, 30, 400), (16, 60, 777))
        for kind in KINDS
    ]
    assert all(one.V is not None for one in found)
    assert any(one.n_turns > one.n_new for one in found)
    assert any(one.n_new for one in found)
    assert {one.share > 0 for one in found} == {False, True}
    assert {one.mixed for one in found} == {False, True}
    assert any(Reading(30, 5, 1, 0.3).read(*changing(5, 30, 400, 1, k)).n_missing for k in KINDS)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("n", [60, 300, 900])
@pytest.mark.parametrize("d", [1, 5])
def test_sparse_rows_that_wait_are_standardized_however_many_they_are(n, d, fit_intercept):
    rng = np.random.default_rng(n)
    A = 100 * rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.3)
    b = A @ np.ones(d) + rng.standard_normal(n)
    options = {"fit_intercept": fit_intercept, "standardize": True}
    model = RidgeStream("tracked", sketch_size=8, **options).update(sparse.csr_array(A), b)
    exact = RidgeStream("exact", **options).update(A, b).solve(3.0)
    assert norm(model.solve(3.0) - exact) <= 1e-10 * norm(exact)


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
        model = RidgeStream("tracked", **options)
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
    model = RidgeStream("tracked", sketch_size=8).update(A[:300], b[:300])
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
    plain = RidgeStream("tracked", sketch_size=8, **options).update(A, b)
    scale = 2.0**power
    rows = RidgeStream("tracked", sketch_size=8, **options).update(A * scale, b)
    targets = RidgeStream("tracked", sketch_size=8, **options).update(A, b * [1.0, scale])
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
    plain = RidgeStream("tracked", sketch_size=8).update(A, b).solve(5.0)
    found = RidgeStream("tracked", sketch_size=8).update(A, b * units).solve(5.0)
    np.testing.assert_allclose(found / units, plain, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("options", [{}, {"fit_intercept": True}, {"standardize": True}])
def test_zero_targets_have_zero_coefficients_and_bounds(options):
    A, b = noisy()
    b[:, 1] = 0.0
    model = RidgeStream("tracked", sketch_size=8, **options)
    for part in np.array_split(np.arange(500), 3):
        model.merge(RidgeStream("tracked", sketch_size=6, **options).update(A[part], b[part]))
    for alpha in (1e-3, 1.0, 1e6):
        assert not model.solve(alpha)[:, 1].any()
        certificate = model.certificate(alpha)
        assert certificate.coef_bound[1] == certificate.relative[1] == 0.0
    silent = RidgeStream("tracked", sketch_size=8, **options).update(A, np.zeros(500))
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
        model = RidgeStream("tracked", **options).update(FORMATS[store](A[:n]), b[:n])
        for alpha in (1e-2, 1.0, 1e3):
            exact = Ridge(alpha, fit_intercept=fit_intercept, solver="svd").fit(A[:n], b[:n])
            # Rows are rounded a few times while they are stacked, and alpha divides that.
            slack = 1e-10 + 32 * np.finfo(float).eps * np.linalg.norm(A[:n], 2) ** 2 / alpha
            assert norm(model.solve(alpha) - exact.coef_) <= slack * norm(exact.coef_)


@given(stream=streams(spectra=["low rank", "repeated", "zero"]))
def test_below_the_rank_it_can_hold_every_answer_is_exact(stream):
    size = max(stream.sketch_size, 3)
    model = RidgeStream("tracked", sketch_size=size).update(stream.A, stream.b)
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

    assert error("tracked") <= 2 * error("rfd")


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("size", [16, 32, 64])
@pytest.mark.parametrize(
    ("make", "alpha"), [(Synthetic.low_rank, 512.0), (Synthetic.high_rank, 4096.0)]
)
def test_it_errs_less_than_rfd_on_the_paper_s_data(make, alpha, size, seed):
    A, b = make(256, seed=seed).sample(2048)
    streams_of = {
        method: RidgeStream(method, sketch_size=size, alpha=alpha).update(A, b)
        for method in ("rfd", "tracked")
    }
    for factor, gain in ((0.1, 1.0), (1.0, 1.5), (10.0, 1.0)):
        exact = exact_ridge(A, b, factor * alpha)[:, 0]
        errors = {m: norm(s.solve(factor * alpha) - exact) for m, s in streams_of.items()}
        assert gain * errors["tracked"] <= errors["rfd"]


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
    assert auto.method_ == "tracked"
    assert StreamingRidge(sketch_size=10).fit(X, y).method_ == "exact"
    named = StreamingRidge(alpha=20.0, method="tracked", **options)
    for part in np.array_split(np.arange(600), 7):
        named.partial_fit(X[part], y[part])
    np.testing.assert_array_equal(named.coef_, auto.coef_)
    stream = RidgeStream("tracked", alpha=20.0, fit_intercept=True, **options).update(X, y)
    np.testing.assert_array_equal(auto.coef_, stream.solve(20.0).T.reshape(auto.coef_.shape))
    exact = StreamingRidge(alpha=20.0, method="exact", standardize=standardize).fit(X, y)
    scale = auto.scale_ if standardize else 1.0
    gap = np.linalg.norm(np.atleast_2d((auto.coef_ - exact.coef_) * scale), axis=1)
    misfit = np.abs(auto.predict(X) - exact.predict(X))
    for confidence in (1.0, 1 - 1e-6):
        proof = auto.certificate(confidence=confidence)
        assert (gap <= proof.coef_bound).all()
        assert (misfit <= proof.prediction_bound(X)).all()
    for alpha in (0.2, 2000.0):
        expected = stream.solve(alpha).T.reshape(auto.coef_.shape)
        np.testing.assert_array_equal(auto.at(alpha).coef_, expected)


@pytest.mark.parametrize("alphas", [None, [1.0, 100.0, 1e4]])
@pytest.mark.parametrize("cv", [None, 3])
def test_a_chosen_alpha_predicts_nearly_as_well_as_with_exact(alphas, cv):
    X, y = decaying()
    found = StreamingRidgeCV(alphas=alphas, cv=cv, sketch_size=8).fit(X, y)
    assert found.method_ == "tracked"
    exact = StreamingRidgeCV(alphas=alphas, cv=cv, method="exact").fit(X, y)
    assert found.score(X, y) >= exact.score(X, y) - 0.12
    assert np.isfinite(found.coef_).all()


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_classifier_takes_it_too(n_classes):
    X, y = classification(n_classes, n_rows=600, n_features=70)
    X = X * np.exp(-np.arange(70) / 10)
    found = StreamingRidgeClassifier(alpha=5.0, sketch_size=8).fit(X, y)
    assert found.method_ == "tracked"
    exact = StreamingRidgeClassifier(alpha=5.0, method="exact").fit(X, y)
    assert np.mean(found.predict(X) == exact.predict(X)) >= 0.95


def test_a_path_is_the_answers_one_by_one():
    A, b = noisy(n_targets=4)
    model = RidgeStream("tracked", sketch_size=8).update(A, b)
    alphas = [1e-4, 1.0, 1e6]
    for found, alpha in zip(model.solve(alphas), alphas, strict=True):
        np.testing.assert_allclose(found, model.solve(alpha), rtol=1e-9, atol=1e-13)


def test_rows_that_wait_are_in_every_image_before_their_block_is_full():
    A, b = noisy(n=437)
    model = RidgeStream("tracked", sketch_size=16).update(A, b)
    n_waiting = model._state.intake.filled
    assert n_waiting
    rows = A[-n_waiting:]
    before, now = model._state.sketch.known().followed, model._query().solver.covariance.followed
    basis = model._state.sketch.basis
    added = now.unit * now.start_images - before.unit * before.start_images
    np.testing.assert_allclose(added, rows.T @ (rows @ now.starts), atol=1e-9)
    added = now.unit * now.middle - before.unit * before.middle
    np.testing.assert_allclose(added, basis @ rows.T @ rows @ basis.T, atol=1e-9)
    probes = model._query().probes
    np.testing.assert_allclose(probes.images, probes.points @ A.T @ A, rtol=1e-9)


def test_a_single_column_and_fewer_rows_than_a_block_are_no_special_case():
    for n, d, size in itertools.product((1, 2, 5, 9, 40), (1, 2, 3), (2, 4)):
        A = make_rows(np.random.default_rng([n, d]), n, d, "flat")
        model = RidgeStream("tracked", sketch_size=size).update(A, A[:, 0] + 1)
        exact = exact_ridge(A, A[:, 0] + 1, 0.5)[:, 0]
        for confidence in (1.0, 1 - 1e-6):
            proof = model.certificate(0.5, confidence)
            assert norm(model.solve(0.5) - exact) <= proof.coef_bound
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
    assert error("tracked") <= 5 * error("rfd") + rounding * norm(exact)


@pytest.mark.parametrize(("n", "d", "size", "alpha"), [(500, 1000, 64, 1.0), (1500, 750, 16, 1.0)])
def test_a_flat_spectrum_and_a_small_alpha_are_no_worse_than_with_rfd(n, d, size, alpha):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, d))
    b = A @ rng.standard_normal(d) + rng.standard_normal(n)
    exact = exact_ridge(A, b, alpha)[:, 0]

    def error(method):
        model = RidgeStream(method, sketch_size=size, alpha=alpha).update(A, b)
        return norm(model.solve(alpha) - exact)

    assert error("tracked") <= error("rfd")


def test_an_empty_stream_goes_on_as_the_one_it_takes_in():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((300, 40)) / (1 + np.arange(40))
    b = A[:, 0] + A[:, 20]
    other = RidgeStream("tracked", sketch_size=8, alpha=3.0).update(A, b)
    merged = RidgeStream("tracked", sketch_size=8, alpha=3.0).merge(other)
    assert norm(merged.solve(3.0) - other.solve(3.0)) <= 1e-9 * norm(other.solve(3.0))
    for one in (merged, other):
        one.update(A[::-1], b[::-1])
    assert norm(merged.solve(3.0) - other.solve(3.0)) <= 1e-9 * norm(other.solve(3.0))


# Mergers


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("sizes", [(8, 8), (8, 4), (4, 8)])
@pytest.mark.parametrize("d", [5, 20])
def test_a_merger_of_any_sizes_is_near_what_one_stream_gives(d, sizes, standardize, fit_intercept):
    """Also where all rows of one side fit, or there are fewer features than the sketch has rows."""
    rng = np.random.default_rng(d)
    A = rng.standard_normal((400, d)) * np.exp(-np.arange(d) / 2)
    A[200:] += 3.0
    b = A @ rng.standard_normal(d) + rng.standard_normal(400)
    b[200:] += 5.0
    options = {"fit_intercept": fit_intercept, "standardize": standardize}
    alpha = 100.0 if standardize else 20.0
    left, right = (
        RidgeStream("tracked", sketch_size=size, **options).update(A[part], b[part])
        for size, part in zip(sizes, (slice(200), slice(200, None)), strict=True)
    )
    exact = RidgeStream("exact", **options).update(A, b).solve(alpha)
    single = RidgeStream("tracked", sketch_size=min(sizes), **options).update(A, b)
    one, streams = single.solve(alpha), (left, right, single)
    any_diagonal = any(stream._state.sketch.share > 0 for stream in streams)
    found = left.merge(right).solve(alpha)
    # With one direction left out a scalar tail knows it exactly, and a diagonal by chance.
    slack = (1e-2 if standardize else 1e-3) if d == 5 and any_diagonal else 1e-9
    assert norm(found - exact) <= 5 * norm(one - exact) + slack * norm(exact)
    scale = 1.0 if left.scale is None else left.scale
    for confidence in (1.0, 1 - 1e-6):
        assert norm((found - exact) * scale) <= left.certificate(alpha, confidence).coef_bound


@pytest.mark.parametrize("sketch_size", [4, 30])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_parts_of_a_few_rows_add_up(sketch_size, dtype):
    A, b = noisy(n=300, d=20)
    parts = [slice(start, start + 17) for start in range(0, 300, 17)]
    merged = RidgeStream("tracked", sketch_size=sketch_size, dtype=dtype)
    for part in parts:
        other = RidgeStream("tracked", sketch_size=sketch_size, dtype=dtype)
        merged.merge(other.update(A[part], b[part]))
    exact = exact_ridge(A, b, 5.0)
    limit = {"float32": 1e-4, "float64": 1e-10}[dtype] if sketch_size == 30 else 0.5
    assert norm(merged.solve(5.0) - exact) <= limit * norm(exact)


# Sparse rows


def sparse_stream(n=9000, d=40, density=0.15, seed=0):
    rng = np.random.default_rng(seed)
    A = sparse.random_array((n, d), density=density, format="csr", rng=rng)
    A = sparse.csr_array(A.multiply(1 / (1 + np.arange(d) / 4)))
    return A, A @ rng.standard_normal((d, 2)) + 0.1 * rng.standard_normal((n, 2))


@pytest.mark.parametrize("options", PREPARATIONS, ids=str)
def test_sparse_streams_of_several_blocks_are_the_same_however_they_are_cut(options):
    A, b = sparse_stream()
    whole = RidgeStream("tracked", sketch_size=8, **options).update(A, b)
    assert whole._state.intake.block_rows == 4096
    assert whole._state.sketch.start is None
    pieces = RidgeStream("tracked", sketch_size=8, **options)
    for start, stop in itertools.pairwise([0, 1, 4000, 4096, 4097, 8500, 9000]):
        pieces.update(A[start:stop], b[start:stop])
        pieces.certificate(1.0)
    assert_same_bits(whole, pieces)
    np.testing.assert_array_equal(whole.solve([0.1, 9.0]), pieces.solve([0.1, 9.0]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("options", PREPARATIONS, ids=str)
def test_sparse_streams_of_several_blocks_against_exact_ridge(options, dtype):
    A, b = sparse_stream()
    model = RidgeStream("tracked", sketch_size=12, dtype=dtype, **options).update(A, b)
    exact = RidgeStream("exact", **options).update(A, b)
    scale = 1.0 if exact.scale is None else exact.scale[:, None]
    for alpha in (10.0, 300.0):
        wrong = model.solve(alpha) - exact.solve(alpha)
        errors = np.linalg.norm(wrong * scale, axis=0)
        assert (errors <= 0.5 * np.linalg.norm(exact.solve(alpha) * scale, axis=0)).all()
        for confidence in (1.0, 1 - 1e-6):
            proof = model.certificate(alpha, confidence)
            assert (errors <= proof.coef_bound).all()
            assert (np.abs(wrong) <= proof.coefficient_bounds().T).all()
            misses = A[:50] @ wrong
            misses += model.intercept(model.solve(alpha)) - exact.intercept(exact.solve(alpha))
            assert (np.abs(misses) <= proof.prediction_bound(A[:50])).all()


def test_few_sparse_directions_in_many_rows_stay_exact():
    rng = np.random.default_rng(2)
    patterns = sparse.random_array((6, 50), density=0.3, format="csr", rng=rng)
    A = sparse.csr_array(patterns[rng.integers(0, 6, 9000)])
    b = A @ rng.standard_normal(50) + rng.standard_normal(9000)
    model = RidgeStream("tracked", sketch_size=8).update(A, b)
    assert model._state.sketch.start is not None
    exact = exact_ridge(A.toarray(), b, 3.0)[:, 0]
    assert norm(model.solve(3.0) - exact) <= 1e-9 * norm(exact)


# Many targets


@pytest.mark.parametrize("n_targets", [4, 5, 20])
def test_more_targets_than_half_of_the_sketch(n_targets):
    A, b = noisy(n=800, n_targets=n_targets)
    model = RidgeStream("tracked", sketch_size=8, alpha=30.0).update(A, b)
    assert model._state.sketch.known().followed.mixed == (n_targets > 4)
    pieces = RidgeStream("tracked", sketch_size=8, alpha=30.0)
    for part in np.array_split(np.arange(800), 5):
        pieces.update(A[part], b[part])
    assert_same_bits(model, pieces)
    exact = exact_ridge(A, b, 30.0)
    errors = np.linalg.norm(model.solve(30.0) - exact, axis=0)
    assert (errors <= 0.6 * np.linalg.norm(exact, axis=0)).all()
    for confidence in (1.0, 1 - 1e-6):
        proof = model.certificate(30.0, confidence)
        assert (errors <= proof.coef_bound).all()
        assert (np.abs(model.solve(30.0) - exact) <= proof.coefficient_bounds().T).all()


def test_scores_of_many_targets():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((500, 60)) * np.exp(-np.arange(60) / 12)
    b = A @ rng.standard_normal((60, 20)) + rng.standard_normal((500, 20))
    model, exact = (RidgeStream(m, sketch_size=32).update(A, b) for m in ("tracked", "exact"))
    assert model._state.sketch.known().followed.mixed
    alphas = [1.0, 10.0, 100.0]
    coefs, intercepts = model.solve(alphas), np.zeros((3, 20))
    for found, expected in (
        (model.generalised_error(alphas), exact.generalised_error(alphas)),
        (model.r_squared(coefs, intercepts), exact.r_squared(coefs, intercepts)),
        (model.training_r_squared(10.0), exact.training_r_squared(10.0)),
    ):
        np.testing.assert_allclose(found, expected, rtol=0.05)


# The choice of the tail


def test_the_answer_depends_on_the_probes_by_the_choice_of_the_tail_alone():
    rng = np.random.default_rng(6)
    A = rng.standard_normal((500, 40))  # even columns: every drawing chooses the same
    b = A @ rng.standard_normal((40, 2)) + rng.standard_normal((500, 2))
    found = [
        RidgeStream("tracked", sketch_size=6, probes=probes, probe_seed=seed, seed=seed)
        for probes, seed in ((24, 0), (24, 1), (3, 2), (0, 3))
    ]
    first, *others = (model.update(A, b) for model in found)
    assert {model._state.sketch.share for model in found} == {0.0}
    for other in others:
        np.testing.assert_allclose(other.solve(5.0), first.solve(5.0), rtol=1e-9)


def test_what_was_chosen_widens_the_bound():
    A, b = changing(6, 40, 500, 2, "uneven")
    model = RidgeStream("tracked", sketch_size=6).update(A, b)
    sketch, query = model._state.sketch, model._query()
    assert sketch.share > 0
    assert query.probes.surprise == sketch.surprise > 0
    before = query.certificate(50.0, 1 - 1e-6).coef_bound
    sketch.surprise = 0.0
    model._answers = None
    assert (model.certificate(50.0).coef_bound <= before).all()
    assert model._query().probes.factor(1e-6) < query.probes.factor(1e-6)


@pytest.mark.parametrize("standardize", [False, True])
def test_what_is_chosen_for_a_question_alone_widens_its_bound_too(standardize):
    """Of the rows that wait for the first sparse block, a copy of the sketch chooses a tail."""
    rng = np.random.default_rng(0)
    shares = 1 / (1 + np.arange(500.0)) ** 1.1
    columns = rng.choice(500, (2000, 20), p=shares / shares.sum())
    rows = np.zeros((2000, 500))
    np.put_along_axis(rows, columns, 1.0, axis=1)
    b = rows @ rng.standard_normal(500)
    model = RidgeStream("tracked", sketch_size=16, standardize=standardize)
    query = model.update(sparse.csr_array(rows), b)._query()
    assert query.solver.covariance.followed.share > 0
    assert model._state.sketch.surprise == 0.0
    assert query.probes.surprise > 1


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("uneven", [False, True])
def test_an_alpha_beside_which_the_rows_are_nothing(scale, uneven):
    rng = np.random.default_rng(0)
    A = scale * rng.standard_normal((2000, 30)) * (np.geomspace(1, 100, 30) if uneven else 1.0)
    b = rng.standard_normal(2000)
    stream = RidgeStream("tracked", sketch_size=8, alpha=1e300).update(A, b)
    assert (stream._state.sketch.share > 0) == uneven
    for alpha in (1e60, 1e300):
        np.testing.assert_allclose(stream.solve(alpha), A.T @ b / alpha, rtol=1e-9)
        assert stream.certificate(alpha).relative < 1e-6


HEAVY = {
    "Cauchy": lambda rng: rng.standard_cauchy((4000, 80)),
    "t": lambda rng: rng.standard_t(1.5, (4000, 80)),
    "log-normal": lambda rng: rng.lognormal(0, 2, (4000, 80)),
    "giant rows": lambda rng: rng.standard_normal((4000, 80)) * rng.pareto(1.5, (4000, 1)),
}


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("kind", HEAVY)
def test_heavy_tails_are_no_worse_than_with_rfd(kind, seed):
    rng = np.random.default_rng(seed)
    A = HEAVY[kind](rng)
    b = A @ rng.standard_normal(80)
    b += 0.1 * b.std() * rng.standard_normal(len(b))
    alpha = 1e-3 * np.linalg.norm(A, 2) ** 2
    exact = exact_ridge(A, b, alpha)[:, 0]
    tracked, rfd = (
        norm(RidgeStream(method, sketch_size=24, **options).update(A, b).solve(alpha) - exact)
        for method, options in (("tracked", {"alpha": alpha}), ("rfd", {}))
    )
    assert tracked < rfd


def growing(rng):
    """Rows of three parts, each with directions of its own and ten times as long."""
    parts = [
        10.0**i * rng.standard_normal((1000, 30)) @ rng.standard_normal((30, 200)) for i in range(3)
    ]
    return np.vstack(parts) + rng.standard_normal((3000, 200))


LOST = {
    "growing": growing,
    "long rows": lambda rng: rng.standard_normal((3000, 200)) * rng.standard_cauchy((3000, 1)),
    "outliers": lambda rng: (
        rng.standard_normal((3000, 200)) * np.where(np.arange(3000) // 99 == 15, 30, 1)[:, None]
    ),
}


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("kind", LOST)
def test_what_turns_have_lost_is_seen_by_probes(kind, seed):
    """A tail that starting points measure by images which have it themselves is far too small."""
    rng = np.random.default_rng(seed)
    A = LOST[kind](rng)
    b = A @ rng.standard_normal(200)
    found, rfd = errors_beside_rfd(A, b, 100.0, 24)
    assert found <= 1.05 * rfd


def errors_beside_rfd(A, b, alpha, size):
    """The errors of tracked and of rfd, with an intercept."""
    centred = A - A.mean(axis=0)
    exact = exact_ridge(centred, b - b.mean(), alpha)[:, 0]
    return [
        norm(
            RidgeStream(method, sketch_size=size, fit_intercept=True, **options)
            .update(A, b)
            .solve(alpha)
            - exact
        )
        / norm(exact)
        for method, options in (("tracked", {"alpha": alpha}), ("rfd", {}))
    ]


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("size", [24, 48])
@pytest.mark.parametrize("factor", [0.1, 1.0, 10.0])
def test_clusters_in_order_are_no_worse_than_with_rfd(seed, size, factor):
    rng = np.random.default_rng(seed)
    d, n_clusters = 300, 12
    spread = np.exp(-np.arange(d) / 40)
    A = np.vstack(
        [
            3 * rng.standard_normal(d) + rng.standard_normal((400, d)) * np.roll(spread, 19 * i)
            for i in range(n_clusters)
        ]
    )
    b = A @ rng.standard_normal(d) + rng.standard_normal(len(A))
    tracked, rfd = errors_beside_rfd(A, b, 100.0 * factor, size)
    assert tracked < rfd


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("size", [24, 64])
def test_columns_that_are_mixed_later_get_another_tail(seed, size):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((6000, 300)) * np.exp(-np.arange(300) / 30)
    A[3000:] = A[3000:] @ ortho_group(rng, 300)
    b = A @ rng.standard_normal(300) + rng.standard_normal(6000)
    largest = np.linalg.norm(A, 2) ** 2
    for alpha in (1e-4 * largest, 1e-2 * largest):
        tracked, rfd = errors_beside_rfd(A, b, alpha, size)
        assert tracked < rfd


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("n_rows", [1536, 1797, 2200])
def test_rows_sorted_by_target_are_hardly_worse_than_with_rfd(seed, n_rows):
    """Most of every row lies outside the basis, and the last class is all among waiting rows."""
    rng = np.random.default_rng(seed)
    d, label = 400, np.sort(rng.integers(0, 10, n_rows))
    waves = rng.standard_normal((10, 30, d)) / np.sqrt(30)
    A = np.cos(
        np.einsum("nk,nkd->nd", rng.standard_normal((n_rows, 30)), waves[label]) + label[:, None]
    )
    for alpha in (3.0, 30.0):
        tracked, rfd = errors_beside_rfd(A, label.astype(float), alpha, 48)
        assert tracked < 1.05 * rfd


def test_rows_that_wait_and_are_new_are_looked_at_beside_the_basis():
    rng = np.random.default_rng(0)
    A, x = np.zeros((1600, 60)), rng.standard_normal(60)
    A[:1536, :30] = rng.standard_normal((1536, 30))
    A[1536:, 30:] = 5 * rng.standard_normal((64, 30))
    stream = RidgeStream("tracked", sketch_size=24, probes=24, alpha=10.0).update(A, A @ x)
    assert stream._state.intake.filled == 64
    before = stream.snapshot()["state"]["sketch"]["points"].copy()
    exact = exact_ridge(A, A @ x, 10.0)[:, 0]
    # All of the 30 new directions; 24 of the 30 others are kept.
    assert norm(stream.solve(10.0) - exact) < 0.02 * norm(exact)
    np.testing.assert_array_equal(stream.snapshot()["state"]["sketch"]["points"], before)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_many_new_directions_may_wait(seed):
    rng = np.random.default_rng(seed)
    d = 150
    A = rng.standard_normal((4000, d)) * np.exp(-np.arange(d) / 20) @ ortho_group(rng, d)
    A[-90:] = 30 * rng.standard_normal((90, d))
    b = A @ rng.standard_normal(d) + rng.standard_normal(4000)
    for alpha in (3.0, 300.0, 3e4):
        tracked, rfd = errors_beside_rfd(A, b, alpha, 32)
        assert tracked < rfd


# Columns of very different sizes


@pytest.mark.parametrize("n_targets", [1, 9])
@pytest.mark.parametrize("kind", ["powers of uniform", "logs and squares", "powers of normal"])
def test_columns_that_are_powers_of_others_do_no_worse_than_rfd(kind, n_targets):
    """Alike and of very different sizes: a diagonal alone falls short of E in the small ones."""
    rng = np.random.default_rng(1)
    n, d = 4000, 150
    if kind == "powers of uniform":
        u = rng.uniform(0, 5, (n, d // 3))
        A = np.hstack([u, u**2, u**3])
    elif kind == "logs and squares":
        u = np.exp(rng.standard_normal((n, d // 3)))
        A = np.hstack([u, np.log(u), u**2])
    else:
        u = 0.7 * rng.standard_normal((n, d // 5))
        A = np.hstack([u**p for p in range(1, 6)])
    A -= A.mean(axis=0)
    b = A @ rng.standard_normal((d, n_targets))
    b += 0.5 * b.std() * rng.standard_normal(b.shape)
    mean = np.square(A).sum() / d
    tracked, rfd = (RidgeStream(m, sketch_size=16).update(A, b) for m in ("tracked", "rfd"))
    for alpha in (1e-3 * mean, 1e-2 * mean, 0.1 * mean, mean):
        exact = exact_ridge(A, b, alpha)
        errors = [norm(model.solve(alpha) - exact) for model in (tracked, rfd)]
        assert errors[0] < 1.1 * errors[1]


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_float32_rows_that_repeat_themselves_keep_their_few_directions(store):
    """Sums of a thousand float32 numbers that are alike lose far more than their rounding."""
    rng = np.random.default_rng(0)
    kinds = rng.random((3, 40)).astype(np.float32) * (rng.random((3, 40)) < 0.3)
    of_row = np.sort(rng.choice(3, 9000, p=[0.5, 0.3, 0.2]))
    A, b = kinds[of_row], rng.standard_normal(3)[of_row]
    model = RidgeStream("tracked", sketch_size=4, alpha=30.0).update(store(A), b)
    exact = exact_ridge(A.astype(float), b, 30.0)[:, 0]
    assert norm(model.solve(30.0) - exact) < 1e-3 * norm(exact)
    assert model._state.sketch.start is not None


@pytest.mark.parametrize(("dtype", "times"), [("f4", 300.0), ("f4", 1e4), ("f8", 1e7), ("f8", 1e9)])
@pytest.mark.parametrize("alpha", [1.0, 100.0, 1e4])
def test_one_huge_column_does_not_hide_the_others(dtype, times, alpha):
    """Beside it the squares of all others are less than rounding of the largest eigenvalue."""
    rng = np.random.default_rng(0)
    n, d = 6000, 120
    A = rng.standard_normal((n, d)) * np.exp(-np.arange(d) / 60)
    A[:, 0] *= times
    A = A.astype(dtype)
    wide = A.astype(float)
    b = wide @ np.append(1 / times, rng.standard_normal(d - 1)) + rng.standard_normal(n)
    K, c = wide.T @ wide, wide.T @ b
    unit = 1 / np.sqrt(np.diagonal(K) + alpha)
    matrix = unit[:, None] * (K + alpha * np.eye(d)) * unit
    exact = unit * np.linalg.solve(matrix, unit * c)

    def error(method):
        stream = RidgeStream(method, sketch_size=32, alpha=alpha).update(A, b)
        assert norm(stream.solve(alpha) - exact) <= stream.certificate(alpha).coef_bound
        return norm(stream.solve(alpha) - exact)

    # Sums in float32 leave little of the others beside it: how much depends on the processor.
    assert error("tracked") < 1.2 * error("rfd")


@pytest.mark.parametrize(("dtype", "noise"), [("f4", 0.05), ("f8", 1e-4)])
def test_rounding_is_not_taken_for_what_is_missing(dtype, noise):
    """Nearly all rows have is in the basis: the images of starting points miss rounding only."""
    rng = np.random.default_rng(0)
    n, d, rank = 20000, 100, 16
    A = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d))
    A = (A + noise * rng.standard_normal((n, d))).astype(dtype)
    b = A @ rng.standard_normal(d) + rng.standard_normal(n)
    stream = RidgeStream("tracked", sketch_size=32, alpha=100.0).update(A, b)
    assert stream._state.sketch.surprise < 1.0
    wide = A.astype(float)
    exact = exact_ridge(wide, b, 100.0)[:, 0]
    assert norm(stream.solve(100.0) - exact) < 0.02 * norm(exact)


def categories(rng, n):
    """One-hot rows of four keys, and which the last one's level is."""
    sizes = [300, 100, 40, 8]
    levels = [rng.choice(k, n, p=(p := 1 / (1 + np.arange(k)) ** 0.8) / p.sum()) for k in sizes]
    columns = np.stack(levels, axis=1) + np.cumsum([0, *sizes[:-1]])
    places = np.repeat(np.arange(n), len(sizes)), columns.ravel()
    rows = sparse.csr_array((np.ones(columns.size), places), shape=(n, sum(sizes)))
    return rows, rows @ rng.standard_normal(sum(sizes)), levels[-1]


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("n", [5000, 12000])
def test_sparse_rows_that_come_sorted_by_a_key_are_no_worse_than_with_rfd(n, seed):
    rng = np.random.default_rng(seed)
    A, b, level = categories(rng, n)
    order = np.argsort(level, kind="stable")
    A, b, alpha = A[order], b[order] + 0.5 * rng.standard_normal(n), 0.1 * n
    dense = A.toarray()
    exact = exact_ridge(dense - dense.mean(axis=0), b - b.mean(), alpha)[:, 0]

    def error(method):
        stream = RidgeStream(method, sketch_size=64, alpha=alpha, fit_intercept=True)
        return norm(stream.update(A, b).solve(alpha) - exact)

    assert error("tracked") < 1.05 * error("rfd")


@pytest.mark.parametrize("power", [-300, -100, 100, 330])
def test_sparse_rows_that_wait_are_standardized_at_any_scale(power):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((900, 40)) * np.exp(-0.1 * np.arange(40))
    b = A @ rng.standard_normal(40)
    one, other = (
        RidgeStream("tracked", sketch_size=8, standardize=True)
        .update(sparse.csr_array(A * scale), b)
        .solve(90.0)
        * scale
        for scale in (1.0, 2.0**power)
    )
    np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize(("rows", "targets"), [(1e-100, 1e50), (1e-120, 1.0), (1e100, 1e-100)])
def test_starting_points_do_not_depend_on_the_units_of_targets(rows, targets):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((3000, 30))
    b = A @ rng.standard_normal(30)
    one, other = (
        RidgeStream("tracked", sketch_size=4).update(A * row, b * target).solve(100.0 * row * row)
        * (row / target)
        for row, target in ((1.0, 1.0), (rows, targets))
    )
    np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_categories_in_order_do_not_blow_up(seed):
    rng = np.random.default_rng(seed)
    n, d, alpha = 6000, 120, 0.05
    A = np.zeros((n, d))
    A[np.arange(n), np.sort(rng.integers(0, d, n))] = 1.0
    b = A @ rng.standard_normal(d) + 0.1 * rng.standard_normal(n)
    stream = RidgeStream("tracked", sketch_size=24, alpha=alpha).update(sparse.csr_array(A), b)
    exact = exact_ridge(A, b, alpha)[:, 0]
    # A category that left the basis has a tail all the same.
    assert norm(stream.solve(alpha) - exact) < norm(exact)


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("scale", [1e-19, 1e-20, 1e-21, 1e-22, 1e-23, 1e-25, 1e-30])
def test_float32_rows_whose_squares_are_hardly_there_do_no_harm(scale, store):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((3000, 60)) * np.exp(-np.arange(60) / 6)
    A *= rng.random(A.shape) < 0.3
    rows = (A * scale).astype(np.float32)
    b, alpha = A @ rng.standard_normal(60), 10 * scale**2
    stream = RidgeStream("tracked", sketch_size=8, alpha=alpha, dtype="float32")
    for start in range(0, 3000, 500):
        stream.update(store(rows[start : start + 500]), b[start : start + 500])
    wide = rows.astype(float) / scale
    exact = np.linalg.solve(wide.T @ wide + 10 * np.eye(60), wide.T @ b) / scale
    coef = stream.solve(alpha)
    assert norm(coef - exact) <= stream.certificate(alpha).coef_bound
    if scale >= 1e-20:
        assert norm(coef - exact) < 0.1 * norm(exact)

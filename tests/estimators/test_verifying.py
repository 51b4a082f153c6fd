"""Certificates of anybody's coefficients."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import Ridge, SGDRegressor

import ridgepass
from balls import ExactRidge
from prepared import WIDE, solve_wide
from ridgepass import verify
from ridgepass.refining import Progress


class Truth:
    """Exact ridge in extended precision."""

    def __init__(self, X, y, alpha, weights=None, *, fit_intercept=True, scale=None):
        X, y = np.asarray(X, WIDE), np.asarray(y, WIDE).reshape(len(X), -1)
        weights = np.ones(len(X), WIDE) if weights is None else np.asarray(weights, WIDE)
        self.scale = np.ones(X.shape[1], WIDE) if scale is None else np.asarray(scale, WIDE)
        mean, target_mean = np.zeros(X.shape[1], WIDE), np.zeros(y.shape[1], WIDE)
        if fit_intercept:
            mean, target_mean = (weights @ v / weights.sum() for v in (X, y))
        roots = np.sqrt(weights)[:, None]
        self.alpha, self.A = WIDE(alpha), roots * (X - mean) / self.scale
        self.scaled = solve_wide(self.A.T @ self.A, self.A.T @ (roots * (y - target_mean)), alpha)
        self.coef = self.scaled / self.scale[:, None]
        self.intercept = target_mean - mean @ self.coef

    def off(self, coef):
        """How far coefficients of shape (n_features, n_targets) are from it, as columns."""
        return np.asarray(coef, WIDE) * self.scale[:, None] - self.scaled

    def check(self, proof, coef, intercept, new):
        """Compare all bounds with what they bound."""
        coef = np.atleast_2d(coef).T
        off = self.off(coef)
        norms = np.sqrt(np.square(off).sum(axis=0))
        sizes = np.sqrt(np.square(self.scaled).sum(axis=0))
        energy = np.sqrt(np.square(self.A @ off).sum(axis=0) + self.alpha * norms**2)
        assert (norms <= proof.coef_bound).all()
        assert (norms <= np.asarray(proof.relative, WIDE) * sizes).all()
        assert (energy <= proof.energy_bound).all()
        predicted = new @ coef + (0.0 if intercept is None else intercept)
        exact = np.asarray(new, WIDE) @ self.coef + self.intercept
        bound = proof.prediction_bound(new).reshape(len(new), -1)
        assert (np.abs(predicted - exact) <= bound).all()
        return norms, energy


def make(seed, n=80, d=12, n_targets=None, decay=3.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 3 * np.exp(-np.arange(d) / decay) + rng.standard_normal(d)
    y = X @ rng.standard_normal((d, n_targets or 1)) + rng.standard_normal((n, n_targets or 1)) + 2
    return X, y if n_targets else y[:, 0]


@settings(max_examples=200)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(3, 60),
    d=st.integers(2, 20),
    n_targets=st.sampled_from([None, 1, 3]),
    centred=st.sampled_from(["fit", "none", "zero", "wrong"]),
    weighted=st.booleans(),
    scaling=st.booleans(),
    store=st.sampled_from([np.asarray, sparse.csr_array, sparse.csc_array]),
    dtype=st.sampled_from(["float32", "float64"]),
    sketch_size=st.sampled_from([2, 64]),
    alpha=st.sampled_from([1e-3, 1.0, 300.0]),
    away=st.sampled_from([0.0, 1e-12, 1e-6, 1e-2, 10.0]),
)
def test_never_below_the_truth(
    seed, n, d, n_targets, centred, weighted, scaling, store, dtype, sketch_size, alpha, away
):
    rng = np.random.default_rng(seed)
    X, y = make(seed, n, d, n_targets)
    X = (X * (rng.random(X.shape) < 0.7)).astype(dtype)
    weights = rng.integers(0, 3, n) / 2 + (np.arange(n) < 2) if weighted else None
    scale = np.exp(rng.standard_normal(d)) if scaling else None
    fit_intercept = centred != "none"
    truth = Truth(X, y, alpha, weights, fit_intercept=fit_intercept, scale=scale)
    coef = np.asarray(truth.coef.T, float)
    coef = coef + away * rng.standard_normal(coef.shape) * np.abs(coef).max()
    intercept = {
        "fit": np.asarray(truth.intercept, float),
        "none": None,
        "zero": 0.0,
        "wrong": np.asarray(truth.intercept, float) + 5.0,
    }[centred]
    coef = coef[0] if n_targets is None else coef
    proof = verify(
        coef, intercept, (store(X), y, weights), alpha, scale=scale, sketch_size=sketch_size
    )
    new = np.vstack([X[:5], 10 * rng.standard_normal((5, d)), np.zeros((1, d))]).astype(float)
    truth.check(proof, coef, intercept, new)
    assert np.ndim(proof.relative) == (0 if n_targets is None else 1)
    assert (proof.passes, proof.alpha) == (1, alpha)
    by_sparse = proof.prediction_bound(sparse.csr_array(new))
    assert (by_sparse >= proof.prediction_bound(new) * (1 - 1e-6)).all()


@pytest.mark.parametrize("n_targets", [None, 2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("away", [1e-6, 1e-2, 10.0])
def test_tight_where_all_is_known(n_targets, weighted, away):
    rng = np.random.default_rng(3)
    X, y = make(3, n_targets=n_targets)
    weights = rng.integers(0, 3, len(X)) / 2 if weighted else None
    truth = Truth(X, y, 2.0, weights)
    coef = np.asarray(truth.coef.T, float)
    coef = coef + away * rng.standard_normal(coef.shape)
    coef = coef if n_targets else coef[0]
    intercept = np.asarray(truth.intercept, float)
    proof = verify(coef, intercept if n_targets else intercept[0], (X, y, weights), 2.0)
    norms, energy = truth.check(proof, coef, intercept, X)
    assert (np.asarray(proof.coef_bound) <= 1.01 * norms.astype(float)).all()
    sizes = np.sqrt(np.square(truth.scaled).sum(axis=0))
    # relative is that of a length which is known but for coef_bound.
    assert (proof.relative <= 1.01 * (norms / sizes).astype(float)).all()
    weight = len(X) if weights is None else weights.sum()
    energy = np.hypot(energy.astype(float), np.sqrt(weight) * np.asarray(proof.offset))
    assert (np.asarray(proof.energy_bound) <= 1.01 * energy).all()


def test_a_small_sketch_does_better_than_none():
    X, y = make(4, n=400, d=60, decay=2.0)
    truth = Truth(X, y, 5.0)
    coef = np.asarray(truth.coef[:, 0], float) * 1.01
    residual = X.T @ (y - y.mean() - (X - X.mean(0)) @ coef) - 5.0 * coef
    bounds = []
    for sketch_size in (2, 7, 8):  # the last is exact: 60 features are less than 64
        proof = verify(coef, 0.0, (X, y), 5.0, sketch_size=sketch_size)
        truth.check(proof, coef, 0.0, X)
        bounds.append(proof.coef_bound)
    assert np.linalg.norm(residual) / 5.0 > bounds[0] > bounds[1] > bounds[2]


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("solver", ["lsqr", "sag", "cholesky", "svd"])
def test_scikit_learn(solver, fit_intercept):
    X, y = make(5, n=200)
    theirs = Ridge(4.0, solver=solver, tol=1e-3, fit_intercept=fit_intercept, random_state=0)
    theirs.fit(X, y)
    truth = Truth(X, y, 4.0, fit_intercept=fit_intercept)
    proof = verify(theirs.coef_, theirs.intercept_, (X, y), 4.0, fit_intercept=fit_intercept)
    norms, _ = truth.check(proof, theirs.coef_, theirs.intercept_, X)
    assert proof.coef_bound <= 1.01 * norms[0] + 1e-10
    assert proof.relative < (1e-10 if solver in ("cholesky", "svd") else 0.1)


def test_gradient_descent():
    X, y = make(6, n=500, decay=30.0)
    theirs = SGDRegressor(alpha=0.02, max_iter=2000, tol=1e-8, eta0=1e-3, random_state=0)
    theirs.fit(X, y)
    alpha = 0.02 * len(X)
    proof = verify(theirs.coef_, theirs.intercept_, (X, y), alpha)
    Truth(X, y, alpha).check(proof, theirs.coef_, theirs.intercept_, X)
    assert 1e-8 < proof.relative < 0.2
    assert verify(theirs.coef_, theirs.intercept_, (X, y), 0.02).relative > proof.relative


@pytest.mark.parametrize("sketch_size", [2, 64])
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_batches_and_arrays_agree(store, sketch_size):
    X, y = make(7, n=300, d=30)
    weights = np.random.default_rng(0).random(300)
    weights[:100] = 0.0  # the first batch counts for nothing
    coef = np.ones(30)
    rows = store(X)
    whole = verify(coef, 1.0, (rows, y, weights), 2.0, sketch_size=sketch_size)
    parts = [(rows[i : i + 50], y[i : i + 50], weights[i : i + 50]) for i in range(0, 300, 50)]
    for source in (parts, iter(parts), tuple(parts)):
        proof = verify(coef, 1.0, source, 2.0, sketch_size=sketch_size)
        for name in ("coef_bound", "relative", "energy_bound"):
            np.testing.assert_allclose(getattr(proof, name), getattr(whole, name), rtol=1e-9)
        bounds = proof.prediction_bound(X[:9])
        np.testing.assert_allclose(bounds, whole.prediction_bound(X[:9]), rtol=1e-9)


def test_dense_and_sparse_batches_may_alternate():
    X, y = make(8, n=90)
    truth = Truth(X, y, 2.0)
    for first, second in ((np.asarray, sparse.csr_array), (sparse.csc_array, np.asarray)):
        proof = verify(
            np.ones(12), 0.0, [(first(X[:40]), y[:40]), (second(X[40:]), y[40:])], alpha=2.0
        )
        norms, _ = truth.check(proof, np.ones(12), 0.0, X)
        assert proof.coef_bound <= 1.01 * norms[0]


def test_files_and_tables(tmp_path):
    X, y = make(9)
    names = [f"x{i}" for i in range(12)]
    frame = pd.DataFrame(X, columns=names).assign(y=y, w=1.0 + (np.arange(80) % 3))
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "a.csv", index=False)
    coef = np.ones(12)
    wanted = verify(coef, 1.0, (X, y, frame["w"].to_numpy()), 2.0)
    for source in (
        frame,
        pl.from_pandas(frame),
        tmp_path / "a.parquet",
        [str(tmp_path / "a.csv")],
        ridgepass.data.batches(frame, "y", weight="w"),
        (frame[names], frame["y"], frame["w"]),
    ):
        made = isinstance(source, ridgepass.data.Batches | tuple)
        options = {} if made else {"target": "y", "weight": "w"}
        found = verify(coef, 1.0, source, 2.0, **options)
        np.testing.assert_allclose(found.coef_bound, wanted.coef_bound, rtol=1e-12)
        with pytest.raises(ValueError, match=r"(?s)verify: .*same order"):
            found.prediction_bound(frame[names[::-1]])


def test_a_wrong_intercept_shows_in_predictions_only():
    X, y = make(10, n_targets=2)
    exact = Ridge(2.0).fit(X, y)
    right = verify(exact.coef_, exact.intercept_, (X, y), 2.0)
    wrong = verify(exact.coef_, exact.intercept_ - np.array([0.0, 3.0]), (X, y), 2.0)
    np.testing.assert_array_equal(wrong.coef_bound, right.coef_bound)
    assert right.prediction_bound(X).max() < 1e-9
    np.testing.assert_allclose(wrong.prediction_bound(X)[:, 1], 3.0, atol=1e-9)
    assert wrong.prediction_bound(X)[:, 0].max() < 1e-9
    for intercept in (None, 0.0):
        none = verify(exact.coef_, intercept, (X, y), 2.0, fit_intercept=True)
        missing = np.abs(exact.intercept_)
        np.testing.assert_allclose(none.prediction_bound(X), missing + 0 * y, atol=1e-9)


def test_ridge_without_an_intercept():
    X, y = make(11)
    plain = Ridge(2.0, fit_intercept=False).fit(X, y)
    assert verify(plain.coef_, None, (X, y), 2.0).relative < 1e-10
    assert verify(plain.coef_, 0.0, (X, y), 2.0, fit_intercept=False).relative < 1e-10
    assert verify(plain.coef_, 0.0, (X, y), 2.0).relative > 1e-3


def test_scaled_columns():
    X, y = make(12)
    scale = X.std(axis=0)
    exact = Ridge(2.0).fit(X / scale, y)
    coef = exact.coef_ / scale
    assert verify(coef, exact.intercept_, (X, y), 2.0, scale=scale).relative < 1e-10
    assert verify(coef, exact.intercept_, (X, y), 2.0).relative > 1e-3


def test_models_of_ours():
    X, y = make(13, n=300, d=60, decay=6.0)
    model = ridgepass.StreamingRidge(5.0, method="rfd", sketch_size=4).fit(X, y)
    proof = verify(model.coef_, model.intercept_, (X, y), 5.0)
    truth = Truth(X, y, 5.0)
    norms, _ = truth.check(proof, model.coef_, model.intercept_, X)
    assert norms[0] <= proof.coef_bound <= model.certificate().coef_bound
    model.refine(X, y, passes=60)
    assert verify(model.coef_, model.intercept_, (X, y), 5.0).relative < 1e-8


def test_exact_zeros():
    X, _ = make(14)
    proof = verify(np.zeros(12), 0.0, (X, np.zeros(80)), 2.0)
    assert proof.coef_bound < 1e-12
    assert proof.prediction_bound(X).max() < 1e-12


def test_arguments_that_make_no_sense():
    X, y = make(15)
    two, coef = np.column_stack([y, y]), np.ones(12)
    holes = np.where(np.arange(X.size).reshape(X.shape) == 14, np.nan, X)
    names = [f"x{i}" for i in range(12)]
    frame = pd.DataFrame(X, columns=names)
    for arguments, options, error, what in [
        ((coef * np.nan, 0.0, (X, y), 1.0), {}, ValueError, "coef contains NaN"),
        ((coef[None, None], 0.0, (X, y), 1.0), {}, ValueError, "coef has shape .*: give numbers"),
        ((3.0, 0.0, (X, y), 1.0), {}, ValueError, "coef has shape .*: give numbers"),
        (([], 0.0, (X, y), 1.0), {}, ValueError, "coef has shape"),
        ((["a"] * 12, 0.0, (X, y), 1.0), {}, ValueError, "coef has shape .* dtype"),
        ((coef[1:], 0.0, (X, y), 1.0), {}, ValueError, "12 features and coef is for 11"),
        ((coef, 0.0, (X, two), 1.0), {}, ValueError, "y has 2 columns and coef is for 1"),
        (([coef] * 3, 0.0, (X, two), 1.0), {}, ValueError, "coef is for 3: give one"),
        ((coef, 0.0, (X, y[1:]), 1.0), {}, ValueError, "80 rows but y has 79"),
        ((coef, 0.0, (holes, y), 1.0), {}, ValueError, "X contains NaN in row 1, column 2"),
        ((coef, 0.0, (X, y, -y), 1.0), {}, ValueError, "negative"),
        ((coef, 0.0, (X, y, 0 * y), 1.0), {}, ValueError, "no rows, or none with a weight: give"),
        ((coef, 0.0, iter([]), 1.0), {}, ValueError, "no rows, or none with a weight: give some"),
        ((coef, 0.0, [], 1.0), {}, ValueError, "empty"),
        ((coef, 0.0, X, 1.0), {}, TypeError, "give its targets too"),
        ((coef, 0.0, (X, None), 1.0), {}, ValueError, "y"),
        ((coef, 0.0, [(X,)], 1.0), {}, TypeError, "a batch is a tuple: give"),
        *(
            ((coef, 0.0, (X, y), alpha), {}, (ValueError, TypeError), "alpha")
            for alpha in (-1.0, np.nan, np.inf, "x")
        ),
        ((coef, 0.0, (X, y), 1.0), {"scale": np.ones(3)}, ValueError, "scale has 3 numbers"),
        ((coef, 0.0, (X, y), 1.0), {"scale": 0 * coef}, ValueError, "scale"),
        ((coef, 0.0, (X, y), 1.0), {"sketch_size": 0}, ValueError, "sketch_size"),
        ((coef, 0.0, (X, y), 1.0), {"progress": "x"}, TypeError, "progress='x' cannot be called"),
        ((coef, 0.0, (X, y), 1.0), {"nulls": "drop"}, ValueError, "batches are made already"),
        ((coef, 0.0, frame, 1.0), {}, ValueError, "say which column is the target"),
    ]:
        with pytest.raises(error, match=what) as caught:
            verify(*arguments, **options)
        assert "verify" in str(caught.value)


def test_columns_that_change_places():
    X, y = make(15)
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(12)])
    swapped = [(frame, y), (frame[frame.columns[::-1]], y)]
    with pytest.raises(ValueError, match="same order"):
        verify(np.ones(12), 0.0, swapped, 1.0)


@pytest.mark.parametrize(
    "intercept", [np.nan, np.inf, "x", [1.0, 2.0], [[1.0, 2.0]], np.zeros((1, 1, 1))]
)
def test_intercepts_that_make_no_sense(intercept):
    X, y = make(16)
    with pytest.raises((ValueError, TypeError), match=r"verify: .*intercept"):
        verify(np.ones(12), intercept, (X, y), 1.0)


def test_one_row_of_coefficients_for_one_column_of_targets():
    X, y = make(17)
    flat = verify(np.ones(12), 1.0, (X, y), 1.0)
    column = verify(np.ones(12), 1.0, (X, y[:, None]), 1.0)
    both = verify(np.ones((1, 12)), [1.0], (X, y[:, None]), 1.0)
    assert flat.relative == column.relative == both.relative[0]
    assert both.prediction_bound(X).shape == (80, 1)


def test_no_penalty_no_proof():
    X, y = make(18)
    with pytest.raises(ValueError, match="verify: alpha=0 has no certificate: give a larger"):
        verify(np.ones(X.shape[1]), 0.0, (X, y), 0.0)


def test_a_wrong_intercept_is_told():
    X, y = make(19)
    truth = Truth(X, y, 2.0)
    coef, intercept = truth.coef[:, 0].astype(float), float(truth.intercept[0])
    right, wrong = (verify(coef, intercept + off, (X, y), 2.0) for off in (0.0, 1.0))
    assert (right.coef_bound, right.relative) == (wrong.coef_bound, wrong.relative)
    assert right.offset < 1e-9
    assert wrong.offset == pytest.approx(1.0)
    assert wrong.energy_bound == pytest.approx(np.sqrt(len(X)))
    assert "offset=1.0" in repr(wrong)


def test_progress():
    X, y = make(19)
    told = []
    parts = [(X[:30], y[:30]), (X[30:60], y[30:60]), (X[60:], y[60:])]
    proof = verify(np.ones(12), 1.0, parts, 2.0, progress=told.append)
    assert told[:3] == [Progress(1, 30), Progress(1, 60), Progress(1, 80)]
    assert told[3:] == [Progress(1, 80, proof.relative)]


def test_progress_in_lines(capsys):
    X, y = make(19)
    verify(np.ones(12), 1.0, (X, y), 2.0, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("pass 1: 80 rows, certified error ")
    assert err.count("\n") == 1


def test_its_name():
    assert "verify" in ridgepass.__all__
    assert "verify" in dir(ridgepass)
    assert ridgepass.verify is verify


def wild(seed, *, far=1.0, n=40, d=5, n_targets=2, weighted=False, scaling=False):
    """Rows about ``far`` times their spread, targets, weights and a scale."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + far * rng.choice([-1.0, 1.0], d)
    y = (X - far) @ rng.standard_normal((d, n_targets)) / max(far, 1.0) + 3.0
    y += rng.standard_normal(y.shape)
    weights = rng.random(n) + 0.01 if weighted else None
    scale = np.exp(rng.standard_normal(d)) if scaling else None
    return X, y, weights, scale


STORES = pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])


@STORES
@pytest.mark.parametrize("sketch_size", [2, 64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scaling", [False, True])
def test_an_intercept_that_exact_ridge_has_not(store, sketch_size, weighted, scaling):
    for seed, far in itertools.product(range(2), (0.0, 3.0)):
        d = 17 if sketch_size == 2 else 5
        X, y, weights, scale = wild(seed, far=far, d=d, weighted=weighted, scaling=scaling)
        truth = ExactRidge(X, y, 2.0, weights, fit_intercept=False, scale=scale)
        right, _ = truth.floats()
        for away, intercept in itertools.product((0.0, 0.1), ([2.0, -0.5], [0.0, 1e8])):
            coef = right + away
            proof = verify(
                coef.T,
                intercept,
                (store(X), y, weights),
                2.0,
                fit_intercept=False,
                scale=scale,
                sketch_size=sketch_size,
            )
            new = np.vstack([X[:4], np.zeros((1, X.shape[1]))])
            truth.assert_bounded(proof, coef, intercept, new)
            truth.assert_bounded(proof, coef, intercept, sparse.csr_array(new))
            np.testing.assert_allclose(proof.offset, np.abs(intercept), atol=1e-300)
            if not away:
                root = np.sqrt(len(X) if weights is None else weights.sum())
                np.testing.assert_allclose(
                    proof.energy_bound, root * np.abs(intercept), rtol=1e-9, atol=1e-6
                )


@STORES
@pytest.mark.parametrize("far", [1e4, 1e8])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scaling", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_means_far_from_zero(store, far, weighted, scaling, fit_intercept):
    for seed in range(4):
        X, y, weights, scale = wild(seed, far=far, weighted=weighted, scaling=scaling)
        truth = ExactRidge(X, y, 2.0, weights, fit_intercept=fit_intercept, scale=scale)
        coef, intercept = truth.floats()
        # As anybody computes it, with the rounding that such means have.
        means = (np.average(table, axis=0, weights=weights) for table in (X, y))
        row, target = means
        usual = target - row @ coef if fit_intercept else intercept
        for b in (intercept, usual, usual + 1e-3):
            proof = verify(
                coef.T, b, (store(X), y, weights), 2.0, fit_intercept=fit_intercept, scale=scale
            )
            truth.assert_bounded(proof, coef, b, X[:5])
            truth.assert_bounded(proof, coef, b, sparse.csr_array(X[:5]))
            assert np.isfinite(proof.energy_bound).all()


def reusing(X, y, weights, store, size=7):
    """Batches of which each is written into the arrays of the one before."""
    room = store(np.ones((size, X.shape[1])))  # no zeros, so that a sparse one has all places
    targets, shares = np.empty((size, y.shape[1])), np.empty(size)
    for start in range(0, len(X), size):
        here = slice(start, start + size)
        (room.data if sparse.issparse(room) else room.reshape(-1))[:] = X[here].ravel()
        targets[:], shares[:] = y[here], weights[here]
        yield room, targets, shares
    (room.data if sparse.issparse(room) else room)[:] = np.nan
    targets[:], shares[:] = np.nan, np.nan


@pytest.mark.parametrize("sketch_size", [2, 64])
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array, sparse.csc_array])
def test_a_generator_may_reuse_its_arrays(store, sketch_size):
    X, y, _, _ = wild(0, n=70, d=20)
    weights = np.random.default_rng(1).random(70) + 0.5
    kind = sparse.csr_array if store is sparse.csc_array else store
    whole = [(kind(X[i : i + 7]), y[i : i + 7], weights[i : i + 7]) for i in range(0, 70, 7)]
    wanted = verify(np.ones((2, 20)), 1.0, whole, 2.0, sketch_size=sketch_size)
    if store is sparse.csc_array:  # its data are by columns
        batches = ((sparse.csc_array(rows), *rest) for rows, *rest in reusing(X, y, weights, kind))
    else:
        batches = reusing(X, y, weights, store)
    found = verify(np.ones((2, 20)), 1.0, batches, 2.0, sketch_size=sketch_size)
    for name in ("coef_bound", "relative", "energy_bound", "offset"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))


def test_a_first_row_of_little_weight_costs_no_accuracy():
    X, y, _, _ = wild(3)
    X[0] = 1e6
    weights = np.ones(len(X))
    weights[0] = 1e-20
    truth = ExactRidge(X, y, 2.0, weights)
    coef, intercept = truth.floats()
    proof = verify(coef.T, intercept, (X, y, weights), 2.0)
    truth.assert_bounded(proof, coef, intercept, X)
    assert proof.relative.max() < 1e-8


def test_columns_that_rounding_makes_dependent_have_a_bound_all_the_same():
    # XᵀX + alpha·I has no Cholesky factor in float64; the residual needs none.
    X, y, _, _ = wild(0, far=1e8)
    truth = ExactRidge(X, y, 0.1, fit_intercept=False)
    coef, _ = truth.floats()
    proof = verify(coef.T * 1.01, None, (X, y), 0.1)
    truth.assert_bounded(proof, coef * 1.01, np.zeros(2), X)
    assert np.isfinite(proof.coef_bound).all()


@STORES
def test_coefficients_beyond_all_measure_are_not_certified(store):
    X, y, _, _ = wild(0)
    for size in (1e150, 1e300):
        with np.errstate(all="ignore"):
            proof = verify(np.full((2, 5), size), 0.0, (store(X * 1e30), y), 2.0)
            assert not np.isnan(proof.prediction_bound(X)).any()
        for name in ("coef_bound", "relative", "energy_bound", "offset"):
            assert (getattr(proof, name) > 0).all()


def test_arrays_stay_as_they_were():
    # Columns out of order and twice in a row, as SciPy allows.
    rng = np.random.default_rng(0)
    places = rng.integers(0, 5, 240), np.arange(0, 241, 6)
    X = sparse.csr_array((rng.standard_normal(240), *places), shape=(40, 5))
    y, weights, coef, scale = rng.random((40, 2)), rng.random(40), np.ones((2, 5)), np.full(5, 2.0)
    parts = X.data, X.indices, X.indptr, y, weights, coef, scale
    before = [part.copy() for part in parts]
    proof = verify(coef, [1.0, 2.0], (X, y, weights), 2.0, scale=scale)
    for part, old in zip(parts, before, strict=True):
        np.testing.assert_array_equal(part, old)
    coef[:], scale[:] = 0.0, 7.0  # nor does the certificate depend on them any more
    again = verify(np.ones((2, 5)), [1.0, 2.0], (X, y, weights), 2.0, scale=np.full(5, 2.0))
    new = rng.random((3, 5))
    np.testing.assert_array_equal(proof.prediction_bound(new), again.prediction_bound(new))


@STORES
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("sketch_size", [2, 64])
@pytest.mark.parametrize(
    ("x", "y"), [(1e-100, 1e-230), (1e-6, 1e-163), (1.0, 1e-180), (1e100, 1e100)]
)
def test_tiny_and_huge_numbers(store, fit_intercept, sketch_size, x, y):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        d = 17 if sketch_size == 2 else 4
        X, targets = x * (rng.standard_normal((30, d)) + 1), y * rng.standard_normal((30, 2))
        alpha = x * x
        truth = ExactRidge(X, targets, alpha, fit_intercept=fit_intercept)
        coef, intercept = truth.floats()
        for factor in (0.0, 1.0, 1.01):
            proof = verify(
                factor * coef.T,
                intercept,
                (store(X), targets),
                alpha,
                fit_intercept=fit_intercept,
                sketch_size=sketch_size,
            )
            truth.assert_bounded(proof, factor * coef, intercept, X[:3])
            truth.assert_bounded(proof, factor * coef, intercept, sparse.csr_array(X[:3]))

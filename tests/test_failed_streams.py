"""A call of a stream that fails changes nothing: every method, every kind of wrong argument."""

import copy

import numpy as np
import pytest
from scipy import sparse

from interrupts import answers, hashed
from ridgepass import RidgeStream
from streams import METHODS

N_ROWS = 21
rng = np.random.default_rng(0)
A = rng.standard_normal((N_ROWS, 3)) + 2.0
B = A @ rng.standard_normal((3, 2)) + rng.standard_normal((N_ROWS, 2))
OPTIONS = {
    "plain": {},
    "short": {"dtype": "float32", "standardize": True, "fit_intercept": True},
    "scaled": {"feature_scale": [1.0, 2.0, 1e-3], "fit_intercept": True},
}


def with_value(value):
    bad = A.copy()
    bad[-1, 1] = value
    return bad


BAD_ROWS = {
    "narrow": A[:, 1:],
    "broad": np.hstack([A, A]),
    "nan": with_value(np.nan),
    "infinity": with_value(np.inf),
    "overflow": with_value(1e200),
    "overflow of float32": with_value(1e15),
    "one dimension": A[0],
    "three dimensions": A[None],
    "no rows": A[:0],
    "no columns": A[:, :0],
    "number": 3.0,
    "nothing": None,
    "text": A.astype(str),
    "objects": A.astype(object),
    "complex": A * 1j,
    "ragged": [[1.0, 2.0, 3.0], [1.0]],
    "sparse": sparse.csr_array(with_value(np.nan)),
    "fewer": A[:-1],
}
BAD_TARGETS = {
    "nothing": None,
    "number": 3.0,
    "few": B[1:],
    "one target": B[:, 0],
    "three targets": np.c_[B, B[:, 0]],
    "no targets": B[:, :0],
    "three dimensions": B[None],
    "one bad of two": np.where(np.arange(2 * N_ROWS).reshape(-1, 2) == 41, np.nan, B),
    "overflow": 1e200 * B,
    "text": B.astype(str),
}
BAD_WEIGHTS = {
    "negative": -np.ones(N_ROWS),
    "nan": np.full(N_ROWS, np.nan),
    "few": np.ones(3),
    "text": "heavy",
    "overflow": np.where(np.arange(N_ROWS) == N_ROWS - 1, 1e300, 1.0),
}
BAD_ALPHAS = {"negative": -1.0, "nan": np.nan, "text": "x", "nothing": [], "tiny": 1e-305}


def failing():
    yield A[:9], B[:9]
    raise OSError


def others(method, options):
    """Streams that cannot be merged, for most streams."""
    yield "nothing", None
    yield "rows", A
    another = "rfd" if method != "rfd" else "fd"
    for changes in (
        {"method": another},
        {"fit_intercept": not options.get("fit_intercept", False)},
        {"standardize": not options.get("standardize", False), "feature_scale": None},
        {"standardize": False, "feature_scale": [1.0, 1.0, 5.0]},
    ):
        made = RidgeStream(**{"method": method, "sketch_size": 3, **options, **changes})
        yield str(changes), made.update(A, B)
    plain = {name: value for name, value in options.items() if name != "feature_scale"}
    yield "columns", RidgeStream(method, sketch_size=3, **plain).update(A[:, 1:], B)
    yield "targets", RidgeStream(method, sketch_size=3, **options).update(A, B[:, 0])
    wide = {**options, "dtype": "float64"}
    yield "large numbers", RidgeStream(method, sketch_size=3, **wide).update(1e100 * A, B)
    yield "large means", RidgeStream(method, sketch_size=3, **wide).update(A + 1e35, B)


def calls(method, options):
    for name, bad in BAD_ROWS.items():
        yield f"update: {name}", lambda made, bad=bad: made.update(bad, B)
        yield f"check: {name}", lambda made, bad=bad: made.check(bad, B)
        yield f"begin: {name}", lambda made, bad=bad: made.begin(bad, B)
        yield f"refine: {name}", lambda made, bad=bad: made.refine([(bad, B)], 1.0)
    for name, bad in BAD_TARGETS.items():
        yield f"update targets: {name}", lambda made, bad=bad: made.update(A, bad)
        yield f"refine targets: {name}", lambda made, bad=bad: made.refine([(A, bad)], 1.0)
    for name, bad in BAD_WEIGHTS.items():
        yield f"weights: {name}", lambda made, bad=bad: made.update(A, B, bad)
        yield f"refine weights: {name}", lambda made, bad=bad: made.refine([(A, B, bad)], 1.0)
    for name, bad in BAD_ALPHAS.items():
        yield f"solve: {name}", lambda made, bad=bad: made.solve(bad)
        yield f"certificate: {name}", lambda made, bad=bad: made.certificate(bad)
        yield f"refine: {name}", lambda made, bad=bad: made.refine([(A, B)], bad)
        yield f"errors: {name}", lambda made, bad=bad: made.generalised_error(bad)
    for how in ({"passes": 0}, {"tol": -1.0}, {"passes": "x"}):
        yield f"refine with {how}", lambda made, how=how: made.refine([(A, B)], 1.0, **how)
    yield "refine: half", lambda made: made.refine(failing(), 1.0)
    yield "refine: read once", lambda made: made.refine(iter([(A, B)]), 1.0, passes=2)
    yield "refine: other rows", lambda made: made.refine([(A + 1.0, B)], 1.0)
    yield "refine: no rows", lambda made: made.refine([], 1.0)
    yield "refine: scraps", lambda made: made.refine([(A,)], 1.0)
    yield "refine: itself in between", lambda made: made.refine(growing(made), 1.0)
    for kept in ({}, {"state": 3}, {"state": {}}, None):
        yield f"restore: {kept}", lambda made, kept=kept: made.restore(kept)
    for name, other in others(method, options):
        yield f"merge: {name}", lambda made, other=other: made.merge(other)
    yield "merge: itself", lambda made: made.merge(made)


def growing(made):
    """All rows, and a bad batch for the same stream in the middle of reading them."""
    yield A, B
    made.update(A, B[:, :1])


def memory(made):
    options = {name: value for name, value in vars(made).items() if not name.startswith("_")}
    return hashed(options), hashed(made.snapshot()), made.refinement


def attempt(call, made):
    try:
        call(made)
    except Exception:
        return True
    return False


@pytest.mark.parametrize("state", ["empty", "settled", "filled", "refined"])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("method", METHODS)
def test_a_call_that_fails_changes_nothing(method, options, state):
    chosen = OPTIONS[options]
    base = RidgeStream(method, sketch_size=3, **chosen)
    if state == "settled":
        base.update(A, B, np.zeros(N_ROWS))
    elif state != "empty":
        base.update(A, B)
    if state == "refined":
        base.refine([(A, B)], 1.0)
    made = copy.deepcopy(base)
    before, failed = memory(base), 0
    for what, call in calls(method, chosen):
        if not attempt(call, made):  # it is no failure for this stream
            made = copy.deepcopy(base)
            continue
        failed += 1
        assert hashed(memory(made)[:2]) == hashed(before[:2]), what
        assert (made.refinement is None) == (before[2] is None), what
    assert failed > 60
    assert answers(made.update(A, B)) == answers(base.update(A, B))


def test_rows_that_come_while_others_are_read_again_are_noticed():
    made = RidgeStream("rfd", sketch_size=3).update(A, B)

    def growing():
        yield A, B
        made.update(A, B)

    with pytest.raises(ValueError, match="other rows while these were read: refine it again"):
        made.refine(growing(), 1.0)
    assert made.refinement is None
    assert made.n_rows == 2 * N_ROWS


def test_a_batch_without_weight_leaves_what_was_found_out():
    made = RidgeStream("rfd", sketch_size=3).update(A, B).refine([(A, B)], 1.0)
    before = answers(made)
    made.update(A, B, np.zeros(N_ROWS))
    assert made.passes(1.0) == 2
    assert answers(made) == before


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("large", [1e39, 1e60])
def test_rows_that_overflow_before_they_are_scaled_are_refused(store, large):
    """They are stored in the dtype of the sketch first, and then divided."""
    scale = np.full(3, large)
    made = RidgeStream("rfd", sketch_size=3, dtype="float32", feature_scale=scale)
    with pytest.raises(ValueError, match=r"overflow float32: .* or use dtype='float64'"):
        made.update(store(large * A), B)
    made.update(store(A), B)
    before = answers(made)
    with pytest.raises(ValueError, match="overflow float32"):
        made.update(store(large * A), B)
    assert answers(made) == before
    wide = RidgeStream("rfd", sketch_size=3, feature_scale=scale)
    wide.update(store(large * A), B)
    with pytest.raises(ValueError, match="the other stream's numbers overflow float32"):
        made.merge(wide)
    assert answers(made) == before
    assert np.isfinite(wide.solve(1.0)).all()


def test_weights_whose_sum_overflows_are_refused():
    made = RidgeStream("exact", fit_intercept=True).update(A, B)
    before = answers(made)
    with pytest.raises(ValueError, match="weights has 1e\\+308 in row 4, and sums of such weights"):
        made.update(1e-20 * A, 1e-20 * B, np.where(np.arange(N_ROWS) == 4, 1e308, 1.0))
    assert answers(made) == before


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_rows_far_beyond_the_unit_of_their_column_are_taken(store):
    """A column that was tiny for many blocks and is huge now: units have a least size."""
    first = np.arange(A.shape[1]) == 0
    made = RidgeStream("rfd", sketch_size=2, dtype="float32", standardize=True)
    for _ in range(100):  # sparse rows are brought to units when their block is full
        made.update(store(A * np.where(first, 1e-30, 1.0)), B)
    huge = np.tile(np.where(first, 1e12, A), (100, 1))
    made.update(store(huge), np.tile(B, (100, 1)))
    assert made.n_rows == 200 * N_ROWS
    assert np.isfinite(made.solve(1.0)).all()
    assert np.isfinite(made.certificate(1.0).coef_bound).all()

"""Certificates against exact ridge in ball arithmetic, without slack, where rounding is worst.

Each case once had a certificate below the truth.
"""

import copy

import numpy as np
import pytest
from flint import arb
from scipy import sparse

from fuzz.exact import Answer, Exact
from ridgepass import StreamingRidge

SKETCHED = ["fd", "rfd", "isvd", "tracked"]


def assert_holds(model, X, y, weights=None, rows=None):
    """Compare every bound of a model with exact ridge of the rows as given."""
    y = np.asarray(y, float).reshape(len(y), -1)
    given = X.toarray() if sparse.issparse(X) else X
    scale = model.scale_ if model.standardize else None
    exact = Exact(
        given.astype(float),
        y,
        weights,
        centred=model.fit_intercept,
        scale="deviations" if model.standardize else None,
        constant=scale == 1.0 if model.standardize else None,
    )
    rows = given[:3].astype(float) if rows is None else rows
    for confidence in (1 - 1e-6, 1.0):
        proof = model.certificate(confidence=confidence)
        assert_proof(proof, model, exact, rows, scale)
    return proof  # what is certain


def assert_proof(proof, model, exact, rows, scale):
    shape = len(rows), exact.y.shape[1]
    answer = Answer(
        proof.alpha,
        np.atleast_2d(model.coef_),
        np.atleast_1d(model.intercept_),
        scale,
        np.atleast_1d(proof.coef_bound),
        np.atleast_1d(proof.relative),
        np.atleast_1d(proof.energy_bound),
        rows,
        model.predict(rows).reshape(shape),
        proof.prediction_bound(rows).reshape(shape),
    )
    assert np.isfinite(answer.coefs).all()
    for bound in (answer.coef_bounds, answer.relative_bounds, answer.prediction_bounds):
        assert not np.isnan(bound).any()
    verdicts = exact.judge(answer)
    assert verdicts or np.isinf(answer.coef_bounds).all()
    for what, holds, how in verdicts:
        assert holds, f"{what}: {how}"
    bounds = np.atleast_2d(proof.coefficient_bounds())
    assert not np.isnan(bounds).any()
    _, true = exact._solved(proof.alpha)
    for (k, j), bound in np.ndenumerate(bounds):
        off = abs(arb(float(answer.coefs[k, j])) - true[j, k])
        assert not off > arb(float(bound)), f"coefficient {j} of target {k}: {off}, {bound}"


@pytest.mark.parametrize("method", [*SKETCHED, "2lfd", "exact"])
@pytest.mark.parametrize("first", [30, 4])  # a block and more, and rows that wait
def test_a_float64_stream_carries_the_rounding_of_a_float32_one_it_takes_in(method, first):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 6)) + 3.0
    y = X @ np.arange(6.0) + 10.0
    options = {"alpha": 1e-3, "method": method, "sketch_size": 8, "random_state": 0}
    narrow = StreamingRidge(**options, dtype="float32").fit(X[:first], y[:first])
    wide = StreamingRidge(**options, dtype="float64").fit(X[first:], y[first:])
    assert_holds(wide.merge(narrow), X, y)
    onward = StreamingRidge(**options, dtype="float64").merge(wide)  # and on into a third one
    assert_holds(onward, X, y)


@pytest.mark.parametrize("method", [*SKETCHED, "exact"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_a_column_may_leave_the_constant_zone_while_rows_are_pending(method, kind):
    rng = np.random.default_rng(2)
    shares = rng.dirichlet(np.ones(4), 41)
    total = shares.sum(axis=1)  # one, but for rounding
    X = np.column_stack([shares, total])
    X[-1, -1] += 1e-12
    y = shares @ [1.0, -2.0, 3.0, 0.5] + rng.standard_normal(41) / 10
    options = {"method": method, "sketch_size": 4, "standardize": True}
    whole = StreamingRidge(0.1, **options).partial_fit(kind(X[:40]), y[:40])
    whole.partial_fit(kind(X[40:]), y[40:])
    assert whole.scale_[-1] < 1e-11  # it has left the zone
    assert_holds(whole, kind(X), y)
    more = rng.dirichlet(np.ones(4), 30)
    X = np.vstack([X, np.column_stack([more, more.sum(axis=1) + 1e-12])])
    y = np.append(y, rng.standard_normal(30))
    assert_holds(whole.partial_fit(kind(X[41:]), y[41:]), kind(X), y)  # and in finished blocks
    left, right = (
        StreamingRidge(0.1, **options).fit(kind(X[s]), y[s]) for s in (slice(40), slice(40, None))
    )
    assert_holds(left.merge(right), kind(X), y)


def test_a_column_of_signs_keeps_its_place_whatever_its_deviation_was_before():
    """Its deviation is exactly one at first, which is no sign of a constant column."""
    rng = np.random.default_rng(3)
    X = np.column_stack([np.tile([1.0, -1.0], 40), rng.standard_normal(80)])
    X[40:, 0] *= 0.1
    y = 3 * X[:, 0] + X[:, 1]
    model = StreamingRidge(0.1, method="rfd", sketch_size=4, standardize=True)
    model.partial_fit(X[:40], y[:40]).partial_fit(X[40:], y[40:])
    assert assert_holds(model, X, y).relative < 1e-8


@pytest.mark.parametrize("method", [*SKETCHED, "exact"])
def test_scales_are_those_of_the_rows_as_given(method):
    rng = np.random.default_rng(4)
    X = (rng.standard_normal((50, 5)) * [1, 10, 1e3, 1e-3, 1] + 5).astype(np.float32)
    y = X.astype(float) @ np.arange(1.0, 6.0)
    model = StreamingRidge(1.0, method=method, sketch_size=6, standardize=True)
    model.fit(X, y)
    deviations = X.astype(np.longdouble).std(axis=0)
    np.testing.assert_allclose(model.scale_, deviations.astype(float), rtol=1e-13)
    assert_holds(model, X, y)
    assert_holds(model.refine(X, y, tol=1e-8), X, y)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_light_row_may_be_the_first_and_far_away(kind, standardize, dtype):
    rng = np.random.default_rng(5)
    X = (rng.standard_normal((30, 4)) + 2.0).astype(dtype)
    X[0] = -1e8
    y = X.astype(float) @ [1.0, 2.0, 3.0, 4.0] + 1.0
    weights = np.ones(30)
    weights[0] = 1e-14
    for method in ("exact", "rfd"):
        model = StreamingRidge(0.1, method=method, sketch_size=4, standardize=standardize)
        model.fit(kind(X), y, weights)
        assert_holds(model, kind(X), y, weights)
        assert_holds(model.refine(kind(X), y, weights, passes=3), kind(X), y, weights)


def test_rows_are_measured_from_one_that_has_weight_however_they_are_cut():
    rng = np.random.default_rng(6)
    X, y = rng.standard_normal((12, 3)), rng.standard_normal(12)
    X[:3] += [[1e9], [-1e7], [1e5]]
    y[:3] -= [1e9, 1e6, 1e4]
    weights = np.append([1e-20, 1e-15, 1e-10], np.ones(9))
    whole = StreamingRidge(0.1, method="rfd", sketch_size=8).fit(X, y, weights)
    cut = StreamingRidge(0.1, method="rfd", sketch_size=8)
    for i in range(12):
        cut.partial_fit(X[i : i + 1], y[i : i + 1], weights[i : i + 1])
    np.testing.assert_array_equal(whole.coef_, cut.coef_)
    assert assert_holds(whole, X, y, weights).relative < 1e-9


TINY_CASES = {
    "all tiny": (1e-100, 1e-230, 1e-200, 1.0),
    "targets": (1.0, 1e-170, 1.0, 1.0),
    "targets below squares": (1e-20, 1e-310, 1e-60, 1.0),
    "weights": (1.0, 1.0, 1e-300, 1e-318),
    "weights and targets": (1.0, 1e-250, 1.3e-300, 1e-318),
    "huge alpha": (1e-50, 1e-50, 1e290, 1.0),
}


@pytest.mark.parametrize("method", [*SKETCHED, "rp", "exact"])
@pytest.mark.parametrize("case", TINY_CASES)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_underflow_is_accounted_for(method, case, kind):
    size, target_size, alpha, weight = TINY_CASES[case]
    rng = np.random.default_rng(7)
    X = rng.standard_normal((40, 4)) * size
    y = rng.standard_normal(40)
    y -= X @ np.linalg.lstsq(X, y, rcond=None)[0]  # nearly orthogonal to the rows
    y = y * target_size
    weights = np.full(40, weight) if weight != 1.0 else None
    for intercept in (False, True):
        model = StreamingRidge(alpha, method=method, sketch_size=4, fit_intercept=intercept)
        model.fit(kind(X), y, weights)
        assert_holds(model, kind(X), y, weights)


@pytest.mark.parametrize("method", [*SKETCHED, "2lfd", "rp", "cs", "exact"])
def test_zero_targets_have_zero_coefficients_for_certain(method):
    X = np.random.default_rng(8).standard_normal((30, 5))
    model = StreamingRidge(1.0, method=method, sketch_size=4, random_state=0, fit_intercept=False)
    model.fit(X, np.zeros(30))
    assert not model.coef_.any()
    certain = model.certificate(confidence=1)
    assert method in ("rp", "cs") or certain.relative == 0.0
    assert method in ("rp", "cs") or not certain.coefficient_bounds().any()
    assert model.certificate().relative == 0.0


@pytest.mark.parametrize("method", [*SKETCHED, "2lfd", "rp", "cs", "exact"])
@pytest.mark.parametrize("size", [1e110, 1e-110])
def test_no_number_is_lost_to_the_size_of_the_data(method, size):
    rng = np.random.default_rng(9)
    X = rng.standard_normal((60, 6))
    y = X @ np.arange(6.0) + 1.0
    options = {"method": method, "sketch_size": 4, "random_state": 0}
    plain = StreamingRidge(1.0, **options).fit(X, y)
    huge = StreamingRidge(size**2, **options).fit(X * size, y * size)
    np.testing.assert_allclose(huge.coef_, plain.coef_, rtol=1e-9)
    np.testing.assert_allclose(huge.certificate().relative, plain.certificate().relative, rtol=1e-3)


@pytest.mark.parametrize("method", ["fd", "isvd", "2lfd", "rp", "cs"])
def test_coefficients_that_overflow_are_an_error_and_not_nan(method):
    rng = np.random.default_rng(9)
    X = rng.standard_normal((60, 6)) * 1e110
    model = StreamingRidge(1.0, method=method, sketch_size=4, random_state=0)
    model.fit(X, rng.standard_normal(60) * 1e110)
    with pytest.raises(ValueError, match=r"coefficients overflow.* use a larger alpha"):
        model.predict(X)
    assert not np.isnan(model.certificate().coef_bound)
    assert np.isfinite(model.at(1e220).predict(X)).all()


def test_refine_says_that_coefficients_overflow_and_leaves_the_model(tmp_path):
    rng = np.random.default_rng(10)
    X = rng.standard_normal((28, 8))
    model = StreamingRidge(1e-299, method="cs", sketch_size=7, random_state=0)
    for size in (1e8, 1e30):  # which overflows in squares, and at once
        model.fit(X, size * X[:, 0])
        before = model.certificate().passes
        if size == 1e8:
            model.refine(X, size * X[:, 0])
        else:
            with pytest.raises(ValueError, match=r"coefficients overflow.* use a larger alpha"):
                model.refine(X, size * X[:, 0])
            assert model.certificate().passes == before == 1
        assert model.certificate().coef_bound == np.inf
        model.save(tmp_path / "m.ridge")


def test_a_starting_point_at_a_subnormal_solution_can_be_saved(tmp_path):
    rng = np.random.default_rng(11)
    X = rng.standard_normal((40, 9))
    Y = np.stack([X[:, 0], 1e-310 * X[:, 1]], axis=1)
    model = StreamingRidge(1e4, method="tracked", sketch_size=4).fit(X, Y)
    model.save(tmp_path / "m.ridge")
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("method", [*SKETCHED, "exact"])
def test_an_alpha_of_minus_zero_is_zero(method):
    X = np.random.default_rng(12).standard_normal((40, 4))
    y = X @ np.arange(1.0, 5.0)
    answers = []
    for alpha in (0.0, -0.0):
        model = StreamingRidge(alpha, method=method, sketch_size=2).fit(X, y)
        try:
            proof = model.certificate()
        except ValueError as error:
            answers.append(str(error))
        else:
            answers.append((proof.coef_bound, proof.relative, *proof.prediction_bound(X[:2])))
    assert answers[0] == answers[1]


def test_underflow_that_a_change_of_units_multiplies():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((512, 2)), rng.standard_normal(512)
    X[:256] *= 1e10
    y[:256] *= 1e10
    weights = np.repeat([1e-322, 1e-302], 256)
    for method in ("exact", "rfd"):
        model = StreamingRidge(1e-300, method=method, standardize=True, fit_intercept=False)
        assert_holds(model.fit(X, y, weights), X, y, weights)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_squares_that_only_their_weights_lift_out_of_underflow(kind):
    X = np.array([[1.9e-167, -5.3e-173, 3.5e-173]])
    weights = np.array([2.5e28])
    for method in ("fd", "rfd", "isvd", "exact"):
        model = StreamingRidge(1.3e-300, method=method, sketch_size=6, fit_intercept=False)
        model.fit(kind(X), [-1.0], weights)
        assert assert_holds(model, kind(X), np.array([-1.0]), weights).relative < 1e-8


def test_rows_that_float32_cannot_hold_without_their_weight():
    rng = np.random.default_rng(13)
    X, y, weights = rng.standard_normal((35, 2)) * 1e-60, rng.standard_normal(35), np.full(35, 1e99)
    whole = StreamingRidge(1e-20, method="rfd", sketch_size=7, fit_intercept=False)
    part = StreamingRidge(1e-20, method="rfd", sketch_size=8, fit_intercept=False, dtype="float32")
    whole.partial_fit(X[:20], y[:20], weights[:20]).merge(part.fit(X[20:], y[20:], weights[20:]))
    assert_holds(whole, X, y, weights)
    zeros = StreamingRidge(1.0, method="fd", sketch_size=3, dtype="float32")
    zeros.fit(np.zeros((9, 2)), np.arange(9.0), np.full(9, 1e199))
    assert not zeros.coef_.any()


@pytest.mark.parametrize("method", ["fd", "rfd", "isvd"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_column_may_outgrow_its_unit_beyond_any_square(method, kind, intercept):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((37, 2)), rng.standard_normal(37)
        X[:-3, 0] *= 1e-90
        X[-3:, 0] *= 1e80
        options = {"method": method, "sketch_size": 2, "fit_intercept": intercept}
        model = StreamingRidge(1.0, standardize=True, **options)
        model.partial_fit(kind(X[:-3]), y[:-3]).partial_fit(kind(X[-3:]), y[-3:])
        assert np.isfinite(assert_holds(model, kind(X), y).coef_bound)


@pytest.mark.parametrize("method", ["fd", "rfd", "isvd", "2lfd"])
@pytest.mark.parametrize("alpha", [1e3, 1e6, 1e9])
def test_weights_of_float32_rows_are_rounded_too(method, alpha):
    # Both numbers, and their product, are rounded by nearly as much as can be.
    X, y = np.full((4, 1), 1.0020809761432614), np.ones(4)
    weights = np.full(4, 1.0052196949009615)
    model = StreamingRidge(
        alpha, method=method, sketch_size=2, fit_intercept=False, dtype="float32"
    )
    assert_holds(model.fit(X, y, weights), X, y, weights)


def test_squares_of_many_blocks_are_rounded_one_after_the_other():
    n_blocks, values = 4000, np.random.default_rng(9).uniform(0.5, 2.0, 300)
    sums = np.cumsum(np.broadcast_to(4 * np.square(values), (n_blocks, 300)), axis=0)[-1]
    # The one whose sums are rounded to one side most often.
    value = values[np.abs(sums / (n_blocks * 4 * np.square(values)) - 1).argmax()]
    rows = np.tile([[value], [-value]], (2 * n_blocks, 1))
    model = StreamingRidge(1e9, method="fd", sketch_size=2, standardize=True, fit_intercept=False)
    model.fit(rows, rows[:, 0])
    off = abs(model.scale_[0] / value - 1)  # its root mean square is the number itself
    claimed = model._learned.stream._query().scale_error
    assert 3e-14 < off <= claimed


def test_waiting_rows_are_rounded_again_by_each_merger_that_changes_units():
    options = {"method": "fd", "sketch_size": 2, "fit_intercept": False, "standardize": True}
    waits = np.array([[1.0000003e12]])
    model = StreamingRidge(1e6, dtype="float32", **options).fit(waits, [1.0])
    X, rng, size = [waits], np.random.default_rng(0), 1e-22

    def off(merged):
        intake = merged._learned.stream._raw_state.intake
        return float(intake._rows[0, 0]) * float(intake.units[0]) / waits[0, 0] - 1

    while size < 1e9:  # of some parts, the one that rounds upwards the most
        parts = [np.full((4, 1), size * factor) for factor in rng.uniform(1, 1.3, 20)]
        merged = []
        for part in parts:
            other = StreamingRidge(1e6, dtype="float32", **options).fit(part, np.zeros(4))
            merged.append(copy.deepcopy(model).merge(other))
        worst = int(np.argmax([off(one) for one in merged]))
        model, size = merged[worst], 4.8 * parts[worst][0, 0]
        X.append(parts[worst])
    assert off(model) > 20 * np.finfo(np.float32).eps / 2
    X = np.vstack(X)
    assert_holds(model, X, np.append(1.0, np.zeros(len(X) - 1)), rows=X[:1])


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("at_once", [False, True])
def test_float32_holds_a_column_that_grows_from_nothing_to_much(kind, at_once):
    rng = np.random.default_rng(8)
    X = rng.standard_normal((200, 3)).astype(np.float32)
    X[:180, 0] *= 1e-30
    X[180:, 0] *= 1e12
    y = X[:, 1] + X[:, 0] / 1e12
    parts = [slice(None)] if at_once else [slice(180), slice(180, 190), slice(190, None)]
    models = [
        StreamingRidge(standardize=True, method="rfd", sketch_size=3).fit(kind(X[part]), y[part])
        for part in parts
    ]
    merged = models[0]
    for other in models[1:]:
        merged.merge(other)
    assert np.isfinite(assert_holds(merged, kind(X), y).coef_bound)
    trained = StreamingRidge(standardize=True, method="rfd", sketch_size=3)
    for part in parts:
        trained.partial_fit(kind(X[part]), y[part])
    assert np.isfinite(assert_holds(trained, kind(X), y).coef_bound)


@pytest.mark.parametrize("size", [1e-100, 1e-5])
def test_the_intercept_of_a_refined_model_is_in_the_units_that_refine_measured(size):
    """The first pass has deviations of float32 rows and of their weights: far off here."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = size * (1 + 4e-14 * rng.standard_normal((19, 1)))
        y, weights = rng.standard_normal(19), 10.0 ** rng.uniform(-28, 28, 19)
        model = StreamingRidge(1e25, method="rfd", sketch_size=2, standardize=True, dtype="float32")
        model.fit(X, y, weights).refine(X, y, weights, passes=3)
        assert_holds(model, X, y, weights)

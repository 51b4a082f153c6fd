"""What every method promises, whatever its sketch."""

import itertools
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ridgepass import RidgeStream
from same_bits import assert_same_bits, assert_unchanged, everything
from streams import METHODS, exact_ridge, make_rows, norm, split_points, streams


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("method", METHODS)
@given(data=st.data(), stream=streams(scales=[1.0]))
@settings(max_examples=25)
def test_any_split_into_batches_gives_the_same_bits(method, dtype, data, stream):
    A, b = stream.A.astype(dtype), np.asfortranarray(np.c_[stream.b, -3 * stream.b])
    whole = RidgeStream(method, sketch_size=stream.sketch_size).update(A, b)
    pieces = RidgeStream(method, sketch_size=stream.sketch_size)
    cuts = split_points(data.draw, len(A))
    for start, stop in itertools.pairwise(cuts):
        pieces.update(A[start:stop], b[start:stop])
        pieces.solve(1.0)  # a query leaves no trace
    assert_same_bits(whole, pieces)
    np.testing.assert_array_equal(whole.solve([1.0, 5.0]), pieces.solve([1.0, 5.0]))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_wide_rows_split_anywhere_give_the_same_bits(method, order):
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((70, 5000)), rng.standard_normal(70)
    if method == "exact":
        A = np.ascontiguousarray(A[:, :300])
    rows = np.repeat(A, 2, axis=1)[:, ::2] if order == "strided" else np.asarray(A, order=order)
    whole = RidgeStream(method, sketch_size=8).update(A, b)
    pieces = RidgeStream(method, sketch_size=8)
    for start, stop in itertools.pairwise([0, 1, 2, 15, 40, 70]):
        pieces.update(rows[start:stop], b[start:stop])
    assert_same_bits(whole, pieces)


@pytest.mark.parametrize("method", METHODS)
def test_a_query_between_blocks_counts_the_pending_rows(method):
    rng = np.random.default_rng(1)
    A, b = rng.standard_normal((43, 15)), rng.standard_normal(43)
    model = RidgeStream(method, sketch_size=16).update(A, b)
    before = everything(model)
    coef = model.solve(2.0)
    assert_unchanged(before, model)
    if method in {"exact", "fd", "isvd", "rfd"}:  # 15 features fit into 16 rows
        np.testing.assert_allclose(coef, exact_ridge(A, b, 2.0)[:, 0], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("method", ["exact", "fd", "isvd", "rfd"])
@given(stream=streams(spectra=["low rank", "repeated", "zero"]))
def test_below_the_rank_it_can_hold_every_answer_is_exact(method, stream):
    model = RidgeStream(method, sketch_size=max(stream.sketch_size, 3)).update(stream.A, stream.b)
    exact = exact_ridge(stream.A, stream.b, stream.alpha)[:, 0]
    assert norm(model.solve(stream.alpha) - exact) <= 1e-10 * norm(exact)


@pytest.mark.parametrize("scale", [1e-100, 1e-3, 1e100])
@pytest.mark.parametrize("method", METHODS)
def test_scaling_the_data_scales_the_answer(method, scale):
    rng = np.random.default_rng(2)
    A, b = make_rows(rng, 90, 20, "decaying"), rng.standard_normal(90)
    plain = RidgeStream(method, sketch_size=6).update(A, b).solve(0.5)
    scaled = RidgeStream(method, sketch_size=6).update(A * scale, b).solve(0.5 * scale * scale)
    np.testing.assert_allclose(scaled * scale, plain, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"tracked"}))  # which shares τ
def test_targets_and_alphas_share_one_pass_without_mixing(method):
    rng = np.random.default_rng(3)
    A, b = rng.standard_normal((60, 12)), rng.standard_normal((60, 3))
    model = RidgeStream(method, sketch_size=8).update(A, b)
    together = model.solve([0.5, 7.0])
    assert together.shape == (2, 12, 3)
    for t in range(3):
        alone = RidgeStream(method, sketch_size=8).update(A, b[:, t])
        for a, alpha in enumerate([0.5, 7.0]):
            np.testing.assert_allclose(alone.solve(alpha), together[a, :, t], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
@given(stream=streams(), seed=st.integers(0, 99))
@settings(max_examples=30)
def test_any_tree_of_merges_keeps_its_certificate(method, stream, seed):
    rng = np.random.default_rng(seed)
    A, b = stream.A, stream.b
    bounds = [0, *np.sort(rng.integers(0, len(A) + 1, 3)), len(A)]
    models = []
    for start, stop in itertools.pairwise(bounds):
        models.append(RidgeStream(method, sketch_size=int(rng.integers(2, 13))))
        if stop > start:
            models[-1].update(A[start:stop], b[start:stop])
    while len(models) > 1:
        i, j = rng.permutation(len(models))[:2]
        models[i].merge(models[j])
        del models[j]
    (merged,) = models
    assert merged.n_rows == len(A)
    exact = exact_ridge(A, b, stream.alpha)[:, 0]
    error = norm(merged.solve(stream.alpha) - exact)
    for confidence in (1.0, 1 - 1e-6):
        certificate = merged.certificate(stream.alpha, confidence)
        assert error <= certificate.coef_bound + 1e-11 * norm(exact)
    if method == "exact":
        assert error <= 1e-9 * norm(exact)


@pytest.mark.parametrize("method", METHODS)
def test_merging_leaves_the_other_alone_and_repeats_to_the_bit(method):
    rng = np.random.default_rng(4)
    A, b = rng.standard_normal((77, 9)), rng.standard_normal(77)

    def merged():
        left = RidgeStream(method, sketch_size=6).update(A[:40], b[:40])
        right = RidgeStream(method, sketch_size=4).update(A[40:], b[40:])
        before = everything(right)
        left.merge(right)
        assert_unchanged(before, right)
        return left

    assert_same_bits(merged(), merged())


@pytest.mark.parametrize("method", METHODS)
def test_an_answer_given_before_a_merge_is_not_given_after_it(method):
    rng = np.random.default_rng(10)
    A, b = rng.standard_normal((60, 9)), rng.standard_normal(60)

    def left(ask):
        model = RidgeStream(method, sketch_size=6).update(A[:30], b[:30])
        if ask:
            model.solve(1.0)
        return model.merge(RidgeStream(method, sketch_size=6).update(A[30:], b[30:])).solve(1.0)

    np.testing.assert_array_equal(left(ask=True), left(ask=False))


@pytest.mark.parametrize("method", ["2lfd", "exact", "fd", "isvd", "rfd", "tracked"])
def test_the_mass_survives_merging(method):
    rng = np.random.default_rng(11)
    A, b = rng.standard_normal((200, 9)), rng.standard_normal(200)
    model = RidgeStream(method, sketch_size=4)
    for part in np.array_split(np.arange(200), 5):
        model.merge(RidgeStream(method, sketch_size=4).update(A[part], b[part]))
    mass = model._query().solver.covariance.mass
    assert mass == pytest.approx(np.square(A).sum(), rel=1e-12)


def test_merging_a_longer_block_keeps_its_longer_sums_certified():
    rng = np.random.default_rng(12)
    A, b = 1 + 1e-3 * rng.random((600, 3)), np.full(600, 1 / 3)
    long = RidgeStream("fd", sketch_size=600).update(A, b)
    merged = RidgeStream("fd", sketch_size=2).merge(long)
    mass = float(np.square(A).sum())
    theirs, ours = (model._state.moments.cross_rounding(mass) for model in (long, merged))
    assert (ours >= theirs).all()


def test_numbers_that_vanish_in_float32_are_not_certified_away():
    rng = np.random.default_rng(13)
    A, b = 1e-46 * rng.standard_normal((50, 8)), rng.standard_normal(50)
    for method in METHODS:
        model = RidgeStream(method, sketch_size=10, dtype="float32").update(A, b)
        exact = exact_ridge(A, b, 200e-92)[:, 0]
        error = norm(model.solve(200e-92) - exact)
        for confidence in (1.0, 1 - 1e-6):
            assert error <= model.certificate(200e-92, confidence).coef_bound


@pytest.mark.parametrize("method", METHODS)
def test_merging_with_nothing_changes_nothing(method):
    rng = np.random.default_rng(5)
    A, b = rng.standard_normal((50, 9)), rng.standard_normal(50)
    full = RidgeStream(method, sketch_size=6).update(A, b)
    before = everything(full)
    full.merge(RidgeStream(method, sketch_size=9))
    assert_unchanged(before, full)
    empty = RidgeStream(method, sketch_size=6).merge(full)
    assert empty.n_rows == 50
    if method not in {"2lfd", "rp", "cs"}:
        np.testing.assert_allclose(empty.solve(1.0), full.solve(1.0), rtol=1e-9)


def test_merging_different_precisions_widens_the_certificate():
    rng = np.random.default_rng(6)
    A, b = rng.standard_normal((64, 10)), rng.standard_normal(64)
    narrow = RidgeStream("fd", sketch_size=12, dtype="float32").update(A[:32], b[:32])
    narrow.merge(RidgeStream("fd", sketch_size=12).update(A[32:], b[32:]))
    exact = exact_ridge(A, b, 1.0)[:, 0]
    assert norm(narrow.solve(1.0) - exact) <= narrow.certificate(1.0).coef_bound < norm(exact)


@pytest.mark.parametrize("method", ["2lfd", "rp", "cs"])
def test_seeds_decide_the_random_methods(method):
    rng = np.random.default_rng(7)
    A, b = rng.standard_normal((200, 30)), rng.standard_normal(200)

    def coef(seed):
        return RidgeStream(method, sketch_size=6, seed=seed).update(A, b).solve(1.0)

    np.testing.assert_array_equal(coef(3), coef(3))
    assert not np.array_equal(coef(3), coef(4))
    assert not np.array_equal(coef(None), coef(None))


def test_float32_rows_stay_float32_and_integers_become_float64():
    A = np.arange(12).reshape(4, 3)
    kept = RidgeStream("fd", sketch_size=2).update(A.astype("float32"), [1, 2, 3, 4])
    assert kept._state.sketch.rows.dtype == np.float32
    for other in (A, A > 5, A.astype("longdouble"), A.astype(">f8"), A.tolist()):
        model = RidgeStream("fd", sketch_size=2).update(other, [1, 2, 3, 4])
        assert model._state.sketch.rows.dtype == np.float64
    half = RidgeStream("fd", sketch_size=2).update(A.astype("float16"), [1, 2, 3, 4])
    assert half._state.sketch.rows.dtype == np.float32


def test_size_is_told_and_does_not_grow():
    rng = np.random.default_rng(8)
    model = RidgeStream("rfd", sketch_size=4, probes=3)
    assert model.n_rows == model.nbytes == 0
    sizes = set()
    for _ in range(10):
        model.update(rng.standard_normal((16, 40)), rng.standard_normal(16))
        sizes.add(model.nbytes)
    sketch, moments, buffer = 4 * 40 * 8 + 4 * 8, 40 * 8 + 8, 8 * (40 + 1 + 1) * 8
    no_means, no_rounding = 4 * 8, 2 * 8
    probes = 2 * 3 * 40 * 8 + 40 * 8
    assert sizes == {sketch + moments + buffer + no_means + no_rounding + probes}
    assert repr(model) == "RidgeStream(method='rfd', sketch_size=4, n_rows=160)"


def test_solving_in_several_threads_agrees():
    rng = np.random.default_rng(9)
    model = RidgeStream("rfd", sketch_size=8)
    model.update(rng.standard_normal((100, 50)), rng.standard_normal(100))
    expected, results = model.solve(3.0), []
    threads = [threading.Thread(target=lambda: results.append(model.solve(3.0))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    for result in results:
        np.testing.assert_array_equal(result, expected)


def test_returned_coefficients_are_the_caller_s():
    model = RidgeStream("exact").update(np.eye(3), [1.0, 2.0, 3.0])
    model.solve(1.0)[:] = 99
    np.testing.assert_allclose(model.solve(1.0), [0.5, 1.0, 1.5])


GOOD = (np.ones((5, 3)), np.ones(5))
BAD_BATCHES = [
    (np.full((5, 3), np.nan), np.ones(5), r"A has nan in row 0, column 0 of the batch: drop"),
    (np.where(np.arange(15).reshape(5, 3) == 7, np.inf, 1), np.ones(5), "A has inf in row 2, col"),
    (np.ones((5, 3)), [1, 1, np.nan, 1, 1], "b has nan in row 2"),
    (np.full((5, 3), 1e150), np.ones(5), "squares overflow float64: divide the column"),
    (np.ones((5, 4)), np.ones(5), "4 features, the stream has 3"),
    (np.ones((5, 3)), np.ones(4), "b has 4 rows but A has 5"),
    (np.ones((5, 3)), np.ones((5, 2)), r"targets have shape \(n_rows, 2\), the stream's have \(n"),
    (np.ones((5, 3)), np.ones((5, 1)), r"shape \(n_rows, 1\), the stream's have \(n_rows,\)"),
    (np.ones((0, 3)), np.ones(0), "A has no rows"),
    (np.ones((5, 0)), np.ones(5), "A has no columns"),
    (np.ones(3), np.ones(1), r"one dimension: reshape a single row with A.reshape\(1, -1\)"),
    (np.ones((2, 2, 2)), np.ones(2), "A has 3 dimensions"),
    (np.ones((5, 3)), np.ones((5, 1, 1)), "b has 3 dimensions"),
    (np.ones((5, 3)), np.ones((5, 0)), "b has no columns"),
    (np.ones((5, 3), dtype=object), np.ones(5), "A has dtype object: convert"),
    (np.full((5, 3), "a"), np.ones(5), "A has dtype <U1: convert"),
    (np.ones((5, 3), dtype=complex), np.ones(5), "A has dtype complex128"),
]


@pytest.mark.parametrize(("A", "b", "message"), BAD_BATCHES)
@pytest.mark.parametrize("method", METHODS)
def test_a_bad_batch_is_refused_before_anything_changes(method, A, b, message):
    model = RidgeStream(method, sketch_size=2).update(*GOOD)
    before = everything(model)
    with pytest.raises(ValueError, match=message):
        model.update(A, b)
    assert_unchanged(before, model)


def test_the_bad_number_is_found_in_a_long_batch():
    A = np.ones((70_000, 3))
    A[65_432, 1] = np.nan
    with pytest.raises(ValueError, match="nan in row 65432, column 1"):
        RidgeStream("fd").update(A, np.ones(len(A)))


def test_numbers_too_large_for_float32_point_to_float64():
    A = np.full((5, 3), 1e20, "float32")
    with pytest.raises(ValueError, match=r"overflow float32: .* or use dtype='float64'"):
        RidgeStream("fd").update(A, np.ones(5))
    RidgeStream("fd", dtype="float64").update(A, np.ones(5))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "magic"}, "method='magic' is unknown: choose one of exact, fd, rfd"),
        ({"sketch_size": 1}, "sketch_size=1 is too small: give at least 2"),
        ({"sketch_size": -5}, "sketch_size=-5 is too small"),
        ({"sketch_size": 2.5}, "sketch_size=2.5 is not a whole number"),
        ({"sketch_size": "8"}, "sketch_size='8' is not a whole number"),
        ({"dtype": "int8"}, "dtype='int8' is not supported"),
        ({"dtype": "nonsense"}, "dtype='nonsense' is not supported"),
        ({"seed": -1}, "seed=-1 is not a whole number"),
        ({"seed": 1.5}, "seed=1.5 is not a whole number"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        RidgeStream(**options)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("alpha", "message"),
    [
        (-1.0, "alpha=-1 is not a finite number of at least zero"),
        (np.nan, "alpha=nan is not a finite number"),
        (np.inf, "alpha=inf is not a finite number"),
        ([1.0, -2.0], "alpha=-2 is not"),
        ([], "there is no alpha: pass at least one"),
        ("1", "alpha='1' is not a number"),
        (True, "alpha=True is not a number"),
        ([[1.0]], "is not a number or a sequence"),
    ],
)
def test_bad_alphas_are_named(method, alpha, message):
    model = RidgeStream(method, sketch_size=2).update(*GOOD)
    with pytest.raises(ValueError, match=message):
        model.solve(alpha)


@pytest.mark.parametrize("method", ["2lfd", "cs", "fd", "isvd", "rfd", "rp", "exact"])
def test_alpha_zero_is_refused_where_there_is_no_solution(method):
    model = RidgeStream(method, sketch_size=4).update(np.ones((3, 9)), np.ones(3))
    with pytest.raises(ValueError, match=r"alpha=0 .*choose (alpha > 0|a larger alpha)"):
        model.solve(0.0)


def test_alpha_zero_works_for_rfd_once_it_has_shrunk():
    A = np.random.default_rng(0).standard_normal((60, 9))
    assert np.isfinite(RidgeStream("rfd", sketch_size=4).update(A, A[:, 0]).solve(0.0)).all()


def test_misuse_says_what_to_do():
    empty, full = RidgeStream("fd"), RidgeStream("fd").update(*GOOD)
    with pytest.raises(ValueError, match=r"no rows yet: call update\(A, b\) first"):
        empty.solve(1.0)
    with pytest.raises(ValueError, match="no rows yet"):
        empty.certificate(1.0)
    with pytest.raises(ValueError, match="not a single number: give each"):
        full.certificate([1.0, 2.0])
    with pytest.raises(ValueError, match="not a single number"):
        RidgeStream(alpha=[1.0, 2.0])
    with pytest.raises(ValueError, match="cannot be merged with itself"):
        full.merge(full)
    with pytest.raises(ValueError, match="with method='fd' cannot take in one with method='rfd'"):
        full.merge(RidgeStream("rfd"))
    with pytest.raises(TypeError, match="not with int"):
        full.merge(3)
    wide = RidgeStream("fd").update(np.ones((2, 4)), np.ones(2))
    with pytest.raises(ValueError, match="4 features, the stream has 3"):
        full.merge(wide)
    with pytest.raises(ValueError, match="rows has one dimension"):
        full.certificate(1.0).prediction_bound(np.ones(3))
    with pytest.raises(ValueError, match="rows has 4 columns, the model has 3 features"):
        full.certificate(1.0).prediction_bound(np.ones((2, 4)))
    with pytest.raises(ValueError, match="rows has nan"):
        full.certificate(1.0).prediction_bound(np.full((2, 3), np.nan))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "A",
    [
        np.zeros((9, 4)),
        np.ones((1, 4)),
        np.ones((9, 1)),
        np.eye(9, 4),
        np.tile([[1.0, 1.0, 0.0, 5.0]], (30, 1)),
        np.vstack([np.full((10, 4), 1e-150), np.eye(10, 4) * 1e140]),
    ],
    ids=["zero", "one row", "one column", "few rows", "constant columns", "extremes"],
)
def test_degenerate_data_gives_finite_answers(method, A):
    b = np.arange(1.0, len(A) + 1)
    alpha = 1e-6 * (A.max() or 1.0) ** 2
    model = RidgeStream(method, sketch_size=3)
    for row in range(len(A)):
        model.update(A[row : row + 1], b[row : row + 1])
        assert np.isfinite(model.solve(alpha)).all()
    assert model.n_rows == len(A)
    for confidence in (1.0, 1 - 1e-6):
        certificate = model.certificate(alpha, confidence)
        for found in (certificate.coef_bound, certificate.relative, certificate.energy_bound):
            assert not np.isnan(found)
        assert not np.isnan(certificate.coefficient_bounds()).any()

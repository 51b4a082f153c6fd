"""K̂ of a followed subspace, against the same written out as a matrix."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ridgepass.sketch import TrackedCovariance
from ridgepass.sketch.tracked_covariance import Followed, MixedRows, diagonal_share
from ridgepass.solve import TrackedSolver


def make_rows(rng, n_rows, n_features, *, uneven=True):
    """Rows of decaying spectrum; uneven columns leave a tail that is mostly a diagonal."""
    spread = np.exp(-np.arange(n_features) / (n_features / 6))
    rows = rng.standard_normal((n_rows, n_features)) * spread
    if uneven:
        return rows * np.exp(rng.standard_normal(n_features))
    turn, _ = np.linalg.qr(rng.standard_normal((n_features, n_features)))
    return rows @ turn


class Case:
    """What exact images of a basis, of starting points and of probes make of K = AᵀA."""

    def __init__(self, rng, A, b, size, *, unit=1.0, turns=1, share=0.0, **options):
        n_features = A.shape[1]
        self.K, self.cross, self.unit = A.T @ A, A.T @ b, unit
        basis = rng.standard_normal((n_features, size))
        for _ in range(turns + 1):
            basis, _ = np.linalg.qr(self.K @ basis / unit if turns else basis)
        self.basis = basis.T.copy()
        self.image = self.basis @ self.K
        self.starts = self.cross / np.linalg.norm(self.cross, axis=0)
        followed = Followed(
            basis=MixedRows((self.basis,)),
            image=MixedRows((self.image,), unit=unit),
            middle=self.basis @ self.image.T / unit,
            starts=self.starts,
            start_images=self.K @ self.starts / unit,
            diagonal=np.diagonal(self.K) / unit,
            rank=min(A.shape),
            unit=unit,
            share=share,
        )
        self.covariance = TrackedCovariance(replace(followed, **options))
        self.solver = TrackedSolver(self.covariance, self.cross)

    def written_out(self, tails):
        """YᵀM⁻¹Y + (I − P)·T·(I − P)."""
        out = np.eye(len(self.K)) - self.basis.T @ self.basis
        low = self.image.T @ np.linalg.solve(self.basis @ self.image.T, self.image)
        return low + out @ np.diag(np.broadcast_to(tails, len(self.K))) @ out

    @property
    def rest(self):
        """E, which the basis does not see."""
        return self.K - self.written_out(0.0)


def make(seed, size=5, n_features=25, n_targets=1, *, uneven=True, **options):
    rng = np.random.default_rng(seed)
    A = make_rows(rng, 60, n_features, uneven=uneven)
    return Case(rng, A, rng.standard_normal((60, n_targets)), size, **options)


CASES = given(
    seed=st.integers(0, 10**6),
    size=st.integers(1, 9),
    n_features=st.integers(12, 40),
    uneven=st.booleans(),
    share=st.sampled_from([0.0, 0.25, 1.0]),
    alpha=st.sampled_from([1e-3, 1.0, 30.0, 1e4]),
)


@CASES
@settings(max_examples=60)
def test_products_and_solutions_are_those_of_the_matrix(
    seed, size, n_features, uneven, share, alpha
):
    case = make(seed, size, n_features, 2, uneven=uneven, share=share)
    covariance = case.covariance
    whole = case.written_out(covariance.tails)
    vectors = np.random.default_rng(seed).standard_normal((n_features, 3))
    scale = np.linalg.norm(case.K, 2)
    found = covariance.multiply(vectors)
    np.testing.assert_allclose(found, whole @ vectors, atol=1e-9 * scale)
    found = covariance.inverse(alpha)(vectors)
    left = whole @ found + alpha * found - vectors
    assert np.linalg.norm(left) <= 1e-9 * (1 + scale / alpha) * np.linalg.norm(vectors)


@CASES
@settings(max_examples=40)
def test_what_is_left_out_lies_outside_the_basis(seed, size, n_features, uneven, share, alpha):
    case = make(seed, size, n_features, uneven=uneven, share=share)
    covariance, slack = case.covariance, 1e-9 * np.trace(case.K)
    # So that K̂ is exact on the basis, whatever the tail.
    found = covariance.multiply(case.basis.T)
    np.testing.assert_allclose(found, case.image.T, atol=1e-9 * np.linalg.norm(case.K, 2))
    np.testing.assert_allclose(covariance._diagonal, np.diagonal(case.rest), atol=slack)
    inside = np.trace(case.basis @ case.image.T)
    assert covariance._left == pytest.approx(np.trace(case.K) - inside, abs=slack)
    assert covariance._left >= np.trace(case.rest) - slack
    tails = covariance.tails
    assert 0 <= np.min(tails) <= np.max(tails) <= 1.01 * covariance._left
    assert case.solver.tail() == np.min(tails)
    assert case.solver.typical_tail() == pytest.approx(np.mean(tails))


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_solutions_go_on_from_the_starting_points(share):
    case = make(9, n_targets=2, share=share)
    for alpha in (0.1, 3.0, 500.0):
        w, h = case.starts, case.K @ case.starts
        steps = steps_of(case, alpha)
        K = case.written_out(case.covariance.tails) + alpha * np.eye(25)
        expected = steps * w + np.linalg.solve(K, case.cross - steps * (h + alpha * w))
        (found,) = case.solver.solve([alpha])
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10 * np.abs(expected).max())
        alone = np.linalg.solve(K, case.cross)
        assert np.linalg.norm(expected - alone) > 1e-6 * np.linalg.norm(alone)


def steps_of(case, alpha):
    """The t for which c − t(h + γw) is shortest outside Ω, divided by the tail and γ."""
    out = np.eye(25) - case.basis.T @ case.basis
    ridges = np.broadcast_to(case.covariance.tails + alpha, 25)[:, None]
    c, b = (out @ one / ridges for one in (case.cross, (case.K + alpha * np.eye(25)) @ case.starts))
    return (c * b).sum(axis=0) / np.square(b).sum(axis=0)


def test_a_starting_point_that_is_no_good_is_not_used():
    case = make(9, n_targets=2)
    strange = np.random.default_rng(5).standard_normal((25, 2))
    followed = replace(case.covariance.followed, starts=strange, start_images=case.K @ strange)
    covariance = TrackedCovariance(replace(followed, share=1.0))
    (found,) = TrackedSolver(covariance, case.cross).solve([0.1])
    exact = np.linalg.solve(case.K + 0.1 * np.eye(25), case.cross)
    plain = np.linalg.solve(case.written_out(covariance.tails) + 0.1 * np.eye(25), case.cross)
    near, far = (np.linalg.norm(one - exact, axis=0) for one in (found, plain))
    assert (near < 1.2 * far).all()


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_starting_point_within_the_basis_is_searched_along(share):
    case = make(9, n_targets=2)
    inside = case.basis.T @ np.random.default_rng(5).standard_normal((5, 2))
    followed = replace(case.covariance.followed, starts=inside, start_images=0.5 * inside)
    covariance = TrackedCovariance(replace(followed, share=share))
    (found,) = TrackedSolver(covariance, case.cross).solve([0.1])
    steps = (inside * case.cross).sum(axis=0) / (inside * 0.6 * inside).sum(axis=0)
    K = case.written_out(covariance.tails) + 0.1 * np.eye(25)
    expected = steps * inside + np.linalg.solve(K, case.cross - steps * 0.6 * inside)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9 * np.abs(expected).max())


def test_mixtures_of_targets_tell_of_the_tail_and_solutions_start_from_zero():
    case = make(10, n_targets=2, mixed=True)
    plain = make(10, n_targets=2)
    assert case.covariance.tails == plain.covariance.tails
    other = np.random.default_rng(0).standard_normal((25, 7))
    found = TrackedSolver(case.covariance, other).solve([2.0])[0]
    K = case.written_out(case.covariance.tails)
    np.testing.assert_allclose(found, np.linalg.solve(K + 2 * np.eye(25), other), rtol=1e-9)


def test_the_tail_is_what_is_left_out_where_the_starting_points_are():
    case = make(11, n_targets=2, uneven=False)
    u = case.starts - case.basis.T @ (case.basis @ case.starts)
    expected = np.sum(u * (case.rest @ u)) / np.sum(u * u)
    assert case.covariance.tails == pytest.approx(expected)
    assert expected < np.linalg.norm(case.rest, 2)


def test_without_starting_points_the_tail_is_the_mean_of_what_is_left():
    case = make(12, starts=np.zeros((25, 1)), start_images=np.zeros((25, 1)))
    expected = (np.trace(case.K) - np.trace(case.basis @ case.image.T)) / (25 - 5)
    assert case.covariance.tails == pytest.approx(expected)
    (found,) = case.solver.solve([2.0])
    K = case.written_out(expected)
    np.testing.assert_allclose(found, np.linalg.solve(K + 2 * np.eye(25), case.cross), rtol=1e-9)
    assert make(12, size=25, starts=np.zeros((25, 1))).covariance.tails == 0.0


@pytest.mark.parametrize("share", [0.25, 1.0])
def test_a_share_of_the_tail_is_the_diagonal_of_what_is_left(share):
    scalar, mixed = make(13), make(13, share=share)
    expected = share * np.diagonal(scalar.rest) + (1 - share) * scalar.covariance.tails
    np.testing.assert_allclose(mixed.covariance.tails, expected, rtol=1e-7)
    # As of the last turn, for columns that have grown since.
    shares = np.diagonal(scalar.rest) / np.diagonal(scalar.K)
    kept = make(13, share=share, outside=shares, diagonal=2 * np.diagonal(scalar.K))
    tail = make(13, diagonal=2 * np.diagonal(scalar.K)).covariance.tails
    expected = share * 2 * np.diagonal(scalar.rest) + (1 - share) * tail
    np.testing.assert_allclose(kept.covariance.tails, expected, rtol=1e-6, atol=1e-9)


def test_a_scalar_is_a_diagonal_of_equal_numbers():
    case = make(1)
    vectors = np.random.default_rng(1).standard_normal((25, 4))
    one = case.covariance._with_scalar_tail(0.7, 2.5)(vectors)
    each = case.covariance._with_diagonal_tail(0.7, np.full(25, 2.5))(vectors)
    np.testing.assert_allclose(one, each, rtol=1e-10)


def test_a_tail_of_one_eigenvalue_is_found_and_the_solution_exact():
    rng = np.random.default_rng(2)
    turn, _ = np.linalg.qr(rng.standard_normal((20, 20)))
    # Three directions of the basis, and seventeen of one eigenvalue.
    A = (turn * np.sqrt([90.0, 50.0, 20.0, *[4.0] * 17])) @ turn.T
    case = Case(rng, A, rng.standard_normal((20, 2)), 3, turns=40)
    assert case.covariance.tails == pytest.approx(4.0, rel=1e-6)
    exact = np.linalg.solve(case.K + np.eye(20), case.cross)
    np.testing.assert_allclose(case.solver.solve([1.0])[0], exact, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_alpha_may_be_zero_where_the_tail_is_not(share):
    case = make(3, uneven=False, share=share)
    tails = case.covariance.tails
    assert np.min(tails) > 0
    found = case.covariance.inverse(0.0)(case.K[:, :2])
    np.testing.assert_allclose(case.written_out(tails) @ found, case.K[:, :2], atol=1e-8)


def share_of(rest, before=0.0, starts=True, probes=None, is_sparse=False):
    """The share for E = rest; with no probes, what these measure on average."""
    diagonal = np.diagonal(rest)
    images = rest if probes is None else (probes @ rest).T / np.sqrt(len(probes))
    per = np.ones_like(diagonal) if is_sparse else 1 / diagonal
    alone = (np.square(diagonal) * per).sum() / (np.square(images) * per[:, None]).sum()
    even = diagonal.sum() ** 2 / len(rest) / np.square(diagonal).sum()
    return diagonal_share(min(alone, 1.0), even, before, starts=starts, is_sparse=is_sparse)


def test_the_diagonal_is_used_where_columns_differ_and_not_where_they_are_mixed():
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((400, 60)) * np.exp(1.5 * rng.standard_normal(60))
    b = rng.standard_normal((400, 1))
    turn, _ = np.linalg.qr(rng.standard_normal((60, 60)))
    probes = rng.standard_normal((24, 60))
    assert share_of(Case(rng, rows, b, 4).rest, probes=probes) > 0.8
    assert share_of(Case(rng, rows @ turn, b, 4).rest, probes=probes) < 0.5


@pytest.mark.parametrize("alike", [0.0, 0.5, 0.9])
def test_columns_that_are_alike_have_less_of_the_diagonal_whatever_their_sizes(alike):
    """Groups of three: E is D^½CD^½, and Σ Eᵢⱼ²/Dᵢ is Σ Dⱼ·(Σ Cᵢⱼ² of a row) here."""
    one = np.full((3, 3), alike) + (1 - alike) * np.eye(3)
    sizes = np.repeat(np.exp(np.arange(20.0) / 4), 3)
    rest = np.sqrt(np.outer(sizes, sizes)) * np.kron(np.eye(20), one)
    alone = 1 / (1 + 2 * alike**2)
    found = min(3.2 * alone, 1.0)
    assert share_of(rest) == pytest.approx(found)
    assert share_of(rest, starts=False) == (pytest.approx(found) if alone >= 0.5 else 0.0)


def test_small_sparse_columns_that_are_alike_by_chance_do_not_count():
    """A few large columns, and many that are in one row each, so that all of these are alike."""
    sizes = np.r_[np.geomspace(100, 10, 12), np.ones(48)]
    rest = np.diag(sizes)
    rest[12:, 12:] = 1.0
    even = sizes.sum() ** 2 / 60 / np.square(sizes).sum()
    alone = np.square(sizes).sum() / np.square(rest).sum()
    assert share_of(rest) < 0.9
    assert share_of(rest, is_sparse=True) == min(2.4 * (1 - even) * alone, 1.0) == 1.0
    rest[:12, :12] = np.sqrt(np.outer(sizes, sizes))[:12, :12]
    assert share_of(rest, is_sparse=True) < 0.5


@pytest.mark.parametrize("spread", [0.1, 0.2, 1.0])
def test_the_more_even_columns_are_the_less_of_the_diagonal(spread):
    sizes = np.exp(spread * np.random.default_rng(5).standard_normal(50))
    even = sizes.sum() ** 2 / 50 / np.square(sizes).sum()
    assert share_of(np.diag(sizes)) == pytest.approx(min(6.4 * (1 - even), 1.0))


def test_even_columns_keep_the_one_number_unless_they_had_a_diagonal_that_is_all():
    even = np.diag(np.full(40, 3.0))
    assert share_of(even) == 0.0
    assert share_of(even, before=0.5) == 0.5
    mixed = even + 0.3
    assert share_of(mixed, before=0.5) == 0.0
    for is_sparse in (False, True):
        assert share_of(np.diag(np.arange(1.0, 41)), is_sparse=is_sparse) > 0.5
        assert share_of(even, before=0.5, is_sparse=is_sparse) == 0.5


def near_and_far(power, share):
    """The same rows, also times a power of two, and that factor."""
    rng = np.random.default_rng(5)
    A, b = make_rows(rng, 60, 25), rng.standard_normal((60, 2))
    factor = 2.0**power
    plain = Case(np.random.default_rng(6), A, b, 5, share=share)
    far = Case(np.random.default_rng(6), A * factor, b, 5, unit=factor**2, share=share)
    return plain, far, factor


@pytest.mark.parametrize("power", [-400, 400])
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_units_take_squares_of_any_size_into_range(power, share):
    plain, far, factor = near_and_far(power, share)
    coefs = plain.solver.solve([0.5, 5.0])
    found = far.solver.solve([0.5 * factor**2, 5.0 * factor**2])
    np.testing.assert_allclose(found * factor, coefs, rtol=1e-9)
    np.testing.assert_allclose(far.covariance.tails / factor**2, plain.covariance.tails, rtol=1e-9)
    assert far.solver.largest_eigenvalue() / factor**2 == pytest.approx(
        plain.solver.largest_eigenvalue()
    )


@pytest.mark.parametrize("power", [-365, -330, 330, 365])
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_curvature_is_in_range_too(power, share):
    plain, far, factor = near_and_far(power, share)
    coefs = plain.solver.solve([0.5, 5.0])
    expected = plain.solver.quadratic(coefs)
    np.testing.assert_allclose(far.solver.quadratic(coefs / factor), expected, rtol=1e-9)
    vectors = coefs[0] / factor
    expected = plain.covariance.multiply(coefs[0])
    found = far.covariance.multiply(vectors) / factor
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_starting_points_move_towards_the_solution_and_their_image_with_them(share):
    case = make(7, n_targets=2, share=share)
    (coef,) = case.solver.solve([2.0])
    point, image = case.covariance.moved(2.0, case.cross)
    np.testing.assert_allclose(np.linalg.norm(point, axis=0), 1.0, rtol=1e-12)
    w, h = case.starts, case.K @ case.starts
    steps = steps_of(case, 2.0)
    # n·point is t·w + δ and n·image is t·h + K̂δ: they tell n.
    off = image - case.covariance.multiply(point)
    lost = h - case.covariance.multiply(w)
    shares = (off * lost).sum(axis=0) / np.square(lost).sum(axis=0)
    np.testing.assert_allclose(off, shares * lost, atol=1e-9 * np.abs(image).max())
    moved = steps / shares * point
    before, after = (np.linalg.norm(coef - one, axis=0) for one in (steps * w, moved))
    assert (after < 0.5 * before).all()


def test_a_starting_point_of_no_target_stays_at_zero():
    case = make(7, n_targets=2)
    cross = case.cross * [1.0, 0.0]
    fresh = replace(case.covariance.followed, starts=np.zeros((25, 2)))
    fresh = TrackedCovariance(replace(fresh, start_images=np.zeros((25, 2))))
    point, image = fresh.moved(2.0, cross)
    assert point[:, 0].any()
    assert not point[:, 1].any()
    assert not image[:, 1].any()
    again = replace(fresh.followed, starts=point, start_images=image)
    point, image = TrackedCovariance(again).moved(2.0, cross)
    assert np.isfinite(point).all()
    assert not point[:, 1].any()


def test_eigenvectors_and_root_are_those_of_the_low_part():
    case = make(8)
    low = case.written_out(0.0)
    values, mix = case.covariance.eigenpairs
    vectors = mix @ case.image
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(5), atol=1e-9)
    np.testing.assert_allclose(vectors @ low, values[:, None] * vectors, atol=1e-9 * values[0])
    root = case.covariance.root() @ case.image
    np.testing.assert_allclose(root.T @ root, low, atol=1e-9 * values[0])
    assert case.solver.largest_eigenvalue() == values[0]


def test_curvature_is_exact_along_starting_points_and_on_the_basis():
    case = make(14, n_targets=2)
    inside = case.basis.T @ np.random.default_rng(0).standard_normal((5, 2))
    expected = 9 * np.einsum("dt,dt->t", case.starts, case.K @ case.starts)
    np.testing.assert_allclose(case.solver.quadratic(3 * case.starts[None])[0], expected, rtol=1e-9)
    none = make(14, n_targets=2, starts=np.zeros((25, 2)), start_images=np.zeros((25, 2)))
    found = none.solver.quadratic(inside[None])[0]
    np.testing.assert_allclose(found, np.einsum("dt,dt->t", inside, case.K @ inside), rtol=1e-9)
    coefs = np.random.default_rng(1).standard_normal((3, 25, 2))
    whole = none.written_out(none.covariance.tails)
    np.testing.assert_allclose(
        none.solver.quadratic(coefs), np.einsum("kdt,de,ket->kt", coefs, whole, coefs), rtol=1e-9
    )


def test_degrees_of_freedom_are_those_of_the_eigenvalues_with_a_mean_for_the_rest():
    case = make(15)
    values = np.linalg.eigvalsh(case.written_out(0.0))[::-1][:5]
    mean = (np.trace(case.K) - values.sum()) / 20
    for alpha in (0.1, 10.0):
        expected = (values / (values + alpha)).sum() + 20 * mean / (mean + alpha)
        assert case.solver.degrees_of_freedom([alpha], 25)[0] == pytest.approx(expected)
    assert case.solver.degrees_of_freedom([1.0], 5)[0] <= 5


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_columns_in_other_units_are_those_of_the_rows_in_them(share):
    case = make(16, n_targets=2, share=share)
    ratio = np.exp(np.random.default_rng(0).standard_normal(25))
    found = case.covariance.rescaled(ratio, np.diagonal(case.K))
    K = case.K * np.outer(ratio, ratio)
    assert found.mass == pytest.approx(np.trace(K))
    basis = found.followed.basis.lift(np.eye(5))
    np.testing.assert_allclose(basis.T @ basis, np.eye(5), atol=1e-9)
    np.testing.assert_allclose(found.multiply(basis), K @ basis, atol=1e-9 * np.linalg.norm(K, 2))
    starts = found.followed.starts
    np.testing.assert_allclose(starts, case.starts / ratio[:, None])
    images = found.followed.unit * found.followed.start_images
    np.testing.assert_allclose(images, K @ starts, rtol=1e-9)
    assert 0.5 <= np.diagonal(found.followed.middle).max() < 1  # in range whatever the columns are
    # All of K is known on the old basis too, in the new units.
    old = case.basis.T / ratio[:, None]
    np.testing.assert_allclose(found.multiply(old), K @ old, atol=1e-9 * np.linalg.norm(K @ old))


def test_nothing_is_certain_of_how_far_it_is_from_the_rows():
    case = make(17)
    assert case.solver.covariance_error(1.0) == math.inf
    assert case.covariance.loss_bound is None
    assert case.covariance.mass_rounding <= 1e-13 * case.covariance.mass


def test_a_matrix_that_rounding_has_left_indefinite_is_divided_by_all_the_same():
    case = make(18)
    # The same direction twice: M is singular.
    basis = np.vstack([case.basis, case.basis[:1]])
    image = basis @ case.K
    followed = replace(
        case.covariance.followed,
        basis=MixedRows((basis,)),
        image=MixedRows((image,)),
        middle=basis @ image.T,
    )
    covariance = TrackedCovariance(followed)
    vectors = np.random.default_rng(0).standard_normal((25, 2))
    np.testing.assert_allclose(
        covariance._low(vectors), case.covariance._low(vectors), rtol=1e-6, atol=1e-6
    )
    assert np.isfinite(covariance.inverse(1.0)(vectors)).all()


@pytest.mark.parametrize("options", [{"share": 0.0}, {"share": 0.5}, {"mixed": True}])
def test_answers_do_not_depend_on_what_was_asked_before(options):
    rng = np.random.default_rng(8)
    A, b = make_rows(rng, 300, 40), rng.standard_normal((300, 2))
    case, alphas = Case(rng, A, b, 6, **options), [3.0, 0.1, 3.0, 1e3, 1e-300, 1e300]
    found = case.solver.solve(alphas)
    for alpha, coef in zip(alphas, found, strict=True):
        alone = TrackedSolver(TrackedCovariance(case.covariance.followed), case.cross)
        np.testing.assert_array_equal(alone.solve([alpha])[0], coef)


def test_another_alpha_asks_the_basis_for_no_further_products(monkeypatch):
    rng = np.random.default_rng(8)
    A, b = make_rows(rng, 300, 40, uneven=False), rng.standard_normal((300, 2))
    case = Case(rng, A, b, 6)
    case.solver.solve([1.0])
    asked = []
    monkeypatch.setattr(MixedRows, "project", lambda *_: asked.append(1))
    case.solver.solve([2.0])
    assert not asked

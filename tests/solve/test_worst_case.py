"""Every answer that a sketch leaves possible lies within the bounds, and some lie on them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ridgepass.sketch import LowRank
from ridgepass.solve.bounds import by_lemma
from ridgepass.solve.worst_case import worst_case

SLACK = 1e-9


def make_sketch(rng, d, rank, loss, decay=1.0):
    """A sketch of any rotation, with squares near one, and its Δ."""
    V = np.linalg.qr(rng.standard_normal((d, d)))[0][:rank]
    squares = np.exp(-decay * np.sort(rng.exponential(size=rank)))
    rows = np.sqrt(squares)[:, None] * V
    return LowRank((rows,), np.eye(rank), squares, 0.0, loss, squares.sum() + loss, loss_bound=loss)


def dense(covariance):
    return covariance.lift(covariance.project(np.eye(covariance.rows[0].shape[1])))


def losses(rng, d, loss, p):
    """Some of the E that are possible, the extremes among them."""
    yield np.zeros((d, d))
    yield loss * np.eye(d)
    for rank in (1, d // 2, d):
        Q = np.linalg.qr(rng.standard_normal((d, d)))[0][:, :rank]
        yield loss * Q @ Q.T
        yield loss * Q @ (rng.random(rank)[:, None] * Q.T)
    for _ in range(10):  # those that turn p as far as they can
        u = p / np.linalg.norm(p) + rng.standard_normal(d) * rng.exponential() / np.sqrt(d)
        u /= np.linalg.norm(u)
        yield loss * np.outer(u, u)


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d = draw(st.integers(1, 12))
    rank = draw(st.integers(1, d))
    alpha = 10.0 ** draw(st.integers(-4, 3))
    loss = 10.0 ** draw(st.integers(-4, 3))
    covariance = make_sketch(rng, d, rank, loss, draw(st.sampled_from([0.0, 1.0, 5.0])))
    # What is solved for, where the answer is measured from, and what it is relative to.
    rest = rng.standard_normal(d)
    M = dense(covariance) + alpha * np.eye(d)
    middle = np.linalg.solve(M + draw(st.sampled_from([0.0, 0.5, 1.0])) * loss * np.eye(d), rest)
    start = middle + draw(st.sampled_from([0.0, 0.1])) * rng.standard_normal(d)
    known = draw(st.sampled_from([0.0, 1.0, 100.0])) * rng.standard_normal(d)
    return rng, covariance, alpha, loss, M, rest, start, start + known


def bounds_of(covariance, alpha, M, rest, start, coef):
    residual = rest - M @ start
    found = worst_case(covariance, alpha, *(v[:, None] for v in (residual, start, coef)))
    return found[0][0], found[1][0]


@given(problem=problems())
@settings(max_examples=300)
def test_no_possible_answer_is_outside(problem):
    rng, covariance, alpha, loss, M, rest, start, coef = problem
    absolute, relative = bounds_of(covariance, alpha, M, rest, start, coef)
    for E in losses(rng, len(M), loss, start):
        y = np.linalg.solve(M + E, rest) - start
        assert np.linalg.norm(y) <= absolute * (1 + SLACK)
        assert np.linalg.norm(y) <= relative * np.linalg.norm(coef + y) * (1 + SLACK)


@given(problem=problems())
@settings(max_examples=60)
def test_nor_is_one_that_climbs_towards_the_bounds(problem):
    rng, covariance, alpha, loss, M, rest, start, coef = problem
    absolute, relative = bounds_of(covariance, alpha, M, rest, start, coef)

    def distance(p):
        return np.linalg.norm(p - start)

    def share(p):
        return distance(p) / np.linalg.norm(p - start + coef)

    for measure, bound in ((distance, absolute), (share, relative)):
        E, step = rng.random() * loss * np.eye(len(M)), 1.0
        best = measure(np.linalg.solve(M + E, rest))
        for _ in range(150):
            turn = rng.standard_normal(len(M))
            tried = E + step * loss * np.outer(turn, turn) * rng.choice([-1, 1])
            values, vectors = np.linalg.eigh(tried)
            tried = (vectors * np.clip(values, 0, loss)) @ vectors.T
            found = measure(np.linalg.solve(M + tried, rest))
            E, best, step = (tried, found, step) if found > best else (E, best, step * 0.97)
        assert best <= bound * (1 + SLACK)


def furthest(covariance, alpha, M, rest, start, loss):
    """The possible answer furthest from ``start``, from a fine search over the multiplier."""
    values, vectors = np.linalg.eigh(M / alpha)
    r, p, delta = vectors.T @ (rest - M @ start) / alpha, vectors.T @ start, loss / alpha
    m, best = values, None
    for k in (1 + np.geomspace(1e-9, 1e9, 20001)) / (values.min() * (values.min() + delta)):
        below = k * m * (m + delta) - 1
        y = k * (delta * r - delta * m * p + 2 * m * r) / (2 * below)
        v = r - m * y
        if delta * (p + y) @ v >= v @ v and (best is None or y @ y > best @ best):
            best = y
    return start + vectors @ best


@pytest.mark.parametrize("rank", [3, 7])  # at d nothing is lost
@pytest.mark.parametrize("loss", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("alpha", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("middle", [0.0, 0.5, 1.0])
def test_the_bound_is_reached_by_some_loss(rank, loss, alpha, middle):
    rng = np.random.default_rng(rank)
    covariance = make_sketch(rng, 8, rank, loss)
    M, rest = dense(covariance) + alpha * np.eye(8), rng.standard_normal(8)
    start = np.linalg.solve(M + middle * loss * np.eye(8), rest)
    p = furthest(covariance, alpha, M, rest, start, loss)
    v = rest - M @ p
    E = np.outer(v, v) / (p @ v)  # of rank one, and E·p = v
    assert np.linalg.norm(E, 2) <= loss * (1 + 1e-6)
    np.testing.assert_allclose(np.linalg.solve(M + E, rest), p, rtol=1e-6, atol=1e-9)
    absolute, relative = bounds_of(covariance, alpha, M, rest, start, start)
    reached = np.linalg.norm(p - start)
    assert reached <= absolute <= 1.03 * reached
    assert reached / np.linalg.norm(p) <= relative * (1 + SLACK)


@pytest.mark.parametrize("loss", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_it_is_no_looser_than_lemma_1(loss, alpha, shift):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        covariance = make_sketch(rng, 10, int(rng.integers(1, 11)), loss)
        M, rest = dense(covariance) + alpha * np.eye(10), rng.standard_normal(10)
        coef = np.linalg.solve(M + shift * loss * np.eye(10), rest)  # fd, or rfd
        absolute, relative = bounds_of(covariance, alpha, M, rest, coef, coef)
        known = max(shift, 1 - shift) * loss
        lemma = by_lemma(alpha, shift * loss, known, np.array([np.linalg.norm(coef)]), np.zeros(1))
        assert absolute <= 1.02 * lemma[0][0]
        assert relative <= 1.04 * lemma[1][0]


@pytest.mark.parametrize("scale", [1e-120, 1e120])
def test_units_of_the_target_do_not_matter(scale):
    rng = np.random.default_rng(0)
    covariance = make_sketch(rng, 6, 3, 0.3)
    vectors = [rng.standard_normal((6, 1)) for _ in range(3)]
    plain = worst_case(covariance, 0.5, *vectors)
    scaled = worst_case(covariance, 0.5, *(scale * v for v in vectors))
    np.testing.assert_allclose(scaled[0] / scale, plain[0], rtol=1e-12)
    np.testing.assert_allclose(scaled[1], plain[1], rtol=1e-12)


def test_each_target_is_bounded_on_its_own():
    rng = np.random.default_rng(1)
    covariance = make_sketch(rng, 6, 3, 0.3)
    vectors = [rng.standard_normal((6, 4)) * [1, 1e-50, 0, 1e50] for _ in range(3)]
    together = worst_case(covariance, 0.5, *vectors)
    for t in range(4):
        alone = worst_case(covariance, 0.5, *(v[:, t : t + 1] for v in vectors))
        for both, one in zip(together, alone, strict=True):
            assert both[t] == pytest.approx(one[0], rel=1e-9)
    assert together[0][2] == together[1][2] == 0.0


def test_where_nothing_was_lost_nothing_is_uncertain():
    rng = np.random.default_rng(2)
    covariance = make_sketch(rng, 6, 6, 0.0)
    M, rest = dense(covariance) + 0.5 * np.eye(6), rng.standard_normal(6)
    coef = np.linalg.solve(M, rest)
    for found in bounds_of(covariance, 0.5, M, rest, coef, coef):
        assert found <= 1e-5  # the root of a rounding error


def test_something_over_an_answer_of_zero_is_unbounded():
    covariance = make_sketch(np.random.default_rng(3), 4, 2, 1.0)
    zero, rest = np.zeros((4, 1)), np.ones((4, 1))
    absolute, relative = worst_case(covariance, 1.0, rest, zero, zero)
    assert absolute[0] > 0
    assert relative[0] >= 1

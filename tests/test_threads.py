import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from ridgepass import RidgeStream, kernels, threads
from ridgepass.kernels import add_product, pieces, product
from same_bits import assert_same_bits


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.mark.parametrize("limit", [1, 2])
def test_alone_has_one_blas_thread_and_puts_back_what_it_found(limit):
    with threadpool_limits(limit, user_api="blas"):
        before = blas_threads()
        assert set(threads.alone(lambda: threads.alone(blas_threads))) == {1}
        assert blas_threads() == before

        def fail():
            raise OverflowError

        with pytest.raises(OverflowError):
            threads.alone(fail)
        assert blas_threads() == before


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_each_does_every_piece_once_on_as_many_threads_as_blas_has(limit):
    done, who, all_there = [], set(), threading.Barrier(limit)

    def task(piece):
        if piece < limit:  # nobody takes a second piece before everybody has one
            all_there.wait(60)
        done.append(piece)
        who.add(threading.current_thread())

    with threadpool_limits(limit, user_api="blas"):
        threads.each(task, range(12))
    assert sorted(done) == list(range(12))
    assert len(who) == limit


@pytest.mark.parametrize("limit", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 1 << 21, 1 << 40])
def test_a_sum_is_the_same_on_any_number_of_threads(limit, size):
    terms = np.random.default_rng(0).standard_normal((50, 3, 2)).astype(np.float32)
    expected = threads.summed(lambda i: terms[i], range(50), size)
    with threadpool_limits(limit, user_api="blas"):
        found = threads.summed(lambda i: terms[i], range(50), size)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(found, terms.sum(axis=0, dtype=np.float64), rtol=1e-12, atol=1e-12)
    assert found.dtype == np.float64


def test_two_callers_take_turns():
    inside, most = [], []

    def task(_):
        inside.append(None)
        most.append(len(inside))
        time.sleep(0.001)
        inside.pop()

    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(3) as callers:
        before = blas_threads()
        list(callers.map(lambda _: threads.each(task, range(20)), range(6)))
        assert blas_threads() == before
    assert len(most) == 120
    assert max(most) <= 2


@pytest.mark.parametrize("limit", [1, 2])
def test_what_a_piece_raises_comes_out_and_nothing_goes_on_behind(limit):
    running = []

    def task(piece):
        if piece == 3:
            raise OverflowError("piece 3")
        running.append(piece)
        time.sleep(0.01)
        running.remove(piece)

    with threadpool_limits(limit, user_api="blas"):
        with pytest.raises(OverflowError, match="piece 3"):
            threads.each(task, range(12))
        assert not running


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_are_the_same_on_any_number_of_threads(dtype):
    rng = np.random.default_rng(0)
    d = 3 * kernels.PIECE_COLUMNS + 77
    rows, points = rng.standard_normal((130, d)), rng.standard_normal((40, d))
    rows, points = rows.astype(dtype), points.astype(dtype)
    last, weights = rng.standard_normal(d).astype(dtype), rng.standard_normal((131, 40))
    weights = weights.astype(dtype)
    assert len(list(pieces(d, 130 * 40))) > 1
    found = []
    for limit in (1, 2, 3):
        with threadpool_limits(limit, user_api="blas"):
            out = np.ones((40, d), dtype)
            add_product(out, weights[:130], rows, weights[130:], last)
            found.append((product(rows, points), out))
    exact = rows.astype(float) @ points.T.astype(float)
    image = 1 + weights.T.astype(float) @ np.vstack([rows, last]).astype(float)
    unit = np.finfo(dtype).eps
    assert np.abs(found[0][0] - exact).max() < 30 * np.sqrt(d) * unit
    assert np.abs(found[0][1] - image).max() < 300 * unit
    for product_, image_ in found[1:]:
        assert np.array_equal(product_, found[0][0])
        assert np.array_equal(image_, found[0][1])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_stream_is_the_same_on_any_number_of_threads(dtype):
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((1200, 9000)).astype(dtype)
    coefs = []
    for limit in (1, 2):
        with threadpool_limits(limit, user_api="blas"):
            stream = RidgeStream("tracked", sketch_size=32, fit_intercept=True, alpha=100.0)
            stream.update(rows, rows[:, 0])
        with threadpool_limits(1, user_api="blas"):
            coefs.append(stream.solve(100.0))
    assert np.array_equal(*coefs)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_small_batches_are_the_same_on_any_number_of_threads(dtype):
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((2000, 900)).astype(dtype)

    def learn(part, n_rows):
        stream = RidgeStream("tracked", sketch_size=16, fit_intercept=True, alpha=100.0)
        for start in range(0, len(part), n_rows):
            stream.update(part[start : start + n_rows], part[start : start + n_rows, 0])
        return stream

    found = []
    for limit, n_rows in ((1, 1000), (2, 1000), (2, 100), (2, 7)):
        with threadpool_limits(limit, user_api="blas"):
            stream = learn(rows[:1000], n_rows).merge(learn(rows[1000:], n_rows))
        found.append(stream)
    for other in found[1:]:
        assert_same_bits(other, found[0])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_after_a_fork_has_threads_of_its_own():
    program = """
import os, numpy as np
from threadpoolctl import threadpool_limits
from ridgepass import threads
threadpool_limits(2, user_api="blas")
done = []
threads.each(done.append, range(8))
child = os.fork()
if not child:
    threads.each(done.append, range(8))
    os._exit(0 if len(done) == 16 else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=60)

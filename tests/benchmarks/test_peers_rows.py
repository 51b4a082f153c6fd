"""Workloads, their files, and exact ridge on them."""

import numpy as np
import pytest
from scipy import sparse

from benchmarks.peers.reference import Judge, conjugate_gradients, exact_ridge
from benchmarks.peers.storage import CannotRunError, Rows, text_bytes, write, write_text
from benchmarks.peers.workloads import FULL, TEST, TRAIN, Workload

DENSE = Workload("tiny", "LR", 1300, 40, 8.0, dtype="float32")
SPARSE = Workload("tiny", "Zipf", 4500, 80, 1.0, nonzeros=5)
WIDE = Workload("tiny", "HR", 30, 90, 8.0, dtype="float32")


@pytest.fixture(params=[DENSE, SPARSE], ids=["dense", "sparse"])
def workload(request):
    return request.param


@pytest.fixture
def rows(workload, tmp_path):
    write(workload, tmp_path)
    return Rows(tmp_path)


def dense(A):
    return np.asarray(A.toarray() if sparse.issparse(A) else A, np.float64)


def test_what_is_read_is_what_was_drawn(workload, rows):
    drawn = np.vstack([dense(A) for A, _ in workload.parts(TRAIN)])
    targets = np.concatenate([b for _, b in workload.parts(TRAIN)])
    whole, b = rows.whole()
    read = np.vstack([dense(A) for A, _ in rows.batches()])
    assert drawn.shape == (workload.n_rows, workload.n_features)
    assert np.array_equal(dense(whole), drawn)
    assert np.array_equal(read, drawn)
    assert np.array_equal(b, targets)
    assert whole.dtype == workload.dtype


def test_batches_are_no_longer_than_asked_and_a_pass_counts_once_read(rows):
    lengths = [(A.shape[0], len(b)) for A, b in rows.batches(77)]
    assert max(lengths) == (77, 77)
    assert sum(n for n, _ in lengths) == rows.n_rows
    assert rows.passes == 1
    next(rows.batches())
    assert rows.passes == 1


def test_a_pass_that_would_take_too_long_is_given_up(rows):
    hurried = Rows(rows.folder, time_limit=1e-9)
    with pytest.raises(CannotRunError, match=r"one pass would take \d+ s"):
        list(hurried.batches(10))


def test_test_rows_are_others_from_the_same_model(workload):
    train, test = (np.vstack([dense(A) for A, _ in workload.parts(p)]) for p in (TRAIN, TEST))
    assert len(test) == workload.n_rows // 8
    assert not np.array_equal(train[: len(test)], test)
    assert np.square(test).mean() == pytest.approx(np.square(train).mean(), rel=0.2)


def test_the_text_holds_the_rows(rows, tmp_path):
    write_text(rows, rows.text)
    A, b = rows.whole()
    lines = rows.text.read_text(encoding="ascii").splitlines()
    assert len(lines) == rows.n_rows
    for i in (0, rows.n_rows - 1):
        target, _, features = lines[i].partition(" | ")
        row = np.zeros(rows.n_features)
        for pair in features.split():
            j, value = pair.split(":")
            row[int(j)] = float(value)
        assert float(target) == pytest.approx(b[i], rel=1e-6)
        assert row == pytest.approx(dense(A[i : i + 1])[0], rel=1e-6)


def test_each_kind_has_a_workload_whose_gram_matrix_is_over_four_gigabytes():
    for of_sparse in (False, True):
        sizes = [8 * w.n_features**2 for w in FULL if w.sparse == of_sparse]
        assert len(sizes) == 3
        assert max(sizes) > 4e9


def test_the_length_of_the_text_is_foreseen(workload, rows):
    write_text(rows, rows.text)
    assert 0.6 < rows.text.stat().st_size / text_bytes(workload) < 1.6


@pytest.mark.parametrize("workload", [DENSE, SPARSE, WIDE])
def test_exact_ridge(workload, rows):
    A, b = rows.whole()
    A = dense(A)
    x = np.linalg.solve(A.T @ A + workload.alpha * np.eye(A.shape[1]), A.T @ b)
    assert exact_ridge(rows, workload.alpha) == pytest.approx(x, rel=1e-8, abs=1e-11)


def test_a_solution_that_is_not_proved_is_refused():
    with pytest.raises(ArithmeticError, match="not reached"):
        conjugate_gradients(lambda x: x + 1e-3, np.ones(3), 1.0)


def test_the_judge(workload, rows):
    judge = Judge(workload, rows)
    none, zero = judge.errors(judge.exact), judge.errors(np.zeros(workload.n_features))
    assert (none.coef, none.test) == (0, 1)
    assert zero.coef == 1
    (targets,) = [np.concatenate([b for _, b in workload.parts(TEST)])]
    assert zero.test == pytest.approx(np.square(targets).mean() / judge.least)
    assert judge.errors(2 * judge.exact).coef == pytest.approx(1)

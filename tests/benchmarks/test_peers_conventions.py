"""Each tool, run for long, solves ridge at the alpha it was told, and not at its half or double."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from benchmarks.peers.contenders import BY_KEY
from benchmarks.peers.storage import CannotRunError, Rows, write, write_text
from benchmarks.peers.tools import components, ours, river_linear, sgd, stacked_svd, vowpal
from benchmarks.peers.workloads import Workload
from ridgepass import RidgeStream

ALPHA = 100.0
DENSE = Workload("tiny", "HR", 600, 12, ALPHA)
SPARSE = Workload("tiny", "Zipf", 600, 12, ALPHA, nonzeros=6)


@pytest.fixture(scope="module", params=[DENSE, SPARSE], ids=["dense", "sparse"])
def rows(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    write(request.param, folder)
    made = Rows(folder)
    write_text(made, made.text)
    return made


def exact(rows, alpha):
    A, b = rows.whole()
    A = A.toarray() if rows.sparse else A
    return np.linalg.solve(A.T @ A + alpha * np.eye(A.shape[1]), A.T @ b)


def distance(coef, x):
    return np.linalg.norm(coef - x) / np.linalg.norm(x)


def descended(rows):
    """River on all rows at once, again and again: plain gradient descent, until it stands still."""
    A, b = rows.whole()
    A = A.toarray() if rows.sparse else A
    model = river_linear.started(rows, ALPHA)
    for _ in range(4000):
        river_linear.learn_frame(model, A, b)
    return np.array([model.weights[j] for j in range(rows.n_features)])


def sgd_for_long(rows):
    settings = {"learning_rate": "constant", "eta0": 3e-3, "average": True}
    return sgd.trained(rows, sgd.started(rows, ALPHA, **settings), epochs=300)


def vowpal_for_long(rows):
    settings = "--sgd -l 0.2 --power_t 0.7 --initial_t 1 --passes 300"
    return vowpal.run(rows, settings, ALPHA)


def vowpal_bfgs(rows):
    return vowpal.fit(rows, ALPHA, bfgs=True)


@pytest.mark.parametrize(
    ("train", "tolerance"),
    [(descended, 1e-6), (sgd_for_long, 0.05), (vowpal_for_long, 0.02), (vowpal_bfgs, 1e-3)],
)
def test_a_long_run_is_ridge_at_this_alpha(rows, train, tolerance):
    coef = train(rows)
    assert distance(coef, exact(rows, ALPHA)) < tolerance
    for wrong in (ALPHA / 2, 2 * ALPHA):
        assert distance(coef, exact(rows, wrong)) > 2 * tolerance


@pytest.mark.parametrize(("key", "tolerance"), [("cholesky", 1e-10), ("lsqr", 0.01), ("sag", 1e-3)])
def test_scikit_learn_in_memory(rows, key, tolerance):
    assert distance(BY_KEY[key].fit(rows, ALPHA), exact(rows, ALPHA)) < tolerance
    assert rows.passes == 1 if key == "cholesky" else rows.passes > 1


@pytest.mark.parametrize("method", ["tracked", "rfd", "exact"])
def test_ridgepass_with_room_for_everything_is_exact(rows, method):
    assert distance(ours.fit(rows, ALPHA, method, 64), exact(rows, ALPHA)) < 1e-10


def test_ridge_on_every_component_is_ridge(rows):
    assert distance(components.fit(rows, ALPHA, n_components=12), exact(rows, ALPHA)) < 1e-10


def test_ridge_on_few_components_is_ridge_on_what_they_span(rows):
    coef = components.fit(rows, ALPHA, n_components=3)
    assert 0.01 < distance(coef, exact(rows, ALPHA)) < 1.5


def test_the_stacked_svd_is_frequent_directions(rows):
    A, b = rows.whole()
    fd = RidgeStream("fd", sketch_size=4, fit_intercept=False).update(A, b)
    assert distance(stacked_svd.fit(rows, ALPHA, size=4), fd.solve(ALPHA)) < 1e-10
    assert distance(stacked_svd.fit(rows, ALPHA, size=16), exact(rows, ALPHA)) < 1e-10


def test_tuning_beats_the_defaults_and_its_passes_count(rows):
    x = exact(rows, ALPHA)
    rows.passes = 0
    default = sgd.fit(rows, ALPHA, tuned=False)
    assert rows.passes == 1
    tuned = sgd.fit(rows, ALPHA, tuned=True)
    assert rows.passes == 1 + 1 + sgd.EPOCHS
    A, b = rows.whole()
    errors = [np.square(A @ coef - b).mean() for coef in (tuned, default, x)]
    assert errors[0] <= 1.01 * errors[1]
    assert errors[0] < 1.1 * errors[2]


def test_rates_that_diverge_are_told(rows, monkeypatch):
    monkeypatch.setattr(sgd, "RATES", (1e200,))
    with pytest.raises(CannotRunError, match="diverged at every"):
        sgd.fit(rows, ALPHA, tuned=True)


def test_river_takes_sparse_rows_as_dictionaries(rows):
    coef = river_linear.fit(rows, ALPHA)
    assert distance(coef, exact(rows, ALPHA)) < 1


def test_vowpal_wabbit_counts_its_passes(rows):
    vowpal.run(rows, "--sgd --passes 3", ALPHA)
    assert rows.passes == 3
    vowpal.fit(rows, ALPHA, bfgs=False)
    assert rows.passes == 1


def test_exact_needs_room_for_the_gram_matrix(rows):
    small = Rows(rows.folder, memory_limit=8 * 12**2 - 1)
    with pytest.raises(CannotRunError, match=r"d² numbers are 1\.15e-06 GB"):
        ours.fit(small, ALPHA, "exact")


def test_the_alpha_of_scikit_learn_is_the_one_meant(rows):
    A, b = rows.whole()
    model = Ridge(ALPHA, fit_intercept=False, solver="cholesky").fit(A, b)
    assert distance(model.coef_, exact(rows, ALPHA)) < 1e-10

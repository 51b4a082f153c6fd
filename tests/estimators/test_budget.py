"""Memory budgets, and what auto comes to."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator_data import regression
from ridgepass.estimators import StreamingRidge, StreamingRidgeClassifier
from ridgepass.estimators.budget import (
    EXACT_UP_TO,
    Plan,
    exact_bytes,
    largest_sketch,
    make_plan,
    parse_memory,
    sketch_bytes,
)
from ridgepass.sketch import SKETCHES


@pytest.mark.parametrize(
    ("memory", "wanted"),
    [
        (None, None),
        (4096, 4096),
        (2e9, 2 * 10**9),
        (np.int64(77), 77),
        ("100", 100),
        ("100B", 100),
        ("512MB", 512 * 10**6),
        ("2GB", 2 * 10**9),
        ("2 gb", 2 * 10**9),
        ("1.5 GiB", 3 * 2**29),
        (".5KiB", 512),
        ("3k", 3000),
        (" 1 TB ", 10**12),
    ],
)
def test_amounts_of_memory(memory, wanted):
    assert parse_memory(memory) == wanted


@pytest.mark.parametrize(
    "memory",
    ["", "GB", "1 XB", "-1MB", "1e3", "iB", "1 iB", 0, -5, np.nan, np.inf, True, [1], b"1"],
)
def test_what_is_no_amount_of_memory(memory):
    with pytest.raises(ValueError, match="is not an amount of memory: give bytes, or text"):
        parse_memory(memory)


@given(
    memory=st.integers(1, 10**8),
    n_features=st.integers(1, 5000),
    n_targets=st.integers(1, 5),
    itemsize=st.sampled_from([4, 8]),
    method=st.sampled_from(["rfd", "tracked"]),
    probes=st.sampled_from([0, 24]),
)
def test_the_largest_sketch_that_fits(memory, n_features, n_targets, itemsize, method, probes):
    shape = n_features, n_targets, itemsize, probes
    size = largest_sketch(method, memory, *shape)
    sizes = range(2, max(n_features, 2) + 1)
    fitting = [other for other in sizes if sketch_bytes(method, other, *shape) <= memory]
    assert size == max(fitting, default=0)


@pytest.mark.parametrize("method", SKETCHES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("memory", "probes"), [("70 KB", 0), ("200 KB", 0), ("200 KB", 24), ("450 KB", 24), ("1 MB", 3)]
)
def test_the_model_stays_within_its_budget(method, dtype, memory, probes):
    X, y = regression(n_rows=600, n_features=120, n_targets=2, dtype=dtype)
    options = {"memory": memory, "probes": probes, "standardize": True, "random_state": 0}
    model = StreamingRidge(method=method, **options)
    if method == "exact" and parse_memory(memory) < exact_bytes(120, 2):
        with pytest.raises(ValueError, match=f"give at least {exact_bytes(120, 2)} bytes"):
            model.fit(X, y)
        return
    model.partial_fit(X[:350], y[:350]).partial_fit(X[350:], y[350:])
    assert model.method_ == method
    assert model._learned.stream.nbytes <= parse_memory(memory)
    model.predict(X)
    if method == "exact":
        assert model.sketch_size_ == 256
        return
    wanted = largest_sketch(method, parse_memory(memory), 120, 2, X.itemsize, probes)
    assert model.sketch_size_ == wanted
    assert model._learned.stream.nbytes > 0.3 * parse_memory(memory) or wanted == 120


def test_auto_without_a_budget():
    for n_features, method in ((EXACT_UP_TO * 10, "exact"), (EXACT_UP_TO * 10 + 1, "tracked")):
        X = np.ones((3, n_features))
        model = StreamingRidge(sketch_size=10).fit(X, [1.0, 2.0, 3.0])
        assert (model.method_, model.sketch_size_) == (method, 10)


def test_auto_within_a_budget():
    def plan(memory):
        return make_plan("auto", 17, memory, n_features=1000, n_targets=1, itemsize=8, probes=24)

    least = exact_bytes(1000, 1)
    assert plan(least).method == "exact"
    assert plan(least - 1).method == "tracked"
    assert plan(least - 1).sketch_size > 500
    assert plan(10**6).sketch_size == largest_sketch("tracked", 10**6, 1000, 1, 8, 24)


def test_auto_is_tracked_however_many_targets_there_are():
    for n_targets in (1, 12, 500):
        shape = {"n_features": 100, "n_targets": n_targets, "itemsize": 8, "probes": 24}
        assert make_plan("auto", 12, None, **shape) == Plan("tracked", 12)


def test_too_small_a_budget_names_the_least():
    X, y = regression(n_features=50)
    least = sketch_bytes("tracked", 2, 50, 1, 8, 24)
    text = f"StreamingRidge: memory=100 .* at least {least} bytes, or probes=0"
    with pytest.raises(ValueError, match=text):
        StreamingRidge(memory=100).fit(X, y)
    assert StreamingRidge(memory=least).fit(X, y).sketch_size_ == 2


def test_classes_count_as_targets():
    X, _ = regression(n_features=200)
    sizes = []
    for n_classes in (2, 50):
        y = np.arange(len(X)) % n_classes
        sizes.append(StreamingRidgeClassifier(memory="400KB").fit(X, y).sketch_size_)
    assert sizes[0] > sizes[1]

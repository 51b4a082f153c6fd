"""Models whose arrays cannot be written to: those of a mapped file, and those that joblib maps."""

import joblib
import numpy as np
import pytest

import ridgepass
from ridgepass import StreamingRidge, StreamingRidgeClassifier, StreamingRidgeCV
from ridgepass.snapshot import own_arrays
from store.models import assert_same, batch, streams_of
from streams import METHODS


def as_file(model, path):
    model.save(path)
    return ridgepass.load(path)


def as_joblib(model, path):
    joblib.dump(model, path)
    return joblib.load(path, mmap_mode="r")


WAYS = {"file": as_file, "joblib": as_joblib}


def arrays_of(holder):
    """The arrays of an object of ours and of those in it."""
    for value in vars(holder).values():
        if isinstance(value, np.ndarray):
            yield value
        elif hasattr(value, "__dict__") and type(value).__module__.startswith("ridgepass."):
            yield from arrays_of(value)


def is_mapped(array):
    """Whether an array lies in a file; the buffers of a block that is empty need not."""
    return not array.flags.writeable


def new(method, scaling, **options):
    options = {"sketch_size": 4, "random_state": 3, "standardize": scaling, **options}
    return StreamingRidge(0.5, method=method, **options)


@pytest.mark.parametrize("scaling", [False, True])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("way", WAYS)
def test_training_copies_what_it_changes(way, method, is_sparse, scaling, tmp_path):
    path = tmp_path / "model"
    # Some rows wait for their block in each; the last batch has other means and deviations.
    model = new(method, scaling).partial_fit(*batch(267, is_sparse=is_sparse))
    other = new(method, scaling).partial_fit(*batch(75, seed=2, is_sparse=is_sparse))
    more = [batch(3, seed=3, is_sparse=is_sparse), batch(300, seed=4, is_sparse=is_sparse, scale=9)]
    model.predict(batch(2)[0])  # what an answer leaves behind lies in joblib's file too
    found = WAYS[way](model, path)
    before = path.read_bytes()
    state = found._learned.stream._state
    main = state.sketch.matrix if method == "exact" else next(arrays_of(state.sketch))
    assert is_mapped(main)
    assert is_mapped(state.moments.cross)
    assert_same(found, model)
    found.refine(*batch(267, is_sparse=is_sparse)[:2])
    assert is_mapped(state.moments.cross)  # which changes nothing
    for part in more:
        assert_same(found.partial_fit(*part), model.partial_fit(*part))
    assert path.read_bytes() == before
    whole = WAYS[way](model, path)
    before = path.read_bytes()
    assert_same(whole.merge(other), model.merge(other))
    assert path.read_bytes() == before


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_a_model_in_memory_takes_in_one_in_a_file(way, is_sparse, tmp_path):
    path = tmp_path / "model"
    for method in METHODS:
        part = new(method, True).partial_fit(*batch(75, seed=2, is_sparse=is_sparse, scale=50.0))
        mapped = WAYS[way](part, path)
        before = path.read_bytes()
        one, two = (new(method, True).partial_fit(*batch(90, is_sparse=is_sparse)) for _ in "ab")
        assert_same(one.merge(mapped), two.merge(part))
        more = batch(300, is_sparse=is_sparse)
        assert_same(one.partial_fit(*more), two.partial_fit(*more))
        assert_same(mapped, part)
        assert path.read_bytes() == before


@pytest.mark.parametrize("way", WAYS)
def test_folds_and_classes(way, tmp_path):
    path, labels = tmp_path / "model", np.array(["ash", "elm", "oak"])
    X, y, _ = batch(100)
    folds = StreamingRidgeCV([0.1, 1.0], cv=3, method="rfd", sketch_size=4).partial_fit(X, y)
    classifier = StreamingRidgeClassifier(method="fd", sketch_size=4)
    classifier.partial_fit(X, labels[np.arange(100) % 3], classes=labels)
    for model, targets in ((folds, y), (classifier, labels[np.arange(100) % 3])):
        found = WAYS[way](model, path)
        before = path.read_bytes()
        assert all(is_mapped(stream._state.moments.cross) for stream in streams_of(found))
        np.testing.assert_array_equal(found.predict(X), model.predict(X))
        assert_same(found.partial_fit(X, targets), model.partial_fit(X, targets))
        assert path.read_bytes() == before


@pytest.mark.parametrize("method", METHODS)
def test_no_array_of_a_stream_in_training_is_read_only(method, tmp_path):
    model = new(method, True).partial_fit(*batch(100))
    for way in WAYS.values():
        found = way(model, tmp_path / "model").partial_fit(*batch(1))
        assert all(array.flags.writeable for array in arrays_of(found._learned.stream._state))


def test_a_copy_lies_in_memory_as_the_array_did():
    class Holder:
        pass

    holder = Holder()
    holder.turned = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    holder.own = np.zeros(3)
    own, turned = holder.own, holder.turned
    turned.flags.writeable = False
    own_arrays(holder)
    assert holder.own is own
    assert holder.turned is not turned
    assert holder.turned.flags.f_contiguous
    assert holder.turned.flags.writeable
    np.testing.assert_array_equal(holder.turned, turned)

"""Frames in estimators: values, feature names, and what happens when names change."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from estimator_data import frozen, regression
from ridgepass.estimators import StreamingRidge, StreamingRidgeClassifier

NAMES = ["a", "b", "c", "d"]


def exact():
    return StreamingRidge(method="exact")


def columns(X, names=NAMES):
    return {name: X[:, i] for i, name in enumerate(names)}


KINDS = {
    "pandas": lambda X, names=NAMES: pd.DataFrame(X, columns=names),
    "polars": lambda X, names=NAMES: pl.DataFrame(columns(X, names)),
    "pyarrow": lambda X, names=NAMES: pa.table(columns(X, names)),
    "reader": lambda X, names=NAMES: pa.table(columns(X, names)).to_reader(max_chunksize=30),
    "duckdb": lambda X, names=NAMES: duckdb.from_arrow(pa.table(columns(X, names))),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_frame_is_its_numbers_and_its_names(kind, dtype):
    X, y = regression(n_features=4, dtype=dtype)
    make = KINDS[kind]
    model = exact().fit(make(X), y)
    model.partial_fit(make(X[:7]), y[:7])
    plain = exact().fit(X, y).partial_fit(X[:7], y[:7])
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_array_equal(model.predict(make(X)), plain.predict(X))
    assert model.score(make(X), y) == plain.score(X, y)
    assert model.feature_names_in_.tolist() == NAMES
    assert model.to_sklearn().feature_names_in_.tolist() == NAMES
    assert not hasattr(plain, "feature_names_in_")


@pytest.mark.parametrize("kind", KINDS)
def test_other_names_are_refused(kind):
    X, y = regression(n_features=4)
    make = KINDS[kind]
    model = exact().fit(make(X), y)
    before = frozen(model)
    cases = {
        "same order": make(X, ["b", "a", "c", "d"]),
        "unseen at fit time:\n- z\n.*now missing:\n- d\n": make(X, ["a", "b", "c", "z"]),
        "now missing:\n- d\n": make(X[:, :3], NAMES[:3]),
        "unseen at fit time:\n- city": make(np.c_[X, X[:, 0]], [*NAMES, "city"]),
    }
    for message, table in cases.items():
        with pytest.raises(ValueError, match=f"(?s)The feature names should match.*{message}"):
            model.partial_fit(table, y)
    for message, table in cases.items():
        if kind != "reader":  # which can be read once
            with pytest.raises(ValueError, match=f"(?s)The feature names should match.*{message}"):
                model.predict(table)
    assert frozen(model) == before


@pytest.mark.parametrize("kind", KINDS)
def test_names_on_one_side_only_are_a_warning(kind):
    X, y = regression(n_features=4)
    make = KINDS[kind]
    with pytest.warns(UserWarning, match="X does not have valid feature names, but StreamingRidge"):
        exact().fit(make(X), y).predict(X)
    with pytest.warns(UserWarning, match="X has feature names, but StreamingRidge was fitted"):
        exact().fit(X, y).predict(make(X))


def test_fit_forgets_names():
    X, y = regression(n_features=4)
    model = exact().fit(pd.DataFrame(X, columns=NAMES), y)
    model.fit(X[:, :2], y)
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 2
    assert model.fit(pd.DataFrame(X), y).n_features_in_ == 4
    assert not hasattr(model, "feature_names_in_")


def test_text_and_nulls_are_named_by_the_estimator():
    X, y = regression(n_features=4)
    table = pd.DataFrame(X, columns=NAMES).assign(city="Ulm")
    with pytest.raises(ValueError, match=r"StreamingRidge: column 'city' .*OneHotEncoder"):
        exact().fit(table, y)
    missing = pl.DataFrame(columns(X)).with_columns(pl.lit(None, pl.Int64).alias("c"))
    with pytest.raises(ValueError, match="StreamingRidge: column 'c' has missing values"):
        exact().fit(missing, y)


def test_targets_from_frames():
    X, y = regression(n_features=4, n_targets=2)
    wanted = exact().fit(X, y).coef_
    for table in (
        pd.DataFrame(y, columns=["p", "q"]),
        pl.DataFrame({"p": y[:, 0], "q": y[:, 1]}),
        pa.table({"p": y[:, 0], "q": y[:, 1]}),
    ):
        np.testing.assert_array_equal(exact().fit(X, table).coef_, wanted)
    one = exact().fit(X, y[:, 0]).coef_
    for series in (pd.Series(y[:, 0]), pl.Series(y[:, 0]), pa.array(y[:, 0])):
        np.testing.assert_array_equal(exact().fit(X, series).coef_, one)
    weights = np.arange(1.0, 1 + len(X))
    weighted = exact().fit(X, y, weights).coef_
    for series in (pd.Series(weights), pl.Series(weights), pa.array(weights)):
        np.testing.assert_array_equal(exact().fit(X, y, series).coef_, weighted)


def test_labels_from_frames():
    X, y = regression(n_features=4)
    labels = np.where(y > y.mean(), "high", "low")
    wanted = StreamingRidgeClassifier().fit(X, labels).predict(X)
    for series in (pd.Series(labels), pl.Series(labels), pa.array(labels.tolist())):
        np.testing.assert_array_equal(StreamingRidgeClassifier().fit(X, series).predict(X), wanted)

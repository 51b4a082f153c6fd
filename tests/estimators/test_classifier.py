"""StreamingRidgeClassifier is scikit-learn's RidgeClassifier when its method is exact."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import RidgeClassifier

from estimator_data import classification, frozen, split
from ridgepass.estimators import StreamingRidgeClassifier

NAMES = np.array(["oak", "ash", "elm", "yew"])


def exact(**parameters):
    return StreamingRidgeClassifier(method="exact", **parameters)


@pytest.mark.parametrize("n_classes", [1, 2, 4])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0}])
@pytest.mark.parametrize("weighted", [True, False])
def test_agrees_with_ridge_classifier(n_classes, fit_intercept, class_weight, weighted):
    X, y = classification(n_classes)
    if isinstance(class_weight, dict):  # scikit-learn wants a weight for every class
        full = dict.fromkeys(range(n_classes), 1.0) | class_weight
    else:
        full = class_weight
    weights = np.random.default_rng(1).exponential(size=len(X)) if weighted else None
    options = {"alpha": 2.0, "fit_intercept": fit_intercept}
    ours = exact(class_weight=class_weight, **options).fit(X, y, weights)
    theirs = RidgeClassifier(class_weight=full, **options).fit(X, y, weights)
    assert ours.coef_.shape == theirs.coef_.shape
    assert np.shape(ours.intercept_) == np.shape(theirs.intercept_)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-8, atol=1e-9)
    scores = theirs.decision_function(X)
    np.testing.assert_allclose(ours.decision_function(X), scores, rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    assert ours.score(X, y) == theirs.score(X, y)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_agrees_on_several_labels_a_row(class_weight):
    X, Y = make_multilabel_classification(n_samples=200, n_classes=4, random_state=0)
    ours = exact(class_weight=class_weight).fit(X, Y)
    theirs = RidgeClassifier(class_weight=class_weight).fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_array_equal(ours.to_sklearn().predict(X), theirs.predict(X))
    if class_weight is None:
        batches = exact()
        for rows in split(len(X)):
            batches.partial_fit(X[rows], Y[rows])
        np.testing.assert_array_equal(batches.coef_, ours.coef_)


@pytest.mark.parametrize(
    "labels",
    [
        NAMES,
        NAMES.astype(object),
        np.array([10, -2, 3, 7]),
        np.array([0.0, 4.0, 2.0, 1.0]),
    ],
    ids=["text", "objects", "integers", "floats"],
)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_batches_of_any_label_type(labels, n_classes):
    X, kinds = classification(n_classes)
    y = labels[kinds]
    whole = exact().fit(X, y)
    batches = exact()
    for i, rows in enumerate(split(len(X))):
        batches.partial_fit(X[rows], y[rows], classes=labels[:n_classes] if i == 0 else None)
    np.testing.assert_array_equal(batches.coef_, whole.coef_)
    np.testing.assert_array_equal(batches.predict(X), whole.predict(X))
    np.testing.assert_array_equal(batches.classes_, np.sort(labels[:n_classes]))
    assert batches.score(X, y) > 0.8


def test_labels_from_lists_and_series():
    X, kinds = classification(3)
    y = NAMES[kinds]
    wanted = exact().fit(X, y).predict(X)
    for given in (
        y.tolist(),
        pd.Series(y),
        pd.Series(y, dtype="category"),
        pd.Series(y, dtype=str),
    ):
        np.testing.assert_array_equal(exact().fit(X, given).predict(X), wanted)
        model = exact().partial_fit(X, given, classes=pd.Series(NAMES[:3]))
        np.testing.assert_array_equal(model.predict(X), wanted)


def test_one_row_at_a_time_with_a_class_that_never_comes():
    X, kinds = classification(3)
    whole = exact().partial_fit(X, NAMES[kinds], classes=NAMES)
    rows = exact()
    for row, kind in zip(X, kinds, strict=True):
        rows.partial_fit([row], [NAMES[kind]], classes=NAMES)
    np.testing.assert_array_equal(rows.coef_, whole.coef_)
    assert "yew" not in rows.predict(X)


def test_a_thousand_classes_in_small_batches_warn_of_nothing():
    rng = np.random.default_rng(0)
    model = exact(alpha=0.1)
    centres = 3 * rng.standard_normal((1000, 8))
    for _ in range(3):
        kinds = rng.integers(1000, size=40)
        model.partial_fit(centres[kinds], kinds, classes=np.arange(1000))
    assert model.coef_.shape == (1000, 8)


def test_weights_of_classes_in_batches():
    X, kinds = classification(3)
    y = NAMES[kinds]
    weights = {"oak": 5.0, "ash": 0.0}
    whole = exact(class_weight=weights).fit(X, y)
    batches = exact(class_weight=weights)
    for rows in split(len(X)):
        batches.partial_fit(X[rows], y[rows], classes=NAMES[:3])
    np.testing.assert_array_equal(batches.coef_, whole.coef_)
    assert batches.n_samples_seen_ == (y != "ash").sum()


@pytest.mark.parametrize("labels", [NAMES[:1], NAMES[:2], NAMES[:4]])
def test_to_sklearn_predicts_the_same(labels):
    X, kinds = classification(len(labels))
    ours = StreamingRidgeClassifier(alpha=3.0, method="rfd", sketch_size=4).fit(X, labels[kinds])
    plain = ours.to_sklearn()
    assert type(plain) is RidgeClassifier
    assert plain.alpha == 3.0
    assert plain.n_features_in_ == X.shape[1]
    np.testing.assert_array_equal(plain.classes_, ours.classes_)
    np.testing.assert_allclose(plain.decision_function(X), ours.decision_function(X), rtol=1e-10)
    np.testing.assert_array_equal(plain.predict(X), ours.predict(X))


def test_a_certificate_for_each_class():
    X, kinds = classification(3)
    proof = StreamingRidgeClassifier(method="rfd", sketch_size=8).fit(X, kinds).certificate()
    assert proof.coef_bound.shape == (3,)
    X, kinds = classification(2)
    proof = StreamingRidgeClassifier(method="rfd", sketch_size=8).fit(X, kinds).certificate()
    assert np.ndim(proof.coef_bound) == 0


def test_merging_classifiers():
    X, kinds = classification(3)
    y = NAMES[kinds]
    parts = [exact().partial_fit(X[r], y[r], classes=NAMES[:3]) for r in split(len(X))]
    merged = exact()
    for part in parts:
        merged.merge(part)
    whole = exact().fit(X, y)
    np.testing.assert_allclose(merged.coef_, whole.coef_, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(merged.predict(X), whole.predict(X))


BAD_BATCHES = {
    "unseen label": (lambda X, y: (X, ["oak"] * (len(y) - 1) + ["fir"]), "'fir' in row 299"),
    "number for text": (lambda X, y: (X, np.arange(len(y))), "label 0 in row 0"),
    "nan": (lambda X, y: (X, np.full(len(y), np.nan)), "y contains NaN in row 0"),
    "none": (lambda X, y: (X, [None, *y[1:]]), re.escape("no label (None) in row 0")),
    "too few": (lambda X, y: (X, y[1:]), "300 rows but y has 299"),
    "columns": (lambda X, y: (X, np.ones((len(y), 3), int)), "first partial_fit"),
    "bytes": (lambda X, y: (X, y.astype("S")), re.escape("dtype |S3")),
    "several": (lambda X, y: (X, np.c_[y, y]), "Unknown label type"),
    "bad row": (lambda X, y: (np.where(X[3, 1] == X, np.inf, X), y), "infinity in row 3, column 1"),
}


@pytest.mark.parametrize("case", BAD_BATCHES)
def test_a_bad_batch_changes_nothing(case):
    make, message = BAD_BATCHES[case]
    X, kinds = classification(3)
    y = NAMES[kinds]
    model = exact().partial_fit(X, y, classes=NAMES[:3])
    before = frozen(model)
    with pytest.raises(ValueError, match=f"StreamingRidgeClassifier: .*{message}"):
        model.partial_fit(*make(X, y))
    assert frozen(model) == before


def test_the_first_batch_needs_classes():
    X, kinds = classification(3)
    model = exact()
    with pytest.raises(ValueError, match="classes must be given at the first partial_fit"):
        model.partial_fit(X, kinds)
    with pytest.raises(ValueError, match=r"label 2 in row .* not among the classes 0, 1"):
        model.partial_fit(X, kinds, classes=[0, 1])
    with pytest.raises(ValueError, match="classes is empty"):
        model.partial_fit(X, kinds, classes=[])
    assert frozen(model) == frozen(exact())
    model.partial_fit(X, kinds, classes=[2, 1, 0, 1])
    with pytest.raises(ValueError, match="not those of the first partial_fit, 0, 1, 2"):
        model.partial_fit(X, kinds, classes=[0, 1])


def test_labels_of_mixed_types_are_refused():
    X, _ = classification(2, n_rows=4)
    with pytest.raises(ValueError, match="classes has labels of types int, str"):
        exact().partial_fit(X, ["a"] * 4, classes=np.array(["a", 1], dtype=object))


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ("heavy", "class_weight='heavy' is not known"),
        ([1.0, 2.0], "is not known"),
        ({0: -1.0}, "has -1.0 for class 0"),
        ({0: np.nan}, "has nan for class 0"),
        ({7: 1.0}, "weight for 7, which is not among the classes 0, 1"),
    ],
)
def test_bad_class_weights(class_weight, message):
    X, y = classification(2)
    with pytest.raises(ValueError, match=f"StreamingRidgeClassifier: .*{message}"):
        exact(class_weight=class_weight).fit(X, y)


def test_balanced_weights_need_all_labels():
    X, y = classification(2)
    with pytest.raises(ValueError, match="needs all labels at once: call fit"):
        exact(class_weight="balanced").partial_fit(X, y, classes=[0, 1])
    X, Y = make_multilabel_classification(n_samples=50, n_classes=4, random_state=0)
    with pytest.raises(ValueError, match="class_weight cannot be a dict"):
        exact(class_weight={0: 2.0}).fit(X, Y)


def test_only_alike_classifiers_merge():
    X, kinds = classification(3)
    model = exact().fit(X, kinds)
    before = frozen(model)
    with pytest.raises(ValueError, match="the classes are 0, 1, 2, the other's 0, 1, 2, 3"):
        model.merge(exact().partial_fit(X, kinds, classes=[0, 1, 2, 3]))
    with pytest.raises(ValueError, match="differ in class_weight"):
        model.merge(exact(class_weight={0: 2.0}).fit(X, kinds))
    assert frozen(model) == before

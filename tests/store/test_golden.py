"""Files that were written once are read for ever."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from ridgepass import StreamingRidge
from ridgepass.store import from_bytes, load, read, save
from ridgepass.store.layout import VERSION
from store.make_golden import FOLDER, make, make_before, rows, sparse_rows, targets
from store.models import assert_same
from streams import norm

PATHS = sorted(FOLDER.glob("*.ridge"))
# Another processor adds up in another order: what rows waiting for their block make of an answer
# differs by roundings of the model's own type, and a bound that is all rounding by more.
SAME_COEF, SAME_BOUND = {"float32": 1e-6, "float64": 1e-9}, 1e-3


def goes_on(model, name):
    """Train on more rows."""
    X = sparse_rows(70, 9) if "sparse" in name else rows(70, 9)
    y = targets(rows(70, 9))
    if "classifier" in name:
        y = model.classes_[np.arange(70) % 3]
    elif model._learned.origin.n_targets > 1:
        y = np.column_stack([y] * model._learned.origin.n_targets)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        return model.partial_fit(X, y)


def test_there_is_a_file_of_each_kind():
    before = {path.stem for path in PATHS if path.stem[1] < "4"}
    assert {path.stem for path in PATHS} - before == set(make())
    assert before == {"v1_anchored", "v2_anchored", *make_before()}
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 270_000


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_golden_files(path, tmp_path):
    found = read(path)
    model, wanted = found.model, json.loads(path.with_suffix(".json").read_text())
    assert found.notes == {"made by": "make_golden.py"}
    assert type(model).__name__ == wanted["class"]
    assert model.n_samples_seen_ == wanted["n_samples_seen"]
    rtol = SAME_COEF[model._learned.stream._state.sketch.dtype.name]
    np.testing.assert_allclose(model.coef_, wanted["coef"], rtol=rtol)
    np.testing.assert_allclose(model.intercept_, wanted["intercept"], rtol=rtol)
    # Never less than what was certified then, and a little more where rounding went uncounted.
    certain = model.certificate(confidence=1)
    found_then, found_now = np.array(wanted["relative"]), np.array(certain.relative)
    assert (found_now >= found_then * (1 - SAME_BOUND)).all()
    assert (found_now <= found_then * 1.5).all()
    assert certain.passes == wanted.get("passes", 1)
    assert found.version == int(path.stem[1])
    if found.version == 4:
        proof = model.certificate()
        np.testing.assert_allclose(proof.relative, wanted["probed"], rtol=SAME_BOUND)
        assert (proof.rests_on, proof.remark) == (wanted["rests_on"], wanted["remark"])
    else:
        assert model.probes == 0  # there were none
        assert model.certificate().confidence == 1.0


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_golden_file_is_saved_again_to_the_same_model(path, tmp_path):
    found = read(path)
    save(found.model, tmp_path / "again", notes=found.notes)
    again = read(tmp_path / "again")
    assert again.version == VERSION
    if found.version == VERSION:
        assert (tmp_path / "again").read_bytes() == path.read_bytes()
    save(again.model, tmp_path / "twice", notes=again.notes)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "twice").read_bytes()
    assert_same(found.model, again.model)


@pytest.mark.parametrize(
    "path", [path for path in PATHS if "anchored" not in path.stem], ids=lambda path: path.stem
)
def test_a_golden_model_goes_on_learning(path):
    before = path.read_bytes()
    model = read(path).model
    n_before = model.n_samples_seen_
    goes_on(model, path.stem)
    assert model.n_samples_seen_ == n_before + 70
    assert np.isfinite(model.coef_).all()
    assert path.read_bytes() == before
    assert_same(model, goes_on(from_bytes(before, "again").model, path.stem))


@pytest.mark.parametrize("name", ["v1_anchored", "v2_anchored"])
def test_an_anchored_model_predicts_and_learns_no_more(name):
    path = FOLDER / f"{name}.ridge"
    before, model = path.read_bytes(), read(path).model
    coef = model.coef_.copy()
    assert model.method_ == "anchored"
    learn = r"StreamingRidge: .*method='anchored'.*method='tracked'"
    with pytest.raises(ValueError, match=learn):
        goes_on(model, name)
    with pytest.raises(ValueError, match=learn):
        model.merge(read(path).model)
    for other in (
        StreamingRidge(method="tracked"),
        StreamingRidge(method="tracked", sketch_size=4),
    ):
        X = rows(75, 1)
        with pytest.raises(ValueError, match=r"'tracked' cannot take in 'anchored'"):
            other.fit(X, targets(X)).merge(model)
    with pytest.raises(ValueError, match=r"method='anchored' is gone: use method='tracked'"):
        StreamingRidge(method="anchored").fit(rows(9, 1), np.ones(9))
    np.testing.assert_array_equal(model.coef_, coef)
    X = pd.DataFrame(rows(5, 3), columns=getattr(model, "feature_names_in_", None))
    predicted = X.to_numpy() @ coef + model.intercept_
    np.testing.assert_allclose(model.predict(X), predicted, rtol=1e-9)
    assert np.isfinite(model.at(3.0).coef_).all()
    assert np.isfinite(model.path([0.1, 10.0]).coefs).all()
    assert model.certificate().prediction_bound(X).shape == (5,)
    assert np.isfinite(model.training_score())
    assert path.read_bytes() == before


def test_an_anchored_model_can_be_refined_with_its_own_rows():
    model, X = load(FOLDER / "v2_anchored.ridge"), rows(75, 6).astype(np.float32)
    exact = StreamingRidge(0.5, method="exact", standardize=True).fit(X, targets(X))
    model.refine(X, targets(X), passes=8)
    assert norm(model.coef_ - exact.coef_) <= 1e-6 * norm(exact.coef_)
    proof = model.certificate()
    assert proof.rests_on == "passes"
    assert proof.relative <= 0.1
    assert (np.abs(model.coef_ - exact.coef_) <= proof.coefficient_bounds()).all()


def exact_of_refined(name, alpha):
    """Return exact ridge for the rows of a refined model of an earlier version."""
    X = sparse_rows(120, 7) if name == "v2_sparse_folds" else rows(75, 8).astype(np.float32)
    y = targets(X.toarray() if sparse.issparse(X) else X)
    scaled = name == "v3_scaled"
    return StreamingRidge(alpha, method="exact", standardize=scaled).fit(X, y).coef_


def test_the_same_data_give_the_same_model_still():
    """Up to rounding, which may differ between machines."""
    for name, model in (make() | make_before()).items():
        wanted = np.array(json.loads((FOLDER / f"{name}.json").read_text())["coef"])
        if name in ("v2_sparse_folds", "v3_scaled"):  # passes have a better preconditioner since
            exact = exact_of_refined(name, model.certificate().alpha)
            assert norm(model.coef_ - exact) < norm(wanted - exact)
        else:
            assert norm(model.coef_ - wanted) < 1e-3 * norm(wanted)

"""Files that were written once are read for ever."""

import json
import warnings

import numpy as np
import pytest

from ridgepass.store import from_bytes, read, save
from store.make_golden import FOLDER, make, rows, sparse_rows, targets
from store.models import assert_same
from streams import norm

PATHS = sorted(FOLDER.glob("*.ridge"))


def goes_on(model, name):
    """Train on more rows."""
    X = sparse_rows(70, 9) if "sparse" in name else rows(70, 9)
    y = targets(rows(70, 9))
    if "classifier" in name:
        y = model.classes_[np.arange(70) % 3]
    elif model._learned.origin.n_targets == 2:
        y = np.column_stack([y, y])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        return model.partial_fit(X, y)


def test_there_is_a_file_of_each_kind():
    assert {path.stem for path in PATHS} == set(make())
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 110_000


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_golden_files(path, tmp_path):
    found = read(path)
    model, wanted = found.model, json.loads(path.with_suffix(".json").read_text())
    assert found.notes == {"made by": "make_golden.py"}
    assert type(model).__name__ == wanted["class"]
    assert model.n_samples_seen_ == wanted["n_samples_seen"]
    np.testing.assert_allclose(model.coef_, wanted["coef"], rtol=1e-9)
    np.testing.assert_allclose(model.intercept_, wanted["intercept"], rtol=1e-9)
    # Never less than what was certified then, and a little more where rounding went uncounted.
    found_then, found_now = np.array(wanted["relative"]), np.array(model.certificate().relative)
    assert (found_now >= found_then * (1 - 1e-6)).all()
    assert (found_now <= found_then * 1.5).all()
    assert model.certificate().passes == wanted.get("passes", 1)
    assert found.version == int(path.stem[1])
    save(model, tmp_path / "again", notes=found.notes)
    if read(tmp_path / "again").version == found.version:
        assert (tmp_path / "again").read_bytes() == path.read_bytes()
    else:  # with standardize, older versions have one number where there is one for each column now
        assert read(tmp_path / "again").version == 3
        assert model.standardize
        assert found.version < 3
        save(read(tmp_path / "again").model, tmp_path / "twice", notes=found.notes)
        assert (tmp_path / "again").read_bytes() == (tmp_path / "twice").read_bytes()
    before = path.read_bytes()
    goes_on(model, path.stem)
    assert model.n_samples_seen_ == wanted["n_samples_seen"] + 70
    assert np.isfinite(model.coef_).all()
    assert path.read_bytes() == before
    assert_same(model, goes_on(from_bytes(before, "again").model, path.stem))


def test_the_same_data_give_the_same_model_still():
    """Up to rounding, which may differ between machines."""
    for name, model in make().items():
        wanted = json.loads((FOLDER / f"{name}.json").read_text())
        assert norm(model.coef_ - np.array(wanted["coef"])) < 1e-3 * norm(wanted["coef"])

"""A file with NaN or infinity where training leaves a number is no model."""

import numpy as np
import pytest

from ridgepass import FormatError, StreamingRidge
from ridgepass.snapshot import strict_json
from ridgepass.store import from_bytes
from ridgepass.store.layout import TYPES
from ridgepass.store.models import MAY_BE_INFINITE
from store.models import batch, small_models, to_bytes
from store.test_damage import opened, places, resealed

BAD = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}


def models():
    X, y, weights = batch(150, weighted=True)
    refined = StreamingRidge(2.0, method="rfd", sketch_size=3, standardize=True)
    tracked = StreamingRidge(2.0, method="tracked", sketch_size=3, probes=2)
    return small_models() | {
        "refined": refined.fit(X, y, weights).refine(X, y, weights, passes=2),
        "exact": StreamingRidge(2.0, method="exact").fit(X, y, weights),
        "tracked": tracked.fit(X * np.geomspace(0.1, 10, X.shape[1]), y, weights),
    }


@pytest.fixture(scope="module")
def files():
    found = {}
    for kind, model in models().items():
        found[kind] = to_bytes(model)
    return found


def check(content, name, value):
    """Refuse it, or answer all the same where a bound is infinite."""
    if not (value > 0 and name in MAY_BE_INFINITE):
        with pytest.raises(FormatError, match=rf"{name} has a number that is not finite.*: save"):
            from_bytes(content, "m")
        return
    model = from_bytes(content, "m").model
    assert np.isfinite(model.coef_).all()
    with np.errstate(all="ignore"):
        certificate = model.certificate()
    assert (np.asarray(certificate.relative) >= 0).all()  # and not NaN


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("kind", models())
def test_every_array(files, kind, bad):
    header, _, data = opened(files[kind])
    n_tried = 0
    for name, info in header.items():
        start, stop = info.get("data_offsets", (0, 0))
        if not name.startswith("learned.") or not info["dtype"].startswith("F") or start == stop:
            continue
        numbers = np.frombuffer(data[start:stop], TYPES[info["dtype"]]).copy()
        for place in {0, len(numbers) // 2, len(numbers) - 1}:
            changed = numbers.copy()
            changed[place] = BAD[bad]
            content = resealed(header, data[:start] + changed.tobytes() + data[stop:])
            check(content, name.rpartition(".")[2], BAD[bad])
            n_tried += 1
    assert n_tried > 10


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("kind", models())
def test_every_number(files, kind, bad):
    header, model, data = opened(files[kind])
    n_tried = 0
    for *parents, key in list(places(model)):
        where = model
        for parent in parents:
            where = where[parent]
        value = where[key]
        if parents[:1] != ["learned"] or not isinstance(value, float):
            continue
        where[key] = bad
        text = strict_json(model)
        where[key] = value
        # JSON has numbers that are infinite to a reader.
        large = text.replace(f'"{key}":"{bad}"', f'"{key}":{bad.replace("inf", "1e999")}')
        for form in [text] if bad == "nan" else [text, large]:
            header["__metadata__"]["model"] = form
            check(resealed(header, data), key, BAD[bad])
            n_tried += 1
    assert n_tried >= 3


def test_a_large_array_is_looked_at_to_its_end():
    X, y = np.ones((3, 200_000)), np.ones(3)
    model = StreamingRidge(method="fd", sketch_size=2, fit_intercept=False).partial_fit(X, y)
    model._learned.stream._state.moments.cross[-1] = np.nan
    with pytest.raises(ValueError, match="cross has a number that is not finite"):
        to_bytes(model)


@pytest.mark.parametrize("bad", BAD)
def test_a_model_that_could_not_be_loaded_is_not_saved(bad, tmp_path):
    model, path = StreamingRidge(method="fd", sketch_size=4).fit(*batch(90)), tmp_path / "m.ridge"
    model.save(path)
    before = path.read_bytes()
    model._learned.stream._state.sketch.rows[1, 1] = BAD[bad]
    with pytest.raises(ValueError, match=r"cannot be saved, since rows has .* train again"):
        model.save(path)
    assert path.read_bytes() == before


def test_chosen_alphas_are_finite():
    file = to_bytes(small_models()["chooser"])
    header, _, data = opened(file)
    start, stop = header["selected.alphas"]["data_offsets"]
    for bad in (np.nan, np.inf, -1.0):
        content = resealed(header, data[:start] + np.full(2, bad).tobytes() + data[stop:])
        with pytest.raises(FormatError, match="not a finite number of at least zero"):
            from_bytes(content, "m")


@pytest.mark.parametrize(
    ("name", "value"), [("stored", -1e308), ("units", -1.0), ("units", 0.0), ("squares", -1e-3)]
)
def test_sums_of_squares_below_zero_and_units_of_zero_are_refused(files, name, value):
    header, model, data = opened(files["refined"])
    if name == "stored":
        model["learned"]["stream"]["state"]["sketch"]["rounding"]["stored"] = value
        header["__metadata__"]["model"] = strict_json(model)
    else:
        (place,) = (at for at in header if at.endswith(f"scaling.{name}"))
        start, stop = header[place]["data_offsets"]
        numbers = np.frombuffer(data[start:stop], np.float64).copy()
        numbers[1] = value
        data = data[:start] + numbers.tobytes() + data[stop:]
    with pytest.raises(FormatError, match=rf"{name} has a (number below zero|zero)"):
        from_bytes(resealed(header, data), "m")

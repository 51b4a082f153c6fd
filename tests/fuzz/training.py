"""Training in batches, merges, further passes, saving and loading: one model, one truth."""

import itertools
from functools import partial

import numpy as np
from scipy import sparse

from fuzz.certificates import check_model, check_path
from fuzz.models import ask, attempt, draw_alphas, draw_options, draw_rows, exact_of
from fuzz.outcome import image, restored
from fuzz.tables import draw_table, drawn
from ridgepass import StreamingRidgeClassifier, StreamingRidgeCV

PASSES = 4


def run_training(rng, out):
    """Train a model in any way, and compare all that it claims with the truth."""
    d = int(rng.integers(1, 11)) if rng.random() < 0.7 else int(rng.integers(1, 4))
    options = draw_options(rng, d)
    n = draw_rows(rng, options)
    if n > 60:
        d = min(d, 3)
        if options.parameters["feature_scale"] is not None:
            options.parameters["feature_scale"] = options.parameters["feature_scale"][:d]
    table = draw_table(rng, n, d, block=options.block)
    alphas = draw_alphas(rng, options, table, int(rng.integers(1, 4)))
    complete(rng, options, table, alphas)
    out.notes += [options.describe(), table.describe()]
    merges = n > 1 and options.folds is None and rng.random() < 0.35
    model = _merged(rng, out, options, table) if merges else _streamed(rng, out, options, table)
    if model is None:
        return
    if model.n_samples_seen_ != int((weights_of(table) > 0).sum()):
        out.fail("rows", f"{model.n_samples_seen_} rows were seen, not those of positive weight")
    folded = options.parameters.get("cv") is not None  # which merges the streams of its folds
    narrow = (merges or folded) and "float32" in out.describe()
    exact = exact_of(options, table, model, out, merged_float32=narrow)
    check_model(out, rng, model, exact, table, alphas, "after training")
    if rng.random() < 0.2:
        check_path(out, model, exact, alphas, "after training")
    if rng.random() < 0.15:
        model = _saved(out, model, "training")
    if rng.random() < 0.45:
        _refine(rng, out, model, exact, table, alphas)


def complete(rng, options, table, alphas):
    """Settle what depends on the rows: labels for classifiers, folds, the alpha."""
    parameters = options.parameters
    if options.kind is StreamingRidgeClassifier:
        n_classes = int(rng.choice([2, 3, 4]))
        options.labels = np.arange(n_classes) if rng.random() < 0.5 else np.array(list("abcd"))
        options.labels = options.labels[:n_classes]
        places = rng.integers(0, n_classes, len(table))
        signs = np.where(places[:, None] == np.arange(n_classes), 1.0, -1.0)
        table.y = signs[:, 1:] if n_classes == 2 else signs
        table.labels = options.labels[places]
        table.single = False
    if options.kind is StreamingRidgeCV:
        parameters["alphas"] = [max(alpha, 1e-290) for alpha in alphas]
        cv = rng.choice(["none", "number", "list"], p=[0.3, 0.4, 0.3])
        parameters["cv"] = None if cv == "none" else int(rng.integers(2, 4))
        if cv == "list" and len(table) >= 2:
            options.folds = _splits(rng, len(table))
            parameters["cv"] = options.folds
    else:
        parameters["alpha"] = alphas[0]


def _splits(rng, n):
    """Draw folds as a list of (train, test)."""
    k = int(rng.integers(2, min(n, 4) + 1))
    fold = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    fold = rng.permutation(fold)
    return [(np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in range(k)]


def weights_of(table):
    """Return one weight for each row."""
    return np.ones(len(table)) if table.weights is None else table.weights


def batches_of(rng, options, table):
    """Return the arguments of partial_fit, batch by batch."""
    return [arguments(options, batch) for batch in table.batches(rng)]


def arguments(options, batch):
    """Return the arguments of partial_fit, positional ones and others."""
    X, y, *weights = batch
    if options.labels is None:
        return batch, {}
    return (X, y), {"classes": options.labels, "sample_weight": weights[0] if weights else None}


def _streamed(rng, out, options, table):
    """Train on batches; do so again on others, which must give the same bytes."""
    model, tame = options.new(), options.is_tame(table)
    pause = rng.random() < 0.15
    for batch, more in batches_of(rng, options, table):
        if not attempt(out, partial(model.partial_fit, *batch, **more), model, tame=tame):
            return None
        if pause and model.__sklearn_is_fitted__() and rng.random() < 0.5:
            model = _saved(out, model, "a batch")
            pause = False
    if not model.__sklearn_is_fitted__():
        out.fail("rows", "the model is not fitted after rows of positive weight")
        return None
    if rng.random() < 0.5:
        _check_split(rng, out, options, table, model)
    return model


def _check_split(rng, out, options, table, model):
    """Train in another way, which must give the same bytes."""
    out.counts["splits"] += 1
    ways = {"batches": 0.5, "reused buffers": 0.3, "fit": 0.1, "fit_stream": 0.1}
    how = drawn(rng, ways)
    # Classifiers learn from no stream, and fit would know the labels it sees only.
    if how in ("fit", "fit_stream") and (options.labels is not None or len(table.runs) > 1):
        how = "batches"
    other = options.new()
    try:
        if how == "fit":
            other.fit(*table.batches(rng, "whole")[0])
        elif how == "fit_stream":
            other.fit_stream(iter(Again(table, rng.integers(2**32))))
        else:
            for batch, more in batches_of(rng, options, table):
                other.partial_fit(*batch, **more)
                if how == "reused buffers":
                    for array in (*batch, *more.values()):
                        _spoil(array)
    except Exception as error:
        text = f"{type(error).__name__}: {str(error)[:200]}"
        out.fail("split", f"the same rows by {how} are refused: {text}")
        return
    if image(other) != image(model):
        out.fail("split", f"the same rows by {how} give another model")


def _spoil(array):
    if not isinstance(array, np.ndarray) and not sparse.issparse(array):
        return
    data = array if isinstance(array, np.ndarray) else array.data
    if data.flags.writeable and data.dtype.kind == "f":
        data[...] = np.nan


def _saved(out, model, when):
    """Save and load, twice: the same bytes, the same coefficients."""
    content = image(model)
    again = restored(content)
    out.counts["saved"] += 1
    if image(again) != content:
        out.fail("save", f"a model that was loaded is saved as other bytes, after {when}")
    return again


def _merged(rng, out, options, table):
    """Train parts, with sizes and dtypes of their own, and merge them in any tree."""
    edges = sorted({0, len(table), *rng.integers(0, len(table) + 1, rng.integers(1, 5)).tolist()})
    parts, notes, tame = [], [], options.is_tame(table)
    for start, stop in itertools.pairwise(edges):
        changes = {}
        if rng.random() < 0.4:
            changes["sketch_size"] = int(rng.integers(2, 9))
        if rng.random() < 0.4:
            changes["dtype"] = [None, "float32", "float64"][rng.integers(3)]
        model = options.new(**changes)
        notes.append(f"{stop - start} rows {changes or ''}".strip())
        for batch, more in batches_of(rng, options, table.rows(start, stop)):
            if not attempt(out, partial(model.partial_fit, *batch, **more), model, tame=tame):
                return None
        parts.append(model)
    out.notes.append("merged of " + ", ".join(notes))
    for _ in range(rng.choice([0, 1, 2], p=[0.6, 0.3, 0.1])):
        parts.insert(int(rng.integers(len(parts) + 1)), options.new())
    if rng.random() < 0.3:
        parts = [restored(image(one)) if image(one) else one for one in parts]
    while len(parts) > 1:
        first, second = rng.permutation(len(parts))[:2]
        into, other = parts[first], parts[second]
        before = image(other) if rng.random() < 0.4 else None
        if not attempt(out, partial(into.merge, other), into, other, tame=tame):
            return None
        out.counts["merges"] += 1
        if before is not None and image(other) != before:
            out.fail("merge", "the model that was merged into another has changed")
        del parts[second]
        if rng.random() < 0.2 and into.__sklearn_is_fitted__():
            # A query in between keeps results that the next merge must not use.
            ask(out, into.at(1.0).certificate)
    model = parts[0]
    if not model.__sklearn_is_fitted__():
        out.fail("rows", "the merged model is not fitted after rows of positive weight")
        return None
    return model


def _refine(rng, out, model, exact, table, alphas):
    """Read the rows again in another order; the bounds must hold for the better answer too."""
    chosen = [alpha for alpha in alphas if alpha > 0][: int(rng.integers(1, 3))]
    if not chosen:
        return
    options = {"alphas": chosen}
    if rng.random() < 0.3:
        options["tol"] = 10.0 ** rng.uniform(-14, -1)
    if rng.random() < 0.7 or "tol" not in options:
        options["passes"] = int(rng.integers(1, PASSES + 1))
    same = table.shuffled(rng) if rng.random() < 0.5 else table
    rows = reading(rng, same)
    out.counts["refines"] += 1
    content = image(model)
    try:
        model.refine(*rows, **options)
    except ValueError as error:
        text = str(error)
        if "alpha" in text and any(word in text for word in ("singular", "alpha=0", "overflow")):
            out.counts["refused"] += 1
        else:
            kind = "refine refuses the same rows" if "not the rows" in text else "refused"
            out.fail(kind, f"refine({options}): {text[:300]}")
        if image(model) != content:
            out.fail("failed call changed the model", f"refine: {text[:200]}")
        return
    except Exception as error:
        out.fail("unexpected error", f"refine: {type(error).__name__}: {str(error)[:300]}")
        return
    if rng.random() < 0.2:
        model = _saved(out, model, "refine")
    check_model(out, rng, model, exact, table, alphas, f"after refine({options})")
    if rng.random() < 0.15:
        check_path(out, model, exact, alphas, f"after refine({options})")
    if rng.random() < 0.3:
        _check_same_bits(rng, out, content, same, rows, options, model)
    if rng.random() < 0.3:
        _check_other_rows(rng, out, content, table, chosen)


def reading(rng, table):
    """Return the arguments of refine: arrays, or batches."""
    if len(table.runs) == 1 and rng.random() < 0.5:
        return table.batches(rng, "whole")[0]
    return (Again(table, rng.integers(2**32)),)


class Again:
    """Batches that can be read again and again; each is overwritten when the next is asked for."""

    def __init__(self, table, seed):
        self.table, self.seed = table, seed

    def __iter__(self):
        for batch in self.table.batches(np.random.default_rng(self.seed)):
            yield batch
            for array in batch:
                _spoil(array)


def _check_same_bits(rng, out, content, table, rows, options, model):
    """Read the same rows again, without questions before, and in other batches: the same bytes."""
    out.counts["splits"] += 1
    twins = []
    for source in (rows, reading(rng, table)):
        twin = restored(content)
        try:
            twin.refine(*source, **options)
        except Exception as error:
            out.fail("split", f"refine refuses other batches: {type(error).__name__}: {error}")
            return
        twins.append(image(twin))
    if twins[0] != twins[1]:
        out.fail("split", "refine with other batches of the same rows gives another model")
    if twins[0] != image(model):
        out.fail("questions", "refine gives another model after questions have been asked")


def _check_other_rows(rng, out, content, table, alphas):
    """Rows that are others must be refused, and change nothing."""
    kind = str(rng.choice(["one row less", "one row twice", "another row", "another target"]))
    weights = weights_of(table)
    every, (first, *_), heavy = np.arange(len(table)), np.flatnonzero(weights > 0), weights.argmax()
    if kind == "one row less":
        changed = table.taken(np.delete(every, first))
    elif kind == "one row twice":
        changed = table.taken(np.append(every, first))
    else:
        changed = table.taken(every)
        values = changed.X if kind == "another row" else changed.y
        values[heavy] = 3 * np.abs(values).max(axis=0) + 1.0
        if not table.tame or (kind == "another target" and table.labels is not None):
            return
    model = restored(content)
    # Of these rows it keeps their number and weight alone, and their ridge solution is zero.
    blind = model.method_ in ("rp", "cs") and not model.fit_intercept and not table.y.any()
    if not len(changed) or (blind and kind == "another row"):
        return
    out.counts["failed calls"] += 1
    try:
        # A tol might be reached without reading any row, which none is by default.
        model.refine(*reading(rng, changed), alphas=alphas, passes=1)
    except ValueError:
        if image(model) != content:
            out.fail("failed call changed the model", f"refine with {kind}")
    except Exception as error:
        out.fail("unexpected error", f"refine with {kind}: {type(error).__name__}: {error}")
    else:
        out.fail("other rows are taken", f"refine takes {kind} for the same rows")

"""Fitted estimators as nested data with arrays in it, and back."""

from typing import Any

import numpy as np

from ridgepass import validation
from ridgepass.data.described import check_described
from ridgepass.estimators import StreamingRidge, StreamingRidgeClassifier, StreamingRidgeCV
from ridgepass.estimators.cv import Choice
from ridgepass.estimators.folds import FoldedLearned
from ridgepass.estimators.inputs import place_of_bad
from ridgepass.estimators.learned import Learned
from ridgepass.snapshot import NOT_FINITE, Kept, array, entry, part, take
from ridgepass.store.parameters import put_parameters, take_parameters

ESTIMATORS = {
    kind.__name__: kind for kind in (StreamingRidge, StreamingRidgeCV, StreamingRidgeClassifier)
}

# Bounds, and what only tells how to go on: these may overflow, upwards. No other number may.
MAY_BE_INFINITE = frozenset(
    {
        *("allowance", "stored", "summed", "offset_mass", "target_offset_mass"),
        *("error", "mean_error", "target_mean_error", "mass", "power", "asked"),
    }
)
# Sums of squares and what bounds are made of. No training leaves any of them below zero.
NOT_NEGATIVE = frozenset(
    {
        *("stored", "summed", "offset_mass", "target_offset_mass", "error", "mean_error"),
        *("target_mean_error", "mass", "carried", "target_carried", "offset_squares"),
        *("target_mass", "squares", "removed", "lost", "weight", "units", "scale"),
    }
)


def check_class(model: Any) -> None:
    """Raise unless it is an estimator of ours."""
    kind = type(model).__name__
    if ESTIMATORS.get(kind) is not type(model):
        raise TypeError(f"cannot save a {kind}: give one of {', '.join(ESTIMATORS)}")


def take_model(model: Any, learned: Learned) -> Kept:
    """Return an estimator and what it has learned as plain data; hold the lock of ``learned``."""
    kept: Kept = {
        "class": type(model).__name__,
        "parameters": take_parameters(model.get_params(deep=False)),
        "learned": learned.snapshot(),
    }
    if isinstance(model, StreamingRidgeCV):
        kept["selected"] = take(model._selected)
    try:
        check_finite(kept["learned"], "learned")
    except ValueError as error:
        raise ValueError(
            f"the model cannot be saved, since {error}: divide columns and targets that are very "
            "large by a constant, and train again"
        ) from None
    return kept


def check_finite(kept: Any, name: str) -> None:
    """Raise ValueError where plain data of a model has a number that no sound training leaves.

    Parameters
    ----------
    kept : object
        What was learned, or a part of it.
    name : str
        What errors call it.
    """
    if isinstance(kept, dict):
        for key, value in kept.items():
            check_finite(value, key)
        return
    if isinstance(kept, list):
        for value in kept:
            check_finite(value, name)
        return
    if isinstance(kept, np.ndarray):
        if kept.dtype.kind != "f" or name == "classes":
            return
        values = kept
    elif isinstance(kept, float) or (isinstance(kept, str) and kept in NOT_FINITE):
        values = np.array(float(kept))
    else:
        return
    if name in MAY_BE_INFINITE:
        sound = bool((values > -np.inf).all())
    else:
        sound = place_of_bad(np.atleast_2d(values)) is None
    if not sound:
        raise ValueError(f"{name} has a number that is not finite")
    if name in NOT_NEGATIVE and (values < 0).any():
        raise ValueError(f"{name} has a number below zero")
    if name == "units" and not values.all():
        raise ValueError("units has a zero")


def put_model(kept: Any) -> Any:
    """Return the estimator that plain data was taken of, or raise ValueError."""
    name = entry(kept, "class")
    if not isinstance(name, str) or name not in ESTIMATORS:
        raise ValueError(f"the class {name!r} is unknown")
    kind = ESTIMATORS[name]
    names = set(kind().get_params(deep=False))
    # There were no probes before version 4.
    model = kind(**{"probes": 0} | put_parameters(entry(kept, "parameters"), names))
    found = part(entry(kept, "learned"), "learned")
    check_finite(found, "learned")
    learned = (FoldedLearned if "folds" in found else Learned).restored(found)
    if isinstance(model, StreamingRidgeClassifier) != (learned.origin.labels is not None):
        raise ValueError(f"a {name} cannot have learned this")
    if learned.columns is not None:
        check_described(learned.columns, learned.origin.n_features)
    if isinstance(model, StreamingRidgeCV):
        model._selected = _restored_choice(entry(kept, "selected"))
    model._adopt(learned)
    return model


def _restored_choice(kept: Any) -> Choice | None:
    if kept is None:
        return None
    double = np.dtype(np.float64)
    alphas = array(entry(kept, "alphas"), "alphas", double, (None,))
    scores = array(entry(kept, "scores"), "scores", double, alphas.shape)
    if not len(alphas):
        raise ValueError("there are no alphas to choose from")
    validation.as_alphas(alphas)
    return Choice(alphas, scores)

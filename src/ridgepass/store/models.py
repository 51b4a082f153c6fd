"""Fitted estimators as nested data with arrays in it, and back."""

from typing import Any

import numpy as np

from ridgepass.estimators import StreamingRidge, StreamingRidgeClassifier, StreamingRidgeCV
from ridgepass.estimators.cv import Choice
from ridgepass.estimators.folds import FoldedLearned
from ridgepass.estimators.learned import Learned
from ridgepass.snapshot import Kept, array, entry, part, take
from ridgepass.store.parameters import put_parameters, take_parameters

ESTIMATORS = {
    kind.__name__: kind for kind in (StreamingRidge, StreamingRidgeCV, StreamingRidgeClassifier)
}


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
    return kept


def version_of(learned: Learned) -> int:
    """Return the version of the format that a model needs, so that older readers take the rest.

    They would overlook what further passes have found, and predict something else.
    """
    return 1 if learned.refinement is None else 2


def put_model(kept: Any) -> Any:
    """Return the estimator that plain data was taken of, or raise ValueError."""
    name = entry(kept, "class")
    if not isinstance(name, str) or name not in ESTIMATORS:
        raise ValueError(f"the class {name!r} is unknown")
    kind = ESTIMATORS[name]
    model = kind(**put_parameters(entry(kept, "parameters"), set(kind().get_params(deep=False))))
    found = part(entry(kept, "learned"), "learned")
    learned = (FoldedLearned if "folds" in found else Learned).restored(found)
    if isinstance(model, StreamingRidgeClassifier) != (learned.origin.labels is not None):
        raise ValueError(f"a {name} cannot have learned this")
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
    return Choice(alphas, scores)

"""Estimators with options drawn at random, and what their training should have come to."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fuzz.exact import Exact
from fuzz.outcome import Outcome, image, is_broken
from ridgepass import StreamingRidge, StreamingRidgeClassifier, StreamingRidgeCV
from ridgepass.scaling import CONSTANT, LEAST
from ridgepass.sketch import SKETCHES

METHODS = [*sorted(SKETCHES), "auto"]
UNCERTAIN = ("cs", "rp")  # fewer of those that certify nothing before `refine`
# What an estimator may say of numbers near the ends of the range of floats.
TOO_FAR = ("overflow", "too small", "too large", "underflow", "out of range", "divide", "rescale")
NO_SOLUTION = ("alpha=0", "singular")
LOST_SQUARES = 1e-320


@dataclass
class Options:
    """Parameters of an estimator, and which it is."""

    kind: type
    parameters: dict[str, Any]
    labels: np.ndarray | None = None  # the classes of a classifier
    folds: list | None = field(default=None, repr=False)

    def new(self, **changes):
        """Return an estimator that has learned nothing."""
        return self.kind(**self.parameters | changes)

    def describe(self):
        given = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"{self.kind.__name__}({given})"

    @property
    def centred(self):
        return self.parameters["fit_intercept"]

    def is_tame(self, table):
        """Whether nothing is so large or small that it may be refused."""
        scale = self.parameters["feature_scale"]
        return table.tame and (scale is None or bool(((scale > 1e-5) & (scale < 1e5)).all()))

    @property
    def block(self):
        """Rows of a block of the sketches; `exact` has longer ones."""
        return 2 * self.parameters["sketch_size"]


def draw_options(rng, d, *, kind=None, method=None):
    """Draw the options of an estimator for d features."""
    chances = np.array([0.3 if name in UNCERTAIN else 1.0 for name in METHODS])
    method = method or str(rng.choice(METHODS, p=chances / chances.sum()))
    scaling = rng.choice(["none", "deviations", "given"], p=[0.5, 0.33, 0.17])
    reach = rng.choice([1, 3, 90], p=[0.6, 0.35, 0.05])
    scale = 10.0 ** rng.uniform(-reach, reach, d) if scaling == "given" else None
    dtype = rng.choice(["", "float32", "float64"], p=[0.6, 0.2, 0.2])
    parameters = {
        "method": method,
        "sketch_size": int(rng.integers(2, 9)) if rng.random() < 0.5 else int(rng.integers(2, 4)),
        "fit_intercept": bool(rng.random() < 0.65),
        "standardize": bool(scaling == "deviations"),
        "feature_scale": scale,
        "dtype": str(dtype) or None,
        "random_state": int(rng.integers(1000)),
    }
    kinds = [StreamingRidge, StreamingRidgeCV, StreamingRidgeClassifier]
    return Options(kind or kinds[rng.choice(3, p=[0.75, 0.15, 0.1])], parameters)


def draw_rows(rng, options):
    """Draw a number of rows that is likely to end near the edge of a block."""
    block = options.block
    if options.parameters["method"] in ("exact", "auto") and rng.random() < 0.08:
        return int(rng.choice([255, 256, 257, 300, 513]))
    edges = [1, 2, 3, block - 1, block, block + 1, 2 * block - 1, 2 * block, 2 * block + 1]
    if rng.random() < 0.5:
        return int(min(rng.choice(edges), 60))
    return int(rng.integers(1, 60)) if rng.random() < 0.4 else int(rng.integers(3, 24))


def draw_alphas(rng, options, table, count):
    """Draw ridge parameters that matter for these rows, and some that are absurd."""
    X, weights = table.X, np.ones(len(table)) if table.weights is None else table.weights
    size = np.abs(X).max() or 1.0
    units, share = X / size, weights / (weights.max() or 1.0)
    if options.centred:
        units = units - share @ units / share.sum()
    mean = float(share @ np.square(units).sum(axis=1)) / X.shape[1] or 1.0
    power = np.log10(mean) + np.log10(weights.max())
    if options.parameters["standardize"]:
        power = np.log10(weights.max()) + np.log10(share.sum())
    elif options.parameters["feature_scale"] is None:
        power += 2 * np.log10(size)
    found = []
    for _ in range(count):
        exponent = power + rng.choice([rng.uniform(-3, 2), rng.uniform(-12, 6)])
        if rng.random() < 0.06:
            exponent = rng.choice([-300, -200, -100, 0, 100, 200, 290])
        if rng.random() < 0.03:
            found.append(0.0)
        else:
            found.append(float(10.0 ** np.clip(exponent, -299.9, 300)))
    return found


def exact_of(options, table, model, out, *, merged_float32=False):
    """Return exact ridge of the rows of a table, as this model means it; None if it is unclear.

    A column counts as constant if the model says so by a scale of one, which is looked at.
    """
    y = table.y
    scale, constant = options.parameters["feature_scale"], None
    if options.parameters["standardize"]:
        scale = "deviations"
        exact = Exact(table.X, y, table.weights, centred=options.centred, scale=scale)
        means, deviations = exact.deviations()
        if not options.centred:
            means = np.zeros_like(means)
        weight = float(len(table.X) if table.weights is None else table.weights.sum())
        limits = np.maximum(CONSTANT * np.abs(means), LEAST)
        # Squares times weights that are too small for float64 may be taken for zero.
        most = np.maximum(16 * limits, np.sqrt(LOST_SQUARES / weight))
        if merged_float32:  # rows that wait are handed over as they are stored
            most = np.maximum(most, 1e-6 * np.abs(table.X).max(axis=0) + 1e-44)
        told = model.scale_
        alike = np.abs(deviations - 1.0) < 1e-3
        constant = (told == 1.0) & ~(alike & (deviations > limits))
        varies = deviations > limits / 16
        if merged_float32:
            varies |= told <= most
        wrong = np.where(constant, deviations > most, ~varies)
        if wrong.any():
            j = int(np.argmax(wrong))
            out.fail(
                "constant columns",
                f"column {j} has the scale {told[j]:g}, and deviates by {deviations[j]:g} from a "
                f"mean of {means[j]:g}",
            )
        constant = constant | (deviations == 0)
    return Exact(table.X, y, table.weights, centred=options.centred, scale=scale, constant=constant)


def attempt(out: Outcome, call, *models, tame):
    """Make a call that changes models; return whether it went through.

    What is near the ends of the range of floats may be refused, with a ValueError that says so,
    and changes nothing then. Everything else that is raised is a failure.
    """
    # Images take time: tame rows must not be refused at all.
    before = [] if tame else [(model, image(model)) for model in models]
    try:
        call()
    except ValueError as error:
        text = str(error)
        if not tame and any(word in text for word in TOO_FAR):
            out.counts["refused"] += 1
        else:
            out.fail("refused", f"{type(error).__name__}: {text[:300]}")
        for model, kept in before:
            try:
                same = image(model) == kept
            except RuntimeError as broken:
                same = not is_broken(broken)
            if not same:
                out.fail("failed call changed the model", f"refused with: {text[:200]}")
        return False
    except Exception as error:
        out.fail("unexpected error", f"{type(error).__name__}: {str(error)[:300]}")
        return False
    return True


def ask(out: Outcome, question):
    """Return the answer; None where there is no solution, or with a failure if it is an error."""
    try:
        return question()
    except ValueError as error:
        if any(word in str(error) for word in (*NO_SOLUTION, "overflow")):
            out.counts["refused"] += 1
        else:
            out.fail("refused", f"{type(error).__name__}: {str(error)[:300]}")
    except Exception as error:
        out.fail("unexpected error", f"{type(error).__name__}: {str(error)[:300]}")
    return None

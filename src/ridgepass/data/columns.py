"""Which columns of a table become which features; kept with the model, for predicting later."""

import difflib
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any

Name = str | int | os.PathLike[str]
Names = Name | Iterable[Name] | None

# One-hot columns that leave fewer than one number in ten are kept sparse.
SPARSE_BELOW = 0.1


@dataclass(frozen=True)
class Feature:
    """A column of numbers, which is one feature."""

    name: str

    @property
    def width(self) -> int:
        """How many features it becomes."""
        return 1

    @property
    def names(self) -> list[str]:
        """Their names."""
        return [self.name]


@dataclass(frozen=True)
class Vector(Feature):
    """A column of lists, all of one length."""

    length: int

    @property
    def width(self) -> int:
        """How many features it becomes."""
        return self.length

    @property
    def names(self) -> list[str]:
        """Their names."""
        return [f"{self.name}[{i}]" for i in range(self.length)]


@dataclass(frozen=True)
class OneHot(Feature):
    """A column of categories, each of which becomes a feature of zeros and ones."""

    categories: tuple[str, ...]

    @property
    def width(self) -> int:
        """How many features it becomes."""
        return len(self.categories)

    @property
    def names(self) -> list[str]:
        """Their names."""
        return [f"{self.name}={category}" for category in self.categories]


@dataclass(frozen=True)
class Columns:
    """How rows of a table are read.

    Attributes
    ----------
    features : tuple of Feature
        In the order of the model's features.
    targets : tuple of str
        Columns to predict; empty when predicting.
    weight : str or None
        The column of weights.
    nulls : {"error", "drop", "zero", "mean"}
        What becomes of missing values.
    dtype : {"float32", "float64"}
        What features are read as.
    means : tuple of float or None
        What missing values become with ``nulls="mean"``, once known.
    """

    features: tuple[Feature, ...]
    targets: tuple[str, ...] = ()
    weight: str | None = None
    nulls: str = "error"
    dtype: str = "float64"
    means: tuple[float, ...] | None = None

    @property
    def width(self) -> int:
        """How many features there are."""
        return sum(feature.width for feature in self.features)

    @property
    def names(self) -> list[str]:
        """The names of all features."""
        return [name for feature in self.features for name in feature.names]

    @property
    def needed(self) -> list[str]:
        """The columns to read."""
        weight = [] if self.weight is None else [self.weight]
        return [*(feature.name for feature in self.features), *self.targets, *weight]

    @property
    def is_sparse(self) -> bool:
        """Whether rows are mostly zeros."""
        return self._n_set < SPARSE_BELOW * self.width

    @property
    def n_filled(self) -> int:
        """How many numbers a row takes in memory."""
        return 2 * self._n_set if self.is_sparse else self.width

    @property
    def _n_set(self) -> int:
        return sum(1 if isinstance(f, OneHot) else f.width for f in self.features)

    def label(self, feature: int) -> str:
        """Return what errors call a feature: its column, and where in a list it is."""
        for column in self.features:
            if feature < column.width:
                return column.name if isinstance(column, OneHot) else column.names[feature]
            feature -= column.width
        raise IndexError(feature)

    def for_prediction(self) -> "Columns":
        """Return the same without targets and weights."""
        return replace(self, targets=(), weight=None)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        features: list[dict[str, Any]] = []
        for feature in self.features:
            plain: dict[str, Any] = {"name": feature.name}
            if isinstance(feature, Vector):
                plain["length"] = feature.length
            elif isinstance(feature, OneHot):
                plain["categories"] = list(feature.categories)
            features.append(plain)
        return {
            "features": features,
            "targets": list(self.targets),
            "weight": self.weight,
            "nulls": self.nulls,
            "dtype": self.dtype,
            "means": None if self.means is None else list(self.means),
        }

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> "Columns":
        """Take it up again."""
        means = plain["means"]
        return cls(
            tuple(_feature(**feature) for feature in plain["features"]),
            tuple(plain["targets"]),
            plain["weight"],
            plain["nulls"],
            plain["dtype"],
            None if means is None else tuple(means),
        )


def _feature(name: str, length: int | None = None, categories: list[str] | None = None) -> Feature:
    if length is not None:
        return Vector(name, length)
    return Feature(name) if categories is None else OneHot(name, tuple(categories))


def as_names(names: Names) -> list[str]:
    """Return one name or many as a list."""
    if names is None:
        return []
    if isinstance(names, str | int | os.PathLike):
        names = [names]
    # Columns of arrays are called by numbers, and a file of targets by its path.
    return [str(name) if isinstance(name, int) else os.fspath(name) for name in names]


def select(
    columns: Sequence[str],
    where: str,
    *,
    features: Sequence[str],
    exclude: Sequence[str],
    others: Sequence[str],
    index: Collection[str] = (),
) -> list[str]:
    """Return the columns that are features, in the table's order.

    Parameters
    ----------
    columns : sequence of str
        What the table has.
    where : str
        The table's name.
    features, exclude : sequence of str
        Patterns such as ``"x_*"``; without ``features`` every column is one.
    others : sequence of str
        Columns of targets and weights, which are none.
    index : collection of str
        Columns that are features only if named in full.
    """
    check_distinct(columns, where)
    for name in others:
        check_there(name, columns, where)
    for pattern in [*features, *exclude]:
        if not any(_matches(name, pattern) for name in columns):
            check_there(pattern, columns, where)
    chosen = [
        name
        for name in columns
        if name not in others
        and (name not in index or name in features)
        and (not features or any(_matches(name, pattern) for pattern in features))
        and not any(_matches(name, pattern) for pattern in exclude)
    ]
    if not chosen:
        raise ValueError(f"{where} has no column left for features: exclude fewer")
    return chosen


def check_distinct(columns: Sequence[str], where: str) -> None:
    """Raise for two columns of one name."""
    name, count = Counter(columns).most_common(1)[0] if columns else ("", 0)
    if count > 1:
        raise ValueError(f"{where} has two columns {name!r}: rename one of them")


def one_role(names: list[str]) -> list[str]:
    """Return targets and weight, of which none may be named twice."""
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise ValueError(f"column {twice!r} is named twice as target or weight: name it once")
    return names


def check_there(name: str, columns: Collection[str], where: str) -> None:
    """Raise for a column that is not there, with names that come near."""
    if name in columns:
        return
    near = difflib.get_close_matches(name, columns, n=3, cutoff=0.6)
    lower = [column for column in columns if column.lower() == name.lower()]
    near = list(dict.fromkeys([*lower, *near]))
    if near:
        hint = f"did you mean {' or '.join(repr(column) for column in near)}?"
    else:
        shown = ", ".join(repr(column) for column in islice(columns, 10))
        more = f" and {len(columns) - 10} more" if len(columns) > 10 else ""
        hint = f"it has {shown}{more}"
    raise ValueError(f"{where} has no column {name!r}: {hint}")


def _matches(name: str, pattern: str) -> bool:
    # A column may be called "x[0]", which as a pattern would mean something else.
    return name == pattern or fnmatchcase(name, pattern)

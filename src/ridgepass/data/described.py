"""What `Source.describe` says of columns, as it must be before it is believed."""

import math
import re
from typing import Any

from ridgepass.data.missing import POLICIES
from ridgepass.snapshot import entry, flag, float_type, part, text, whole

_NUMBER = re.compile("0|[1-9][0-9]{0,17}")
_KEYS = {
    "table": {"features", "targets", "weight", "dtype"},
    "array": {"width", "taken", "targets", "weight", "dtype"},
    "svmlight": {"zero_based"},
}


def check_described(columns: Any, n_features: int) -> None:
    """Raise ValueError unless a source of so many features could have described its columns so.

    Parameters
    ----------
    columns : object
        What a file has in the place of a description.
    n_features : int
        How many features the model has.
    """
    kind = text(entry(columns, "kind"), "kind")
    if kind not in _KEYS or columns.keys() != _KEYS[kind] | {"kind", "nulls", "means"}:
        raise ValueError("columns are described in an unknown way")
    if kind == "svmlight":
        flag(columns["zero_based"], "zero_based")
    else:
        _check_columns(columns, n_features)
    nulls, means = text(columns["nulls"], "nulls"), columns["means"]
    if nulls not in POLICIES:
        raise ValueError(f"nulls is none of {', '.join(POLICIES)}")
    if (nulls == "mean") != (means is not None):
        raise ValueError("means go with nulls='mean' and with nothing else")
    if means is not None:
        if len(_list(means, "means")) != n_features:
            raise ValueError(f"{n_features} features have {len(means)} means")
        if not all(isinstance(mean, float) and math.isfinite(mean) for mean in means):
            raise ValueError("means are not all finite numbers")


def _check_columns(columns: dict[str, Any], n_features: int) -> None:
    """Check the columns of a table or of an array, which calls them by their numbers."""
    float_type(columns["dtype"], "dtype")
    if columns["kind"] == "table":
        features = [part(one, "a feature") for one in _list(columns["features"], "features")]
        width = sum(map(_width, features))
        names = [_word(entry(feature, "name"), "name") for feature in features]
    else:
        names = [str(whole(one, "a column")) for one in _list(columns["taken"], "taken")]
        width = len(names)
    if width != n_features:
        raise ValueError(f"columns make {width} features, and the model has {n_features}")
    names += _words(columns["targets"], "targets")
    if columns["weight"] is not None:
        names.append(_word(columns["weight"], "weight"))
    if len(set(names)) < len(names):
        raise ValueError("a column has two roles")
    if columns["kind"] == "array":
        width = whole(columns["width"], "width")
        if not all(_NUMBER.fullmatch(name) and int(name) < width for name in names):
            raise ValueError(f"there is a column beyond the {width} of the array")


def _width(feature: dict[str, Any]) -> int:
    """Return how many features a column of a table becomes."""
    more = feature.keys() - {"name"}
    if more == {"length"}:
        return whole(feature["length"], "length", least=1)
    if more == {"categories"}:
        categories = _words(feature["categories"], "categories")
        if not categories or len(set(categories)) < len(categories):
            raise ValueError("categories are missing or occur twice")
        return len(categories)
    if more:
        raise ValueError("a feature is described in an unknown way")
    return 1


def _list(kept: Any, name: str) -> list[Any]:
    if not isinstance(kept, list):
        raise ValueError(f"{name} is not a list")  # noqa: TRY004 - bad data, not a bug
    return kept


def _words(kept: Any, name: str) -> list[str]:
    return [_word(each, name) for each in _list(kept, name)]


def _word(kept: Any, name: str) -> str:
    """Return a string that a table may hold; half a character is an error."""
    text(kept, name).encode()
    return str(kept)

"""Which columns of tables are read, and as what."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ridgepass.data.columns import (
    Columns,
    Feature,
    OneHot,
    Vector,
    check_distinct,
    check_there,
    one_role,
    select,
)
from ridgepass.data.encode import (
    as_text,
    canonical,
    has_categories,
    is_number,
    is_short,
    is_text,
    is_vector,
)
from ridgepass.data.tables import Table

SCAN_ROWS = 1 << 16
MOST_LOOKED_AT = 1 << 20  # rows, for a word among numbers


@dataclass(frozen=True)
class Wanted:
    """What a user asks of a table's columns, before any is looked at."""

    target: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    weight: str | None = None
    one_hot: Mapping[str, Sequence[str] | None] = field(default_factory=dict)
    nulls: str = "error"


def choose_columns(tables: list[Table], wanted: Wanted) -> Columns:
    """Settle which columns are read and how, from the schemas and, where needed, a quick look."""
    unlike = _unlike(tables)
    first = unlike[0]
    others = one_role([*wanted.target, *([wanted.weight] if wanted.weight else [])])
    chosen = _select(first, wanted, others)
    known = set(chosen)
    for name in wanted.one_hot:
        check_there(name, chosen, f"what is left of {first.name} for features")
    for table in unlike[1:]:
        found = _select(table, wanted, others)
        there = dict.fromkeys(found)
        for name in chosen:
            check_there(name, there, table.name)
        strange = next((name for name in found if name not in known), None)
        if strange is not None:
            raise ValueError(
                f"{table.name} has a column {strange!r} that {first.name} has not: leave it out "
                f"with exclude (--exclude {strange}), or name the features"
            )
    for table in unlike:
        for name in others:
            check_number(table, name)
    kinds = {name: _kind(name, unlike, wanted.one_hot) for name in chosen}
    lengths = _lengths(tables, [name for name in chosen if kinds[name] == "list"])
    groups = _categories(tables, wanted.one_hot)
    features = tuple(
        Vector(name, lengths[name])
        if name in lengths
        else OneHot(name, groups[name])
        if name in groups
        else Feature(name)
        for name in chosen
    )
    columns = Columns(features, wanted.target, wanted.weight, wanted.nulls)
    check_distinct(columns.names, "what becomes of the columns")
    return replace(columns, dtype=float_type(unlike, columns))


def float_type(tables: list[Table], columns: Columns) -> str:
    """Return what holds the features of all tables without loss."""
    plain = [feature.name for feature in columns.features if not isinstance(feature, OneHot)]
    kinds = (table.schema.field(name).type for table in _unlike(tables) for name in plain)
    return "float32" if plain and all(map(is_short, kinds)) else "float64"


def check_kept(tables: list[Table], names: Sequence[str]) -> None:
    """Raise unless columns to hand on are of one type throughout."""
    first = tables[0]
    for table in _unlike(tables):
        for name in names:
            check_there(name, table.schema.names, table.name)
            kind, before = (one.schema.field(name).type for one in (table, first))
            if kind != before:
                raise ValueError(
                    f"column {name!r} to keep is {before} in {first.name} and {kind} in "
                    f"{table.name}: give files of one schema, or keep another column"
                )


def check_tables(tables: list[Table], columns: Columns) -> None:
    """Raise unless tables have the columns that a model was trained on."""
    one_hot = {f.name: f.categories for f in columns.features if isinstance(f, OneHot)}
    for table in _unlike(tables):
        names = table.schema.names
        check_distinct(names, table.name)
        there = dict.fromkeys(names)
        for feature in columns.features:
            check_there(feature.name, there, table.name)
            kind = _kind(feature.name, [table], one_hot)
            if (kind == "list") != isinstance(feature, Vector):
                was = "lists" if isinstance(feature, Vector) else "single numbers"
                raise ValueError(
                    f"column {feature.name!r} of {table.name} has other values than the {was} "
                    "that the model was trained on: give the same columns"
                )


def _unlike(tables: list[Table]) -> list[Table]:
    """Return one table of each schema, so that a thousand files alike are checked once."""
    found: list[Table] = []
    for table in tables:
        if not any(table.schema.equals(other.schema) for other in found[-8:]):
            found.append(table)
    return found


def _select(table: Table, wanted: Wanted, others: list[str]) -> list[str]:
    return select(
        table.schema.names,
        table.name,
        features=wanted.features,
        exclude=wanted.exclude,
        others=others,
        index=table.index,
    )


def _kind(name: str, tables: list[Table], one_hot: Mapping[str, Any]) -> str:
    found: dict[str, str] = {}
    for table in tables:
        kind = table.schema.field(name).type
        if name in one_hot:
            if not has_categories(kind):
                raise ValueError(
                    f"column {name!r} of {table.name} is of type {kind}, which has no categories: "
                    f"leave it out with exclude (--exclude {name})"
                )
            found["category"] = table.name
        elif is_number(kind):
            found["number"] = table.name
        elif is_vector(kind):
            found["list"] = table.name
        else:
            raise _unfit(name, table, kind)
    if len(found) > 1:
        (one, table_name), (other, another) = found.items()
        raise ValueError(
            f"column {name!r} is a {one} in {table_name} and a {other} in {another}: "
            "give files of one schema"
        )
    return next(iter(found))


def _unfit(name: str, table: Table, kind: pa.DataType) -> ValueError:
    one_hot = f"make features of its categories with one_hot (--one-hot {name}), or "
    return ValueError(
        f"column {name!r} of {table.name} is {_called(kind, name, table)}, not numbers: "
        f"{one_hot if has_categories(kind) else ''}leave it out with exclude (--exclude {name})"
    )


def check_number(table: Table, name: str) -> None:
    """Raise unless a column can be a target or a weight."""
    kind = table.schema.field(name).type
    if not is_number(kind):
        raise ValueError(
            f"column {name!r} of {table.name} is {_called(kind, name, table)}: targets and weights "
            "must be numbers"
        )


def _called(kind: pa.DataType, name: str, table: Table) -> str:
    """Say what a column is, and of text where it begins: it may be one word among numbers."""
    if not is_text(kind):
        return f"of type {kind}"
    row = 0
    for batch in table.peek([name]):
        for value in as_text(batch.column(name)).to_pylist():
            row += 1
            if value is not None and not _is_number(value):
                return f"text ({value[:40]!r} in row {row})"
        if row > MOST_LOOKED_AT:
            break
    return "text"


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return "_" not in value and value.isascii()


def _lengths(tables: list[Table], names: list[str]) -> dict[str, int]:
    """Return how long the lists of some columns are."""
    known: dict[str, int] = {}
    for table in tables:
        for name in names:
            kind = table.schema.field(name).type
            if name not in known and pa.types.is_fixed_size_list(kind):
                known[name] = kind.list_size
        unknown = [name for name in names if name not in known]
        if not unknown:
            break
        for batch in table.peek(unknown):
            for name in unknown:
                lengths = pc.drop_null(pc.list_value_length(batch.column(name)))
                if name not in known and len(lengths):
                    known[name] = lengths[0].as_py()
            if all(name in known for name in unknown):
                break
    for name in names:
        if not known.get(name):
            raise ValueError(
                f"column {name!r} of {tables[0].name} has no list with a number in it: "
                f"leave it out with exclude (--exclude {name})"
            )
    return known


def _categories(
    tables: list[Table], one_hot: Mapping[str, Sequence[str] | None]
) -> dict[str, tuple[str, ...]]:
    """Return the categories of some columns: those given, or all there are, in order."""
    scanned = [name for name, given in one_hot.items() if given is None]
    found: dict[str, set[str]] = {name: set() for name in scanned}
    for table in tables if scanned else []:
        if not table.rereadable:
            raise ValueError(
                f"{table.name} can be read only once, so its categories must be told: "
                f"--one-hot {scanned[0]}=first,second (in Python one_hot={{{scanned[0]!r}: [...]}})"
            )
        for batch in table.read(scanned, 0, SCAN_ROWS):
            for name in scanned:
                found[name].update(_distinct(batch.column(name)))
    result = {}
    for name, given in one_hot.items():
        told = None if given is None else canonical(pa.array(map(str, given))).to_pylist()
        categories = tuple(sorted(found[name]) if told is None else told)
        if not categories:
            raise ValueError(
                f"column {name!r} has no value, so no category: leave it out with exclude "
                f"(--exclude {name})"
            )
        if len(set(categories)) < len(categories):
            raise ValueError(f"column {name!r} is given a category twice: name each once")
        result[name] = categories
    return result


def _distinct(column: pa.Array) -> set[str]:
    # Text first: Arrow takes null for empty text among distinct views of strings.
    distinct = (
        pc.unique(column) if pa.types.is_dictionary(column.type) else pc.unique(as_text(column))
    )
    return {value for value in as_text(distinct).to_pylist() if value is not None}

"""From what a user names to a source of rows, to train on or to predict for."""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ridgepass.data.columns import Columns, Feature, Names, OneHot, as_names, check_there
from ridgepass.data.files import STANDARD_INPUT, File, find_files
from ridgepass.data.missing import as_policy
from ridgepass.data.source import Source


def open_source(
    source: Any,
    *,
    target: Names = None,
    features: Names = None,
    exclude: Names = None,
    weight: str | int | None = None,
    one_hot: str | Iterable[str] | Mapping[str, Sequence[str] | None] | None = None,
    nulls: str = "error",
    format: str | None = None,
    n_features: int | None = None,
    zero_based: bool | None = None,
) -> Source:
    """Open something to train on; see `ridgepass.data.batches` for the parameters."""
    policy = as_policy(nulls)
    groups = dict(one_hot) if isinstance(one_hot, Mapping) else dict.fromkeys(as_names(one_hot))
    chosen = tuple(as_names(features)), tuple(as_names(exclude))
    weighted = None if weight is None else as_names(weight)[0]
    files = find_inputs(source, format)
    kind = files[0].format if files else "table"
    if kind in ("npy", "svmlight") and groups:
        raise ValueError(f"{files[0].path} has numbers only: one-hot is for columns of a table")
    if kind == "npy" and n_features is None and zero_based is None:
        return _open_arrays(files, as_names(target), *chosen, weighted, policy)
    if kind == "svmlight":
        if target is not None or weight is not None or any(chosen):
            raise ValueError(
                f"{files[0].path} has its target in each line and no column names: leave out "
                "target, weight, features and exclude"
            )
        return _open_svmlight(files, policy, n_features, zero_based)
    if n_features is not None or zero_based is not None:
        raise ValueError("n_features and zero_based are for svmlight files: leave them out")
    tables = _tables(source, files, format, groups)
    from ridgepass.data.choosing import Wanted, choose_columns
    from ridgepass.data.table_source import TableSource

    wanted = Wanted(tuple(as_names(target)), *chosen, weighted, groups, policy)
    return TableSource(tables, choose_columns(tables, wanted), files)


def open_for_prediction(
    source: Any,
    described: Mapping[str, Any] | None,
    names: Sequence[str] | None,
    n_features: int,
    *,
    nulls: str | None = None,
    format: str | None = None,
    keep: Sequence[str] = (),
) -> Source:
    """Open something to predict for.

    Parameters
    ----------
    source : str, path, list of them, or a stream of Arrow batches
        What to read.
    described : mapping or None
        What `Source.describe` said of the training data, if it came from a source.
    names : sequence of str or None
        The model's feature names, if it has any.
    n_features : int
        How many features the model has.
    nulls : str, optional
        Another way with missing values than in training.
    format : str, optional
        The files' format, if their names do not tell.
    keep : sequence of str
        Columns of a table to hand on as they are.
    """
    plain = {"kind": "table" if names is not None else None, **(described or {})}
    policy, means = _nulls_like(plain, nulls)
    files = find_inputs(source, format)
    kind = files[0].format if files else "table"
    if keep and kind in ("npy", "svmlight"):
        raise ValueError(f"{files[0].path} has no columns to keep: leave keep out")
    if kind == "npy":
        return _arrays_like(files, plain, n_features, policy, means)
    if kind == "svmlight":
        return _svmlight_like(files, plain, n_features, policy, means)
    if plain["kind"] != "table":
        known = None
    elif "features" in plain:
        known = Columns.from_json(plain).for_prediction()
    else:
        known = Columns(tuple(map(Feature, names or ())))
    features = () if known is None else known.features
    groups = [feature.name for feature in features if isinstance(feature, OneHot)]
    numbers = [feature.name for feature in features if not isinstance(feature, OneHot)]
    # A key such as 00123 is to come out as it went in.
    tables = _tables(source, files, format, [*groups, *(set(keep) - set(numbers))])
    from ridgepass.data.choosing import (
        Wanted,
        check_kept,
        check_tables,
        choose_columns,
        float_type,
    )
    from ridgepass.data.table_source import TableSource

    check_kept(tables, keep)
    if known is None:
        known = choose_columns(tables, Wanted(exclude=tuple(keep)))
        if known.width != n_features:
            raise ValueError(
                f"{tables[0].name} has {known.width} features, the model was trained on "
                f"{n_features} without names: give the same columns as in training"
            )
    else:
        check_tables(tables, known)
    # Rows are read as they are, not as in training: rounding them is not in a certificate.
    columns = replace(known, nulls=policy, means=means, dtype=float_type(tables, known))
    return TableSource(tables, columns, files, keep)


def open_again(
    source: Any, described: Mapping[str, Any], n_features: int, format: str | None = None
) -> Source:
    """Open what a model of so many features was trained on, as `Source.describe` described it."""
    files = find_inputs(source, format)
    kind, known = files[0].format if files else "table", described["kind"]
    if (kind if kind in ("npy", "svmlight") else "table") != {"array": "npy"}.get(known, known):
        raise ValueError(
            "this is another kind of files than in training: give those of training, or say which "
            "column is the target"
        )
    means = described["means"]
    means = None if means is None else tuple(means)
    if kind == "svmlight":
        from ridgepass.data.svmlight import SvmlightSource, svmlight_columns

        columns = svmlight_columns(n_features, described["nulls"], means)
        return SvmlightSource(files, columns, described["zero_based"])
    if kind == "npy":
        from ridgepass.data.arrays import ArraySource, open_arrays

        width = open_arrays(files)[0].width
        if width != described["width"]:
            raise ValueError(
                f"{files[0].path} has {width} columns, and in training there were "
                f"{described['width']}: give the same data"
            )
        features = tuple(Feature(str(i)) for i in described["taken"])
        targets, weight = tuple(described["targets"]), described["weight"]
        if not targets:
            raise ValueError("the targets were in a file of their own: name it again as target")
        nulls, dtype = described["nulls"], described["dtype"]
        return ArraySource(files, Columns(features, targets, weight, nulls, dtype, means))
    columns = Columns.from_json(described)
    groups = [feature.name for feature in columns.features if isinstance(feature, OneHot)]
    tables = _tables(source, files, format, groups)
    from ridgepass.data.choosing import check_number, check_tables
    from ridgepass.data.table_source import TableSource

    check_tables(tables, columns)
    for table in tables:
        for name in (*columns.targets, *([] if columns.weight is None else [columns.weight])):
            check_there(name, table.schema.names, table.name)
            check_number(table, name)
    return TableSource(tables, columns, files)


def _nulls_like(
    plain: Mapping[str, Any], nulls: str | None
) -> tuple[str, tuple[float, ...] | None]:
    """Return what becomes of missing values, and the means of training where they are needed."""
    policy = as_policy(plain.get("nulls", "error") if nulls is None else nulls)
    means = plain.get("means")
    if policy != "mean":
        return policy, None
    if means is None:
        raise ValueError(
            "the model knows no means to fill in: train it with nulls='mean' (--nulls mean), "
            "or choose drop or zero"
        )
    return policy, tuple(means)


def find_inputs(source: Any, format: str | None = None) -> list[File]:
    """Return the files that a source stands for; none if it is something else."""
    paths = _paths(source)
    if STANDARD_INPUT in paths and len(paths) > 1:
        raise ValueError("standard input (-) must be the only input: leave the files out")
    return find_files(paths, format) if paths and paths != [STANDARD_INPUT] else []


def find_targets(files: list[File], target: Names) -> File | None:
    """Return the file that the targets lie in, if it is one of their own."""
    named = as_names(target)
    if not files or files[0].format != "npy" or len(named) != 1 or not named[0].endswith(".npy"):
        return None
    return find_files(named)[0]


def _paths(source: Any) -> list[str | os.PathLike[str]]:
    if isinstance(source, str | os.PathLike):
        return [source]
    if isinstance(source, Sequence) and all(isinstance(i, str | os.PathLike) for i in source):
        return list(source)
    return []


def _tables(source: Any, files: list[File], format: str | None, groups: Iterable[str]) -> list[Any]:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError("reading tables needs pyarrow: pip install 'ridgepass[files]'") from error
    from ridgepass.data.stream_table import StreamTable, standard_input
    from ridgepass.data.table_source import open_tables

    text = dict.fromkeys(groups, pa.string())
    if files:
        return list(open_tables(files, text))
    if _paths(source) == [STANDARD_INPUT]:
        return [standard_input(sys.stdin.buffer, format, text)]
    if not any(hasattr(source, name) for name in ("__arrow_c_stream__", "scanner")):
        lazy = "call its collect(), or " if hasattr(source, "collect") else ""
        raise TypeError(
            f"cannot read rows from a {type(source).__name__}: {lazy}give paths, a data frame, or "
            "anything with __arrow_c_stream__"
        )
    return [StreamTable(source)]


def _open_arrays(
    files: list[File],
    target: list[str],
    features: tuple[str, ...],
    exclude: tuple[str, ...],
    weight: str | None,
    nulls: str,
) -> Source:
    from ridgepass.data.arrays import ArrayFile, ArraySource, choose_array_columns

    target_file = None
    if find_targets(files, target) is not None:
        target_file, target = ArrayFile(target[0]), []
    columns = choose_array_columns(
        files, target=target, features=features, exclude=exclude, weight=weight, nulls=nulls
    )
    return ArraySource(files, columns, target_file)


def _arrays_like(
    files: list[File],
    plain: Mapping[str, Any],
    n_features: int,
    nulls: str,
    means: tuple[float, ...] | None,
) -> Source:
    from ridgepass.data.arrays import ArraySource, array_type, open_arrays

    arrays = open_arrays(files)
    width = arrays[0].width
    if width == n_features:
        taken = range(width)
    elif plain["kind"] == "array" and width == plain["width"]:
        taken = plain["taken"]
    else:
        raise ValueError(
            f"{files[0].path} has {width} columns, the model has {n_features} features: "
            "give the same columns as in training"
        )
    features, dtype = tuple(Feature(str(i)) for i in taken), array_type(arrays)
    return ArraySource(files, Columns(features, nulls=nulls, dtype=dtype, means=means))


def _open_svmlight(
    files: list[File], nulls: str, n_features: int | None, zero_based: bool | None
) -> Source:
    from ridgepass.data.svmlight import SvmlightSource, scan_svmlight, svmlight_columns

    if n_features is None or zero_based is None:
        largest, from_zero = scan_svmlight(files)
        zero_based = from_zero if zero_based is None else zero_based
        n_features = largest + int(zero_based) if n_features is None else n_features
    return SvmlightSource(files, svmlight_columns(n_features, nulls), zero_based)


def _svmlight_like(
    files: list[File],
    plain: Mapping[str, Any],
    n_features: int,
    nulls: str,
    means: tuple[float, ...] | None,
) -> Source:
    from ridgepass.data.svmlight import SvmlightSource, svmlight_columns

    columns = svmlight_columns(n_features, nulls, means)
    zero_based = plain.get("zero_based", False)
    return SvmlightSource(files, columns, zero_based, with_targets=False)

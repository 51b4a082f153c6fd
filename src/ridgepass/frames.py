"""Tables with named columns as arrays of floats: pandas, polars, pyarrow, and what speaks Arrow.

None of these libraries is imported before one of its objects is handed over.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Object columns of pandas that hold numbers, as `pandas.api.types.infer_dtype` calls them.
_NUMBERS = {"boolean", "decimal", "empty", "floating", "integer", "mixed-integer-float"}


class Frame(ABC):
    """A table with named columns.

    Attributes
    ----------
    columns : list
        The names, of any type.
    """

    columns: list[Any]

    @property
    def feature_names(self) -> NDArray[Any] | None:
        """The names if all are strings, None if none is, by scikit-learn's rule."""
        kinds = sorted({type(name).__qualname__ for name in self.columns})
        if len(kinds) > 1 and "str" in kinds:
            raise TypeError(
                "Feature names are only supported if all input features have string names, but "
                f"these columns have names of type {', '.join(kinds)}: rename them, "
                "for example with X.columns = X.columns.astype(str)"
            )
        return np.asarray(self.columns, dtype=object) if kinds == ["str"] else None

    @abstractmethod
    def values(self) -> Any:
        """Return a C-contiguous array, or a sparse one of a pandas frame whose columns all are.

        float32 if every column is float32 or float16, else float64.
        """

    def _check(self, unfit: dict[int, str], nulls: Iterable[int]) -> None:
        """Raise for columns that are not numbers, given with their types, or have nulls."""
        if unfit:
            named = [f"{self.columns[i]!r} ({kind})" for i, kind in unfit.items()]
            raise ValueError(
                f"{_listed(named)} {_plural(named)} not numbers: drop such columns or encode "
                "them first, for example with sklearn.preprocessing.OneHotEncoder"
            )
        missing = [repr(self.columns[i]) for i in nulls]
        if missing:
            raise ValueError(
                f"{_listed(missing)} {_plural(missing, 'has', 'have')} missing values (null): "
                "drop such rows or fill them in first"
            )


def open_frame(data: Any) -> Frame | None:
    """Return a table's view as a `Frame`, or None for arrays, series and all else.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = open_frame(pd.DataFrame({"age": [41, 38], "owner": [True, False]}))
    >>> frame.feature_names
    array(['age', 'owner'], dtype=object)
    >>> frame.values()
    array([[41.,  1.],
           [38.,  0.]])
    """
    if isinstance(data, np.ndarray):
        return None
    pandas, polars, arrow = (sys.modules.get(name) for name in ("pandas", "polars", "pyarrow"))
    if pandas is not None:
        if isinstance(data, pandas.DataFrame):
            return _PandasFrame(data, pandas)
        if isinstance(data, pandas.Series):
            return None
    if polars is not None:
        if isinstance(data, polars.DataFrame):
            return _PolarsFrame(data, polars)
        if isinstance(data, polars.LazyFrame):
            raise TypeError("a polars LazyFrame has no rows yet: call its collect() first")
        if isinstance(data, polars.Series):
            return None
    if arrow is not None and isinstance(data, arrow.ChunkedArray | arrow.Array):
        return None
    return _ArrowFrame(data) if hasattr(data, "__arrow_c_stream__") else None


class _PandasFrame(Frame):
    def __init__(self, data: Any, pandas: Any) -> None:
        self.data, self.pandas = data, pandas
        self.columns = list(data.columns)

    def values(self) -> Any:
        kinds = self.data.dtypes
        # Thousands of columns share a few dtypes: look at each dtype once.
        plain = {kind: _is_plain(kind) for kind in set(kinds)}
        if all(plain.values()):
            dtype = _float_for(kind.itemsize if kind.kind == "f" else 8 for kind in plain)
            return np.ascontiguousarray(self.data.to_numpy(dtype=dtype))
        types, unfit, nulls = self.pandas.api.types, {}, []
        data = self.data
        for i, kind in enumerate(kinds):
            if plain[kind]:
                continue
            column = data.iloc[:, i]
            if kind == object:  # noqa: E721 - a dtype, not a type
                inferred = types.infer_dtype(column, skipna=True)
                if inferred not in _NUMBERS:
                    unfit[i] = inferred
                    continue
            elif not types.is_any_real_numeric_dtype(kind) and not types.is_bool_dtype(kind):
                unfit[i] = str(kind)
                continue
            elif isinstance(kind, self.pandas.SparseDtype):
                continue
            if column.isna().any():
                nulls.append(i)
        self._check(unfit, nulls)
        if all(isinstance(kind, self.pandas.SparseDtype) for kind in kinds):
            return data.sparse.to_coo().tocsr()
        sizes = (_float_size(kind) for kind in plain)
        return np.ascontiguousarray(data.to_numpy(dtype=_float_for(sizes)))


class _PolarsFrame(Frame):
    def __init__(self, data: Any, polars: Any) -> None:
        self.data, self.polars = data, polars
        self.columns = list(data.columns)

    def values(self) -> NDArray[Any]:
        kinds = self.data.dtypes
        pl = self.polars
        unfit = {
            i: str(kind)
            for i, kind in enumerate(kinds)
            if not (kind.is_numeric() or kind == pl.Boolean)
        }
        counts = self.data.null_count().row(0) if kinds else ()
        self._check(unfit, (i for i, count in enumerate(counts) if count))
        short = _all_short(kind == pl.Float32 or str(kind) == "Float16" for kind in kinds)
        cast = self.data.cast(pl.Float32 if short else pl.Float64)
        return np.ascontiguousarray(cast.to_numpy(order="c"))


class _ArrowFrame(Frame):
    def __init__(self, data: Any) -> None:
        try:
            import pyarrow
        except ImportError as error:
            raise ImportError(
                f"reading a {type(data).__module__}.{type(data).__qualname__} needs pyarrow: "
                "pip install ridgepass[files]"
            ) from error
        self.arrow = pyarrow
        try:
            self.reader = pyarrow.RecordBatchReader.from_stream(data)
        except pyarrow.ArrowInvalid as error:
            raise TypeError(
                f"a {type(data).__qualname__} is not a table of named columns: give a table"
            ) from error
        self.columns = list(self.reader.schema.names)

    def values(self) -> NDArray[Any]:
        types, kinds = self.arrow.types, self.reader.schema.types
        unfit = {i: str(kind) for i, kind in enumerate(kinds) if not _is_arrow_number(types, kind)}
        self._check(unfit, ())
        short = _all_short(types.is_float16(kind) or types.is_float32(kind) for kind in kinds)
        wanted = self.arrow.float32() if short else self.arrow.float64()
        parts = list(self.reader)
        has_null = (any(part.column(i).null_count for part in parts) for i in range(len(kinds)))
        self._check({}, (i for i, found in enumerate(has_null) if found))
        rows = np.empty(
            (sum(part.num_rows for part in parts), len(kinds)), wanted.to_pandas_dtype()
        )
        stop = 0
        for part in parts:
            start, stop = stop, stop + part.num_rows
            for i in range(len(kinds)):
                # Unsafe only in that integers beyond 2**53 are rounded, as NumPy rounds them.
                column = part.column(i).cast(wanted, safe=False)
                rows[start:stop, i] = column.to_numpy(zero_copy_only=False)
        return rows


def _is_plain(kind: Any) -> bool:
    """Whether a pandas dtype is one of NumPy's numbers."""
    return isinstance(kind, np.dtype) and kind.kind in "biuf"


def _float_size(kind: Any) -> int:
    """Return the bytes of a floating dtype of NumPy or pandas; eight for all else."""
    inner = getattr(kind, "subtype", None) or getattr(kind, "numpy_dtype", kind)
    return int(inner.itemsize) if getattr(inner, "kind", "") == "f" else 8


def _float_for(sizes: Iterable[int]) -> type[np.floating[Any]]:
    return np.float32 if _all_short(size <= 4 for size in sizes) else np.float64


def _all_short(short: Iterable[bool]) -> bool:
    """Like ``all``, but a table without columns is float64."""
    found = list(short)
    return bool(found) and all(found)


def _is_arrow_number(types: Any, kind: Any) -> bool:
    tests: tuple[Callable[[Any], bool], ...] = (
        types.is_integer,
        types.is_floating,
        types.is_boolean,
        types.is_decimal,
    )
    return any(test(kind) for test in tests)


def _plural(names: list[str], one: str = "is", many: str = "are") -> str:
    return one if len(names) == 1 else many


def _listed(names: list[str], at_most: int = 5) -> str:
    """Name the columns, not all of thousands."""
    shown = ", ".join(names[:at_most])
    if len(names) > at_most:
        shown += f" and {len(names) - at_most} more"
    return f"column{'s' if len(names) > 1 else ''} {shown}"

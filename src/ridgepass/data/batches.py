"""The public way in: batches of X, y and weights from anything that can be read."""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from ridgepass.data.columns import Names
from ridgepass.data.opening import open_source
from ridgepass.data.source import Chunk, Position, Source, as_batch_rows
from ridgepass.kernels import Float64


class Batch(NamedTuple):
    """Some rows: the arguments of ``partial_fit``."""

    X: Any
    y: Float64 | None
    sample_weight: Float64 | None


class Batches:
    """Rows in a fixed order, a batch at a time; what `batches` returns.

    Attributes
    ----------
    feature_names : list of str or None
        What the columns of X are called; None for arrays and svmlight files.
    n_rows : int or None
        How many rows there are, where that is known without reading them.
    """

    def __init__(self, source: Source, batch_rows: int | None = None) -> None:
        self.source = source
        self.batch_rows = None if batch_rows is None else as_batch_rows(batch_rows)

    def __repr__(self) -> str:
        rows = "unknown" if self.n_rows is None else self.n_rows
        return f"Batches(n_features={self.source.columns.width}, n_rows={rows})"

    @property
    def feature_names(self) -> list[str] | None:
        """What the columns of X are called."""
        return self.source.feature_names

    @property
    def n_rows(self) -> int | None:
        """How many rows there are, if known."""
        return self.source.n_rows

    def __iter__(self) -> Iterator[Batch]:
        with closing(self.chunks()) as chunks:
            for chunk in chunks:
                if chunk.X.shape[0]:
                    yield Batch(chunk.X, chunk.y, chunk.weights)

    def chunks(self, start: Position | None = None) -> Generator[Chunk, None, None]:
        """Yield the same with what is needed to go on from there another time."""
        return self.source.chunks(start, self.batch_rows)


def batches(
    source: Any,
    target: Names = None,
    *,
    features: Names = None,
    exclude: Names = None,
    weight: str | int | None = None,
    one_hot: str | Iterable[str] | Mapping[str, Sequence[str] | None] | None = None,
    nulls: str = "error",
    format: str | None = None,
    batch_rows: int | None = None,
    n_features: int | None = None,
    zero_based: bool | None = None,
) -> Batches:
    """Read rows a batch at a time, in memory that does not grow.

    A thread reads ahead while the last batch is being used.

    Parameters
    ----------
    source : str, path, list of them, or a stream of Arrow batches
        Files, directories (searched below) and patterns such as ``"data/**/*.parquet"``: Parquet,
        CSV (``.gz`` too), Arrow IPC or Feather, ``.npy``, or svmlight. Directories called
        ``key=value`` add a column. Or anything with ``__arrow_c_stream__``: pandas and polars
        frames, Arrow tables and readers, DuckDB relations. The index of pandas is no feature.
    target : str or list of str, optional
        What to predict. For ``.npy`` the column's number (``"-1"`` is the last), or a ``.npy`` file
        of targets. Svmlight files have it in each line.
    features, exclude : str or list of str, optional
        Names or patterns such as ``"x_*"``. Every other column is a feature by default. Columns of
        numbers, booleans, and lists of equal length (an embedding) can be.
    weight : str, optional
        The column of sample weights.
    one_hot : str, list of str, or dict of str to list, optional
        Columns whose categories become features of zeros and ones. A dict gives the categories;
        otherwise that column is read once beforehand. Unknown categories are all zeros.
    nulls : {"error", "drop", "zero", "mean"}, default="error"
        What becomes of missing values (null and NaN): an error that says where, rows dropped, or
        the features filled in. ``"mean"`` reads everything once beforehand.
    format : {"parquet", "csv", "arrow", "npy", "svmlight"}, optional
        For files whose names do not tell.
    batch_rows : int, optional
        Rows in a batch; about 4 MB of them by default. Models do not depend on it.
    n_features, zero_based : int and bool, optional
        Of svmlight files: how many features there are, and whether the first is called 0. Both are
        told from the files by default, which reads them once beforehand; parts to be merged must
        agree on them.

    Returns
    -------
    Batches
        To be iterated over, as often as its source can be read.

    Notes
    -----
    A DuckDB connection runs one query at a time: while a relation is read, give other queries a
    ``cursor()`` of their own.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from ridgepass import StreamingRidge
    >>> from ridgepass.data import batches
    >>> table = pa.table({"size": [1.0, 2.0, 3.0, 4.0], "new": [True, False, True, False],
    ...                   "price": [2.0, 3.0, 6.0, 7.0]})
    >>> rows = batches(table, target="price")
    >>> rows.feature_names
    ['size', 'new']
    >>> model = StreamingRidge(alpha=0.1)
    >>> for X, y, weights in rows:
    ...     model = model.partial_fit(X, y, weights)
    >>> model.n_samples_seen_
    4
    """
    opened = open_source(
        source,
        target=target,
        features=features,
        exclude=exclude,
        weight=weight,
        one_hot=one_hot,
        nulls=nulls,
        format=format,
        n_features=n_features,
        zero_based=zero_based,
    )
    return Batches(opened, batch_rows)

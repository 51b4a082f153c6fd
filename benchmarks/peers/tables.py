"""The report: a table for each workload, and where a peer is the better choice."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from benchmarks.peers.contenders import BY_KEY
from benchmarks.peers.ledger import Row
from benchmarks.report import table

FLOOR = 1e-9  # of errors told apart: below it every contender, and the reference, is exact


@dataclass(frozen=True)
class Column:
    """A measured quantity: its heading, its value in a row, and how it is written."""

    head: str
    field: str
    style: str

    def value(self, row: Row) -> float:
        """Return the number by which rows are compared."""
        number = getattr(row, self.field)
        return max(number, FLOOR) if self.field == "coef_error" else number

    def text(self, row: Row) -> str:
        """Return the number as it is printed, which is also how ties are told."""
        number = self.value(row)
        if self.field == "coef_error" and number <= FLOOR:
            return f"< {FLOOR:g}"
        return format(number, self.style)


COLUMNS = (
    Column("seconds", "seconds", ".3g"),
    Column("peak MB", "megabytes", ".0f"),
    Column("passes", "passes", ".3g"),
    Column("coefficient error", "coef_error", ".2g"),
    Column("test error / exact", "test_error", ".4g"),
)


def workload_table(rows: Sequence[Row]) -> str:
    """Return the rows in the order of the contenders; the best of each column is bold."""
    ran = [row for row in rows if row.ran]
    best = {column: column.text(min(ran, key=column.value)) if ran else "" for column in COLUMNS}
    lines = []
    for row in rows:
        cells = [""] * (len(COLUMNS) - 1) + [row.reason]
        if row.ran:
            texts = [(column.text(row), best[column]) for column in COLUMNS]
            cells = [f"**{text}**" if text == least else text for text, least in texts]
        name = BY_KEY[row.contender].label.replace("ridgepass", "**ridgepass**")
        lines.append([name, *cells])
    return table(["contender", *(column.head for column in COLUMNS)], lines)


def better_choices(rows: Sequence[Row]) -> list[str]:
    """Return what peers do better than ridgepass on one workload, a line each."""
    ran = [row for row in rows if row.ran]
    ours = [row for row in ran if BY_KEY[row.contender].ours]
    peers = [row for row in ran if not BY_KEY[row.contender].ours]
    if not ours:
        return ["no row of ridgepass ran"]
    seconds, megabytes, _, error, _ = COLUMNS
    lines = []
    if closer := [p for p in peers if all(error.value(p) < error.value(r) for r in ours)]:
        lines.append(f"errs less than every ridgepass row: {listed(closer)}")
    for column, what in ((seconds, "faster"), (megabytes, "in less memory")):
        beaten = [(p, [r for r in ours if beats(p, r, column.value)]) for p in peers]
        told = [f"{label(p)} ({than(rows_, ours)})" for p, rows_ in beaten if rows_]
        if told:
            lines.append(f"{what} at no larger coefficient error: {'; '.join(told)}")
    return lines or ["no peer, in any of the three"]


def beats(peer: Row, our: Row, value: Callable[[Row], float]) -> bool:
    """Return whether a peer needs less and errs no more."""
    error = COLUMNS[3].value
    return value(peer) < value(our) and error(peer) <= error(our)


def than(beaten: Sequence[Row], ours: Sequence[Row]) -> str:
    return "than every ridgepass row" if len(beaten) == len(ours) else f"than {listed(beaten)}"


def listed(rows: Sequence[Row]) -> str:
    return ", ".join(label(row) for row in rows)


def label(row: Row) -> str:
    return BY_KEY[row.contender].label.removeprefix("ridgepass ")


def write_csv(rows: Sequence[Row], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in fields(Row)])
        for row in rows:
            numbers = (f"{cell:.6g}" if isinstance(cell, float) else cell for cell in astuple(row))
            writer.writerow(["" if cell is None else cell for cell in numbers])

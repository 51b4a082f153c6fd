"""The paper's figures drawn from a run's tables, as PNG and SVG: means, and all draws shaded."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from experiments.algorithms import OURS, PUBLISHED
from experiments.errors import CHOSEN, DATA, PAPERS
from experiments.results import Results

mpl.use("Agg")
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9.5,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.5,
    "lines.markersize": 4,
    "legend.frameon": False,
    "svg.hashsalt": "ridgepass",  # the same drawing gives the same file
    "svg.fonttype": "none",
}
# Colours that stay apart for colour-blind readers; one marker each for prints without colour.
LOOKS = {
    "rr": ("#000000", "x"),
    "FDrr": ("#0072b2", "o"),
    "RFDrr": ("#d55e00", "s"),
    "iSVDrr": ("#009e73", "^"),
    "2LFDrr": ("#cc79a7", "D"),
    "RPrr": ("#8c8c8c", "v"),
    "CSrr": ("#e69f00", "P"),
    "tracked": ("#56008c", "*"),
}
AXES = {"ℓ": ("size", "sketch size ℓ"), "d": ("n_features", "columns d"), "n": ("n_rows", "rows n")}
COSTS = {
    "train": "training",
    "query": "one query",
    "once": "training + one query",
    "often": "training + n/ℓ queries",
}
EXTENT = 1e-9  # errors below are all rounding, and would stretch the axis


def draw(results: Results, folder: Path) -> list[str]:
    """Draw every figure into a folder; return their names."""
    names = []
    with mpl.rc_context(STYLE):
        for name, figure in figures(results):
            figure.savefig(folder / f"{name}.png", dpi=130)
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
            names.append(name)
    return names


def figures(results: Results) -> Iterator[tuple[str, Figure]]:
    """Yield each with its name."""
    yield "eigenvalues", eigenvalues(results.eigenvalues)
    yield "singular-values", singular_values(results.singular_values)
    times = results.costs()
    yield "running-time-as-published", running_time(times, PUBLISHED)
    yield "running-time", running_time(times, OURS)
    yield "errors", errors(results, CHOSEN, OURS)
    yield "errors-papers-alpha", errors(results, PAPERS, OURS)
    yield "errors-papers-alpha-as-published", errors(results, PAPERS, PUBLISHED)
    yield "bounds", bounds(results.errors, CHOSEN)
    yield "bounds-papers-alpha", bounds(results.errors, PAPERS)


def eigenvalues(table: pd.DataFrame) -> Figure:
    """Draw Figure 1 from the spectra of LR and of its sketches."""
    figure = Figure((6.4, 3.8), layout="constrained")
    ax = figure.subplots()
    looks = {
        "AᵀA": ("#000000", "-"),
        "AᵀA + γI": ("#000000", "--"),
        "FD": ("#0072b2", "-"),
        "FD + γI": ("#0072b2", "--"),
        "RFD + γI": ("#d55e00", "--"),
    }
    for matrix, (colour, style) in looks.items():
        line = table[table.matrix == matrix]
        ax.plot(line["index"], line.value, style, color=colour, label=matrix)
    shown = int((table[table.matrix == "AᵀA"].value > 0.002 * table.value.max()).sum())
    ax.set(xlim=(0, 1.3 * shown), ylim=(0, None), xlabel="index i", ylabel="eigenvalue σᵢ²")
    ax.set_title("Eigenvalues of AᵀA (LR), of its sketches, and with the ridge γ", loc="left")
    ax.legend()
    return figure


def singular_values(table: pd.DataFrame) -> Figure:
    """Draw the paper's figure of the data sets."""
    figure = Figure((6.4, 3.4), layout="constrained")
    ax = figure.subplots()
    for data, (colour, style) in zip(
        DATA, (("#0072b2", "-"), ("#d55e00", "--"), ("#009e73", "-.")), strict=True
    ):
        line = table[table.data == data]
        ax.plot(line["index"], line.value, style, color=colour, label=data)
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="index / d", ylabel="singular value / the largest")
    ax.set_title("Singular values of the data sets", loc="left")
    ax.legend()
    return figure


def running_time(times: pd.DataFrame, form: str) -> Figure:
    """Draw seconds against ℓ, d and n."""
    figure = Figure((12.5, 8.2), layout="constrained")
    grid = figure.subplots(3, 4, sharey="row")
    chosen = times[times.form == form]
    for row, (against, (field, label)) in zip(grid, AXES.items(), strict=True):
        cells = chosen[chosen.against == against]
        for ax, (cost, title) in zip(row, COSTS.items(), strict=True):
            for name in LOOKS:
                band(ax, cells[cells.algorithm == name], field, cost, name)
            scales(ax, label)
            ax.set_title(title if against == "ℓ" else "", loc="left")
        row[0].set_ylabel("seconds")
    figure.suptitle(f"Running time on HR, {'in ' if form == OURS else ''}{form}", x=0.01, ha="left")
    legend(figure, grid.flat)
    return figure


def errors(results: Results, at: str, form: str) -> Figure:
    """Draw coefficient and prediction errors against ℓ and against time."""
    figure = Figure((12.5, 8.6), layout="constrained")
    grid = figure.subplots(3, 4, sharex="col")
    seconds = results.often(form)
    fields = {"coef_error": "coefficient error", "beside_rr": "prediction error / rr’s"}
    table = beside_rr(results.errors[results.errors["at"] == at])
    for row, data in zip(grid, DATA, strict=True):
        cells = table[table.data == data]
        for pair, (field, title) in zip((row[:2], row[2:]), fields.items(), strict=True):
            for name in list(LOOKS)[1:]:
                mine = cells[(cells.algorithm == name) & (cells[field] > EXTENT)]
                band(pair[0], mine, "size", field, name)
                if name in seconds:  # tracked has no published form
                    timed = mine.assign(seconds=mine["size"].map(seconds[name]))
                    path(pair[1], timed.dropna(subset="seconds"), field, name)
            for ax in pair:
                ax.set_yscale("log")
            scales(pair[0], "sketch size ℓ" if data == DATA[-1] else "")
            pair[1].set_xscale("log")
            pair[1].set_xlabel("seconds, with n/ℓ queries" if data == DATA[-1] else "")
            pair[0].set_title(f"{data}: {title}", loc="left")
        near_one(row[2:], cells.beside_rr)
    whose = "our" if at == CHOSEN else "the paper’s"
    figure.suptitle(
        f"Errors at {whose} alpha; times {'in ' if form == OURS else ''}{form}",
        x=0.01,
        ha="left",
    )
    legend(figure, grid.flat)
    return figure


def beside_rr(table: pd.DataFrame) -> pd.DataFrame:
    """Add the prediction error over exact ridge's on the same draw, whose noise both share."""
    exact = table[table.algorithm == "rr"].set_index(["data", "repeat"]).prediction_error
    pairs = pd.MultiIndex.from_frame(table[["data", "repeat"]])
    return table.assign(beside_rr=table.prediction_error / exact.loc[pairs].to_numpy())


def bounds(table: pd.DataFrame, at: str) -> Figure:
    """Draw what theorem and certificate promise over the errors measured."""
    names = ("FDrr", "RFDrr", "tracked")
    figure = Figure((11, 7.6), layout="constrained")
    grid = figure.subplots(3, 3, sharex=True, sharey="row")
    promises = {
        "theorem": ("bound of Theorem 1 or 2, best k", "#8c8c8c", "--"),
        "certified": ("certified ‖x̂ − x‖ / ‖x‖", "#009e73", "-."),
        "certified_relative": ("certified relative error", "#cc79a7", ":"),
    }
    for row, data in zip(grid, DATA, strict=True):
        for ax, name in zip(row, names, strict=True):
            chosen = (table["at"] == at) & (table.data == data) & (table.algorithm == name)
            cells = table[chosen & (table.coef_error > EXTENT)]
            band(ax, cells, "size", "coef_error", name, label="error")
            for field, (label, colour, style) in promises.items():
                means = cells.groupby("size")[field].mean().dropna()
                ax.plot(means.index, means, style, color=colour, label=label)
            ax.axhline(1, color="#000000", linewidth=0.6)
            scales(ax, "sketch size ℓ" if data == DATA[-1] else "")
            ax.set_yscale("log")
            ax.set_title(f"{data}, {name}", loc="left")
        row[0].set_ylabel("‖x̂ − x‖ / ‖x‖")
    alpha = "our alpha" if at == CHOSEN else "the paper’s alpha"
    figure.suptitle(
        f"Errors and what is promised of them, at {alpha}: for certain, and of tracked with "
        "confidence 1 − 1e-6",
        x=0.01,
        ha="left",
    )
    legend(figure, grid.flat)
    return figure


def band(
    ax: Axes, cells: pd.DataFrame, x: str, y: str, name: str, label: str | None = None
) -> None:
    """Draw the mean over repeats as a line and all of them as a band."""
    if cells.empty:
        return
    colour, marker = LOOKS[name]
    found = cells.groupby(x)[y].agg(["mean", "min", "max"])
    if list(found.index) == [0]:  # no sketch, so no size: a level across all of them
        ax.axhline(found["mean"].iloc[0], color=colour, linestyle="--", linewidth=1, label=name)
        return
    ax.plot(found.index, found["mean"], color=colour, marker=marker, label=label or name)
    ax.fill_between(found.index, found["min"], found["max"], color=colour, alpha=0.15, linewidth=0)


def path(ax: Axes, cells: pd.DataFrame, field: str, name: str) -> None:
    """Draw errors against time, joined in the order of ℓ."""
    colour, marker = LOOKS[name]
    means = cells.groupby("size")[["seconds", field]].mean()
    ax.plot(means.seconds, means[field], color=colour, marker=marker, label=name)


def near_one(axes: list[Axes], values: pd.Series) -> None:
    """Show what is near exact ridge; a few huge errors would flatten all the others."""
    top = min(float(values.max()), 3.0)
    for ax in axes:
        ax.axhline(1, color=LOOKS["rr"][0], linewidth=0.8)
        ax.set_ylim(min(0.99, float(values.min())), 1.02 * top)
        ax.yaxis.set_major_locator(MaxNLocator(5))
        ax.yaxis.set_minor_locator(NullLocator())
        ax.yaxis.set_major_formatter("{x:.4g}")


def scales(ax: Axes, label: str) -> None:
    """Set a base-two axis for sizes, and a logarithmic one for what was measured."""
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xlabel(label)


def legend(figure: Figure, axes: Iterable[Axes]) -> None:
    """Put one legend for all panels below them."""
    found: dict[str, object] = {}
    for ax in reversed(list(axes)):  # where rr is drawn like the others
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=9)

"""What the paper says beside its experiments and they can show: theorems, space, merging, ridge."""

from collections.abc import Callable

import pandas as pd

from experiments.claims.claim import Claim, Finding, graded
from experiments.claims.numbers import BOTH, Numbers
from experiments.errors import CHOSEN, DATA, LESS, MORE, MORE_NOISE, PAPERS_ALPHAS
from experiments.run import chosen_alphas


def deterministic(numbers: Numbers) -> Finding:
    changed = numbers.each("another seed changes", ("fd", "rfd"))
    return Finding(
        graded(not any(changed.values()), False),
        f"coefficients that another seed changes: {sum(changed.values()):.0f}",
    )


def little_space(numbers: Numbers) -> Finding:
    d, size = numbers.scale.n_features, numbers.scale.like(64)
    held = {a: numbers.one("numbers held per column", "HR", a) for a in ("rfd", "exact")}
    return Finding(
        graded(held["rfd"] <= 3.5 * size < d, held["rfd"] < d),
        f"ℓ = {size}: {held['rfd']:.0f} numbers a column with RFDrr, {held['exact']:.0f} with rr",
    )


def theorem(algorithm: str) -> Callable[[Numbers], Finding]:
    """Return the check that no draw at any ℓ and alpha errs by more than its theorem says."""

    def check(numbers: Numbers) -> Finding:
        errors = numbers.results.errors
        cells = errors[errors.algorithm == algorithm]
        share = cells.coef_error / cells.theorem
        # Once the sketch is all but exact, what is left of the error is rounding.
        kept = int((share <= 1).sum() + ((share > 1) & (cells.coef_error < 1e-9)).sum())
        return Finding(
            graded(kept == len(cells), False),
            f"in {kept} of {len(cells)} runs; error / bound: median {share.median():.2g}, "
            f"largest {share[cells.coef_error >= 1e-9].max():.2g}",
        )

    return check


def merging(numbers: Numbers) -> Finding:
    beside = numbers.each("merged error / one stream's", ("fd", "rfd"))
    within = numbers.each("merged error / theorem's bound", ("fd", "rfd"))
    return Finding(
        graded(
            max(within.values()) <= 1 and max(beside.values()) <= 1.05, max(within.values()) <= 1
        ),
        f"error of 8 merged streams / of one: {min(beside.values()):.2f} to "
        f"{max(beside.values()):.2f}; / the theorem's bound: at most {max(within.values()):.2g}",
    )


def in_the_middle(numbers: Numbers) -> Finding:
    table = numbers.results.eigenvalues.pivot_table(index="index", columns="matrix", values="value")
    below = bool((table["FD"] <= table["AᵀA"] * (1 + 1e-9) + 1e-9 * table["AᵀA"].max()).all())
    off = {
        name: float((table[f"{name} + γI"] - table["AᵀA + γI"]).abs().max())
        for name in ("FD", "RFD")
    }
    ratio = off["RFD"] / off["FD"]
    return Finding(
        graded(below and ratio <= 0.75, below and ratio < 1),
        f"farthest eigenvalue from AᵀA + γI: FD {off['FD']:.3g}, RFD {off['RFD']:.3g}, "
        f"{ratio:.2f} of it",
    )


def best_alphas(numbers: Numbers) -> Finding:
    tried = numbers.results.alphas
    scaled = {data: a * numbers.scale.n_rows / 8192 for data, a in PAPERS_ALPHAS.items()}
    found = chosen_alphas(tried)
    more = tried[tried.noise_variance == MORE_NOISE]
    noisy = more.loc[more.groupby("data").prediction_error.idxmin()].set_index("data").alpha
    apart = {data: max(found[data] / scaled[data], scaled[data] / found[data]) for data in DATA}
    listed = ", ".join(f"{data} {found[data]:g} (paper {scaled[data]:g})" for data in DATA)
    return Finding(
        graded(max(apart.values()) <= 1, min(apart.values()) <= 1),
        f"{listed}; with noise of standard deviation 4 instead of variance 4: "
        f"LR {noisy['LR']:g}, HR {noisy['HR']:g}",
    )


def ridge_helps(numbers: Numbers) -> Finding:
    falling, cells = 0, 0
    for data in DATA:
        tables = [numbers.equal_sizes(at, data) for at in (LESS, CHOSEN, MORE)]
        for name in ("FDrr", "RFDrr"):
            low, usual, high = (table[name] for table in tables)
            felt = low > 1e-6
            falling += int(((low >= usual) & (usual >= high))[felt].sum())
            cells += int(felt.sum())
    return Finding(
        graded(falling == cells, falling >= 0.8 * cells),
        f"the error falls from alpha/16 over alpha to 16·alpha in {falling} of {cells} cells",
    )


def risk(numbers: Numbers) -> Finding:
    names = ("fd", "rfd")
    bias = numbers.each("that / the bound proven", names)
    variance = numbers.each("variance / the bound proven", names)
    worst = max(*bias.values(), *variance.values())
    return Finding(
        graded(worst <= 1, False),
        f"bias² / its bound at most {max(bias.values()):.2g}, variance / its bound at most "
        f"{max(variance.values()):.2g} (bounds as corrected in ridgepass.theory)",
    )


def adversary(numbers: Numbers) -> Finding:
    error = {
        name: numbers.one("coefficient error, adversary of iSVD", "made", name)
        for name in ("isvd", "fd", "rfd")
    }
    return Finding(
        graded(error["isvd"] > 10 * max(error["fd"], error["rfd"]), error["isvd"] > error["fd"]),
        f"coefficient error on a stream made for it: iSVDrr {error['isvd']:.2g}, FDrr "
        f"{error['fd']:.2g}, RFDrr {error['rfd']:.2g}",
    )


def components_move(numbers: Numbers) -> Finding:
    what = "coefficients moved by 1 % of the rows"
    ratios = {d: numbers.one(what, d, "PCR") / numbers.one(what, d, "rr") for d in DATA}
    listed = ", ".join(f"{data} {ratio:.1f}" for data, ratio in ratios.items())
    more = [ratio > 1 for ratio in ratios.values()]
    return Finding(
        graded(all(more), any(more)),
        f"how far leaving out 1 % of the rows moves PCR's coefficients / rr's: {listed}",
    )


def certificates(numbers: Numbers) -> Finding:
    errors = numbers.results.errors
    cells = errors[errors.certified.notna() & (errors.algorithm != "rr")]
    proven = cells[["certified", "certified_relative"]].min(axis=1)
    broken = int((cells.coef_error > proven).sum())
    ratio = (proven / cells.coef_error)[cells.coef_error > 1e-6]
    by_probes = cells.algorithm[ratio.index] == "tracked"
    certain, likely = ratio[~by_probes], ratio[by_probes]
    return Finding(
        graded(broken == 0, False),
        f"in {len(cells) - broken} of {len(cells)} runs; certified / error: median "
        f"{certain.median():.3g}, least {certain.min():.3g}; of tracked, with confidence "
        f"1 − 1e-6, median {likely.median():.3g}, least {likely.min():.3g}",
    )


def tracked_least(numbers: Numbers) -> Finding:
    won, cells, gains = 0, 0, []
    for at in BOTH.values():
        for data in DATA:
            table = numbers.equal_sizes(at, data)
            others = table.drop(columns="tracked").min(axis=1)
            won += int((table.tracked <= others).sum())
            cells += len(table)
            gains.append(others / table.tracked)
    gain = pd.concat(gains)
    return Finding(
        graded(won == cells, won >= 0.9 * cells),
        f"in {won} of {cells} cells; best of the paper's / tracked: median {gain.median():.2g}, "
        f"least {gain.min():.2g}",
    )


CLAIMS = (
    Claim("deterministic", "abstract", "FDrr and RFDrr involve no randomness.", deterministic),
    Claim("space", "abstract", "They need O(ℓd) space, less than d².", little_space),
    Claim("theorem 1", "section 3", "FDrr errs by at most its bound.", theorem("FDrr")),
    Claim("theorem 2", "section 3", "RFDrr errs by at most its bound.", theorem("RFDrr")),
    Claim(
        "merging",
        "section 2",
        "Sketches of parts can be merged with no more error than one stream has.",
        merging,
    ),
    Claim(
        "figure 1",
        "section 2.1",
        "FD lowers all eigenvalues, the ridge raises them, and RFD's shift balances the two.",
        in_the_middle,
    ),
    Claim(
        "alpha",
        "section 4",
        "On held-out rows the best γ is 4096 for LR and 32768 for HR and TEMP.",
        best_alphas,
    ),
    Claim("ridge", "conclusion", "A larger ridge makes regression easier to sketch.", ridge_helps),
    Claim("risk", "conclusion", "Bias and variance stay within the proven factors.", risk),
    Claim("adversary", "section 4", "iSVDrr is likely to fail on adversarial data.", adversary),
    Claim(
        "pcr",
        "conclusion",
        "Regression on principal components is less stable than ridge regression.",
        components_move,
    ),
    Claim(
        "certificate",
        "ridgepass",
        "No answer is farther from exact ridge than its certificate says.",
        certificates,
        ours=True,
    ),
    Claim(
        "tracked",
        "ridgepass",
        "At equal ℓ the tracked sketch errs less than any of the paper's.",
        tracked_least,
        ours=True,
    ),
)

"""What the paper says in passing, each put to one small test: a name, a number."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import numpy as np
from scipy.linalg import eigh

from benchmarks.streams import Split
from experiments import published
from experiments.algorithms import stream
from experiments.errors import shape_of
from experiments.scale import Scale
from ridgepass import RidgeStream, theory

PARTS = 8


@dataclass(frozen=True)
class Property:
    """One number about one sketch on one data set."""

    what: str
    data: str
    algorithm: str
    size: int
    value: float


def properties(
    data: str, scale: Scale, alphas: dict[str, float], temperatures: Path | None
) -> Iterator[Property]:
    """Yield all of one data set; "made" is the stream made against iSVD."""
    if data == "made":
        yield from adversary(scale)
        return
    split = shape_of(scale, temperatures).draw(data, 0)
    for test in (same_bits, kept_memory, merged, risk, unstable):
        yield from test(data, split, scale.like(64), alphas[data])


def same_bits(data: str, split: Split, size: int, alpha: float) -> Iterator[Property]:
    """Yield how many coefficients another seed changes."""
    for name in ("fd", "rfd", "tracked"):
        coefs = [stream(name, split.A, split.b, size, seed, alpha).solve(alpha) for seed in (1, 2)]
        yield Property(
            "another seed changes", data, name, size, float((coefs[0] != coefs[1]).sum())
        )


def kept_memory(data: str, split: Split, size: int, alpha: float) -> Iterator[Property]:
    """Yield how many numbers a stream holds per column."""
    for name in ("exact", "fd", "rfd", "tracked"):
        trained = stream(name, split.A, split.b, size, 0, alpha)
        held = trained.nbytes / 8 / split.A.shape[1]
        yield Property("numbers held per column", data, name, size, held)


def merged(data: str, split: Split, size: int, alpha: float) -> Iterator[Property]:
    """Yield the error of eight merged streams over that of one, and over the bound for one."""
    exact = split.exact_ridge([alpha])[0]
    length = np.linalg.norm(exact)
    values = np.linalg.svd(split.A, compute_uv=False)
    for name in ("fd", "rfd"):
        pairs = zip(np.array_split(split.A, PARTS), np.array_split(split.b, PARTS), strict=True)
        parts = [stream(name, A, b, size, 0, alpha) for A, b in pairs]
        whole = stream(name, split.A, split.b, size, 0, alpha)
        one, many = (
            float(np.linalg.norm(trained.solve(alpha) - exact) / length)
            for trained in (whole, reduce(RidgeStream.merge, parts))
        )
        best = theory.best_covariance_bound(values, size, robust=name == "rfd").bound
        bound = theory.relative_error_bound(best, alpha)
        yield Property("merged error / one stream's", data, name, size, many / one)
        yield Property("merged error / theorem's bound", data, name, size, many / bound)


def risk(data: str, split: Split, size: int, alpha: float) -> Iterator[Property]:
    """Yield how much worse bias² and variance are than exact ridge's, beside the factors proven."""
    R = np.linalg.qr(split.A, mode="r")  # the risk asks for AᵀA alone
    values = np.linalg.svd(R, compute_uv=False)
    x = split.exact_ridge([alpha])[0]  # stands for the coefficients behind the data
    exact = theory.exact_risk(R, x, alpha, noise=1.0)
    fd = published.StackedSVD(split.A, split.b, size)
    C = fd.sigma[:, None] * fd.Vt
    for name, shift, factors in (
        ("fd", 0.0, theory.fd_risk_factors),
        ("rfd", fd.shift, theory.rfd_risk_factors),
    ):
        sketched = theory.sketched_risk(R, x, alpha, 1.0, C, shift)
        best = theory.best_covariance_bound(values, size, robust=name == "rfd").bound
        eps = theory.relative_error_bound(best, alpha)
        bias2, variance = sketched.bias2 / exact.bias2, sketched.variance / exact.variance
        proven = factors(eps, alpha, values[0])
        printed = factors(eps, alpha, values[0], as_printed=True)
        yield Property("bias² / exact ridge's", data, name, size, bias2)
        yield Property("that / the bound proven", data, name, size, bias2 / proven.bias2)
        yield Property("that / the bound printed", data, name, size, bias2 / printed.bias2)
        yield Property("variance / exact ridge's", data, name, size, variance)
        yield Property("variance / the bound proven", data, name, size, variance / proven.variance)


def unstable(data: str, split: Split, size: int, alpha: float) -> Iterator[Property]:
    """Yield how far coefficients move when one row in a hundred is left out."""
    kept = np.arange(len(split.b)) % 100 != 0
    fewer = Split(split.A[kept], split.b[kept], split.A_test, split.b_test)

    def components(rows: Split) -> np.ndarray:
        _, vectors = eigh(
            rows.A.T @ rows.A, subset_by_index=[rows.A.shape[1] - size, rows.A.shape[1] - 1]
        )
        scores = rows.A @ vectors
        return vectors @ np.linalg.lstsq(scores, rows.b)[0]

    def sketched(rows: Split) -> np.ndarray:
        return stream("rfd", rows.A, rows.b, size, 0, alpha).solve(alpha)

    ways = {"rr": lambda rows: rows.exact_ridge([alpha])[0], "rfd": sketched, "PCR": components}
    for name, solve in ways.items():
        one, other = solve(split), solve(fewer)
        moved = float(np.linalg.norm(one - other) / np.linalg.norm(one))
        yield Property("coefficients moved by 1 % of the rows", data, name, size, moved)


def adversary(scale: Scale) -> Iterator[Property]:
    """Yield the errors on a stream whose last direction is never large within one batch.

    The first ℓ directions have just more than a batch of the next one, which comes ever again: the
    best ℓ directions of sketch and batch are always the first.
    """
    size, rounds = scale.like(64), 50
    d = 4 * size
    A = np.zeros((size * (rounds + 1), d))
    A[np.arange(size), np.arange(size)] = np.sqrt(2.0 * size)
    A[size:, size] = 1.0
    b = A[:, size].copy()
    split, alpha = Split(A, b, A, b), float(size)
    exact = split.exact_ridge([alpha])[0]
    for name in ("isvd", "fd", "rfd", "tracked"):
        coef = stream(name, A, b, size, 0, alpha).solve(alpha)
        error = float(np.linalg.norm(coef - exact) / np.linalg.norm(exact))
        yield Property("coefficient error, adversary of iSVD", "made", name, size, error)

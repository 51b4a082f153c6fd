"""Streams that every test draws from: shapes, spectra, scales, orders."""

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from ridgepass import RidgeStream
from ridgepass.sketch import SKETCHES

METHODS = sorted(SKETCHES)
FD_FAMILY = ["fd", "isvd", "rfd"]
SPECTRA = ["flat", "decaying", "low rank", "spiked", "repeated", "zero"]
SCALES = [1e-100, 1e-3, 1.0, 1e100]


def certain(method):
    """What a sketch that has lost something is sure of."""
    A = np.random.default_rng(0).standard_normal((40, 5))
    model = RidgeStream(method, sketch_size=2, probes=0).update(A, np.ones(40))
    return model.certificate(1.0)


# Methods with a certificate that needs no probes, and those among them that know how far they are
# from AᵀA.
CERTIFIED = [method for method in METHODS if np.isfinite(certain(method).coef_bound)]
BOUNDED = [method for method in METHODS if np.isfinite(certain(method).covariance_bound)]


class Stream(NamedTuple):
    A: np.ndarray
    b: np.ndarray
    sketch_size: int
    scale: float

    @property
    def alpha(self):
        """A ridge parameter that suits the data at any scale."""
        return 0.05 * self.scale**2 * max(len(self.A), 1)


def make_rows(rng, n, d, spectrum):
    if spectrum == "zero":
        return np.zeros((n, d))
    if spectrum == "low rank":
        return rng.standard_normal((n, 2)) @ rng.standard_normal((2, d))
    if spectrum == "repeated":
        return np.repeat(rng.standard_normal((1, d)), n, axis=0)
    rows = rng.standard_normal((n, d))
    if spectrum == "decaying":
        rows *= np.exp(-np.arange(d) / 4)
    if spectrum == "spiked":
        rows[:, 0] *= 1e4
    return rows


@st.composite
def streams(draw, scales=SCALES, spectra=SPECTRA, min_rows=1, max_rows=80):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(min_rows, max_rows))
    d = draw(st.integers(1, 24))
    A = make_rows(rng, n, d, draw(st.sampled_from(spectra)))
    order = draw(st.sampled_from(["as drawn", "rising", "falling"]))
    if order != "as drawn":
        A = A[np.argsort(np.square(A).sum(axis=1))]
    if order == "falling":
        A = A[::-1]
    scale = draw(st.sampled_from(scales))
    b = A @ rng.standard_normal(d) + rng.standard_normal(n)
    return Stream(np.ascontiguousarray(A * scale), b, draw(st.integers(2, 12)), scale)


def split_points(draw, n_rows):
    """Where to cut ``n_rows`` rows into batches."""
    cuts = draw(st.lists(st.integers(0, n_rows), max_size=6))
    return sorted({0, *cuts, n_rows})


def exact_ridge(A, b, alpha):
    """Exact ridge in float64, scaled so that squares near 1e±200 do no harm."""
    A = np.asarray(A, np.float64)
    scale = np.abs(A).max() or 1.0
    U, s, Vt = np.linalg.svd(A / scale, full_matrices=False)
    return Vt.T @ ((s / (s**2 + alpha / scale**2) / scale)[:, None] * (U.T @ b.reshape(len(A), -1)))


def norm(x):
    """The Euclidean norm, safe from overflow."""
    x = np.asarray(x, np.float64)
    scale = np.abs(x).max(initial=0.0) or 1.0
    return scale * np.linalg.norm(x / scale)

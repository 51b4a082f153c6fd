"""Streams of many shapes, spectra and scales, and norms that survive them."""

import numpy as np
from hypothesis import strategies as st

SPECTRA = ("flat", "decaying", "low rank", "bursts")
EXPONENTS = (-100, -37, 0, 37, 100)


def stream(seed, n, d, spectrum, exponent=0):
    """An (n, d) matrix with the named spectrum, entries near ``10**exponent``."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    if spectrum == "decaying":
        A = A * 0.5 ** np.arange(d)
    elif spectrum == "low rank":
        A = A[:, :2] @ rng.standard_normal((min(2, d), d))
    elif spectrum == "bursts":  # rows of very different size, so that the sketch must turn
        A = A * 10.0 ** rng.uniform(-2, 2, (n, 1))
    return A * 10.0**exponent


@st.composite
def streams(draw, rows=(1, 30), columns=(1, 10), exponents=EXPONENTS):
    return stream(
        draw(st.integers(0, 2**32 - 1)),
        draw(st.integers(*rows)),
        draw(st.integers(*columns)),
        draw(st.sampled_from(SPECTRA)),
        draw(st.sampled_from(exponents)),
    )


def spectral(M):
    """‖M‖₂ without overflow."""
    largest = np.abs(M).max(initial=0.0)
    return largest * np.linalg.norm(M / largest, 2) if largest > 0 else 0.0


def norm(v):
    """‖v‖ without overflow."""
    return spectral(np.reshape(v, (-1, 1)))


def tail(A, k):
    """‖A - A_k‖_F²."""
    return float(np.sum(np.linalg.svd(A, compute_uv=False)[k:] ** 2))


def equal_rows(count, square):
    """`count` orthogonal rows of the same squared norm: the stream that hurts a sketch most."""
    return np.sqrt(square) * np.eye(count)

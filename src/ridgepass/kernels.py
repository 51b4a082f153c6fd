"""Kernels over rows that are wide and few, dense or sparse: Gram, mix, apply, eigenpairs.

Where they need temporaries or sum float32 in float64 they walk the columns in fixed panels, which
keeps the temporaries small and lets a result overwrite its input. Nothing depends on where in
memory the rows lie, so the same rows give the same bits however they arrived.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import get_blas_funcs, lapack

from ridgepass.threads import alone, each

Rows: TypeAlias = NDArray[np.floating[Any]]
Float64: TypeAlias = NDArray[np.float64]
Part: TypeAlias = Any  # Rows, or a csc_array: by columns, since the kernels walk column panels

# Measured at d = 16384 and ℓ = 64 and 256, one thread. A Gram product leaves nothing behind but
# its small result, so its panels may be wide; mixing wants its two temporaries in the cache.
GRAM_PANEL = 4096
MIX_PANEL_BYTES = 2048  # of each row
CONVERSION_PANEL = 1024
# What a thread takes at a time: so many columns, and more where they make few products. What it
# makes of them is in memory meanwhile.
PIECE_COLUMNS, MOST_COLUMNS = 4096, 1 << 14
LEAST_PRODUCTS = 1 << 24
SPARSE_PANEL = 4096  # wide, since each costs SciPy about 0.1 ms
# Up to this many vectors take less time one by one: two of 16384 numbers times 128 rows take 0.8
# instead of 2.0 ms, four take as long either way.
FEW_VECTORS = 3


def panels(n_columns: int, width: int) -> Iterator[slice]:
    """Cut ``range(n_columns)`` into slices of at most ``width``."""
    for start in range(0, n_columns, width):
        yield slice(start, min(start + width, n_columns))


def pieces(n_columns: int, n_products: int) -> Iterator[slice]:
    """Cut columns, each of which takes part in so many products, into pieces for all cores."""
    width = max(PIECE_COLUMNS, LEAST_PRODUCTS // max(n_products, 1))
    return panels(n_columns, min(width, MOST_COLUMNS))


def product(rows: Rows, points: Rows) -> Rows:
    """Return rows·pointsᵀ on all cores, for rows of many columns."""
    spans = list(pieces(rows.shape[1], len(rows) * len(points)))
    if len(spans) < 2:
        whole: Rows = rows @ points.T
        return whole
    parts = np.empty((len(spans), len(rows), len(points)), np.result_type(rows, points))

    def multiply(index: int) -> None:
        span = spans[index]
        np.matmul(rows[:, span], points[:, span].T, out=parts[index])

    each(multiply, range(len(spans)))
    total: Rows = np.add.reduce(parts, axis=0)
    return total


def add_product(
    out: Rows, weights: Rows, rows: Rows, last_weights: Rows, last: Rows | None = None
) -> None:
    """Add weightsᵀ·rows to ``out`` on all cores, for rows of many columns; and one row more."""
    across = np.ascontiguousarray(weights.T)
    (rank_one,) = get_blas_funcs(("ger",), (across, rows))

    def add(span: slice) -> None:
        found = across @ rows[:, span]
        if last is not None:  # in place: a product of its own would be two looks more
            found = rank_one(1.0, last[span], last_weights[0], a=found.T, overwrite_a=True).T
        out[:, span] += found

    each(add, pieces(rows.shape[1], rows.shape[0] * len(out)))


def is_sparse(part: Any) -> bool:
    """Tell sparse rows from dense ones."""
    return bool(sparse.issparse(part))


def gram(
    left: Part, right: Part, *, exact: bool = False, columns: Float64 | None = None
) -> Float64:
    """Return ``left @ right.T`` in float64; ``columns`` multiplies the columns of both.

    float32 rows are multiplied in float32 and their panels summed in float64; ``exact`` multiplies
    in float64 too, which training could not afford but a query can.
    """
    if is_sparse(left) and is_sparse(right):
        one, other = (part.astype(np.float64) for part in (left, right))
        if columns is not None:  # each side once: the square of a small factor underflows
            one, other = _times_columns(one, columns), _times_columns(other, columns)
        inner: Float64 = (one @ other.T).toarray()
        return inner
    if is_sparse(right):
        return gram(right, left, exact=exact, columns=columns).T
    plain = columns is None and not is_sparse(left)
    if plain and left.dtype == np.float64 and right.dtype == np.float64:
        product: Float64 = left @ right.T
        return product
    total = np.zeros((left.shape[0], right.shape[0]))
    for span in panels(left.shape[1], GRAM_PANEL):
        a, b = panel(left, span), right[:, span]
        if exact:
            a, b = a.astype(np.float64, copy=False), b.astype(np.float64, copy=False)
        if columns is not None:
            a, b = _times_columns(a, columns[span]), b * columns[span]
        total += a @ b.T
    return total


def _times_columns(part: Part, columns: Float64) -> Part:
    return part.multiply(columns).tocsc() if is_sparse(part) else part * columns


def stacked_gram(
    rows: Sequence[Part],
    *,
    known: Float64 | None = None,
    exact: bool = False,
    columns: Float64 | None = None,
) -> Float64:
    """Return the Gram matrix of ``vstack(rows)``; ``known`` is its first block, if known."""
    edges = np.cumsum([0] + [block.shape[0] for block in rows])
    spans = [slice(start, stop) for start, stop in pairwise(edges)]
    stacked = np.empty((edges[-1], edges[-1]))
    for i, below in enumerate(spans):
        for j, left in enumerate(spans[:i]):
            stacked[below, left] = gram(rows[i], rows[j], exact=exact, columns=columns)
            stacked[left, below] = stacked[below, left].T
        if i == 0 and known is not None:
            stacked[below, below] = known
        else:
            stacked[below, below] = gram(rows[i], rows[i], exact=exact, columns=columns)
    return stacked


def mix_into(out: Rows, mix: Float64, old: Rows, *new: Part) -> None:
    """Set ``out`` to ``mix @ vstack([old, *new])``; ``out`` may be ``old``."""
    left, *right = _split(mix.astype(out.dtype, copy=False), (old, *new))
    dense = [pair for pair in zip(right, new, strict=True) if not is_sparse(pair[1])]
    for span, (total, term) in _mix_panels(out, 2):
        np.matmul(left, old[:, span], out=total)
        for factor, part in dense[:-1]:
            total += np.matmul(factor, part[:, span], out=term)
        for factor, part in dense[-1:]:
            np.add(total, np.matmul(factor, part[:, span], out=term), out=out[:, span])
        if not dense:
            out[:, span] = total
    _add_sparse(out, right, new)


def add_mix(out: Rows, mix: Float64, *rows: Part) -> None:
    """Add ``mix @ vstack(rows)`` to ``out``."""
    factors = _split(mix.astype(out.dtype, copy=False), rows)
    dense = [pair for pair in zip(factors, rows, strict=True) if not is_sparse(pair[1])]
    for span, (term,) in _mix_panels(out, 1) if dense else ():
        for factor, part in dense:
            out[:, span] += np.matmul(factor, part[:, span], out=term)
    _add_sparse(out, factors, rows)


def _add_sparse(out: Rows, factors: Sequence[Rows], rows: Sequence[Part]) -> None:
    """Add ``factor @ part`` to ``out`` for the sparse parts among ``rows``."""
    for factor, part in zip(factors, rows, strict=True):
        if not is_sparse(part):
            continue
        # As (partᵀ·factorᵀ)ᵀ, since SciPy runs along contiguous rows of the dense side. It adds up
        # one after the other: a thousand rows alike would lose three digits of float32.
        transposed = np.ascontiguousarray(factor.T, np.float64)
        for span in panels(out.shape[1], SPARSE_PANEL):
            out[:, span] += (panel(part, span).T @ transposed).T


def apply(rows: Sequence[Part], vectors: Rows) -> Float64:
    """Return ``vstack(rows) @ vectors`` in float64."""
    results = []
    for block in rows:
        if is_sparse(block):
            results.append(block @ vectors)
            continue
        if block.dtype == np.float64:
            results.append(_thin_product(block, vectors))
            continue
        total = np.zeros((len(block), vectors.shape[1]))
        for span in panels(block.shape[1], CONVERSION_PANEL):
            total += _thin_product(block[:, span].astype(np.float64), vectors[span])
        results.append(total)
    return np.concatenate(results)


def apply_transposed(rows: Sequence[Part], weights: Float64) -> Float64:
    """Return ``vstack(rows).T @ weights`` in float64."""
    result = np.zeros((rows[0].shape[1], weights.shape[1]))
    for part, block in zip(_split(weights.T, rows), rows, strict=True):
        if is_sparse(block):
            result += block.T @ part.T
            continue
        if block.dtype == np.float64:
            result += _thin_product(block.T, part.T)
            continue
        for span in panels(block.shape[1], CONVERSION_PANEL):
            result[span] += _thin_product(block[:, span].astype(np.float64).T, part.T)
    return result


def _thin_product(matrix: Rows, vectors: Rows) -> Float64:
    """Return ``matrix @ vectors``, one by one where BLAS is slower on several at once."""
    if vectors.shape[1] > FEW_VECTORS:
        return (vectors.T @ matrix.T).T
    product = np.empty((vectors.shape[1], matrix.shape[0]))
    for row, vector in zip(product, vectors.T, strict=True):
        row[:] = times_vector(matrix, vector)
    return product.T


def times_vector(matrix: Rows, vector: Rows) -> Rows:
    """Return matrix·vector.

    BLAS takes twice as long as NumPy's own loops where the shorter axis is the contiguous one, as
    in models of sparse rows: 12 ms against 5 for 64 × 200,000 numbers.
    """
    longer = int(matrix.shape[1] > matrix.shape[0])
    by_shorter = matrix.strides[longer] > matrix.strides[1 - longer]
    found: Rows = np.einsum("ij,j->i", matrix, vector) if by_shorter else matrix @ vector
    return found


def column_squares(rows: Rows, weights: Float64) -> Float64:
    """Return the weighted sum of squares of each column, in float64."""
    total = np.empty(rows.shape[1])
    for span in panels(rows.shape[1], CONVERSION_PANEL):
        squares = rows[:, span].astype(np.float64)
        total[span] = weights @ np.square(squares, out=squares)
    return total


def add_column_sums(totals: Float64, rows: Rows, weights: Float64, origin: Rows) -> None:
    """Add Σ w·(x − origin) and Σ w·(x − origin)² of each column to ``totals``, of shape (2, d).

    In float64 and one row after the other, so that the sums are the same however the rows are cut
    into batches.
    """
    n_rows, n_columns = rows.shape
    # NumPy sums a lone column in pairs, and wider ones row by row.
    width = max(2, CONVERSION_PANEL * 64 // (n_rows + 1))
    for span in panels(n_columns, width):
        n_here = span.stop - span.start
        terms = np.zeros((n_rows + 1, max(n_here, 2)))
        inside = terms[1:, :n_here]
        inside[:] = rows[:, span]
        inside -= origin[span]
        squares = np.square(inside)
        for total, part in zip(totals, (inside, squares), strict=True):
            terms[0, :n_here] = total[span]
            np.multiply(part, weights[:, None], out=inside)
            total[span] = np.add.reduce(terms, axis=0)[:n_here]


def mixed_column_squares(
    mix: Float64, rows: Sequence[Part], columns: Float64 | None = None
) -> Float64:
    """Return the squares of each column of ``mix @ vstack(rows)``, multiplied by ``columns``."""
    factors, total = _split(mix, rows), np.empty(rows[0].shape[1])
    for span in panels(len(total), CONVERSION_PANEL):
        mixed = sum(
            (panel(part, span).T @ factor.T).T if is_sparse(part) else factor @ part[:, span]
            for factor, part in zip(factors, rows, strict=True)
        )
        if columns is not None:
            mixed = mixed * columns[span]
        total[span] = np.square(mixed).sum(axis=0)
    return total


def panel(part: Part, span: slice) -> Any:
    """Return some columns; of sparse rows without the cost of SciPy's general slicing."""
    if not is_sparse(part):
        return part[:, span]
    first, last = part.indptr[span.start], part.indptr[span.stop]
    starts = part.indptr[span.start : span.stop + 1] - first
    inside = part.data[first:last], part.indices[first:last], starts
    return sparse.csc_array(inside, shape=(part.shape[0], span.stop - span.start))


def top_eigenpairs(matrix: Float64, count: int) -> tuple[Float64, Float64]:
    """All eigenvalues of a symmetric matrix, descending, and the first ``count`` eigenvectors.

    The same LAPACK steps as ``syevd`` (tridiagonal form, divide and conquer), but only the wanted
    vectors are carried back: 28 ms instead of 41 for half of 512. A power of two scales the matrix
    first, as ``syevd`` does, so squares of data near 1e±100 stay in range and no bit is lost.
    """
    largest = float(np.abs(np.diagonal(matrix)).max())
    if largest == 0.0 or len(matrix) == 1:  # a Gram matrix with a zero diagonal is zero
        return np.diagonal(matrix).copy(), np.eye(len(matrix), count)
    scale = 2.0 ** float(np.clip(np.frexp(largest)[1], -1000, 1000))
    scaled = (matrix / scale).T
    values, vectors = alone(lambda: _eigenpairs(scaled, count))
    return values * scale, vectors


def _eigenpairs(matrix: Float64, count: int) -> tuple[Float64, Float64]:
    """Return all eigenvalues of a matrix, which is overwritten, and some eigenvectors."""
    work = int(lapack.dsytrd_lwork(len(matrix), lower=1)[0])
    form, diagonal, off, tau, _ = lapack.dsytrd(matrix, lower=1, lwork=work, overwrite_a=1)
    values, vectors, info = lapack.dstevd(diagonal, off)
    if info != 0:
        raise np.linalg.LinAlgError("the tridiagonal eigensolver did not converge")
    wanted = np.asfortranarray(vectors[:, : -count - 1 : -1])
    room = 64 * count + 4160  # what LAPACK asks for at its largest block size
    wanted[1:] = lapack.dormqr("L", "N", form[1:, :-1], tau, wanted[1:], room)[0]
    return values[::-1], wanted


def orthogonal_mix(gram: Float64, mix: Float64) -> tuple[Float64, Float64]:
    """Turn S = ``mix @ rows`` into orthogonal rows with the same SᵀS, given the rows' Gram matrix.

    Returns the squared norms of those rows, descending, and their mix.
    """
    squares, vectors = top_eigenpairs(mix @ gram @ mix.T, len(mix))
    return np.maximum(squares, 0.0), vectors.T @ mix


def column_norms(vectors: Float64) -> Float64:
    """Euclidean norm of each column, without overflow or underflow of the squares."""
    scale = np.abs(vectors).max(axis=0, initial=0.0)
    safe = np.where(scale > 0, scale, 1.0)
    norms: Float64 = scale * np.sqrt(np.square(vectors / safe).sum(axis=0))
    return norms


def binary_scales(vectors: Float64) -> Float64:
    """Return a power of two near the largest entry of each column, and one for zeros.

    Dividing by it costs no digit, and products of what is left neither overflow nor vanish.
    """
    # Along each column, which for a few long ones is faster than across them.
    largest = np.abs(np.ascontiguousarray(vectors.T)).max(axis=1, initial=0.0)
    powers = np.clip(np.frexp(largest)[1], -1000, 1000)
    scales: Float64 = np.where(largest > 0, np.ldexp(1.0, powers), 1.0)
    return scales


def underflow(n_terms: int, size: float = 1.0) -> float:
    """Bound what sums of so many products lose that are too small for float64.

    ``size`` is what such a sum may be multiplied by afterwards.
    """
    return TINY * n_terms * (1.0 + size)


def unit_roundoff(dtype: np.dtype[Any]) -> float:
    """Half the distance from one to the next number of ``dtype``."""
    return float(np.finfo(dtype).eps) / 2


def smallest_number(dtype: np.dtype[Any]) -> float:
    """Return the smallest positive number of ``dtype``: what an underflow may lose."""
    return float(np.finfo(dtype).smallest_subnormal)


TINY = smallest_number(np.dtype(np.float64))
DOUBLE = unit_roundoff(np.dtype(np.float64))


def _mix_panels(out: Rows, count: int) -> Iterator[tuple[slice, Rows]]:
    """Walk the columns of ``out`` with ``count`` temporaries of a panel's shape."""
    width = min(MIX_PANEL_BYTES // out.itemsize, out.shape[1])
    buffers = np.empty((count, len(out), width), out.dtype)
    for columns in panels(out.shape[1], width):
        yield columns, buffers[:, :, : columns.stop - columns.start]


def _split(mix: Rows, rows: Sequence[Part]) -> list[Rows]:
    """Cut the columns of ``mix`` as ``rows`` are stacked."""
    cuts = np.cumsum([block.shape[0] for block in rows])[:-1]
    return [np.ascontiguousarray(part) for part in np.split(mix, cuts, axis=1)]

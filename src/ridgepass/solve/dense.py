"""Solutions of (AᵀA + alpha·I) x = c with AᵀA at hand; the paper's rr."""

from collections.abc import Callable, Sequence

import numpy as np
from scipy.linalg import eigh, lapack

from ridgepass.kernels import Float64, column_norms, unit_roundoff
from ridgepass.sketch import Dense
from ridgepass.sketch.exact import add_gram

# Measured: an eigendecomposition takes as long as 17 to 23 Cholesky factorisations of 1,024 to
# 4,096 features.
MANY_ALPHAS = 20


class DenseSolver:
    """One Cholesky factorisation per alpha, or one eigendecomposition for many of them."""

    def __init__(self, covariance: Dense, cross: Float64) -> None:
        self.covariance = covariance
        self.exact_cross = self.cross = cross
        self._eigen: tuple[Float64, Float64] | None = None

    def solve(self, alphas: Sequence[float]) -> Float64:
        """Return coefficients of shape (n_alphas, n_features, n_targets)."""
        if len(alphas) > MANY_ALPHAS:  # whatever was asked before, so that answers do not vary
            return self._solve_by_eigenvectors(alphas)
        matrix = self._covariance()
        *others, last = alphas
        coefs = [self._solve_by_cholesky(matrix.copy(order="F"), alpha) for alpha in others]
        return np.stack([*coefs, self._solve_by_cholesky(matrix, last)])

    def corrector(self, alpha: float) -> Callable[[Float64], Float64]:
        """Return what multiplies by (AᵀA + alpha·I)⁻¹, factorised once."""
        factor = self._factorised(self._covariance(), alpha)
        return lambda given: np.asarray(lapack.dpotrs(factor, given, lower=1)[0])

    def solve_for(self, alpha: float, vectors: Float64) -> Float64:
        """Return v with (AᵀA + alpha·I)v near each of the vectors."""
        return self.corrector(alpha)(vectors)

    def correctors(self, alphas: Sequence[float]) -> list[Callable[[Float64], Float64]]:
        """Return the same for each of several alphas, which share one decomposition."""
        values, vectors = self._decomposed()

        def corrector(alpha: float) -> Callable[[Float64], Float64]:
            ridges = (values + alpha)[:, None]
            return lambda given: vectors @ ((vectors.T @ given) / ridges)

        return [corrector(alpha) for alpha in alphas]

    def typical_tail(self) -> float:
        """Return zero: no direction is left to a tail."""
        return 0.0

    def covariance_error(self, alpha: float) -> float:
        """Return at least the rounding error of AᵀA in the spectral norm."""
        return self.covariance.error

    def error_norms(self, alpha: float, coef: Float64) -> Float64:
        """Bound the distance of ``coef`` from the solution without rounding, for each target."""
        residual = self.cross - self.covariance.multiply(coef) - alpha * coef
        length = len(coef) + len(self.covariance.pending) + 4
        chain = length * unit_roundoff(np.dtype(np.float64))
        size = (alpha + self.covariance.mass) * column_norms(coef)
        rounding = chain * (size + column_norms(self.cross))
        rounding += self.covariance.underflow(coef)
        with np.errstate(divide="ignore"):
            norms: Float64 = (column_norms(residual) + rounding) / np.float64(alpha)
        return norms

    def quadratic(self, coefs: Float64) -> Float64:
        """Return xᵀAᵀAx, of shape (n_alphas, n_targets), for coefficients of any origin."""
        columns = np.moveaxis(coefs, 1, 0).reshape(coefs.shape[1], -1)
        values: Float64 = (columns * self.covariance.multiply(columns)).sum(axis=0)
        return values.reshape(len(coefs), -1)

    def degrees_of_freedom(self, alphas: Sequence[float], rank: int) -> Float64:
        """Return tr(AᵀA(AᵀA + alpha·I)⁻¹) for each alpha; AᵀA has ``rank`` nonzero eigenvalues."""
        values = self.eigenpairs()[0][-rank:, None] if rank else np.zeros((1, 1))
        ridges = values + np.asarray(alphas)
        shares = np.divide(values, ridges, out=np.zeros_like(ridges), where=ridges > 0)
        freedom: Float64 = shares.sum(axis=0)
        return freedom

    def largest_eigenvalue(self) -> float:
        """Return ‖AᵀA‖₂."""
        return float(self.eigenpairs()[0][-1])

    def eigenpairs(self) -> tuple[Float64, Float64]:
        """Return eigenvalues, ascending and not negative, and eigenvectors; computed once."""
        if self._eigen is None:
            self._eigen = self._decomposed()
        return self._eigen

    def _decomposed(self) -> tuple[Float64, Float64]:
        values, vectors = eigh(
            self._covariance(), lower=True, overwrite_a=True, check_finite=False, driver="evd"
        )
        return np.maximum(values, 0.0), vectors

    def _covariance(self) -> Float64:
        """Return a copy of AᵀA, lower triangle, with the pending rows added."""
        matrix = self.covariance.matrix.copy(order="F")
        add_gram(matrix, self.covariance.pending)
        if self.covariance.columns is not None:
            matrix *= self.covariance.columns
            matrix *= self.covariance.columns[:, None]
        return matrix

    def _solve_by_cholesky(self, matrix: Float64, alpha: float) -> Float64:
        """Solve with ``matrix``, which is spoilt."""
        coef: Float64 = lapack.dpotrs(self._factorised(matrix, alpha), self.cross, lower=1)[0]
        return coef

    def _factorised(self, matrix: Float64, alpha: float) -> Float64:
        """Return the Cholesky factor of ``matrix`` + alpha·I, in its place."""
        matrix[np.diag_indices_from(matrix)] += alpha
        factor, info = lapack.dpotrf(matrix, lower=1, overwrite_a=1, clean=0)
        if info != 0:
            raise ValueError(
                f"alpha={alpha:g} leaves AᵀA + alpha·I singular: as far as float64 can tell, the "
                "columns are linearly dependent; choose a larger alpha, or use standardize=True"
            )
        found: Float64 = factor
        return found

    def _solve_by_eigenvectors(self, alphas: Sequence[float]) -> Float64:
        values, vectors = self.eigenpairs()
        ridges = values[:, None] + np.asarray(alphas)
        if not ridges.all():
            raise ValueError(
                "alpha=0 leaves AᵀA singular: as far as float64 can tell, the columns are "
                "linearly dependent, so choose alpha > 0"
            )
        rotated = vectors.T @ self.cross
        return np.stack([vectors @ (rotated / ridge[:, None]) for ridge in ridges.T])

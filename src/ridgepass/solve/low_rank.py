"""Solutions of (SᵀS + shift·I + alpha·I) x = c for S with few orthogonal rows."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from ridgepass.kernels import (
    Float64,
    binary_scales,
    column_norms,
    mixed_column_squares,
    top_eigenpairs,
    unit_roundoff,
)
from ridgepass.sketch import LowRank
from ridgepass.sketch.tracked_covariance import MixedRows, dividing


class LowRankSolver:
    """Look at the sketch once, then solve for any number of alphas.

    (SᵀS + g·I)⁻¹c = (c − Sᵀ(Σ² + g·I)⁻¹Sc)/g, which is lines 8 and 9 of Algorithm 2 with
    S = ΣVᵀ in place of V: nothing is divided by a singular value that may be zero.

    Parameters
    ----------
    covariance : LowRank
        The sketch.
    cross : ndarray of shape (n_features, n_targets)
        Aᵀb exactly; the sketch's own estimate, where it has one, is solved for instead.
    """

    def __init__(self, covariance: LowRank, cross: Float64) -> None:
        self.covariance = covariance
        self.exact_cross = cross
        self.cross = cross = cross if covariance.cross is None else covariance.cross
        self._projected = self._project(cross)  # line 8

    def solve(self, alphas: Sequence[float]) -> Float64:
        """Return coefficients of shape (n_alphas, n_features, n_targets)."""
        return self._solve(self.cross, self._projected, self._ridges(alphas))

    def corrector(self, alpha: float) -> Callable[[Float64], Float64]:
        """Return what multiplies by (SᵀS + shift·I + alpha·I)⁻¹, to precondition by.

        Where a loss bound Δ is known, the shift is Δ/2: AᵀA is then below twice what is inverted,
        so that a whole step cannot go too far.
        """
        cov = self.covariance
        shift = cov.shift if cov.loss_bound is None else cov.loss_bound / 2

        ridges = [alpha + shift]
        return lambda vectors: self._solve(vectors, self._project(vectors), ridges)[0]

    def solve_for(self, alpha: float, vectors: Float64) -> Float64:
        """Return v with (AᵀA + alpha·I)v near each of the vectors."""
        return self.corrector(alpha)(vectors)

    def corrector_with_diagonal(
        self, alpha: float, diagonal: Float64
    ) -> Callable[[Float64], Float64]:
        """Return a better one where the diagonal of AᵀA is known, and alpha is above zero.

        SᵀS + diag(AᵀA − SᵀS) + alpha·I where SᵀS is below AᵀA. Random sketches stretch the
        directions that they keep, most where columns are uneven: theirs is D½(I + L)D½ with
        D = diag(AᵀA) + alpha·I, L being D⁻½SᵀSD⁻½ less twice its smallest eigenvalue.
        """
        cov = self.covariance
        if cov.loss_bound is None:
            return self._corrector_of_random(diagonal + alpha)
        kept = mixed_column_squares(cov.mix, cov.rows, cov.columns)
        ridges = np.maximum(diagonal - kept, 0.0) + alpha
        rows = MixedRows(cov.rows, cov.mix, cov.columns)
        gram = rows.rescaled(1 / np.sqrt(ridges)).gram()
        divide = dividing(np.eye(len(gram)) + gram)

        def correct(vectors: Float64) -> Float64:
            unit = binary_scales(vectors)
            divided = vectors / unit / ridges[:, None]
            inside = rows.lift(divide(rows.project(divided)))
            return unit * (divided - inside / ridges[:, None])

        return correct

    def _corrector_of_random(self, ridges: Float64) -> Callable[[Float64], Float64]:
        cov, roots = self.covariance, np.sqrt(ridges)[:, None]
        rows = MixedRows(cov.rows, cov.mix, cov.columns).rescaled(1 / roots[:, 0])
        gram = rows.gram()
        values, vectors = top_eigenpairs(gram, len(gram))
        values = np.maximum(values, 0.0)
        left = np.maximum(values - 2 * values[-1], 0.0)
        shares = np.divide(left, values * (1 + left), out=np.zeros_like(left), where=left > 0)

        def correct(columns: Float64) -> Float64:
            unit = binary_scales(columns)
            whitened = columns / unit / roots
            inside = vectors @ (shares[:, None] * (vectors.T @ rows.project(whitened)))
            return unit * ((whitened - rows.lift(inside)) / roots)

        return correct

    def tail(self) -> float:
        """Return what K̂ has in every direction outside S."""
        return self.covariance.shift

    def typical_tail(self) -> float:
        """Estimate what AᵀA has in directions that matter outside S."""
        return self.covariance.shift

    def covariance_error(self, alpha: float) -> float:
        """Return at least ‖AᵀA − K̂‖₂."""
        return self.covariance.error

    def error_norms(self, alpha: float, coef: Float64) -> Float64:
        """Bound the distance of ``coef`` from the solution without rounding, for each target.

        The residual is solved for in turn, since most of it lies in the leading directions, where
        ‖residual‖/alpha would be far too much.
        """
        cov = self.covariance
        residual = self.cross - self._multiply(alpha, coef)
        (correction,) = self._solve(residual, self._project(residual), self._ridges([alpha]))
        left = residual - self._multiply(alpha, correction)
        # The residuals' own rounding: their longest sums run over the features and the rows.
        chain = (len(coef) + sum(cov.mix.shape)) * unit_roundoff(np.dtype(np.float64))
        size = (alpha + cov.shift + float(cov.squares.sum())) * column_norms(coef)
        rounding = chain * (size + column_norms(self.cross)) + cov.underflow(coef)
        with np.errstate(over="ignore"):
            norms: Float64 = column_norms(correction) + (column_norms(left) + rounding) / (
                alpha + cov.shift
            )
        return norms

    def quadratic(self, coefs: Float64) -> Float64:
        """Estimate xᵀAᵀAx, of shape (n_alphas, n_targets), for coefficients of any origin.

        What the sketch lost counts in full inside its span. Outside, the geometric mean of the
        average and the most that directions can have lost did best in choosing alpha (LR and HR
        data, sketch sizes 16 to 512); half of the most, where the trace leaves nothing to average.
        """
        cov, columns = self.covariance, np.moveaxis(coefs, 1, 0).reshape(coefs.shape[1], -1)
        unit = binary_scales(columns)
        columns = columns / unit
        images = np.square(cov.project(columns))
        inside = _over(images, cov.squares[:, None]).sum(axis=0)
        outside = np.maximum(np.square(columns).sum(axis=0) - inside, 0.0)
        tail, most = self._tail(len(columns)), cov.largest_loss
        lost = math.sqrt(tail) * math.sqrt(most) if tail > 0 else most / 2
        values: Float64 = images.sum(axis=0) + cov.kept_loss * inside + lost * outside
        return (values * unit * unit).reshape(len(coefs), -1)

    def degrees_of_freedom(self, alphas: Sequence[float], rank: int) -> Float64:
        """Estimate tr(AᵀA(K̂ + alpha·I)⁻¹) for each alpha; AᵀA has ``rank`` nonzero eigenvalues."""
        cov, ridges = self.covariance, np.asarray(alphas) + self.covariance.shift
        values = (cov.squares + cov.kept_loss) * (cov.squares > 0)
        inside: Float64 = (values[:, None] / (cov.squares[:, None] + ridges)).sum(axis=0)
        outside = max(rank - int(np.count_nonzero(values)), 0) * self._tail(rank)
        return inside + outside / ridges

    def largest_eigenvalue(self) -> float:
        """Estimate ‖AᵀA‖₂."""
        return float(self.covariance.squares.max()) + self.covariance.kept_loss

    def _tail(self, rank: int) -> float:
        """Return the mean eigenvalue that the exact trace leaves for directions outside S."""
        cov = self.covariance
        n_inside = int(np.count_nonzero(cov.squares))
        if rank <= n_inside:
            return 0.0
        inside = float(cov.squares.sum()) + n_inside * cov.kept_loss
        return max(cov.mass - inside, 0.0) / (rank - n_inside)

    def _multiply(self, alpha: float, coef: Float64) -> Float64:
        """Return (K̂ + alpha·I)·coef."""
        cov = self.covariance
        return cov.multiply(coef) + (alpha + cov.shift) * coef

    def _ridges(self, alphas: Sequence[float]) -> list[float]:
        return [alpha + self.covariance.shift for alpha in alphas]

    def _project(self, vectors: Float64) -> tuple[Float64, Float64]:
        """Return S·vectors, and what to multiply it by: both together might overflow."""
        unit = binary_scales(vectors)
        return self.covariance.project(vectors / unit), unit

    def _solve(
        self, cross: Float64, projected: tuple[Float64, Float64], given: Sequence[float]
    ) -> Float64:
        """Solve (SᵀS + g·I)x = cross for each g that is given."""
        cov, ridges, (images, unit) = self.covariance, np.asarray(given)[:, None], projected
        shares = images[:, None, :] / (cov.squares[:, None] + ridges.T)[:, :, None]
        inside = cov.lift(shares.reshape(len(cov.mix), -1)).reshape(len(cross), len(ridges), -1)
        coefs = (cross / unit)[:, None, :] - inside  # line 9
        coefs /= ridges[None]
        coefs *= unit
        return np.moveaxis(coefs, 1, 0)


def _over(above: Float64, below: Float64) -> Float64:
    """Divide, with nothing where a direction is empty."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)

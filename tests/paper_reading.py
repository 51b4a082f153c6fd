"""The paper's Algorithms 2 and 3, read line by line and left as slow as they are printed.

Nothing here is shared with the package: this is what the package is tested against. The comment
beside each statement is the line of Algorithm 2 (FDrr) or 3 (RFDrr) that it reads.
"""

from typing import NamedTuple

import numpy as np


class State(NamedTuple):
    """What a pass leaves behind.

    `sigma` (ℓ,) and `V` (d, ℓ) are the paper's Σ and V, zero where the data has not reached;
    `delta_sum` is the sum of every σ²_{ℓ+1}, which bounds ‖AᵀA - VΣ²Vᵀ‖₂ under each of the rules;
    `alpha_shift` is what RFD has added to γ: half of `delta_sum`, and 0 under the other rules.
    """

    sigma: np.ndarray
    V: np.ndarray
    delta_sum: float
    alpha_shift: float

    @property
    def sketch(self):
        """The rows C = ΣVᵀ."""
        return self.sigma[:, None] * self.V.T

    @property
    def covariance(self):
        """K̂ = VΣ²Vᵀ, plus the shift on its diagonal."""
        return self.sketch.T @ self.sketch + self.alpha_shift * np.eye(len(self.V))


def fd(A, sketch_size, rule):
    """Pass over the rows of `A` in blocks of ℓ; `rule` is "fd", "rfd" or "isvd"."""
    if rule not in {"fd", "rfd", "isvd"}:
        raise ValueError(rule)
    ell, d = sketch_size, A.shape[1]  # line 1: input
    sigma, V = np.zeros(ell), np.zeros((d, ell))  # line 2: Σ ← 0, V ← 0
    delta_sum = alpha_shift = 0.0
    for start in range(0, len(A), ell):  # line 3: for batches A_ℓ of A
        block = A[start : start + ell]
        stack = np.vstack([(V * sigma).T, block])  # line 4: [V Σᵀ; A_ℓᵀ]ᵀ
        _, new_sigma, new_Vt = np.linalg.svd(stack, full_matrices=False)  # line 4: svd
        missing = max(0, ell + 1 - len(new_sigma))  # if d <= ℓ, σ_{ℓ+1} = 0
        new_sigma = np.pad(new_sigma, (0, missing))
        new_V = np.pad(new_Vt, ((0, missing), (0, 0))).T
        delta = new_sigma[ell] ** 2  # σ²_{ℓ+1}
        sigma, V = new_sigma[:ell], new_V[:, :ell]  # line 5: V ← V'_ℓ; iSVD: Σ ← Σ'_ℓ
        if rule != "isvd":
            sigma = np.sqrt(sigma**2 - delta)  # line 5: Σ ← √(Σ'²_ℓ - σ²_{ℓ+1} I)
        if rule == "rfd":
            alpha_shift += delta / 2  # Algorithm 3, line 6: γ ← γ + σ²_{ℓ+1} / 2
        delta_sum += delta
    return State(sigma, V, float(delta_sum), float(alpha_shift))


def solve(state, c, gamma):
    """The coefficients from the state of a pass and c = Aᵀb."""
    gamma = gamma + state.alpha_shift  # Algorithm 3, line 6, kept apart from γ until now
    c_in = state.V.T @ c  # line 8 (9 in Algorithm 3): c' ← Vᵀ c
    inside = state.V @ (c_in / (state.sigma**2 + gamma))  # line 9 (10): V (Σ² + γI)⁻¹ c'
    return inside + (c - state.V @ c_in) / gamma  # line 9 (10): + γ⁻¹ (c - V c')


def exact(A, b, gamma):
    """x_γ = (AᵀA + γI)⁻¹ Aᵀ b, the answer the sketches approximate."""
    return np.linalg.solve(A.T @ A + gamma * np.eye(A.shape[1]), A.T @ b)

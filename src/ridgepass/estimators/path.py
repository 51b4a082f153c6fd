"""Coefficients along many alphas."""

from dataclasses import dataclass

from ridgepass.kernels import Float64


@dataclass(frozen=True)
class RidgePath:
    """Models for many alphas, from one stream.

    Attributes
    ----------
    alphas : ndarray of shape (n_alphas,)
        In the order given.
    coefs : ndarray of shape (n_alphas, n_features) or (n_alphas, n_targets, n_features)
        ``coefs[i]`` is ``coef_`` at ``alphas[i]``.
    intercepts : ndarray of shape (n_alphas,) or (n_alphas, n_targets)
        The intercepts that go with them.
    coef_bounds : ndarray of shape (n_alphas,) or (n_alphas, n_targets)
        At least ‖coef − exact ridge‖₂; where features are scaled, of coefficients times scales.
    relative_bounds : ndarray of shape (n_alphas,) or (n_alphas, n_targets)
        At least that over the norm of exact ridge.
    """

    alphas: Float64
    coefs: Float64
    intercepts: Float64
    coef_bounds: Float64
    relative_bounds: Float64

    def __len__(self) -> int:
        return len(self.alphas)

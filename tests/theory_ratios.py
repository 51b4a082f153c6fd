"""Sketched over exact risk: what the factors of the theory are to bound."""

import math

import numpy as np

from ridgepass import theory

ROUNDING = 1e-9


def worst_truth(A, K_hat, alpha):
    """The x whose bias² the sketch multiplies most."""
    A, K_hat = A / math.sqrt(alpha), K_hat / alpha
    U, sigma, Wt = np.linalg.svd(A, full_matrices=False)
    held = sigma > 1e-6 * sigma[0]
    U, sigma, Wt = U[:, held], sigma[held], Wt[held]
    N = A @ np.linalg.solve(K_hat + np.eye(len(K_hat)), A.T @ A - K_hat) @ A.T
    _, _, Vt = np.linalg.svd((np.eye(len(A)) - N) @ U)
    return Wt.T @ ((sigma**2 + 1) / sigma * Vt[0])


def ratios(A, sketch, shift, alpha, x):
    truth = theory.exact_risk(A, x, alpha, 1.0)
    sketched = theory.sketched_risk(A, x, alpha, 1.0, sketch, shift)
    return theory.RiskFactors(sketched.bias2 / truth.bias2, sketched.variance / truth.variance)


def worst_ratios(A, sketch, shift, alpha):
    K_hat = sketch.T @ sketch + shift * np.eye(A.shape[1])
    return ratios(A, sketch, shift, alpha, worst_truth(A, K_hat, alpha))


def below(found, factors):
    return (
        found.bias2 <= factors.bias2 * (1 + ROUNDING)
        and found.variance <= factors.variance * (1 + ROUNDING)
        and found.total <= factors.total * (1 + ROUNDING)
    )


def sketch_of(K_hat):
    """Rows C with CᵀC equal to the positive semi-definite part of K̂."""
    values, vectors = np.linalg.eigh(K_hat)
    return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T


def one_column(K, K_hat, alpha):
    """Ratios for data of a single column, where every matrix is a number."""
    return ratios(
        np.array([[math.sqrt(K)]]), np.array([[math.sqrt(K_hat)]]), 0.0, alpha, np.ones(1)
    )

"""The paper's theory as functions: what a sketch promises before any data is seen.

Every function names its place in Shi and Phillips, "A Deterministic Streaming Sketch for Ridge
Regression". Bounds are the provable ones; where a printed bound differs, ``as_printed=True`` gives
it and the docstring says why.
"""

from ridgepass.theory.coefficients import (
    BestBound,
    best_covariance_bound,
    fd_covariance_bound,
    prediction_bound,
    predictions_norm_bound,
    relative_error_bound,
    rfd_covariance_bound,
)
from ridgepass.theory.factors import (
    conditioned_variance_factor,
    fd_risk_factors,
    full_rank_variance_factor,
    rfd_risk_factors,
    risk_factors,
    sharp_risk_factors,
)
from ridgepass.theory.risk import Risk, RiskFactors, exact_risk, sketched_risk
from ridgepass.theory.sizing import alpha_for, best_sketch_size_for, sketch_size_for

__all__ = [
    "BestBound",
    "Risk",
    "RiskFactors",
    "alpha_for",
    "best_covariance_bound",
    "best_sketch_size_for",
    "conditioned_variance_factor",
    "exact_risk",
    "fd_covariance_bound",
    "fd_risk_factors",
    "full_rank_variance_factor",
    "prediction_bound",
    "predictions_norm_bound",
    "relative_error_bound",
    "rfd_covariance_bound",
    "rfd_risk_factors",
    "risk_factors",
    "sharp_risk_factors",
    "sketch_size_for",
    "sketched_risk",
]

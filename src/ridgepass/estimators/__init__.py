"""Estimators with scikit-learn's conventions."""

from ridgepass.estimators.classifier import StreamingRidgeClassifier
from ridgepass.estimators.cv import StreamingRidgeCV
from ridgepass.estimators.path import RidgePath
from ridgepass.estimators.regressor import StreamingRidge

__all__ = ["RidgePath", "StreamingRidge", "StreamingRidgeCV", "StreamingRidgeClassifier"]

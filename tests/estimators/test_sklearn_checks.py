"""scikit-learn's whole contract, for every estimator and method, with no expected failure."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from ridgepass.estimators import StreamingRidge, StreamingRidgeClassifier, StreamingRidgeCV
from ridgepass.sketch import SKETCHES


@parametrize_with_checks(
    [
        estimator(method=method)
        for estimator in (StreamingRidge, StreamingRidgeCV, StreamingRidgeClassifier)
        for method in ("auto", *SKETCHES)
    ]
    + [StreamingRidgeCV(cv=2, method=method) for method in SKETCHES]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)

"""One model in many threads."""

import threading

import numpy as np

from estimator_data import regression
from ridgepass.estimators import StreamingRidge


def sketched():
    return StreamingRidge(method="rfd", sketch_size=4)


def test_predictions_from_many_threads():
    X, y = regression(n_rows=2000, n_features=200)
    model = StreamingRidge(method="rfd", sketch_size=32).fit(X, y)
    siblings = [model, *(model.at(alpha) for alpha in (2.0, 3.0, 4.0))]
    wanted = [
        StreamingRidge(a, method="rfd", sketch_size=32).fit(X, y).predict(X) for a in (1, 2, 3, 4)
    ]
    results, start = [], threading.Barrier(12)

    def ask(i):
        start.wait()
        results.append((i, siblings[i].predict(X), siblings[i].certificate().relative))

    threads = [threading.Thread(target=ask, args=(i % 4,)) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 12
    for i, prediction, relative in results:
        np.testing.assert_array_equal(prediction, wanted[i])
        assert relative == siblings[i].certificate().relative


def test_training_while_others_predict():
    X, y = regression(n_rows=600)
    model = sketched().fit(X[:10], y[:10])
    sibling, before = model.at(2.0), model.at(2.0).predict(X)
    failures, stop = [], threading.Event()

    def ask():
        while not stop.is_set():
            if not np.array_equal(sibling.predict(X), before):
                failures.append("a sibling changed")
            model.predict(X)

    thread = threading.Thread(target=ask)
    thread.start()
    for i in range(10, len(X), 10):
        model.partial_fit(X[i : i + 10], y[i : i + 10])
    stop.set()
    thread.join()
    assert failures == []
    np.testing.assert_array_equal(model.coef_, sketched().fit(X, y).coef_)

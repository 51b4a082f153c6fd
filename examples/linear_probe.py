"""A linear probe: to which of 1,000 classes an embedding belongs.

Embeddings arrive in batches, as from a model that runs over images or documents; none is kept. One
pass serves every alpha, and the certificate says how far the probe is from the exact one. Here
embeddings are drawn around a centre for each class, in the shape of a real model's output: a few
strong directions and a long tail.

Run it with: python examples/linear_probe.py
"""

import argparse
import time
from collections.abc import Iterator

import numpy as np

from ridgepass import StreamingRidgeClassifier


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classes", type=int, default=1000, help="labels (%(default)s)")
    parser.add_argument("--dimensions", type=int, default=1024, help="of embeddings (%(default)s)")
    parser.add_argument("--rows", type=int, default=50_000, help="to train on (%(default)s)")
    parser.add_argument("--sketch-size", type=int, default=256, help="sketch rows (%(default)s)")
    options = parser.parse_args()
    embeddings = Embeddings(options.classes, options.dimensions)
    test_X, test_labels = next(embeddings.batches(5000, 5000, seed=1))
    alphas = np.geomspace(1e-2, 1e4, 7)

    for method in ("exact", "rfd"):
        probe = StreamingRidgeClassifier(
            alpha=1.0, method=method, sketch_size=options.sketch_size, dtype="float32"
        )
        start = time.perf_counter()
        for X, labels in embeddings.batches(options.rows, 1000, seed=0):
            probe.partial_fit(X, labels, classes=np.arange(options.classes))
        seconds = time.perf_counter() - start
        print(f"method={method}: {options.rows / seconds:,.0f} rows a second, embedding included")
        for alpha in alphas:
            model = probe.at(alpha)  # no row is read again
            worst = np.max(model.certificate().relative)
            print(
                f"  alpha={alpha:<8g} accuracy {model.score(test_X, test_labels):.3f}, "
                f"every class within {worst:.2g} of exact ridge"
            )


class Embeddings:
    """Unit vectors around a centre for each class."""

    def __init__(self, n_classes: int, n_dimensions: int) -> None:
        rng = np.random.default_rng(0)
        self.spread = np.float32(1.0) / np.sqrt(1 + np.arange(n_dimensions, dtype=np.float32))
        self.centres = self._around(rng, np.zeros((n_classes, n_dimensions), np.float32))

    def batches(
        self, n_rows: int, batch_rows: int, seed: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield embeddings and labels."""
        rng = np.random.default_rng([seed, n_rows])
        for start in range(0, n_rows, batch_rows):
            labels = rng.integers(len(self.centres), size=min(batch_rows, n_rows - start))
            yield self._around(rng, self.centres[labels]), labels

    def _around(self, rng: np.random.Generator, centres: np.ndarray) -> np.ndarray:
        noise = rng.standard_normal(centres.shape, dtype=np.float32) * self.spread
        vectors = centres + 3.0 * noise / np.linalg.norm(noise, axis=1, keepdims=True)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


if __name__ == "__main__":
    main()

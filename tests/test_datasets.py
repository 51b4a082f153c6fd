import numpy as np
import pytest

from ridgepass.datasets import Synthetic


@pytest.mark.parametrize(("kind", "rank"), [("low_rank", 25), ("high_rank", 128)])
def test_rows_have_the_paper_s_spectrum(kind, rank):
    data = getattr(Synthetic, kind)(256, seed=3)
    assert data.effective_rank == rank
    A, _ = data.sample(20_000)
    found = np.linalg.svd(A / np.sqrt(len(A)), compute_uv=False)
    expected = np.exp(-np.square(np.arange(256) / rank))
    leading = expected > 0.05
    np.testing.assert_allclose(found[leading], expected[leading], rtol=0.25)
    assert np.abs(A[:, 0]).max() < np.abs(A).max()  # rotated: no column stands out


def test_targets_are_linear_with_noise_of_variance_four():
    data = Synthetic.high_rank(64, seed=1)
    A, b = data.sample(40_000)
    assert np.linalg.norm(data.coef) == pytest.approx(1.0)
    noise = b - A @ data.coef
    assert np.var(noise) == pytest.approx(4.0, rel=0.05)
    assert abs(noise.mean()) < 0.05


def test_batches_parts_and_seeds():
    data = Synthetic.low_rank(40, seed=2)
    sizes = [len(A) for A, _ in data.batches(25, batch_rows=10)]
    assert sizes == [10, 10, 5]
    again = Synthetic.low_rank(40, seed=2).sample(25)
    np.testing.assert_array_equal(data.sample(25)[0], again[0])
    assert not np.array_equal(data.sample(25)[0], data.sample(25, part=1)[0])
    assert not np.array_equal(data.coef, Synthetic.low_rank(40, seed=5).coef)

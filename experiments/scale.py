"""How large a run is: the paper's own sizes, or small ones for continuous integration."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Sizes of a run; the test rows are a quarter of the training rows.

    Parameters
    ----------
    sizes, projection_sizes : tuple of int
        Sketch sizes ℓ, of the Frequent Directions types and of the random projections.
    timed_features, timed_rows : tuple of int
        The d and n that running times are measured against, with the others fixed.
    few_rows, timed_size : int
        The n while d varies, and the ℓ while d or n varies.
    most_features_squared : int
        The largest d of an algorithm that makes a d×d matrix.
    most_rows_one_by_one : int
        The largest n of ridge regression that takes one row at a time.
    repeats : int
        Draws of the data.
    least_timings, seconds, patience : int, float, float
        How often a time is measured: as often as there are repeats or until the seconds are over;
        not less often than the least, unless the patience is over, too.
    """

    name: str
    n_features: int
    n_rows: int
    repeats: int
    sizes: tuple[int, ...]
    projection_sizes: tuple[int, ...]
    timed_features: tuple[int, ...]
    timed_rows: tuple[int, ...]
    few_rows: int
    timed_size: int
    most_features_squared: int
    most_rows_one_by_one: int
    least_timings: int
    seconds: float
    patience: float

    def like(self, size: int) -> int:
        """Return the sketch size that is to this scale what ``size`` is to the paper's."""
        return max(2, size * self.n_features // PAPER.n_features)


def powers(first: int, last: int) -> tuple[int, ...]:
    """Return the powers of two from one exponent to another."""
    return tuple(2**exponent for exponent in range(first, last + 1))


PAPER = Scale(
    name="full",
    n_features=2**11,
    n_rows=2**13,
    repeats=10,
    sizes=powers(4, 10),
    projection_sizes=powers(4, 13),
    timed_features=powers(8, 14),
    timed_rows=powers(8, 15),
    few_rows=2**8,
    timed_size=2**6,
    most_features_squared=2**13,
    most_rows_one_by_one=2**13,
    least_timings=3,
    seconds=4.0,
    patience=60.0,
)
SMALL = Scale(
    name="small",
    n_features=2**9,
    n_rows=2**11,
    repeats=4,
    sizes=powers(2, 8),
    projection_sizes=powers(2, 11),
    timed_features=powers(7, 12),
    timed_rows=powers(7, 13),
    few_rows=2**7,
    timed_size=2**4,
    most_features_squared=2**11,
    most_rows_one_by_one=2**11,
    least_timings=2,
    seconds=0.3,
    patience=5.0,
)
SCALES = {scale.name: scale for scale in (PAPER, SMALL)}

"""What an anchor tells of the directions outside its sketch."""

from dataclasses import dataclass

import numpy as np

from ridgepass.kernels import Float64

# Below this share of the anchor, what lies outside the sketch is too little to measure τ on.
LEAST_OUTSIDE = 1e-10


@dataclass(frozen=True)
class Outside:
    """An anchor's parts outside the sketch: u of w, and g of h.

    Attributes
    ----------
    scale : float
        What g is divided by, so that its squares do not overflow.
    point, image, both : float
        ‖u‖², ‖g‖² and u·g, summed over the targets.
    """

    scale: float
    point: float
    image: float
    both: float

    @classmethod
    def of(cls, point: Float64, image: Float64, whole: float) -> "Outside":
        """Sum up the parts of w and h; ``whole`` is ‖w‖²."""
        size = float(np.abs(image).max(initial=0.0))
        scale = size if size > 0 else 1.0
        image, left = image / scale, float(np.square(point).sum())
        return cls(
            scale,
            left if left > LEAST_OUTSIDE * whole else 0.0,
            float(np.square(image).sum()),
            float((point * image).sum()),
        )

    def tail(self, alpha: float) -> float | None:
        """Return the τ that solves best for the one vector whose solution is known.

        (E + γI)u = g + γu =: v, and v/(τ + γ) is nearest to u for τ + γ = ‖v‖²/(u·v). For large γ
        that is the quotient u·g/‖u‖²; for small γ it is ‖g‖²/(u·g), which is larger, as what must
        be solved for is richer in the large directions of E than its solution is.
        """
        if self.point == 0.0:
            return None
        if np.isinf(alpha):
            return self.scale * self.both / self.point
        ridge = alpha / self.scale
        below = self.both + ridge * self.point
        above = self.image + ridge * self.both
        return self.scale * above / below if below > 0 else None

"""The parameters that shape a stream, checked, as they were when training began."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from ridgepass import validation
from ridgepass.estimators.budget import Plan, make_plan, parse_memory
from ridgepass.kernels import Float64
from ridgepass.sketch import LEGACY, SKETCHES
from ridgepass.snapshot import Kept, array, entry, flag, float_type, number, part, text, whole
from ridgepass.stream import RidgeStream

# Streams that differ in these do not describe one problem.
MATTER_TO_MERGE = ("fit_intercept", "standardize", "feature_scale")


@dataclass(frozen=True, eq=False)
class Settings:
    """Checked parameters; ``memory`` is in bytes."""

    method: str
    sketch_size: int
    memory: int | None
    fit_intercept: bool
    standardize: bool
    feature_scale: Float64 | None
    dtype: np.dtype[Any] | None
    probes: int

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """Check an estimator's parameters; they stay as they are."""
        return cls(
            method=validation.as_method(estimator.method, ("auto", *SKETCHES), LEGACY),
            sketch_size=validation.as_sketch_size(estimator.sketch_size),
            memory=parse_memory(estimator.memory),
            fit_intercept=validation.as_bool(estimator.fit_intercept, "fit_intercept"),
            standardize=validation.as_bool(estimator.standardize, "standardize"),
            feature_scale=validation.as_feature_scale(estimator.feature_scale),
            dtype=validation.as_dtype(estimator.dtype),
            probes=validation.as_probes(estimator.probes),
        )

    def plan(
        self, n_features: int, n_targets: int, dtype: np.dtype[Any], method: str | None = None
    ) -> Plan:
        """Settle method and sketch size for rows of ``dtype``; ``method`` overrides ``"auto"``."""
        return make_plan(
            method or self.method,
            self.sketch_size,
            self.memory,
            n_features=n_features,
            n_targets=n_targets,
            itemsize=(self.dtype or dtype).itemsize,
            probes=self.probes,
        )

    def new_stream(self, plan: Plan, alpha: float | None) -> RidgeStream:
        """Return an empty stream, still without a seed, for an alpha if one is likely."""
        return self._stream(plan, (0, 0), alpha)

    def restored_stream(self, plan: Plan, kept: Any) -> RidgeStream:
        """Return the stream that a snapshot was taken of."""
        stream = part(kept, "stream")
        alpha = entry(stream, "alpha")
        alpha = None if alpha is None else number(alpha, "alpha")
        # There were no probes before version 4 of the model file.
        probe_seed = whole(stream.get("probe_seed", 0), "probe_seed")
        seeds = whole(entry(stream, "seed"), "seed"), probe_seed
        return self._stream(plan, seeds, alpha).restore(stream)

    def _stream(self, plan: Plan, seeds: tuple[int, int], alpha: float | None) -> RidgeStream:
        make: Callable[..., RidgeStream] = RidgeStream
        if plan.method in LEGACY:
            make = RidgeStream.legacy
        stream = make(
            plan.method,
            sketch_size=plan.sketch_size,
            fit_intercept=self.fit_intercept,
            standardize=self.standardize,
            feature_scale=self.feature_scale,
            dtype=self.dtype,
            seed=seeds[0],
            alpha=alpha,
            probes=self.probes,
            probe_seed=seeds[1],
        )
        stream._names = ("X", "y", "sample_weight")
        return stream

    def snapshot(self) -> Kept:
        """Return the settings as plain data."""
        kept = {field.name: getattr(self, field.name) for field in fields(self)}
        return kept | {"dtype": None if self.dtype is None else self.dtype.name}

    @classmethod
    def restored(cls, kept: Any) -> Self:
        """Return the settings that a snapshot was taken of, or raise ValueError."""
        method = text(entry(kept, "method"), "method")
        if method not in ("auto", *SKETCHES, *LEGACY):
            raise ValueError(f"method {method!r} is unknown")
        memory, dtype = entry(kept, "memory"), entry(kept, "dtype")
        scale = entry(kept, "feature_scale")
        if scale is not None:
            scale = array(scale, "feature_scale", np.dtype(np.float64), (None,))
        return cls(
            method=method,
            sketch_size=whole(entry(kept, "sketch_size"), "sketch_size", least=2),
            memory=None if memory is None else whole(memory, "memory", least=1),
            fit_intercept=flag(entry(kept, "fit_intercept"), "fit_intercept"),
            standardize=flag(entry(kept, "standardize"), "standardize"),
            feature_scale=validation.as_feature_scale(scale),
            dtype=None if dtype is None else float_type(dtype, "dtype"),
            probes=whole(part(kept, "settings").get("probes", 0), "probes"),
        )

    def differences(self, other: "Settings") -> list[str]:
        """Return the names of the parameters that are not the same."""
        names = [field.name for field in fields(self)]
        return [name for name in names if not _same(getattr(self, name), getattr(other, name))]


def restored_plan(kept: Any) -> Plan:
    """Return the plan that a snapshot was taken of, or raise ValueError."""
    method = text(entry(kept, "method"), "method")
    if method not in (*SKETCHES, *LEGACY):
        raise ValueError(f"method {method!r} is unknown")
    return Plan(method, whole(entry(kept, "sketch_size"), "sketch_size", least=2))


def as_alpha(alpha: Any) -> float:
    """Return one ridge parameter as a float."""
    if np.ndim(alpha) != 0:
        raise ValueError(
            f"alpha={alpha!r} has one value for each target: give a single number, "
            "and a model to each target that needs another"
        )
    return validation.as_alpha(alpha)


def draw_seeds(streams: Sequence[RidgeStream], random_state: Any) -> None:
    """Seed empty streams that are alike: always the same for an int, the next for a generator.

    None is a new seed for the random methods, each stream its own. Probes must be the same in all
    parts of a merger: an int is their seed, and None is zero, the published one.
    """
    fixed = random_state is None or isinstance(random_state, Integral)
    probe_seed = validation.as_seed(random_state or 0, "random_state") if fixed else 0
    random = SKETCHES[streams[0].method].is_random
    drawn = [0] * len(streams)
    if random or not fixed:
        generator = check_random_state(random_state)
        drawn = [int(generator.randint(np.iinfo(np.int32).max)) for _ in streams]
    if isinstance(random_state, Integral):
        drawn = drawn[:1] * len(streams)
    for stream, seed in zip(streams, drawn, strict=True):
        stream.seed = seed if random else 0
        stream.probe_seed = probe_seed if fixed else drawn[0]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return bool(one is other or (type(one) is type(other) and one == other))

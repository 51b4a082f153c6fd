"""Rows to learn from, made to be hard: what goes in, and in which shapes it is handed over."""

import itertools
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

# Beyond these an estimator may refuse a number, since its square could overflow (float32 goes to
# 1e38) or vanish.
LARGE, SMALL = 1e8, 1e-50
# What rows, targets and weights may be, and how often.
BASES = {
    "normal": 0.2,
    "decaying": 0.15,
    "lowrank": 0.1,
    "integers": 0.12,
    "proportions": 0.12,
    "zeros": 0.13,
    "collinear": 0.1,
    "repeated": 0.06,
    "zero": 0.02,
}
TARGETS = {
    "linear": 0.3,
    "exact": 0.12,
    "noise": 0.15,
    "orthogonal": 0.12,
    "zero": 0.04,
    "constant": 0.05,
    "column": 0.04,
    "far": 0.08,
    "scaled": 0.06,
    "small": 0.04,
}
WEIGHTS = {
    "none": 0.42,
    "ones": 0.04,
    "uniform": 0.14,
    "counts": 0.05,
    "wide": 0.1,
    "light": 0.12,
    "zeros": 0.05,
    "scalar": 0.02,
    "tiny": 0.04,
    "huge": 0.02,
}
DTYPES = {
    "float64": 0.5,
    "float32": 0.25,
    "float16": 0.03,
    "int64": 0.07,
    "bool": 0.03,
    "mixed": 0.12,
}
LAYOUTS = ("c", "fortran", "strided", "reversed", "unaligned", "swapped", "read-only")
FORMS = ("csr", "csc", "coo", "explicit zeros", "duplicates", "unsorted", "long indices")


@dataclass
class Run:
    """Rows that come in one dtype, dense or sparse."""

    start: int
    stop: int
    dtype: str
    sparse: bool


@dataclass
class Table:
    """Rows, targets and weights.

    X and y are float64 with the values as they are given: those of a run of float32 are float32
    numbers. ``traits`` names what they are made of. A classifier is given ``labels`` in place of y.
    """

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None
    runs: list[Run]
    single: bool
    traits: list[str] = field(default_factory=list)
    labels: np.ndarray | None = None

    def __len__(self):
        return len(self.X)

    @property
    def tame(self):
        """Whether nothing in it is so large or small that it may be refused."""
        numbers = [self.X, self.y] + ([] if self.weights is None else [self.weights])
        largest = max(float(np.abs(one).max(initial=0.0)) for one in numbers)
        smallest = min(float(np.abs(one[one != 0]).min(initial=1.0)) for one in numbers)
        return largest < LARGE and smallest > SMALL

    def describe(self):
        forms = ", ".join(
            f"{run.stop - run.start} {'sparse ' * run.sparse}{run.dtype}" for run in self.runs
        )
        traits = "; ".join(self.traits)
        return f"X {self.X.shape} ({forms}), y {self.y.shape[1]} targets: {traits}"

    def rows(self, start, stop):
        """Return some rows as a table of their own."""
        runs = [
            Run(max(run.start, start) - start, min(run.stop, stop) - start, run.dtype, run.sparse)
            for run in self.runs
            if run.start < stop and run.stop > start
        ]
        return self._of(slice(start, stop), runs)

    def taken(self, order):
        """Return the rows of these numbers, all in one dtype."""
        return self._of(order, [Run(0, len(order), "float64", self.runs[0].sparse)])

    def shuffled(self, rng):
        """Return the same rows in another order, run by run."""
        parts = [run.start + rng.permutation(run.stop - run.start) for run in self.runs]
        return self._of(np.concatenate(parts), self.runs)

    def _of(self, which, runs):
        weights, labels = (
            None if values is None else values[which] for values in (self.weights, self.labels)
        )
        return Table(self.X[which], self.y[which], weights, runs, self.single, self.traits, labels)

    @property
    def answers(self):
        """What an estimator is given as y."""
        if self.labels is not None:
            return self.labels
        return self.y[:, 0] if self.single else self.y

    def cuts(self, rng, how=None):
        """Return the edges of batches: at least where runs end."""
        edges = {0, *(run.stop for run in self.runs)}
        kinds = ["whole", "some", "single rows", "halves"]
        how = how or rng.choice(kinds, p=[0.25, 0.5, 0.1, 0.15])
        if how == "some":
            edges |= set(rng.integers(0, len(self) + 1, rng.integers(1, 5)).tolist())
        elif how == "single rows":
            edges |= set(range(len(self) + 1))
        elif how == "halves":
            edges.add(len(self) // 2)
        return sorted(edges)

    def batches(self, rng, how=None, *, plain=False):
        """Return (X, y) or (X, y, weights) of our own, as an estimator takes them."""
        edges = self.cuts(rng, how)
        found = []
        for start, stop in itertools.pairwise(edges):
            run = next(one for one in self.runs if one.start <= start < one.stop)
            batch = [given(rng, self.X[start:stop], run, plain=plain)]
            others = [self.answers] if self.weights is None else [self.answers, self.weights]
            for values in others:
                part = values[start:stop].copy()
                if part.dtype.kind == "f" and not plain and rng.random() < 0.2:
                    part = shaped(rng, part)
                batch.append(part)
            if self.weights is not None and (part == part[0]).all() and rng.random() < 0.3:
                batch[-1] = float(part[0])
            found.append(tuple(batch))
        return found


def given(rng, X, run, *, plain=False):
    """Return rows in the dtype of their run and a layout drawn at random."""
    rows = X.astype(run.dtype)
    if run.sparse:
        return _sparse(rng, rows, "csr" if plain else str(rng.choice(FORMS)))
    return rows if plain else shaped(rng, rows)


def shaped(rng, values, layout=None):
    """Return the same numbers laid out in another way."""
    layout = layout or str(rng.choice(LAYOUTS))
    if layout == "fortran":
        return np.asfortranarray(values)
    if layout == "strided":
        wide = np.full((*values.shape[:-1], 2 * values.shape[-1] + 1), 7, values.dtype)
        wide[..., : 2 * values.shape[-1] : 2] = values
        return wide[..., : 2 * values.shape[-1] : 2]
    if layout == "reversed":
        return np.ascontiguousarray(values[::-1])[::-1]
    if layout == "unaligned":
        raw = np.zeros(values.nbytes + 1, np.uint8)
        moved = raw[1:].view(values.dtype).reshape(values.shape)
        moved[...] = values
        return moved
    if layout == "swapped":
        return values.astype(values.dtype.newbyteorder("S"))
    result = np.ascontiguousarray(values).copy()
    result.flags.writeable = layout != "read-only"
    return result


def _sparse(rng, rows, form):
    if form == "coo":
        return sparse.coo_array(rows)
    if form == "csc":
        return sparse.csc_array(rows)
    found = sparse.csr_array(rows)
    if form == "long indices":
        parts = found.data, found.indices.astype(np.int64), found.indptr.astype(np.int64)
        return sparse.csr_array(parts, shape=found.shape)
    if form == "csr" or not found.nnz:
        return found
    at = np.repeat(np.arange(rows.shape[0]), np.diff(found.indptr))
    data, columns = found.data, found.indices
    if form == "explicit zeros":
        empty = np.argwhere(rows == 0)[:4]
        data = np.concatenate([data, np.zeros(len(empty), data.dtype)])
        at, columns = np.concatenate([at, empty[:, 0]]), np.concatenate([columns, empty[:, 1]])
    halves = data / 2
    if form == "duplicates" and data.dtype.kind == "f" and (halves + halves == data).all():
        data = np.concatenate([halves, halves])
        at, columns = np.concatenate([at, at]), np.concatenate([columns, columns])
    # By hand: SciPy's constructor would sum duplicates and sort the columns.
    mixed = rng.permutation(len(data))
    order = mixed[np.argsort(at[mixed], kind="stable")]
    starts = np.concatenate([[0], np.cumsum(np.bincount(at, minlength=rows.shape[0]))])
    parts = data[order], columns[order].astype(np.int32), starts.astype(np.int32)
    return sparse.csr_array(parts, shape=rows.shape)


def draw_table(rng, n, d, *, block, n_targets=None, sparse_rows=None, gentle=False):
    """Draw rows, targets and weights.

    ``block`` is the length of a stream's blocks, so that something can happen at their edges.
    ``gentle`` keeps to numbers that are never refused.
    """
    traits = []
    X = _base(rng, n, d, traits)
    changes = CHANGES if gentle else CHANGES + EXTREMES
    count = rng.choice([0, 1, 2, 3], p=[0.25, 0.4, 0.25, 0.1])
    for change in rng.permutation(len(changes))[:count]:
        X = changes[change](rng, X, traits)
    runs = _runs(rng, n, traits, sparse_rows)
    X = _as_given(X, runs, traits)
    t = n_targets or int(rng.choice([1, 2, 3, 6], p=[0.65, 0.15, 0.15, 0.05]))
    single = t == 1 and rng.random() < 0.7
    y = _targets(rng, X, t, traits, gentle)
    weights = _weights(rng, n, block, traits, gentle)
    return Table(X, y, weights, runs, single, traits)


def _base(rng, n, d, traits):
    kind = drawn(rng, BASES)
    traits.append(kind)
    if kind == "zero":
        return np.zeros((n, d))
    if kind == "integers":
        return rng.integers(-3, 4, (n, d)).astype(float)
    if kind == "proportions":
        parts = rng.exponential(size=(n, d)) ** 2
        return parts / parts.sum(axis=1, keepdims=True)
    if kind == "repeated":
        return np.repeat(rng.standard_normal((1, d)), n, axis=0)
    if kind == "lowrank":
        return rng.standard_normal((n, 2)) @ rng.standard_normal((2, d))
    X = rng.standard_normal((n, d))
    if kind == "decaying":
        X *= np.exp(-np.arange(d) / rng.uniform(0.3, 3))
    elif kind == "zeros":
        X *= rng.random((n, d)) < 0.3
    elif kind == "collinear" and d > 1:
        gap = 10.0 ** rng.uniform(-14, -2)
        X[:, 1:] = X[:, :1] * rng.standard_normal(d - 1) + gap * X[:, 1:]
    return X


def drawn(rng, chances):
    """Draw a name by its chance."""
    return str(rng.choice(list(chances), p=list(chances.values())))


def _some(rng, d):
    """Choose some columns, at least one."""
    return rng.choice(d, rng.integers(1, d + 1), replace=False)


def _far_means(rng, X, traits):
    far = 10.0 ** rng.uniform(2, 12)
    traits.append(f"means {far:.1g} times the spread")
    X[:, _some(rng, X.shape[1])] += far * (np.abs(X).max() or 1.0) * rng.choice([-1, 1])
    return X


def _nearly_constant(rng, X, traits):
    columns, mean = _some(rng, X.shape[1]), 10.0 ** rng.uniform(-5, 5)
    by = rng.choice([0.0, 10.0 ** rng.uniform(-17, -9)])
    traits.append(f"columns that vary by {by:.1g} of their mean")
    X[:, columns] = mean * (1 + by * rng.standard_normal((len(X), len(columns))))
    return X


def _leaving(rng, X, traits):
    column, mean = rng.integers(X.shape[1]), 10.0 ** rng.uniform(-3, 3)
    by, last = 10.0 ** rng.uniform(-14, -8), int(rng.integers(1, 4))
    traits.append(f"a column constant but for {by:.1g} in the last {last} rows")
    X[:, column] = mean
    X[-last:, column] *= 1 + by
    return X


def _column_scales(rng, X, traits):
    reach = float(rng.choice([2, 6, 12]))
    traits.append(f"columns of 1e±{reach:g}")
    return X * 10.0 ** rng.uniform(-reach, reach, X.shape[1])


def _sentinel(rng, X, traits):
    row = rng.choice([0, len(X) - 1, rng.integers(len(X))])
    value = float(rng.choice([-999.25, 1e6, 1e9, -1e12]))
    traits.append(f"{value:g} in row {row}")
    X[row, _some(rng, X.shape[1])] = value
    return X


def _duplicates(rng, X, traits):
    if rng.random() < 0.5 and X.shape[1] > 1:
        traits.append("duplicate columns")
        X[:, -1] = X[:, 0]
    else:
        traits.append("duplicate rows")
        X[len(X) // 2 :] = X[: len(X) - len(X) // 2]
    return X


def _lines(rng, X, traits):
    kind = str(rng.choice(["zero rows", "rows that grow", "rows that fall"]))
    traits.append(kind)
    if kind == "zero rows":
        return X * (rng.random(len(X)) < 0.7)[:, None]
    order = np.argsort(np.abs(X).max(axis=1))
    return X[order if kind == "rows that grow" else order[::-1]]


def _scale(rng, X, traits):
    power = float(rng.choice([-170, -150, -110, -100, -60, -20, 8, 20, 60, 100, 110, 140, 170]))
    traits.append(f"times 1e{power:g}")
    return X * 10.0**power


def _subnormal(rng, X, traits):
    traits.append("subnormal entries")
    where = rng.random(X.shape) < 0.3
    return np.where(where, X * 1e-310, X)


# What may be done to rows; the last two leave the range in which nothing is refused.
CHANGES = (
    _far_means,
    _nearly_constant,
    _leaving,
    _column_scales,
    _sentinel,
    _duplicates,
    _lines,
)
EXTREMES = (_scale, _subnormal)


def _runs(rng, n, traits, sparse_rows):
    if sparse_rows is None:
        sparse_rows = rng.random() < 0.25
    kind = drawn(rng, DTYPES)
    if kind == "float16" and sparse_rows:
        kind = "float32"  # SciPy has no such sparse rows
    if kind != "mixed":
        return [Run(0, n, kind, sparse_rows)]
    edges = sorted({0, n, *rng.integers(0, n + 1, rng.integers(1, 4)).tolist()})
    first = rng.integers(2)
    traits.append("mixed dtypes")
    return [
        Run(
            start,
            stop,
            ("float32", "float64")[(i + first) % 2],
            sparse_rows if i == 0 or rng.random() < 0.8 else not sparse_rows,
        )
        for i, (start, stop) in enumerate(itertools.pairwise(edges))
    ]


def _as_given(X, runs, traits):
    """Round rows to what their dtype holds; a dtype that cannot hold them becomes float64."""
    X = np.array(X)
    for run in runs:
        part = X[run.start : run.stop]
        if run.dtype == "bool":
            part[...] = part > np.median(part)
            continue
        largest = np.abs(part).max(initial=0.0)
        if run.dtype == "int64":
            part[...] = np.round(part * (4.0 if largest < 100 else 1.0))
            if largest > 1e15:
                run.dtype = "float64"
        elif largest > {"float16": 6e4, "float32": 1e12}.get(run.dtype, np.inf):
            run.dtype = "float64"
        part[...] = part.astype(run.dtype)
    X += 0.0  # no negative zeros, which sparse rows cannot hold
    return X


def _targets(rng, X, t, traits, gentle):
    n, d = X.shape
    y = np.empty((n, t))
    size = np.abs(X).max(axis=0)
    units = X / np.where(size > 0, size, 1.0)
    for k in range(t):
        kind = drawn(rng, TARGETS)
        if gentle and kind in ("scaled", "small"):
            kind = "linear"
        linear = units @ rng.integers(-2, 3, d)
        value = linear
        if kind in ("linear", "far", "scaled", "small"):
            value = linear + 10.0 ** rng.uniform(-6, 1) * rng.standard_normal(n)
        if kind == "noise":
            value = rng.standard_normal(n)
        elif kind == "orthogonal":
            value = rng.standard_normal(n)
            value = value - units @ np.linalg.lstsq(units, value, rcond=None)[0]
        elif kind == "zero":
            value = np.zeros(n)
        elif kind == "constant":
            value = np.full(n, 10.0 ** rng.uniform(-3, 3))
        elif kind == "column":
            value = X[:, rng.integers(d)]
        elif kind == "far":
            value = value + 10.0 ** rng.uniform(2, 10)
        elif kind == "scaled":
            power = rng.choice([-170, -140, -100, -30, 30, 100, 110, 140])
            kind, value = f"scaled by 1e{power}", value * 10.0 ** float(power)
        elif kind == "small":
            power = rng.choice([-230, -250, -300, -310])
            kind, value = f"scaled by 1e{power}", value * 10.0 ** float(power)
        traits.append(f"y {kind}")
        y[:, k] = value
    return y + 0.0


def _weights(rng, n, block, traits, gentle):
    kind = drawn(rng, WEIGHTS)
    if gentle and kind in ("wide", "tiny", "huge"):
        kind = "uniform"
    if kind == "none":
        return None
    traits.append(f"weights {kind}")
    if kind == "ones":
        return np.ones(n)
    if kind == "counts":
        return rng.integers(1, 5, n).astype(float)
    if kind == "wide":
        return 10.0 ** rng.uniform(-30, 30, n)
    if kind == "scalar":
        return np.full(n, 10.0 ** rng.uniform(-5, 5))
    if kind == "tiny":
        return rng.uniform(0.5, 1, n) * 10.0 ** float(rng.choice([-318, -310, -200, -100]))
    if kind == "huge":
        return rng.uniform(0.5, 1, n) * 10.0 ** float(rng.choice([60, 100, 200]))
    weights = rng.uniform(0.1, 2, n)
    if kind == "light":
        weights[::block] = 10.0 ** rng.uniform(-30, -6)
    if kind == "zeros":
        weights[rng.random(n) < 0.4] = 0.0
        weights[rng.integers(n)] = 1.0
    return weights

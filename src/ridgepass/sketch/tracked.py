"""A slowly moving subspace whose image under AᵀA is followed exactly, block by block."""

import copy
import math
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy.linalg import block_diag

from ridgepass.blocks import Block
from ridgepass.kernels import (
    Float64,
    Rows,
    binary_scales,
    column_squares,
    is_sparse,
    mix_into,
    panels,
    product,
    stacked_gram,
    top_eigenpairs,
    unit_roundoff,
)
from ridgepass.probes import Probes
from ridgepass.sketch.base import LowRank, Sketch
from ridgepass.sketch.frequent_directions import IncrementalSVD
from ridgepass.sketch.tracked_covariance import (
    LEAST_FOLLOWED,
    Followed,
    MixedRows,
    TrackedCovariance,
    diagonal_share,
    dividing,
    orthonormal_mix,
    panel_width,
)
from ridgepass.sketch.turning import NewRows, Turn
from ridgepass.snapshot import Kept, array, entry, part, put_each, take, take_each
from ridgepass.threads import summed

# Rows of a block, at most, and as a multiple of the sketch size: thin products are slow. With very
# many columns a block must not outweigh the sketch by more than these bytes, less what 24 probes
# take for each column, with their images as they are kept and once more in a certificate.
MOST_ROWS = 768
MOST_SKETCHES = 8
BLOCK_BYTES, COLUMN_BYTES = 38_300_000, 24 * 20
# A sparse block costs a look at most columns of the images, however few entries it has: more rows
# where there are more columns, up to a limit.
SPARSE_ROWS, MOST_SPARSE_ROWS = 4096, 16384
COLUMNS_PER_ROW = 16
# Starting points move when the rows have grown by so much, and the basis turns when they have grown
# by the larger factor. Sparse rows cost little beside either.
MOVE_GROWTH, TURN_GROWTH = 1.1, 2.5
SPARSE_MOVE_GROWTH, SPARSE_TURN_GROWTH = 1.5, 2.7
# A block is new if it has so many times more outside the basis than the blocks before, as a share
# of its squares and a little more than that, or in squares that could be a direction of the basis;
# or so many times less inside.
# Above two: 2ℓ rows without structure leave half of what later ones will, and these are not new.
NEW_FACTOR = 2.2
NEW_SHARE = 0.02
EARLY, EARLY_FACTOR = 3, 1.1  # while a block has a third of the rows before
# Rows after those that made the basis leave less outside than some of these do outside others: 0.6
# to 0.83 times that where all are alike, and in sorted rows mostly more.
LIKE_THE_FIRST = 0.85
MOST_INSIDE = 0.5  # of a column that is new
LEAST_INSIDE = 1e-3  # a share inside that any block may bring up the running one to
# Squares outside others that are no direction of its own, of a row's; and rows that count as none.
LEAST_NEW, LEAST_SQUARE = 1e-6, 1e-200
ORTHOGONAL = 1e-10  # the cosine of rows that need not be made orthogonal
LEAST_LEFT = 1e-4  # a share of a column's squares; less of it outside Ω is mostly rounding
LEAST_LOSS = 1e-10  # a share of a column's squares that the start has lost, and not by rounding
FADING = 0.2  # weight of the latest block in that share
# The diagonal's share of the tail is one of these, and stays unless another fits better by far. The
# last is not one: a twentieth of the one number keeps small columns from blowing up where the
# diagonal falls short of E, and costs little where it does not.
LEVELS = 0.0, 0.5, 0.95
STAYS = 0.35
CHANGES = 0.5  # how likely a change is taken to be before the first row, over (number + 1)²
# Where there are more targets than half of the sketch, so many mixtures of them measure the tail.
N_MIXTURES = 8
COLLECT_EVERY = {"float32": 8, "float64": 256}  # blocks
SHARE_GROWTH, NEW_SHARE_GROWTH = 2.0, 1.5  # of rows until it is chosen again; after a new block
WIDER, WIDEST = 4, 4  # directions that a question looks at: so many times more, at most
LEAST_WIDENING = 1e-8  # squares of a new direction that a question looks at, of the largest
LEAST_MIXTURE = 64  # rows that stand for a new block, at least, or as many as in the basis
# If no probes are asked for, so many measure the diagonal's share.
LEAST_PROBES = 8
# Probes look at starting points when the rows have grown by so much since they did, and after a new
# block. If so many times T + γ is missing in their images, these get it.
CHECK_GROWTH = 1.3
MISSING, MOST_MISSING = 1.2, 2.0**100
ALIKE = 0.75  # the least cosine between what is missing and T + γ: else it is something else


def tracked_block(n_features: int, sketch_size: int, dtype: np.dtype[Any]) -> int:
    """Return how many dense rows make a block."""
    spare = BLOCK_BYTES - COLUMN_BYTES * n_features
    wide = spare // (n_features * dtype.itemsize) + sketch_size
    most = min(wide, max(MOST_ROWS, sketch_size), MOST_SKETCHES * sketch_size)
    return max(most, (sketch_size + 1) // 2)


def sparse_tracked_block(n_features: int, sketch_size: int) -> int:
    """Return how many sparse rows make a block."""
    wide = min(n_features // COLUMNS_PER_ROW, MOST_SPARSE_ROWS)
    return max(sketch_size, SPARSE_ROWS, wide)


def tracked_bytes(
    n_features: int, sketch_size: int, dtype: np.dtype[Any], n_targets: int, n_probes: int
) -> int:
    """Return the bytes that a `TrackedSubspace` holds at most."""
    n_starts = n_targets if 2 * n_targets <= sketch_size else min(N_MIXTURES, n_targets)
    n_more = n_starts + (n_probes or LEAST_PROBES)
    wide = (2 * (sketch_size + n_more) + n_targets) * dtype.itemsize + 8 * n_more + 8 * 3
    return n_features * wide + 8 * sketch_size**2


class TrackedSubspace(Sketch):
    """Follows H = K·T for T = [basis; starting points; probes], where K = AᵀA.

    A block X costs two products, Z = X·Tᵀ and H += Zᵀ·X, and nothing is ever shrunk. Now and then
    the basis turns to the leading directions of K̂, and its image with it as far as K̂ knows K; that
    is the only error. While all rows fit into ``sketch_size`` directions, K = BᵀB is kept as it is
    (``start``). See docs/tracked.md.

    Parameters
    ----------
    n_features, sketch_size, dtype, seed
        As in `Sketch`.
    n_targets : int
        One starting point for each if they are at most half of ``sketch_size``, and otherwise for
        a few mixtures of them.
    alpha : float, optional
        Where the starting points are kept; None for the mean eigenvalue of K.
    is_sparse : bool
        Whether rows will be sparse: arrays then lie by columns, as these meet them.
    probes : Probes, optional
        What measures residuals; they are followed with the rest.

    Attributes
    ----------
    share : float
        How much of the tail is E's diagonal. The answer depends on the probes by this choice, by
        what `_missing` finds with them, and by nothing else.
    surprise : float
        −log of the probability that the choices so far had before the first row: each is to keep
        the share, or to find nothing missing in the images of starting points, but with probability
        0.5/(k + 1)², k being its number. Whatever probes are to
        prove with doubt β holds for the answer of every sequence of choices with β times its
        probability, and so for the one that was made.
    """

    KEEPS: ClassVar[tuple[str, ...]] = (
        "n_rows",
        "n_recent",
        "diagonal",
        "points",
        "images",
        "further",
        "middle",
    )
    KEEPS_FOLLOWING: ClassVar[tuple[str, ...]] = (
        "share",
        "surprise",
        "n_choices",
        "outside_shares",
        "outside",
        "due_move",
        "due_turn",
        "due_share",
        "due_check",
    )
    needs_targets: ClassVar[bool] = True
    threads_itself: ClassVar[bool] = True

    def __init__(
        self,
        n_features: int,
        sketch_size: int,
        dtype: np.dtype[Any],
        seed: int = 0,
        *,
        n_targets: int = 1,
        alpha: float | None = None,
        is_sparse: bool = False,
        probes: Probes | None = None,
    ) -> None:
        super().__init__(n_features, sketch_size, np.dtype(dtype), seed)
        self.alpha = alpha
        self.n_targets = n_targets
        self.n_starts, self._mixing = n_targets, None
        if 2 * n_targets > sketch_size:
            rng = np.random.Generator(np.random.Philox(n_targets))
            self.n_starts = min(N_MIXTURES, n_targets)
            self._mixing = rng.choice([-1.0, 1.0], (n_targets, self.n_starts))
        self.block_rows = tracked_block(n_features, sketch_size, self.dtype)
        self.sparse_block_rows = sparse_tracked_block(n_features, sketch_size)
        self._order: Literal["C", "F"] = "F" if is_sparse else "C"
        self._move_growth = SPARSE_MOVE_GROWTH if is_sparse else MOVE_GROWTH
        self._turn_growth = SPARSE_TURN_GROWTH if is_sparse else TURN_GROWTH
        self.certifies = probes is not None
        if probes is None:
            probes = Probes.draw(LEAST_PROBES, n_features, self.dtype, seed)
        self.n_probes, self.probe_seed = len(probes.points), probes.seed
        n_more = self.n_starts + self.n_probes
        # NumPy and the system set memory aside when it is written to: not before it is needed.
        self.points: Rows = np.zeros((sketch_size + n_more, n_features), self.dtype, self._order)
        # Images of all points, and of dense rows the latest block's Aᵀb: one product adds to all of
        # them. Those of points that stay where they are go on to float64 now and then, to
        # ``further``.
        shape = sketch_size + n_more + (0 if is_sparse else n_targets), n_features
        self.images: Rows = np.zeros(shape, self.dtype, self._order)
        self.further: Float64 = np.zeros((n_more, n_features), np.float64, self._order)
        self.n_recent = 0  # blocks since then
        self.points[self._probes] = probes.points
        self.stretch: Float64 = np.ones(n_features)
        self.diagonal: Float64 = np.zeros(n_features)
        self.n_rows = 0
        self.start: IncrementalSVD | None = IncrementalSVD(n_features, sketch_size, self.dtype)
        self.start.rows = self.images[:sketch_size]  # no memory of its own
        self.middle: Float64 = np.zeros((sketch_size, sketch_size))
        # The tail as of the last turn: how much of it is diagonal, and which share each column has.
        self.share = self.surprise = 0.0
        self.n_choices = 0
        self.outside_shares: Float64 = np.zeros(0)
        self.outside = 0.0
        self.due_move = self.due_turn = self.due_share = self.due_check = 0
        self.n_moves = self.n_turns = 0

    @property
    def cross_unit(self) -> float:
        """What Aᵀb is off by, relative to ‖A‖_F·‖b‖.

        Targets are rounded, and sums over the rows of a block taken to be random walks.
        """
        if self.start is not None:
            return 0.0
        longest = max(self.block_rows, self.sparse_block_rows if self._order == "F" else 0) + 1
        return (4 * math.sqrt(longest) + 2) * unit_roundoff(self.dtype)

    @property
    def _start_rows(self) -> int:
        """Rows to take in together while all may still fit: more make a better first basis."""
        return max(self.sketch_size, MOST_ROWS)

    @property
    def centres(self) -> bool:
        """Whether it takes dense blocks whose mean is still in the rows."""
        return self.start is None

    @property
    def basis(self) -> Rows:
        """Ω, with orthonormal rows."""
        return self.points[: self.sketch_size]

    @property
    def image(self) -> Rows:
        """Y = ΩK."""
        return self.images[: self.sketch_size]

    @property
    def _followed(self) -> slice:
        """Starting points and probes."""
        return slice(self.sketch_size, len(self.points))

    def _further(self, which: slice = slice(None), columns: slice = slice(None)) -> Float64:
        """Return the images of starting points and probes, or of some of them."""
        latest = self.images[self._followed]
        found: Float64 = self.further[which, columns] + latest[which, columns]
        return found

    def _collect(self) -> None:
        """Add what the latest blocks have brought to the sums in float64."""
        self.further += self.images[self._followed]
        self.images[self._followed] = 0.0
        self.n_recent = 0

    @property
    def _starts(self) -> slice:
        return slice(self.sketch_size, self.sketch_size + self.n_starts)

    @property
    def _probes(self) -> slice:
        return slice(self._starts.stop, self._starts.stop + self.n_probes)

    @property
    def has_probes(self) -> bool:
        """Whether residuals can be measured: probes were asked for, and no merger dropped them."""
        return self.certifies and self.n_probes > 0

    @property
    def probes(self) -> Probes | None:
        """Φ and KΦ, the former a view; None without."""
        return self._own_probes() if self.has_probes else None

    def _own_probes(self) -> Probes:
        # By rows, whatever the order of the arrays: products must not depend on it.
        points = np.ascontiguousarray(self.points[self._probes])
        images = np.ascontiguousarray(self._further(slice(self.n_starts, None)))
        return Probes(points, images, self.stretch, self.probe_seed, self.surprise)

    def _drop_probes(self) -> None:
        """Go on without; what they have told of the tail stays."""
        kept = np.delete(np.arange(len(self.images)), np.arange(len(self.images))[self._probes])
        self.images = np.array(self.images[kept], order=self._order)
        self.points = np.array(self.points[: self._starts.stop], order=self._order)
        self.further = np.array(self.further[: self.n_starts], order=self._order)
        self.stretch, self.n_probes = np.ones(0), 0

    @property
    def mass(self) -> float:
        """‖A‖_F² of all blocks."""
        return float(self.diagonal.sum())

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays kept."""
        own = (self.points, self.further, self.images, self.middle, self.diagonal)
        more = (self.stretch, self.outside_shares)
        start = 0 if self.start is None else self.start.squares.nbytes  # its rows are images
        return start + sum(part.nbytes for part in (*own, *more))

    def absorb(self, block: Block) -> Float64:
        """Take in one block; return its Aᵀb."""
        self._share_rows()
        if self.start is None:
            return self._take(block)
        cross = np.zeros((self.n_features, block.targets.shape[1]))
        rest: Block | None = block
        while rest is not None and self.start is not None:
            first, rest = rest.parted(self._start_rows)
            cross += self._begin(self.start, first)
        if self.start is None:
            self._postpone_turn(0 if rest is None else rest.n_rows)
            self.due_share = max(self.due_share, self.due_turn)
        if rest is not None:
            cross += self._take(rest, is_rest=True)
        return cross

    def _share_rows(self) -> None:
        """Let the rows of the start lie among the images, which a copy has parted."""
        if self.start is not None and not np.may_share_memory(self.start.rows, self.images):
            self.images[: self.sketch_size] = self.start.rows
            self.start.rows = self.images[: self.sketch_size]

    def settle(self, cross: Float64) -> None:
        """Turn the basis and move the starting points if it is time; ``cross`` is Aᵀb so far."""
        if self.start is not None:
            return
        if self.n_rows >= self.due_turn:
            self._turn()
        elif self.n_rows >= self.due_share:
            self._learn_share_again()
        if self.n_rows >= self.due_move:
            self._move(cross)

    def covariance(
        self, block: Block, columns: Float64 | None = None
    ) -> LowRank | TrackedCovariance:
        """Return K̂ as if ``block`` were the last, leaving the sketch as it is."""
        if self.start is not None:
            return self._start_covariance(self.start, block, columns)
        found = self.known(block)
        return found if columns is None else found.rescaled(columns, self.diagonal)

    def known(
        self,
        block: Block | None = None,
        *,
        rough: bool = False,
    ) -> TrackedCovariance:
        """Return K̂ of all blocks, and of rows that wait if there are any.

        Where these are new, their leading directions are beside those of the basis.

        ``rough`` is good enough to move by: in the own dtype, with the tail as of the last turn.
        """
        size, stop = self.sketch_size, self._starts.stop
        middle, further = self.middle, self._further(slice(self.n_starts))
        diagonal = self.diagonal
        basis, image = MixedRows((self.basis,), rough=rough), MixedRows((self.image,), rough=rough)
        if block is not None and len(block):
            products, squares = self._products(block, slice(stop)), block.column_squares()
            inside = products[:, :size].astype(np.float64)
            inner, mass = inside.T @ inside, float(squares.sum())
            outside = _outside(inner, mass)
            if self._leaves_more(outside, mass, len(block), EARLY_FACTOR) or self._has_new_columns(
                squares, len(block)
            ):
                basis, image, middle = self._widened(block, inside, mass)
            else:
                mix = np.hstack([np.eye(size), block.unfold(inside.T)])
                image = MixedRows((self.image, *block.parts), mix)
                middle = middle + inner
            further = np.array(further, order=self._order)
            block.add_images(further, products[:, size:])
            diagonal = diagonal + squares
        largest = float(np.diagonal(middle).max())
        unit = float(binary_scales(np.full((1, 1), largest))[0])
        rank = self.n_rows + (0 if block is None else len(block))
        return TrackedCovariance(
            Followed(
                basis=basis,
                image=image.divided(unit),
                middle=middle / unit,
                starts=self.points[self._starts].astype(np.float64).T,
                start_images=further.T / unit,
                diagonal=diagonal / unit,
                rank=min(rank, self.n_features),
                mixed=self._mixing is not None,
                n_followed=size,
                unit=unit,
                share=self.share,
                outside=self.outside_shares if rough and self.share > 0 else None,
                rounding=unit_roundoff(self.dtype),
                n_sums=2 * rank + self.n_features,
            )
        )

    def _widened(
        self, block: Block, inside: Float64, mass: float
    ) -> tuple[MixedRows, MixedRows, Float64]:
        """Return Ω, Y and M with leading directions N of a new block's rows X beside the basis.

        The image of N is that of K̂ so far, as in a turn, and of X. All are mixtures of Ω, Y and X,
        which are not written out: a question takes no memory that training does not. There are as
        many of N as what is left of X takes to be new no longer, up to a limit.

        Parameters
        ----------
        block, inside, mass : Block, ndarray, float
            X, XΩᵀ and ‖X‖²_F.
        """
        known, size, parts = self.known(), self.sketch_size, (self.basis, *block.parts)
        factor, n_sums = _near_inverse_root(known.followed.unit), self._n_sums
        while True:
            sums = factor * self._leading_sums(block, factor, n_sums)
            stacked = np.hstack(
                [
                    np.vstack([np.eye(size), -sums @ inside]),
                    np.pad(block.unfold(sums), ((size, 0), (0, 0))),
                ]
            )
            gram = MixedRows(parts, stacked).gram()
            squares, vectors = top_eigenpairs(gram[size:, size:], len(sums))
            there = squares > LEAST_WIDENING * squares[0]
            chosen = block_diag(np.eye(size), (vectors[:, there] / np.sqrt(squares[there])).T)
            added = chosen[size:] @ stacked
            new = MixedRows(parts, added)
            # X[Ω; N]ᵀ
            taken = np.hstack([inside, block.fold(new.walk().multiply(block.parts))])
            outside = 1.0 - float(np.square(taken).sum()) / mass
            n_sums *= WIDER
            if n_sums > WIDEST * self._n_sums or not self._leaves_more(
                outside, mass, len(block), EARLY_FACTOR
            ):
                break
        # N and Ω are nearly orthonormal: but for the rounding of Ω and of products with it.
        by = orthonormal_mix(chosen @ gram @ chosen.T)
        crossed = new.walk().multiply((self.image,)).T  # NYᵀ
        low = crossed @ known.root().T @ known.root()
        inner, tilt, caps = self._tail_along(new, known)
        square = low @ crossed.T + caps[:, None] * inner * caps
        middle = np.block([[self.middle, crossed.T], [crossed, square]]) + taken.T @ taken
        # N·C·T·C(I − P), where C has the caps along N and is one elsewhere.
        mixed = caps[:, None] * inner * (caps - 1) @ added
        mixed[:, :size] -= caps[:, None] * tilt
        mixed = np.vstack([np.zeros_like(stacked[:size]), mixed])
        mixed[:, size:] += block.unfold(taken.T)
        image = np.hstack([np.vstack([np.eye(size), low]), mixed])
        tailed = np.pad(caps[:, None] * added, ((size, 0), (0, 0)))
        unit = known.followed.unit  # so that products with rows are in range
        tails = np.broadcast_to(known.tails / unit, self.n_features)
        plus = MixedRows(parts, tailed, tails, 1 / unit)
        return (
            MixedRows(parts, by @ chosen @ stacked),
            MixedRows((self.image, *parts), image, plus=plus).mixed(by),
            by @ middle @ by.T,
        )

    def _tail_along(
        self, new: MixedRows, known: TrackedCovariance
    ) -> tuple[Float64, Float64, Float64]:
        """Return N·T·Nᵀ and N·T·Ωᵀ for some directions N, and what to multiply each of them by.

        E is taken to be what the tail is, but to have no more than it can have, as it is positive:
        n·En is at most (Σ|nᵢ|√Eᵢᵢ)². So columns that had nothing before new rows are known to have
        had nothing.
        """
        tails, roots = np.broadcast_to(known.tails, self.n_features), np.sqrt(known.left_out)
        n_new = 0 if new.mix is None else len(new.mix)
        inner, tilt = np.zeros((n_new, n_new)), np.zeros((n_new, self.sketch_size))
        most = np.zeros(n_new)
        for span, rows in new.walk():
            weighted = rows * tails[span]
            inner += weighted @ rows.T
            tilt += weighted @ self.basis[:, span].T
            most += np.abs(rows) @ roots[span]
        found = np.sqrt(np.diagonal(inner))
        caps = np.divide(most, found, out=np.ones(n_new), where=found > most)
        return inner, tilt, caps

    def _start_covariance(
        self, start: IncrementalSVD, block: Block, columns: Float64 | None
    ) -> LowRank | TrackedCovariance:
        """Return K itself, for rows that are few or have few directions."""
        if not len(block):
            return start.covariance(block, columns)
        if len(block) > self._start_rows + 1:  # more take too long
            twin = copy.deepcopy(self)
            twin.absorb(block)
            found = twin.covariance(Block.of(start.rows[:0]))
            if columns is not None:
                found = found.rescaled(columns, twin.diagonal)
            if isinstance(found, TrackedCovariance):
                found.surprise = twin.surprise - self.surprise
            return found
        # All of the waiting rows, so that nothing is lost.
        gram, cancelled = start.gram(block, exact=True, columns=columns)
        n_zeros = 0 if start.updates else self.sketch_size
        values, vectors = top_eigenpairs(gram[n_zeros:, n_zeros:], len(gram) - n_zeros)
        vectors = np.pad(vectors, ((n_zeros, 0), (0, 0)))
        return start.covariance_of(values, vectors, cancelled, block, columns)

    def merge(self, other: Self) -> None:
        """Take in another, of any size, which stays as it is.

        Both hand over their K̂; the basis becomes its leading directions.
        """
        self._share_rows()
        if not self.n_rows and self._same_shape(other):
            self._become(other)
            return
        self._merge_probes(other)
        if other.start is not None:
            self._merge_start(other.start, other.diagonal)
        elif self.start is not None:
            self._join_from_start(self.start, other)
        else:
            self._join(other)
        self.n_rows += other.n_rows
        if self.start is None:
            self.due_turn = min(self.due_turn, self.n_rows)

    def _same_shape(self, other: Self) -> bool:
        """Whether the other's arrays could be this one's."""
        shapes = [
            (one.points.shape, one.points.dtype, one._order, one.n_starts, one._probe_key())
            for one in (self, other)
        ]
        return shapes[0] == shapes[1]

    def _probe_key(self) -> tuple[int, int, bool]:
        return self.n_probes, self.probe_seed, self.certifies

    def _become(self, other: Self) -> None:
        """Take over all that another has."""
        alpha = self.alpha
        vars(self).update(copy.deepcopy(vars(other)))
        self.alpha = alpha

    def _merge_probes(self, other: Self) -> None:
        """Add the images of probes that both have; what each has chosen by them adds too."""
        self._collect()
        joined = self._own_probes().merged(other._own_probes(), alone=not self.n_rows)
        if joined is None:
            self._drop_probes()
        else:
            self.points[self._probes] = joined.points
            self.further[self.n_starts :] = joined.images
            self.stretch = joined.stretch
        if not self.n_rows:
            self.share = other.share
        self.surprise += other.surprise
        self.n_choices += other.n_choices

    def rescale(self, ratio: Float64, column_mass: Float64) -> None:
        """Multiply the columns of all rows so far; zero leaves a column out."""
        there = ratio > 0
        inverse = np.divide(1.0, ratio, out=np.ones_like(ratio), where=there)
        self.points *= inverse.astype(self.dtype)
        self.further *= ratio
        first = 0 if self.start is None else self.sketch_size  # the start sees to its own rows
        self.images[first:] *= ratio.astype(self.dtype)
        self.diagonal = self.diagonal * np.square(ratio)
        if self.n_probes:
            self.stretch = self.stretch * np.where(there, ratio, 1.0)
        if self.start is not None:
            self.start.rescale(ratio, column_mass)
            return
        self.points[: self._starts.stop] *= there
        mix = orthonormal_mix(stacked_gram((self.basis,), exact=True))
        mix_into(self.basis, mix, self.basis)
        mix_into(self.image, mix, self.image)
        middle = mix @ self.middle @ mix.T
        self.middle = (middle + middle.T) / 2

    def snapshot(self) -> Kept:
        """Return what the sketch holds as plain data, valid until it changes."""
        self._share_rows()
        kept = take_each(self, self.KEEPS)
        if self.start is None:
            kept |= {"start": None} | take_each(self, self.KEEPS_FOLLOWING)
        else:  # its rows are among the images
            start = take(self.start)
            kept["start"] = {name: value for name, value in start.items() if name != "rows"}
        if (self.stretch != 1.0).any():
            kept["stretch"] = take(self.stretch)
        return kept

    def restore(self, kept: Kept, n_targets: int = 0) -> None:
        """Take up a snapshot in a fresh sketch of the same options, or raise ValueError."""
        if len(self._lying(kept, "points")) == self._starts.stop:
            self._drop_probes()  # a merger has
        put_each(self, self.KEEPS, kept)
        if "stretch" in kept:
            put_each(self, ("stretch",), kept)
        start = entry(kept, "start")
        if start is not None and self.start is not None:
            rows = self.images[: self.sketch_size]
            self.start.restore(part(start, "start") | {"rows": rows})
            self.start.rows = rows
            return
        if entry(kept, "share") != 0.0:
            self.outside_shares = np.zeros(self.n_features)
        put_each(self, self.KEEPS_FOLLOWING, kept)
        self.start = None

    def _lying(self, kept: Kept, name: str) -> Any:
        """Return an array of a snapshot with its axes as they are here."""
        found = array(entry(kept, name), name, self.dtype, (None, None))
        return found.T if self._order == "F" else found

    @classmethod
    def shapes(cls, n_features: int, sketch_size: int) -> Kept:
        """Return the shapes of the arrays in a snapshot; others grow with targets and probes."""
        return {"middle": (sketch_size, sketch_size), "diagonal": (n_features,)}

    def _take(self, block: Block, *, is_rest: bool = False) -> Float64:
        """Add a block to all images, and turn to it first if it is new; return its Aᵀb.

        ``is_rest`` tells that it is what is left of a block whose first rows made the basis.
        """
        squares = block.column_squares()
        mass = float(squares.sum())
        products = block.products(self.points)
        inner = self._inner(products)
        outside = _outside(inner, mass)
        is_new = self._is_new(outside, squares, len(block))
        is_new |= is_rest and outside > LIKE_THE_FIRST * self.outside
        if is_new:
            self._turn(block, products[:, : self.sketch_size])
            products = block.products(self.points)
            inner = self._inner(products)
            outside = _outside(inner, mass)
        # Rows that come again have far more inside than others: they do not make all others new.
        most = max(NEW_FACTOR * (1 - self.outside), LEAST_INSIDE)
        self.outside = (1 - FADING) * self.outside + FADING * max(outside, 1 - most)
        self.diagonal += squares
        self.middle += inner
        cross = self._add(block, products, self.images)
        if is_new:
            self._learn_share_again(len(block))
            self.due_check = self.due_move = 0
        self.n_rows += block.n_rows
        return cross

    def _is_new(self, outside: float, squares: Float64, n_rows: int) -> bool:
        """Whether so many rows have far more outside the basis than those before.

        ``squares`` are those of their columns, and ``outside`` is the share of these outside.
        """
        mass = float(squares.sum())
        factor = EARLY_FACTOR if EARLY * n_rows >= self.n_rows else NEW_FACTOR
        return self._leaves_more(outside, mass, n_rows, factor) or self._has_new_columns(
            squares, n_rows
        )

    def _leaves_more(self, outside: float, mass: float, n_rows: int, factor: float) -> bool:
        """Whether such a share of squares outside is far more than those before have left there.

        Where most lies outside anyway, that share cannot double: but what lies inside can fall to
        half. And a few giant rows of heavy-tailed data change a large share only a little.
        """
        if outside > factor * self.outside + NEW_SHARE:
            return True
        if NEW_FACTOR * (1 - outside) < 1 - self.outside:
            return True
        left = max(self.mass - float(np.trace(self.middle)), 0.0)
        usual = left * n_rows / max(self.n_rows, 1)
        return outside * mass > max(NEW_FACTOR * usual, self._least)

    def _has_new_columns(self, squares: Float64, n_rows: int) -> bool:
        """Whether a column has become a direction that the basis should have, and has not.

        So do the categories of rows that are sorted by them: a small share of all squares.
        """
        usual = self.diagonal * (n_rows / max(self.n_rows, 1))
        (more,) = np.nonzero(squares - NEW_FACTOR * usual > NEW_FACTOR * self._least)
        inside = np.square(self.basis[:, more], dtype=np.float64).sum(axis=0)
        return bool((inside < MOST_INSIDE).any())

    @property
    def _least(self) -> float:
        """The squares in the direction of the basis that has least."""
        return float(np.diagonal(self.middle).min())

    def _products(self, block: Block, which: slice) -> Rows:
        """Return a block's products with some of the points."""
        if is_sparse(block.rows):  # SciPy would copy these points first
            return block.products(self.points)[:, which]
        return block.products(self.points[which])

    def _inner(self, products: Rows) -> Rows:
        """Return what a block adds to M, given its products with the points."""
        inside = products[:, : self.sketch_size]
        inner: Rows = inside.T @ inside
        return inner

    def _add(self, block: Block, products: Rows, images: Rows) -> Float64:
        """Add a block to images, of points that it has been multiplied by; return its Aᵀb."""
        if self._order == "F":  # a row of its own would be a look at every column
            block.add_images(images, products)
            cross = block.cross()
        else:
            n_targets = block.targets.shape[1]
            units = binary_scales(block.targets)  # so that none overflows
            targets = (block.targets / units).astype(self.dtype)
            images[len(images) - n_targets :] = 0.0
            block.add_images(images, np.hstack([products, targets]))
            cross = images[len(images) - n_targets :].T * units
        self.n_recent += 1
        if self.n_recent == COLLECT_EVERY[self.dtype.name]:
            self._collect()
        return cross

    def _begin(self, start: IncrementalSVD, block: Block) -> Float64:
        """Take in a block while all rows may fit; follow as soon as they no longer do."""
        size = self.sketch_size
        products = self._products(block, self._followed)
        cross = self._add(block, products, self.images[size:])
        self.diagonal += block.column_squares()
        self._stack(start, block)
        self.n_rows += block.n_rows
        # In float64, as all rows may fit in the end and the answer is exact then.
        return block.cross() if self.start is not None and self._order == "C" else cross

    def _stack(self, start: IncrementalSVD, block: Block) -> None:
        """Add rows to the start; if they no longer fit, its leading directions are the basis."""
        size = self.sketch_size
        gram, cancelled = start.gram(block)
        step = start.shrink(gram, n_zeros=0 if start.updates else size)
        unit = unit_roundoff(self.dtype)
        full = step.values[size] > 64 * unit * step.values[0]
        start.carry_out(start.plan_of(step, cancelled), block)
        # Columns that are small beside others lose what is next to nothing beside all squares.
        kept = column_squares(start.rows, np.ones(size))
        if full or (self.diagonal - kept > max(64 * unit, LEAST_LOSS) * self.diagonal).any():
            self._begin_to_follow(start)
            # What later rows leave outside, not these, which have made the basis.
            of_these = 1.0 - float(start.squares.sum()) / self.mass
            self.outside = max(_outside_others(gram, size), of_these)
            self.start = None
            self._learn_share(start.squares, kept)

    def _begin_to_follow(self, start: IncrementalSVD) -> None:
        """Make the directions of some rows B the basis, and their image that of BᵀB."""
        size, unit = self.sketch_size, unit_roundoff(self.dtype)
        if 0 < unit * start.squares[0] <= ORTHOGONAL * start.squares[-1]:
            roots = np.sqrt(start.squares).astype(self.dtype)[:, None]
            np.divide(start.rows, roots, out=self.points[:size])
            np.multiply(start.rows, roots, out=self.images[:size])
            self.middle = np.diag(start.squares)
            return
        # Beside one that is far larger, rows are orthogonal to each other but for its rounding.
        inner = stacked_gram((start.rows,), exact=True)
        factor = _near_inverse_root(float(np.diagonal(inner).max()))
        inner = factor * inner * factor
        squares, mix = np.diagonal(inner), orthonormal_mix(inner)
        mix[squares <= LEAST_FOLLOWED * unit * squares.max()] = 0.0
        mix_into(self.basis, factor * mix, start.rows)
        mix_into(self.image, mix @ inner / factor, start.rows)
        self.middle = mix @ inner @ inner @ mix.T / factor / factor

    def _alpha(self) -> float:
        return self.alpha or self.mass / self.n_features

    def _move(self, cross: Float64) -> None:
        """Take the starting points to the solution so far."""
        self.due_move = int(self._move_growth * self.n_rows) + 1
        self.n_moves += 1
        cross = cross if self._mixing is None else cross @ self._mixing
        alpha, known = self._alpha(), self.known(rough=True)
        point, image = known.moved(alpha, cross)
        if self.n_probes and self.n_rows >= self.due_check:
            self.due_check = int(CHECK_GROWTH * self.n_rows) + 1
            held = known.held_outside(alpha, point)
            factor = self._missing(point, image, held)
            if factor > 1:
                again = known.starting_from(point, image + (factor - 1) * held, factor)
                point, image = again.moved(alpha, cross)
        # Where alpha is so small that a solution overflows, the old place is as good.
        if np.isfinite(point).all() and np.isfinite(image).all():
            self._place(point, image)

    def _missing(self, point: Float64, image: Float64, held: Float64) -> float:
        """Return what T + γ must be multiplied by, as probes see the images of starting points.

        ``held`` is (T + γ)u for what they have outside the basis, u. Where T is too small, starting
        points go too far there, and their images hold too little of K: the tail measured by them
        confirms itself. But Φ(h − Kw) is known, and its regression on Φ(T + γ)u is what is missing.
        """
        unit, n_targets = float(binary_scales(image).max()), image.shape[1]

        # As `Probes.residuals`, panel by panel: copies of all probes took 12 % of sparse training.
        def look(span: slice) -> Float64:
            points = self.points[self._probes, span].astype(np.float64, copy=False)
            images = self._further(slice(self.n_starts, None), span)
            found = points @ (np.hstack([image[span], held[span]]) / unit)
            found[:, :n_targets] -= images @ (point[span] / unit)
            return found

        spans = panels(self.n_features, panel_width(4 * self.n_probes))
        lost, seen = np.hsplit(summed(look, spans, 2 * self.n_probes * n_targets), 2)
        along, squares = -float((lost * seen).sum()), float(np.square(seen).sum())
        alike = along > ALIKE * math.sqrt(squares * float(np.square(lost).sum()))
        missing = along / squares if alike else 0.0
        level = round(math.log2(1 + missing)) if MISSING <= missing < MOST_MISSING else 0
        self.n_choices += 1
        changes = CHANGES / (self.n_choices + 1) ** 2
        self.surprise -= math.log(changes / 2**level) if level else math.log1p(-changes)
        return 2.0**level

    def _place(self, point: Float64, image: Float64) -> None:
        """Let starting points be there."""
        self.points[self._starts], self.images[self._starts] = point.T, 0.0
        self.further[: self.n_starts] = image.T

    def _turn(self, block: Block | None = None, products: Rows | None = None) -> None:
        """Make the leading directions V of K̂, and of a new block if there is one, the basis.

        Without a block they are the eigenvectors of YᵀM⁻¹Y. Their image is what K̂ makes of them.
        ``products`` are those of the block with the basis before.
        """
        if self._is_out_of_range:
            return self._postpone_turn(0 if block is None else block.n_rows)
        known = self.known(rough=True)
        if block is None or products is None:
            values, by = known.eigenpairs
            turn = Turn(values, by, by @ self.middle)
        else:
            turn = self._turn_to(block, products, known)
        learns = block is None and self.n_rows >= self.due_share
        renews = block is None and self.share > 0
        kept = np.empty(self.n_features) if learns or renews else None
        self.middle = turn.carry_out(self.basis, self.image, known.tails, kept)
        self._postpone_turn(0 if block is None else block.n_rows)
        if kept is not None and learns:
            self._learn_share(turn.values, kept)
        elif kept is not None:
            self._set_outside_shares(kept)
        if block is None:
            self.due_share = max(self.due_share, self.due_turn)  # learning is cheap in a turn

    def _turn_to(self, block: Block, products: Rows, known: TrackedCovariance) -> Turn:
        """Return the turn to the leading directions of K̂ and of some rows X of a block."""
        factor = _near_inverse_root(known.followed.unit)
        sums = factor * self._leading_sums(block, factor, self._n_sums)
        rows = self._sums(block, sums)
        inside = sums @ products.astype(np.float64)
        gram, crossed = np.hsplit(rows.gram(self.image), [len(sums)])
        by, new_by, values = known.leading(crossed, gram, factor)
        along, taken = by @ self.middle + new_by @ inside, by @ crossed.T + new_by @ gram
        return Turn(values, by, along, NewRows(rows, factor, new_by, taken / factor))

    @property
    def _n_sums(self) -> int:
        """Rows that stand for a new block."""
        return max(self.sketch_size, LEAST_MIXTURE)

    def _leading_sums(self, block: Block, factor: float, most: int) -> Float64:
        """Return what makes a few rows with a block's leading directions of its rows X.

        All of them are kept if they are few. Else these are orthonormal sums Q, whose span is that
        of X(SX)ᵀ for random sums SX: with one step of power iteration QᵀX has nearly all that as
        many rows can have (Halko, Martinsson & Tropp 2011). ``factor`` keeps products in range.
        """
        n_rows = len(block)
        if n_rows <= most:
            return np.eye(n_rows)
        rng = np.random.Generator(np.random.Philox(self.n_rows))
        signs = rng.choice([-1.0, 1.0], (most, n_rows)) / math.sqrt(most)
        seen = block.fold(self._sums(block, factor * signs).walk().multiply(block.parts))
        sums: Float64 = np.linalg.qr(seen)[0].T
        return sums

    def _sums(self, block: Block, sums: Float64) -> MixedRows:
        """Return sums·rows of a block, left implicit: a block is as large as the sketch."""
        return MixedRows(block.parts, block.unfold(sums), rough=not is_sparse(block.rows))

    @property
    def _is_out_of_range(self) -> bool:
        """Whether K is too small for the own dtype: Y is of no use then."""
        return float(self.diagonal.max()) <= float(np.finfo(self.dtype).tiny)

    def _learn_share(self, values: Float64, kept: Float64) -> None:
        """Choose how much of the tail is diagonal, given eigenvalues of the basis' K̂.

        ``kept`` is its diagonal.
        """
        self.due_share = int(SHARE_GROWTH * self.n_rows) + 1
        if self.n_probes and not self._is_out_of_range:
            weights = values.astype(self.dtype) * product(self.points[self._probes], self.basis)
            self._choose_by(weights, self.basis, kept)
        self._set_outside_shares(kept)

    def _learn_share_again(self, n_more: int = 0) -> None:
        """Choose the same after a new block, or when many rows have come since: K has changed."""
        self.due_share = int(NEW_SHARE_GROWTH * (self.n_rows + n_more)) + 1
        known = self.known()
        kept = self.diagonal - known.left_out
        if self.n_probes and not self._is_out_of_range:
            root = known.root()
            seen = product(self.points[self._probes], self.image).astype(np.float64)
            self._choose_by((seen @ root.T @ root).astype(self.dtype), self.image, kept)
        self._set_outside_shares(kept)

    def _choose_by(self, weights: Rows, rows: Rows, kept: Float64) -> None:
        """Choose the share by what probes have of E: their images, less weights·rows."""
        unit, sparse_rows = float(binary_scales(self.diagonal[:, None])[0]), self._order == "F"
        left = np.maximum(self.diagonal - kept, 0.0) / unit
        mass, squares = float(left.sum()), float(left @ left)
        if squares == 0.0:
            return self._choose(0.0)
        # Of D, of which all is counted that is not rounding; sparse rows are taken as they are.
        sizes = np.maximum(left, LEAST_LEFT / unit * self.diagonal)
        per = np.divide(1.0, sizes, out=np.zeros_like(left), where=sizes > 0)
        probes, whole = slice(self.n_starts, None), 0.0
        for span in panels(self.n_features, panel_width(8 * self.n_probes)):
            image = self._further(probes, span)
            held = np.empty(image.shape, self.dtype, self._order)
            image -= np.matmul(weights, rows[:, span], out=held)
            image /= unit
            found = np.einsum("pd,pd->d", image, image)
            whole += float(found.sum() if sparse_rows else found @ per[span]) / self.n_probes
        diagonal = squares if sparse_rows else mass
        alone, even = diagonal / max(whole, diagonal), mass / len(left) * mass / squares
        starts = self._mixing is None
        return self._choose(
            diagonal_share(alone, even, self.share, starts=starts, is_sparse=sparse_rows)
        )

    def _set_outside_shares(self, kept: Float64) -> None:
        """Set what share of each column's squares lies outside a new basis: what moves go by.

        ``kept`` is the diagonal of YᵀM⁻¹Y.
        """
        whole, self.outside_shares = self.diagonal, np.zeros(0)
        if self.share > 0:  # all of a column that comes later
            left, there = np.maximum(whole - kept, 0.0), whole > 0
            self.outside_shares = np.divide(left, whole, out=np.ones_like(whole), where=there)

    def _choose(self, found: float) -> None:
        """Take the level nearest to a measured share, if the present one is far from it."""
        self.n_choices += 1
        changes = CHANGES / (self.n_choices + 1) ** 2
        if abs(found - self.share) <= STAYS:
            self.surprise -= math.log1p(-changes)
        else:
            self.share = min(LEVELS, key=lambda level: abs(found - level))
            self.surprise -= math.log(changes / (len(LEVELS) - 1))

    def _join(self, other: Self) -> None:
        """Make the leading directions of two K̂ the basis, and bring starting points together."""
        n_starts = self.n_starts
        mine, theirs = self.known(), other.known()
        self.diagonal = self.diagonal + other.diagonal
        if n_starts == other.n_starts and mine.followed.mixed == theirs.followed.mixed:
            share = other.n_rows / (self.n_rows + other.n_rows)
            points = [one.followed.starts for one in (mine, theirs)]
            point = (1 - share) * points[0] + share * points[1]
            image = np.zeros_like(point)
            for known, before in zip((mine, theirs), points, strict=True):
                image += known.followed.unit * known.followed.start_images
                image += known.multiply(point - before)
            self._place(point, image)
        else:
            self._forget_starts()
        mix = block_diag(mine.root(), theirs.root())
        self._follow(MixedRows((self.image, other.image), mix), [mine, theirs])
        self.outside = max(self.outside, other.outside)
        self.due_move = self.due_check = 0

    def _forget_starts(self) -> None:
        """Begin at zero again, where the image is exact too."""
        self._place(np.zeros((1, self.n_starts)), np.zeros((1, self.n_starts)))

    def _merge_start(self, start: IncrementalSVD, diagonal: Float64) -> None:
        """Take in the few rows that another has, and the squares of their columns."""
        if not start.updates:
            return
        block = Block.of(start.rows.astype(self.dtype, copy=False))
        if self.start is not None:
            self.diagonal = self.diagonal + diagonal
            self.start.take_losses(start)
            self._stack(self.start, block)
            return
        # The probes have these rows already.
        stop, mass = self._starts.stop, float(start.squares.sum())
        products = block.products(self.points[:stop])
        outside = _outside(self._inner(products), mass)
        is_new = self._is_new(outside, diagonal, len(block))
        if is_new:
            self._turn(block, products[:, : self.sketch_size])
            products = block.products(self.points[:stop])
        self.diagonal = self.diagonal + diagonal
        self.middle += self._inner(products)
        block.add_images(self.images[:stop], products)
        if is_new:
            self._learn_share_again(len(block))

    def _join_from_start(self, start: IncrementalSVD, other: Self) -> None:
        """Go on from where the other is, and take in the few rows there were."""
        self.start, start.rows = None, start.rows.copy()  # they lie where the image will be
        known, diagonal, self.diagonal = other.known(), self.diagonal, other.diagonal.copy()
        self._follow(MixedRows((other.image,), known.root()), [known])
        if self.n_starts == other.n_starts:
            self._place(known.followed.starts, other._further(slice(other.n_starts)).T)
        self.outside, self.due_move, self.due_check = other.outside, 0, 0
        self._merge_start(start, diagonal)

    def _follow(self, stacked: MixedRows, parts: list[TrackedCovariance]) -> None:
        """Make the leading directions of some rows the basis; its image is what each K̂ gives."""
        size, gram = self.sketch_size, stacked.gram()
        values, vectors = top_eigenpairs(gram, min(size, len(gram)))
        values = values[: vectors.shape[1]]
        there = values > 64 * unit_roundoff(self.dtype) * values[0]
        basis = stacked.lift(vectors[:, there] / np.sqrt(values[there])).T
        if len(basis) < size:  # any others will do
            rng = np.random.Generator(np.random.Philox(size))
            others = rng.standard_normal((size - len(basis), self.n_features))
            basis = np.linalg.qr(np.vstack([basis, others]).T)[0].T
            # Where there are fewer features than that, nothing is left to follow.
            basis = np.pad(basis, ((0, size - len(basis)), (0, 0)))
        image = np.zeros((size, self.n_features))
        for known in parts:
            image += known.multiply(basis.T).T
        self.points[:size], self.images[:size] = basis, image
        middle = basis @ image.T
        self.middle = (middle + middle.T) / 2
        values = np.pad(values[there], (0, size - int(there.sum())))
        self._learn_share(values, values @ np.square(basis))
        self._postpone_turn()

    def _postpone_turn(self, n_more: int = 0) -> None:
        self.due_turn = int(self._turn_growth * (self.n_rows + n_more)) + 1
        self.n_turns += 1


def _near_inverse_root(unit: float) -> float:
    """Return a power of two near 1/√unit: rows times it have products in range."""
    return 2.0 ** -(int(np.frexp(unit)[1]) // 2)


def _outside(inner: Rows, mass: float) -> float:
    """Return a block's share of squares outside the basis, given what it adds to M."""
    return 1.0 - float(inner.trace(dtype=np.float64)) / mass if mass > 0 else 0.0


def _outside_others(gram: Float64, size: int) -> float:
    """Return the share of squares that some rows have outside the span of ``size`` others.

    Of rows whose Gram matrix is given, those others are taken at even distances.
    """
    largest = float(np.diagonal(gram).max())
    if largest == 0.0:  # squares too small for the own dtype
        return 1.0
    gram = gram / largest
    there = np.diagonal(gram) > LEAST_SQUARE
    squares, gram = np.diagonal(gram)[there], gram[np.ix_(there, there)]
    unit = 1 / np.sqrt(squares)
    chosen = np.zeros(len(gram), dtype=bool)
    chosen[np.linspace(0, len(gram) - 1, min(size, len(gram) // 2)).astype(int)] = True
    if not chosen.any():
        return 1.0
    scaled = gram * np.outer(unit, unit)
    crossed = scaled[np.ix_(chosen, ~chosen)]
    divide = dividing(scaled[np.ix_(chosen, chosen)] + LEAST_NEW * np.eye(len(crossed)))
    left = 1 - np.einsum("ij,ij->j", crossed, divide(crossed))
    return float(np.clip(left, 0.0, 1.0) @ squares[~chosen] / squares[~chosen].sum())

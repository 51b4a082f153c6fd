"""Training from files, with checkpoints."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ridgepass.cli.checkpoint import (
    Checkpoint,
    Counts,
    Input,
    is_checkpoint,
    read_checkpoint,
    write_checkpoint,
)
from ridgepass.cli.options import StopRequestedError, check_output, summary_beside
from ridgepass.cli.passes import Passes
from ridgepass.cli.progress import Watch
from ridgepass.cli.show import (
    certified,
    description,
    lines_of,
    passes_of,
    print_json,
    print_table,
    say,
)
from ridgepass.data import Batches
from ridgepass.data.opening import find_inputs, find_targets, open_source
from ridgepass.data.source import Chunk, Position, Source
from ridgepass.estimators import StreamingRidge, StreamingRidgeCV
from ridgepass.resources import peak_memory
from ridgepass.store import save


@dataclass
class Saving:
    """Checkpoints: where and how often they are written, and what has become of them.

    One that cannot be written ends no training: the disk may be full for an hour only, and the
    model is worth more than its checkpoint. It is tried again when the next one is due.

    Attributes
    ----------
    path : str
        The file.
    every : float
        Seconds from one to the next.
    resume : bool
        Whether to go on from one.
    kept : str or None
        Where the last one that was written goes on.
    failed : int
        How many could not be written.
    reason : str or None
        Why the last one could not.
    """

    path: str
    every: float
    resume: bool
    kept: str | None = None
    failed: int = 0
    reason: str | None = None

    def write(self, where: str, *what: Any) -> None:
        """Write one that goes on ``where``; the rest is for `write_checkpoint`."""
        try:
            write_checkpoint(self.path, *what)
        except OSError as error:
            before, self.reason = self.reason, error.strerror or str(error)
            self.failed += 1
            if self.reason != before:
                say(
                    f"ridgepass: warning: the checkpoint {self.path} cannot be written "
                    f"({self.reason}): training goes on, and tries again"
                )
        else:
            self.kept, self.reason = where, None

    def stopped(self, when: str = "") -> StopRequestedError:
        """Return what to raise when a signal has asked to stop, which says how to go on."""
        text = f"stopped{when}"
        if self.reason is not None:
            text += f", and the checkpoint {self.path} could not be written ({self.reason})"
        if self.kept is None or not os.path.exists(self.path):
            return StopRequestedError(
                f"{text}: there is no checkpoint to resume from, and the same command begins at "
                "the first row"
            )
        return StopRequestedError(f"{text}: the same command with --resume goes on {self.kept}")

    def finish(self) -> None:
        """Remove the checkpoint, which a finished model has no use for, and say what failed."""
        if self.failed:
            say(
                f"ridgepass: warning: {self.failed:,} times the checkpoint {self.path} could not "
                "be written; the model is complete all the same"
            )
        try:
            Path(self.path).unlink(missing_ok=True)
        except OSError as error:
            say(
                f"ridgepass: warning: the checkpoint {self.path} cannot be removed "
                f"({error.strerror}): delete it, the model is complete"
            )


@dataclass
class Training:
    """One run of ``ridgepass fit``.

    Attributes
    ----------
    data : list of str
        The inputs.
    reading : dict
        Options of `ridgepass.data.batches`.
    parameters : dict
        Parameters of the estimator; an alpha of None is chosen in the pass.
    saving : Saving or None
        For checkpoints.
    quiet : bool
        Show no progress.
    passes : Passes
        How often the data is read.
    """

    data: list[str]
    reading: dict[str, Any]
    parameters: dict[str, Any]
    saving: Saving | None = None
    quiet: bool = False
    passes: Passes = field(default_factory=Passes)
    counts: Counts = field(default_factory=Counts)

    def run(self, output: str, *, as_json: bool) -> None:
        """Train, save, and say what came out."""
        begun = time.monotonic()
        files = find_inputs(self.data, self.reading["format"])
        if not self.reading["target"] and not (files and files[0].format == "svmlight"):
            raise ValueError("there is nothing to predict: name the target's column with --target")
        targets = find_targets(files, self.reading["target"])
        paths = [file.path for file in files]
        if self.passes.most > 1 and not files:
            raise ValueError(
                "standard input cannot be read again: give files, or leave out --passes and --tol"
            )
        inputs = [Input.of(file) for file in [*files, *([] if targets is None else [targets])]]
        check_output(output, [one.path for one in inputs])
        if is_checkpoint(output):
            raise ValueError(
                f"{output} is an unfinished model: name another output, or go on with --checkpoint "
                f"{output} --resume"
            )
        before = None
        if self.saving is not None:
            if not files:
                raise ValueError("standard input cannot be read again: leave --checkpoint out")
            check_output(self.saving.path, [one.path for one in inputs])
            if os.path.realpath(self.saving.path) == os.path.realpath(output):
                raise ValueError(f"{output} cannot be both output and checkpoint: name two files")
            before = self._take_up(self.saving, inputs)
        model = before.model if before is not None else self._new_model()
        model._check_parameters()
        source = open_source(paths or self.data, **self.reading)
        if before is not None:
            self.counts = before.counts
            means = (model._learned.columns or {}).get("means")
            source.columns = replace(source.columns, means=None if means is None else tuple(means))
        start = before.position if before is not None else Position()
        end = self._read(model, source, start, inputs)
        for one in inputs:
            one.check_unchanged()
        if model._learned is None or not model._learned.n_rows:
            raise ValueError(
                f"{', '.join(self.data)}: there is no row to learn from, or none with a weight"
            )
        self._refine(model, source, end, inputs)
        self.passes.warn(model)
        save(model, output)
        if self.saving is not None:
            self.saving.finish()
        self._report(model, output, time.monotonic() - begun, as_json)

    def _take_up(self, saving: Saving, inputs: list[Input]) -> Checkpoint | None:
        if not os.path.exists(saving.path):
            if saving.resume:
                say(f"no checkpoint {saving.path} yet: beginning at the first row")
            return None
        if not os.path.isfile(saving.path):
            raise ValueError(f"{saving.path} is no regular file, which a checkpoint must be")
        if not saving.resume:
            raise ValueError(
                f"{saving.path} is there already: add --resume to go on from it, or delete it to "
                "begin again"
            )
        found = read_checkpoint(saving.path, self._options(), inputs)
        saving.kept = "where this run began"
        say(f"going on from {saving.path} after {found.counts.read:,} rows")
        return found

    def _options(self) -> dict[str, Any]:
        return {**self.reading, **self.parameters}

    def _new_model(self) -> Any:
        parameters = dict(self.parameters)
        alpha = parameters.pop("alpha")
        if alpha is None:
            return StreamingRidgeCV(**parameters)
        return StreamingRidge(alpha, **parameters)

    def _refine(self, model: Any, source: Source, end: Position, inputs: list[Input]) -> None:
        """Read again, if wanted; a checkpoint has what every pass has found."""

        def keep() -> None:
            for one in inputs:
                one.check_unchanged()
            if self.saving is not None:
                where = f"after pass {passes_of(model)}"
                self.saving.write(where, *self._so_far(model, end, inputs))

        with _stop_asked(self.saving is not None):
            try:
                self.passes.run(model, Batches(source), quiet=self.quiet, keep=keep)
            except KeyboardInterrupt:
                if self.saving is None:
                    raise
                raise self.saving.stopped() from None

    def _so_far(self, model: Any, end: Position, inputs: list[Input]) -> tuple[Any, ...]:
        """Return what a checkpoint holds."""
        return model, end, self.counts, self._options(), inputs

    def _read(self, model: Any, source: Source, start: Position, inputs: list[Input]) -> Position:
        """Learn from all rows after a position and return where they end."""
        saving, n_bytes, saved, end = self.saving, 0, time.monotonic(), start

        def ask() -> float | None:
            return None if model._learned is None or model.method_ == "exact" else certified(model)

        watch = Watch(
            source.n_rows, source.n_bytes, quiet=self.quiet, ask=ask, done=self.counts.read
        )
        with _stop_asked(saving is not None) as asked, watch:
            with closing(source.chunks(start)) as chunks:
                for chunk in chunks:
                    self._learn(model, chunk, source)
                    asked.can_wait = model._learned is not None
                    self.counts = Counts(
                        self.counts.read + chunk.n_read,
                        self.counts.dropped + chunk.n_read - chunk.X.shape[0],
                        self.counts.unknown + chunk.unknown,
                    )
                    n_bytes, end = chunk.n_bytes, chunk.end
                    watch.update(self.counts.read, n_bytes)
                    if saving is None or model._learned is None:
                        continue
                    where = f"after {self.counts.read:,} rows"
                    if asked.number or time.monotonic() - saved >= saving.every:
                        saving.write(where, *self._so_far(model, end, inputs))
                        saved = time.monotonic()
                    if asked.number:
                        raise saving.stopped(f" {where}")
            watch.finish(self.counts.read, n_bytes)
            if saving is not None and asked.number and self.passes.most > 1:
                saving.write("after pass 1", *self._so_far(model, end, inputs))
                raise saving.stopped(" after the first pass")
        return end

    def _learn(self, model: Any, chunk: Chunk, source: Source) -> None:
        try:
            model._learn(chunk, source)
        except ValueError as error:
            if not source.files or "batch" not in str(error):  # it is not about these rows
                raise
            last = chunk.end.rows
            where = f"rows {last - chunk.n_read + 1:,} to {last:,}"
            raise ValueError(f"{where} of {source.files[chunk.end.files].path}: {error}") from error

    def _report(self, model: Any, output: str, seconds: float, as_json: bool) -> None:
        if self.counts.unknown:
            say(
                f"ridgepass: warning: {self.counts.unknown:,} values are of no known category and "
                "count as all zeros"
            )
        idle = self.counts.read - self.counts.dropped - model.n_samples_seen_
        if idle:
            say(f"ridgepass: {idle:,} rows have a weight of zero and count for nothing")
        if self.counts.dropped:
            say(f"ridgepass: {self.counts.dropped:,} rows with missing values were dropped")
        facts = {
            **description(model),
            "rows_read": self.counts.read,
            "rows_dropped": self.counts.dropped,
            "unknown_categories": self.counts.unknown,
            "seconds": seconds,
            "peak_memory": peak_memory(),
            "output": output,
        }
        with summary_beside(output):
            if as_json:
                print_json(facts)
            else:
                print_table(lines_of(facts), title=output)


@dataclass
class Request:
    """Whether a signal has asked to stop, and whether the next batch can be waited for."""

    number: int | None = None
    can_wait: bool = False


@contextmanager
def _stop_asked(graceful: bool) -> Iterator[Request]:
    """Note requests to stop, so that a batch is never cut in half; the second one insists.

    Before there is anything to save, the first one does.
    """
    asked = Request()
    if not graceful:
        yield asked
        return

    def note(number: int, frame: Any) -> None:
        if asked.number is not None or not asked.can_wait:
            raise KeyboardInterrupt
        asked.number = number

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

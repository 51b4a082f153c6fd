"""Workers on all cores, until the time is over."""

import multiprocessing
import os
import signal
import time
from collections import Counter, defaultdict
from multiprocessing.connection import wait

from fuzz.run import run
from fuzz.state import CHUNK

SHOWN = 3  # failures of a kind that are printed; all are kept
STUCK_AFTER = 300.0  # seconds for one configuration
PROGRESS_EVERY = 5.0  # seconds


class _Worker:
    """A process that runs chunks."""

    def __init__(self, context, seed):
        self.answered = False
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, seed), daemon=True)
        self.process.start()
        theirs.close()

    def begin(self, start, size):
        self.start, self.stop, self.number = start, start + size, start
        self.counts, self.failures = Counter(), []
        self.since = time.monotonic()
        self.connection.send((self.start, self.stop))

    def end(self):
        self.process.terminate()
        self.process.join()
        self.connection.close()


def work(connection, seed):
    """Run chunks until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process decides
    while True:
        try:
            numbers = range(*connection.recv())
        except EOFError:
            return
        for number in numbers:
            out = run(seed, number)
            connection.send((number, dict(out.counts), out.failures, out.describe()))


class Session:
    """Hands chunks out to workers until the time is over."""

    def __init__(self, state, options):
        self.state, self.seed, self.jobs = state, options.seed, options.jobs
        self.context = multiprocessing.get_context("spawn")
        self.begun = self.printed = time.monotonic()
        self.deadline = self.begun + 60 * options.minutes
        self.counts, self.shown = Counter(), Counter()
        self.n_failed = 0

    def run(self):
        for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ[name] = "1"  # for the workers
        print(f"{self.state.path}: {self.state.counts['configurations']:,} configurations so far")
        chunks, workers = self.state.chunks(), []
        try:
            workers = [_Worker(self.context, self.seed) for _ in range(self.jobs)]
            for worker in workers:
                self._hand_out(worker, chunks)
            while workers:
                ready = wait([worker.connection for worker in workers], timeout=1.0)
                for worker in list(workers):
                    if worker.connection in ready:
                        goes_on = self._listen(worker)
                    else:
                        goes_on = time.monotonic() - worker.since < STUCK_AFTER
                        if not goes_on:
                            self._lost(worker, "hang", f"no end after {STUCK_AFTER:g} s")
                    if not goes_on:
                        worker.end()
                        workers.remove(worker)
                        worker = self._replaced(worker)
                        workers.append(worker)
                    if worker.number == worker.stop:
                        self.state.add(worker.start, worker.counts, worker.failures)
                        if time.monotonic() > self.deadline:
                            worker.end()
                            workers.remove(worker)
                        else:
                            self._hand_out(worker, chunks)
                self._progress()
        except KeyboardInterrupt:
            print("\nstopped; the next run goes on from here")
        finally:
            for worker in workers:
                worker.end()
        return self._summary()

    def _hand_out(self, worker, chunks):
        worker.begin(next(chunks), CHUNK)

    def _listen(self, worker):
        """Take one result; return whether the worker is alive."""
        try:
            number, counts, failures, about = worker.connection.recv()
        except (EOFError, OSError):
            worker.process.join()
            if worker.process.exitcode == -signal.SIGTERM:
                return False  # by somebody outside: the configuration is run again
            if not worker.answered:
                raise SystemExit("a worker ended before its first configuration") from None
            self._lost(worker, "crash", f"the process ended with {worker.process.exitcode}")
            return False
        worker.answered, worker.since = True, time.monotonic()
        worker.number = number + 1
        worker.counts.update(counts)
        self.counts.update(counts)
        for kind, text in failures:
            self._failed(worker, number, kind, text, about)
        return True

    def _lost(self, worker, kind, text):
        self._failed(worker, worker.number, kind, text, "")
        worker.number += 1

    def _replaced(self, worker):
        """Return a new worker that goes on with the chunk of one that was lost."""
        fresh = _Worker(self.context, self.seed)
        fresh.start, fresh.stop, fresh.number = worker.start, worker.stop, worker.number
        fresh.counts, fresh.failures = worker.counts, worker.failures
        fresh.since = time.monotonic()
        if fresh.number < fresh.stop:
            fresh.connection.send((fresh.number, fresh.stop))
        return fresh

    def _failed(self, worker, number, kind, text, about):
        self.n_failed += 1
        failure = {"number": number, "kind": kind, "text": text, "about": about}
        worker.failures.append(failure)
        self.shown[kind] += 1
        if self.shown[kind] <= SHOWN:
            print(f"\n{self.seed}/{number} {kind}: {text}\n    {about}", flush=True)

    def _progress(self):
        now = time.monotonic()
        if now - self.printed < PROGRESS_EVERY:
            return
        self.printed = now
        done, spent = self.counts["configurations"], now - self.begun
        left = max(self.deadline - now, 0) / 60
        print(
            f"{done:,} configurations, {done / spent:.0f} a second; {self.counts['bounds']:,} "
            f"bounds, {self.counts['interrupts']:,} interrupts; {self.n_failed:,} failures; "
            f"{left:.1f} minutes left",
            flush=True,
        )

    def _summary(self):
        """Print counts of all runs of this seed and source; return whether anything failed."""
        print()
        print_counts(self.state.counts)
        by_kind = defaultdict(set)
        for failure in self.state.failures:
            by_kind[failure["kind"]].add(failure["number"])
        for kind, numbers in sorted(by_kind.items()):
            some = " ".join(map(str, sorted(numbers)[:8]))
            print(f"FAILED {kind}: {len(numbers):,} configurations, such as {some}")
        if by_kind:
            print(f"one of them alone: python -m fuzz --seed {self.seed} --only NUMBER")
        else:
            print("nothing failed")
        return bool(by_kind)


def print_counts(counts):
    """Print one line for each count."""
    for name, count in sorted(counts.items()):
        print(f"{count:>12,} {name}")

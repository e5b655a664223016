"""Executes the missing runs of a study: on threads of this process, or on the workers of an executor."""

from __future__ import annotations

import asyncio
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import BrokenExecutor, CancelledError
from dataclasses import dataclass
from typing import Any, Optional, Protocol, Union

from .. import _rexmit
from . import _worker
from ._errors import RunError, StoreError, WorkerVersionError

#: How often a run is tried again after its worker was lost.
MAX_RETRIES = 3
#: Tasks that an executor has at a time, at most; the others wait here.
MAX_OUTSTANDING = 256
#: Runs in one task, at most, and the processor time of a task in seconds from which on no run is added.
TASK_RUNS = 32
TASK_SECONDS = 0.25
#: Between two lines of progress where standard error is no terminal.
LOG_SECONDS = 10.0


@dataclass(frozen=True)
class Progress:
    """How far a sweep is.

    Attributes
    ----------
    runs, done, failed : int
        Distinct runs; those with a result, found or computed; those that failed.
    seconds_left : float or None
        The estimated remaining time in seconds; ``None`` before the first run has ended.
    """

    runs: int
    done: int
    failed: int
    seconds_left: Optional[float] = None


class Executor(Protocol):
    """The part of `concurrent.futures.Executor` that is needed; so Dask's ``client.get_executor()`` will do."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        """Has a worker call a function.

        Parameters
        ----------
        fn : callable
            A function of this package.
        *args : object
            Its arguments, which can be pickled.

        Returns
        -------
        future
            With the methods ``result``, ``done`` and ``cancel`` of `concurrent.futures.Future`; if it has
            ``add_done_callback``, that is used instead of asking.
        """
        ...


Report = Callable[[Progress], object]


def _line(progress: Progress) -> tuple[str, bool]:
    """The progress in words, and whether all runs have ended."""
    seconds = progress.seconds_left
    remaining = f", about {seconds:.0f} s remain" if seconds is not None else ""
    failed = f", {progress.failed} failed" if progress.failed else ""
    ended = progress.done + progress.failed >= progress.runs
    return f"{progress.done} of {progress.runs} runs{failed}{'' if ended else remaining}", ended


def _on_terminal(progress: Progress) -> None:
    text, ended = _line(progress)
    print(f"\r{text:<60}", end="\n" if ended else "", file=sys.stderr, flush=True)


class _InLog:
    """Prints a line every `LOG_SECONDS` where lines cannot be overwritten: in a file or the log of a job."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._has_printed = False

    def __call__(self, progress: Progress) -> None:
        text, ended = _line(progress)
        now = time.monotonic()
        # A sweep that ends before the first line prints none.
        if now - self._last >= LOG_SECONDS or (ended and self._has_printed):
            self._last = now
            self._has_printed = not ended
            print(text, file=sys.stderr, flush=True)


def reporter(progress: Union[bool, Report]) -> Report:
    """The function that is called with the progress."""
    if callable(progress):
        return progress
    if not progress or sys.stderr is None:
        return lambda _: None
    return _on_terminal if sys.stderr.isatty() or "ipykernel" in sys.modules else _InLog()


def run_here(sweep: _rexmit.Sweep, jobs: Optional[int], report: Report) -> None:
    """Executes the missing runs on `jobs` threads."""
    errors: list[BaseException] = []

    def work() -> None:
        try:
            sweep.run_here(jobs)
        except BaseException as error:
            errors.append(error)

    # Not in this thread, so that Ctrl-C is noticed at once.
    thread = threading.Thread(target=work, name="rexmit sweep", daemon=True)
    thread.start()
    last: Optional[tuple[object, ...]] = None
    try:
        while thread.is_alive():
            thread.join(0.1)
            now = sweep.progress()
            if now != last:
                report(Progress(*now))
                last = now
    except BaseException:
        sweep.stop()
        raise
    if errors:
        raise errors[0]


def _is_without_rexmit(error: BaseException) -> bool:
    """Whether a worker could not load the function that it was to call."""
    if isinstance(error, ImportError):
        return (error.name or "").split(".")[0] == "rexmit"
    return isinstance(error, AttributeError) and _worker.__name__ in str(error)


@dataclass
class _Task:
    runs: list[_worker.Task]
    retries: int = 0


def _tasks(missing: Iterable[tuple[str, str, float]], task_seconds: Optional[float]) -> list[_Task]:
    most_seconds = TASK_SECONDS if task_seconds is None else task_seconds
    most_runs = TASK_RUNS if task_seconds is None else sys.maxsize
    tasks: list[_Task] = []
    seconds = 0.0
    for key, document, own in missing:
        if not tasks or seconds >= most_seconds or len(tasks[-1].runs) == most_runs:
            tasks.append(_Task([]))
            seconds = 0.0
        tasks[-1].runs.append((key, document))
        seconds += own
    return tasks


class _Elsewhere:
    """A sweep whose runs are executed by the workers of an executor."""

    def __init__(self, sweep: _rexmit.Sweep, executor: Executor, report: Report, task_seconds: Optional[float]) -> None:
        self._sweep = sweep
        self._executor = executor
        self._report = report
        self._program = _rexmit.program(_worker.module_file())
        # Reversed, so that the next task is at the end.
        self._waiting = _tasks(sweep.missing(), task_seconds)[::-1]
        self._outstanding: dict[int, tuple[Any, _Task]] = {}
        self._ended: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._number = 0
        self._began = time.monotonic()
        self._done_before = sweep.progress()[1]

    def run(self) -> None:
        self._show()
        try:
            while self._waiting or self._outstanding:
                while self._waiting and len(self._outstanding) < MAX_OUTSTANDING:
                    self._submit(self._waiting.pop())
                self._wait()
        except BaseException:
            for future, _ in self._outstanding.values():
                future.cancel()
            raise

    def _submit(self, task: _Task) -> None:
        try:
            future = self._executor.submit(_worker.execute, _worker.VERSION, self._program, task.runs)
        except BrokenExecutor as error:
            raise self._broken(error) from error
        self._number += 1
        number = self._number
        self._outstanding[number] = (future, task)
        if hasattr(future, "add_done_callback"):
            future.add_done_callback(lambda _: self._ended.put(number))

    def _wait(self) -> None:
        try:
            number = self._ended.get(timeout=0.2)
        except queue.Empty:
            # Futures without callbacks, as submitit's.
            ended = [number for number, (future, _) in self._outstanding.items() if future.done()]
            for number in ended:
                self._settle(number)
            return
        self._settle(number)

    def _settle(self, number: int) -> None:
        future, task = self._outstanding.pop(number, (None, None))
        if future is None or task is None:
            return
        try:
            done = future.result()
        except BrokenExecutor as error:
            raise self._broken(error) from error
        except (Exception, CancelledError, asyncio.CancelledError, SystemExit) as error:
            if _is_without_rexmit(error):
                text = (
                    f"a worker has no rexmit.lab ({error}), and the runs were planned by rexmit {_worker.VERSION}: "
                    "install it there"
                )
                raise WorkerVersionError(text) from error
            self._retry(task, error)
            return
        if isinstance(done, _worker.Refusal):
            raise WorkerVersionError(done.text)
        self._take(task, done)
        self._show()

    def _take(self, task: _Task, done: list[_worker.Done]) -> None:
        """Takes what a task has returned. Runs without a result, or with a damaged one, are tried again."""
        left = dict(task.runs)
        problem: Exception = RunError("it returned no result")
        try:
            for key, file, failure in done:
                if file is not None:
                    self._sweep.add(key, file)
                elif isinstance(failure, tuple):
                    self._sweep.fail(key, *failure)
                else:
                    continue
                left.pop(key, None)
        except StoreError:
            raise
        except Exception as error:
            problem = error
        if left:
            self._retry(_Task(list(left.items()), task.retries), problem)

    def _retry(self, task: _Task, error: BaseException) -> None:
        """Runs of a lost worker are tried again, one by one: one of them may be the reason."""
        retries = task.retries + 1
        if retries <= MAX_RETRIES:
            self._waiting.extend(_Task([run], retries) for run in task.runs)
            return
        for key, _ in task.runs:
            what = f"its worker was lost, or failed, {retries} times: {type(error).__name__}: {error}"
            self._sweep.fail(key, "failed", what)
        self._show()

    def _broken(self, error: BaseException) -> RunError:
        # Here, as it imports multiprocessing: a program without a process pool starts faster.
        from concurrent.futures.process import BrokenProcessPool

        text = f"the executor lost its workers ({error}); finished runs are kept: run again with a new executor"
        if isinstance(error, BrokenProcessPool):
            text += '. If none has finished, the script may lack `if __name__ == "__main__":` around what it does:'
            text += " new processes import it, except where they are forked (the default before Python 3.14, on Linux)"
        return RunError(text)

    def _show(self) -> None:
        runs, done, failed, _ = self._sweep.progress()
        computed = done - self._done_before
        left = None
        if computed > 0:
            left = (time.monotonic() - self._began) / computed * (runs - done - failed)
        self._report(Progress(runs, done, failed, left))


def run_elsewhere(sweep: _rexmit.Sweep, executor: Executor, report: Report, task_seconds: Optional[float]) -> None:
    """Executes the missing runs by `executor`."""
    _Elsewhere(sweep, executor, report, task_seconds).run()

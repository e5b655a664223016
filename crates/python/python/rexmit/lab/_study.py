"""Studies."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

from .. import _rexmit
from . import _worker
from ._errors import StudyError
from ._results import Results
from ._schema import Axis, Claim, Figure, Scenario
from ._sweep import Executor, Report, reporter, run_elsewhere, run_here
from ._toml import dumps, plain

Path = Union[str, "os.PathLike[str]"]

#: The names of the studies in the package.
STUDIES: tuple[str, ...] = _rexmit.study_names()


def _is_path(name: Path) -> bool:
    return not isinstance(name, str) or name.endswith(".toml") or os.sep in name or "/" in name


def _parsed(text: str, name: Optional[str]) -> _rexmit.LabStudy:
    """The study of a text. Without a name it has that of its title, so that two do not write to the same directory."""
    if name is not None:
        return _rexmit.LabStudy.parse(name, text)
    title = _rexmit.LabStudy.parse("study", text).title
    # Shorter than what file systems allow.
    name = re.sub(r"[^a-z0-9]+", "-", title.lower())[:100].strip("-")
    return _rexmit.LabStudy.parse(name or "study", text)


@dataclass(frozen=True)
class Plan:
    """The cost of a sweep; ``print(plan)`` shows it in a sentence.

    Attributes
    ----------
    runs, cores : int
        The runs, and the cores that they are distributed over.
    core_hours : float
        The processor time in hours: what a cluster accounts for.
    hours : float
        The duration in hours.
    """

    runs: int
    cores: int
    core_hours: float
    hours: float

    def __str__(self) -> str:
        took = f"{self.hours:.1f} h" if self.hours >= 1 else f"{self.hours * 60:.1f} min"
        return f"{self.runs:,} runs: about {self.core_hours:.2f} core hours, {took} on {self.cores} cores"


class Study:
    """The definition of runs, of figures and of claims.

    Parameters
    ----------
    title : str
        Its title.
    scenario : Scenario
        The base of all runs.
    seeds : int or sequence of int
        How often each point is run, or the seeds; at most 1000.
    axes, claims, figures : sequence
        What is varied, claimed and drawn. Every combination of the points of all axes is a cell of the sweep.
    costs : sequence of str
        Quantities that the report shows as costs.
    source, about : str
        What it reproduces, and the method.
    name : str, optional
        The name of its directory of results; by default its title, in lower-case letters, digits and hyphens.

    Raises
    ------
    StudyError
        If it has mistakes; the text has all of them.
    TypeError
        If a value is none that a study file can have.
    """

    def __init__(
        self,
        *,
        title: str,
        scenario: Scenario,
        seeds: Union[int, Sequence[int]] = 10,
        axes: Sequence[Axis] = (),
        claims: Sequence[Claim] = (),
        figures: Sequence[Figure] = (),
        costs: Sequence[str] = (),
        source: Optional[str] = None,
        about: Optional[str] = None,
        name: Optional[str] = None,
    ) -> None:
        if not isinstance(scenario, Scenario):
            raise TypeError(f"scenario must be a rexmit.lab.Scenario, not {type(scenario).__name__}")
        parts: dict[str, Any] = {"title": title, "source": source, "about": about, "seeds": seeds}
        lists = {"costs": costs, "axis": axes, "claim": claims, "figure": figures}
        for key, items in lists.items():
            if isinstance(items, str) or not isinstance(items, Sequence):
                raise TypeError(f"{key} must be a list, not {type(items).__name__}")
        parts.update((key, items) for key, items in lists.items() if items)
        table = plain({**parts, "scenario": scenario}, "the study")
        assert isinstance(table, dict)
        text = dumps(table)
        try:
            self._study = _parsed(text, name)
        except StudyError as error:
            error.study_text = text
            raise

    @classmethod
    def _of(cls, study: _rexmit.LabStudy) -> Study:
        self = cls.__new__(cls)
        self._study = study
        return self

    @classmethod
    def load(cls, name: Path) -> Study:
        """The study of the package with this name (`STUDIES` has all), or that of a file: a path, or a name with a ``/`` or
        ending in ``.toml``.

        Parameters
        ----------
        name : str or path
            The name of the study, or the path of its file.

        Returns
        -------
        Study
            The study, checked.

        Raises
        ------
        UnknownStudyError
            If there is none of this name.
        StudyError
            If the file has mistakes.
        OSError
            If the file cannot be read.
        TypeError
            If `name` is neither.
        """
        if _is_path(name):
            return cls._of(_rexmit.LabStudy.load(os.fspath(name)))
        assert isinstance(name, str)
        return cls._of(_rexmit.LabStudy.built_in(name))

    @classmethod
    def from_text(cls, text: str, name: Optional[str] = None) -> Study:
        """The study that a text defines.

        Parameters
        ----------
        text : str
            The contents of a study file.
        name : str, optional
            Its name, and that of its directory of results; by default its title, in lower-case letters, digits and hyphens.

        Returns
        -------
        Study
            The study, checked.

        Raises
        ------
        StudyError
            If the text has mistakes; it has their lines and columns.
        """
        return cls._of(_parsed(text, name))

    @property
    def name(self) -> str:
        """Its name, which is that of its file."""
        return self._study.name

    @property
    def title(self) -> str:
        """Its title, a line."""
        return self._study.title

    @property
    def source(self) -> str:
        """The figure or table that it reproduces."""
        return self._study.source

    @property
    def about(self) -> str:
        """The method, and the differences from the source."""
        return self._study.about

    @property
    def text(self) -> str:
        """The text of its file."""
        return self._study.text

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of every cell."""
        return self._study.seeds

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        """The labels of the points of each axis."""
        return self._study.axes

    @property
    def estimated_seconds(self) -> float:
        """The approximate processor time of all runs."""
        return self._study.estimated_seconds()

    def plan(self, cores: int) -> Plan:
        """How long all runs take on a number of cores, before any of them is run.

        Parameters
        ----------
        cores : int
            Cores or workers, in all.

        Returns
        -------
        Plan
            A rough estimate, from the length of the scenarios and the traffic in them. It knows nothing of stored results.

        Raises
        ------
        ValueError
            If `cores` is below 1.
        TypeError
            If `cores` is no `int`.
        """
        if isinstance(cores, bool) or not isinstance(cores, int):
            raise TypeError(f"cores must be an int, not {type(cores).__name__}")
        if cores < 1:
            raise ValueError(f"cores is {cores}: it must be at least 1")
        core_hours = self.estimated_seconds / 3600
        return Plan(len(self), cores, core_hours, core_hours / min(cores, max(len(self), 1)))

    def __len__(self) -> int:
        """The number of runs: cells times seeds."""
        return len(self._study)

    def __repr__(self) -> str:
        return f"<rexmit.lab.Study {self.name!r}: {self.title}; {len(self)} runs>"

    def with_seeds(self, seeds: Union[int, Sequence[int]]) -> Study:
        """The same study with other seeds.

        Parameters
        ----------
        seeds : int or sequence of int
            How many, which are 1 to `seeds`, or the seeds: 1 to 1000 different numbers from 0 to 2⁶⁴ - 1.

        Returns
        -------
        Study
            A new study; this one stays as it is.

        Raises
        ------
        ValueError
            If they are too many, none, not different, or out of range.
        TypeError
            If one of them is no `int`.
        """
        chosen = list(range(1, min(seeds, 1001) + 1)) if isinstance(seeds, int) else list(seeds)
        return self._of(self._study.with_seeds(chosen))

    def run(
        self,
        executor: Optional[Executor] = None,
        progress: Union[bool, Report] = True,
        *,
        jobs: Optional[int] = None,
        task_seconds: Optional[float] = None,
        store: Optional[Path] = None,
    ) -> Results:
        """Executes the runs that have no result yet.

        Each result is kept at once, by a hash of its scenario, its seed and the build of rexmit: an interrupted sweep goes
        on where it was when it is run again.

        Parameters
        ----------
        executor : optional
            Where to run: anything with the ``submit`` of `concurrent.futures.Executor`, such as Dask's
            ``client.get_executor()``. Runs of lost workers are tried again. By default they run on threads of this process,
            outside of the GIL.
        progress : bool or callable
            Whether to show the progress: on a terminal or in a notebook, or else as a line on standard error every 10
            seconds; or a function that is called with a `Progress`.
        jobs : int, optional
            Threads without `executor` (one per core).
        task_seconds : float, optional
            Processor time of a task for `executor`: runs are added until their estimates exceed it, 0.25 s by default, and
            at most 32. With this parameter their number is not limited: use 60 where a task is a job, as with Slurm.
        store : path, optional
            The directory of single results (``~/.cache/rexmit/runs``, the one of the command).

        Returns
        -------
        Results
            The runs with their tables, verdicts and figures; `Results.failed` has those that failed.

        Raises
        ------
        WorkerVersionError
            If a worker has another version or build of rexmit.
        RunError
            If the executor is broken, as a pool of processes that has lost one: finished runs are kept.
        StoreError
            If results cannot be written.
        ValueError
            If a number is out of range, or is not for this executor.
        TypeError
            If `executor` has no ``submit``.
        """
        if executor is not None and not callable(getattr(executor, "submit", None)):
            kind = type(executor).__name__
            raise TypeError(f"executor must have a method submit, as concurrent.futures.Executor has; {kind} has none")
        if executor is not None and jobs is not None:
            raise ValueError("jobs is for threads of this process: leave it out, or the executor")
        if executor is None and task_seconds is not None:
            raise ValueError("task_seconds is for tasks of an executor: leave it out, or choose an executor")
        if task_seconds is not None and not task_seconds > 0:
            raise ValueError(f"task_seconds is {task_seconds}: it must be above zero")
        place = None if store is None else os.fspath(store)
        sweep = self._study.sweep(_worker.module_file(), place)
        report = reporter(progress)
        if executor is None:
            run_here(sweep, jobs, report)
        else:
            run_elsewhere(sweep, executor, report, task_seconds)
        return Results(sweep.results())

"""Results of studies."""

from __future__ import annotations

import html
import json
import os
import pathlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional, Union

from .. import _rexmit
from ._frames import to_pandas, to_polars
from ._plot import plot

if TYPE_CHECKING:
    import altair
    import pandas
    import polars


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds, in the unit of its quantity.

    Attributes
    ----------
    seeds : int
        The runs that have the quantity.
    mean : float
        Their mean.
    interval : (float, float) or None
        The 95 % confidence interval, which one seed does not have.
    range : (float, float)
        The least and the largest value.
    """

    seeds: int
    mean: float
    interval: Optional[tuple[float, float]]
    range: tuple[float, float]


@dataclass(frozen=True)
class Comparison:
    """One comparison of a claim.

    Attributes
    ----------
    point : dict of str to str
        The axes that the claim leaves open, and their labels.
    verdict : str
        As that of a claim.
    left, right : Estimate or None
        Both sides; ``None`` if there is no value.
    finding : str
        The numbers as text.
    """

    point: dict[str, str]
    verdict: str
    left: Optional[Estimate]
    right: Optional[Estimate]
    finding: str


@dataclass(frozen=True)
class Verdict:
    """A claim, and whether it holds.

    Attributes
    ----------
    says : str
        The statement.
    means : str
        How it is tested, in words.
    source_value : str or None
        What the source states.
    verdict : str
        ``"holds"``, ``"does_not_hold"`` or ``"undecided"``.
    comparisons : tuple of Comparison
        One for each point that the claim leaves open.
    """

    says: str
    means: str
    source_value: Optional[str]
    verdict: str
    comparisons: tuple[Comparison, ...]


@dataclass(frozen=True)
class FailedRun:
    """A run that failed.

    Attributes
    ----------
    point : dict of str to str
        The axes and the labels of its point.
    seed : int
        Its seed.
    error : str
        The reason.
    document : str
        The document of the run (JSON), for ``rexmit study exec``.
    """

    point: dict[str, str]
    seed: int
    error: str
    document: str


def _point(coordinates: list[dict[str, str]]) -> dict[str, str]:
    return {coordinate["axis"]: coordinate["label"] for coordinate in coordinates}


def _estimate(it: Optional[dict[str, Any]]) -> Optional[Estimate]:
    if it is None:
        return None
    interval = it["interval"]
    least, largest = it["range"]
    return Estimate(it["seeds"], it["mean"], None if interval is None else tuple(interval), (least, largest))


def _verdict(claim: dict[str, Any]) -> Verdict:
    comparisons = tuple(
        Comparison(_point(it["point"]), it["verdict"], _estimate(it["left"]), _estimate(it["right"]), it["finding"])
        for it in claim["instances"]
    )
    return Verdict(claim["says"], claim["means"], claim["source_value"], claim["verdict"], comparisons)


class Results:
    """The results of a study. Made by `Study.run`.

    Attributes
    ----------
    found, executed : int
        Runs whose results were kept from before; runs executed now.
    failed : list of FailedRun
        Runs without a result.
    """

    def __init__(self, results: _rexmit.LabResults) -> None:
        self._results = results
        self._page: dict[str, Any] = json.loads(results.page())
        self.found = results.found
        self.executed = results.executed
        self.failed = [self._failed(document, why) for document, why in results.failed()]

    @staticmethod
    def _failed(document: str, why: str) -> FailedRun:
        run = json.loads(document)
        return FailedRun(_point(run["point"]), run["seed"], why, document)

    def table(self, what: str = "runs") -> _rexmit.Table:
        """A table for any library that reads Arrow's PyCapsule interface, without copies.

        Parameters
        ----------
        what : str
            ``"runs"``: a row per run, with its point, seed, key, error and every quantity. ``"messages"``: a row per
            message, if the scenario has ``rows=True``. Otherwise the name of a distribution, such as ``"game.latency"``: a
            row per value, run and how often it occurred. Times in quantities are in milliseconds.

        Returns
        -------
        Table
            It has a row for each of these.

        Raises
        ------
        ValueError
            No run has that distribution.
        TypeError
            `what` is no `str`.
        """
        if not isinstance(what, str):
            raise TypeError(f"what must be 'runs', 'messages' or the name of a distribution, not {type(what).__name__}")
        if what == "runs":
            return self._results.runs()
        if what == "messages":
            return self._results.messages()
        return self._results.distribution(what)

    def to_polars(self, what: str = "runs") -> polars.DataFrame:
        """`table` as a frame of polars, which shares its memory.

        Parameters
        ----------
        what : str
            ``"runs"``, ``"messages"`` or the name of a distribution, as for `table`.

        Returns
        -------
        polars.DataFrame
            A row per run, message or value.

        Raises
        ------
        ValueError
            No run has that distribution.
        ImportError
            polars is not installed.
        """
        return to_polars(self.table(what))

    def to_pandas(self, what: str = "runs") -> pandas.DataFrame:
        """`table` as a frame of pandas. It is a copy, which may be changed.

        Parameters
        ----------
        what : str
            ``"runs"``, ``"messages"`` or the name of a distribution, as for `table`.

        Returns
        -------
        pandas.DataFrame
            A row per run, message or value.

        Raises
        ------
        ValueError
            No run has that distribution.
        ImportError
            polars or pandas is not installed.
        """
        return to_pandas(self.table(what))

    def verdicts(self) -> list[Verdict]:
        """The claims and their verdicts.

        Returns
        -------
        list of Verdict
            One for each claim, in the order of the study.
        """
        return [_verdict(claim) for claim in self._page["claims"]]

    def figures(self) -> list[str]:
        """The titles of the figures.

        Returns
        -------
        list of str
            In the order of the study; `plot` takes them, or their numbers.
        """
        return [figure["title"] for figure in self._page["figures"]]

    def plot(self, figure: Union[int, str, None] = None) -> altair.TopLevelMixin:
        """Draws figures. In a notebook the chart can be moved and zoomed.

        Parameters
        ----------
        figure : int or str, optional
            The number of a figure, from 0, or its title; all of them, one below the other, unless given.

        Returns
        -------
        altair.TopLevelMixin
            A chart; ``chart.save("figure.svg")`` writes it, as ``.png`` and ``.html``, too.

        Raises
        ------
        ValueError
            The study has no such figure; the text has the titles of all.
        ImportError
            altair is not installed.
        """
        figures = self._page["figures"]
        if not figures:
            raise ValueError("the study has no figure: add some, or draw to_polars()")
        if figure is None:
            return plot(figures)
        titles = self.figures()
        if isinstance(figure, str):
            if figure not in titles:
                raise ValueError(f"there is no figure {figure!r}; there are {', '.join(map(repr, titles))}")
            figure = titles.index(figure)
        if not 0 <= figure < len(titles):
            raise ValueError(f"there is no figure {figure}; they are numbered from 0 to {len(titles) - 1}")
        return plot([figures[figure]])

    def report(self, path: Union[str, os.PathLike[str], None] = None) -> str:
        """The report as one HTML file.

        Parameters
        ----------
        path : path, optional
            The file to which it is written.

        Returns
        -------
        str
            The HTML.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        text = self._results.html()
        if path is not None:
            pathlib.Path(path).write_text(text, encoding="utf-8")
        return text

    def save(self, directory: Union[str, os.PathLike[str]] = "rexmit-results") -> pathlib.Path:
        """Writes what ``rexmit study run`` writes: the report, tables as Parquet, and the exact inputs.

        Parameters
        ----------
        directory : path
            Where the directory of the study is made.

        Returns
        -------
        pathlib.Path
            The directory of the study.

        Raises
        ------
        OSError
            It cannot be written.
        """
        return pathlib.Path(self._results.save(os.fspath(directory)))

    def __repr__(self) -> str:
        study = self._page["study"]
        failed = f", {len(self.failed)} failed" if self.failed else ""
        return f"<rexmit.lab.Results of {study['name']!r}: {self.found} runs found, {self.executed} executed{failed}>"

    def _repr_html_(self) -> str:
        rows = (
            f"<tr><td>{html.escape(it.verdict.replace('_', ' '))}</td><td>{html.escape(it.says)}</td></tr>"
            for it in self.verdicts()
        )
        return f"<p>{html.escape(repr(self)[1:-1])}</p><table>{''.join(rows)}</table>"

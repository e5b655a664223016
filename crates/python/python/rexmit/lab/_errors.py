"""Exceptions of the laboratory. Each text says what to do."""

from __future__ import annotations

from typing import Optional

from .._errors import RexmitError


class StudyError(RexmitError, ValueError):
    """A study has mistakes. The text has a line for each, with its place in the file.

    Attributes
    ----------
    mistakes : tuple of (int, int, str)
        Line and column, from 1, and what is wrong.
    study_text : str or None
        The text in which these places are, if it was made from dataclasses.
    """

    mistakes: tuple[tuple[int, int, str], ...] = ()
    study_text: Optional[str] = None


class UnknownStudyError(RexmitError, LookupError):
    """There is no study of this name in the package; the text has the nearest."""


class RunError(RexmitError, RuntimeError):
    """A run, or the sweep that it belongs to, has failed."""


class StoreError(RexmitError, OSError):
    """Results cannot be written."""


class WorkerVersionError(RexmitError, RuntimeError):
    """A worker has another version of rexmit than the process that planned the runs; the text has both."""

"""Frames of polars and pandas from tables."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .. import _rexmit

if TYPE_CHECKING:
    import pandas
    import polars


def optional(name: str) -> Any:
    """The module `name`, which the extra ``lab`` installs."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"{name} is not installed: pip install {name}, or pip install '.[lab]' in a clone of rexmit") from error


def to_polars(table: _rexmit.Table) -> polars.DataFrame:
    """`table` as a frame of polars, which shares its memory."""
    frame: polars.DataFrame = optional("polars").DataFrame(table)
    return frame


def to_pandas(table: _rexmit.Table) -> pandas.DataFrame:
    """`table` as a frame of pandas. It is a copy, which may be changed."""
    columns = to_polars(table).get_columns()
    arrays = {column.name: column.to_numpy() for column in columns}
    frame: pandas.DataFrame = optional("pandas").DataFrame(arrays, copy=True)
    return frame

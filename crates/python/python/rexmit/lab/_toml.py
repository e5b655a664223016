"""Writes the text of a study from dataclasses, so that one parser checks both."""

from __future__ import annotations

import dataclasses
import enum
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Union

Plain = Union[str, bool, int, float, list[Any], dict[str, Any]]

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")
_ESCAPED = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


def plain(value: object, place: str) -> Plain:
    """`value` of strings, numbers, lists and dictionaries only; ``None`` and empty parts of dataclasses are left out."""
    if isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{place} is {value}: it must be finite")
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        # `is_` is called so because `is` is a keyword.
        fields = ((field.name.rstrip("_"), getattr(value, field.name)) for field in dataclasses.fields(value))
        return {name: plain(part, f"{place}.{name}") for name, part in fields if not (part is None or part == () or part == {})}
    if isinstance(value, Mapping):
        table: dict[str, Any] = {}
        for name, part in value.items():
            if not isinstance(name, str):
                raise TypeError(f"{place} has the key {name!r}: names are str")
            if part is not None:
                table[name] = plain(part, f"{place}.{name}")
        return table
    if isinstance(value, (list, tuple)):
        return [plain(part, f"{place}[{number}]") for number, part in enumerate(value)]
    kind = type(value).__name__
    raise TypeError(f"{place} is of the type {kind}: use str, numbers, lists, dict or the dataclasses of rexmit.lab")


def _key(name: str) -> str:
    return name if _BARE.match(name) else _value(name)


def _value(value: Plain) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        characters = (_ESCAPED.get(c) or (c if c.isprintable() else f"\\U{ord(c):08x}") for c in value)
        return f'"{"".join(characters)}"'
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(name)} = {_value(part)}" for name, part in value.items()) + " }"
    return "[" + ", ".join(_value(part) for part in value) + "]"


def _is_tables(value: Plain) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _lines(table: dict[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    """The lines of a table whose header was written."""
    for name, value in table.items():
        if not isinstance(value, dict) and not _is_tables(value):
            yield f"{_key(name)} = {_value(value)}"
    for name, value in table.items():
        inner = (*path, name)
        header = ".".join(_key(part) for part in inner)
        if isinstance(value, dict):
            yield ""
            yield f"[{header}]"
            yield from _lines(value, inner)
        elif _is_tables(value):
            for item in value:
                yield ""
                yield f"[[{header}]]"
                yield from _lines(item, inner)


def dumps(table: dict[str, Any]) -> str:
    """The text of a table."""
    return "\n".join(_lines(table, ())) + "\n"

"""Docstrings of what the package exports have the sections of numpydoc."""

import inspect
import re

import pytest

import rexmit
from rexmit import lab

COMPILED = [rexmit.Endpoint, rexmit.Identity, rexmit.Trust, lab.Table]


def section(text, title):
    """The lines of a section; None if there is no such section."""
    match = re.search(rf"^{title}\n-{{{len(title)}}}\n(.*?)(?=^\S[^\n]*\n-+$|\Z)", inspect.cleandoc(text or ""), re.M | re.S)
    return match and match[1].splitlines()


def documented(text):
    """The names in the section of parameters, in their order."""
    lines = section(text, "Parameters") or []
    heads = [line.split(":")[0].strip() for line in lines if line and not line.startswith(" ")]
    return [name.lstrip("*") for head in heads for name in head.split(", ")]


def parameters(function):
    names = inspect.signature(function).parameters
    return [name for name in names if name not in ("self", "cls")]


def methods(kind):
    """The public methods of a class, with the static ones."""
    for name, value in vars(kind).items():
        if not name.startswith("_") and not isinstance(value, property) and callable(getattr(kind, name)):
            yield name, getattr(kind, name)


@pytest.mark.parametrize("kind", COMPILED, ids=lambda kind: kind.__name__)
def test_methods_of_compiled_classes_explain_their_parameters_and_results(kind):
    for name, method in methods(kind):
        assert documented(method.__doc__) == parameters(method), name
        lines = section(method.__doc__, "Parameters") or []
        # Each has a type, and a line that says what it is, with its unit.
        heads = [number for number, line in enumerate(lines) if line and not line.startswith(" ")]
        assert all(" : " in lines[number] and lines[number + 1].startswith("    ") for number in heads), name
        for title in ("Returns", "Raises"):
            assert section(method.__doc__, title) != [], name
        if "now" in parameters(method):
            assert "in seconds" in method.__doc__ and section(method.__doc__, "Raises"), name


def test_the_parameters_of_an_endpoint_are_those_of_its_class():
    assert documented(rexmit.Endpoint.__doc__) == parameters(rexmit.Endpoint)
    assert section(rexmit.Endpoint.__doc__, "Raises")


@pytest.mark.parametrize("kind", COMPILED, ids=lambda kind: kind.__name__)
def test_everything_public_of_compiled_classes_has_a_docstring(kind):
    assert len(kind.__doc__) > 40
    for name in dir(kind):
        if not name.startswith("_"):
            assert len(inspect.getattr_static(kind, name).__doc__ or getattr(kind, name).__doc__) > 15, name


def test_the_sections_are_found():
    text = "Sums.\n\nParameters\n----------\nfirst, second : int\n    Bytes.\n*rest : int\n    More.\n"
    text += "\nReturns\n-------\nint\n    Bytes."
    assert documented(text) == ["first", "second", "rest"]
    assert section(text, "Returns") == ["int", "    Bytes."] and section(text, "Raises") is None

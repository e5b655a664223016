"""Docstrings of what the package exports have the sections of numpydoc."""

import enum
import inspect
import re
import textwrap

import pytest

import rexmit
from rexmit import lab

COMPILED = [rexmit.Endpoint, rexmit.Identity, rexmit.Trust, lab.Table]
#: Classes that programs do not make themselves: their docstrings name the functions that do.
MADE = [rexmit.Association, rexmit.Server, rexmit.Stream, lab.Results]


def section(text, title):
    """The lines of a section; None if there is no such section."""
    match = re.search(rf"^{title}\n-{{{len(title)}}}\n(.*?)(?=^\S[^\n]*\n-+$|\Z)", inspect.cleandoc(text or ""), re.M | re.S)
    return match and match[1].splitlines()


def documented(text, title="Parameters"):
    """The names in the section of parameters, or in another one, in their order."""
    lines = section(text, title) or []
    heads = [line.split(":")[0].strip() for line in lines if line and not line.startswith(" ")]
    return [name.lstrip("*") for head in heads for name in head.split(", ")]


def parameters(function):
    names = inspect.signature(function).parameters
    return [name for name in names if name not in ("self", "cls") and not name.startswith("_")]


def methods(kind):
    """The public methods of a class, with the static ones."""
    for name, value in vars(kind).items():
        if not name.startswith("_") and not isinstance(value, property) and callable(getattr(kind, name)):
            yield name, getattr(kind, name)


def exported():
    """All that the package exports, with its name."""
    for module in (rexmit, lab):
        for name in module.__all__:
            value = getattr(module, name)
            if (inspect.isclass(value) or inspect.isroutine(value)) and value not in COMPILED:
                yield pytest.param(value, id=f"{module.__name__}.{name}")


def check_function(function, name):
    """That of a function which is written in Python."""
    text = function.__doc__
    assert text and documented(text) == parameters(function), name
    if inspect.signature(function).return_annotation != "None":
        assert len(section(text, "Returns") or []) >= 2, f"{name}: the type of the result, and what it is"
    if re.search(r"^ +raise ", inspect.getsource(function), re.M):
        assert section(text, "Raises"), name
    check_entries(text, name)


def check_entries(text, name):
    """Each entry has a type, and a line that says what it is."""
    for title in ("Parameters", "Attributes"):
        lines = section(text, title) or []
        for number, line in enumerate(lines):
            if line and not line.startswith(" "):
                assert " : " in line and lines[number + 1].startswith("    "), f"{name}: {line}"


@pytest.mark.parametrize("value", list(exported()))
def test_all_that_is_exported_names_its_parameters(value):
    if inspect.isroutine(value):
        check_function(value, value.__name__)
        return
    if issubclass(value, (Exception, enum.Enum)):
        assert len(value.__doc__) > 15
        return
    for name, method in methods(value):
        check_function(method, f"{value.__name__}.{name}")
    for name, member in vars(value).items():
        if isinstance(member, property) and not name.startswith("_"):
            assert len(member.__doc__ or "") > 10, f"{value.__name__}.{name}"
    if value in MADE:
        assert re.search("(made|created) by `", value.__doc__, re.I), value
    elif not getattr(value, "_is_protocol", False):
        # Of a dataclass or a class whose objects have the arguments as attributes, these.
        named = [documented(value.__doc__, title) for title in ("Parameters", "Attributes")]
        assert parameters(value) in named, f"{value.__name__}: {parameters(value)}, but documented are {named}"
        check_entries(value.__doc__, value.__name__)


def test_a_docstring_without_a_parameter_is_found():
    def half(first, second) -> "int":
        """Sums.

        Parameters
        ----------
        first : int
            A number.

        Returns
        -------
        int
            The sum.
        """

    with pytest.raises(AssertionError):
        check_function(half, "half")
    half.__doc__ = half.__doc__.replace("first :", "first, second :")
    check_function(half, "half")
    half.__doc__ = textwrap.dedent(half.__doc__).split("Returns")[0]
    with pytest.raises(AssertionError, match="the type of the result"):
        check_function(half, "half")


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

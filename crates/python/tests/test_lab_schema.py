"""The dataclasses have the fields of the study files: no file has more, and the parser knows no others."""

import collections.abc
import dataclasses
import inspect
import math
import pathlib
import re
import typing

import pytest

import lab_kit
from rexmit import lab

try:
    import tomllib
except ImportError:  # Python before 3.11
    import tomli as tomllib

ROOT = pathlib.Path(__file__).parents[3]
FILES = sorted((ROOT / "studies").glob("*.toml")) + sorted((ROOT / "studies/long").glob("*.toml"))
#: The tables of a study that have another name as parameters of `Study`.
TABLES = {"axis": lab.Axis, "claim": lab.Claim, "figure": lab.Figure}


def fields(kind):
    """The types of the fields of a dataclass by their names in files."""
    hints = typing.get_type_hints(kind)
    return {field.name.rstrip("_"): hints[field.name] for field in dataclasses.fields(kind)}


def unwrapped(hint):
    """The types of a value, without ``None``."""
    if typing.get_origin(hint) is typing.Union:
        return [each for each in typing.get_args(hint) if each is not type(None)]
    return [hint]


def disagreements(value, hint, place):
    """What of a value in a file the type of a dataclass's field does not allow. ``"{}"`` of an axis stands for any value."""
    hints = unwrapped(hint)
    if typing.Any in hints or (isinstance(value, str) and "{" in value):
        return
    for kind in hints:
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if isinstance(value, dict) and dataclasses.is_dataclass(kind):
            known = fields(kind)
            for name, part in value.items():
                if name in known:
                    yield from disagreements(part, known[name], f"{place}.{name}")
                else:
                    yield f"{place}: {kind.__name__} has no {name}"
            return
        if isinstance(value, dict) and origin is collections.abc.Mapping:
            for name, part in value.items():
                yield from disagreements(part, arguments[1], f"{place}.{name}")
            return
        if isinstance(value, list) and origin is collections.abc.Sequence:
            for number, part in enumerate(value):
                yield from disagreements(part, arguments[0], f"{place}[{number}]")
            return
        if origin is typing.Literal:
            if value in arguments:
                return
        elif isinstance(kind, type) and isinstance(value, (int, float) if kind is float else kind):
            return
    yield f"{place}: {value!r} is not one of {hints}"


def of_study(study):
    """The same of a whole file."""
    parameters = set(inspect.signature(lab.Study).parameters)
    for name, value in study.items():
        if name in TABLES:
            yield from disagreements(value, collections.abc.Sequence[TABLES[name]], name)
        elif name == "scenario":
            yield from disagreements(value, lab.Scenario, name)
        elif name not in parameters:
            yield f"Study has no {name}"
    for axis in study.get("axis", []):
        for point in [axis, *axis.get("point", [])]:
            yield from disagreements(point.get("set", {}), lab.Scenario, f"{axis['name']}.set")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_study_file_has_more_than_the_dataclasses(path):
    assert list(of_study(tomllib.loads(path.read_text(encoding="utf-8")))) == []


def test_a_file_that_has_more_is_found():
    study = tomllib.loads(lab_kit.study().text)
    assert not list(of_study(study))
    study["axis"][0]["point"][0]["set"]["thin"]["game"]["colour"] = "red"
    study["scenario"]["thin"]["game"]["transport"] = "carrier pigeon"
    study["scenario"]["second_network"] = {"forward": 3}
    assert len(list(of_study(study))) == 3


def built(value, hint):
    """The dataclasses that a file's value describes."""
    for kind in unwrapped(hint):
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if isinstance(value, dict) and dataclasses.is_dataclass(kind):
            known = fields(kind)
            return kind(**{"is_" if name == "is" else name: built(part, known[name]) for name, part in value.items()})
        if isinstance(value, dict) and origin is collections.abc.Mapping:
            return {name: built(part, arguments[1]) for name, part in value.items()}
        if isinstance(value, list) and origin is collections.abc.Sequence:
            return [built(part, arguments[0]) for part in value]
    return value


def runs(path):
    """The number of runs of a study file."""
    study = tomllib.loads(path.read_text(encoding="utf-8"))
    seeds = study["seeds"] if isinstance(study["seeds"], int) else len(study["seeds"])
    return seeds * math.prod(len(axis.get("point") or axis["values"]) for axis in study.get("axis", []))


#: The checks of a study grow with its cells, and so do the documents: the largest would take minutes.
NOT_LARGE = [path for path in FILES if runs(path) <= 5000]


def test_most_files_are_written_as_dataclasses():
    assert len(NOT_LARGE) > 0.9 * len(FILES)


@pytest.mark.parametrize("path", NOT_LARGE, ids=lambda path: path.stem)
def test_a_file_written_as_dataclasses_is_the_same_study(path):
    """Every field of a file passes through the dataclasses: the documents of the runs are the same."""
    read = lab.Study.load(path)
    assert len(read) == runs(path)
    table = tomllib.loads(read.text)
    settings = {name: value for name, value in table.items() if name not in (*TABLES, "scenario")}
    lists = {"axes": "axis", "claims": "claim", "figures": "figure"}
    settings.update((name, [built(it, TABLES[key]) for it in table.get(key, [])]) for name, key in lists.items())
    made = lab.Study(**settings, scenario=built(table["scenario"], lab.Scenario), name=read.name)
    assert (made.axes, made.seeds, len(made)) == (read.axes, read.seeds, len(read))
    # Empty lists and tables are the default.
    assert tomllib.loads(made.text) == {name: value for name, value in table.items() if value != []}


#: The parser's message about an unknown field: all names, or their number.
ALL = re.compile(r"unknown field `nothing_like_this`; (?:known: (?P<names>.*)|(?P<count>\d+) are known)")
#: The places of the dataclasses in a scenario, and what they need there.
PLACES = {
    lab.Scenario: ({}, ()),
    lab.Network: ({"forward": "delay 1ms"}, ("network",)),
    lab.Change: ({"at": "1s"}, ("network", "changes", 0)),
    lab.ThinFlow: ({"traffic": "every 250ms size 100"}, ("thin", "it")),
    lab.Receiver: ({}, ("thin", "it", "receiver")),
    lab.BulkFlow: ({}, ("bulk", "it")),
    lab.WebFlow: ({}, ("web", "it")),
    lab.UdpFlow: ({"traffic": "every 250ms size 100"}, ("udp", "it")),
}


def mistakes_with(place, needed, name, value):
    """The mistakes of a scenario that has at `place` a table with this field."""
    # One without a flow would have another mistake.
    scenario = {"duration": "1s", "network": {"forward": "delay 1ms"}, "thin": {"other": {"traffic": "every 250ms size 100"}}}
    inner = scenario
    for part in place:
        if part == 0:
            inner.append({})
            inner = inner[0]
        else:
            inner = inner.setdefault(part, [] if part == "changes" else {})
            if place[:1] == ("thin",) and part == "it":
                inner["traffic"] = "every 250ms size 100"
    inner.update(needed)
    inner[name] = value
    text = lab._toml.dumps({"title": "x", "seeds": 1, "scenario": scenario})
    try:
        lab.Study.from_text(text)
    except lab.StudyError as error:
        return [what for _, _, what in error.mistakes]
    return []


@pytest.mark.parametrize("kind", PLACES, ids=lambda kind: kind.__name__)
def test_the_parser_knows_the_fields_of_a_dataclass_and_no_others(kind):
    needed, place = PLACES[kind]
    known = fields(kind)
    for name in known:
        mistakes = mistakes_with(place, needed, name, {"nothing_like_this": 1})
        assert mistakes and not any(f"unknown field `{name}`" in what for what in mistakes)
    (what,) = mistakes_with(place, needed, "nothing_like_this", 1)
    found = ALL.match(what)
    assert found, what
    if found["names"]:
        assert sorted(re.findall("`(.*?)`", found["names"])) == sorted(known)
    else:
        assert int(found["count"]) == len(known)


def test_a_flow_between_hosts_of_a_kernel_can_be_written():
    text = lab.Study(
        title="x",
        scenario=lab.Scenario(
            duration="10s",
            clock="kernel",
            network=lab.Network("delay 50ms"),
            thin={"game": lab.ThinFlow("every 250ms size 100", transport="tcp")},
            hosts={"game": lab.KernelHosts("linux-6.12", {"net.ipv4.tcp_congestion_control": "bbr"})},
        ),
    ).text
    hosts = tomllib.loads(text)["scenario"]["hosts"]
    assert hosts == {"game": {"kernel": "linux-6.12", "sysctl": {"net.ipv4.tcp_congestion_control": "bbr"}}}

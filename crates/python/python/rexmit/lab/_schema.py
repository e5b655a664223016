"""The parts of a study as dataclasses, with the names of the study files.

Times are text such as ``"250ms"`` or ``"2h"``, sizes ``"64kb"``, paths as netem writes them (``"delay 50ms loss 5%"``),
traffic ``"every 250ms size 100"``, ``"trace ssh"``, ``"application skype"`` or `Capture.traffic`. ``None`` leaves the
default. They are checked when the study is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Optional, Union

Transport = Literal["sctp", "tcp", "dcsctp", "sctp-proto", "kcp", "quinn"]
Over = Literal["first", "second", "both"]


@dataclass(frozen=True)
class Change:
    """A change of the shared path, from the time `at` on."""

    at: str
    forward: Optional[str] = None
    backward: Optional[str] = None


@dataclass(frozen=True)
class Network:
    """The path between the ends of all flows: `forward` from their senders to their receivers, `backward` (the same)
    back, and the paths between hosts and routers."""

    forward: str
    backward: Optional[str] = None
    edge: Optional[str] = None
    receiver_edge: Optional[str] = None
    changes: Sequence[Change] = ()


@dataclass(frozen=True)
class Receiver:
    """The receiving end of a flow."""

    profile: Optional[str] = None
    ack_delay: Optional[str] = None
    ack_copies: Optional[str] = None
    receive_buffer: Optional[str] = None
    recovery: Optional[Mapping[str, Any]] = None


@dataclass(frozen=True)
class ThinFlow:
    """A stream of messages over one connection, or over several of the same kind."""

    traffic: str
    connections: Optional[int] = None
    transport: Optional[Transport] = None
    encapsulation: Optional[Literal["none", "udp"]] = None
    profile: Optional[str] = None
    recovery: Optional[Mapping[str, Any]] = None
    mtu: Optional[str] = None
    send_buffer: Optional[str] = None
    unordered: Optional[bool] = None
    transfer: Optional[bool] = None
    nagle: Optional[bool] = None
    receiver: Optional[Receiver] = None
    start: Optional[str] = None
    over: Optional[Over] = None
    edge: Optional[str] = None
    bounds: Sequence[Literal["reactive", "doubled", "bundled", "bundled_once"]] = ()
    late: Sequence[str] = ()


@dataclass(frozen=True)
class BulkFlow:
    """A greedy transfer over one connection."""

    transport: Optional[Literal["sctp", "tcp"]] = None
    profile: Optional[str] = None
    recovery: Optional[Mapping[str, Any]] = None
    mtu: Optional[str] = None
    send_buffer: Optional[str] = None
    unordered: Optional[bool] = None
    background: Optional[bool] = None
    receiver: Optional[Receiver] = None
    start: Optional[str] = None
    over: Optional[Over] = None
    edge: Optional[str] = None


@dataclass(frozen=True)
class WebFlow:
    """Web clients and their server, over TCP."""

    count: Optional[int] = None
    interval: Optional[str] = None
    min_bytes: Optional[int] = None
    mean_bytes: Optional[float] = None
    max_bytes: Optional[int] = None
    profile: Optional[str] = None
    recovery: Optional[Mapping[str, Any]] = None
    start: Optional[str] = None
    over: Optional[Over] = None
    edge: Optional[str] = None


@dataclass(frozen=True)
class UdpFlow:
    """Packets over UDP."""

    traffic: str
    packet_bytes: Optional[int] = None
    start: Optional[str] = None
    over: Optional[Over] = None
    edge: Optional[str] = None


@dataclass(frozen=True)
class KernelHosts:
    """The hosts at both ends of a flow: network namespaces of the kernel `kernel`, such as ``"linux-6.12"``, with the settings
    `sysctl`, such as ``{"net.ipv4.tcp_congestion_control": "cubic"}``."""

    kernel: str
    sysctl: Optional[Mapping[str, Union[str, int]]] = None


@dataclass(frozen=True)
class Scenario:
    """One run: a network, flows by name, and a duration. The names of quantities begin with those of the flows:
    ``game.latency.p99``. The command alone runs the clocks ``"real"`` and ``"kernel"``, from a file with `Study.text`; `hosts`
    has, by the names of flows, their hosts in a kernel or only its name."""

    duration: str
    network: Network
    thin: Mapping[str, ThinFlow] = field(default_factory=dict)
    bulk: Mapping[str, BulkFlow] = field(default_factory=dict)
    web: Mapping[str, WebFlow] = field(default_factory=dict)
    udp: Mapping[str, UdpFlow] = field(default_factory=dict)
    second_network: Optional[Network] = None
    drain: Optional[str] = None
    rows: Optional[bool] = None
    bin: Optional[str] = None
    draws: Optional[str] = None
    clock: Optional[Literal["virtual", "real", "kernel"]] = None
    hosts: Mapping[str, Union[str, KernelHosts]] = field(default_factory=dict)


@dataclass(frozen=True)
class Point:
    """A point of an axis: `set` has the fields of the scenario that it sets, as nested dictionaries."""

    label: str
    set: Mapping[str, Any] = field(default_factory=dict)
    number: Optional[float] = None


@dataclass(frozen=True)
class Axis:
    """A dimension of a sweep: points, or `values` that replace ``"{}"`` in `set`."""

    name: str
    point: Sequence[Point] = ()
    values: Optional[Sequence[Union[str, float]]] = None
    set: Optional[Mapping[str, Any]] = None
    labels: Optional[Sequence[str]] = None
    numbers: Optional[Sequence[float]] = None
    unit: Optional[str] = None


@dataclass(frozen=True)
class Claim:
    """A statement that the results confirm or refute. The book's page "Write a study" explains the fields; `is_` is ``is``
    there."""

    says: str
    quantity: Union[str, Sequence[str]]
    is_: str
    at: Optional[Mapping[str, Any]] = None
    than: Optional[Union[float, Mapping[str, Any]]] = None
    by: Optional[float] = None
    tolerance: Optional[float] = None
    along: Optional[str] = None
    over: Optional[Union[str, Sequence[str]]] = None
    distance: Optional[float] = None
    grain: Optional[float] = None
    averaged: Optional[Union[str, Sequence[str]]] = None
    largest: Optional[Union[str, Sequence[str]]] = None
    gain_over: Optional[Mapping[str, Any]] = None
    loss_against: Optional[Mapping[str, Any]] = None
    pooled: Optional[bool] = None
    paper: Optional[str] = None


@dataclass(frozen=True)
class Figure:
    """A figure of the results. The book's page "Write a study" explains the fields."""

    title: str
    kind: Literal["lines", "bars", "stacked-bars", "scatter", "cdf", "ccdf", "series"]
    x: Optional[Union[str, Sequence[str]]] = None
    y: Optional[Union[str, Sequence[Any]]] = None
    about: Optional[str] = None
    at: Optional[Mapping[str, Any]] = None
    averaged: Optional[Union[str, Sequence[str]]] = None
    largest: Optional[Union[str, Sequence[str]]] = None
    gain_over: Optional[Mapping[str, Any]] = None
    loss_against: Optional[Mapping[str, Any]] = None
    beside: Optional[Sequence[Mapping[str, Any]]] = None
    source: Optional[Sequence[Mapping[str, Any]]] = None
    seed: Optional[int] = None
    x_axis: Optional[Mapping[str, Any]] = None
    y_axis: Optional[Mapping[str, Any]] = None

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
    """A change of the shared path.

    Parameters
    ----------
    at : str
        The time of the change.
    forward, backward : str, optional
        The paths from then on (unchanged); ``"loss 100%"`` for a failure.
    """

    at: str
    forward: Optional[str] = None
    backward: Optional[str] = None


@dataclass(frozen=True)
class Network:
    """The path between the ends of all flows.

    Parameters
    ----------
    forward : str
        The path from the senders of the flows to their receivers.
    backward : str, optional
        The path back (the same).
    edge : str, optional
        The path, in both directions, between the sender of a flow and its router (perfect).
    receiver_edge : str, optional
        The path, in both directions, between the receiver of every flow and its router (perfect).
    changes : sequence of Change
        Changes of the shared path over time.
    """

    forward: str
    backward: Optional[str] = None
    edge: Optional[str] = None
    receiver_edge: Optional[str] = None
    changes: Sequence[Change] = ()


@dataclass(frozen=True)
class Receiver:
    """The receiving end of a flow.

    Parameters
    ----------
    profile : str, optional
        Its recovery profile, which matters during the handshake (that of the sender).
    ack_delay : str, optional
        The delay of its acknowledgements (200 ms for SCTP, 40 ms for TCP).
    ack_copies : str, optional
        SCTP: the sender asks for a second copy of each SACK, which is sent this time after the first (no copies).
    receive_buffer : str, optional
        The size of its receive buffer (1 MiB).
    recovery : mapping, optional
        Fields that replace those of the profile.
    """

    profile: Optional[str] = None
    ack_delay: Optional[str] = None
    ack_copies: Optional[str] = None
    receive_buffer: Optional[str] = None
    recovery: Optional[Mapping[str, Any]] = None


@dataclass(frozen=True)
class ThinFlow:
    """A stream of messages over one connection, or over several of the same kind.

    Parameters
    ----------
    traffic : str
        The times and sizes of the messages.
    connections : int, optional
        Connections, each with its own messages, all measured together; they start within one second (1, at most 1024).
    transport : str, optional
        ``"sctp"`` (the default) or ``"tcp"``; with the feature ``rivals`` another implementation.
    encapsulation : str, optional
        ``"udp"`` puts SCTP packets into UDP, 8 bytes more per packet (``"none"``).
    profile : str, optional
        The recovery profile of the sender (that of the standard: ``rfc9260`` or ``tcp-sack``).
    recovery : mapping, optional
        Fields that replace those of the profile.
    mtu : str, optional
        The largest IP packet (1252 bytes for SCTP, 1500 for TCP).
    send_buffer : str, optional
        The size of the send buffer: accepted and unacknowledged data (1 MiB).
    unordered : bool, optional
        Whether messages are delivered unordered (False; SCTP).
    transfer : bool, optional
        Whether a greedy transfer uses another stream of the association, with a lower priority (False; SCTP).
    nagle : bool, optional
        Whether Nagle's algorithm is enabled (False; TCP).
    receiver : Receiver, optional
        The receiving end.
    start : str, optional
        When its connection is opened; the first message is due when it is established (0).
    over : str, optional
        The networks that it uses: ``"first"`` (the default), ``"second"``, or ``"both"`` for SCTP.
    edge : str, optional
        The path between its sender and the router (that of the network).
    bounds : sequence of str
        Theoretical bounds with which its latency is compared.
    late : sequence of str
        Latency limits; the share of messages that exceed each is measured.
    """

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
    """A greedy transfer over one connection.

    Parameters
    ----------
    transport : str, optional
        ``"sctp"`` (the default) or ``"tcp"``.
    profile : str, optional
        The recovery profile of the sender (that of the standard).
    recovery : mapping, optional
        Fields that replace those of the profile.
    mtu : str, optional
        The largest IP packet (that of the transport).
    send_buffer : str, optional
        The size of the send buffer: accepted and unacknowledged data (1 MiB).
    unordered : bool, optional
        Whether messages, one per packet, are delivered unordered (False; SCTP).
    background : bool, optional
        Whether only its goodput is measured, which makes runs with many flows faster (False).
    receiver : Receiver, optional
        The receiving end.
    start : str, optional
        When its connection is opened (0).
    over : str, optional
        The networks that it uses: ``"first"`` (the default), ``"second"``, or ``"both"`` for SCTP.
    edge : str, optional
        The path between its sender and the router (that of the network).
    """

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
    """Web clients and their server, over TCP: each request has a connection of its own. The defaults are the load of Petlund 2009
    §6.2.

    Parameters
    ----------
    count : int, optional
        Clients (81).
    interval : str, optional
        The mean time between two requests of a client (655 ms).
    min_bytes, mean_bytes, max_bytes : optional
        The smallest, mean and largest file in bytes (1000, 9200 and 64,000,000).
    profile : str, optional
        The recovery profile of the server (``tcp-sack``).
    recovery : mapping, optional
        Fields that replace those of the profile.
    start : str, optional
        When the requests begin (0).
    over : str, optional
        The networks that it uses: ``"first"`` (the default), ``"second"``, or ``"both"`` for SCTP.
    edge : str, optional
        The path between the server and the router (that of the network).
    """

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
    """Packets over UDP, without retransmission or congestion control.

    Parameters
    ----------
    traffic : str
        The times and sizes of the messages.
    packet_bytes : int, optional
        The largest payload of a packet in bytes; larger messages are sent in several (1472).
    start : str, optional
        When it begins (0).
    over : str, optional
        The networks that it uses: ``"first"`` (the default), ``"second"``, or ``"both"`` for SCTP.
    edge : str, optional
        The path between its sender and the router (that of the network).
    """

    traffic: str
    packet_bytes: Optional[int] = None
    start: Optional[str] = None
    over: Optional[Over] = None
    edge: Optional[str] = None


@dataclass(frozen=True)
class KernelHosts:
    """The hosts at both ends of a flow: network namespaces of a kernel.

    Parameters
    ----------
    kernel : str
        Such as ``"linux-6.12"``.
    sysctl : mapping, optional
        Settings, such as ``{"net.ipv4.tcp_congestion_control": "cubic"}``.
    """

    kernel: str
    sysctl: Optional[Mapping[str, Union[str, int]]] = None


@dataclass(frozen=True)
class Scenario:
    """One run: a network, flows by name, and a duration. The names of quantities begin with those of the flows:
    ``game.latency.p99``.

    Parameters
    ----------
    duration : str
        The length of the sending phase.
    network : Network
        The network between the ends of all flows.
    thin : mapping of str to ThinFlow
        Thin streams, by name.
    bulk : mapping of str to BulkFlow
        Greedy transfers, by name.
    web : mapping of str to WebFlow
        Web clients and their server, by name.
    udp : mapping of str to UdpFlow
        UDP packets, by name.
    second_network : Network, optional
        A second network: flows over both have an address on each.
    drain : str, optional
        The time limit for outstanding data to arrive at the end (300 s).
    rows : bool, optional
        Whether the results have a row per message; memory then grows with the run (False).
    bin : str, optional
        The length of the bins in which goodput is counted (100 ms).
    draws : str, optional
        A label that is mixed into the seed, so that scenarios with different labels draw different random numbers.
    clock : str, optional
        ``"virtual"`` (the default); the command alone runs ``"real"`` and ``"kernel"``, from a file with `Study.text`.
    hosts : mapping of str to KernelHosts or str
        For the clock ``"kernel"``, by the names of flows: their hosts in a kernel, or only its name.
    """

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
    """A point of an axis.

    Parameters
    ----------
    label : str
        Its name in tables and figures.
    set : mapping
        The fields of the scenario that it sets, as nested dictionaries.
    number : float, optional
        Its place on the horizontal axis of figures.
    """

    label: str
    set: Mapping[str, Any] = field(default_factory=dict)
    number: Optional[float] = None


@dataclass(frozen=True)
class Axis:
    """A dimension of a sweep: points, or values.

    Parameters
    ----------
    name : str
        Its name, a column in tables.
    point : sequence of Point
        Its points.
    values : sequence of str or float, optional
        Instead of points: what replaces ``"{}"`` in `set`.
    set : mapping, optional
        The fields of the scenario that the values set, as nested dictionaries.
    labels : sequence of str, optional
        The labels of the values (the values with their unit).
    numbers : sequence of float, optional
        The places of the values on the horizontal axis of figures.
    unit : str, optional
        The unit of the values, such as ``"ms"``.
    """

    name: str
    point: Sequence[Point] = ()
    values: Optional[Sequence[Union[str, float]]] = None
    set: Optional[Mapping[str, Any]] = None
    labels: Optional[Sequence[str]] = None
    numbers: Optional[Sequence[float]] = None
    unit: Optional[str] = None


@dataclass(frozen=True)
class Claim:
    """A statement that the results confirm or refute. The book's page "Write a study" explains how claims are judged.

    Parameters
    ----------
    says : str
        The statement.
    quantity : str or sequence of str
        What is compared, such as ``"game.latency.p99"``; or several.
    is_ : str
        The comparison, ``is`` in files: ``"below"``, ``"above"``, ``"at most"``, ``"at least"``, ``"within"``,
        ``"like"``, ``"rising"``, ``"falling"``, ``"not falling"``, ``"not rising"`` or ``"level"``.
    at : mapping, optional
        The point, or several: labels by axis.
    than : float or mapping, optional
        The right side: a number, or what differs from the left side.
    by : float, optional
        The least difference, in the unit of the quantity.
    tolerance : float, optional
        The share by which the sides may differ.
    along : str, optional
        The axis of steps, for ``"rising"`` and its like.
    over : str or sequence of str or float, optional
        The labels or values of that axis, in this order (all).
    distance : float, optional
        The largest Kolmogorov–Smirnov distance, from 0 to 1, for ``"like"``.
    grain : float, optional
        Values are rounded to its multiples first, for ``"like"``.
    averaged, largest : str or sequence of str, optional
        Axes over whose points the mean, or the largest value, is taken, for every seed.
    gain_over, loss_against : mapping, optional
        Another point: values become the share by which they exceed it, or are below it.
    pooled : bool, optional
        Whether the values of all seeds are taken together (False).
    paper : str, optional
        What the source states.
    """

    says: str
    quantity: Union[str, Sequence[str]]
    is_: str
    at: Optional[Mapping[str, Any]] = None
    than: Optional[Union[float, Mapping[str, Any]]] = None
    by: Optional[float] = None
    tolerance: Optional[float] = None
    along: Optional[str] = None
    over: Optional[Union[str, Sequence[Union[str, float]]]] = None
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
    """A figure of the results. The book's page "Write a study" explains the kinds.

    Parameters
    ----------
    title : str
        Its title.
    kind : str
        ``"lines"``, ``"bars"``, ``"stacked-bars"``, ``"scatter"``, ``"cdf"``, ``"ccdf"`` or ``"series"``.
    x : str or sequence of str, optional
        An axis, categories, a quantity or a distribution, by the kind.
    y : str or sequence, optional
        The quantities that are drawn.
    about : str, optional
        A text below the title.
    at : mapping, optional
        The point, or several: labels by axis.
    averaged, largest : str or sequence of str, optional
        Axes over whose points the mean, or the largest value, is taken, for every seed.
    gain_over, loss_against : mapping, optional
        Another point: values become the share by which they exceed it, or are below it.
    pooled : bool, optional
        Whether the values of all seeds are taken together (False), for ``"lines"`` and ``"bars"``.
    beside : sequence of mapping, optional
        Other distributions to draw, for ``"cdf"`` and ``"ccdf"``.
    source : sequence of mapping, optional
        Values that the source states, drawn as marks.
    seed : int, optional
        The run that is drawn, for ``"series"`` (the first).
    x_axis, y_axis : mapping, optional
        ``label``, ``log`` and ``range``.
    """

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
    pooled: Optional[bool] = None
    beside: Optional[Sequence[Mapping[str, Any]]] = None
    source: Optional[Sequence[Mapping[str, Any]]] = None
    seed: Optional[int] = None
    x_axis: Optional[Mapping[str, Any]] = None
    y_axis: Optional[Mapping[str, Any]] = None

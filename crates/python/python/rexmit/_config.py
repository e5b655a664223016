"""Profiles and settings."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Literal, Optional, Union

ProfileName = Literal[
    "interactive",
    "interactive-bundling",
    "interactive-redundant",
    "interactive-multipath",
    "rfc9260",
    "rack",
    "bulk",
    "mixed",
    "rr",
    "thin",
    "thin-2009",
    "thin-bundling",
    "thin-rr",
    "f-rto",
    "lksctp",
    "linux",
    "freebsd",
    "freebsd-efr",
]


class Profile(str, enum.Enum):
    """The recovery profile: how losses of the data sent by this side are recovered.

    ``interactive``, the default, is for small messages at a low rate that are needed in time. The book's page
    "Choose a profile" describes the others.
    """

    interactive = "interactive"
    interactive_bundling = "interactive-bundling"
    interactive_redundant = "interactive-redundant"
    interactive_multipath = "interactive-multipath"
    rfc9260 = "rfc9260"
    rack = "rack"
    bulk = "bulk"
    mixed = "mixed"
    rr = "rr"
    thin = "thin"
    thin_2009 = "thin-2009"
    thin_bundling = "thin-bundling"
    thin_rr = "thin-rr"
    f_rto = "f-rto"
    lksctp = "lksctp"
    linux = "linux"
    freebsd = "freebsd"
    freebsd_efr = "freebsd-efr"


AnyProfile = Union[Profile, ProfileName]

SchedulingName = Literal[
    "round-robin",
    "round-robin-per-packet",
    "first-come-first-served",
    "priority",
    "fair-bandwidth",
    "weighted-fair-queueing",
]


class Scheduling(str, enum.Enum):
    """The order in which streams send (the stream schedulers of RFC 8260 §3). Within a stream it is always the order
    in which messages were accepted.

    ``priority``: the stream with the highest priority that has anything to send; ``weighted_fair_queueing``: bytes in
    proportion to the priorities. The others ignore priorities.
    """

    round_robin = "round-robin"
    round_robin_per_packet = "round-robin-per-packet"
    first_come_first_served = "first-come-first-served"
    priority = "priority"
    fair_bandwidth = "fair-bandwidth"
    weighted_fair_queueing = "weighted-fair-queueing"


AnyScheduling = Union[Scheduling, SchedulingName]


@dataclass(frozen=True)
class Budget:
    """The most that redundant copies may cost, measured over the last some hundred packets. ``None`` is no limit.

    Parameters
    ----------
    packets : int, optional
        Packets with copies only, in percent of packets with new data, from 1.
    bytes : int, optional
        Copied bytes, in percent of new ones, from 1.
    """

    packets: Optional[int] = None
    bytes: Optional[int] = None


_MAX_MESSAGE_BYTES = 262_144


@dataclass(frozen=True)
class Config:
    """Settings of associations. ``None`` leaves the default, which is given in parentheses.

    Parameters
    ----------
    outbound_streams : int, optional
        Outgoing streams to request (16).
    max_inbound_streams : int, optional
        Incoming streams to accept (2048).
    max_message_bytes : int, optional
        The largest message in bytes, in and out (262,144, or `receive_buffer_bytes` if that is less).
    max_packet_bytes : int, optional
        The largest SCTP packet in bytes (1232).
    send_buffer_bytes : int, optional
        Bytes accepted and not yet acknowledged, at most (1,048,576).
    receive_buffer_bytes : int, optional
        Bytes received and not yet taken by the application, at most (1,048,576).
    dead_after : float, optional
        A peer that is silent for this long while data is sent to it is unreachable, in seconds; 0 leaves it to the
        counters of RFC 9260 (15 s with the interactive profiles, else 0).
    heartbeat_interval : float, optional
        HB.interval in seconds; 0 sends no HEARTBEAT (30 s).
    max_init_retransmits : int, optional
        Max.Init.Retransmits (8).
    report_sent : bool, optional
        Report each message whose last chunk was sent, as `MessageSent` (False).
    report_acknowledged : bool, optional
        Report each message that the peer has acknowledged, as `MessageAcknowledged` (False).
    scheduling : str or Scheduling, optional
        The order in which streams send ("round-robin").
    interleaving : bool, optional
        Offer to interleave messages of different streams (I-DATA, RFC 8260), so that a large one delays those of other
        streams by one chunk (True with the interactive profiles, else False).
    within : float, optional
        The deadline of messages that have none of their own: the seconds within which they should arrive. Together with
        `probability` (none).
    probability : float, optional
        The probability with which they should arrive in time, above 0 and below 1 (none).
    budget : Budget, optional
        What redundant copies may cost (that of the profile).
    recovery : str, optional
        Single settings of recovery that replace those of the profile, as TOML with the names and values of the table
        ``recovery`` in study files: ``"rto.min = '200ms'"``. ``rexmit profiles`` explains them (none).
    """

    outbound_streams: Optional[int] = None
    max_inbound_streams: Optional[int] = None
    max_message_bytes: Optional[int] = None
    max_packet_bytes: Optional[int] = None
    send_buffer_bytes: Optional[int] = None
    receive_buffer_bytes: Optional[int] = None
    dead_after: Optional[float] = None
    heartbeat_interval: Optional[float] = None
    max_init_retransmits: Optional[int] = None
    report_sent: Optional[bool] = None
    report_acknowledged: Optional[bool] = None
    scheduling: Optional[AnyScheduling] = None
    interleaving: Optional[bool] = None
    within: Optional[float] = None
    probability: Optional[float] = None
    budget: Optional[Budget] = None
    recovery: Optional[str] = None

    def __post_init__(self) -> None:
        # A message must fit into the receive buffer. Values that are no sizes are refused where the settings are used.
        buffer = self.receive_buffer_bytes
        if self.max_message_bytes is None and isinstance(buffer, int) and 0 < buffer < _MAX_MESSAGE_BYTES:
            object.__setattr__(self, "max_message_bytes", buffer)

"""Messages and events: small immutable values, to match on their classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, Optional, Union

Address = Union[tuple[str, int], tuple[str, int, int, int]]


class Message(NamedTuple):
    """A message of the peer.

    Attributes
    ----------
    payload : bytes
        The content.
    stream : int
        The incoming stream, from 0.
    ppid : int
        Payload protocol identifier as the peer's application gave it.
    unordered : bool
        Whether it was sent outside the order of its stream.
    """

    payload: bytes
    stream: int
    ppid: int
    unordered: bool


@dataclass(frozen=True)
class Event:
    """Base of all events. Later versions may add events: ignore those that you do not know."""


@dataclass(frozen=True)
class Connected(Event):
    """The association is established. `incoming`: the peer initiated it. `peer_fingerprint`: that of the certificate
    which the peer has proved to be its own; ``None`` without encryption."""

    incoming: bool
    peer: Address
    outbound_streams: int
    inbound_streams: int
    peer_fingerprint: Optional[str] = None


@dataclass(frozen=True)
class Readable(Event):
    """`Endpoint.receive` has a message again. Reported once until everything was received."""


@dataclass(frozen=True)
class Writable(Event):
    """There is room in the send buffer again, after `BufferFullError`."""


@dataclass(frozen=True)
class MessageSent(Event):
    """The last chunk of a message was sent. Only with ``Config(report_sent=True)``."""

    message: int


@dataclass(frozen=True)
class MessageAcknowledged(Event):
    """Every chunk of a message is acknowledged. Only with ``Config(report_acknowledged=True)``."""

    message: int


@dataclass(frozen=True)
class MessageFailed(Event):
    """A message will not be delivered, or it is not known whether it was. `was_begun`: a part of it was sent."""

    message: int
    reason: Literal["expired", "retransmission-limit", "no-such-stream", "association-ended", "other"]
    was_begun: bool
    stream: int
    payload: bytes


@dataclass(frozen=True)
class MessageDropped(Event):
    """A message of the peer was dropped, although it was acknowledged: it is larger than
    ``Config(max_message_bytes=…)``, or filled the receive buffer together with other incomplete messages."""

    stream: int
    ppid: int
    unordered: bool


@dataclass(frozen=True)
class Infeasible(Event):
    """Messages sent from now on do not meet their deadline with the requested probability: it is shorter than the path's
    delay, or would need more copies than the budget has. `achievable`: the probability at the present loss rate.
    Reported again only after the deadline could be met for a while."""

    achievable: float


@dataclass(frozen=True)
class PeerShutdown(Event):
    """The peer accepts no more messages; those in flight are still delivered."""


@dataclass(frozen=True)
class PeerRestarted(Event):
    """The peer has restarted: unacknowledged messages have failed, and streams begin again at 0."""


@dataclass(frozen=True)
class StreamsReset(Event):
    """Our outgoing streams were reset (empty: all), or the peer refused."""

    streams: tuple[int, ...]
    performed: bool


@dataclass(frozen=True)
class PeerResetStreams(Event):
    """The peer has reset its outgoing streams (empty: all)."""

    streams: tuple[int, ...]


@dataclass(frozen=True)
class PathStatus(Event):
    """The state of a path has changed."""

    path: int
    address: Address
    state: Literal["unconfirmed", "active", "potentially-failed", "inactive", "removed"]


@dataclass(frozen=True)
class DataPathChanged(Event):
    """New data is sent over another path from now on."""

    path: int
    address: Address


@dataclass(frozen=True)
class PeerError(Event):
    """The peer reported an error: a cause code of RFC 9260 §3.3.10."""

    cause: int


@dataclass(frozen=True)
class EventsDropped(Event):
    """The oldest events were dropped, this many, because the application did not read them."""

    events: int


CloseReason = Literal["shutdown", "aborted", "aborted-by-peer", "unreachable", "connect-timed-out", "other"]


@dataclass(frozen=True)
class Closed(Event):
    """The last event of an association.

    Attributes
    ----------
    reason : str
        ``"shutdown"`` (gracefully), ``"aborted"`` (here), ``"aborted-by-peer"``, ``"unreachable"`` or
        ``"connect-timed-out"``.
    text : str
        The same in English.
    detail : bytes
        The reason given by the side that aborted; if a handshake failed, an English text that names the side that refused.
    cause : int
        The first cause code of the peer's ABORT (RFC 9260 §3.3.10), or 0.
    """

    reason: CloseReason
    text: str
    detail: bytes
    cause: int

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
    """The association is established.

    Attributes
    ----------
    incoming : bool
        Whether the peer initiated it.
    peer : tuple
        The UDP address of the peer.
    outbound_streams, inbound_streams : int
        Streams in each direction.
    peer_fingerprint : str or None
        That of the certificate which the peer has proved to be its own; ``None`` without encryption.
    """

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
    """The last chunk of a message was sent. Only with ``Config(report_sent=True)``.

    Attributes
    ----------
    message : int
        The number that `send` has returned.
    """

    message: int


@dataclass(frozen=True)
class MessageAcknowledged(Event):
    """Every chunk of a message is acknowledged. Only with ``Config(report_acknowledged=True)``.

    Attributes
    ----------
    message : int
        The number that `send` has returned.
    """

    message: int


@dataclass(frozen=True)
class MessageFailed(Event):
    """A message will not be delivered, or it is not known whether it was.

    Attributes
    ----------
    message : int
        The number that `send` has returned.
    reason : str
        ``"expired"`` (its lifetime), ``"retransmission-limit"``, ``"no-such-stream"`` (the peer accepts fewer),
        ``"association-ended"`` or ``"other"``.
    was_begun : bool
        Whether a part of it was sent.
    stream : int
        Its outgoing stream, from 0.
    payload : bytes
        The content.
    """

    message: int
    reason: Literal["expired", "retransmission-limit", "no-such-stream", "association-ended", "other"]
    was_begun: bool
    stream: int
    payload: bytes


@dataclass(frozen=True)
class MessageDropped(Event):
    """A message of the peer was dropped, although it was acknowledged: it is larger than
    ``Config(max_message_bytes=…)``, or filled the receive buffer together with other incomplete messages.

    Attributes
    ----------
    stream : int
        Its incoming stream, from 0.
    ppid : int
        Its payload protocol identifier.
    unordered : bool
        Whether it was sent outside the order of its stream.
    """

    stream: int
    ppid: int
    unordered: bool


@dataclass(frozen=True)
class Infeasible(Event):
    """Messages sent from now on do not meet their deadline with the requested probability: it is shorter than the path's
    delay, or would need more copies than the budget has. Reported again only after the deadline could be met for a while.

    Attributes
    ----------
    achievable : float
        The probability of arriving in time at the present loss rate, from 0 to 1.
    """

    achievable: float


@dataclass(frozen=True)
class PeerShutdown(Event):
    """The peer accepts no more messages; those in flight are still delivered."""


@dataclass(frozen=True)
class PeerRestarted(Event):
    """The peer has restarted: unacknowledged messages have failed, and streams begin again at 0."""


@dataclass(frozen=True)
class StreamsReset(Event):
    """Our outgoing streams were reset, or the peer refused.

    Attributes
    ----------
    streams : tuple of int
        Their numbers; empty for all.
    performed : bool
        Whether they were reset; if not, the peer has refused.
    """

    streams: tuple[int, ...]
    performed: bool


@dataclass(frozen=True)
class PeerResetStreams(Event):
    """The peer has reset its outgoing streams.

    Attributes
    ----------
    streams : tuple of int
        Their numbers; empty for all.
    """

    streams: tuple[int, ...]


@dataclass(frozen=True)
class PathStatus(Event):
    """The state of a path has changed.

    Attributes
    ----------
    path : int
        Its number, from 0.
    address : tuple
        The UDP address of the peer.
    state : str
        ``"unconfirmed"``, ``"active"``, ``"potentially-failed"``, ``"inactive"`` or ``"removed"``.
    """

    path: int
    address: Address
    state: Literal["unconfirmed", "active", "potentially-failed", "inactive", "removed"]


@dataclass(frozen=True)
class DataPathChanged(Event):
    """New data is sent over another path from now on.

    Attributes
    ----------
    path : int
        Its number, from 0.
    address : tuple
        The UDP address of the peer.
    """

    path: int
    address: Address


@dataclass(frozen=True)
class PeerError(Event):
    """The peer reported an error.

    Attributes
    ----------
    cause : int
        The cause code of RFC 9260 §3.3.10.
    """

    cause: int


@dataclass(frozen=True)
class EventsDropped(Event):
    """The oldest events were dropped, because the application did not read them.

    Attributes
    ----------
    events : int
        How many.
    """

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

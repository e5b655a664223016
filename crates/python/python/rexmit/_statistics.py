"""Counters, from the start of an association, and its present state. Times are in seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Optional

from ._events import Address


@dataclass(frozen=True)
class ByCause:
    """Retransmitted DATA chunks by cause.

    Attributes
    ----------
    timeout : int
        The retransmission timer (T3-rtx) expired.
    fast_retransmit : int
        Fast retransmit: by missing reports, or RACK.
    bundled : int
        Unacknowledged data bundled with another retransmission.
    window_probe : int
        Probes of a closed receive window.
    early : int
        Early fast retransmit, with few packets in flight.
    redundant : int
        Redundant copies, bundled with new data or alone, which are no retransmissions.
    probe : int
        The probe timer of a thin stream expired.
    """

    timeout: int
    fast_retransmit: int
    bundled: int
    window_probe: int
    early: int
    redundant: int
    probe: int

    @property
    def total(self) -> int:
        """Retransmissions of every cause, without redundant copies."""
        return self.timeout + self.fast_retransmit + self.bundled + self.window_probe + self.early + self.probe


@dataclass(frozen=True)
class PathStatistics:
    """One path of an association.

    Attributes
    ----------
    local, remote : tuple
        The UDP addresses of this side and of the peer.
    state : str
        ``"unconfirmed"``, ``"active"``, ``"potentially-failed"``, ``"inactive"`` or ``"removed"``.
    is_primary : bool
        Whether it is the primary path.
    errors : int
        Timeouts and unanswered HEARTBEATs in a row (RFC 9260 §8.2).
    srtt : float or None
        The smoothed round-trip time in seconds; ``None`` if none was measured.
    rto : float
        The retransmission timeout in seconds.
    cwnd, ssthresh : int
        The congestion window and the slow-start threshold in bytes.
    packets_in_flight, bytes_in_flight : int
        Unacknowledged data.
    packets, packets_lost : int
        Packets with data: sent, and declared lost.
    timeouts : int
        Expiries of the retransmission timer.
    """

    local: Address
    remote: Address
    state: Literal["unconfirmed", "active", "potentially-failed", "inactive", "removed"]
    is_primary: bool
    errors: int
    srtt: Optional[float]
    rto: float
    cwnd: int
    ssthresh: int
    packets_in_flight: int
    bytes_in_flight: int
    packets: int
    packets_lost: int
    timeouts: int


@dataclass(frozen=True)
class Statistics:
    """An association, from its start on.

    Attributes
    ----------
    packets_sent, bytes_sent, packets_received, bytes_received : int
        SCTP packets and their bytes.
    messages_accepted, messages_delivered, messages_failed : int
        Messages accepted for sending, delivered to this application, and those that failed.
    payload_accepted_bytes, payload_delivered_bytes : int
        The bytes of the messages.
    duplicates_received : int
        DATA chunks received more than once.
    sacks_sent, sacks_received : int
        Acknowledgements (SACK chunks).
    marks_received, echoes_received : int
        Packets with data received that a router had marked (ECN), and reports that packets sent were marked.
    send_buffered_bytes, receive_buffered_bytes : int
        Bytes now in the buffers: accepted and not acknowledged; received and not taken by the application.
    packets_lost, timeouts : int
        Packets with data declared lost, and expiries of the retransmission timer, of all paths.
    retransmitted, spurious : ByCause
        Retransmitted chunks, and those of them whose original had arrived.
    is_thin : bool
        Whether the stream is thin now: the mechanisms for thin streams apply.
    paths : tuple of PathStatistics
        The paths.
    """

    packets_sent: int
    bytes_sent: int
    packets_received: int
    bytes_received: int
    messages_accepted: int
    messages_delivered: int
    messages_failed: int
    payload_accepted_bytes: int
    payload_delivered_bytes: int
    duplicates_received: int
    sacks_sent: int
    sacks_received: int
    marks_received: int
    echoes_received: int
    send_buffered_bytes: int
    receive_buffered_bytes: int
    packets_lost: int
    timeouts: int
    retransmitted: ByCause
    spurious: ByCause
    is_thin: bool
    paths: tuple[PathStatistics, ...]

"""Counters, from the start of an association, and its present state. Times are in seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Optional

from ._events import Address


@dataclass(frozen=True)
class ByCause:
    """Retransmitted DATA chunks by cause. Redundant copies are no retransmissions."""

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

    `srtt` (``None`` if it was not measured) and `rto` are in seconds, `cwnd`, `ssthresh` and `bytes_in_flight` in
    bytes; `packets` and `packets_lost` count packets with data, `timeouts` expiries of the retransmission timer.
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
    """An association. Bytes sent and received are those of SCTP packets, payload bytes those of messages."""

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
    send_buffered_bytes: int
    receive_buffered_bytes: int
    packets_lost: int
    timeouts: int
    retransmitted: ByCause
    spurious: ByCause
    is_thin: bool
    paths: tuple[PathStatistics, ...]

"""What captures show of loss recovery."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Union

from .. import _rexmit
from ._frames import to_pandas, to_polars

if TYPE_CHECKING:
    import pandas
    import polars


@dataclass(frozen=True)
class CaptureAnalysis:
    """The loss recovery in a capture; ``print(analysis)`` shows it as tables.

    Attributes
    ----------
    capture : str
        The name of the capture.
    directions : tuple of dict
        For each direction of each connection with data: ``flow``, ``protocol``, ``direction``, ``is_exact`` (whether losses are
        known from the receiver's packets, or estimated from ACKs), and the groups ``sent``, ``repeated`` (by cause),
        ``redundancy``, ``acks``, ``path``, ``latency`` and ``by_retransmissions``, as ``rexmit trace analyse --json`` prints
        them. Times are in milliseconds where the name ends with ``_ms``.
    ranges : Table
        A row per range of data that was always sent together: its flow, when it was sent (s), acknowledged and received (ms
        later), and why it was sent again.
    """

    capture: str
    directions: tuple[dict[str, Any], ...]
    ranges: _rexmit.Table = field(repr=False)
    _text: str = field(repr=False)

    def to_polars(self) -> polars.DataFrame:
        """The ranges as a frame of polars, which shares their memory.

        Returns
        -------
        polars.DataFrame
            A row per range, with the columns of `ranges`.

        Raises
        ------
        ImportError
            polars is not installed.
        """
        return to_polars(self.ranges)

    def to_pandas(self) -> pandas.DataFrame:
        """The ranges as a frame of pandas. It is a copy, which may be changed.

        Returns
        -------
        pandas.DataFrame
            A row per range, with the columns of `ranges`.

        Raises
        ------
        ImportError
            polars or pandas is not installed.
        """
        return to_pandas(self.ranges)

    def __str__(self) -> str:
        return self._text


def analyse(
    path: Union[str, os.PathLike[str]],
    other_end: Union[str, os.PathLike[str], None] = None,
) -> CaptureAnalysis:
    """Analyses the loss recovery in a capture of TCP, or of SCTP that is not encrypted.

    Parameters
    ----------
    path : path
        A capture (pcap, pcapng), of the sender at best.
    other_end : path, optional
        A capture of the same time at the other end of the connections: with it, losses, spurious retransmissions and the
        latency to arrival and delivery are known instead of estimated.

    Returns
    -------
    CaptureAnalysis
        Latency per byte, retransmissions by cause, duplicate ACKs, redundant copies, losses and round-trip times.

    Raises
    ------
    ValueError
        If a file is no valid capture, or has no such data.
    OSError
        If a file cannot be read.
    """
    other = None if other_end is None else os.fspath(other_end)
    found, text, ranges = _rexmit.analyse_capture(os.fspath(path), other)
    analysis = json.loads(found)
    return CaptureAnalysis(analysis["capture"], tuple(analysis["directions"]), ranges, text)

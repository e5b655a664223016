"""Messages of captured traffic."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Union

from .. import _rexmit


@dataclass(frozen=True)
class Capture:
    """The messages of one side of a connection.

    Attributes
    ----------
    flow : int
        The number of the connection in the file.
    direction : str
        ``"c2s"`` from the side that connected, ``"s2c"`` from the other.
    messages : tuple of (int, int)
        The time of each in microseconds, and its bytes.
    """

    flow: int
    direction: Literal["c2s", "s2c"]
    messages: tuple[tuple[int, int], ...]

    @property
    def seconds(self) -> float:
        """The time between the first message and the last."""
        return (self.messages[-1][0] - self.messages[0][0]) / 1e6

    @property
    def traffic(self) -> str:
        """The traffic of a flow that sends these messages, and begins again after the last."""
        return "messages " + " ".join(f"{at}:{size}" for at, size in self.messages)

    def until(self, seconds: float) -> Capture:
        """The messages of the beginning.

        Parameters
        ----------
        seconds : float
            The time after the first message, above 0.

        Returns
        -------
        Capture
            The messages before that time.

        Raises
        ------
        ValueError
            `seconds` is not above 0.
        """
        if not seconds > 0:
            raise ValueError(f"seconds is {seconds}: it must be above zero")
        end = self.messages[0][0] + seconds * 1e6
        return Capture(self.flow, self.direction, tuple(it for it in self.messages if it[0] < end))

    def __repr__(self) -> str:
        return f"<rexmit.lab.Capture: flow {self.flow} {self.direction}, {len(self.messages)} messages in {self.seconds:.1f} s>"


def read_capture(path: Union[str, os.PathLike[str]]) -> list[Capture]:
    """Reads a trace (CSV with the columns ``trace,flow_id,direction,time_us,payload_bytes``) or a capture (pcap, pcapng),
    which may be compressed by gzip.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    list of Capture
        One for each direction of each connection that has messages.

    Raises
    ------
    ValueError
        If it is no valid trace; the text has the line or packet.
    OSError
        If the file cannot be read.
    """
    return [Capture(flow, side, tuple(messages)) for flow, side, messages in _rexmit.read_trace(os.fspath(path))]


def messages(pairs: Iterable[tuple[float, int]]) -> str:
    """The traffic of a flow that sends these messages.

    Parameters
    ----------
    pairs : iterable of (float, int)
        The time of each message in seconds, in ascending order, and its bytes.

    Returns
    -------
    str
        For `ThinFlow.traffic` or `simulate`; times are rounded to microseconds. The flow begins again after the last message.
    """
    return "messages " + " ".join(f"{round(at * 1e6)}:{size}" for at, size in pairs)

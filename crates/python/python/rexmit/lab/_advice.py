"""Which profile to choose for captured traffic."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from typing import Literal, Optional, Union

from .. import _rexmit
from ._results import Results
from ._study import Study
from ._sweep import Executor, Report


@dataclass(frozen=True)
class ProfileCost:
    """The gain and the cost of a profile.

    Attributes
    ----------
    profile : str
        Its name.
    is_rival : bool
        Whether it is another implementation, for comparison.
    p50_ms, p99_ms, p999_ms, max_ms : float
        Percentiles (50, 99, 99.9) and the maximum of the latency from the intended sending to the delivery, in milliseconds.
    packets_per_message : float
        Packets of both hosts, acknowledgements included.
    bytes_per_byte : float
        Bytes of these packets, headers included, per byte of payload.
    """

    profile: str
    is_rival: bool
    p50_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float
    packets_per_message: float
    bytes_per_byte: float


@dataclass(frozen=True)
class Advice:
    """Which profile to choose; ``print(advice)`` shows it as a table and a sentence.

    Attributes
    ----------
    title, about : str
        What was asked, and the path: given, estimated or assumed.
    recommended : str or None
        The profile with the lowest 99.9th percentile of latency among those that are not too expensive.
    rows : tuple of ProfileCost
        All profiles that were compared, the standard first.
    results : Results
        The runs, with the distributions: ``advice.results.plot("Latency")``, ``advice.results.report("advice.html")``.
    """

    title: str
    about: str
    recommended: Optional[str]
    rows: tuple[ProfileCost, ...]
    results: Results = field(repr=False)
    _text: str = field(repr=False)

    def __str__(self) -> str:
        return self._text


def _seconds(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    # A whole number may be too large for a float.
    if not 0 <= value <= sys.float_info.max:
        raise ValueError(f"{name} is {value}: it must be finite, and at least 0")
    return float(value)


def advise(
    path: Union[str, os.PathLike[str]],
    *,
    rtt: Optional[float] = None,
    loss: Optional[float] = None,
    link: Optional[str] = None,
    direction: Literal["c2s", "s2c"] = "s2c",
    flow: Optional[int] = None,
    ordered: bool = False,
    seeds: int = 5,
    max_cost: float = 2.0,
    executor: Optional[Executor] = None,
    progress: Union[bool, Report] = True,
    store: Union[str, os.PathLike[str], None] = None,
) -> Advice:
    """Replays captured traffic under several profiles, and says which to choose.

    Parameters
    ----------
    path : path
        A capture (pcap, pcapng) or a trace (CSV), as for `read_capture`; at most ten minutes of it are replayed.
    rtt, loss : float, optional
        The round-trip time of the path in seconds (at most 10), and the share of packets lost in each direction, from 0 to 1. By
        default they are estimated from the ACKs in a capture of TCP or of unencrypted SCTP (losses with their bursts);
        without ACKs they are 0.1 s and 0.02. `Advice.about` says which.
    link : str, optional
        Both directions of the path in netem's notation, instead of `rtt` and `loss`.
    direction : str
        The side whose messages are replayed: ``"s2c"`` for the server's, ``"c2s"`` for the client's.
    flow : int, optional
        The number of the connection whose messages are replayed (that with the most messages).
    ordered : bool
        Whether messages are delivered in order.
    seeds : int
        Runs per profile, from 1 to 1000.
    max_cost : float
        The most bytes that a recommended profile may send, as a multiple of those of ``rfc9260``.
    executor, progress, store : optional
        As for `Study.run`.

    Returns
    -------
    Advice
        The recommended profile, and the latencies and costs of all.

    Raises
    ------
    ValueError
        If the file is not a valid trace, has no such messages, or a parameter is not valid.
    TypeError
        If a parameter is not of its type.
    OSError
        If the file cannot be read, or results cannot be written (`StoreError`).
    """
    if direction not in ("c2s", "s2c"):
        raise ValueError(f"direction is {direction!r}: choose 'c2s' or 's2c'")
    if rtt is not None:
        rtt = _seconds("rtt", rtt)
        if rtt > 10:
            raise ValueError(f"rtt is {rtt:g}: it is in seconds, and at most 10")
    max_cost = _seconds("max_cost", max_cost)
    if link is not None and (rtt is not None or loss is not None):
        raise ValueError("link was given beside rtt or loss: it has the delay and the losses of both directions")
    if loss is not None and _seconds("loss", loss) > 1:
        raise ValueError(f"loss is {loss}: it is a share, from 0 to 1")
    if isinstance(seeds, bool) or not isinstance(seeds, int):
        raise TypeError(f"seeds must be an int, not {type(seeds).__name__}")
    if not 1 <= seeds <= 1000:
        raise ValueError(f"seeds is {seeds}: it must be from 1 to 1000")
    study = _rexmit.advice_study(
        os.fspath(path),
        rtt=rtt,
        loss=loss,
        link=link,
        flow=flow,
        from_client=direction == "c2s",
        ordered=ordered,
        seeds=seeds,
    )
    results = Study._of(study).run(executor, progress, store=store)
    text, found = results._results.advice(max_cost)
    advice = json.loads(found)
    rows = tuple(ProfileCost(**row) for row in advice["rows"])
    return Advice(advice["title"], advice["about"], advice["recommended"], rows, results, text)

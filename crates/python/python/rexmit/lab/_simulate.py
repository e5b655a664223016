"""Single runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Optional, Union

from .. import _rexmit
from ._frames import to_pandas, to_polars
from ._schema import Network, Receiver, Scenario, ThinFlow, Transport
from ._toml import plain

if TYPE_CHECKING:
    import pandas
    import polars


class Run:
    """What one run has measured. Made by `simulate` and `run_scenario`.

    Attributes
    ----------
    quantities : dict of str to float
        Such as ``"flow.latency.p99"``; times in milliseconds.
    distributions : dict of str to (list of float, list of int)
        Ascending values, and how often each occurred.
    packets : Table
        A row per packet: ``flow``, ``direction`` ("forward" from the sender), ``sent_s``, ``arrived_s`` (missing if lost),
        ``lost`` (why), ``bytes`` as an IP packet, ``payload_bytes``, ``repeated_bytes`` (those sent before:
        retransmissions and copies), ``sequence`` (TSN or TCP sequence number of the first data) and ``acknowledged``.
    messages : Table
        A row per message: ``flow``, ``message`` (its number in the connection), ``bytes``, ``intended_s``, ``transport_ms``
        from then until it arrived and ``application_ms`` until it was delivered (missing if it was not), and
        ``transmissions`` until it arrived (missing if not measured).
    """

    def __init__(
        self,
        quantities: dict[str, float],
        distributions: dict[str, tuple[list[float], list[int]]],
        packets: _rexmit.Table,
        messages: _rexmit.Table,
    ) -> None:
        self.quantities = quantities
        self.distributions = distributions
        self.packets = packets
        self.messages = messages

    def table(self, what: str = "packets") -> _rexmit.Table:
        """A table for any library that reads Arrow's PyCapsule interface, without copies.

        Parameters
        ----------
        what : str
            ``"packets"`` or ``"messages"``.

        Returns
        -------
        Table
            A row per packet or message, as `packets` and `messages`.

        Raises
        ------
        ValueError
            There is no such table.
        """
        tables = {"packets": self.packets, "messages": self.messages}
        if what not in tables:
            raise ValueError(f"there is no table {what!r}: choose 'packets' or 'messages'")
        return tables[what]

    def to_polars(self, what: str = "packets") -> polars.DataFrame:
        """A table as a frame of polars, which shares its memory.

        Parameters
        ----------
        what : str
            ``"packets"`` or ``"messages"``.

        Returns
        -------
        polars.DataFrame
            A row per packet or message.

        Raises
        ------
        ValueError
            There is no such table.
        ImportError
            polars is not installed.
        """
        return to_polars(self.table(what))

    def to_pandas(self, what: str = "packets") -> pandas.DataFrame:
        """A table as a frame of pandas. It is a copy, which may be changed.

        Parameters
        ----------
        what : str
            ``"packets"`` or ``"messages"``.

        Returns
        -------
        pandas.DataFrame
            A row per packet or message.

        Raises
        ------
        ValueError
            There is no such table.
        ImportError
            polars or pandas is not installed.
        """
        return to_pandas(self.table(what))

    def __repr__(self) -> str:
        return f"<rexmit.lab.Run: {len(self.packets)} packets, {len(self.messages)} messages>"


def run_scenario(scenario: Scenario, seed: int = 1) -> Run:
    """Runs a scenario in virtual time. The same scenario and seed give the same packets.

    Parameters
    ----------
    scenario : Scenario
        The network, the flows and the duration.
    seed : int
        Of all randomness, from 0 to 2⁶⁴ - 1.

    Returns
    -------
    Run
        Quantities, distributions, packets, and messages if the scenario has ``rows=True``.

    Raises
    ------
    ValueError
        If the scenario cannot be run; the text has all problems.
    TypeError
        If `scenario` is no `Scenario`.
    RunError
        If the run fails.
    """
    if not isinstance(scenario, Scenario):
        raise TypeError(f"scenario must be a rexmit.lab.Scenario, not {type(scenario).__name__}")
    # A field per line, by which errors are located.
    text = json.dumps(plain(scenario, "scenario"), indent=1)
    return Run(*_rexmit.simulate(text, seed))


def simulate(
    *,
    link: Union[str, Network] = "delay 50ms loss 5%",
    traffic: str = "every 100ms size 100",
    profile: Optional[str] = None,
    duration: str = "60s",
    seed: int = 1,
    transport: Transport = "sctp",
    unordered: bool = False,
    recovery: Optional[Mapping[str, Any]] = None,
    receiver: Optional[Receiver] = None,
) -> Run:
    """Runs one stream, called ``flow``, over a link in virtual time.

    Parameters
    ----------
    link : str or Network
        Both directions, as netem writes them: ``"delay 50ms loss 5%"``.
    traffic : str
        ``"every 250ms size 100"``, ``"trace ssh"``, ``"application skype"`` or `Capture.traffic`.
    profile : str, optional
        Of the sender (``interactive``, over TCP ``tcp-interactive``).
    duration : str
        For which it sends.
    seed : int
        Of all randomness, from 0 to 2⁶⁴ - 1; the same seed loses the same packets.
    transport : str
        ``"sctp"`` or ``"tcp"``; with the feature ``rivals`` also ``"dcsctp"``, ``"sctp-proto"``, ``"kcp"`` and ``"quinn"``.
    unordered : bool
        Whether messages are delivered as soon as they are complete (SCTP), instead of in order.
    recovery : mapping, optional
        Fields that replace those of the profile.
    receiver : Receiver, optional
        The receiving end: its profile, acknowledgement delay and buffer.

    Returns
    -------
    Run
        The quantities of ``flow``, and a row per packet and message.

    Raises
    ------
    ValueError
        If an argument is not valid; an unknown profile is reported with the nearest.
    TypeError
        If `link` or `traffic` is not of its type.
    RunError
        If the run fails, as with another implementation that was not built.
    """
    if isinstance(link, str):
        link = Network(forward=link)
    if not isinstance(link, Network):
        raise TypeError(f"link must be text such as 'delay 50ms loss 5%' or a rexmit.lab.Network, not {type(link).__name__}")
    if not isinstance(traffic, str):
        raise TypeError(f"traffic must be text such as 'every 100ms size 100', not {type(traffic).__name__}")
    if profile is None and transport in ("sctp", "tcp"):
        profile = "tcp-interactive" if transport == "tcp" else "interactive"
    flow = ThinFlow(
        traffic=traffic,
        transport=transport,
        profile=profile,
        unordered=unordered or None,
        recovery=recovery,
        receiver=receiver,
    )
    return run_scenario(Scenario(duration=duration, network=link, thin={"flow": flow}, rows=True), seed)

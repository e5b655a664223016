"""Connecting."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Generator
from types import TracebackType
from typing import Callable, Optional, Union, cast

from ._association import Association, check_timeout
from ._config import AnyProfile, Config
from ._errors import ConnectError, ConnectTimeoutError
from ._events import Address
from ._rexmit import Endpoint, Identity, Trust
from ._transport import Transport, open_socket

CONNECT_TIMEOUT = 10.0
SCTP_PORT = 5000


class Connecting:
    """The return value of `connect`: to be awaited, or entered with ``async with``."""

    def __init__(
        self,
        host: str,
        port: int,
        make: Callable[[], Endpoint],
        timeout: float,
        sctp_port: int,
    ) -> None:
        check_address(host, port)
        check_timeout(timeout)
        check_port("sctp_port", sctp_port)
        self._host, self._port, self._sctp_port = host, port, sctp_port
        self._make, self._timeout = make, timeout
        self._association: Optional[Association] = None
        self._is_entered = False
        # Bad settings are reported where they were given. Each address of the peer gets an endpoint of its own.
        self._made: Optional[Endpoint] = make()

    def __await__(self) -> Generator[object, None, Association]:
        return self._connect().__await__()

    async def __aenter__(self) -> Association:
        if self._is_entered:
            raise RuntimeError("this connection was entered before: call rexmit.connect again")
        self._is_entered = True
        self._association = await self._connect()
        return self._association

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        if self._association is not None:
            await self._association.__aexit__(kind, error, traceback)

    async def _connect(self) -> Association:
        loop = asyncio.get_running_loop()
        until = loop.time() + self._timeout
        try:
            found = await asyncio.wait_for(loop.getaddrinfo(self._host, self._port, type=socket.SOCK_DGRAM), self._timeout)
        except asyncio.TimeoutError:
            raise self._timed_out(f"the name {self._host!r} was not resolved") from None
        except (OSError, UnicodeError) as error:
            raise ConnectError(f"{self._host!r} is no host: {host_error(error)}") from None
        failed: Optional[ConnectError] = None
        for index, (family, _, _, _, address) in enumerate(found):
            # The addresses share the time that is left.
            limit = max(until - loop.time(), 0.0) / (len(found) - index)
            try:
                return await self._try(loop, family, cast(Address, address), limit)
            except ConnectError as error:
                failed = error
        raise failed or ConnectError(f"{self._host!r} has no address")

    async def _try(self, loop: asyncio.AbstractEventLoop, family: int, remote: Address, limit: float) -> Association:
        where = f"{self._host} ({remote[0]}), UDP port {self._port}"
        opened = open_socket(family)
        try:
            opened.connect(remote)
        except OSError as error:
            opened.close()
            raise ConnectError(f"{where} cannot be reached: {error.strerror}") from None
        made, self._made = self._made, None
        transport = Transport(loop, opened, made or self._make())
        association: Optional[Association] = None
        try:
            association = transport.connect(remote, self._sctp_port)
            await asyncio.wait_for(association._set_up(), limit)
            refused = association._setup_error(where)
            if refused is None:
                return association
            raise refused
        except BaseException as error:
            if association is not None:
                association._abandon(b"")
            transport.close()
            if isinstance(error, asyncio.TimeoutError):
                raise self._timed_out(f"{where} did not answer") from None
            raise

    def _timed_out(self, what: str) -> ConnectTimeoutError:
        return ConnectTimeoutError(
            f"{what} within {self._timeout:g} s: check the address, firewalls, and that a server runs there"
            " which encrypts as this side does"
        )


def check_address(host: object, port: object) -> None:
    """Whether these are a host and a UDP port."""
    if not isinstance(host, str):
        raise TypeError(f"host must be a str such as 'localhost', not {type(host).__name__}")
    check_port("port", port)


def check_port(name: str, port: object) -> None:
    """Whether this is the number of a port."""
    if not isinstance(port, int) or isinstance(port, bool):
        raise TypeError(f"{name} must be an int, not {type(port).__name__}")
    if not 0 <= port <= 65_535:
        raise ValueError(f"{name} is {port}; it must be from 0 to 65535")


def host_error(error: Union[OSError, UnicodeError]) -> str:
    """Why a name was not resolved."""
    # The encoding of international names raises UnicodeError.
    if isinstance(error, UnicodeError):
        return "it is too long, or has characters that no name has"
    return error.strerror or str(error)


def connect(
    host: str,
    port: int,
    trust: Union[Trust, str],
    *,
    identity: Optional[Identity] = None,
    profile: AnyProfile = "interactive",
    config: Optional[Config] = None,
    timeout: float = CONNECT_TIMEOUT,
    sctp_port: int = SCTP_PORT,
) -> Connecting:
    """Sets up an association over UDP, encrypted by DTLS 1.3: ``async with rexmit.connect(…) as association``, which ends
    it, or ``association = await rexmit.connect(…)``.

    Parameters
    ----------
    host : str
        A name or an address of the peer.
    port : int
        Its UDP port.
    trust : str or Trust
        The fingerprint of the peer's certificate, or which of several it may be. With `Trust.anyone` a host in between
        can impersonate the peer.
    identity : Identity, optional
        The identity of this side, for peers that trust certain certificates only. Default: a new one for this association.
    profile : str or Profile
        How loss is recovered of what this side sends.
    config : Config, optional
        Other settings.
    timeout : float
        The time limit for the setup, in seconds.
    sctp_port : int
        The peer's SCTP port, inside UDP.

    Returns
    -------
    Connecting
        Awaited or entered it is the `Association`; awaited again it sets up another one.

    Raises
    ------
    ConnectError
        When awaited: the peer refused, or cannot be reached.
    HandshakeError
        When awaited: one side refused the other's certificate; the text says which, and has the fingerprint.
    ConnectTimeoutError
        When awaited: the peer did not answer in time.
    ValueError
        A number is out of range, `trust` is no fingerprint, or the settings contradict each other. An unknown profile is an
        `UnknownProfileError`.
    TypeError
        An argument is not of its type.
    """

    def make() -> Endpoint:
        return Endpoint(profile, trust=trust, identity=identity, config=config)

    return Connecting(host, port, make, timeout, sctp_port)


def connect_unencrypted(
    host: str,
    port: int,
    *,
    profile: AnyProfile = "interactive",
    config: Optional[Config] = None,
    timeout: float = CONNECT_TIMEOUT,
    sctp_port: int = SCTP_PORT,
) -> Connecting:
    """As `connect`, for peers that speak plain SCTP over UDP (RFC 6951), or inside a tunnel: a host on the
    path can read and change the data.

    Parameters
    ----------
    host : str
        A name or an address of the peer.
    port : int
        Its UDP port.
    profile : str or Profile
        How loss is recovered of what this side sends.
    config : Config, optional
        Other settings.
    timeout : float
        The time limit for the setup, in seconds.
    sctp_port : int
        The peer's SCTP port, inside UDP.

    Returns
    -------
    Connecting
        Awaited or entered it is the `Association`; awaited again it sets up another one.

    Raises
    ------
    ConnectError
        When awaited: the peer refused, or cannot be reached.
    ConnectTimeoutError
        When awaited: the peer did not answer in time, or it encrypts.
    ValueError
        A number is out of range, or the settings contradict each other. An unknown profile is an `UnknownProfileError`.
    TypeError
        An argument is not of its type.
    """

    def make() -> Endpoint:
        return Endpoint.unencrypted(profile, config=config)

    return Connecting(host, port, make, timeout, sctp_port)

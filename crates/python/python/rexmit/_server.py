"""Serving."""

from __future__ import annotations

import asyncio
import functools
import inspect
import socket
from collections.abc import Awaitable, Generator
from types import TracebackType
from typing import Callable, Optional, Union

from ._association import SHUTDOWN_TIMEOUT, Association, check_timeout
from ._client import SCTP_PORT, check_address, host_error
from ._config import AnyProfile, Config
from ._errors import ClosedError
from ._events import Address
from ._rexmit import Endpoint, Identity, Trust
from ._transport import Transport, open_socket

Handler = Callable[[Association], Awaitable[object]]

_ANYONE = Trust.anyone()


class Server:
    """A server, created by `serve`."""

    def __init__(self, opened: socket.socket, endpoint: Endpoint, handler: Handler) -> None:
        self._loop = asyncio.get_running_loop()
        self._handler = handler
        self._tasks: dict[Association, asyncio.Task[None]] = {}
        self._is_closing = False
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self._transport = Transport(self._loop, opened, endpoint, self._on_accepted)

    @property
    def address(self) -> Address:
        """The UDP address to which the server is bound; the port is its second item."""
        return self._transport.local

    @property
    def fingerprint(self) -> Optional[str]:
        """The fingerprint by which clients authenticate the server; ``None`` without encryption."""
        return self._transport.endpoint.fingerprint

    @property
    def associations(self) -> tuple[Association, ...]:
        """The associations whose handlers are running."""
        return tuple(self._tasks)

    async def serve_forever(self) -> None:
        """Waits until the server is closed. Cancellation ends the wait, not the server.

        Raises
        ------
        RuntimeError
            The event loop was closed before the server.
        """
        self._check_loop()
        await asyncio.shield(self._closed)

    async def close(self, timeout: float = SHUTDOWN_TIMEOUT) -> None:
        """Shuts all associations down, waits for their handlers, and closes the socket. A handler may call it.

        Parameters
        ----------
        timeout : float
            Seconds in which a peer acknowledges nothing, after which its association is aborted. Handlers that do not return
            within as many seconds then are cancelled.

        Raises
        ------
        ValueError
            The time limit is negative or no number.
        TypeError
            The time limit is no `int` or `float`.
        RuntimeError
            The event loop was closed before the server.
        """
        check_timeout(timeout)
        self._check_loop()
        if not self._is_closing:
            self._is_closing = True
            try:
                ends = [association.shutdown(timeout) for association in tuple(self._tasks)]
                await asyncio.gather(*ends)
                # They see the end of their association.
                if others := self._others():
                    await asyncio.wait(others, timeout=timeout)
            finally:
                for association in tuple(self._tasks):
                    association._abandon(b"the server is closed")
                self._transport.close()
                # Otherwise this coroutine was not finished when the event loop was closed.
                if not self._loop.is_closed():
                    for task in self._others():
                        task.cancel()
                    self._closed.set_result(None)
            if others := self._others():
                await asyncio.wait(others)
        await asyncio.shield(self._closed)

    def _check_loop(self) -> None:
        if not self._closed.done() and self._loop.is_closed():
            raise RuntimeError("the event loop of this server is closed: serve in a new one")

    def _others(self) -> list[asyncio.Task[None]]:
        """The tasks of handlers but for the one that runs now."""
        current = asyncio.current_task()
        return [task for task in self._tasks.values() if task is not current]

    async def __aenter__(self) -> Server:
        return self

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        await self.close()

    def _on_accepted(self, association: Association) -> None:
        if self._is_closing:
            # Not at once: the transport is reading events.
            self._loop.call_soon(association.abort, b"the server is closing")
            return
        task = self._loop.create_task(self._handle(association))
        self._tasks[association] = task
        task.add_done_callback(lambda _: self._tasks.pop(association, None))

    async def _handle(self, association: Association) -> None:
        try:
            await self._handler(association)
            await association.shutdown()
        except asyncio.CancelledError:
            association._abandon(b"the server is closed" if self._is_closing else b"the handler was cancelled")
            raise
        except Exception as error:
            # The end of the association is no fault of the handler.
            if isinstance(error, ClosedError) and association.is_closed:
                return
            association._abandon(b"the server failed")
            self._loop.call_exception_handler(
                {
                    "message": f"the handler of {association!r} raised {error!r}",
                    "exception": error,
                }
            )
        except BaseException:
            # It is for the program, as SystemExit, but the peer must not wait.
            association._abandon(b"the server failed")
            raise


def _check_handler(handler: object) -> None:
    """Whether a call is a coroutine: an ordinary function would be noticed only when a client connects."""
    function = handler
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
        return
    name = getattr(function, "__name__", type(function).__name__)
    raise TypeError(f"handler must be a coroutine function (async def) with one argument, or a partial of one, not {name}")


class Serving:
    """The return value of `serve`: to be awaited, or entered with ``async with``."""

    def __init__(self, handler: Handler, host: str, port: int, endpoint: Endpoint) -> None:
        check_address(host, port)
        _check_handler(handler)
        self._handler, self._host, self._port = handler, host, port
        self._endpoint: Optional[Endpoint] = endpoint
        self._server: Optional[Server] = None

    def __await__(self) -> Generator[object, None, Server]:
        return self._serve().__await__()

    async def __aenter__(self) -> Server:
        self._server = await self._serve()
        return self._server

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        if self._server is not None:
            await self._server.close()

    async def _serve(self) -> Server:
        endpoint, self._endpoint = self._endpoint, None
        if endpoint is None:
            raise RuntimeError("this server was started before: call rexmit.serve again")
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_DGRAM, flags=socket.AI_PASSIVE)
        except (OSError, UnicodeError) as error:
            raise OSError(f"{self._host!r} is no host: {host_error(error)}; give an address of this machine") from None
        family, _, _, _, address = found[0]
        opened = open_socket(family)
        try:
            opened.bind(address)
        except OSError as error:
            opened.close()
            error.strerror = f"{error.strerror}: UDP {self._host} port {self._port}; choose another"
            raise
        return Server(opened, endpoint, self._handler)


def serve(
    handler: Handler,
    host: str,
    port: int,
    identity: Identity,
    *,
    trust: Union[Trust, str] = _ANYONE,
    profile: AnyProfile = "interactive",
    config: Optional[Config] = None,
    max_associations: int = 200_000,
    sctp_port: int = SCTP_PORT,
) -> Serving:
    """Accepts associations over UDP, encrypted by DTLS 1.3: ``async with rexmit.serve(…) as server``, which closes it, or
    ``server = await rexmit.serve(…)``.

    Parameters
    ----------
    handler : coroutine function
        Called with each association: ``async def``, a `functools.partial` of one, or an object with such a ``__call__``.
        When it returns, the association is shut down; when it raises, the association is aborted and the loop's exception
        handler is called; the server continues.
    host : str
        A local address: ``"0.0.0.0"`` for all of IPv4, ``"::"`` for all of IPv6.
    port : int
        The UDP port; 0 chooses a free one (`Server.address`).
    identity : Identity
        The identity of the server: clients authenticate it by its fingerprint, so keep the identity.
    trust : str or Trust
        The clients that may connect. Default: any; `Association.peer_fingerprint` identifies them.
    profile : str or Profile
        How loss is recovered of what this side sends.
    config : Config, optional
        Other settings.
    max_associations : int
        Associations at one time; more are refused.
    sctp_port : int
        The SCTP port, inside UDP.

    Returns
    -------
    Serving
        Awaited or entered it is the `Server`, once.

    Raises
    ------
    OSError
        When awaited: the address is not of this machine, or the port is in use; the text says what to do.
    RuntimeError
        When awaited again: a server is started once.
    ValueError
        A number is out of range, `trust` is no fingerprint, or the settings contradict each other. An unknown profile is an
        `UnknownProfileError`.
    TypeError
        An argument is not of its type.
    """
    endpoint = Endpoint(
        profile,
        trust=trust,
        identity=_checked(identity),
        port=sctp_port,
        accept=True,
        max_associations=max_associations,
        config=config,
    )
    return Serving(handler, host, port, endpoint)


def _checked(identity: Identity) -> Identity:
    """An identity is required, because no client could know the fingerprint of a generated one."""
    if identity is None:
        raise TypeError("a server needs an identity: Identity.from_pem, or Identity.generate()")
    return identity


def serve_unencrypted(
    handler: Handler,
    host: str,
    port: int,
    *,
    profile: AnyProfile = "interactive",
    config: Optional[Config] = None,
    max_associations: int = 200_000,
    sctp_port: int = SCTP_PORT,
) -> Serving:
    """As `serve`, for peers that speak plain SCTP over UDP (RFC 6951), or inside a tunnel: a host on the
    path can read and change the data.

    Parameters
    ----------
    handler : coroutine function
        Called with each association, as that of `serve`.
    host : str
        A local address: ``"0.0.0.0"`` for all of IPv4, ``"::"`` for all of IPv6.
    port : int
        The UDP port; 0 chooses a free one (`Server.address`).
    profile : str or Profile
        How loss is recovered of what this side sends.
    config : Config, optional
        Other settings.
    max_associations : int
        Associations at one time; more are refused.
    sctp_port : int
        The SCTP port, inside UDP.

    Returns
    -------
    Serving
        Awaited or entered it is the `Server`, once.

    Raises
    ------
    OSError
        When awaited: the address is not of this machine, or the port is in use; the text says what to do.
    RuntimeError
        When awaited again: a server is started once.
    ValueError
        A number is out of range, or the settings contradict each other. An unknown profile is an `UnknownProfileError`.
    TypeError
        An argument is not of its type.
    """
    endpoint = Endpoint.unencrypted(
        profile,
        port=sctp_port,
        accept=True,
        max_associations=max_associations,
        config=config,
    )
    return Serving(handler, host, port, endpoint)

"""An endpoint on a UDP socket of an event loop: batches of datagrams in and out per turn of the loop."""

from __future__ import annotations

import asyncio
import socket
import sys
from contextlib import suppress
from time import monotonic
from typing import Callable, Optional

from ._association import Association
from ._errors import InternalError
from ._events import Address, Closed, Connected, Readable
from ._rexmit import Endpoint

# Datagrams received before the loop gets its turn.
_BATCH = 256
_MAX_DATAGRAM = 65_535
# Loops round times to milliseconds: an earlier call would only spin.
_MIN_DELAY = 0.001
# The system's default of about 200 kB is too little for the bursts of many associations.
_SOCKET_BUFFER_BYTES = 1 << 21
# Sets DF, and ignores what the kernel knows of path MTUs (<linux/in.h>).
_PMTUDISC_PROBE = 3


def open_socket(family: int) -> socket.socket:
    """A non-blocking UDP socket."""
    opened = socket.socket(family, socket.SOCK_DGRAM)
    opened.setblocking(False)
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        opened.setsockopt(socket.SOL_SOCKET, option, _SOCKET_BUFFER_BYTES)
    if sys.platform == "linux":
        # Path MTU discovery needs packets that no router fragments: IP_MTU_DISCOVER and IPV6_MTU_DISCOVER.
        opened.setsockopt(socket.IPPROTO_IP, 10, _PMTUDISC_PROBE)
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, 23, _PMTUDISC_PROBE)
    return opened


class Transport:
    """Moves datagrams between a socket, which it owns from now on, and an endpoint."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        opened: socket.socket,
        endpoint: Endpoint,
        on_accepted: Optional[Callable[[Association], None]] = None,
    ) -> None:
        self.loop = loop
        self.endpoint = endpoint
        self.local: Address = opened.getsockname()
        self.associations: dict[int, Association] = {}
        self._socket = opened
        self._on_accepted = on_accepted
        self._unsent: list[tuple[bytes, Address, Address]] = []
        self._timer: Optional[asyncio.TimerHandle] = None
        self._timer_at = 0.0
        self._is_scheduled = False
        self._is_closed = False
        try:
            loop.add_reader(opened, self._on_readable)
        except NotImplementedError:
            opened.close()
            raise NotImplementedError("this event loop cannot watch sockets: on Windows use asyncio.SelectorEventLoop") from None

    def connect(self, remote: Address, port: int) -> Association:
        """Begins the association of a client; the end of the association closes the socket."""
        number = self.endpoint.connect(self.local, remote, monotonic(), port=port)
        association = self.associations[number] = Association(self, number)
        self.schedule()
        return association

    def schedule(self) -> None:
        """Schedules a transmission after all callbacks that are ready now, so that their messages share packets."""
        if not self._is_scheduled and not self._is_closed:
            self._is_scheduled = True
            self.loop.call_soon(self.run)

    def run(self) -> None:
        """Reads events, transmits and sets the timer."""
        self._is_scheduled = False
        if self._is_closed:
            return
        try:
            self._run()
        except InternalError as error:
            self._fail(error)

    def _run(self) -> None:
        self._report()
        now = monotonic()
        if not self._unsent:
            self._transmit(self.endpoint.datagrams_to_send(now))
        if self._on_accepted is None and not self.associations:
            self.close()
        else:
            self._set_timer(now)

    def _report(self) -> bool:
        """Reads events, which may wake tasks. Returns whether there are messages, which they may answer."""
        has_messages = False
        while (report := self.endpoint.next_event()) is not None:
            number, event = report
            has_messages = has_messages or isinstance(event, Readable)
            association = self.associations.get(number)
            if association is None:
                # One that was not accepted, as the server is closing, may be told of its end.
                if not isinstance(event, Connected) or self._on_accepted is None:
                    continue
                association = self.associations[number] = Association(self, number)
                association._on_event(event)
                self._on_accepted(association)
            else:
                association._on_event(event)
            if isinstance(event, Closed):
                del self.associations[number]
        return has_messages

    def close(self) -> None:
        """Closes the socket. Open associations end without a packet to their peers."""
        if self._is_closed:
            return
        self._is_closed = True
        if not self.loop.is_closed():
            self.loop.remove_reader(self._socket)
            self.loop.remove_writer(self._socket)
        if self._timer is not None:
            self._timer.cancel()
        self._socket.close()

    def _fail(self, error: InternalError) -> None:
        """Ends all associations, since the endpoint cannot be used any more."""
        ended = list(self.associations.values())
        self.associations.clear()
        self.close()
        for association in ended:
            association._on_event(Closed("other", str(error), b"", 0))
        self.loop.call_exception_handler({"message": "an endpoint of rexmit failed", "exception": error})

    def _on_readable(self) -> None:
        batch: list[tuple[bytes, Address]] = []
        receive = self._socket.recvfrom
        try:
            for _ in range(_BATCH):
                batch.append(receive(_MAX_DATAGRAM))
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            self._on_refused(error)
        if batch:
            # `run` reports an endpoint that failed.
            with suppress(InternalError):
                self.endpoint.receive_datagrams(batch, self.local, monotonic())
        if self._is_closed:
            return
        try:
            has_messages = self._report()
        except InternalError as error:
            self._fail(error)
            return
        # Tasks that messages have woken run before: their answers share packets with the acknowledgement.
        if has_messages:
            self.schedule()
        else:
            self.run()

    def _on_refused(self, error: OSError) -> None:
        """Called when the system reports that nothing listens at the peer. Used during the setup only, because anyone
        could forge such a report."""
        for association in self.associations.values():
            association._on_refused(error)

    def _transmit(self, datagrams: list[tuple[bytes, Address, Address]]) -> None:
        # A client's socket is connected, and some systems refuse an address there.
        send, send_to = self._socket.send, self._socket.sendto
        for index, (data, _, remote) in enumerate(datagrams):
            try:
                if self._on_accepted is None:
                    send(data)
                else:
                    send_to(data, remote)
            except (BlockingIOError, InterruptedError):
                self._unsent = datagrams[index:]
                self.loop.add_writer(self._socket, self._on_writable)
                return
            except OSError as error:
                # As if it was lost on the way.
                self._on_refused(error)

    def _on_writable(self) -> None:
        self.loop.remove_writer(self._socket)
        unsent, self._unsent = self._unsent, []
        self._transmit(unsent)
        if not self._unsent:
            self.run()

    def _set_timer(self, now: float) -> None:
        at = self.endpoint.get_timer()
        if self._timer is not None:
            # A timer that is early is set again when it expires.
            if at is None or self._timer_at <= at:
                return
            self._timer.cancel()
            self._timer = None
        if at is not None:
            self._timer_at = at
            self._timer = self.loop.call_later(max(at - now, _MIN_DELAY), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        with suppress(InternalError):
            self.endpoint.handle_timer(monotonic())
        self.run()

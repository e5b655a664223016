"""Associations and streams, as asyncio programs use them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from math import inf
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Optional, Union

from ._config import AnyScheduling
from ._errors import BufferFullError, ClosedError, ConnectError, HandshakeError, InternalError
from ._events import Address, Closed, Connected, Event, EventsDropped, Message, Readable, Writable
from ._statistics import Statistics

if TYPE_CHECKING:
    from ._transport import Transport

Data = Union[bytes, bytearray, memoryview]

# Events kept for an application that does not read them.
_MAX_EVENTS = 256
# Messages taken without a wait before other tasks get their turn.
_MESSAGES_PER_TURN = 64

SHUTDOWN_TIMEOUT = 5.0
_MAX_TIMEOUT = 9e9


def check_timeout(timeout: object) -> None:
    """Whether this is a time limit in seconds."""
    if not isinstance(timeout, (int, float)) or isinstance(timeout, bool):
        raise TypeError(f"timeout must be a number of seconds, or math.inf, not {type(timeout).__name__}")
    # A whole number may be too large for a float.
    if not timeout >= 0 or _MAX_TIMEOUT < timeout < inf:
        raise ValueError(f"timeout is {timeout}; it is in seconds, from 0 to {_MAX_TIMEOUT:g}, or math.inf")


class _Waiters:
    """Tasks that wait for the same condition."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._futures: set[asyncio.Future[None]] = set()

    async def wait(self) -> None:
        future = self._loop.create_future()
        self._futures.add(future)
        try:
            await future
        finally:
            self._futures.discard(future)

    def wake(self) -> None:
        for future in self._futures:
            if not future.done():
                future.set_result(None)


class Stream:
    """An outgoing stream, whose ordered messages are delivered in the order of sending. Made by `Association.stream`."""

    __slots__ = ("_association", "_number")

    def __init__(self, association: Association, number: int) -> None:
        self._association = association
        self._number = number

    @property
    def number(self) -> int:
        """Its number, from 0."""
        return self._number

    async def send(
        self,
        data: Data,
        *,
        ordered: bool = True,
        lifetime: Optional[float] = None,
        max_retransmissions: Optional[int] = None,
        ppid: int = 0,
        immediate: bool = False,
        within: Optional[float] = None,
        probability: Optional[float] = None,
    ) -> int:
        """Waits for room in the send buffer, and has the message sent. If the call is cancelled while it waits,
        nothing is sent; once it has returned, cancellation loses nothing.

        Parameters
        ----------
        data : bytes, bytearray or memoryview
            The content, at least one byte.
        ordered : bool
            Whether it is delivered in the order of the stream, or as soon as it is complete.
        lifetime : float, optional
            Seconds from the return of this call after which the message is abandoned (event `MessageFailed`).
        max_retransmissions : int, optional
            The number of retransmissions of a chunk after which the message is abandoned; not together with `lifetime`.
        ppid : int
            Payload protocol identifier for the peer's application, 32 bits.
        immediate : bool
            Ask the peer to acknowledge without delay (RFC 7053).
        within : float, optional
            A deadline: the seconds within which the message should arrive. Together with `probability`. If that requires
            copies of it, they are sent, within ``Config(budget=…)``; the event `Infeasible` reports that deadlines cannot
            be met. A late message is still delivered, unless it has a `lifetime`, too.
        probability : float, optional
            The probability with which it should arrive in time, above 0 and below 1.

        Returns
        -------
        int
            The number that events about the message have.

        Raises
        ------
        ClosedError
            The association is closing, or has ended.
        ValueError
            The message is empty or larger than the send buffer, or a number is out of range.
        TypeError
            The content is neither of these types.
        RuntimeError
            The event loop of the association is closed.
        """
        association = self._association
        association._check()
        # A task that came before and waits is not overtaken.
        if not association._sending.locked():
            try:
                return self.try_send(
                    data,
                    ordered=ordered,
                    lifetime=lifetime,
                    max_retransmissions=max_retransmissions,
                    ppid=ppid,
                    immediate=immediate,
                    within=within,
                    probability=probability,
                )
            except BufferFullError:
                pass
        async with association._sending:
            while True:
                try:
                    return self.try_send(
                        data,
                        ordered=ordered,
                        lifetime=lifetime,
                        max_retransmissions=max_retransmissions,
                        ppid=ppid,
                        immediate=immediate,
                        within=within,
                        probability=probability,
                    )
                except BufferFullError:
                    await association._writable.wait()

    def try_send(
        self,
        data: Data,
        *,
        ordered: bool = True,
        lifetime: Optional[float] = None,
        max_retransmissions: Optional[int] = None,
        ppid: int = 0,
        immediate: bool = False,
        within: Optional[float] = None,
        probability: Optional[float] = None,
    ) -> int:
        """As `send`, without waiting.

        Parameters
        ----------
        data : bytes, bytearray or memoryview
            The content, at least one byte.
        ordered : bool
            Whether it is delivered in the order of the stream, or as soon as it is complete.
        lifetime : float, optional
            Seconds after which the message is abandoned (event `MessageFailed`).
        max_retransmissions : int, optional
            The number of retransmissions of a chunk after which the message is abandoned; not together with `lifetime`.
        ppid : int
            Payload protocol identifier for the peer's application, 32 bits.
        immediate : bool
            Ask the peer to acknowledge without delay (RFC 7053).
        within : float, optional
            A deadline in seconds, together with `probability`; see `send`.
        probability : float, optional
            The probability with which it should arrive in time, above 0 and below 1.

        Returns
        -------
        int
            The number that events about the message have.

        Raises
        ------
        BufferFullError
            There is no room in the send buffer.
        ClosedError
            The association is closing, or has ended.
        ValueError
            The message is empty or larger than the send buffer, or a number is out of range.
        TypeError
            The content is neither of these types.
        RuntimeError
            The event loop of the association is closed.
        """
        association = self._association
        association._check()
        transport = association._transport
        number = transport.endpoint.send(
            association._number,
            data,
            monotonic(),
            stream=self._number,
            ordered=ordered,
            lifetime=lifetime,
            max_retransmissions=max_retransmissions,
            ppid=ppid,
            immediate=immediate,
            within=within,
            probability=probability,
        )
        transport.schedule()
        return number

    def set_priority(self, priority: int) -> None:
        """Sets the priority of the stream, initially 256. With the scheduling ``"priority"`` the stream with the higher
        value is sent first; with ``"weighted-fair-queueing"`` it is the weight (RFC 8260 §3).

        Parameters
        ----------
        priority : int
            From 0 to 65,535. It holds for what is sent from now on.

        Raises
        ------
        ClosedError
            The association has ended.
        ValueError
            The priority is out of range.
        RuntimeError
            The event loop of the association is closed.
        """
        association = self._association
        association._check()
        association._transport.endpoint.set_priority(association._number, monotonic(), self._number, priority)


class Association:
    """An association with one peer. Made by `connect` and `serve`.

    ``async for message in association`` ends when the association has ended gracefully, and raises `ClosedError` if it
    ended otherwise. ``async with association`` ends it: gracefully, or by an ABORT after an exception.
    """

    def __init__(self, transport: Transport, number: int) -> None:
        self._transport = transport
        self._number = number
        self._connected: Optional[Connected] = None
        self._closed: Optional[Closed] = None
        self._refused: Optional[OSError] = None
        self._last: Optional[Statistics] = None
        self._receivers: deque[asyncio.Future[None]] = deque()
        self._writable = _Waiters(transport.loop)
        self._changed = _Waiters(transport.loop)
        self._sending = asyncio.Lock()
        self._events: deque[Event] = deque()
        self._missed = 0
        self._taken = 0

    def __repr__(self) -> str:
        if self._closed is not None:
            state = f"closed: {self._closed.text}"
        elif self._connected is None:
            state = "being set up"
        else:
            state = f"with {self._connected.peer}"
        return f"<rexmit.Association {state}>"

    @property
    def peer(self) -> Address:
        """The UDP address of the peer when the association was established."""
        return self._established.peer

    @property
    def peer_fingerprint(self) -> Optional[str]:
        """The fingerprint of the peer's certificate, whose key the peer has proved to own: ``"AB:CD:…"``, as
        ``openssl x509 -fingerprint -sha256`` prints it. ``None`` without encryption."""
        return self._established.peer_fingerprint

    @property
    def outbound_streams(self) -> int:
        """The number of outgoing streams, which are numbered from 0."""
        return self._established.outbound_streams

    @property
    def inbound_streams(self) -> int:
        """Incoming streams."""
        return self._established.inbound_streams

    @property
    def is_closed(self) -> bool:
        """Whether the association has ended. Messages that had arrived can still be received."""
        return self._closed is not None

    @property
    def close_reason(self) -> Optional[Closed]:
        """How the association ended; ``None`` if it has not."""
        return self._closed

    def stream(self, number: int) -> Stream:
        """The outgoing stream of a number. Every call makes an object for the same stream.

        Parameters
        ----------
        number : int
            From 0 to ``outbound_streams - 1``.

        Returns
        -------
        Stream
            The stream, to send messages on.

        Raises
        ------
        ValueError
            There is no such stream; the text has the numbers of all.
        TypeError
            The number is no `int`.
        """
        streams = self.outbound_streams
        if not isinstance(number, int):
            raise TypeError(f"the number of a stream is an int, not {type(number).__name__}")
        if not 0 <= number < streams:
            raise ValueError(f"there is no stream {number}: the association has streams 0 to {streams - 1}")
        return Stream(self, number)

    async def receive(self) -> Optional[Message]:
        """The next message of the peer; ``None`` when the association has ended gracefully.

        The receive window is closed while messages wait here. Tasks that wait are served in their order. Cancellation loses no
        message.

        Returns
        -------
        Message or None
            The payload, with its stream; messages that have arrived before the end are returned after it, too.

        Raises
        ------
        ClosedError
            The association ended otherwise; the text says how.
        RuntimeError
            The event loop was closed before the association ended.
        """
        self._check_loop()
        self._taken += 1
        pauses = self._taken >= _MESSAGES_PER_TURN
        if pauses:
            self._taken = 0
        loop = self._transport.loop
        if loop.is_closed():
            # The association has ended, and tasks of that loop do not come for what is left.
            if pauses:
                await asyncio.sleep(0)
            return self._take()[1]
        # A task that came before and waits is not overtaken.
        if not self._receivers and not pauses:
            is_over, message = self._take()
            if is_over:
                return message
        turn = loop.create_future()
        self._receivers.append(turn)
        if len(self._receivers) == 1 and pauses:
            loop.call_soon(self._wake_receiver)
        try:
            while True:
                await turn
                is_over, message = self._take()
                if is_over:
                    return message
                self._taken = 0
                self._receivers[0] = turn = loop.create_future()
        finally:
            was_first = self._receivers[0] is turn
            self._receivers.remove(turn)
            # More may have arrived, or this task did not take what it was woken for.
            if was_first:
                self._wake_receiver()

    def _take(self) -> tuple[bool, Optional[Message]]:
        """Whether a wait in `receive` is over, and what it returns then."""
        message = self.try_receive()
        if message is None and self._closed is not None and self._closed.reason != "shutdown":
            raise self._ended()
        return message is not None or self._closed is not None, message

    def _wake_receiver(self) -> None:
        """Wakes the task that has waited longest in `receive`; it wakes the next."""
        if self._receivers and not self._receivers[0].done() and not self._transport.loop.is_closed():
            self._receivers[0].set_result(None)

    def try_receive(self) -> Optional[Message]:
        """The next message of the peer, without waiting.

        Returns
        -------
        Message or None
            ``None`` if none has arrived, or if the association has ended and all were received.

        Raises
        ------
        RuntimeError
            The event loop was closed before the association ended.
        """
        self._check_loop()
        message = self._transport.endpoint.receive(self._number, monotonic())
        # The peer is told of the room in the receive buffer.
        if message is not None and self._closed is None:
            self._transport.schedule()
        return message

    def __aiter__(self) -> AsyncIterator[Message]:
        return self

    async def __anext__(self) -> Message:
        message = await self.receive()
        if message is None:
            raise StopAsyncIteration
        return message

    async def next_event(self) -> Optional[Event]:
        """The next event other than a message; ``None`` after `Closed`.

        At most 256 events are kept; an `EventsDropped` stands for the oldest ones that were dropped.

        Returns
        -------
        Event or None
            The oldest event that was not read. Its class says what happened.

        Raises
        ------
        RuntimeError
            The event loop was closed before the association ended.
        """
        while True:
            if self._missed:
                missed, self._missed = self._missed, 0
                return EventsDropped(missed)
            if self._events:
                return self._events.popleft()
            if self._closed is not None:
                return None
            self._check_loop()
            await self._changed.wait()

    async def events(self) -> AsyncIterator[Event]:
        """All events other than messages, until `Closed`.

        Returns
        -------
        asynchronous iterator of Event
            For ``async for event in association.events()``.

        Raises
        ------
        RuntimeError
            The event loop was closed before the association ended.
        """
        while (event := await self.next_event()) is not None:
            yield event

    def reset_streams(self, *numbers: int) -> None:
        """Resets outgoing streams to sequence number 0 (RFC 6525). The event `StreamsReset` has the outcome.

        Parameters
        ----------
        *numbers : int
            The numbers of outgoing streams, from 0; none for all of them.

        Raises
        ------
        ClosedError
            The association has ended.
        ValueError
            A stream does not exist.
        RexmitError
            The peer does not support it, or a reset is in progress.
        RuntimeError
            The event loop was closed before the association ended.
        """
        self._check()
        self._transport.endpoint.reset_streams(self._number, monotonic(), numbers)
        self._transport.schedule()

    def set_scheduling(self, scheduling: AnyScheduling) -> None:
        """Schedules the outgoing streams by another rule from now on (RFC 8260 §3). A message that has begun without
        interleaving is finished first.

        Parameters
        ----------
        scheduling : str or Scheduling
            ``"priority"``, for example.

        Raises
        ------
        ClosedError
            The association has ended.
        ValueError
            There is no scheduling of that name; the text has all.
        RuntimeError
            The event loop was closed before the association ended.
        """
        self._check()
        self._transport.endpoint.set_scheduling(self._number, monotonic(), scheduling)

    def statistics(self) -> Statistics:
        """Counters and the present state; the last ones when the association has ended.

        Returns
        -------
        Statistics
            Packets, bytes and messages since the start, retransmissions by cause, and a `PathStatistics` per path. Times are in
            seconds.
        """
        if self._last is not None:
            return self._last
        return self._transport.endpoint.statistics(self._number)

    async def shutdown(self, timeout: float = SHUTDOWN_TIMEOUT) -> Closed:
        """Ends the association gracefully: what was accepted on both sides is still delivered. If the call is cancelled, the
        association is aborted.

        Parameters
        ----------
        timeout : float
            Seconds in which the peer acknowledges nothing, after which the association is aborted; `math.inf` for no limit.

        Returns
        -------
        Closed
            How it ended: its `reason` is ``"shutdown"`` if all was delivered.

        Raises
        ------
        ValueError
            The time limit is negative or no number.
        TypeError
            The time limit is no `int` or `float`.
        RuntimeError
            The event loop was closed before the association ended.
        """
        check_timeout(timeout)
        self._check_loop()
        if self._closed is None:
            self._transport.endpoint.shutdown(self._number, monotonic())
            self._transport.schedule()
            try:
                await self._closed_while_progressing(timeout)
            except asyncio.TimeoutError:
                self.abort(b"the shutdown took too long")
            except asyncio.CancelledError:
                self.abort(b"the shutdown was cancelled")
                raise
        return await self.closed()

    async def _closed_while_progressing(self, timeout: float) -> None:
        """Waits for the end as long as the peer acknowledges something within each `timeout` seconds."""
        left = self.statistics().send_buffered_bytes
        while True:
            try:
                await asyncio.wait_for(self.closed(), timeout)
                return
            except asyncio.TimeoutError:
                before, left = left, self.statistics().send_buffered_bytes
                if left >= before:
                    raise

    def abort(self, reason: bytes = b"") -> None:
        """Ends the association at once: what the peer had not acknowledged fails. Does nothing if it has ended.

        Parameters
        ----------
        reason : bytes
            For the peer, whose event `Closed` has it as `detail`; the first 400 bytes of it.

        Raises
        ------
        RuntimeError
            The event loop was closed before the association ended.
        """
        self._check_loop()
        if self._closed is None:
            self._transport.endpoint.abort(self._number, monotonic(), reason)
            self._transport.run()

    def _abandon(self, reason: bytes) -> None:
        """As `abort` in the course of another exception, which an event loop that is closed must not hide."""
        if not self._transport.loop.is_closed():
            self.abort(reason)

    async def closed(self) -> Closed:
        """Waits for the end of the association.

        Returns
        -------
        Closed
            How it ended.

        Raises
        ------
        RuntimeError
            The event loop was closed before the association ended.
        """
        self._check_loop()
        while self._closed is None:
            await self._changed.wait()
        return self._closed

    async def __aenter__(self) -> Association:
        return self

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        if kind is None:
            await self.shutdown()
        else:
            self._abandon(b"the application failed")

    async def _set_up(self) -> None:
        """Waits for the end of the setup, however it ends."""
        while self._connected is None and self._closed is None and self._refused is None:
            await self._changed.wait()

    def _setup_error(self, where: str) -> Optional[ConnectError]:
        """Why the association with the peer at `where` was not set up, if so."""
        if self._connected is not None:
            return None
        closed = self._closed
        if closed is not None:
            if closed.reason == "aborted" and self._transport.endpoint.fingerprint is not None:
                return HandshakeError(f"{where}: {closed.detail.decode(errors='replace')}")
            reason = closed.text
        elif self._refused is not None:
            reason = self._refused.strerror or str(self._refused)
        else:
            return None
        return ConnectError(f"{where} refused: {reason}; check that a server runs there")

    def _on_refused(self, error: OSError) -> None:
        """The system could not send, or nothing listens at the peer."""
        if self._connected is None:
            self._refused = error
            self._changed.wake()

    def _on_event(self, event: Event) -> None:
        """Called by the transport for each event."""
        if isinstance(event, Readable):
            self._wake_receiver()
            return
        if isinstance(event, Writable):
            self._writable.wake()
            return
        if isinstance(event, Connected):
            self._connected = event
            self._changed.wake()
            return
        if len(self._events) >= _MAX_EVENTS:
            self._events.popleft()
            self._missed += 1
        self._events.append(event)
        if isinstance(event, Closed):
            with suppress(InternalError):
                self._last = self._transport.endpoint.statistics(self._number)
            self._closed = event
            self._wake_receiver()
            self._writable.wake()
        self._changed.wake()

    @property
    def _established(self) -> Connected:
        if self._connected is None:
            raise ClosedError("the association was never set up: see close_reason")
        return self._connected

    def _check(self) -> None:
        if self._closed is not None:
            raise self._ended()
        self._check_loop()

    def _check_loop(self) -> None:
        """Refuses what needs the event loop after that was closed. An association that has ended does not need it."""
        if self._closed is None and self._transport.loop.is_closed():
            raise RuntimeError("the event loop of this association is closed: connect in a new one")

    def _ended(self) -> ClosedError:
        assert self._closed is not None
        return ClosedError(f"{self._closed.text}; connect again to go on")

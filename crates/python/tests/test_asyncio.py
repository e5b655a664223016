"""The transport on sockets of the loopback interface."""

import asyncio
import functools
import random
import socket
import time

import pytest
from asyncio_kit import IDENTITY, connect, echo, on_each_loop, serve

import rexmit


class Relay(asyncio.DatagramProtocol):
    """Forwards datagrams between one client and a server, and drops some of them."""

    def __init__(self, server, loss, seed):
        self.server, self.loss, self.random = server, loss, random.Random(seed)
        self.client = None
        self.dropped = 0
        self.seen = []

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, address):
        if address != self.server:
            self.client = address
        self.seen.append(data)
        if self.random.random() < self.loss:
            self.dropped += 1
        else:
            self.transport.sendto(data, self.client if address == self.server else self.server)


async def relayed(server, loss, seed=1):
    loop = asyncio.get_running_loop()
    make = functools.partial(Relay, server.address, loss, seed)
    transport, relay = await loop.create_datagram_endpoint(make, local_addr=("127.0.0.1", 0))
    return relay, transport.get_extra_info("sockname")[1]


@on_each_loop
async def test_messages_are_echoed():
    async with serve(echo, "127.0.0.1", 0) as server:
        async with connect("127.0.0.1", server.address[1], profile="interactive") as association:
            assert association.peer == server.address
            assert association.outbound_streams == association.inbound_streams == 16
            await association.stream(3).send(b"hello", ordered=False, lifetime=5)
            assert await association.receive() == rexmit.Message(b"hello", 3, 0, True)
            large = bytes(range(256)) * 500
            await association.stream(0).send(memoryview(large))
            assert (await association.receive()).payload == large
            statistics = association.statistics()
            assert statistics.messages_accepted == statistics.messages_delivered == 2
            assert statistics.paths[0].srtt < 1
            assert len(server.associations) == 1
        assert association.is_closed
        assert association.close_reason.reason == "shutdown"
        assert association.statistics().messages_delivered == 2
        assert await association.receive() is None


async def echoed(association, payload):
    await association.stream(0).send(payload)
    return (await association.receive()).payload == payload


@on_each_loop
async def test_bytes_on_the_wire_do_not_contain_the_payload():
    secret = b"a secret that is easy to find"
    for serving, is_found in ((serve, False), (rexmit.serve_unencrypted, True)):
        async with serving(echo, "127.0.0.1", 0) as server:
            relay, port = await relayed(server, 0.0)
            connecting = rexmit.connect_unencrypted("127.0.0.1", port) if is_found else connect("127.0.0.1", port)
            async with connecting as association:
                assert await echoed(association, secret)
            assert any(secret in datagram for datagram in relay.seen) == is_found
            relay.transport.close()


@on_each_loop
async def test_each_side_knows_the_other_by_its_fingerprint():
    client = rexmit.Identity.generate()
    async with serve(echo, "127.0.0.1", 0, trust=client.fingerprint) as server:
        address = server.address
        assert server.fingerprint == IDENTITY.fingerprint
        either = rexmit.Trust.only("00" * 32, IDENTITY.fingerprint.replace(":", "").lower())
        async with rexmit.connect(*address, either, identity=client) as association:
            assert await echoed(association, b"hello")
            assert association.peer_fingerprint == IDENTITY.fingerprint
            [accepted] = server.associations
            assert accepted.peer_fingerprint == client.fingerprint
        assert association.peer_fingerprint == IDENTITY.fingerprint, "also after the end"
        async with rexmit.connect(*address, rexmit.Trust.anyone(), identity=client) as association:
            assert association.peer_fingerprint == IDENTITY.fingerprint
        # The server knows only the client above.
        with pytest.raises(rexmit.HandshakeError, match="refused by the peer after the handshake") as refused:
            stranger = rexmit.Identity.generate()
            await rexmit.connect(*address, IDENTITY.fingerprint, identity=stranger)
        assert stranger.fingerprint in str(refused.value)
        # The client knows another server.
        with pytest.raises(rexmit.HandshakeError, match="refused here: the peer's certificate") as refused:
            await rexmit.connect(*address, stranger.fingerprint, identity=client)
        assert IDENTITY.fingerprint in str(refused.value)
        assert server.associations == ()


@on_each_loop
async def test_a_side_that_does_not_encrypt_gets_no_answer_of_one_that_does():
    async with serve(echo, "127.0.0.1", 0) as server:
        with pytest.raises(rexmit.ConnectTimeoutError, match="which encrypts as this side does"):
            await rexmit.connect_unencrypted(*server.address, timeout=0.3)
    async with rexmit.serve_unencrypted(echo, "127.0.0.1", 0) as server:
        assert server.fingerprint is None
        with pytest.raises(rexmit.ConnectTimeoutError, match="which encrypts as this side does"):
            await connect(*server.address, timeout=0.3)
        async with rexmit.connect_unencrypted(*server.address) as association:
            assert association.peer_fingerprint is None
            assert await echoed(association, b"hello")


@on_each_loop
async def test_a_stream_with_a_higher_priority_goes_first():
    config = rexmit.Config(scheduling="priority", send_buffer_bytes=1 << 20)
    received = []

    async def collect(association):
        received.extend([message.stream async for message in association])

    async with serve(collect, "127.0.0.1", 0) as server:
        async with connect(*server.address, config=config) as association:
            association.stream(1).set_priority(1000)
            for _ in range(3):
                association.stream(0).try_send(bytes(100_000))
            association.stream(1).try_send(b"overtakes")
            with pytest.raises(ValueError, match="priority is 65536"):
                association.stream(1).set_priority(65_536)
            with pytest.raises(ValueError, match="there is no scheduling"):
                association.set_scheduling("prio")
            association.set_scheduling(rexmit.Scheduling.first_come_first_served)
            association.set_scheduling("priority")
    assert sorted(received) == [0, 0, 0, 1]
    assert received[0] == 1
    with pytest.raises(rexmit.ClosedError):
        association.stream(1).set_priority(1)


@on_each_loop
async def test_a_message_that_is_too_large_is_dropped_and_reported():
    dropped = []

    async def handler(association):
        assert (await association.receive()).payload == b"behind it"
        dropped.append(await association.next_event())

    small = rexmit.Config(max_message_bytes=1000)
    async with serve(handler, "127.0.0.1", 0, config=small) as server:
        async with connect(*server.address) as association:
            await association.stream(3).send(bytes(1001), ppid=7)
            await association.stream(3).send(b"behind it")
            await association.closed()
    assert dropped == [rexmit.MessageDropped(3, 7, False)]


@on_each_loop
async def test_the_largest_message_follows_a_smaller_receive_buffer():
    small = rexmit.Config(receive_buffer_bytes=65_536)
    async with serve(echo, "127.0.0.1", 0, config=small) as server:
        async with connect("127.0.0.1", server.address[1], config=small) as association:
            assert await echoed(association, bytes(65_536))
            with pytest.raises(ValueError, match="max_message_bytes = 65536"):
                await association.stream(0).send(bytes(65_537))
    for buffer, largest in ((None, None), (262_144, None), (2**20, None), (1000, 1000)):
        assert rexmit.Config(receive_buffer_bytes=buffer).max_message_bytes == largest
    with pytest.raises(ValueError, match="max_message_bytes is 70000; it must be from 1 to 65536"):
        connect("localhost", 9899, config=rexmit.Config(receive_buffer_bytes=65_536, max_message_bytes=70_000))


@on_each_loop
async def test_names_of_several_addresses_are_tried():
    async with serve(echo, "127.0.0.1", 0) as server:
        association = await connect("localhost", server.address[1], timeout=5)
        assert association.peer == server.address
        assert (await association.shutdown()).reason == "shutdown"


@on_each_loop
async def test_all_is_delivered_in_order_under_loss():
    async with serve(echo, "127.0.0.1", 0) as server:
        relay, port = await relayed(server, 0.05)
        async with connect("127.0.0.1", port) as association:
            sent = [b"message %d" % number for number in range(400)]

            async def send():
                for message in sent:
                    await association.stream(1).send(message)
                    await asyncio.sleep(0.002)

            sending = asyncio.ensure_future(send())
            received = [(await association.receive()).payload for _ in sent]
            await sending
            assert received == sent
            statistics = association.statistics()
            assert relay.dropped > 0
            assert statistics.retransmitted.total > 0
        relay.transport.close()


@on_each_loop
async def test_send_waits_for_room_and_keeps_the_order_of_tasks():
    may_read = asyncio.Event()
    received = []

    async def slow(association):
        await may_read.wait()
        async for message in association:
            received.append(message.payload)

    small = rexmit.Config(send_buffer_bytes=4096, receive_buffer_bytes=4096, max_message_bytes=4096)
    async with serve(slow, "127.0.0.1", 0, config=small) as server:
        async with connect("127.0.0.1", server.address[1], config=small) as association:
            stream = association.stream(0)
            messages = [bytes([number]) * (1000 if number % 2 else 10) for number in range(60)]
            tasks = [asyncio.ensure_future(stream.send(message)) for message in messages]
            await asyncio.sleep(0.3)
            accepted = sum(task.done() for task in tasks)
            assert 4 < accepted < 50
            assert association.statistics().send_buffered_bytes <= 4096 + 1000
            with pytest.raises(rexmit.BufferFullError, match="wait"):
                stream.try_send(bytes(1000))
            assert [task.done() for task in tasks] == [n < accepted for n in range(60)]
            may_read.set()
            await asyncio.gather(*tasks)
        assert association.close_reason.reason == "shutdown"
    assert received == messages


@on_each_loop
async def test_cancellation_loses_and_adds_nothing():
    may_read = asyncio.Event()
    received = []

    async def slow(association):
        await may_read.wait()
        while True:
            try:
                message = await asyncio.wait_for(association.receive(), 0.001)
            except asyncio.TimeoutError:
                continue
            if message is None:
                return
            received.append(message.payload)

    small = rexmit.Config(send_buffer_bytes=4096, receive_buffer_bytes=4096, max_message_bytes=4096)
    async with serve(slow, "127.0.0.1", 0, config=small) as server:
        async with connect("127.0.0.1", server.address[1], config=small) as association:
            stream = association.stream(0)
            tasks = [asyncio.ensure_future(stream.send(bytes([n]) * 500)) for n in range(40)]
            await asyncio.sleep(0.2)
            for task in tasks[::2]:
                task.cancel()
            await asyncio.sleep(0.05)
            may_read.set()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            accepted = [n for n, result in enumerate(results) if isinstance(result, int)]
            assert 20 < len(accepted) < 40
    assert received == [bytes([n]) * 500 for n in accepted]


@on_each_loop
async def test_tasks_that_wait_for_messages_are_served_in_their_order():
    async with serve(echo, "127.0.0.1", 0) as server:
        async with connect("127.0.0.1", server.address[1]) as association:
            stream, served = association.stream(0), []

            async def receive(number):
                message = await association.receive()
                served.append((number, message and message.payload[0]))

            def begin(numbers):
                return [asyncio.ensure_future(receive(number)) for number in numbers]

            # Several turns, so that the pause between them is no way to overtake.
            tasks = begin(range(150))
            for number in range(150):
                await stream.send(bytes([number]))
            await asyncio.gather(*tasks)
            assert served == [(number, number) for number in range(150)]

            # The first are cancelled when they have been woken, and have not run; one comes when the next is.
            served.clear()
            tasks = begin(range(10))
            await asyncio.sleep(0)
            wake, late = association._wake_receiver, []

            def wake_and_cancel():
                wake()
                if not late:
                    for task in (tasks[0], tasks[1], tasks[5]):
                        task.cancel()
                    late.extend(begin([10]))

            association._wake_receiver = wake_and_cancel
            for number in range(8):
                await stream.send(bytes([number]))
            await asyncio.gather(*tasks, *late, return_exceptions=True)
            assert served == list(zip((2, 3, 4, 6, 7, 8, 9, 10), range(8)))
            association._wake_receiver = wake

            served.clear()
            tasks = begin(range(3))
            await asyncio.sleep(0)
    assert served == [(0, None), (1, None), (2, None)]
    await asyncio.gather(*tasks)


@on_each_loop
async def test_a_handler_that_raises_ends_its_association_only():
    problems = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: problems.append(context))

    async def handler(association):
        async for message in association:
            if message.payload == b"fail":
                raise LookupError("no such thing")
            await association.stream(0).send(message.payload)

    async with serve(handler, "127.0.0.1", 0) as server:
        port = server.address[1]
        good = await connect("127.0.0.1", port)
        bad = await connect("127.0.0.1", port)
        await bad.stream(0).send(b"fail")
        with pytest.raises(rexmit.ClosedError, match="the server failed"):
            await bad.receive()
        assert bad.close_reason.reason == "aborted-by-peer"
        assert bad.close_reason.detail == b"the server failed"
        with pytest.raises(rexmit.ClosedError, match="connect again"):
            await bad.stream(0).send(b"more")
        await good.stream(0).send(b"still here")
        assert (await good.receive()).payload == b"still here"
        await good.shutdown()
    assert [type(problem["exception"]) for problem in problems] == [LookupError]


@on_each_loop
async def test_a_handler_that_raises_no_exception_but_a_base_exception_ends_its_association():
    """As `SystemExit`, which is for the program; but the peer must not wait."""

    class Odd(BaseException):
        pass

    async def handler(association):
        raise Odd

    async with serve(handler, "127.0.0.1", 0) as server:
        association = await connect("127.0.0.1", server.address[1])
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        assert (await asyncio.wait_for(association.closed(), 5)).reason == "aborted-by-peer"
        raised = [task.exception() for task in tasks if task.done() and not task.cancelled()]
        assert server.associations == ()
        assert all(isinstance(error, (Odd, type(None))) for error in raised)


@on_each_loop
async def test_a_handler_may_close_the_server():
    took = asyncio.get_running_loop().create_future()

    async def handler(association):
        begun = time.monotonic()
        await server.close(10)
        took.set_result(time.monotonic() - begun)

    async with serve(handler, "127.0.0.1", 0) as server:
        association = await connect("127.0.0.1", server.address[1])
        # It does not wait for itself, and is not cancelled.
        assert await took < 8
        assert (await association.closed()).reason == "shutdown"


@on_each_loop
async def test_a_handler_is_checked_when_it_is_served():
    for wrong in (lambda association: None, functools.partial(print, end=""), print, object(), rexmit.Association):
        with pytest.raises(TypeError, match="handler must be a coroutine function"):
            serve(wrong, "127.0.0.1", 0)
        with pytest.raises(TypeError, match="handler must be a coroutine function"):
            rexmit.serve_unencrypted(wrong, "127.0.0.1", 0)

    class Handler:
        async def __call__(self, association):
            await echo(association)

        async def method(self, association, more=None):
            await echo(association)

    own = Handler()
    for right in (own, own.method, functools.partial(own), functools.partial(functools.partial(own.method), more=1)):
        async with serve(right, "127.0.0.1", 0) as server:
            async with connect("127.0.0.1", server.address[1]) as association:
                assert await echoed(association, b"hello")


@on_each_loop
async def test_a_peer_that_vanishes_is_reported():
    async with serve(echo, "127.0.0.1", 0) as server:
        relay, port = await relayed(server, 0.0)
        association = await connect("127.0.0.1", port, config=rexmit.Config(dead_after=0.3))
        relay.loss = 1.0
        await association.stream(0).send(b"anybody?")
        with pytest.raises(rexmit.ClosedError, match="does not answer any more"):
            await association.receive()
        events = [event async for event in association.events()]
        assert [type(event) for event in events[-2:]] == [rexmit.MessageFailed, rexmit.Closed]
        assert events[-2].payload == b"anybody?"
        relay.transport.close()
        # The server does not know: it has nothing to send but its SHUTDOWN.
        started = time.monotonic()
        await server.close(timeout=0.2)
        assert time.monotonic() - started < 2


@on_each_loop
async def test_a_shutdown_that_takes_too_long_is_an_abort():
    async with serve(echo, "127.0.0.1", 0) as server:
        relay, port = await relayed(server, 0.0)
        association = await connect("127.0.0.1", port)
        relay.loss = 1.0
        assert (await association.shutdown(timeout=0.1)).reason == "aborted"
        relay.transport.close()
        await server.close(timeout=0.1)


@on_each_loop
async def test_a_shutdown_goes_on_while_data_is_acknowledged():
    received = []

    async def slow(association):
        async for message in association:
            received.append(message.payload)
            await asyncio.sleep(0.1)

    small = rexmit.Config(receive_buffer_bytes=10_000, max_message_bytes=10_000)
    async with serve(slow, "127.0.0.1", 0, config=small) as server:
        association = await connect("127.0.0.1", server.address[1])
        messages = [bytes([n]) * 2000 for n in range(45)]
        for message in messages:
            await association.stream(0).send(message)
        started = time.monotonic()
        assert (await association.shutdown(timeout=2)).reason == "shutdown"
        assert time.monotonic() - started > 2, "it did not take longer than the limit"
    assert received == messages, "the handler has read to the end"


@on_each_loop
async def test_connecting_fails_soon_and_says_why():
    unused = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    unused.bind(("127.0.0.1", 0))
    port = unused.getsockname()[1]
    started = time.monotonic()
    with pytest.raises(rexmit.ConnectTimeoutError, match="did not answer within 0.3 s: check"):
        await connect("127.0.0.1", port, timeout=0.3)
    assert 0.2 < time.monotonic() - started < 3
    # Cancelled while it waits.
    connecting = asyncio.ensure_future(connect("127.0.0.1", port)._connect())
    await asyncio.sleep(0.05)
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    unused.close()
    with pytest.raises(rexmit.ConnectError, match="refused.*check that a server runs there"):
        await connect("127.0.0.1", port)
    with pytest.raises(rexmit.ConnectError, match="is no host"):
        async with connect("name.invalid", 9899):
            pass


@on_each_loop
async def test_a_connection_is_entered_once():
    async def handler(association):
        await association.closed()

    async with serve(handler, "127.0.0.1", 0) as server:
        connecting = connect("127.0.0.1", server.address[1])
        async with connecting:
            with pytest.raises(RuntimeError, match="entered before: call rexmit.connect again"):
                async with connecting:
                    pass


@on_each_loop
async def test_an_exception_in_the_block_aborts():
    reasons = []

    async def handler(association):
        reasons.append(await association.closed())

    async with serve(handler, "127.0.0.1", 0) as server:
        with pytest.raises(ZeroDivisionError):
            async with connect("127.0.0.1", server.address[1]):
                1 / 0
        while not reasons:
            await asyncio.sleep(0.001)
    assert reasons[0].reason == "aborted-by-peer"
    assert reasons[0].detail == b"the application failed"


@on_each_loop
async def test_the_peer_of_a_handler_that_cancels_itself_is_told_so():
    async def handler(association):
        raise asyncio.CancelledError

    async with serve(handler, "127.0.0.1", 0) as server:
        association = await connect("127.0.0.1", server.address[1])
        closed = await association.closed()
    assert (closed.reason, closed.detail) == ("aborted-by-peer", b"the handler was cancelled")


@on_each_loop
async def test_closing_a_server_ends_its_associations():
    async def greet(association):
        await association.stream(0).send(b"welcome")
        await association.closed()

    async def never(association):
        await asyncio.Event().wait()

    server = await serve(greet, "127.0.0.1", 0)
    association = await connect("127.0.0.1", server.address[1])
    forever = asyncio.ensure_future(server.serve_forever())
    await asyncio.sleep(0)
    await server.close()
    await forever
    await server.close()
    assert [message.payload async for message in association] == [b"welcome"]

    server = await serve(never, "127.0.0.1", 0)
    association = await connect("127.0.0.1", server.address[1])
    while not server.associations:
        await asyncio.sleep(0.001)
    await server.close(timeout=0.1)
    assert server.associations == ()
    assert (await association.closed()).reason == "shutdown"


@on_each_loop
async def test_events_report_the_fate_of_messages():
    config = rexmit.Config(report_acknowledged=True)
    async with serve(echo, "127.0.0.1", 0) as server:
        relay, port = await relayed(server, 0.0)
        async with connect("127.0.0.1", port, config=config) as association:
            number = await association.stream(0).send(b"arrives")
            while (event := await association.next_event()) != rexmit.MessageAcknowledged(number):
                assert isinstance(event, rexmit.PathStatus)
            relay.loss = 1.0
            number = await association.stream(2).send(b"late", lifetime=0.05)
            assert await association.next_event() == rexmit.MessageFailed(number, "expired", True, 2, b"late")
            relay.loss = 0.0
            association.reset_streams(2)
            assert await association.next_event() == rexmit.StreamsReset((2,), True)
        relay.transport.close()


@on_each_loop
async def test_events_that_are_not_read_are_counted():
    config = rexmit.Config(report_acknowledged=True)
    async with serve(echo, "127.0.0.1", 0) as server:
        async with connect("127.0.0.1", server.address[1], config=config) as association:
            for _ in range(400):
                await association.stream(0).send(b"x")
                await association.receive()
        events = [event async for event in association.events()]
    assert isinstance(events[0], rexmit.EventsDropped)
    assert events[0].events + len(events[1:]) >= 400
    assert len(events) == 257
    assert isinstance(events[-1], rexmit.Closed)


@on_each_loop
async def test_a_defect_ends_the_association_and_is_reported():
    class Broken:
        def __getattr__(self, name):
            def call(*arguments, **keywords):
                raise rexmit.InternalError("a defect")

            return call

    problems = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: problems.append(context))
    async with serve(echo, "127.0.0.1", 0) as server:
        association = await connect("127.0.0.1", server.address[1])
        association._transport.endpoint = Broken()
        [accepted] = server.associations
        accepted.stream(0).try_send(b"wakes it")
        assert (await association.closed()).text == "a defect"
        with pytest.raises(rexmit.ClosedError, match="a defect"):
            association.stream(0).try_send(b"x")
        accepted.abort()
    assert [type(problem["exception"]) for problem in problems] == [rexmit.InternalError]


@on_each_loop
async def test_many_associations_at_once():
    async def one(port, number):
        async with connect("127.0.0.1", port) as association:
            for turn in range(5):
                message = b"%d %d" % (number, turn)
                await association.stream(number % 16).send(message)
                assert (await association.receive()).payload == message

    async with serve(echo, "127.0.0.1", 0) as server:
        await asyncio.gather(*(one(server.address[1], number) for number in range(50)))


def test_bad_arguments_are_refused_where_they_are_given():
    async def handler(association):
        pass

    with pytest.raises(rexmit.UnknownProfileError, match='did you mean "interactive"'):
        connect("localhost", 9899, profile="interactve")
    with pytest.raises(TypeError, match="host must be a str"):
        connect(b"localhost", 9899)
    with pytest.raises(TypeError, match="port must be an int, not str"):
        connect("localhost", "9899")
    with pytest.raises(ValueError, match="from 0 to 65535"):
        serve(handler, "localhost", 65_536)
    with pytest.raises(ValueError, match="sctp_port is -1"):
        connect("localhost", 9899, sctp_port=-1)
    for timeout in ("5", None, True):
        with pytest.raises(TypeError, match="timeout must be a number of seconds"):
            connect("localhost", 9899, timeout=timeout)
    for timeout in (-1, float("nan"), 10**400):
        with pytest.raises(ValueError, match="in seconds, from 0 to 9e.*09, or math.inf"):
            connect("localhost", 9899, timeout=timeout)
    with pytest.raises(TypeError, match="coroutine function"):
        serve(None, "localhost", 9899)
    with pytest.raises(ValueError, match="max_message_bytes is 0"):
        serve(handler, "localhost", 9899, config=rexmit.Config(max_message_bytes=0))
    with pytest.raises(TypeError, match="trust must be the fingerprint .* not NoneType"):
        rexmit.connect("localhost", 9899, None)
    with pytest.raises(ValueError, match='"12:34": a fingerprint is the SHA-256'):
        rexmit.connect("localhost", 9899, "12:34")
    with pytest.raises(TypeError, match="a server needs an identity"):
        rexmit.serve(handler, "localhost", 9899, None)
    with pytest.raises(TypeError, match="identity must be a rexmit.Identity"):
        rexmit.serve(handler, "localhost", 9899, "key.pem")
    with pytest.raises(ValueError, match="there is no scheduling .*weighted-fair-queueing"):
        connect("localhost", 9899, config=rexmit.Config(scheduling="prio"))


@on_each_loop
async def test_names_that_no_host_has_are_errors_of_the_connection():
    for name in ("a" * 70_000, "\udc80", "a\0b", ""):
        with pytest.raises(rexmit.ConnectError, match="is no host"):
            await connect(name, 9899)
        if name:
            with pytest.raises(OSError, match="is no host"):
                await serve(echo, name, 9899)


@on_each_loop
async def test_bad_messages_are_refused():
    async with serve(echo, "127.0.0.1", 0) as server:
        async with connect("127.0.0.1", server.address[1]) as association:
            with pytest.raises(ValueError, match="streams 0 to 15"):
                association.stream(16)
            with pytest.raises(TypeError, match="is an int"):
                association.stream("0")
            stream = association.stream(0)
            with pytest.raises(TypeError, match=r"not str: use .encode\(\)"):
                await stream.send("text")
            with pytest.raises(ValueError, match="empty"):
                await stream.send(b"")
            with pytest.raises(ValueError, match="max_message_bytes = 262144"):
                await stream.send(bytes(262_145))
            with pytest.raises(ValueError, match="lifetime is -1"):
                await stream.send(b"x", lifetime=-1)
            with pytest.raises(ValueError, match="not both"):
                await stream.send(b"x", lifetime=1, max_retransmissions=1)
            with pytest.raises(OSError, match="choose another"):
                await serve(echo, "127.0.0.1", server.address[1])

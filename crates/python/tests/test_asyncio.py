"""The transport on sockets of the loopback interface."""

import asyncio
import functools
import random
import socket
import time

import pytest

import rexmit

try:
    import uvloop
except ImportError:
    uvloop = None

LOOPS = {"asyncio": asyncio.new_event_loop}
if uvloop is not None:
    LOOPS["uvloop"] = uvloop.new_event_loop


def on_each_loop(test):
    """Runs a coroutine function as a test, in 30 s at most, and sees that it leaves no task behind."""

    @pytest.mark.parametrize("kind", LOOPS)
    def run(kind):
        loop = LOOPS[kind]()

        async def limited():
            await asyncio.wait_for(test(), 30)
            # Closed sockets and cancelled tasks get a turn to end.
            await asyncio.sleep(0)
            assert asyncio.all_tasks() == {asyncio.current_task()}

        try:
            loop.run_until_complete(limited())
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()

    # Not by functools.wraps, after which pytest would look at the arguments of the coroutine function.
    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


async def echo(association):
    async for message in association:
        await association.stream(message.stream).send(message.payload, ordered=not message.unordered)


class Relay(asyncio.DatagramProtocol):
    """Forwards datagrams between one client and a server, and drops some of them."""

    def __init__(self, server, loss, seed):
        self.server, self.loss, self.random = server, loss, random.Random(seed)
        self.client = None
        self.dropped = 0

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, address):
        if address != self.server:
            self.client = address
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
    async with rexmit.serve(echo, "127.0.0.1", 0) as server:
        async with rexmit.connect("127.0.0.1", server.address[1], profile="interactive") as association:
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


@on_each_loop
async def test_names_of_several_addresses_are_tried():
    async with rexmit.serve(echo, "127.0.0.1", 0) as server:
        association = await rexmit.connect("localhost", server.address[1], timeout=5)
        assert association.peer == server.address
        assert (await association.shutdown()).reason == "shutdown"


@on_each_loop
async def test_all_is_delivered_in_order_under_loss():
    async with rexmit.serve(echo, "127.0.0.1", 0) as server:
        relay, port = await relayed(server, 0.05)
        async with rexmit.connect("127.0.0.1", port) as association:
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
    async with rexmit.serve(slow, "127.0.0.1", 0, config=small) as server:
        async with rexmit.connect("127.0.0.1", server.address[1], config=small) as association:
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
    async with rexmit.serve(slow, "127.0.0.1", 0, config=small) as server:
        async with rexmit.connect("127.0.0.1", server.address[1], config=small) as association:
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
async def test_a_handler_that_raises_ends_its_association_only():
    problems = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: problems.append(context))

    async def handler(association):
        async for message in association:
            if message.payload == b"fail":
                raise LookupError("no such thing")
            await association.stream(0).send(message.payload)

    async with rexmit.serve(handler, "127.0.0.1", 0) as server:
        port = server.address[1]
        good = await rexmit.connect("127.0.0.1", port)
        bad = await rexmit.connect("127.0.0.1", port)
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
async def test_a_handler_that_is_no_coroutine_function_is_reported():
    problems = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: problems.append(context))
    async with rexmit.serve(lambda association: None, "127.0.0.1", 0) as server:
        association = await rexmit.connect("127.0.0.1", server.address[1])
        assert (await association.closed()).reason == "aborted-by-peer"
    assert "async def" in str(problems[0]["exception"])


@on_each_loop
async def test_a_peer_that_vanishes_is_reported():
    async with rexmit.serve(echo, "127.0.0.1", 0) as server:
        relay, port = await relayed(server, 0.0)
        association = await rexmit.connect("127.0.0.1", port, config=rexmit.Config(dead_after=0.3))
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
    async with rexmit.serve(echo, "127.0.0.1", 0) as server:
        relay, port = await relayed(server, 0.0)
        association = await rexmit.connect("127.0.0.1", port)
        relay.loss = 1.0
        assert (await association.shutdown(timeout=0.1)).reason == "aborted"
        relay.transport.close()
        await server.close(timeout=0.1)


@on_each_loop
async def test_connecting_fails_soon_and_says_why():
    unused = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    unused.bind(("127.0.0.1", 0))
    port = unused.getsockname()[1]
    started = time.monotonic()
    with pytest.raises(rexmit.ConnectTimeoutError, match="did not answer within 0.3 s: check"):
        await rexmit.connect("127.0.0.1", port, timeout=0.3)
    assert 0.2 < time.monotonic() - started < 3
    # Cancelled while it waits.
    connecting = asyncio.ensure_future(rexmit.connect("127.0.0.1", port)._connect())
    await asyncio.sleep(0.05)
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    unused.close()
    with pytest.raises(rexmit.ConnectError, match="refused.*check that a server runs there"):
        await rexmit.connect("127.0.0.1", port)
    with pytest.raises(rexmit.ConnectError, match="is no host"):
        async with rexmit.connect("name.invalid", 9899):
            pass


@on_each_loop
async def test_an_exception_in_the_block_aborts():
    reasons = []

    async def handler(association):
        reasons.append(await association.closed())

    async with rexmit.serve(handler, "127.0.0.1", 0) as server:
        with pytest.raises(ZeroDivisionError):
            async with rexmit.connect("127.0.0.1", server.address[1]):
                1 / 0
        while not reasons:
            await asyncio.sleep(0.001)
    assert reasons[0].reason == "aborted-by-peer"
    assert reasons[0].detail == b"the application failed"


@on_each_loop
async def test_closing_a_server_ends_its_associations():
    async def greet(association):
        await association.stream(0).send(b"welcome")
        await association.closed()

    async def never(association):
        await asyncio.Event().wait()

    server = await rexmit.serve(greet, "127.0.0.1", 0)
    association = await rexmit.connect("127.0.0.1", server.address[1])
    forever = asyncio.ensure_future(server.serve_forever())
    await asyncio.sleep(0)
    await server.close()
    await forever
    await server.close()
    assert [message.payload async for message in association] == [b"welcome"]

    server = await rexmit.serve(never, "127.0.0.1", 0)
    association = await rexmit.connect("127.0.0.1", server.address[1])
    while not server.associations:
        await asyncio.sleep(0.001)
    await server.close(timeout=0.1)
    assert server.associations == ()
    assert (await association.closed()).reason == "shutdown"


@on_each_loop
async def test_events_report_the_fate_of_messages():
    config = rexmit.Config(report_acknowledged=True)
    async with rexmit.serve(echo, "127.0.0.1", 0) as server:
        relay, port = await relayed(server, 0.0)
        async with rexmit.connect("127.0.0.1", port, config=config) as association:
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
    async with rexmit.serve(echo, "127.0.0.1", 0) as server:
        async with rexmit.connect("127.0.0.1", server.address[1], config=config) as association:
            for _ in range(400):
                await association.stream(0).send(b"x")
                await association.receive()
        events = [event async for event in association.events()]
    assert isinstance(events[0], rexmit.Missed)
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
    async with rexmit.serve(echo, "127.0.0.1", 0) as server:
        association = await rexmit.connect("127.0.0.1", server.address[1])
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
        async with rexmit.connect("127.0.0.1", port) as association:
            for turn in range(5):
                message = b"%d %d" % (number, turn)
                await association.stream(number % 16).send(message)
                assert (await association.receive()).payload == message

    async with rexmit.serve(echo, "127.0.0.1", 0) as server:
        await asyncio.gather(*(one(server.address[1], number) for number in range(50)))


@pytest.mark.parametrize("kind", LOOPS)
def test_an_event_loop_that_was_closed_is_named(kind):
    loop = LOOPS[kind]()

    async def connected():
        server = await rexmit.serve(echo, "127.0.0.1", 0)
        return server, await rexmit.connect("127.0.0.1", server.address[1])

    server, association = loop.run_until_complete(connected())
    stream = association.stream(0)
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0.01))
    loop.close()
    with pytest.raises((RuntimeError, rexmit.ClosedError), match="connect"):
        stream.try_send(b"too late")
    association._transport.close()
    server._transport.close()


def test_bad_arguments_are_refused_where_they_are_given():
    async def handler(association):
        pass

    with pytest.raises(rexmit.UnknownProfileError, match='did you mean "interactive"'):
        rexmit.connect("localhost", 9899, profile="interactve")
    with pytest.raises(TypeError, match="host must be a str"):
        rexmit.connect(b"localhost", 9899)
    with pytest.raises(TypeError, match="port must be an int, not str"):
        rexmit.connect("localhost", "9899")
    with pytest.raises(ValueError, match="from 0 to 65535"):
        rexmit.serve(handler, "localhost", 65_536)
    with pytest.raises(TypeError, match="coroutine function"):
        rexmit.serve(None, "localhost", 9899)
    with pytest.raises(ValueError, match="max_message_bytes is 0"):
        rexmit.serve(handler, "localhost", 9899, config=rexmit.Config(max_message_bytes=0))


@on_each_loop
async def test_bad_messages_are_refused():
    async with rexmit.serve(echo, "127.0.0.1", 0) as server:
        async with rexmit.connect("127.0.0.1", server.address[1]) as association:
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
                await rexmit.serve(echo, "127.0.0.1", server.address[1])

"""The transport after its event loop was closed."""

import asyncio
import gc

import pytest
from asyncio_kit import LOOPS, connect, echo, serve

import rexmit


@pytest.mark.parametrize("kind", LOOPS)
def test_an_event_loop_that_was_closed_is_named(kind):
    loop = LOOPS[kind]()

    async def connected():
        server = await serve(echo, "127.0.0.1", 0)
        return server, await connect("127.0.0.1", server.address[1])

    server, association = loop.run_until_complete(connected())
    stream = association.stream(0)
    # The end of the handler's task is not waited for, as by `asyncio.run`: its peer, which is this association, would end, too.
    loop.close()

    class Untouched:
        def __getattr__(self, name):
            raise AssertionError(f"the state of the endpoint was changed or read by {name}")

    endpoint, association._transport.endpoint = association._transport.endpoint, Untouched()
    with pytest.raises(RuntimeError, match="association is closed: connect in a new one"):
        asyncio.run(uses_of(stream)["send"]())
    for name, use in uses_of(stream).items():
        with pytest.raises(RuntimeError, match="association is closed: connect in a new one"):
            asyncio.run(use())
            raise AssertionError(name)
    for use in (server.close, server.serve_forever):
        with pytest.raises(RuntimeError, match="server is closed: serve in a new one"):
            asyncio.run(use())
    association._transport.endpoint = endpoint
    assert association.statistics().packets_sent > 0
    association._transport.close()
    server._transport.close()
    # The handler's coroutine ends without another exception, which pytest would report.
    del server, use
    gc.collect()


def uses_of(stream):
    """All that reaches the event loop of an association, by name."""
    association = stream._association

    def called(function, *arguments):
        async def call():
            return function(*arguments)

        return call

    async def entered():
        async with association:
            pass

    async def iterated():
        async for _ in association:
            pass

    async def events():
        async for _ in association.events():
            pass

    return {
        "send": lambda: stream.send(b"too late"),
        "try_send": called(stream.try_send, b"too late"),
        "set_priority": called(stream.set_priority, 1),
        "receive": association.receive,
        "try_receive": called(association.try_receive),
        "iteration": iterated,
        "next_event": association.next_event,
        "events": events,
        "reset_streams": called(association.reset_streams),
        "set_scheduling": called(association.set_scheduling, "priority"),
        "shutdown": association.shutdown,
        "abort": called(association.abort),
        "closed": association.closed,
        "block": entered,
    }


@pytest.mark.parametrize("kind", LOOPS)
def test_a_send_that_waited_when_the_event_loop_was_closed_blocks_no_other(kind):
    loop = LOOPS[kind]()
    small = rexmit.Config(send_buffer_bytes=4096, receive_buffer_bytes=4096, max_message_bytes=4096)

    async def never(association):
        await association.closed()

    async def blocked():
        server = await serve(never, "127.0.0.1", 0, config=small)
        association = await connect("127.0.0.1", server.address[1], config=small)
        sending = None
        while sending is None or sending.done():
            sending = asyncio.ensure_future(association.stream(0).send(bytes(4000)))
            await asyncio.wait([sending], timeout=0.1)
        return server, association, sending

    server, association, _ = loop.run_until_complete(blocked())
    loop.close()
    with pytest.raises(RuntimeError, match="connect in a new one"):
        asyncio.run(asyncio.wait_for(association.stream(0).send(b"x"), 5))
    association._transport.close()
    server._transport.close()


@pytest.mark.parametrize("kind", LOOPS)
def test_messages_that_had_arrived_are_received_after_the_event_loop_was_closed(kind):
    loop = LOOPS[kind]()

    async def ended():
        async def greet(association):
            await association.stream(0).send(b"welcome")

        async with serve(greet, "127.0.0.1", 0) as server:
            association = await connect("127.0.0.1", server.address[1])
            await association.closed()
            return association

    association = loop.run_until_complete(ended())
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert association.try_receive().payload == b"welcome"
    assert asyncio.run(association.receive()) is None
    assert asyncio.run(association.shutdown()).reason == "shutdown"
    association.abort()
    with pytest.raises(rexmit.ClosedError, match="connect again"):
        association.stream(0).try_send(b"x")

"""Event loops, a server and its clients, for tests of the asyncio transport."""

import asyncio

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
    """Runs a coroutine function as a test, in 30 s at most, and checks that no task remains."""

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


IDENTITY = rexmit.Identity.generate()


def serve(handler, host, port, **settings):
    return rexmit.serve(handler, host, port, IDENTITY, **settings)


def connect(host, port, **settings):
    return rexmit.connect(host, port, IDENTITY.fingerprint, **settings)


async def echo(association):
    async for message in association:
        await association.stream(message.stream).send(message.payload, ordered=not message.unordered)

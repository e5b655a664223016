"""Whether other threads run Python during a call."""

import threading
import time


def turns_during(call):
    """How often another thread gets its turn in the middle of a call, at most about once per millisecond.

    The interpreter may switch threads just before and after the call: the first and the last tenth do not count.
    """
    turns = []
    is_done = threading.Event()

    def count():
        while not is_done.is_set():
            turns.append(time.monotonic())
            time.sleep(0.001)

    counting = threading.Thread(target=count)
    counting.start()
    begun = time.monotonic()
    call()
    took = time.monotonic() - begun
    is_done.set()
    counting.join()
    assert took > 0.1, "the call is too short to tell"
    return sum(begun + 0.1 * took < at < begun + 0.9 * took for at in turns)

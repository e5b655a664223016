"""Calls that signals interrupt, and poll()."""

import ctypes
import errno
import os
import select
import signal
import socket
import struct
import threading
import time

from .sctp import (
    listener,
    one_to_one,
    pair,
)


def replaced():
    """A call that waits stays with its socket when another thread makes its descriptor one of another socket."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.recv.restype = ctypes.c_ssize_t
    first, first_peer = pair()
    second, second_peer = pair()
    buffer = ctypes.create_string_buffer(100)
    lengths = []
    waiting = threading.Thread(target=lambda: lengths.append(libc.recv(first.fileno(), buffer, ctypes.c_size_t(100), 0)))
    waiting.start()
    time.sleep(0.3)
    os.dup2(second.fileno(), first.fileno())
    second_peer.send(b"of the second")
    time.sleep(0.3)
    first_peer.send(b"of the first")
    waiting.join(10)
    assert buffer.raw[: lengths[0]] == b"of the first", (lengths, buffer.raw)
    assert second.recv(100) == b"of the second"


def filled():
    """A socket that blocks, and whose peer does not read what fills it; the peer's."""
    full, unread = pair()
    full.setblocking(False)
    refused = 0
    while refused < 5:
        try:
            full.send(bytes(50_000))
            refused = 0
        except BlockingIOError:
            refused += 1
            time.sleep(0.1)
    full.setblocking(True)
    return full, unread


def waiting_sends():
    """A `send` that waits ends with the first signal whose handler does not restart calls, and goes on after others."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.send.restype = ctypes.c_ssize_t
    full, unread = filled()
    buffer = ctypes.create_string_buffer(60_000)
    handled = set()
    signal.signal(signal.SIGINT, signal.SIG_DFL)

    def handlers(**interrupts):
        for name in "SIGUSR1", "SIGUSR2":
            number = getattr(signal, name)
            if name in interrupts:
                signal.signal(number, lambda number, _: handled.add(number))
                signal.siginterrupt(number, interrupts[name])
            else:
                signal.signal(number, signal.SIG_DFL)
        handled.clear()

    def send(length, *later):
        """What `send` returns, or the negative number of its error; and the time it took. `later`: signals, and calls in
        another process, each 0.4 s after the one before."""
        child = os.fork()
        if child == 0:
            for act in later:
                time.sleep(0.4)
                act() if callable(act) else os.kill(os.getppid(), act)
            os._exit(0)
        begun = time.monotonic()
        sent = libc.send(full.fileno(), buffer, ctypes.c_size_t(length), 0)
        sent = sent if sent >= 0 else -ctypes.get_errno()
        took = time.monotonic() - begun
        os.waitpid(child, 0)
        return sent, took

    def read():
        end = time.monotonic() + 1
        while time.monotonic() < end:
            try:
                unread.recv(60_000, socket.MSG_DONTWAIT)
            except BlockingIOError:
                time.sleep(0.01)

    handlers(SIGUSR1=True)
    for length in [100, 1000, 20_000, 50_000]:
        sent, took = send(length, signal.SIGUSR1)
        assert sent == -errno.EINTR and took > 0.3 and handled == {signal.SIGUSR1}, (length, sent, took, handled)
    handlers(SIGUSR1=True, SIGUSR2=False)
    sent, took = send(1000, signal.SIGUSR2, signal.SIGUSR1)
    assert sent == -errno.EINTR and took > 0.7 and len(handled) == 2, (sent, took, handled)
    # With a timeout, every handler ends the call (signal(7)).
    full.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("=qq", 0, 600_000))
    sent, took = send(1000, signal.SIGUSR2)
    assert sent == -errno.EINTR and took > 0.3, (sent, took)
    sent, took = send(1000)
    assert sent == -errno.EAGAIN and took > 0.5, (sent, took)
    full.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("=qq", 0, 0))
    handlers(SIGUSR1=True, SIGUSR2=False)
    sent, took = send(1000, signal.SIGUSR2, read)
    assert sent == 1000 and took > 0.7 and handled == {signal.SIGUSR2}, (sent, took, handled)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()


def filling():
    """The first signal ends a `send`, too, that waited while a part of what was sent before was taken."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.send.restype = ctypes.c_ssize_t
    buffer = ctypes.create_string_buffer(60_000)
    signal.signal(signal.SIGUSR1, lambda *_: None)
    signal.siginterrupt(signal.SIGUSR1, True)
    for length in [1000, 20_000, 50_000]:
        full, _unread = pair()
        child = os.fork()
        if child == 0:
            for _ in range(5):
                time.sleep(2)
                os.kill(os.getppid(), signal.SIGUSR1)
            os._exit(0)
        begun = time.monotonic()
        while libc.send(full.fileno(), buffer, ctypes.c_size_t(length), 0) == length:
            pass
        took = time.monotonic() - begun
        assert ctypes.get_errno() == errno.EINTR and took < 3.5, (length, ctypes.get_errno(), took)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def signals():
    """A call that waits ends with EINTR when a handler has run, or goes on where the handler asks for that."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.recv.restype = ctypes.c_ssize_t
    handled = []
    signal.signal(signal.SIGUSR1, lambda *_: handled.append(1))
    client, server = pair()
    listening = listener()
    full, _unread = filled()
    buffer = ctypes.create_string_buffer(60_000)

    def interrupted(call):
        child = os.fork()
        if child == 0:
            # More than one, as the first may come before the call waits.
            for _ in range(20):
                time.sleep(0.1)
                os.kill(os.getppid(), signal.SIGUSR1)
            os._exit(0)
        result = call()
        number = ctypes.get_errno()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return number if result < 0 else None

    signal.siginterrupt(signal.SIGUSR1, True)
    calls = {
        "recv": lambda: libc.recv(client.fileno(), buffer, ctypes.c_size_t(100), 0),
        "accept": lambda: libc.accept(listening.fileno(), None, None),
        "send": lambda: libc.send(full.fileno(), buffer, ctypes.c_size_t(50_000), 0),
    }
    for name, call in calls.items():
        number = interrupted(call)
        assert number == errno.EINTR, (name, number)
    assert handled
    signal.siginterrupt(signal.SIGUSR1, False)

    def answered():
        if os.fork() == 0:
            time.sleep(0.8)
            server.send(b"at last")
            os._exit(0)
        return libc.recv(client.fileno(), buffer, ctypes.c_size_t(100), 0)

    handled.clear()
    assert interrupted(answered) is None and buffer.raw[:7] == b"at last"
    assert handled


def polling():
    """`poll` before and after data, the end of data, and the end of the association."""
    client, server = pair()
    poll = select.poll()
    poll.register(client, select.POLLIN | select.POLLOUT)
    listening = listener()
    accepting = select.poll()
    accepting.register(listening, select.POLLIN)
    assert accepting.poll(0) == []
    another = one_to_one()
    another.connect(listening.getsockname())
    assert accepting.poll(10_000) == [(listening.fileno(), select.POLLIN)]
    assert poll.poll(10_000) == [(client.fileno(), select.POLLOUT)]
    server.send(b"here")
    reading = select.poll()
    reading.register(client, select.POLLIN)
    assert reading.poll(10_000) == [(client.fileno(), select.POLLIN)]
    assert client.recv(100) == b"here"
    assert reading.poll(100) == []
    server.shutdown(socket.SHUT_WR)
    assert reading.poll(10_000)[0][1] & select.POLLIN
    assert client.recv(100) == b""

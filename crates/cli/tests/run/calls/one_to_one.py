"""Messages, ends, waiting and descriptors of one-to-one sockets."""

import errno
import os
import select
import socket
import struct
import sys
import threading
import time

from .sctp import (
    SCTP,
    SCTP_STATUS,
    fails,
    listener,
    one_to_one,
    pair,
    receive_all,
)


def messages():
    client, server = pair()
    client.send(b"hello")
    client.send(b"again")
    # A message is read in parts, and never with the next one.
    assert server.recv(2, socket.MSG_PEEK) == b"he"
    assert server.recv(2) == b"he"
    assert server.recv(100, socket.MSG_PEEK) == b"llo"
    assert server.recv(100) == b"llo"
    assert server.recv(100) == b"again"
    large = os.urandom(200_000)
    server.sendall(large)
    assert receive_all(client, len(large)) == large
    largest = os.urandom(212_992)
    assert server.send(largest) == len(largest)
    assert receive_all(client, len(largest)) == largest
    fails(errno.EMSGSIZE, server.send, bytes(len(largest) + 1))
    fails(errno.EMSGSIZE, client.send, bytes(300_000))
    fails(errno.EINVAL, client.send, b"")
    os.writev(client.fileno(), [b"one ", b"two"])
    first, second = bytearray(3), bytearray(10)
    assert os.readv(server.fileno(), [first, second]) == 7
    assert bytes(first) + bytes(second)[:4] == b"one two"
    # The same at no offset, of which sockets have none; and without waiting, which a file can.
    assert os.pwritev(client.fileno(), [b"one ", b"two"], -1, os.RWF_SYNC) == 7
    assert os.preadv(server.fileno(), [first, second], -1) == 7
    assert bytes(first) + bytes(second)[:4] == b"one two"
    fails(errno.ESPIPE, os.pwritev, client.fileno(), [b"one"], 0)
    fails(errno.ESPIPE, os.preadv, server.fileno(), [first], 0)
    fails(errno.EOPNOTSUPP, os.preadv, server.fileno(), [first], -1, os.RWF_NOWAIT)


def _error(endpoint):
    return endpoint.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)


def _aborted():
    client, server = pair()
    # SO_LINGER with a time of zero aborts.
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    select.select([server], [], [])
    return server


def ends():
    client, server = pair()
    client.send(b"last")
    client.shutdown(socket.SHUT_WR)
    assert server.recv(10) == b"last"
    assert server.recv(10) == b""
    fails(errno.EPIPE, server.send, b"too late")
    # An abort is the error of one call, whichever comes first.
    aborted = _aborted()
    fails(errno.ECONNRESET, aborted.recv, 10)
    assert _error(aborted) == 0
    fails(errno.ENOTCONN, aborted.recv, 10)
    aborted = _aborted()
    assert [_error(aborted), _error(aborted)] == [errno.ECONNRESET, 0]
    fails(errno.ENOTCONN, aborted.recv, 10)
    aborted = _aborted()
    fails(errno.ECONNRESET, aborted.send, b"too late")
    fails(errno.EPIPE, aborted.send, b"too late")
    client, server = pair()
    client.send(b"unread")
    select.select([server], [], [])
    server.close()
    fails(errno.ECONNRESET, client.recv, 10)
    # The side that ended the association reads no end of file.
    client, server = pair()
    client.shutdown(socket.SHUT_WR)
    assert server.recv(10) == b""
    server.close()
    fails(errno.ENOTCONN, client.recv, 10)
    fails(errno.ENOTCONN, client.recv, 10)
    # A port without a listener.
    closed = listener()
    address = closed.getsockname()
    closed.close()
    fails(errno.ECONNREFUSED, one_to_one().connect, address)


def _linger(endpoint, seconds):
    endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, seconds))


def _fill(endpoint):
    endpoint.setblocking(False)
    sent = 0
    while True:
        try:
            sent += endpoint.send(bytes(50_000))
        except BlockingIOError:
            if not select.select([], [endpoint], [], 0.5)[1]:
                return sent


def _closing(descriptor):
    begun = time.monotonic()
    os.close(descriptor)
    return time.monotonic() - begun


def lingers():
    client, server = pair()
    sent = _fill(client)
    _linger(client, 60)
    copy = os.dup(client.fileno())
    client.close()  # Not the last descriptor: the alarm would end a wait of a minute.
    last = socket.socket(fileno=copy)
    _linger(last, 1)
    assert _closing(last.detach()) >= 0.9  # The peer does not read.
    receive_all(server, sent)
    assert server.recv(1) == b""
    # An accepted socket inherits it, and timeouts.
    listening = listener()
    _linger(listening, 7)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 5, 0))
    client = one_to_one()
    client.connect(listening.getsockname())
    server = listening.accept()[0]
    assert server.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8) == struct.pack("ii", 1, 7)
    assert server.getsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, 16) == struct.pack("ll", 5, 0)
    # The end of the association ends the wait.
    client, server = pair()
    sent = _fill(client)
    _linger(client, 60)
    reader = threading.Timer(1, receive_all, [server, sent])
    reader.start()
    assert _closing(client.detach()) >= 0.5
    reader.join()
    client, server = pair()
    _linger(client, 60)
    server.close()
    assert client.recv(1) == b""
    client.close()  # There is no association any more.


def waiting():
    listening = listener()
    listening.setblocking(False)
    fails(errno.EAGAIN, listening.accept)
    client = one_to_one()
    client.setblocking(False)
    assert client.connect_ex(listening.getsockname()) == errno.EINPROGRESS
    assert select.select([], [client], [], 10)[1] == [client]
    assert _error(client) == 0
    assert select.select([listening], [], [], 10)[0] == [listening]
    # To look for an error takes nothing that waits, and keeps nothing of it.
    descriptors = os.listdir("/proc/self/fd")
    assert _error(listening) == 0
    assert os.listdir("/proc/self/fd") == descriptors
    server = listening.accept()[0]
    fails(errno.EAGAIN, client.recv, 10)
    # With a backlog of one, two associations wait to be accepted, and a third is refused.
    listening.listen(1)
    waiting = [one_to_one() for _ in range(2)]
    for each in waiting:
        each.connect(listening.getsockname())
    fails(errno.ECONNREFUSED, one_to_one().connect, listening.getsockname())
    listening.accept()[0].close()
    one_to_one().connect(listening.getsockname())
    poll = select.epoll()
    poll.register(client, select.EPOLLIN)
    assert poll.poll(0) == []
    server.send(b"ready")
    assert poll.poll(10) == [(client.fileno(), select.EPOLLIN)]
    assert client.recv(10) == b"ready"
    # A full pair makes the sender wait, and a reader ends that.
    sent = _fill(client)
    receive_all(server, sent)
    assert select.select([], [client], [], 10)[1] == [client]
    # A connection that fails makes the socket writable, with an error.
    address = listening.getsockname()
    listening.close()
    failing = one_to_one()
    failing.setblocking(False)
    assert failing.connect_ex(address) == errno.EINPROGRESS
    assert select.select([], [failing], [], 10)[1] == [failing]
    assert _error(failing) == errno.ECONNREFUSED
    assert _error(failing) == 0
    timed, _other = pair()
    timed.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 10_000))
    fails(errno.EAGAIN, timed.recv, 10)


def descriptors():
    client, server = pair()
    # The child has the socket, and the parent gets what it sends after closing its own.
    child = os.fork()
    if child == 0:
        client.send(b"from the child")
        os._exit(0)
    client.close()
    assert server.recv(100) == b"from the child"
    os.waitpid(child, 0)
    assert server.recv(100) == b""
    client, server = pair()
    copy = os.dup(client.fileno())
    client.close()
    os.write(copy, b"from a copy")
    assert server.recv(100) == b"from a copy"
    # Another program is given the descriptor.
    os.set_inheritable(copy, True)
    code = f"import os; os.write({copy}, b'from another program')"
    assert os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", code]) == 0
    assert server.recv(100) == b"from another program"
    ours, theirs = socket.socketpair()
    socket.send_fds(ours, [b"x"], [copy])
    os.close(copy)
    passed = socket.recv_fds(theirs, 1, 1)[1][0]
    os.write(passed, b"from a passed one")
    assert server.recv(100) == b"from a passed one"


def packets():
    """Both sides of an association of this host use its large packets: `sstat_fragmentation_point`."""
    for side in pair():
        status = side.getsockopt(SCTP, SCTP_STATUS, 176)
        assert struct.unpack_from("I", status, 20)[0] > 30_000, status

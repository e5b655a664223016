"""The engine: many sockets, programs that are killed or change their user, and an engine that is gone."""

import errno
import os
import resource
import select
import signal
import socket
import struct
import sys
import time

from .sctp import (
    LOCALHOST,
    SCTP,
    SCTP_STATUS,
    fails,
    listener,
    one_to_one,
    pair,
    receive_all,
)


def many():
    wanted = 10_000
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, wanted + 100), hard))
    made = []
    try:
        while len(made) < wanted:
            made.append(one_to_one())
    except OSError as error:
        # The program's limit, or the engine's, is lower.
        assert error.errno in (errno.EMFILE, errno.ENFILE) and hard < 2 * wanted, (error, len(made))
    assert len(made) > 100
    print(f"{len(made)} sockets", flush=True)
    # Beyond its limit a program is told so.
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(made), hard))
    fails(errno.EMFILE, one_to_one)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(made) + 100, hard))
    for each in made:
        each.close()
    client, server = pair()
    client.send(b"still served")
    assert server.recv(100) == b"still served"


def reserved():
    with open("/proc/sys/net/ipv4/ip_unprivileged_port_start") as file:
        first = int(file.read())
    for port in (first - 1, first + 1000):
        try:
            one_to_one().bind((LOCALHOST, port))
            found = "bound"
        except OSError as error:
            found = errno.errorcode[error.errno]
        assert found == (sys.argv[2] if 0 < port < first else "bound"), (port, found)


def moves():
    """The kernel would move the frames of the pair: these calls fail, so that programs read and write instead."""
    client, server = pair()
    end, start = os.pipe()
    os.write(start, b"data")
    client.send(b"message")
    select.select([server], [], [])
    with open(__file__, "rb") as file:
        fails(errno.EINVAL, os.sendfile, client.fileno(), file.fileno(), 0, 10)
    fails(errno.EINVAL, os.sendfile, start, server.fileno(), None, 10)
    fails(errno.EINVAL, os.splice, end, client.fileno(), 4)
    fails(errno.EINVAL, os.splice, server.fileno(), start, 10)
    assert os.read(end, 10) == b"data"
    assert server.recv(10) == b"message"


def killed():
    """A thousand programs that are killed while they have a socket and an association."""
    signal.alarm(600)
    listening = listener()
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(1000):
        child = os.fork()
        if child == 0:
            client = one_to_one()
            client.connect(listening.getsockname())
            client.send(b"here")
            signal.pause()
        server = listening.accept()[0]
        assert server.recv(100) == b"here"
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert server.recv(100) == b""
        server.close()
    print("done", flush=True)
    sys.stdin.readline()


def daemon():
    """A program whose first process ends long before its child uses SCTP."""
    if os.fork() == 0:
        os.setsid()
        time.sleep(1.5)
        client, server = pair()
        client.send(b"served")
        assert server.recv(100) == b"served"
        print("served", flush=True)


def another_user():
    """A program that gives up root's rights keeps its sockets, and may open more."""
    listening = listener()
    client = one_to_one()
    client.connect(listening.getsockname())
    os.setgroups([])
    os.setgid(65_534)
    os.setuid(65_534)
    server = listening.accept()[0]
    assert server.getpeername() == client.getsockname()
    client.send(b"kept")
    assert server.recv(100) == b"kept"
    client, server = pair()
    client.send(b"new")
    assert server.recv(100) == b"new"


def stranger():
    """Another user, who neither has the key nor is quiet, while a program is served."""
    name = b"\0rexmit-run" + struct.pack("=Q", int(os.environ["REXMIT_RUN_ENGINE"], 16))
    ready, go = os.pipe()
    child = os.fork()
    if child == 0:
        os.setuid(65_534)

        def connected():
            made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            made.connect(name)
            return made

        held = [connected() for _ in range(300)]
        # A socket is requested without a key and with a wrong one; and what is no request.
        request = bytes([1]) + bytes(15) + struct.pack("=ii", socket.AF_INET, socket.SOCK_STREAM)
        for garbage in [request + bytes(8), request + b"12345678", b"", b"x", os.urandom(9000), bytes(32)]:
            made = connected()
            made.send(garbage)
            assert made.recv(100) == b"", garbage
        os.write(go, b"x")
        signal.pause()
    assert os.read(ready, 1) == b"x"
    client, server = pair()
    client.send(b"served")
    assert server.recv(100) == b"served"
    os.kill(child, signal.SIGTERM)


def terminated():
    """The engine has got the signals with which services are stopped: programs still say goodbye."""
    client, server = pair()
    print("ready", flush=True)
    sys.stdin.readline()
    client.send(b"goodbye")
    client.close()
    assert (server.recv(100), server.recv(100)) == (b"goodbye", b"")


def without_engine():
    """Every call fails with ENETDOWN, and none shows the end of what the peer has sent, or raises SIGPIPE."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    client, server = pair()
    idle, unread = pair()
    unread.send(bytes(1000))
    many = socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET, SCTP)
    many.listen(1)
    listening = listener()
    client.send(bytes(1000))
    assert server.recv(10) == bytes(10)
    select.select([idle], [], [])
    # The engine reads no more from this one.
    full, _reader = pair()
    full.setblocking(False)
    while select.select([], [full], [], 0.5)[1]:
        try:
            full.send(bytes(50_000))
        except BlockingIOError:
            pass
    print("ready", flush=True)
    sys.stdin.readline()
    # Data that arrived is still there.
    assert receive_all(server, 990) == bytes(990)
    fails(errno.ENETDOWN, server.recv, 10)
    fails(errno.ENETDOWN, server.recv, 10)
    assert receive_all(idle, 1000) == bytes(1000)
    fails(errno.ENETDOWN, idle.recv, 10)
    fails(errno.ENETDOWN, many.recv, 10)
    fails(errno.ENETDOWN, client.send, b"x")
    fails(errno.ENETDOWN, full.send, b"x")
    fails(errno.ENETDOWN, many.sendto, b"x", (LOCALHOST, 7000))
    fails(errno.ENETDOWN, listening.accept)
    fails(errno.ENETDOWN, client.getsockopt, SCTP, SCTP_STATUS, 176)
    fails(errno.ENETDOWN, one_to_one)
    assert select.select([client], [client], [], 10)[:2] == ([client], [client])


def serve():
    """For a program that is killed: waits for the end of its peer."""
    listening = listener()
    print(listening.getsockname()[1], flush=True)
    server = listening.accept()[0]
    assert server.recv(100) == b"here"
    print("connected", flush=True)
    try:
        assert server.recv(100) == b""
    except OSError as error:
        assert error.errno in (errno.ECONNRESET, errno.ENETDOWN), error


def vanished():
    """The host of the peer is gone: `recv` fails when retransmissions did not help."""
    client = one_to_one()
    client.setsockopt(SCTP, 0, struct.pack("iIII", 0, 100, 200, 100))
    client.setsockopt(SCTP, 1, struct.pack("=iHHIII", 0, 2, 0, 0, 0, 0))
    client.connect((LOCALHOST, int(sys.argv[2])))
    client.send(b"here")
    print("sent", flush=True)
    sys.stdin.readline()
    client.send(b"is anybody there?")
    fails(errno.ETIMEDOUT, client.recv, 10)


def vanish():
    client = one_to_one()
    client.connect((LOCALHOST, int(sys.argv[2])))
    client.send(b"here")
    time.sleep(60)

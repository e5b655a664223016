"""One-to-many sockets, and associations that leave them."""

import ctypes
import errno
import os
import socket
import struct
import time

from .sctp import (
    COMM_LOST,
    LOCALHOST,
    SCTP,
    SCTP_ABORT,
    SCTP_AUTOCLOSE,
    SCTP_EVENTS,
    SCTP_GET_ASSOC_ID_LIST,
    SCTP_GET_ASSOC_NUMBER,
    SCTP_GET_PEER_ADDRS,
    SCTP_SNDRCV,
    SCTP_SOCKOPT_BINDX_ADD,
    SCTP_SOCKOPT_CONNECTX,
    SCTP_SOCKOPT_PEELOFF,
    SHUTDOWN_COMP,
    fails,
    one_to_one,
    pair,
)


def one_to_many():
    first, second = [socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET, SCTP) for _ in range(2)]
    for each in first, second:
        each.bind((LOCALHOST, 0))
        each.listen(5)
        # Data, and changes of associations.
        each.setsockopt(SCTP, 11, bytes([1, 1, 0, 0, 0, 1, 0, 0]))
    # Stream 3, PPID 7, unordered: sctp_sndrcvinfo.
    info = struct.pack("=HHHHIIIIIi", 3, 0, 1, 0, 7, 0, 0, 0, 0, 0)
    first.sendmsg([b"hello"], [(SCTP, 1, info)], 0, second.getsockname())
    data, _, flags, _ = second.recvmsg(1000, 1000)
    assert flags & 0x8000 and struct.unpack_from("HHIH", data) == (0x8001, 0, 20, 0), (flags, data)
    data, control, flags, peer = second.recvmsg(1000, 1000)
    assert (data, peer) == (b"hello", first.getsockname())
    assert flags == socket.MSG_EOR
    sndrcv = struct.unpack("=HHHHIIIIIi", control[0][2])
    assert (sndrcv[0], sndrcv[2] & 1, sndrcv[4]) == (3, 1, 7), sndrcv
    # The other way, by the number of the association; then its end.
    back = struct.pack("=HHHHIIIIIi", 0, 0, 0, 0, 0, 0, 0, 0, 0, sndrcv[9])
    second.sendmsg([b"back"], [(SCTP, 1, back)])
    assert first.recvmsg(1000, 1000)[2] & 0x8000
    assert first.recv(1000) == b"back"
    end = struct.pack("=HHHHIIIIIi", 0, 0, 0x200, 0, 0, 0, 0, 0, 0, sndrcv[9])
    second.sendmsg([], [(SCTP, 1, end)])
    kinds = [struct.unpack_from("H", first.recv(1000))[0] for _ in range(2)]
    assert kinds == [0x8005, 0x8001], kinds
    fails(errno.EOPNOTSUPP, first.accept)
    # Without data, an association ends after a second; an ABORT comes with its cause.
    for end in ["autoclose", "abort"]:
        idle = socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET, SCTP)
        idle.setsockopt(SCTP, SCTP_EVENTS, bytes([1, 1, 0, 0, 0, 0, 0, 0]))
        if end == "autoclose":
            idle.setsockopt(SCTP, SCTP_AUTOCLOSE, 1)
        idle.sendto(b"hello", first.getsockname())
        number = struct.unpack_from("i", idle.recv(1000), 16)[0]
        if end == "abort":
            info = struct.pack("=HHHHIIIIIi", 0, 0, SCTP_ABORT, 0, 0, 0, 0, 0, 0, number)
            idle.sendmsg([b"why"], [(SCTP, SCTP_SNDRCV, info)])
        received = []
        while not received or received[-1][0] not in (0x8001,) or struct.unpack_from("H", received[-1][1], 8)[0] == 0:
            data = first.recv(1000)
            received.append((struct.unpack_from("H", data)[0], data))
        change = received[-1][1]
        if end == "autoclose":
            assert struct.unpack_from("H", change, 8)[0] == SHUTDOWN_COMP, change
        else:
            assert struct.unpack_from("H", change, 8)[0] == COMM_LOST, change
            assert change[20:] == b"\0\x0c\0\x07why", change
    # Messages sent before a close arrive, also those sent before the association was established; then its end.
    third = socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET, SCTP)
    third.setsockopt(SCTP, 11, bytes([1, 1, 0, 0, 0, 1, 0, 0]))
    for number in range(300):
        third.sendto(b"%d" % number, second.getsockname())
    third.close()
    while second.recv(1000) != b"0":
        pass
    for number in range(1, 300):
        assert second.recv(1000) == b"%d" % number
    changes = [second.recv(1000) for _ in range(2)]
    assert [struct.unpack_from("H", change)[0] for change in changes] == [0x8005, 0x8001], changes
    assert struct.unpack_from("H", changes[1], 8)[0] == 3, changes


def connectx():
    """`sctp_connectx` with two addresses of the peer, its older form, and what it refuses."""
    listening = one_to_one()
    listening.bind((LOCALHOST, 0))
    port = listening.getsockname()[1]

    def at(last, to=port):
        return struct.pack("=H", socket.AF_INET) + struct.pack(">H", to) + bytes([127, 0, 0, last]) + bytes(8)

    listening.setsockopt(SCTP, SCTP_SOCKOPT_BINDX_ADD, at(2))
    listening.listen(5)
    client = one_to_one()
    client.setsockopt(SCTP, SCTP_SOCKOPT_CONNECTX, at(1) + at(2))
    server = listening.accept()[0]
    client.send(b"over either")
    assert server.recv(100) == b"over either"
    count = struct.unpack_from("=iI", client.getsockopt(SCTP, SCTP_GET_PEER_ADDRS, 1000))[1]
    assert count == 2
    # Different ports, no address, and half of one.
    fails(errno.EINVAL, one_to_one().setsockopt, SCTP, SCTP_SOCKOPT_CONNECTX, at(1) + at(2, port + 1))
    fails(errno.EINVAL, one_to_one().setsockopt, SCTP, SCTP_SOCKOPT_CONNECTX, b"")
    fails(errno.EINVAL, one_to_one().setsockopt, SCTP, SCTP_SOCKOPT_CONNECTX, at(1)[:8])
    fails(errno.EISCONN, client.setsockopt, SCTP, SCTP_SOCKOPT_CONNECTX, at(1))


def peeled():
    """An association of a one-to-many socket becomes a socket of its own."""
    first, second = [socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET, SCTP) for _ in range(2)]
    first.bind((LOCALHOST, 0))
    first.listen(5)
    second.sendto(b"one", first.getsockname())
    assert first.recv(100) == b"one"
    count, number = struct.unpack("=Ii", first.getsockopt(SCTP, SCTP_GET_ASSOC_ID_LIST, 8))
    assert count == 1
    libc = ctypes.CDLL(None, use_errno=True)

    def peel_off(each, association):
        value, length = (ctypes.c_int * 2)(association, -1), ctypes.c_uint(8)
        result = libc.getsockopt(each.fileno(), SCTP, SCTP_SOCKOPT_PEELOFF, value, ctypes.byref(length))
        return result, ctypes.get_errno() if result < 0 else value[1]

    assert peel_off(first, number + 1000)[1] == errno.EINVAL
    result, descriptor = peel_off(first, number)
    assert result >= 0, os.strerror(descriptor)
    alone = socket.socket(fileno=descriptor)
    second.sendto(b"two", first.getsockname())
    assert alone.recv(100) == b"two"
    alone.send(b"back")
    assert second.recv(100) == b"back"
    # Whatever address is named.
    alone.sendto(b"back again", first.getsockname())
    assert second.recv(100) == b"back again"
    assert struct.unpack("=I", first.getsockopt(SCTP, SCTP_GET_ASSOC_NUMBER, 4)) == (0,)
    # The socket goes on with others.
    third = socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET, SCTP)
    third.sendto(b"three", first.getsockname())
    assert first.recv(100) == b"three"
    client, accepted = pair()
    assert peel_off(client, number)[1] == errno.EINVAL
    accepted.close()


def unread():
    """The associations of a socket that is not read share its receive window."""
    server = socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET, SCTP)
    server.bind((LOCALHOST, 0))
    server.listen(10)
    clients = [one_to_one() for _ in range(8)]
    sent = [0] * len(clients)
    for each in clients:
        each.connect(server.getsockname())
        each.setblocking(False)
    quiet_since = time.monotonic()
    while time.monotonic() < quiet_since + 1:
        for number, each in enumerate(clients):
            try:
                for _ in range(100):
                    each.send(struct.pack("=II", number, sent[number]) + bytes(992))
                    sent[number] += 1
                    quiet_since = time.monotonic()
            except BlockingIOError:
                pass
        time.sleep(0.01)
    # With a window for each association, it would be 18,400.
    assert sum(sent) < 15_000, sent
    received = [0] * len(clients)
    while received != sent:
        number, count = struct.unpack_from("=II", server.recv(1000))
        assert count == received[number], (number, count, received)
        received[number] += 1


def sharing():
    """Two processes receive on one socket: each message arrives at one of them."""
    count = 4000
    client, server = pair()
    seen, report = os.pipe()
    for _ in range(2):
        if os.fork() == 0:
            client.close()
            got = []
            while data := server.recv(100):
                got.append(data)
            os.write(report, b" ".join(got) + b" ")
            os._exit(0)
    server.close()
    for number in range(count):
        client.send(b"%d" % number)
    client.close()
    os.close(report)
    received = []
    with os.fdopen(seen, "rb") as file:
        received = sorted(int(number) for number in file.read().split())
    assert received == list(range(count)), (len(received), len(set(received)))

"""Calls of the socket API on SCTP sockets, as the program that `rexmit run` is tested with. Each function is a test; the
argument names it. It fails by an exception. Those that scripts/run-with-kernel names pass on a kernel with SCTP, too: what
is expected in them is what Linux does."""

import array
import ctypes
import errno
import os
import resource
import select
import signal
import socket
import struct
import sys
import time

SCTP = 132
SCTP_AUTOCLOSE, SCTP_DISABLE_FRAGMENTS, SCTP_PEER_ADDR_PARAMS, SCTP_EVENTS = 4, 8, 9, 11
SCTP_STATUS, SCTP_GET_ASSOC_NUMBER, SCTP_SOCKOPT_BINDX_ADD = 14, 28, 100
SCTP_RECVRCVINFO, SCTP_RECVNXTINFO = 32, 33
SCTP_SET_PEER_PRIMARY_ADDR, SCTP_AUTH_CHUNK, SCTP_HMAC_IDENT, SCTP_AUTH_KEY = 5, 21, 22, 23
SCTP_AUTH_ACTIVE_KEY, SCTP_AUTH_DELETE_KEY, SCTP_PEER_AUTH_CHUNKS, SCTP_LOCAL_AUTH_CHUNKS = 24, 25, 26, 27
SCTP_GET_ASSOC_ID_LIST, SCTP_AUTH_DEACTIVATE_KEY, SCTP_SOCKOPT_BINDX_REM, SCTP_SOCKOPT_PEELOFF = 29, 35, 101, 102
SCTP_GET_PEER_ADDRS, SCTP_SOCKOPT_CONNECTX, SCTP_GET_ASSOC_STATS = 108, 110, 112
SCTP_RECONFIG_SUPPORTED, SCTP_ENABLE_STREAM_RESET, SCTP_RESET_STREAMS, SCTP_RESET_ASSOC = 117, 118, 119, 120
SCTP_ADD_STREAMS, SCTP_INTERLEAVING_SUPPORTED, SCTP_EVENT, SCTP_STREAM_RESET_EVENT = 121, 125, 127, 0x800A
SCTP_SNDRCV, SCTP_RCVINFO, SCTP_NXTINFO = 1, 3, 4
SCTP_ABORT, MSG_NOTIFICATION = 4, 0x8000
COMM_LOST, SHUTDOWN_COMP = 1, 3
LOCALHOST = "127.0.0.1"
# A call that hangs ends the program.
signal.alarm(30)


def one_to_one(family=socket.AF_INET):
    return socket.socket(family, socket.SOCK_STREAM, SCTP)


def listener(address=LOCALHOST, family=socket.AF_INET):
    made = one_to_one(family)
    made.bind((address, 0))
    made.listen(5)
    return made


def pair():
    with listener() as listening:
        client = one_to_one()
        client.connect(listening.getsockname())
        accepted, peer = listening.accept()
        assert peer == client.getsockname(), (peer, client.getsockname())
        assert client.getpeername() == accepted.getsockname()
        return client, accepted


def receive_all(receiver, count):
    parts = []
    while count:
        part = receiver.recv(count)
        assert part
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def fails(number, call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        assert error.errno == number, (call, error)
    else:
        raise AssertionError(f"{call}{arguments} did not fail")


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
    fails(errno.EMSGSIZE, client.send, bytes(300_000))
    fails(errno.EINVAL, client.send, b"")
    os.writev(client.fileno(), [b"one ", b"two"])
    first, second = bytearray(3), bytearray(10)
    assert os.readv(server.fileno(), [first, second]) == 7
    assert bytes(first) + bytes(second)[:4] == b"one two"


def ends():
    client, server = pair()
    client.send(b"last")
    client.shutdown(socket.SHUT_WR)
    assert server.recv(10) == b"last"
    assert server.recv(10) == b""
    fails(errno.EPIPE, server.send, b"too late")
    client, server = pair()
    # SO_LINGER with a time of zero aborts.
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    fails(errno.ECONNRESET, server.recv, 10)
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


def waiting():
    listening = listener()
    listening.setblocking(False)
    fails(errno.EAGAIN, listening.accept)
    client = one_to_one()
    client.setblocking(False)
    assert client.connect_ex(listening.getsockname()) == errno.EINPROGRESS
    assert select.select([], [client], [], 10)[1] == [client]
    assert client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    assert select.select([listening], [], [], 10)[0] == [listening]
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
    sent = 0
    while True:
        try:
            sent += client.send(bytes(50_000))
        except BlockingIOError:
            if not select.select([], [client], [], 0.5)[1]:
                break
    receive_all(server, sent)
    assert select.select([], [client], [], 10)[1] == [client]
    # A connection that fails makes the socket writable, with an error.
    address = listening.getsockname()
    listening.close()
    failing = one_to_one()
    failing.setblocking(False)
    assert failing.connect_ex(address) == errno.EINPROGRESS
    assert select.select([], [failing], [], 10)[1] == [failing]
    assert failing.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED
    assert failing.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
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


def options():
    made = one_to_one()
    assert made.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL) == SCTP
    assert made.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == socket.SOCK_STREAM
    assert made.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN) == socket.AF_INET
    made.setsockopt(SCTP, 3, 1)
    assert made.getsockopt(SCTP, 3) == 1
    made.setsockopt(SCTP, 2, struct.pack("HHHH", 7, 9, 3, 500))
    assert struct.unpack("HHHH", made.getsockopt(SCTP, 2, 8)) == (7, 9, 3, 500)
    made.setsockopt(SCTP, 0, struct.pack("iIII", 0, 300, 5000, 200))
    assert struct.unpack("iIII", made.getsockopt(SCTP, 0, 16)) == (0, 300, 5000, 200)
    # An association of this machine, and an address that is not its peer's.
    fails(errno.EOPNOTSUPP, made.setsockopt, SCTP, SCTP_AUTOCLOSE, 1)
    client, server = pair()
    # A message that would need several packets.
    client.setsockopt(SCTP, SCTP_DISABLE_FRAGMENTS, 1)
    fails(errno.EMSGSIZE, client.send, bytes(100_000))
    client.send(b"small")
    client.setsockopt(SCTP, SCTP_DISABLE_FRAGMENTS, 0)
    client.send(bytes(100_000))
    # Ancillary data comes if it was asked for.
    client.send(b"last")
    assert server.recvmsg(1000, 1000)[1:3] == ([], socket.MSG_EOR)
    receive_all(server, 100_000 - 10)
    server.setsockopt(SCTP, SCTP_EVENTS, bytes([1]))
    server.setsockopt(SCTP, SCTP_RECVRCVINFO, 1)
    server.setsockopt(SCTP, SCTP_RECVNXTINFO, 1)
    control = server.recvmsg(10, 1000)[1]
    kinds = {kind: value for _, kind, value in control}
    assert sorted(kinds) == [SCTP_SNDRCV, SCTP_RCVINFO, SCTP_NXTINFO], control
    assert struct.unpack_from("=HHII", kinds[SCTP_NXTINFO])[3] == 4, control
    assert server.recvmsg(10, 20)[2] == socket.MSG_EOR | socket.MSG_CTRUNC
    status = client.getsockopt(SCTP, 14, 176)
    assert struct.unpack_from("ii", status)[1] == 4
    del client, server


def bad_input():
    client, server = pair()
    taken_for_paths = listener()
    fails(errno.ENOPROTOOPT, client.setsockopt, SCTP, 999, 1)
    fails(errno.ENOPROTOOPT, client.getsockopt, SCTP, 999)
    fails(errno.ENOPROTOOPT, client.setsockopt, socket.IPPROTO_TCP, 1, 1)
    fails(errno.EINVAL, client.setsockopt, SCTP, 2, b"x")
    fails(errno.EINVAL, client.getsockopt, SCTP, 14, 3)
    fails(errno.EINVAL, client.setsockopt, SCTP, 0, struct.pack("iIII", 0, 1, 1, 5000))
    fails(errno.EISCONN, client.connect, server.getsockname())
    fails(errno.EINVAL, client.accept)
    fails(errno.EINVAL, client.setsockopt, SCTP, SCTP_PEER_ADDR_PARAMS, bytes(155))
    # Parameters of a path: of all, of nobody's address, and of an address of no family.
    for family, port, fits in [(0, 0, True), (socket.AF_INET, 7000, False), (77, 7000, False)]:
        address = struct.pack("=H", family) + struct.pack(">H", port) + bytes([127, 0, 0, 1] if family else 4)
        value = (bytes(4) + address + bytes(120) + struct.pack("=IHIIIB", 5000, 3, 0, 0, 1, 0)).ljust(152, b"\0")
        for each in [client, one_to_one(), taken_for_paths]:
            if fits:
                each.setsockopt(SCTP, SCTP_PEER_ADDR_PARAMS, value)
            else:
                fails(errno.EINVAL, each.setsockopt, SCTP, SCTP_PEER_ADDR_PARAMS, value)
    fails(errno.ENOTCONN, one_to_one().recv, 1)
    fails(errno.ENOTCONN, one_to_one().getpeername)
    fails(errno.ENOTCONN, one_to_one().shutdown, socket.SHUT_WR)
    fails(errno.EPIPE, one_to_one().send, b"x")
    fails(errno.EADDRNOTAVAIL, one_to_one().bind, ("192.0.2.1", 0))
    taken = listener()
    fails(errno.EADDRINUSE, one_to_one().bind, taken.getsockname())
    fails(errno.EINVAL, taken.bind, (LOCALHOST, 0))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.recv.restype = libc.send.restype = libc.recvmsg.restype = libc.sendmsg.restype = ctypes.c_ssize_t
    nowhere, fd = ctypes.c_void_p(8), client.fileno()

    def faults(function, *arguments):
        assert function(*arguments) == -1, function
        assert ctypes.get_errno() == errno.EFAULT, (function, os.strerror(ctypes.get_errno()))

    faults(libc.send, fd, nowhere, ctypes.c_size_t(100), 0)
    faults(libc.sendmsg, fd, nowhere, 0)
    faults(libc.getsockname, fd, nowhere, nowhere)
    faults(libc.getsockopt, fd, SCTP, 3, nowhere, nowhere)
    faults(libc.setsockopt, fd, SCTP, 3, nowhere, 4)
    faults(libc.bind, one_to_one().detach(), nowhere, 16)
    faults(libc.connect, one_to_one().detach(), nowhere, 16)
    server.send(b"still there")
    select.select([client], [], [])
    faults(libc.recv, fd, nowhere, ctypes.c_size_t(100), 0)
    faults(libc.recvmsg, fd, nowhere, 0)
    # The kernel has dropped that message; ours is still there.
    server.send(b"the next")
    while client.recv(100) != b"the next":
        pass
    # A family that does not fit: `sockaddr_in6` for a socket of IPv4, and an unknown family.
    ipv6 = struct.pack("=H", socket.AF_INET6) + bytes(26)
    unknown = struct.pack("=H", 77) + bytes(14)
    for address, of_bind in [(ipv6, errno.EINVAL), (unknown, errno.EAFNOSUPPORT)]:
        made = one_to_one().detach()
        assert libc.bind(made, address, len(address)) == -1
        assert ctypes.get_errno() == of_bind
        assert libc.connect(made, address, len(address)) == -1
        assert ctypes.get_errno() == errno.EINVAL
        assert libc.sendto(made, b"x", 1, socket.MSG_NOSIGNAL, address, len(address)) == -1
        assert ctypes.get_errno() == errno.EINVAL
    for address in ["0.0.0.0", "224.0.0.1", "255.255.255.255"]:
        fails(errno.EINVAL, one_to_one().connect, (address, 7000))
    fails(errno.ECONNREFUSED, one_to_one().connect, (LOCALHOST, 0))
    # An association that the socket does not have, and none from which anything could come.
    alone = socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET, SCTP)
    info = struct.pack("=HHHHIIIIIi", 0, 0, 0, 0, 0, 0, 0, 0, 0, 1234)
    fails(errno.EPIPE, alone.sendmsg, [b"x"], [(SCTP, SCTP_SNDRCV, info)])
    fails(errno.ENOTCONN, alone.recv, 1)
    # The end of an association is not for sockets that have one alone.
    info = struct.pack("=HHHHIIIIIi", 0, 0, SCTP_ABORT, 0, 0, 0, 0, 0, 0, 0)
    fails(errno.EINVAL, client.sendmsg, [b"x"], [(SCTP, SCTP_SNDRCV, info)])


def refused():
    """Options of RFC 6458 and its extensions, on a socket of its own and on one with an association: what a kernel with its
    default settings answers. The first column is a value that is too short."""
    client, server = pair()
    alone = one_to_one()
    address = struct.pack("=H", socket.AF_INET) + struct.pack(">H", server.getsockname()[1]) + bytes([127, 0, 0, 1])
    address = address.ljust(128, b"\0")
    unknown = [errno.ENOPROTOOPT] * 3
    no_access = [errno.EACCES] * 3
    short = [errno.EINVAL, errno.EACCES, errno.EACCES]
    to_set = {
        SCTP_SET_PEER_PRIMARY_ADDR: (bytes(4) + address, [errno.EPERM] * 3),
        SCTP_AUTH_CHUNK: (bytes(1), no_access),
        SCTP_HMAC_IDENT: (struct.pack("=IHH", 1, 1, 0), no_access),
        SCTP_AUTH_KEY: (struct.pack("=iHH", 0, 1, 4) + b"abcd", short),
        SCTP_AUTH_ACTIVE_KEY: (bytes(8), short),
        SCTP_AUTH_DELETE_KEY: (bytes(8), short),
        SCTP_AUTH_DEACTIVATE_KEY: (bytes(8), short),
        SCTP_PEER_AUTH_CHUNKS: (bytes(8), unknown),
        SCTP_LOCAL_AUTH_CHUNKS: (bytes(8), unknown),
        SCTP_GET_ASSOC_STATS: (bytes(256), unknown),
        SCTP_RESET_STREAMS: (struct.pack("=iHH", 0, 2, 0), [errno.EINVAL, errno.EINVAL, errno.ENOPROTOOPT]),
        SCTP_RESET_ASSOC: (bytes(4), [errno.EINVAL, errno.EINVAL, errno.ENOPROTOOPT]),
        SCTP_ADD_STREAMS: (struct.pack("=iHH", 0, 1, 1), [errno.EINVAL, errno.EINVAL, errno.ENOPROTOOPT]),
        SCTP_INTERLEAVING_SUPPORTED: (struct.pack("=iI", 0, 1), [errno.EINVAL, errno.EPERM, errno.EPERM]),
        134: (bytes(8), unknown),
    }
    for option, (value, expected) in to_set.items():
        for each, given, number in zip([alone, alone, client], [b"", value, value], expected):
            try:
                fails(number, each.setsockopt, SCTP, option, given)
            except AssertionError as error:
                raise AssertionError(f"option {option}") from error
    libc = ctypes.CDLL(None, use_errno=True)

    def read(each, option):
        value, length = ctypes.create_string_buffer(256), ctypes.c_uint(256)
        result = libc.getsockopt(each.fileno(), SCTP, option, value, ctypes.byref(length))
        return ctypes.get_errno() if result < 0 else value.raw[: length.value]

    for option, expected in {
        SCTP_SET_PEER_PRIMARY_ADDR: (errno.ENOPROTOOPT, errno.ENOPROTOOPT),
        SCTP_AUTH_CHUNK: (errno.EOPNOTSUPP, errno.EOPNOTSUPP),
        SCTP_HMAC_IDENT: (errno.EACCES, errno.EACCES),
        SCTP_AUTH_KEY: (errno.EOPNOTSUPP, errno.EOPNOTSUPP),
        SCTP_AUTH_ACTIVE_KEY: (errno.EACCES, errno.EACCES),
        SCTP_AUTH_DELETE_KEY: (errno.EOPNOTSUPP, errno.EOPNOTSUPP),
        SCTP_AUTH_DEACTIVATE_KEY: (errno.EOPNOTSUPP, errno.EOPNOTSUPP),
        SCTP_PEER_AUTH_CHUNKS: (errno.EINVAL, errno.EACCES),
        SCTP_LOCAL_AUTH_CHUNKS: (errno.EACCES, errno.EACCES),
        SCTP_RESET_STREAMS: (errno.ENOPROTOOPT, errno.ENOPROTOOPT),
        SCTP_RESET_ASSOC: (errno.ENOPROTOOPT, errno.ENOPROTOOPT),
        SCTP_ADD_STREAMS: (errno.ENOPROTOOPT, errno.ENOPROTOOPT),
        134: (errno.ENOPROTOOPT, errno.ENOPROTOOPT),
    }.items():
        assert (read(alone, option), read(client, option)) == expected, option
    # Statistics: five messages in five packets or fewer, and those of the handshake.
    assert read(alone, SCTP_GET_ASSOC_STATS) == errno.EINVAL
    for _ in range(5):
        client.send(b"counted")
        assert server.recv(100) == b"counted"
    statistics = read(client, SCTP_GET_ASSOC_STATS)
    assert len(statistics) == 256
    rto, sacks_received, sacks_sent, sent, received, again = struct.unpack_from("=6Q", statistics, 136)
    assert sacks_received >= 1 and sacks_sent == 0 and sent >= 7 and received >= 3 and again == 0, statistics
    # A socket with one address alone keeps it.
    bound = one_to_one()
    bound.bind((LOCALHOST, 0))
    own = struct.pack("=H", socket.AF_INET) + struct.pack(">H", bound.getsockname()[1])
    first, second = [own + bytes([127, 0, 0, last]) + bytes(8) for last in (1, 2)]
    fails(errno.EBUSY, bound.setsockopt, SCTP, SCTP_SOCKOPT_BINDX_REM, first)
    fails(errno.EBUSY, one_to_one().setsockopt, SCTP, SCTP_SOCKOPT_BINDX_REM, first)
    bound.setsockopt(SCTP, SCTP_SOCKOPT_BINDX_ADD, second)
    bound.setsockopt(SCTP, SCTP_SOCKOPT_BINDX_REM, first)
    assert bound.getsockname() == ("127.0.0.2", struct.unpack_from(">H", own, 2)[0])


def resets():
    """Streams begin again at 0 when both sides have switched that on, and both are notified."""
    listening, client = listener(), one_to_one()
    for each in listening, client:
        each.setsockopt(SCTP, SCTP_RECONFIG_SUPPORTED, struct.pack("=iI", 0, 1))
        each.setsockopt(SCTP, SCTP_ENABLE_STREAM_RESET, struct.pack("=iI", 0, 1))
        each.setsockopt(SCTP, SCTP_EVENT, struct.pack("=iHBx", 0, SCTP_STREAM_RESET_EVENT, 1))
    client.connect(listening.getsockname())
    server = listening.accept()[0]
    fails(errno.EINVAL, client.setsockopt, SCTP, SCTP_ENABLE_STREAM_RESET, struct.pack("=iI", 0, 8))
    # No direction, and a stream that does not exist.
    fails(errno.EINVAL, client.setsockopt, SCTP, SCTP_RESET_STREAMS, struct.pack("=iHH", 0, 0, 0))
    fails(errno.EINVAL, client.setsockopt, SCTP, SCTP_RESET_STREAMS, struct.pack("=iHHH", 0, 2, 1, 5000))
    client.setsockopt(SCTP, SCTP_RESET_STREAMS, struct.pack("=iHHH", 0, 2, 1, 3))
    for side, direction in (client, 2), (server, 1):
        event, _, flags, _ = side.recvmsg(100)
        assert flags & MSG_NOTIFICATION, event
        kind, direction_of, length = struct.unpack_from("=HHI", event)
        assert (kind, direction_of, length, event[12:]) == (SCTP_STREAM_RESET_EVENT, direction, 14, b"\x03\0"), event
    client.send(b"goes on")
    assert server.recv(100) == b"goes on"


def signals():
    """A call that waits ends with EINTR when a handler has run, or goes on where the handler asks for that."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.recv.restype = ctypes.c_ssize_t
    handled = []
    signal.signal(signal.SIGUSR1, lambda *_: handled.append(1))
    client, server = pair()
    listening = listener()
    full, _unread = pair()
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
    assert struct.unpack("=I", first.getsockopt(SCTP, SCTP_GET_ASSOC_NUMBER, 4)) == (0,)
    # The socket goes on with others.
    third = socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET, SCTP)
    third.sendto(b"three", first.getsockname())
    assert first.recv(100) == b"three"
    assert peel_off(client_of(), number)[1] == errno.EINVAL


def client_of():
    made, _ = pair()
    return made


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


def addresses():
    """A peer with two addresses is one peer, whichever is named."""
    second = socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET, SCTP)
    second.bind((LOCALHOST, 0))
    port = second.getsockname()[1]
    another = struct.pack("=H", socket.AF_INET) + struct.pack(">H", port) + bytes([127, 0, 0, 2]) + bytes(8)
    second.setsockopt(SCTP, SCTP_SOCKOPT_BINDX_ADD, another)
    second.listen(5)
    first = socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET, SCTP)
    for address in [LOCALHOST, "127.0.0.2", LOCALHOST]:
        first.sendto(address.encode(), (address, port))
        assert second.recv(100) == address.encode()
    assert struct.unpack("=I", first.getsockopt(SCTP, SCTP_GET_ASSOC_NUMBER, 4)) == (1,)


def packets():
    """Both sides of an association of this host use its large packets: `sstat_fragmentation_point`."""
    for side in pair():
        status = side.getsockopt(SCTP, SCTP_STATUS, 176)
        assert struct.unpack_from("I", status, 20)[0] > 30_000, status


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


globals()[sys.argv[1]]()

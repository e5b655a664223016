"""The errno of calls that fail, and what `poll` reports: each as in Linux."""

import ctypes
import errno
import os
import select
import signal
import socket
import struct
import time

from .sctp import (
    LOCALHOST,
    MSG_NOTIFICATION,
    SCTP,
    SCTP_ABORT,
    SCTP_EVENTS,
    SCTP_GET_ASSOC_ID_LIST,
    SCTP_GET_ASSOC_NUMBER,
    SCTP_GET_LOCAL_ADDRS,
    SCTP_PEER_ADDR_PARAMS,
    SCTP_REUSE_PORT,
    SCTP_SNDINFO,
    SCTP_SNDRCV,
    SHUTDOWN_COMP,
    fails,
    listener,
    one_to_one,
    pair,
)

libc = ctypes.CDLL(None, use_errno=True)
for _name in ("recv", "send", "read", "write", "sendto", "recvfrom", "sendmsg", "recvmsg", "readv", "writev"):
    getattr(libc, _name).restype = ctypes.c_ssize_t

NOWHERE = ctypes.c_void_p(8)
POLLERR, POLLRDHUP = select.POLLERR, 0x2000


def _many():
    return socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET, SCTP)


def _many_pair():
    """A one-to-many socket, the one that it has an association with, and the number of that."""
    first, second = _many(), _many()
    first.bind((LOCALHOST, 0))
    first.listen(5)
    second.sendto(b"first", first.getsockname())
    assert first.recv(10) == b"first"
    return first, second, struct.unpack("=Ii", second.getsockopt(SCTP, SCTP_GET_ASSOC_ID_LIST, 8))[1]


def errno_of(function, *arguments):
    """0 if the call succeeds."""
    return ctypes.get_errno() if function(*arguments) < 0 else 0


def expect(expected, function, *arguments, says=None):
    got = errno_of(function, *arguments)
    says = says or (function.__name__, [str(each)[:60] for each in arguments])
    assert got == expected, f"{says}: {errno.errorcode.get(got, got)}, not {errno.errorcode.get(expected, expected)}"


def reports(endpoint):
    """What `poll` reports at once. The error of an ended association, which a UNIX socket has no means to report, is left out."""
    poll = select.poll()
    poll.register(endpoint, select.POLLIN | select.POLLOUT | POLLRDHUP)
    return dict(poll.poll(0)).get(endpoint.fileno(), 0) & ~POLLERR


def _message(parts, control=None, name=None):
    """A `msghdr`, and what must live as long."""
    vector = ctypes.create_string_buffer(b"".join(struct.pack("=QQ", at, length) for at, length in parts))
    at = [ctypes.addressof(each) if isinstance(each, ctypes.Array) else each or 0 for each in (control, name)]
    lengths = [len(each) if isinstance(each, ctypes.Array) else 16 if each else 0 for each in (control, name)]
    header = struct.pack("=QI4xQQQQi4x", at[1], lengths[1], ctypes.addressof(vector), len(parts), at[0], lengths[0], 0)
    return ctypes.create_string_buffer(header, 56), vector


def ancillary():
    """Ancillary data that is too short or too long, unknown kinds and unknown flags."""
    client, _server = pair()
    _first, second, number = _many_pair()
    for endpoint, association in (client, 0), (second, number):
        sndrcv = struct.pack("=HHHHIIIIIi", 0, 0, 0, 0, 0, 0, 0, 0, 0, association)
        sndinfo = struct.pack("=HHIIi", 0, 0, 0, 0, association)
        named = (SCTP, SCTP_SNDINFO, sndinfo)

        def send(*control, to=endpoint):
            return to.sendmsg([b"x"], list(control))

        for kind, body in (SCTP_SNDRCV, sndrcv), (SCTP_SNDINFO, sndinfo):
            assert send((SCTP, kind, body)) == 1
            fails(errno.EINVAL, send, (SCTP, kind, body[:-1]))
            fails(errno.EINVAL, send, (SCTP, kind, body + b"\0"))
            at = 4 if kind == SCTP_SNDRCV else 2
            for flags in [1 << bit for bit in range(16)]:
                flagged = (SCTP, kind, body[:at] + struct.pack("H", flags) + body[at + 2 :])
                if flags in (1, 8, 0x10, 0x20, 0x40):
                    assert send(flagged) == 1, hex(flags)
                elif flags not in (SCTP_ABORT, 0x200):
                    fails(errno.EINVAL, send, flagged)
        # The lengths that each kind may have; `None`: any.
        lengths = {0: [8], 3: [], 4: [], 5: [8], 6: [2], 7: None, 8: None, 9: [], 99: []}
        for kind, fitting in lengths.items():
            for length in (0, 2, 4, 8, 16, 28, 32):
                one = (SCTP, kind, bytes(length))
                if fitting is None or length in fitting:
                    assert send(named, one) == 1, one
                else:
                    fails(errno.EINVAL, send, named, one)
        fails(errno.EINVAL, send, named, (SCTP, 5, struct.pack("=H2xI", 0x40, 1)))
        # Another level, also with nonsense.
        assert send(named, (socket.IPPROTO_IP, 99, bytes(4))) == 1
        # Control messages that exceed their buffer, or have no length.
        buffer = ctypes.create_string_buffer(b"x", 1)
        for control, expected in [
            (struct.pack("=QII", 32, SCTP, SCTP_SNDINFO) + sndinfo, 0),
            (struct.pack("=QII", 40, SCTP, SCTP_SNDINFO) + sndinfo, errno.EINVAL),
            (struct.pack("=QII", 0, SCTP, SCTP_SNDINFO) + sndinfo, errno.EINVAL),
            (struct.pack("=QII", 32, SCTP, SCTP_SNDINFO) + sndinfo + bytes(2000), errno.EINVAL),
            (bytes(200_000), errno.ENOBUFS),
        ]:
            control = ctypes.create_string_buffer(control, len(control))
            header, _vector = _message([(ctypes.addressof(buffer), 1)], control)
            expect(expected, libc.sendmsg, endpoint.fileno(), header, 0, says=bytes(control)[:40])
        header, _vector = _message([(ctypes.addressof(buffer), 1)], 8)
        expect(errno.EFAULT, libc.sendmsg, endpoint.fileno(), header, 0)


def arguments():
    """Lengths and addresses that no call takes, `connect` with `AF_UNSPEC`, `shutdown`, and `socketpair`."""
    unspecified = bytes(28)
    for make in one_to_one, _many:
        for at in range(3):
            endpoint, accepting = make(), listener()
            if at >= 1:
                endpoint.bind((LOCALHOST, 0))
            if at >= 2:
                endpoint.listen(1)
            fd = endpoint.fileno()
            for length in 2, 16, 28:
                expect(errno.EOPNOTSUPP, libc.connect, fd, unspecified, length)
            to = struct.pack("=H", socket.AF_INET) + struct.pack(">H", accepting.getsockname()[1])
            to += bytes([127, 0, 0, 1]) + bytes(200)
            for length in 0, 1, 2, 15, 129, 1 << 31:
                expect(errno.EINVAL, libc.connect, fd, to, ctypes.c_uint(length))
                unbound = make()
                expect(errno.EINVAL, libc.bind, unbound.fileno(), to[:2] + bytes(200), ctypes.c_uint(length))
                if at == 0:
                    expect(errno.EINVAL, libc.sendto, fd, b"x", ctypes.c_size_t(1), 0, to, ctypes.c_uint(length))
        endpoint = make()
        expect(errno.EINVAL, libc.bind, endpoint.fileno(), unspecified, 16)
        expect(0, libc.connect, endpoint.fileno(), to, 128)
    client, server = pair()
    fd = client.fileno()
    # An address that is not the peer's, and the peer's.
    for to in server.getsockname(), server.getsockname():
        client.sendto(b"x", to)
        assert server.recv(10) == b"x"
    for address, port in ("127.0.0.9", server.getsockname()[1]), (LOCALHOST, 9):
        fails(errno.EADDRNOTAVAIL, client.sendto, b"x", (address, port))
    # More parts than a call takes, and the most.
    buffer = ctypes.create_string_buffer(b"ab", 2)
    at = ctypes.addressof(buffer)
    for count, of_message, of_vector in (1024, 0, 0), (1025, errno.EMSGSIZE, errno.EINVAL):
        header, vector = _message([(at, 1)] + [(at, 0)] * (count - 2) + [(at + 1, 1)])
        expect(of_message, libc.sendmsg, fd, header, 0)
        expect(of_vector, libc.writev, fd, vector, count)
    assert [server.recv(10), server.recv(10)] == [b"ab", b"ab"]
    server.send(b"cd")
    header, vector = _message([(at, 1)] + [(at, 0)] * 1022 + [(at + 1, 1)])
    assert libc.recvmsg(fd, header, 0) == 2 and buffer.raw == b"cd"
    header, vector = _message([(at, 1)] * 1025)
    expect(errno.EMSGSIZE, libc.recvmsg, fd, header, 0)
    expect(errno.EINVAL, libc.readv, fd, vector, 1025)
    # Lengths beyond any memory.
    for length in 1 << 62, 1 << 63, (1 << 64) - 1:
        size = ctypes.c_size_t(length)
        expect(errno.EMSGSIZE, libc.send, fd, buffer, size, 0)
        expect(errno.EFAULT, libc.write, fd, buffer, size)
        expect(errno.EFAULT, libc.read, fd, buffer, size)
        expect(errno.EAGAIN, libc.recv, fd, buffer, size, socket.MSG_DONTWAIT)
        header, _vector = _message([(at, length)])
        expect(errno.EFAULT if length == 1 << 62 else errno.EINVAL, libc.sendmsg, fd, header, 0)
    # Addresses to be filled in.
    room = ctypes.c_int(0)
    expect(0, libc.getsockname, fd, None, ctypes.byref(room))
    assert room.value == 16
    expect(errno.EFAULT, libc.getsockname, fd, None, ctypes.byref(room))
    expect(errno.EFAULT, libc.getsockname, fd, buffer, None)
    room.value = -1
    expect(errno.EINVAL, libc.getpeername, fd, buffer, ctypes.byref(room))
    server.send(b"x")
    select.select([client], [], [])
    expect(errno.EFAULT, libc.recvfrom, fd, buffer, ctypes.c_size_t(1), 0, buffer, None)
    for how in 3, 9, -1:
        for endpoint in client, one_to_one(), listener(), _many():
            expect(errno.EINVAL, libc.shutdown, endpoint.fileno(), how)
    both = (ctypes.c_int * 2)()
    for family in socket.AF_INET, socket.AF_INET6:
        for kind, protocol in (socket.SOCK_STREAM, SCTP), (socket.SOCK_SEQPACKET, SCTP), (socket.SOCK_SEQPACKET, 0):
            expect(errno.EOPNOTSUPP, libc.socketpair, family, kind, protocol, both)
        expect(errno.EPROTONOSUPPORT, libc.socket, family, socket.SOCK_DGRAM, SCTP)
        expect(errno.EPROTONOSUPPORT, libc.socket, family, socket.SOCK_SEQPACKET, socket.IPPROTO_TCP)


def unconnected():
    """Calls on one-to-one sockets without an association, on listening ones, and on one-to-many sockets."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    fresh, listening, several = one_to_one(), listener(), _many()
    bound = one_to_one()
    bound.bind((LOCALHOST, 0))
    for endpoint in fresh, bound:
        fails(errno.ENOTCONN, endpoint.recv, 10)
        fails(errno.EAGAIN, endpoint.recv, 10, socket.MSG_DONTWAIT)
        fails(errno.EAGAIN, endpoint.recv, 10, socket.MSG_DONTWAIT | socket.MSG_OOB)
        endpoint.setblocking(False)
        fails(errno.EAGAIN, endpoint.recv, 10)
        fails(errno.EPIPE, endpoint.send, b"x")
        fails(errno.EINVAL, endpoint.accept)
        fails(errno.EINVAL, endpoint.send, b"")
        fails(errno.EMSGSIZE, endpoint.send, bytes(300_000))
        fails(errno.ENOTCONN, endpoint.getpeername)
    assert reports(listening) == 0
    fails(errno.ENOTCONN, listening.recv, 10)
    fails(errno.ENOTCONN, listening.recv, 10, socket.MSG_DONTWAIT)
    for data in b"x", b"", bytes(300_000):
        fails(errno.EPIPE, listening.send, data)
    fails(errno.EPIPE, listening.sendto, b"x", listener().getsockname())
    fails(errno.EISCONN, listening.connect, listener().getsockname())
    for endpoint in listening, several:
        if endpoint is several:
            for how in range(3):
                fails(errno.ENOTCONN, endpoint.shutdown, how)
            endpoint.bind((LOCALHOST, 0))
            endpoint.listen(1)
        endpoint.shutdown(socket.SHUT_WR)
        for how in socket.SHUT_RD, socket.SHUT_RDWR:
            fails(errno.EOPNOTSUPP, endpoint.shutdown, how)
    listening, client = listener(), one_to_one()
    client.connect(listening.getsockname())
    assert reports(listening) == select.POLLIN
    assert reports(client) == select.POLLOUT
    # It listens no more, and does again.
    listening.accept()[0].close()
    listening.listen(0)
    assert listening.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 0
    fails(errno.EINVAL, listening.accept)
    fails(errno.ECONNREFUSED, one_to_one().connect, listening.getsockname())
    listening.listen(1)
    one_to_one().connect(listening.getsockname())
    assert reports(listening) == select.POLLIN


def _ended(how):
    client, server = pair()
    if how == "shut down":
        client.shutdown(socket.SHUT_WR)
        assert server.recv(10) == b""
    elif how == "aborted":
        server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    server.close()
    time.sleep(0.1)
    return client


def ended():
    """Calls on a one-to-one socket whose association has ended: it keeps its addresses, and nothing begins anew."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    other = listener()
    for how in "shut down", "closed", "aborted":
        client = _ended(how)
        names = client.getsockname(), client.getpeername()
        assert names[0][0] == names[1][0] == LOCALHOST
        fails(errno.EISCONN, client.connect, other.getsockname())
        fails(errno.EISCONN, client.connect, ("224.0.0.1", 7))
        expect(errno.EOPNOTSUPP, libc.connect, client.fileno(), bytes(16), 16)
        fails(errno.EINVAL, client.listen, 1)
        fails(errno.EINVAL, client.bind, (LOCALHOST, 0))
        fails(errno.EINVAL, client.accept)
        fails(errno.EADDRNOTAVAIL, client.sendto, b"x", other.getsockname())
        expect(errno.EINVAL, libc.shutdown, client.fileno(), 9)
        # Options of the socket, and of the association.
        client.setsockopt(SCTP, 3, 1)
        assert len(client.getsockopt(SCTP, 0, 16)) == 16
        fails(errno.EINVAL, client.getsockopt, SCTP, 14, 176)
        if how == "aborted":
            fails(errno.ECONNRESET, client.send, b"x")
        fails(errno.EPIPE, client.send, b"x")
        if how == "closed":
            assert reports(client) == select.POLLIN | select.POLLOUT | POLLRDHUP
            assert [client.recv(10), client.recv(10, socket.MSG_DONTWAIT)] == [b"", b""]
        else:
            fails(errno.ENOTCONN, client.recv, 10)
            fails(errno.EAGAIN, client.recv, 10, socket.MSG_DONTWAIT)
            assert reports(client) == select.POLLOUT
            fails(errno.ENOTCONN, client.recv, 10)
        for direction in socket.SHUT_WR, socket.SHUT_RDWR, socket.SHUT_RD, socket.SHUT_WR:
            client.shutdown(direction)
        assert (client.getsockname(), client.getpeername()) == names
        fails(errno.EPIPE, client.send, b"x")
    # One that had ended before the socket was accepted.
    client = one_to_one()
    client.connect(other.getsockname())
    name = client.getsockname()
    client.close()
    time.sleep(0.1)
    accepted = other.accept()[0]
    for call in accepted.send, lambda data: accepted.sendto(data, name):
        fails(errno.EPIPE, call, b"x")
    assert accepted.recv(10) == b""
    # With unread data, the error of an abort comes first, from any call but those that receive.
    for call in "option", "send", "none":
        client, server = pair()
        server.send(b"unread")
        select.select([client], [], [])
        server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        server.close()
        time.sleep(0.1)
        if call == "option":
            assert client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNRESET
        elif call == "send":
            fails(errno.ECONNRESET, client.send, b"x")
        assert client.recv(10) == b"unread"
        if call == "none":
            fails(errno.ECONNRESET, client.recv, 10)
        fails(errno.ENOTCONN, client.recv, 10)
    # A connection that was refused leaves its error to one call, and the socket can be used again.
    closed = listener()
    address = closed.getsockname()
    closed.close()
    for waits in True, False:
        for call in "recv", "send", "option":
            client = one_to_one()
            client.setblocking(waits)
            assert client.connect_ex(address) == (errno.ECONNREFUSED if waits else errno.EINPROGRESS)
            time.sleep(0.1)
            client.setblocking(True)
            assert client.getsockname()[0] == LOCALHOST
            if call == "recv":
                fails(errno.ECONNREFUSED, client.recv, 10)
            elif call == "send":
                fails(errno.ECONNREFUSED, client.send, b"x")
            else:
                assert client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED
            fails(errno.ENOTCONN, client.recv, 10)
            fails(errno.EAGAIN, client.recv, 10, socket.MSG_DONTWAIT)
            fails(errno.EPIPE, client.send, b"x")
            fails(errno.ENOTCONN, client.getpeername)
            client.connect(other.getsockname())
            accepted = other.accept()[0]
            accepted.send(b"again")
            assert client.recv(10) == b"again"


def blocked():
    """A `recv` that waits ends when either side ends the association."""
    for how in "closed", "shut down", "aborted":
        client, server = pair()
        if os.fork() == 0:
            time.sleep(0.3)
            if how == "shut down":
                client.shutdown(socket.SHUT_WR)
            elif how == "aborted":
                server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            os._exit(0)
        server.close()
        if how == "closed":
            assert client.recv(10) == b""
        else:
            fails(errno.ECONNRESET if how == "aborted" else errno.ENOTCONN, client.recv, 10)
        os.wait()


def reading():
    """The rooms for the value of an option that is read, and numbers of associations, levels and addresses that do not exist."""
    fresh, several, listening = one_to_one(), _many(), listener()
    _first, second, number = _many_pair()
    # One address each, whatever this host has.
    client = one_to_one()
    client.bind((LOCALHOST, 0))
    client.connect(listening.getsockname())
    server = listening.accept()[0]

    def read(endpoint, option, room, before=b"", level=SCTP):
        value, length = ctypes.create_string_buffer(before, 300), ctypes.c_uint(room)
        if libc.getsockopt(endpoint.fileno(), level, option, value, ctypes.byref(length)) < 0:
            return -ctypes.get_errno()
        return length.value

    everyone = client, server, second, fresh, several, listening
    # Of each option with the number of an association: the length of its value, where the number is, and whether it is for an
    # association alone.
    options = {
        0: (16, 0, False),
        1: (20, 0, False),
        6: (132, 0, True),
        SCTP_PEER_ADDR_PARAMS: (156, 0, False),
        10: (32, 28, False),
        13: (8, 0, False),
        14: (176, 0, True),
        16: (12, 0, False),
        17: (8, 0, False),
        34: (16, 12, False),
        108: (24, 0, True),
        112: (256, 0, True),
        117: (8, 0, False),
        118: (8, 0, False),
        125: (8, 0, False),
        132: (144, 0, False),
    }
    for option, (length, at, is_of_association) in options.items():
        for endpoint in everyone:
            for named in 0, 1, 2, 7777, -1, number:
                is_own = endpoint is second and named == number or endpoint in (client, server)
                exists = is_own or not is_of_association and (endpoint in (fresh, listening) or named == 0)
                got = read(endpoint, option, length, bytes(at) + struct.pack("i", named))
                assert got == (length if exists else -errno.EINVAL), (option, everyone.index(endpoint), named, got)
    for endpoint in everyone:
        is_single = endpoint not in (second, several)
        for room, expected in (151, -errno.EINVAL), (152, 152), (155, 152), (156, 156), (200, 156):
            assert read(endpoint, SCTP_PEER_ADDR_PARAMS, room) == expected
        for room, expected in (0, -errno.EINVAL), (1, 1), (8, 8), (14, 14), (16, 14):
            assert read(endpoint, SCTP_EVENTS, room) == expected
        for room, expected in (3, -errno.EINVAL), (4, 4), (7, -errno.EINVAL), (8, 8), (9, 8):
            assert read(endpoint, 13, room) == expected
        for room, expected in (7, -errno.EINVAL), (8, 8), (9, -errno.EINVAL), (12, 12):
            assert read(endpoint, 16, room) == expected
        assert read(endpoint, 17, 4) == -errno.EINVAL
        for option in SCTP_GET_ASSOC_NUMBER, SCTP_GET_ASSOC_ID_LIST:
            got = read(endpoint, option, 16)
            assert got == -errno.EOPNOTSUPP if is_single else got in (4, 8), got
        for option in 2, 3, SCTP_EVENTS, 14:
            assert read(endpoint, option, 1 << 31) == read(endpoint, option, (1 << 32) - 1) == -errno.EINVAL
        for level in 6, 17, 77, 136, 999, -1:
            assert read(endpoint, 1, 4, level=level) == -errno.EOPNOTSUPP
            expect(errno.ENOPROTOOPT, libc.setsockopt, endpoint.fileno(), level, 1, bytes(4), 4)
        for room in 0, 2, 4, 8:
            for option in socket.SO_ERROR, socket.SO_TYPE, socket.SO_PROTOCOL:
                assert read(endpoint, option, room, level=socket.SOL_SOCKET) == min(room, 4)
        for option, expected in (3, errno.EFAULT), (0, errno.EFAULT), (999, errno.ENOPROTOOPT):
            room = ctypes.c_int(200)
            expect(expected, libc.getsockopt, endpoint.fileno(), SCTP, option, NOWHERE, ctypes.byref(room))
            expect(errno.EFAULT, libc.getsockopt, endpoint.fileno(), SCTP, option, NOWHERE, None)
        for option, expected in (3, 0), (14, errno.ENOPROTOOPT), (999, errno.ENOPROTOOPT):
            value = bytes(100_000)
            expect(expected, libc.setsockopt, endpoint.fileno(), SCTP, option, value, len(value))
            expect(errno.EINVAL, libc.setsockopt, endpoint.fileno(), SCTP, option, value, ctypes.c_uint(1 << 31))
        for length in 0, 8, 14:
            endpoint.setsockopt(SCTP, SCTP_EVENTS, bytes(length))
        for length in 15, 16:
            fails(errno.EINVAL, endpoint.setsockopt, SCTP, SCTP_EVENTS, bytes(length))
        # A shorter value changes the first events only.
        endpoint.setsockopt(SCTP, SCTP_EVENTS, b"\0\1\1")
        endpoint.setsockopt(SCTP, SCTP_EVENTS, b"\1\0")
        assert endpoint.getsockopt(SCTP, SCTP_EVENTS, 4) == b"\1\0\1\0"
        # An own address of a socket without one, whose length is that of the addresses.
        for named, expected in (0, 0), (7777, -errno.EINVAL):
            if endpoint in (fresh, several):
                assert read(endpoint, SCTP_GET_LOCAL_ADDRS, 100, struct.pack("iI", named, 9)) == expected
    # Options that are set: for the associations of one-to-many sockets that are to come, or for all.
    for_future = {0: (16, 0), 1: (20, 0), SCTP_PEER_ADDR_PARAMS: (152, 0), 13: (8, 0), 117: (8, 0)}
    for_all = {10: (32, 28), 17: (8, 0), 20: (8, 0), 34: (16, 12), 118: (8, 0)}
    for option, (length, at) in {**for_future, **for_all}.items():
        for named in 0, 1, 2, 7777, -1:
            value = bytes(at) + struct.pack("i", named) + bytes(length - at - 4)
            for endpoint in everyone:
                fits = named in (0, 1, 2, -1) if option in for_all else named == 0
                fits = fits or endpoint not in (second, several)
                expected = 0 if fits else errno.EINVAL
                says = (option, named, everyone.index(endpoint))
                expect(expected, libc.setsockopt, endpoint.fileno(), SCTP, option, value, length, says=says)


def reuse():
    """`SO_REUSEPORT`, `SO_REUSEADDR`, `SCTP_REUSE_PORT` and other switches are read as they were set."""
    for make in one_to_one, _many:
        endpoint = make()
        for option in socket.SO_REUSEPORT, socket.SO_REUSEADDR:
            for value, read in (1, 1), (0, 0), (7, 1):
                endpoint.setsockopt(socket.SOL_SOCKET, option, value)
                assert endpoint.getsockopt(socket.SOL_SOCKET, option) == read
            fails(errno.EINVAL, endpoint.setsockopt, socket.SOL_SOCKET, option, b"x")
        for value, read in (5, 5), (0, 1), (-1, 0x7FFFFFFF):
            endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, value)
            assert endpoint.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) == read
        # SO_PEEK_OFF, which the library itself uses.
        fails(errno.EOPNOTSUPP, endpoint.setsockopt, socket.SOL_SOCKET, 42, 1)
        fails(errno.EOPNOTSUPP, endpoint.getsockopt, socket.SOL_SOCKET, 42)
        for option in 3, 8, 12, 32, 33:
            endpoint.setsockopt(SCTP, option, 5)
            assert endpoint.getsockopt(SCTP, option) == 1, option
        for option in 7, 19:
            endpoint.setsockopt(SCTP, option, 5)
            assert endpoint.getsockopt(SCTP, option) == 5, option
        if make is _many:
            fails(errno.EOPNOTSUPP, endpoint.setsockopt, SCTP, SCTP_REUSE_PORT, 1)
            continue
        endpoint.setsockopt(SCTP, SCTP_REUSE_PORT, 5)
        assert endpoint.getsockopt(SCTP, SCTP_REUSE_PORT) == 1
        fails(errno.EINVAL, endpoint.setsockopt, SCTP, SCTP_REUSE_PORT, b"x")
        endpoint.bind((LOCALHOST, 0))
        fails(errno.EFAULT, endpoint.setsockopt, SCTP, SCTP_REUSE_PORT, 1)
        endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listening = one_to_one()
    # SO_PASSCRED and SO_TIMESTAMP, of which nothing comes.
    for option in 16, 29:
        listening.setsockopt(socket.SOL_SOCKET, option, 1)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind((LOCALHOST, 0))
    listening.listen(1)
    client = one_to_one()
    client.connect(listening.getsockname())
    assert listening.accept()[0].getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR) == 1


def _notifications(endpoint, count):
    received = []
    while len(received) < count:
        data, _, flags, _ = endpoint.recvmsg(1000)
        assert flags & MSG_NOTIFICATION, data
        kind = struct.unpack_from("H", data)[0]
        state = struct.unpack_from("=HH", data, 8) if kind == 0x8001 else None
        received.append((kind, state))
    return received


def failed():
    """The notification of an end comes before those of the messages that fail because of it."""
    closed = _many()
    closed.bind((LOCALHOST, 0))
    address = closed.getsockname()
    closed.close()
    cannot_start, failed, failed_event = (0x8001, (4, 0)), (0x8003, None), (0x800D, None)
    for wanted in [cannot_start, failed, failed_event], [cannot_start, failed_event], [cannot_start, failed]:
        events = bytearray(14)
        for kind, _ in wanted:
            events[kind & 0xF] = 1
        for endpoint in _many(), one_to_one():
            endpoint.setsockopt(SCTP, SCTP_EVENTS, bytes(events))
            endpoint.sendto(b"hello", address)
            time.sleep(0.1)
            assert _notifications(endpoint, len(wanted)) == wanted
    # The error of a one-to-one socket follows its notifications.
    fails(errno.ECONNREFUSED, endpoint.recv, 10)
    # Of an association that was established: one that the program itself aborts, and one that the peer ends.
    first, second, number = _many_pair()
    second.setsockopt(SCTP, SCTP_EVENTS, b"\0\1")
    second.sendmsg([b"why"], [(SCTP, SCTP_SNDINFO, struct.pack("=HHIIi", 0, SCTP_ABORT, 0, 0, number))])
    assert _notifications(second, 1) == [(0x8001, (1, socket.htons(12)))]
    client, server = pair()
    client.setsockopt(SCTP, SCTP_EVENTS, b"\0\1\0\0\0\1")
    server.close()
    assert _notifications(client, 2) == [(0x8005, None), (0x8001, (SHUTDOWN_COMP, 0))]
    assert client.recv(10) == b""
    # Nothing begins with a message that ends it.
    for flags in SCTP_ABORT, 0x200:
        info = (SCTP, SCTP_SNDINFO, struct.pack("=HHIIi", 0, flags, 0, 0, 0))
        endpoint = _many()
        data = [b"x"] if flags == SCTP_ABORT else []
        fails(errno.EINVAL, endpoint.sendmsg, data, [info], 0, first.getsockname())
        assert struct.unpack("=I", endpoint.getsockopt(SCTP, SCTP_GET_ASSOC_NUMBER, 4)) == (0,)


def v6only():
    """`IPV6_V6ONLY`: read as it was set, before the socket is bound; then IPv4 is refused in both directions."""
    mapped = "::ffff:127.0.0.1"
    ipv4 = struct.pack("=HH", socket.AF_INET, 0) + bytes([127, 0, 0, 1]) + bytes(8)
    for kind in socket.SOCK_STREAM, socket.SOCK_SEQPACKET:

        def make(only, kind=kind):
            made = socket.socket(socket.AF_INET6, kind, SCTP)
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only)
            return made

        of_ipv4, accepting = socket.socket(socket.AF_INET, kind, SCTP), _many()
        fails(errno.ENOPROTOOPT, of_ipv4.setsockopt, socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        fails(errno.EOPNOTSUPP, of_ipv4.getsockopt, socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)
        accepting.bind((LOCALHOST, 0))
        accepting.listen(9)
        port = accepting.getsockname()[1]
        for only, read in (1, 1), (0, 0), (5, 1):
            assert make(only).getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY) == read
        fails(errno.EINVAL, make(0).setsockopt, socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, b"x")
        made = make(1)
        for address in (mapped, 0), (mapped, port):
            fails(errno.EINVAL, made.bind, address)
        expect(errno.EINVAL, libc.bind, made.fileno(), ipv4, 16)
        fails(errno.EINVAL, made.connect, (mapped, port))
        fails(errno.EINVAL, made.sendto, b"x", (mapped, port))
        made.bind(("::", 0))
        made.listen(9)
        for value in 0, 1:
            fails(errno.EINVAL, made.setsockopt, socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, value)
        fails(errno.ECONNREFUSED, one_to_one().connect, (LOCALHOST, made.getsockname()[1]))
        fails(errno.ECONNREFUSED, one_to_one(socket.AF_INET6).connect, (mapped, made.getsockname()[1]))
        one_to_one(socket.AF_INET6).connect(("::1", made.getsockname()[1]))
        if kind == socket.SOCK_STREAM:
            assert made.accept()[0].getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY) == 0
        # Without it, both.
        made = make(0)
        made.bind(("::", 0))
        made.listen(9)
        one_to_one().connect((LOCALHOST, made.getsockname()[1]))
        one_to_one(socket.AF_INET6).connect(("::1", made.getsockname()[1]))
        make(0).connect((mapped, port))
        make(0).sendto(b"x", (mapped, port))
        # IPv4 alone, whatever the address.
        of_ipv4.bind(("0.0.0.0", 0))
        of_ipv4.listen(9)
        one_to_one().connect((LOCALHOST, of_ipv4.getsockname()[1]))
        fails(errno.ECONNREFUSED, one_to_one(socket.AF_INET6).connect, ("::1", of_ipv4.getsockname()[1]))

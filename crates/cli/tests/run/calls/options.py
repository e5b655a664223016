"""Socket options and addresses, and what is refused with which errno."""

import ctypes
import errno
import os
import select
import socket
import struct

from .sctp import (
    LOCALHOST,
    MSG_NOTIFICATION,
    SCTP,
    SCTP_ABORT,
    SCTP_ADD_STREAMS,
    SCTP_AUTH_ACTIVE_KEY,
    SCTP_AUTH_CHUNK,
    SCTP_AUTH_DEACTIVATE_KEY,
    SCTP_AUTH_DELETE_KEY,
    SCTP_AUTH_KEY,
    SCTP_AUTOCLOSE,
    SCTP_DISABLE_FRAGMENTS,
    SCTP_ENABLE_STREAM_RESET,
    SCTP_EVENT,
    SCTP_EVENTS,
    SCTP_GET_ASSOC_NUMBER,
    SCTP_GET_ASSOC_STATS,
    SCTP_HMAC_IDENT,
    SCTP_INTERLEAVING_SUPPORTED,
    SCTP_LOCAL_AUTH_CHUNKS,
    SCTP_NXTINFO,
    SCTP_PEER_ADDR_PARAMS,
    SCTP_PEER_AUTH_CHUNKS,
    SCTP_RCVINFO,
    SCTP_RECONFIG_SUPPORTED,
    SCTP_RECVNXTINFO,
    SCTP_RECVRCVINFO,
    SCTP_REMOTE_UDP_ENCAPS_PORT,
    SCTP_RESET_ASSOC,
    SCTP_RESET_STREAMS,
    SCTP_SET_PEER_PRIMARY_ADDR,
    SCTP_SNDRCV,
    SCTP_SOCKOPT_BINDX_ADD,
    SCTP_SOCKOPT_BINDX_REM,
    SCTP_STREAM_RESET_EVENT,
    fails,
    listener,
    one_to_one,
    pair,
    receive_all,
)


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
    # `sctp_udpencaps`, whose address has the alignment of a pointer.
    many = socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET, SCTP)
    any_address = struct.pack("=i4xH126x", 0, socket.AF_INET)
    many.setsockopt(SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, any_address + struct.pack(">H6x", 9900))
    read, length = ctypes.create_string_buffer(any_address, 144), ctypes.c_uint(144)
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.getsockopt(many.fileno(), SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, read, ctypes.byref(length)) == 0
    assert struct.unpack_from(">H", read.raw, 136) == (9900,), read.raw
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
    # Structures of which the kernel knows the size, one byte too short and four too long.
    many = socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET, SCTP)
    sizes = {0: 16, 1: 20, 2: 8, SCTP_AUTOCLOSE: 4, 7: 4, 10: 32, 13: 8, 16: 12, 17: 8, 18: 4, 19: 4, 20: 8, 34: 16}
    for option, size in {**sizes, SCTP_REMOTE_UDP_ENCAPS_PORT: 144, SCTP_ENABLE_STREAM_RESET: 8}.items():
        for length in size - 1, size + 4:
            try:
                fails(errno.EINVAL, many.setsockopt, SCTP, option, bytes(length))
            except AssertionError as error:
                raise AssertionError(f"option {option}, {length} bytes") from error
    fails(errno.EINVAL, client.getsockopt, SCTP, 14, 3)
    fails(errno.EINVAL, client.setsockopt, SCTP, 0, struct.pack("iIII", 0, 1, 1, 5000))
    fails(errno.EISCONN, client.connect, server.getsockname())
    fails(errno.EINVAL, client.accept)
    fails(errno.EINVAL, client.setsockopt, SCTP, SCTP_PEER_ADDR_PARAMS, bytes(155))
    # Parameters of all paths, of an address that is not the peer's, and of an unknown address family.
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

"""Sockets that are bound to a wildcard: they have all addresses of the host. Those of the interface `lo` have to be
10.71.0.1, 10.72.0.1 and fd71::1, beside the usual ones."""

import ctypes
import errno
import socket
import struct

from .sctp import (
    LOCALHOST,
    SCTP,
    SCTP_GET_LOCAL_ADDRS,
    SCTP_GET_PEER_ADDRS,
    SCTP_SOCKOPT_BINDX_ADD,
    SCTP_SOCKOPT_BINDX_REM,
    fails,
    one_to_one,
)

V4 = {LOCALHOST, "10.71.0.1", "10.72.0.1"}
LIBC = ctypes.CDLL(None, use_errno=True)


def addresses(each, option):
    """What sctp_getpaddrs or sctp_getladdrs returns: the addresses as text, and the ports."""
    value = ctypes.create_string_buffer(1000)
    length = ctypes.c_uint(len(value))
    assert LIBC.getsockopt(each.fileno(), SCTP, option, value, ctypes.byref(length)) == 0, ctypes.get_errno()
    found, ports, at = set(), set(), 8
    for _ in range(struct.unpack_from("=I", value, 4)[0]):
        family = struct.unpack_from("=H", value, at)[0]
        ports.add(struct.unpack_from(">H", value, at + 2)[0])
        if family == socket.AF_INET:
            found.add(socket.inet_ntop(family, value[at + 4 : at + 8]))
            at += 16
        else:
            found.add(socket.inet_ntop(family, value[at + 8 : at + 24]))
            at += 28
    return found, ports


def wildcards():
    all_v4 = {"::ffff:" + each for each in V4}
    everything = all_v4 | {"::1", "fd71::1"}
    # The family and the address of the client, the family of the server, and the addresses that each has of the other.
    for family, to, family_of_server, of_server, of_client in [
        # Of the loopback interface, those that mean something to a peer at this address.
        (socket.AF_INET, "10.71.0.1", socket.AF_INET, V4 - {LOCALHOST}, V4 - {LOCALHOST}),
        (socket.AF_INET, LOCALHOST, socket.AF_INET, V4, V4),
        # A socket of IPv4 has no other addresses, and takes none.
        (socket.AF_INET, LOCALHOST, socket.AF_INET6, V4, all_v4),
        (socket.AF_INET6, "::1", socket.AF_INET6, everything, everything),
    ]:
        server = one_to_one(family_of_server)
        server.bind(("", 0))
        port = server.getsockname()[1]
        own_of_server = V4 if family_of_server == socket.AF_INET else everything
        assert addresses(server, SCTP_GET_LOCAL_ADDRS) == (own_of_server, {port})
        server.listen(5)
        client = one_to_one(family)
        client.connect((to, port))
        accepted = server.accept()[0]
        accepted.send(b"hello")
        assert client.recv(100) == b"hello"
        own_of_client = V4 if family == socket.AF_INET else everything
        port_of_client = client.getsockname()[1]
        assert addresses(client, SCTP_GET_LOCAL_ADDRS) == (own_of_client, {port_of_client})
        assert addresses(accepted, SCTP_GET_LOCAL_ADDRS) == (own_of_server, {port})
        assert addresses(client, SCTP_GET_PEER_ADDRS) == (of_server, {port}), addresses(client, SCTP_GET_PEER_ADDRS)
        assert addresses(accepted, SCTP_GET_PEER_ADDRS) == (of_client, {port_of_client})
    # One that is bound to one address has that.
    server = one_to_one()
    server.bind(("10.72.0.1", 0))
    server.listen(5)
    client = one_to_one()
    client.connect(server.getsockname())
    assert addresses(client, SCTP_GET_PEER_ADDRS)[0] == {"10.72.0.1"}


def bindx(each, *addresses):
    packed = [
        struct.pack("=H", socket.AF_INET) + struct.pack(">H", port) + socket.inet_aton(address) + bytes(8)
        for address, port in addresses
    ]
    each.setsockopt(SCTP, SCTP_SOCKOPT_BINDX_ADD, b"".join(packed))


def unbind(each, address, port):
    packed = struct.pack("=H", socket.AF_INET) + struct.pack(">H", port) + socket.inet_aton(address) + bytes(8)
    each.setsockopt(SCTP, SCTP_SOCKOPT_BINDX_REM, packed)


def bound_again():
    """`sctp_bindx` on sockets that are bound: a wildcard is equal to each address, and an address is not added twice."""
    for first in "0.0.0.0", LOCALHOST:
        made = one_to_one()
        made.bind((first, 0))
        port = made.getsockname()[1]
        fails(errno.EINVAL, bindx, made, (LOCALHOST, port))
        fails(errno.EINVAL, bindx, made, ("0.0.0.0", port))
        assert addresses(made, SCTP_GET_LOCAL_ADDRS)[0] == ({LOCALHOST} if first == LOCALHOST else V4)
    fails(errno.EINVAL, bindx, one_to_one(), (LOCALHOST, 7100), ("10.71.0.1", 7200))
    fails(errno.EINVAL, bindx, one_to_one(), (LOCALHOST, 7101), (LOCALHOST, 7101))
    made = one_to_one()
    bindx(made, (LOCALHOST, 7102), ("10.71.0.1", 7102))
    fails(errno.EADDRNOTAVAIL, unbind, made, "0.0.0.0", 7102)
    unbind(made, LOCALHOST, 7102)
    assert addresses(made, SCTP_GET_LOCAL_ADDRS)[0] == {"10.71.0.1"}
    # A socket of IPv4 with one address takes no peer's addresses of IPv6.
    server = one_to_one(socket.AF_INET6)
    server.bind(("", 0))
    server.listen(5)
    client = one_to_one()
    client.bind((LOCALHOST, 0))
    client.connect((LOCALHOST, server.getsockname()[1]))
    assert addresses(client, SCTP_GET_PEER_ADDRS)[0] == V4, addresses(client, SCTP_GET_PEER_ADDRS)


def many_addresses():
    """More addresses than the engine returns at once: the list is not cut short. In Linux the room of the program decides."""
    server = one_to_one()
    server.bind(("", 0))
    value = ctypes.create_string_buffer(60_000)
    length = ctypes.c_uint(len(value))
    assert LIBC.getsockopt(server.fileno(), SCTP, SCTP_GET_LOCAL_ADDRS, value, ctypes.byref(length)) < 0
    assert ctypes.get_errno() == errno.ENOMEM

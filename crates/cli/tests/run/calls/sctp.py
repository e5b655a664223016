"""Constants of <netinet/sctp.h>, and what several tests need."""

import socket

SCTP = 132
SCTP_AUTOCLOSE, SCTP_DISABLE_FRAGMENTS, SCTP_PEER_ADDR_PARAMS, SCTP_EVENTS = 4, 8, 9, 11
SCTP_STATUS, SCTP_GET_ASSOC_NUMBER, SCTP_SOCKOPT_BINDX_ADD = 14, 28, 100
SCTP_RECVRCVINFO, SCTP_RECVNXTINFO = 32, 33
SCTP_SET_PEER_PRIMARY_ADDR, SCTP_AUTH_CHUNK, SCTP_HMAC_IDENT, SCTP_AUTH_KEY = 5, 21, 22, 23
SCTP_AUTH_ACTIVE_KEY, SCTP_AUTH_DELETE_KEY, SCTP_PEER_AUTH_CHUNKS, SCTP_LOCAL_AUTH_CHUNKS = 24, 25, 26, 27
SCTP_GET_ASSOC_ID_LIST, SCTP_AUTH_DEACTIVATE_KEY, SCTP_SOCKOPT_BINDX_REM, SCTP_SOCKOPT_PEELOFF = 29, 35, 101, 102
SCTP_GET_PEER_ADDRS, SCTP_GET_LOCAL_ADDRS, SCTP_SOCKOPT_CONNECTX, SCTP_GET_ASSOC_STATS = 108, 109, 110, 112
SCTP_RECONFIG_SUPPORTED, SCTP_ENABLE_STREAM_RESET, SCTP_RESET_STREAMS, SCTP_RESET_ASSOC = 117, 118, 119, 120
SCTP_REMOTE_UDP_ENCAPS_PORT = 132
SCTP_ADD_STREAMS, SCTP_INTERLEAVING_SUPPORTED, SCTP_EVENT, SCTP_STREAM_RESET_EVENT = 121, 125, 127, 0x800A
SCTP_REUSE_PORT, SCTP_SNDRCV, SCTP_SNDINFO, SCTP_RCVINFO, SCTP_NXTINFO = 36, 1, 2, 3, 4
SCTP_ABORT, MSG_NOTIFICATION = 4, 0x8000
COMM_LOST, SHUTDOWN_COMP = 1, 3
LOCALHOST = "127.0.0.1"


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

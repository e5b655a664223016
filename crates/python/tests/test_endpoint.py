"""The endpoint without I/O, in a clock of its own."""

import rexmit

CLIENT = ("192.0.2.1", 1000)
SERVER = ("192.0.2.2", 9899)


def exchange(client, server, now):
    """Moves datagrams both ways until there are none."""
    while True:
        ahead = client.datagrams_to_send(now)
        for data, local, remote in ahead:
            assert remote == SERVER
            server.receive_datagram(data, SERVER, CLIENT, now)
        back = server.datagrams_to_send(now)
        client.receive_datagrams([(data, SERVER) for data, _, _ in back], CLIENT, now)
        if not ahead and not back:
            return


def events(endpoint):
    return list(iter(endpoint.next_event, None))


def pair(**settings):
    client = rexmit.Endpoint(seed=bytes(32), **settings)
    server = rexmit.Endpoint(accept=True, seed=bytes([1] * 32), **settings)
    ours = client.connect(CLIENT, SERVER, 1.0)
    exchange(client, server, 1.0)
    (theirs, connected), *_ = events(server)
    assert connected == rexmit.Connected(True, CLIENT, 16, 16)
    assert events(client)[0] == (ours, rexmit.Connected(False, SERVER, 16, 16))
    return client, server, ours, theirs


def test_a_message_is_echoed():
    client, server, ours, theirs = pair()
    client.send(ours, b"hello", 1.1, stream=3, ppid=7)
    exchange(client, server, 1.1)
    assert (theirs, rexmit.Readable()) in events(server)
    assert server.receive(theirs, 1.1) == rexmit.Message(b"hello", 3, 7, False)
    server.send(theirs, bytearray(b"back"), 1.1, ordered=False)
    exchange(client, server, 1.1)
    assert client.receive(ours, 1.1) == rexmit.Message(b"back", 0, 0, True)
    assert client.receive(ours, 1.1) is None

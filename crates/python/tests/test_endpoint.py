"""The endpoint without I/O, in a clock of its own."""

import base64
import dataclasses
import hashlib
import math
import os
import pathlib
import pickle
import random
import re
import ssl
import sys
import threading
import typing
import warnings

import pytest

import rexmit
from threads_kit import turns_during

CLIENT = ("192.0.2.1", 1000)
SERVER = ("192.0.2.2", 9899)


def exchange(client, server, now):
    """Moves datagrams both ways until none is left."""
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
    client = rexmit.Endpoint.unencrypted(seed=bytes(32), **settings)
    server = rexmit.Endpoint.unencrypted(accept=True, seed=bytes([1] * 32), **settings)
    ours = client.connect(CLIENT, SERVER, 1.0)
    exchange(client, server, 1.0)
    (theirs, connected), *_ = events(server)
    assert connected == rexmit.Connected(True, CLIENT, 16, 16)
    assert events(client)[0] == (ours, rexmit.Connected(False, SERVER, 16, 16))
    return client, server, ours, theirs


def encrypted_pair(trust, server_trust):
    """A client and a server that have exchanged all they can, and the client's association."""
    identity = rexmit.Identity.generate()
    server = rexmit.Endpoint(accept=True, identity=identity, trust=server_trust)
    client = rexmit.Endpoint(trust=identity.fingerprint if trust is None else trust)
    ours = client.connect(CLIENT, SERVER, 1.0)
    client.send(ours, b"early", 1.0)
    exchange(client, server, 1.0)
    return client, server, ours


def test_an_encrypted_endpoint_needs_no_further_call():
    client, server, ours = encrypted_pair(None, rexmit.Trust.anyone())
    assert (ours, rexmit.Connected(False, SERVER, 16, 16, server.fingerprint)) in events(client)
    (theirs, connected), *_ = events(server)
    assert connected == rexmit.Connected(True, CLIENT, 16, 16, client.fingerprint)
    assert server.receive(theirs, 1.0).payload == b"early"
    client.send(ours, b"a secret that is easy to find", 2.0)
    assert b"secret" not in b"".join(data for data, _, _ in client.datagrams_to_send(2.0))
    client.shutdown(ours, 2.0)


@pytest.mark.parametrize(
    ("trust", "server_trust", "text", "whose"),
    [
        ("00" * 32, rexmit.Trust.anyone(), b"refused here", 1),
        (None, rexmit.Trust.only("00" * 32), b"refused by the peer", 0),
        (rexmit.Trust.only(), rexmit.Trust.only(), b"refused here", 1),
    ],
)
def test_a_refusal_is_the_end_and_says_who_refused_whom(trust, server_trust, text, whose):
    client, server, ours = encrypted_pair(trust, server_trust)
    closed = dict(events(client))[ours]
    assert closed.reason == "aborted"
    assert text in closed.detail
    assert (client, server)[whose].fingerprint.encode() in closed.detail
    assert events(server) == []


def test_an_identity_is_kept_as_der_or_pem():
    identity = rexmit.Identity.generate()
    certificate, key = identity.certificate, identity.private_key
    assert identity.fingerprint.replace(":", "").lower() == hashlib.sha256(certificate).hexdigest()
    assert rexmit.Identity.from_der(certificate, key).fingerprint == identity.fingerprint
    pem = ssl.DER_cert_to_PEM_cert(certificate)
    key_pem = b"-----BEGIN PRIVATE KEY-----\n%s\n-----END PRIVATE KEY-----\n" % base64.b64encode(key)
    assert rexmit.Identity.from_pem(pem, key_pem).fingerprint == identity.fingerprint
    assert rexmit.Identity.from_pem(pem.encode(), key_pem.decode()).fingerprint == identity.fingerprint
    assert repr(identity) == f"<rexmit.Identity {identity.fingerprint}>"
    for call, kind, text in (
        (lambda: rexmit.Identity.from_pem(pem, pem), ValueError, "the private key cannot be read"),
        (lambda: rexmit.Identity.from_pem(key_pem, key_pem), ValueError, "the certificate cannot be read"),
        (lambda: rexmit.Identity.from_der(certificate, rexmit.Identity.generate().private_key), ValueError, "not that of"),
        (lambda: rexmit.Identity.from_pem(7, key_pem), TypeError, "certificate must be PEM, as str or bytes, not int"),
        (lambda: rexmit.Trust.only(b"00"), TypeError, "a fingerprint is a str, not bytes"),
        (lambda: rexmit.Endpoint("interactive"), TypeError, "trust"),
        (lambda: pickle.dumps(identity), TypeError, "pickle"),
    ):
        with pytest.raises(kind, match=text):
            call()


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


def test_profiles_have_names_and_constructors():
    assert {profile.value for profile in rexmit.Profile} == set(rexmit.PROFILES)
    assert set(typing.get_args(rexmit.ProfileName)) == set(rexmit.PROFILES)
    for profile in (*rexmit.PROFILES, *rexmit.Profile):
        rexmit.Endpoint.unencrypted(profile)


def test_schedulers_have_names_and_constructors():
    names = [scheduling.value for scheduling in rexmit.Scheduling]
    assert names == list(typing.get_args(rexmit.SchedulingName))
    client, _, ours, _ = pair()
    for scheduling in (*names, *rexmit.Scheduling):
        rexmit.Endpoint.unencrypted(config=rexmit.Config(scheduling=scheduling))
        client.set_scheduling(ours, 1.0, scheduling)
    client.set_priority(ours, 1.0, 15, 65_535)
    with pytest.raises(ValueError, match="streams 0 to 15"):
        client.set_priority(ours, 1.0, 16, 1)


def test_the_settings_are_those_of_the_stubs():
    client, server, ours, _ = pair(config=rexmit.Config(max_message_bytes=100, send_buffer_bytes=150))
    with pytest.raises(ValueError, match="max_message_bytes = 100"):
        client.send(ours, bytes(101), 1.0)
    client.send(ours, bytes(100), 1.0)
    with pytest.raises(rexmit.BufferFullError):
        client.send(ours, bytes(100), 1.0)
    exchange(client, server, 1.0)
    assert client.association_count == 1


def test_a_lost_message_is_sent_again_at_the_time_of_the_timer():
    client, server, ours, theirs = pair()
    client.send(ours, b"lost", 2.0)
    assert len(client.datagrams_to_send(2.0)) == 1
    now = 2.0
    while server.receive(theirs, now) is None:
        now = max(now, min(e.get_timer() or math.inf for e in (client, server)))
        for endpoint in (client, server):
            endpoint.handle_timer(now)
            # All that was due has expired: rounding does not make a timer early.
            assert (endpoint.get_timer() or math.inf) > now
        exchange(client, server, now)
        assert now < 3.5
    assert client.statistics(ours).retransmitted.total == 1


def test_the_end_is_an_event_and_the_number_is_invalid_then():
    client, server, ours, theirs = pair()
    client.shutdown(ours, 2.0)
    exchange(client, server, 2.0)
    assert (theirs, rexmit.Closed("shutdown", "the association has ended", b"", 0)) in events(server)
    assert events(client)[-1][1].reason == "shutdown"
    for call in (
        lambda: client.shutdown(ours, 2.0),
        lambda: client.abort(ours, 2.0),
        lambda: client.send(ours, b"x", 2.0),
        lambda: client.reset_streams(ours, 2.0),
        lambda: client.statistics(ours),
    ):
        with pytest.raises(rexmit.ClosedError, match="connect again"):
            call()
    assert client.receive(ours, 2.0) is None


def test_an_abort_has_a_reason():
    client, server, ours, theirs = pair()
    client.abort(ours, 2.0, b"no time")
    exchange(client, server, 2.0)
    closed = dict(events(server))[theirs]
    match = (closed.reason, closed.detail, closed.cause)
    assert match == ("aborted-by-peer", b"no time", 12)


def test_events_are_immutable_and_compared_by_class():
    assert rexmit.Readable() == rexmit.Readable() != rexmit.Writable()
    with pytest.raises(dataclasses.FrozenInstanceError):
        rexmit.MessageSent(1).message = 2
    if sys.version_info >= (3, 10):
        assert rexmit.PathStatus.__match_args__ == ("path", "address", "state")


def test_all_classes_of_events_can_be_made_of_the_endpoint():
    """Each event that the extension builds has a class with these fields."""
    source = (pathlib.Path(__file__).parent.parent / "src/events.rs").read_text()
    names = set(re.findall(r'make\("(\w+)"', source))
    assert len(names) > 12
    assert all(issubclass(getattr(rexmit, name), rexmit.Event) for name in names)


BAD_CALLS = [
    (TypeError, "local must be a tuple", lambda e: e.connect("127.0.0.1:1", SERVER, 1.0)),
    (TypeError, "remote must be a tuple", lambda e: e.connect(CLIENT, ("::1", "x"), 1.0)),
    (TypeError, "remote must be a tuple", lambda e: e.connect(CLIENT, ("::1", 5, 6), 1.0)),
    (ValueError, "use|resolve names", lambda e: e.connect(CLIENT, ("localhost", 1), 1.0)),
    (ValueError, "from 0 to 65535", lambda e: e.connect(CLIENT, ("192.0.2.2", 65536), 1.0)),
    (ValueError, "both be IPv4", lambda e: e.connect(CLIENT, ("::1", 1, 0, 0), 1.0)),
    (ValueError, "UDP port of remote is 0", lambda e: e.connect(CLIENT, ("192.0.2.2", 0), 1.0)),
    (ValueError, "SCTP port is 0", lambda e: e.connect(CLIENT, SERVER, 1.0, port=0)),
    (ValueError, "port is -1", lambda e: e.connect(CLIENT, SERVER, 1.0, port=-1)),
    (ValueError, "now is NaN", lambda e: e.handle_timer(float("nan"))),
    (ValueError, "now is -1", lambda e: e.datagrams_to_send(-1.0)),
    (ValueError, "now is inf", lambda e: e.datagrams_to_send(float("inf"))),
    (TypeError, "'now'", lambda e: e.handle_timer("1")),
    (TypeError, "'data'", lambda e: e.receive_datagram("text", SERVER, CLIENT, 1.0)),
    (TypeError, "'datagrams'", lambda e: e.receive_datagrams([b"x"], SERVER, 1.0)),
    (ValueError, "now is inf; .* from 0, such as", lambda e: e.datagrams_to_send(10**400)),
    (ValueError, f"association is -1; it must be from 0 to {2**64 - 1}", lambda e: e.send(-1, b"x", 1.0)),
    (ValueError, f"association is {2**64}; .* from 0 to", lambda e: e.receive(2**64, 1.0)),
    (ValueError, "association is out of range; .* from 0 to", lambda e: e.statistics(-(10**400))),
    (ValueError, "stream is 65536; it must be from 0 to 65535", lambda e: e.send(0, b"x", 1.0, stream=65536)),
    (ValueError, f"stream is {2**70}; it must be from 0 to 65535", lambda e: e.send(0, b"x", 1.0, stream=2**70)),
    (ValueError, f"port is {2**70}; it must be from 0 to 65535", lambda e: e.connect(CLIENT, SERVER, 1.0, port=2**70)),
    (ValueError, f"the port of remote is {2**70}; .* 65535", lambda e: e.connect(CLIENT, ("192.0.2.2", 2**70), 1.0)),
    (ValueError, "stream is -1; it must be from 0 to 65535", lambda e: e.set_priority(0, 1.0, -1, 2**70)),
    (ValueError, f"priority is {2**70}; it must be from 0 to 65535", lambda e: e.set_priority(0, 1.0, 1, 2**70)),
    (ValueError, f"stream is {2**70}; it must be from 0 to 65535", lambda e: e.reset_streams(0, 1.0, [2**70])),
    (ValueError, "max_retransmissions is -1; .* 0 to 65535", lambda e: e.send(0, b"x", 1.0, max_retransmissions=-1)),
    (ValueError, "lifetime is inf; it is in seconds, from 0", lambda e: e.send(0, b"x", 1.0, lifetime=10**400)),
    (TypeError, "'stream'", lambda e: e.send(0, b"x", 1.0, stream=1.5)),
    (TypeError, "'association'", lambda e: e.send("0", b"x", 1.0)),
    (ValueError, "ppid is -1", lambda e: e.send(0, b"x", 1.0, ppid=-1)),
    (ValueError, "lifetime is NaN", lambda e: e.send(0, b"x", 1.0, lifetime=float("nan"))),
    (ValueError, "two parts", lambda e: e.send(0, b"x", 1.0, within=0.1)),
    (ValueError, "two parts", lambda e: e.send(0, b"x", 1.0, probability=0.9)),
    (ValueError, "within is 0", lambda e: e.send(0, b"x", 1.0, within=0, probability=0.9)),
    (ValueError, "within is inf", lambda e: e.send(0, b"x", 1.0, within=float("inf"), probability=0.9)),
    (ValueError, "probability is 1", lambda e: e.send(0, b"x", 1.0, within=0.1, probability=1)),
    (ValueError, "probability is NaN", lambda e: e.send(0, b"x", 1.0, within=0.1, probability=float("nan"))),
    (TypeError, "not list", lambda e: e.send(0, [1], 1.0)),
    (rexmit.ClosedError, "no such association", lambda e: e.send(2**64 - 1, b"x", 1.0)),
    (rexmit.ClosedError, "no such association", lambda e: e.send(0, b"x", 1.0)),
    (TypeError, "pickled", lambda e: pickle.dumps(e)),
]


@pytest.mark.parametrize(("kind", "text", "call"), BAD_CALLS)
def test_bad_arguments_raise(kind, text, call):
    endpoint = rexmit.Endpoint.unencrypted()
    with pytest.raises(kind, match=text):
        call(endpoint)
    # It can still be used.
    assert endpoint.connect(CLIENT, SERVER, 2.0) >= 0


@pytest.mark.parametrize(
    ("kind", "text", "settings"),
    [
        (rexmit.UnknownProfileError, 'did you mean "rfc9260"', {"profile": "rfc-9260"}),
        (TypeError, "profile must be a name", {"profile": 7}),
        (ValueError, "port is 65536", {"port": 65_536}),
        (ValueError, "SCTP port is 0", {"port": 0}),
        (ValueError, "max_associations is 0", {"max_associations": 0}),
        (ValueError, f"max_associations is -1; it must be from 0 to {2**64 - 1}", {"max_associations": -1}),
        (ValueError, f"port is {2**70}; it must be from 0 to 65535", {"port": 2**70}),
        (ValueError, "seed has 3 bytes", {"seed": b"abc"}),
        (TypeError, "must be a rexmit.Config, not dict", {"config": {}}),
        (TypeError, "outbound_streams: ", {"config": rexmit.Config(outbound_streams="x")}),
        (ValueError, "outbound_streams is -1; it must be from 0 to 65535", {"config": rexmit.Config(outbound_streams=-1)}),
        (ValueError, f"max_message_bytes is {2**70}; it must be", {"config": rexmit.Config(max_message_bytes=2**70)}),
        (ValueError, "dead_after is inf; it is in seconds, from 0", {"config": rexmit.Config(dead_after=10**400)}),
        (ValueError, f"of a budget are {2**70}; they are 1 to 65535", {"config": rexmit.Config(budget=rexmit.Budget(2**70))}),
        (ValueError, "outbound_streams is 0", {"config": rexmit.Config(outbound_streams=0)}),
        (ValueError, "dead_after is -1", {"config": rexmit.Config(dead_after=-1)}),
        (ValueError, "dead_after is NaN", {"config": rexmit.Config(dead_after=float("nan"))}),
        (ValueError, "two parts", {"config": rexmit.Config(within=0.1)}),
        (ValueError, "probability is 2", {"config": rexmit.Config(within=0.1, probability=2)}),
        (TypeError, "must be a rexmit.Budget, not int", {"config": rexmit.Config(budget=5)}),
        (TypeError, "packets: ", {"config": rexmit.Config(budget=rexmit.Budget(packets=1.5))}),
        (ValueError, "the bytes of a budget are 0", {"config": rexmit.Config(budget=rexmit.Budget(bytes=0))}),
        (ValueError, "the packets of a budget are 65536", {"config": rexmit.Config(budget=rexmit.Budget(packets=65_536))}),
        (TypeError, "recovery: ", {"config": rexmit.Config(recovery=5)}),
        (ValueError, "recovery: line 1: rto.mim: .* did you mean `min`", {"config": rexmit.Config(recovery="rto.mim = 5")}),
        (ValueError, "recovery: these settings do not fit", {"config": rexmit.Config(recovery="rto.min = '2min'")}),
        (ValueError, "receive_buffer_bytes is 9", {"config": rexmit.Config(receive_buffer_bytes=9, max_message_bytes=9)}),
    ],
)
def test_bad_settings_raise(kind, text, settings):
    with pytest.raises(kind, match=text):
        rexmit.Endpoint.unencrypted(**settings)


def test_settings_of_recovery_change_the_profile():
    def timeout(recovery):
        """The seconds until a message, which is lost, is retransmitted."""
        config = rexmit.Config(recovery=recovery, heartbeat_interval=0)
        client, _, ours, _ = pair(profile="rfc9260", config=config)
        client.send(ours, b"x", 2.0)
        assert len(client.datagrams_to_send(now := 2.0)) == 1
        while not client.datagrams_to_send(now):
            now = client.get_timer()
            client.handle_timer(now)
        return now - 2.0

    assert timeout(None) == pytest.approx(1.0)
    assert timeout("rto.min = '200ms'") == pytest.approx(0.2)


def send_over_loss(config=None, **deadline):
    """1,500 messages, one every 50 ms, over a path of 50 ms each way on which one datagram in twenty is lost. Returns how
    many are later than 115 ms, and the events `Infeasible`."""
    client = rexmit.Endpoint.unencrypted(config=config, seed=bytes(32))
    server = rexmit.Endpoint.unencrypted(accept=True, seed=bytes([1] * 32))
    ours, theirs = client.connect(CLIENT, SERVER, 0.0), None
    chance, now, flying, begun, late, infeasible = random.Random(5), 0.0, [], {}, 0, []
    for step in range(1700 * 10):
        now += 0.005
        due = [each for each in flying if each[0] <= now + 1e-9]
        flying = [each for each in flying if each[0] > now + 1e-9]
        for _, to, data in due:
            here, there = (CLIENT, SERVER) if to is client else (SERVER, CLIENT)
            to.receive_datagram(data, here, there, now)
        is_set_up = step > 500
        if is_set_up and step % 10 == 0 and step <= 15_500:
            begun[step] = now
            client.send(ours, step.to_bytes(4, "big"), now, ordered=False, **deadline)
        for number, event in events(server):
            theirs = number if isinstance(event, rexmit.Connected) else theirs
        while theirs is not None and (message := server.receive(theirs, now)) is not None:
            late += now - begun.pop(int.from_bytes(message.payload, "big")) > 0.1151
        infeasible += [event for _, event in events(client) if isinstance(event, rexmit.Infeasible)]
        for side in (client, server):
            side.handle_timer(now)
            for data, _, _ in side.datagrams_to_send(now):
                if not is_set_up or chance.random() >= 0.05:
                    flying.append((now + 0.05, server if side is client else client, data))
    return late + len(begun), infeasible


def test_a_deadline_is_met_by_copies_within_the_budget():
    late, _ = send_over_loss()
    assert late > 1500 // 40
    late, infeasible = send_over_loss(within=0.11, probability=0.99)
    assert late < 1500 // 50 and infeasible == []
    # As a setting of the association, and with a budget that is too small.
    settings = rexmit.Config(within=0.11, probability=0.99)
    assert send_over_loss(settings) == (late, [])
    settings = rexmit.Config(within=0.11, probability=0.99, budget=rexmit.Budget(packets=1, bytes=1))
    late, infeasible = send_over_loss(settings)
    assert late > 1500 // 40
    assert infeasible and all(0.9 < event.achievable < 0.99 for event in infeasible)


def test_a_fork_cannot_use_an_endpoint():
    """Two processes would send with the same keys and sequence numbers."""
    client, _, ours, _ = pair()
    outlet, inlet = os.pipe()
    with warnings.catch_warnings():
        # The child uses nothing of other threads of the test run.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            for use in (lambda: client.send(ours, b"x", 2.0), lambda: client.handle_timer(2.0), lambda: client.abort(ours, 2.0)):
                try:
                    use()
                    os.write(inlet, b"no error\n")
                except RuntimeError as error:
                    os.write(inlet, f"{error}\n".encode())
            rexmit.Endpoint.unencrypted().connect(CLIENT, SERVER, 2.0)
            os.write(inlet, b"a new one works\n")
        finally:
            os._exit(0)
    os.close(inlet)
    os.waitpid(child, 0)
    with open(outlet) as file:
        *refused, last = file.read().splitlines()
    assert len(refused) == 3 and all(f"belongs to process {os.getpid()}" in line for line in refused)
    assert last == "a new one works"
    client.send(ours, b"x", 2.0)
    assert len(client.datagrams_to_send(2.0)) == 1


def test_time_does_not_go_back_and_may_jump():
    client, server, ours, theirs = pair()
    for now in (5.0, 0.0, 8.9e9, 1.0, 9e9):
        client.handle_timer(now)
        server.handle_timer(now)
        exchange(client, server, now)
        client.get_timer()


def test_datagrams_of_strangers_raise_nothing():
    """Random bytes, changed datagrams, and datagrams in any order."""
    chance = random.Random(7)
    client, server, ours, theirs = pair()
    now = 2.0
    for round in range(300):
        now += chance.random() / 10
        try:
            client.send(ours, chance.randbytes(chance.randrange(1, 3000)), now, stream=chance.randrange(16))
        except (rexmit.BufferFullError, rexmit.ClosedError):
            pass
        datagrams = [data for data, _, _ in client.datagrams_to_send(now)]
        datagrams += [chance.randbytes(chance.randrange(80)) for _ in range(3)]
        for data in list(datagrams):
            changed = bytearray(data)
            if changed:
                changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
            datagrams.append(bytes(changed)[: chance.randrange(len(changed) + 1)])
        chance.shuffle(datagrams)
        server.receive_datagrams([(data, CLIENT) for data in datagrams], SERVER, now)
        server.receive_datagram(chance.randbytes(50), SERVER, ("198.51.100.7", chance.randrange(65_536)), now)
        back = server.datagrams_to_send(now)
        client.receive_datagrams([(data, SERVER) for data, _, to in back if to == CLIENT], CLIENT, now)
        while server.receive(theirs, now) is not None:
            pass
        client.handle_timer(now)
        server.handle_timer(now)
        events(client), events(server)
    assert server.statistics(theirs).messages_delivered > 100


def test_threads_may_share_an_endpoint():
    client, server, ours, theirs = pair(config=rexmit.Config(send_buffer_bytes=1 << 24))
    failures = []

    def hammer(number):
        try:
            for turn in range(300):
                client.send(ours, b"x" * 500, 2.0, stream=number)
                client.datagrams_to_send(2.0)
                client.statistics(ours)
                client.next_event()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=hammer, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert client.statistics(ours).messages_accepted == 1200


def test_threads_run_python_while_datagrams_are_processed():
    """See `test_threads_run_python_during_runs`, which shows that the count is zero while the GIL is held."""
    client, server, ours = encrypted_pair(None, rexmit.Trust.anyone())
    client.send(ours, bytes(10_000), 2.0)
    batch = [(data, CLIENT) for data, _, _ in client.datagrams_to_send(2.0)]
    batch *= 1_000_000 // len(batch)
    assert turns_during(lambda: server.receive_datagrams(batch, SERVER, 2.0)) > 10


def test_ipv6_addresses_have_four_parts():
    client, server = rexmit.Endpoint.unencrypted(), rexmit.Endpoint.unencrypted(accept=True)
    here, there = ("fe80::1%eth0", 1, 0, 3), ("fe80::2", 2, 0, 3)
    client.connect(here, there, 1.0)
    [(data, local, remote)] = client.datagrams_to_send(1.0)
    assert (local, remote) == (("fe80::1", 1, 0, 3), there)
    server.receive_datagram(data, there, here, 1.0)
    assert server.datagrams_to_send(1.0)[0][2] == ("fe80::1", 1, 0, 3)

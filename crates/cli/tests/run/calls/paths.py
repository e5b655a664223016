"""Two hosts with two paths between them: the client has 10.90.0.1 and 10.91.0.1, the server 10.90.0.2 and 10.91.0.2."""

import subprocess
import time

from .sctp import one_to_one

PORT = 7000


def path_server():
    listening = one_to_one()
    listening.bind(("", PORT))
    listening.listen(1)
    accepted = listening.accept()[0]
    while data := accepted.recv(100):
        accepted.send(data)


def path_client():
    """The first path fails: one message waits for a timeout, and those after it take the other path."""
    client = one_to_one()
    for _ in range(50):
        try:
            client.connect(("10.90.0.2", PORT))
            break
        except OSError:
            time.sleep(0.1)

    def exchange():
        begin = time.monotonic()
        client.send(b"x")
        assert client.recv(100) == b"x"
        return time.monotonic() - begin

    before = sorted(exchange() for _ in range(21))[10]
    # HEARTBEATs have to confirm the second path first.
    time.sleep(1)
    subprocess.run(["ip", "route", "add", "blackhole", "10.90.0.2/32"], check=True)
    first, *others = [exchange() for _ in range(6)]
    assert first > 10 * before, ("nothing was lost", before, first)
    assert max(others) < first / 2, (before, first, others)

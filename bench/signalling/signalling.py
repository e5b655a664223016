"""Requests and responses as those of signalling protocols (Diameter, S1AP), over the SCTP sockets of the system: a program that
knows nothing of rexmit.

    signalling.py serve ADDRESS PORT
    signalling.py request ADDRESS PORT ASSOCIATIONS SECONDS
    signalling.py judge [P99 P99.9]

Each association has 200 streams and sends ten requests of 300 bytes per second, each on the next stream, in order per
stream; the server answers with as many bytes on the same stream. Both run on one machine, so that one clock tells how
long each direction took. Prints one line of JSON: percentiles in ms. `judge` reads that line, and adds the target and
the verdict on it, `met` or `MISSED`, as in the other rows of `bench/run`: both directions have to be within these limits,
and every request answered. Without that line it says that the row was not run.
"""

import json
import select
import socket
import struct
import sys
import time

SCTP = 132
SCTP_INITMSG, SCTP_NODELAY, SCTP_EVENTS, SCTP_SNDRCV = 2, 3, 11, 1
STREAMS, BYTES, INTERVAL = 200, 300, 0.1
SNDRCV = struct.Struct("=HHHHIIIIIi")
# When the request was sent and received, and when the response was sent.
TIMES = struct.Struct("=ddd")
# The last messages have this time to arrive.
GRACE = 10


def sctp_socket():
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, SCTP)
    made.setsockopt(SCTP, SCTP_INITMSG, struct.pack("HHHH", STREAMS, STREAMS, 0, 0))
    made.setsockopt(SCTP, SCTP_NODELAY, 1)
    # sctp_data_io_event: messages come with their stream.
    made.setsockopt(SCTP, SCTP_EVENTS, bytes([1] + [0] * 7))
    return made


def send(to, stream, times):
    info = SNDRCV.pack(stream, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    to.sendmsg([TIMES.pack(*times).ljust(BYTES, b"x")], [(SCTP, SCTP_SNDRCV, info)])


def receive(source):
    """The stream and times of a message; None at the end."""
    data, control, _, _ = source.recvmsg(BYTES, 1000)
    if not data:
        return None
    stream = next(SNDRCV.unpack(value)[0] for _, kind, value in control if kind == SCTP_SNDRCV)
    return stream, TIMES.unpack_from(data)


def serve(address):
    listener = sctp_socket()
    listener.bind(address)
    listener.listen(100)
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    clients = {}
    print("listening", flush=True)
    while True:
        for fd, _ in poll.poll():
            if fd == listener.fileno():
                client, _ = listener.accept()
                clients[client.fileno()] = client
                poll.register(client, select.POLLIN)
                continue
            try:
                received = receive(clients[fd])
            except OSError:
                received = None
            if received is None:
                poll.unregister(fd)
                clients.pop(fd).close()
                continue
            now = time.monotonic()
            stream, (sent, _, _) = received
            send(clients[fd], stream, (sent, now, now))


def percentiles(values):
    values.sort()
    at = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1}
    return {name: round(values[min(len(values) - 1, int(len(values) * part))] * 1000, 1) for name, part in at.items()}


def request(address, count, seconds):
    clients = [sctp_socket() for _ in range(count)]
    poll = select.poll()
    for client in clients:
        client.connect(address)
        poll.register(client, select.POLLIN)
    by_fd = {client.fileno(): client for client in clients}
    there, back, both = [], [], []
    began = time.monotonic()
    # Their requests are spread over the interval.
    due = [(began + INTERVAL * (1 + number / count), number, 0) for number in range(count)]
    expected = int(seconds / INTERVAL) * count
    sent_all_at = None
    while len(both) < expected:
        now = time.monotonic()
        if sent_all_at and now > sent_all_at + GRACE:
            break
        while due and due[0][0] <= now:
            at, number, index = due.pop(0)
            send(clients[number], index % STREAMS, (time.monotonic(), 0, 0))
            if index + 1 < seconds / INTERVAL:
                due.append((at + INTERVAL, number, index + 1))
        if not due and not sent_all_at:
            sent_all_at = now
        wait = max(0, due[0][0] - time.monotonic()) if due else 1
        for fd, _ in poll.poll(wait * 1000):
            received = receive(by_fd[fd])
            if received is None:
                sys.exit("an association has ended")
            now = time.monotonic()
            sent, arrived, answered = received[1]
            there.append(arrived - sent)
            back.append(now - answered)
            both.append(now - sent)
    result = {"associations": count, "sent": expected, "answered": len(both)}
    result |= {"requests": percentiles(there), "responses": percentiles(back), "round trip": percentiles(both)}
    print(json.dumps(result), flush=True)


def judge(limits):
    try:
        result = json.loads(sys.stdin.read())
    except ValueError:
        print("not run: the program printed no result")
        return
    if limits:
        worst = [max(result[way][name] for way in ["requests", "responses"]) for name in ["p99", "p99.9"]]
        is_met = result["answered"] == result["sent"] and all(
            value <= float(limit) for value, limit in zip(worst, limits)
        )
        result["target"] = f"p99 <= {limits[0]}, p99.9 <= {limits[1]}, all answered"
        result["verdict"] = "met" if is_met else "MISSED"
    print(json.dumps(result))


role, *rest = sys.argv[1:]
if role == "judge":
    judge(rest)
elif role == "serve":
    serve((rest[0], int(rest[1])))
else:
    request((rest[0], int(rest[1])), int(rest[2]), float(rest[3]))

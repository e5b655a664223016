"""Measures the Python package: ratios within one run.

Contestants take turns, and a ratio is the median of the ratios of neighbours. bench/README.md has the parts and their targets.
"""

import argparse
import asyncio
import csv
import datetime
import multiprocessing
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

SIZE = 100


def row(part, what, value, target, is_met):
    print(f"{part:8} {what:76} {value:>18}   {target:16} {'met' if is_met else 'MISSED'}", flush=True)


# echo


async def rexmit_echo(count, outstanding, _):
    """The processor time of `count` messages there and back, of which so many are under way."""
    import rexmit

    async def echo(association):
        async for message in association:
            await association.stream(message.stream).send(message.payload)

    async with (
        rexmit.serve(echo, "127.0.0.1", 0, rexmit.Identity.generate()) as server,
        rexmit.connect("127.0.0.1", server.address[1], server.fingerprint) as association,
    ):
        stream = association.stream(0)
        payload = bytes(SIZE)
        began = time.process_time()
        for _ in range(outstanding):
            await stream.send(payload)
        sent = outstanding
        for _ in range(count):
            await association.receive()
            if sent < count:
                await stream.send(payload)
                sent += 1
        return time.process_time() - began


def certificate(directory):
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
    made = made.not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1)).sign(key, hashes.SHA256())
    plain = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (directory / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, *plain))
    (directory / "certificate.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))


async def aioquic_echo(count, outstanding, directory):
    """The same over one stream, whose bytes are echoed as they come: less work than messages would be."""
    import ssl

    from aioquic.asyncio import QuicConnectionProtocol, connect, serve
    from aioquic.quic.configuration import QuicConfiguration
    from aioquic.quic.events import StreamDataReceived

    class Echo(QuicConnectionProtocol):
        def quic_event_received(self, event):
            if isinstance(event, StreamDataReceived):
                self._quic.send_stream_data(event.stream_id, event.data)
                self.transmit()

    class Client(QuicConnectionProtocol):
        def begin(self):
            self.received, self.done = 0, asyncio.get_running_loop().create_future()
            self.stream = self._quic.get_next_available_stream_id()
            self.sent = outstanding
            for _ in range(outstanding):
                self._quic.send_stream_data(self.stream, bytes(SIZE))
            self.transmit()

        def quic_event_received(self, event):
            if not isinstance(event, StreamDataReceived):
                return
            before = self.received // SIZE
            self.received += len(event.data)
            for _ in range(self.received // SIZE - before):
                if self.sent < count:
                    self._quic.send_stream_data(self.stream, bytes(SIZE))
                    self.sent += 1
            self.transmit()
            if self.received >= count * SIZE:
                self.done.set_result(None)

    configuration = QuicConfiguration(is_client=False, alpn_protocols=["echo"])
    configuration.load_cert_chain(directory / "certificate.pem", directory / "key.pem")
    server = await serve("127.0.0.1", 0, configuration=configuration, create_protocol=Echo)
    port = server._transport.get_extra_info("sockname")[1]
    configuration = QuicConfiguration(is_client=True, alpn_protocols=["echo"], verify_mode=ssl.CERT_NONE)
    async with connect("127.0.0.1", port, configuration=configuration, create_protocol=Client) as client:
        began = time.process_time()
        client.begin()
        await client.done
        seconds = time.process_time() - began
    server.close()
    return seconds


def echo(_):
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        certificate(directory)
        for outstanding, count in ((1, 2000), (64, 10_000)):
            rates = []
            for _ in range(7):
                seconds = [asyncio.run(each(count, outstanding, directory)) for each in (rexmit_echo, aioquic_echo)]
                rates.append([count / it for it in seconds])
            ratio = statistics.median(ours / theirs for ours, theirs in rates)
            ours, theirs = (statistics.median(it) for it in zip(*rates))
            what = f"{outstanding} outstanding: {ours:,.0f} messages/s; aioquic {theirs:,.0f}"
            row("echo", what, f"{ratio:.2f} times", "at least 3", ratio >= 3)


# latency

CONNECTIONS, INTERVAL, SECONDS = 40, 0.25, 50
LINK = ["--delay", "50ms", "--loss", "5%"]


def started(command):
    """A process, and the first line of its standard output or error that has an address."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = []
    while True:
        line = process.stdout.readline()
        lines.append(line)
        if not line:
            sys.exit("".join(lines))
        for word in line.replace(",", " ").split():
            if word.startswith("127.0.0.1:") and word.rstrip(".").split(":")[1].isdigit():
                return process, word.rstrip(".")


def emulator(rexmit, server, seed):
    return started([rexmit, "emulate", "--listen", "127.0.0.1:0", "--to", server, *LINK, "--seed", str(seed)])


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, round(share * (len(values) - 1)))]


def rust_latency(rexmit, seed):
    with tempfile.TemporaryDirectory() as directory:
        record = f"{directory}/latency.csv"
        receiver, server = started([rexmit, "perf", "recv", "--listen", "127.0.0.1:0", "--out", record])
        link, address = emulator(rexmit, server, seed)
        load = ["--connections", str(CONNECTIONS), "--interval", f"{INTERVAL * 1000:.0f}ms", "--size", str(SIZE)]
        subprocess.run(
            [rexmit, "perf", "send", "--to", address, *load, "--duration", f"{SECONDS}s"], check=True, capture_output=True
        )
        # All messages are acknowledged. One whose SHUTDOWN COMPLETE was lost keeps the receiver for minutes (RFC 9260 §9.2).
        receiver.send_signal(signal.SIGTERM)
        receiver.wait(60)
        link.send_signal(signal.SIGTERM)
        link.wait()
        with open(record) as file:
            return [(int(it["recv_ns"]) - int(it["send_ns"])) / 1e6 for it in csv.DictReader(file)]


def python_receiver(pipe):
    import rexmit

    async def main():
        latencies = []

        async def take(association):
            async for message in association:
                latencies.append(time.monotonic_ns() - int.from_bytes(message.payload[:8], "big"))

        identity = rexmit.Identity.generate()
        async with rexmit.serve(take, "127.0.0.1", 0, identity) as server:
            pipe.send((server.address[1], identity.fingerprint))
            # The sender has ended, and with it everything is acknowledged.
            await asyncio.get_running_loop().run_in_executor(None, pipe.recv)
            pipe.send(latencies)

    asyncio.run(main())


def python_sender(address, fingerprint):
    import rexmit

    host, port = address.split(":")

    async def one(number, begin):
        stream_of = rexmit.connect(host, int(port), fingerprint)
        async with stream_of as association:
            stream = association.stream(0)
            for turn in range(int(SECONDS / INTERVAL)):
                due = begin + INTERVAL * (turn + number / CONNECTIONS)
                await asyncio.sleep(due - time.monotonic())
                await stream.send(int(due * 1e9).to_bytes(8, "big") + bytes(SIZE - 8))

    async def main():
        begin = time.monotonic() + 3
        await asyncio.gather(*(one(number, begin) for number in range(CONNECTIONS)))

    asyncio.run(main())


def python_latency(rexmit, seed):
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    receiver = spawn.Process(target=python_receiver, args=(theirs,), daemon=True)
    receiver.start()
    port, fingerprint = ours.recv()
    link, address = emulator(rexmit, f"127.0.0.1:{port}", seed)
    sender = spawn.Process(target=python_sender, args=(address, fingerprint), daemon=True)
    sender.start()
    sender.join()
    ours.send(None)
    latencies = ours.recv()
    receiver.join()
    link.send_signal(signal.SIGTERM)
    link.wait()
    return [it / 1e6 for it in latencies]


def latency(rexmit):
    all_of = {"rust": [], "python": []}
    for seed in (1, 2, 3):
        all_of["rust"] += rust_latency(rexmit, seed)
        all_of["python"] += python_latency(rexmit, seed)
    rust, python = (percentile(all_of[name], 0.99) for name in ("rust", "python"))
    halves = [percentile(it, 0.5) for it in all_of.values()]
    what = f"p99 {python:.1f} ms; Rust {rust:.1f} ms (median {halves[1]:.1f}, {halves[0]:.1f}; {len(all_of['python'])} messages)"
    row("latency", what, f"{python - rust:+.1f} ms", "within 3 ms", abs(python - rust) <= 3)


# sweep

STUDY = """title = "Two thousand runs"
seeds = 500
[scenario]
duration = "300s"
network.forward = "delay 50ms loss 5%"
[scenario.thin.game]
traffic = "every 100ms size 100"
[[axis]]
name = "profile"
values = ["rfc9260", "thin", "interactive", "interactive-redundant"]
set.thin.game.profile = "{}"
"""


def sweep(rexmit):
    import distributed

    from rexmit import lab

    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        file = directory / "sweep.toml"
        file.write_text(STUDY)
        settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "memory_limit": 0}
        ratios = []
        # That of now: a cluster changes how programs allocate (MALLOC_TRIM_THRESHOLD_).
        environment = dict(os.environ)
        with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
            study = lab.Study.load(file)
            assert len(study) == 2000
            study.with_seeds(4).run(client.get_executor(), store=directory / "warm")
            for turn in range(5):
                began = time.perf_counter()
                results = study.run(client.get_executor(), store=directory / f"dask-{turn}")
                dask = time.perf_counter() - began
                assert results.executed == 2000 and not results.failed
                command = [rexmit, "study", "run", str(file), "--jobs", "2", "--yes", "--cache", str(directory / f"here-{turn}")]
                began = time.perf_counter()
                # A directory of its own: the results of a study that did not change are not written again.
                command += ["--out", str(directory / f"out-{turn}")]
                subprocess.run(command, check=True, capture_output=True, env=environment)
                ratios.append((time.perf_counter() - began, dask))
    ratio = statistics.median(here / dask for here, dask in ratios)
    here, dask = (statistics.median(it) for it in zip(*ratios))
    what = f"2,000 runs: {dask:.1f} s on two Dask workers; {here:.1f} s by rexmit study run --jobs 2"
    row("sweep", what, f"{ratio * 100:.0f} %", "at least 90 %", ratio >= 0.9)


# import


def import_(_):
    def least(program):
        """The least processor time in milliseconds, and the least duration."""
        times = []
        for _ in range(15):
            began = time.perf_counter()
            child = subprocess.Popen([sys.executable, "-c", program])
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            assert child.returncode == 0
            times.append((used.ru_utime + used.ru_stime, time.perf_counter() - began))
        return [min(it) * 1e3 for it in zip(*times)]

    empty = least("pass")
    for name in ("rexmit", "rexmit.lab"):
        used, took = (of - empty_of for of, empty_of in zip(least(f"import {name}"), empty))
        what = f"import {name}: processor time, and {took:.0f} ms on the clock"
        row("import", what, f"{used:.0f} ms", "below 150 ms", used < 150)


# frame


def resident():
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def frame(_):
    import polars

    from rexmit import lab

    flow = lab.ThinFlow(traffic="every 1ms size 10")
    scenario = lab.Scenario(duration="100s", rows=True, network=lab.Network("delay 1ms"), thin={"game": flow})
    study = lab.Study(title="Rows", scenario=scenario, seeds=101)
    with tempfile.TemporaryDirectory() as directory:
        table = study.run(store=directory).table("messages")
    assert len(table) >= 10_000_000
    before, began = resident(), time.perf_counter()
    first = polars.DataFrame(table)
    seconds, grown = time.perf_counter() - began, resident() - before
    second = polars.DataFrame(table)
    size = first.estimated_size()

    def places(frame):
        columns = (column for column in frame.select(polars.selectors.numeric()) if column.null_count() == 0)
        chunks = (chunk for column in columns for chunk in column.get_chunks())
        return [chunk.to_numpy(allow_copy=False).ctypes.data for chunk in chunks]

    is_shared = places(first) == places(second)
    what = f"{len(table):,} rows of {first.width} columns, {size / 1e6:,.0f} MB, in {seconds * 1e3:.1f} ms; memory grows by"
    row("frame", what, f"{grown / 1e6:.1f} MB", "no copy", is_shared and grown < size / 100)


# advise


def advise(rexmit):
    """Messages at random intervals, 60 per second on average, for ten minutes."""
    generator = random.Random(1)
    lines, now = ["trace,flow_id,direction,time_us,payload_bytes"], 0.0
    while now < 600e6:
        lines.append(f"game,0,c2s,{now:.0f},{generator.randint(40, 200)}")
        now += generator.expovariate(60) * 1e6
    with tempfile.TemporaryDirectory() as directory:
        file = pathlib.Path(directory) / "game.csv"
        file.write_text("\n".join(lines) + "\n")
        began = time.perf_counter()
        subprocess.run(
            [rexmit, "advise", str(file), "--direction", "c2s", "--rtt", "80ms", "--loss", "2%"], check=True, capture_output=True
        )
        took = time.perf_counter() - began
    row(
        "advise",
        f"ten minutes, {len(lines) - 1:,} messages, every profile, five runs each",
        f"{took:.1f} s",
        "below 30 s",
        took < 30,
    )


PARTS = {"echo": echo, "latency": latency, "sweep": sweep, "import": import_, "frame": frame, "advise": advise}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rexmit", required=True, help="the command, built with --release")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all unless given")
    arguments = parser.parse_args()
    for name in arguments.parts or PARTS:
        PARTS[name](arguments.rexmit)


if __name__ == "__main__":
    main()

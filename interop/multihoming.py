"""Several addresses: rexmit and usrsctp in two network namespaces with two cables between them, one of
which fails while messages flow.

The namespaces have no names and are gone with the processes that hold them, which end with this one.
"""

import collections
import json
import os
import subprocess
import time

import peers

CABLES = ("first", "second")
PORT = 9899
# The ends' timers, so that a path is given up within seconds: 500 ms, 1 s, 2 s.
TIMERS = ["--rto-min", 500, "--path-max-retrans", 2]
# Between two messages, so that there are some to come when the cable fails.
EVERY_MS = 2
# The first cable fails after so many packets.
PACKETS_BEFORE = 60
# What each cable carries where both are to be filled.
RATE = "10mbit"
# CMT: the least share of the packets of either path.
LEAST_SHARE = 0.2

# The client sends. `paths` is what rexmit does with several; `cut` how the first cable fails: "down"
# at the client's end, "silent" where each end drops outgoing packets, or not at all.
# `adds`: the client has its second address from the beginning, but adds it later (RFC 5061).
Case = collections.namedtuple("Case", "client server over paths cut adds", defaults=[False])
CASES = [
    Case("rexmit", "usrsctp", "udp", "standard", "down"),
    Case("rexmit", "usrsctp", "udp", "pf", "silent"),
    Case("rexmit", "usrsctp", "ip", "standard", "silent"),
    Case("usrsctp", "rexmit", "udp", "standard", "down"),
    Case("usrsctp", "rexmit", "udp", "standard", "silent"),
    Case("usrsctp", "rexmit", "ip", "standard", "silent"),
    Case("rexmit", "linux", "ip", "standard", "silent"),
    Case("linux", "rexmit", "ip", "standard", "silent"),
    Case("rexmit", "linux", "ip", "standard", "silent", adds=True),
    Case("linux", "rexmit", "ip", "standard", "silent", adds=True),
    Case("rexmit", "usrsctp", "udp", "cmt", None),
    Case("rexmit", "usrsctp", "ip", "cmt", None),
    Case("rexmit", "usrsctp", "udp", "cmt", "silent"),
]


class NotPossible(Exception):
    """Why there are no namespaces here."""


class Machine:
    """A network namespace, as long as its holder lives."""

    def __init__(self):
        own = os.readlink("/proc/self/ns/net")
        self.holder = peers.start(["unshare", "--net", "cat"])  # It ends when its input does.
        self.path = f"/proc/{self.holder.pid}/ns/net"
        deadline = time.monotonic() + 5
        while self.holder.poll() is None and time.monotonic() < deadline:
            if os.readlink(self.path) != own:
                return
            time.sleep(0.01)
        raise NotPossible("no network namespace: needs root (CAP_SYS_ADMIN)")

    def command(self, *command):
        return ["nsenter", f"--net={self.path}", "--", *map(str, command)]

    def run(self, *command):
        try:
            done = subprocess.run(self.command(*command), capture_output=True, text=True)
        except FileNotFoundError as error:
            raise NotPossible(f"{error.filename} is not installed") from None
        if done.returncode:
            raise NotPossible(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
        return done.stdout

    def packets(self):
        """The packets through each cable."""
        links = json.loads(self.run("ip", "-json", "-statistics", "link", "show"))
        sent = {link["ifname"]: link["stats64"]["tx"]["packets"] for link in links}
        return [sent[cable] for cable in CABLES]

    def end(self):
        self.holder.stdin.close()
        self.holder.wait()


def address(end, cable):
    return f"10.132.{cable + 1}.{end + 1}"


class Site:
    """Two machines and two cables."""

    def __enter__(self):
        self.machines = []
        try:
            self.machines += [Machine()]
            self.machines += [Machine()]
            for machine in self.machines:
                machine.run("ip", "link", "set", "lo", "up")  # linux/peer.py uses it.
            for number, cable in enumerate(CABLES):
                self.lay(number, cable)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for machine in self.machines:
            machine.end()

    def lay(self, number, cable):
        peer = ["type", "veth", "peer", "name", cable, "netns", self.machines[1].holder.pid]
        self.machines[0].run("ip", "link", "add", cable, *peer)
        for end, machine in enumerate(self.machines):
            machine.run("ip", "address", "add", f"{address(end, number)}/24", "dev", cable)
            machine.run("ip", "link", "set", cable, "up")

    def limit(self, rate):
        for machine in self.machines:
            for cable in CABLES:
                limit = ["tbf", "rate", rate, "burst", "10k", "latency", "20ms"]
                machine.run("tc", "qdisc", "add", "dev", cable, "root", *limit)

    def cut(self, how):
        if how == "down":
            self.machines[0].run("ip", "link", "set", CABLES[0], "down")
            return
        hook = f"type filter hook egress device {CABLES[0]} priority 0 ; policy drop ;"
        for machine in self.machines:
            machine.run("nft", f"add table netdev cut; add chain netdev cut out {{ {hook} }}")


def start(site, case, end, chosen):
    """One peer with both its addresses."""
    name = (case.client, case.server)[end]
    command = [peers.BUILD / f"peer-{name}", "--role", ("client", "server")[end]]
    for cable in range(2):
        is_later = case.adds and (end, cable) == (0, 1)
        command += ["--add-address" if is_later else "--local", f"{address(end, cable)}:{PORT}"]
    if end == 0:
        command += ["--remote", f"{address(1, 0)}:{PORT}", "--linger", 30]
        command += ["--every", 0 if case.cut is None else EVERY_MS]
    if name == "rexmit":
        command += ["--paths", case.paths]
    command += ["--mode", ("send", "recv")[end], "--over", case.over, *TIMERS]
    command += ["--messages", chosen.messages, "--seed", chosen.seed, "--timeout", chosen.timeout]
    return peers.start(site.machines[end].command(*command))


def exchange(site, case, chosen):
    """Runs the case; both reports, and the packets that were sent through each cable of the client's: when
    the first failed, and in the end. The former is None if it did not fail in time."""
    serving = start(site, case, 1, chosen)
    time.sleep(0.3)  # To be bound.
    connecting = start(site, case, 0, chosen)
    at_cut = None
    deadline = time.monotonic() + chosen.timeout + 5
    while serving.poll() is None and time.monotonic() < deadline:
        if connecting.poll() not in (None, 0):
            deadline = min(deadline, time.monotonic() + 5)  # It will not come any more.
        if case.cut and at_cut is None and site.machines[0].packets()[0] >= PACKETS_BEFORE:
            site.cut(case.cut)
            at_cut = site.machines[0].packets()
        time.sleep(0.02)
    at_end = site.machines[0].packets()
    return peers.finish(connecting, 5), peers.finish(serving, 1), at_cut, at_end


def faults(case, chosen, client, server, at_cut, at_end):
    """The mistakes of the outcome, in words."""
    wrong = []
    for who, report, sent in (("client", client, chosen.messages), ("server", server, 0)):
        received = chosen.messages - sent
        is_right = report.get("sent") == sent and report.get("received") == received
        if not is_right or report.get("exit") != 0:
            wrong.append(f"{who}: {peers.complaint(report) or 'not everything came'}")
        if report.get("paths", 0) < 2:
            wrong.append(f"{who}: {report.get('paths')} path")
    if case.cut:
        if at_cut is None:
            wrong.append("the transfer was over before the cable failed")
        elif at_end[1] - at_cut[1] < PACKETS_BEFORE:
            wrong.append("the second cable carried nothing afterwards")
    elif min(shares(client)) < LEAST_SHARE:
        wrong.append(f"one path carried next to nothing: {shares(client)}")
    return wrong


def shares(report):
    """Of the data packets of either path; rexmit alone tells."""
    packets = [report.get("packets_first_path", 0), report.get("packets_second_path", 0)]
    return [count / max(1, sum(packets)) for count in packets]


def note(case, client, server, at_cut, at_end):
    over = {"udp": "UDP", "ip": "raw IP"}[case.over]
    if case.cut is None:
        first, second = shares(client)
        return f"{case.paths}, {over}: {first:.0%} of the packets over the first path, {second:.0%} over the second"
    added = ", the second address added by ASCONF" if case.adds else ""
    return (
        f"{case.paths}, {over}{added}: first cable {case.cut} after {at_cut[0]} packets, "
        f"{at_end[1] - at_cut[1]} over the second; longest gap {server['longest_gap_ms']} ms"
    )


def judge(chosen, case):
    row = {"client": case.client, "server": case.server, "messages": chosen.messages}
    row["seconds"] = None
    for name in (case.client, case.server):
        if reason := peers.missing(name):
            return {**row, "verdict": "not run", "note": f"{name}: {reason}"}
    try:
        with Site() as site:
            if case.cut is None:
                site.limit(RATE)
            client, server, at_cut, at_end = exchange(site, case, chosen)
    except NotPossible as error:
        return {**row, "verdict": "not run", "note": f"two cables: {error}"}
    row |= {"seconds": client.get("seconds"), "reports": {"client": client, "server": server}}
    if wrong := faults(case, chosen, client, server, at_cut, at_end):
        told = f"{case.paths}, {case.over}, {case.cut}: " + "; ".join(wrong)
        return {**row, "verdict": "failed", "note": told}
    return {**row, "verdict": "passed", "note": note(case, client, server, at_cut, at_end)}

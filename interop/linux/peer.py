#!/usr/bin/env python3
"""The SCTP or the TCP of Linux as a peer: boots a User Mode kernel, an ordinary process, and runs linux-program or
linux-tcp in it with the same arguments. The kernel's network devices end in this process.

Over UDP the kernel has one address, and its packets are sent by a UDP socket at --local: no
privileges are needed. Over IP the kernel takes over the addresses of --local, together with the devices of
the system that have them (CAP_NET_ADMIN, CAP_NET_RAW). With --over tcp its IP packets are the payloads of datagrams of
the UDP socket.
"""

import argparse
import contextlib
import ctypes
import glob
import ipaddress
import json
import os
import pathlib
import select
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile

KERNEL = "linux.uml"
MODULES = "/usr/lib/uml/modules/*/kernel"
# In this order; listen() fails without the hashes, which sign cookies.
MODULE_NAMES = [
    "crypto/md5", "crypto/hmac", "lib/crc-ccitt", "net/ipv6/ipv6", "net/ipv4/udp_tunnel",
    "net/ipv6/ip6_udp_tunnel", "net/sctp/sctp",
]
# Extensions that are off by default: RFC 6525, RFC 4895, RFC 5061, RFC 8260.
EXTENSIONS = ["reconf_enable", "auth_enable", "addip_enable", "intl_enable"]
PROGRAMS = {"udp": "linux-program", "ip": "linux-program", "tcp": "linux-tcp"}
WHOLE_STATE = "linux-whole-state.so"

HOST_MAC = bytes.fromhex("020000000001")
KERNEL_MAC = bytes.fromhex("020000000002")
# Of the wire over UDP. What the kernel sends to the host's address leaves by the UDP socket.
HOST, KERNEL_ADDRESS = ipaddress.IPv4Address("10.132.0.1"), ipaddress.IPv4Address("10.132.0.2")
MOST_UDP_BYTES = 1500 - 28
ETHERNET = struct.Struct("!6s6sH")
IPV4 = struct.Struct("!BBHHHBBH4s4s")
UDP = struct.Struct("!HHHH")
IPV4_TYPE, ALL_TYPES, UDP_PROTOCOL = 0x0800, 3, 17
RECEIVE_BUFFER = 1 << 21
PR_SET_PDEATHSIG = 1


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF


def pair():
    """Two datagram sockets that are connected with each other, for the frames of a device. Those of the UNIX
    domain hold ten frames at some hosts (max_dgram_qlen), and the kernel drops what does not fit."""
    ends = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
    for end in ends:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        end.bind(("127.0.0.1", 0))
    for end, other in zip(ends, reversed(ends)):
        end.connect(other.getsockname())
    return ends


class UdpWire:
    """A UDP socket of the system for the kernel's UDP port."""

    def __init__(self, local, remote):
        self.port = local[1]
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        self.socket.bind(local)
        self.ip = remote and remote[0]  # A server's client is at the one that sent last.
        self.address = f"{KERNEL_ADDRESS}/24"
        self.mac = KERNEL_MAC
        self.neighbour = str(HOST)

    def to_kernel(self):
        payload, (self.ip, port) = self.socket.recvfrom(65536)
        if len(payload) > MOST_UDP_BYTES:
            return None
        udp = UDP.pack(port, self.port, 8 + len(payload), 0) + payload
        head = [0x45, 0, 20 + len(udp), 0, 0x4000, 64, UDP_PROTOCOL, 0, HOST.packed, KERNEL_ADDRESS.packed]
        head[7] = checksum(IPV4.pack(*head))
        return ETHERNET.pack(KERNEL_MAC, HOST_MAC, IPV4_TYPE) + IPV4.pack(*head) + udp

    def to_system(self, frame):
        if len(frame) < 42 or ETHERNET.unpack_from(frame)[2] != IPV4_TYPE or frame[14 + 9] != UDP_PROTOCOL:
            return
        at = 14 + (frame[14] & 0xF) * 4
        _, port, length, _ = UDP.unpack_from(frame, at)
        if self.ip is not None:
            self.socket.sendto(frame[at + 8 : at + length], (self.ip, port))


class TunnelWire(UdpWire):
    """A UDP socket of the system whose datagrams are IP packets of the kernel."""

    def __init__(self, local, remote):
        super().__init__(local, remote)
        self.remote = remote

    def to_kernel(self):
        packet, self.remote = self.socket.recvfrom(65536)
        return ETHERNET.pack(KERNEL_MAC, HOST_MAC, IPV4_TYPE) + packet if len(packet) <= 1500 else None

    def to_system(self, frame):
        if self.remote and ETHERNET.unpack_from(frame)[2] == IPV4_TYPE:
            self.socket.sendto(frame[ETHERNET.size :], self.remote)


class DeviceWire:
    """A network device of the system that loses its address to the kernel. It has Ethernet, or is a TUN device with
    one neighbour."""

    def __init__(self, local):
        links = json.loads(subprocess.check_output(["ip", "-json", "address", "show"]))
        device, entry = next(
            (link, entry) for link in links for entry in link["addr_info"] if entry["local"] == local[0]
        )
        self.name = device["ifname"]
        self.has_ethernet = device["link_type"] == "ether"
        self.address = f"{local[0]}/{entry['prefixlen']}"
        if self.has_ethernet:
            self.mac = bytes.fromhex(device["address"].replace(":", ""))
            self.neighbour = None  # The kernel asks for it by ARP.
            kind, protocol = socket.SOCK_RAW, ALL_TYPES
        else:
            self.mac = KERNEL_MAC
            network = ipaddress.ip_interface(self.address).network
            self.neighbour = str(next(host for host in network.hosts() if str(host) != local[0]))
            kind, protocol = socket.SOCK_DGRAM, IPV4_TYPE
        self.socket = socket.socket(socket.AF_PACKET, kind, socket.htons(protocol))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        self.socket.bind((self.name, protocol))
        subprocess.run(["ip", "address", "flush", "dev", self.name], check=True)

    def to_kernel(self):
        packet, source = self.socket.recvfrom(65536)
        if source[2] == socket.PACKET_OUTGOING or len(packet) > 1514:
            return None
        return packet if self.has_ethernet else ETHERNET.pack(KERNEL_MAC, HOST_MAC, IPV4_TYPE) + packet

    def to_system(self, frame):
        if self.has_ethernet:
            self.socket.send(frame)
        elif ETHERNET.unpack_from(frame)[2] == IPV4_TYPE:
            self.socket.sendto(frame[14:], (self.name, IPV4_TYPE))


def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--role", choices=["client", "server"], required=True)
    add("--local", type=address, action="append", required=True)
    add("--remote", type=address)
    add("--add-address", type=address, help="one that the kernel has, but the program adds it later")
    add("--over", choices=list(PROGRAMS), default="udp")
    add("--timeout", type=int, default=60)
    add("--linger", type=float, default=5)
    add("--console", action="store_true", help="print what the kernel prints")
    return parser.parse_known_args()


def program_line(chosen, others, build):
    """The program's command line inside the kernel: with the addresses that it has there."""
    is_at_socket = chosen.over != "ip"
    line = [build / PROGRAMS[chosen.over], "--role", chosen.role, "--over", chosen.over, "--timeout", chosen.timeout]
    for host, port in chosen.local:
        line += ["--local", f"{KERNEL_ADDRESS if is_at_socket else host}:{port}"]
    if chosen.add_address:
        line += ["--add-address", "{}:{}".format(*chosen.add_address)]
    if chosen.remote:
        host, port = chosen.remote
        line += ["--remote", f"{HOST if is_at_socket else host}:{port}"]
    return shlex.join(map(str, [*line, "--linger", 0, *others]))


def init_script(wires, line, work):
    """The init process of the kernel; the root is the host's, read-only."""
    folder = pathlib.Path(sorted(glob.glob(MODULES))[-1])
    modules = [folder / f"{name}.ko" for name in MODULE_NAMES]
    lines = ["#!/bin/bash", "export PATH=/usr/sbin:/usr/bin:/sbin:/bin",
             "mount -t proc proc /proc", "mount -t sysfs sysfs /sys", "mount -t tmpfs tmpfs /run"]
    lines += [f"insmod {module}" for module in modules if module.exists()]  # Others are built in.
    lines += ["echo 4194304 | tee /proc/sys/net/core/wmem_max >/proc/sys/net/core/rmem_max",
              "ip link set lo up"]
    lines += [f"echo 1 >/proc/sys/net/sctp/{name}" for name in EXTENSIONS]
    for number, wire in enumerate(wires):
        device = f"vec{number}"
        lines += [f"ip link set {device} address {wire.mac.hex(':')}",
                  # The device drops packets that were cut from a larger one (GSO): none are made.
                  f"ip link set {device} gso_max_size 1500",
                  f"ip address add {wire.address} dev {device}", f"ip link set {device} up"]
        if wire.neighbour:
            lines.append(f"ip neighbour add {wire.neighbour} lladdr {HOST_MAC.hex(':')} dev {device}")
    lines += [f"{line} </dev/null", 'echo "exit $?"', "sleep 1000000"]
    script = work / "init"
    script.write_text("\n".join(lines) + "\n")
    script.chmod(0o755)
    return script


def boot(init, ends, work, build):
    """The kernel as a process group of its own, which ends with this process."""
    command = [KERNEL, "mem=128M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro",
               f"init={init}", "con=null", "con0=null,fd:1", "quiet", f"uml_dir={work}/"]
    command += [f"vec{number}:transport=fd,fd={end.fileno()}" for number, end in enumerate(ends)]
    environment = dict(os.environ, HOME=str(work), TMPDIR="/dev/shm" if os.path.isdir("/dev/shm") else str(work))
    if (build / WHOLE_STATE).exists():
        environment["LD_PRELOAD"] = str(build / WHOLE_STATE)
    libc = ctypes.CDLL(None)
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        pass_fds=[end.fileno() for end in ends], env=environment, start_new_session=True,
        preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL),
    )


class Console:
    """The lines that the kernel prints."""

    def __init__(self, stream, is_shown):
        self.stream, self.is_shown = stream, is_shown
        self.rest, self.lines = b"", []

    def read(self):
        """The lines since the last call; None at the end."""
        data = os.read(self.stream.fileno(), 65536)
        if not data:
            return None
        *lines, self.rest = (self.rest + data).split(b"\n")
        lines = [line.decode(errors="replace").strip() for line in lines]
        self.lines += lines
        if self.is_shown:
            print(*lines, sep="\n", file=sys.stderr, flush=True)
        return lines


def serve(chosen, kernel, wires, ends):
    """Carries packets until the program inside has ended, and while a client lingers; the exit code."""
    console = Console(kernel.stdout, chosen.console)
    poll = select.poll()
    actions = {}

    def watch(readable, action):
        poll.register(readable, select.POLLIN)
        actions[readable.fileno()] = action

    def send_to(end, wire):
        if frame := wire.to_kernel():
            end.send(frame)

    def open_wires():
        for wire, end in zip(wires, ends):
            watch(wire.socket, lambda wire=wire, end=end: send_to(end, wire))

    watch(kernel.stdout, lambda: None)
    for wire, end in zip(wires, ends):
        watch(end, lambda wire=wire, end=end: wire.to_system(end.recv(65536)))
    if chosen.role == "client":
        open_wires()
    code, timeout = None, (chosen.timeout + 60) * 1000
    while True:
        ready = poll.poll(timeout)
        if not ready:
            return code if code is not None else 1
        for descriptor, _ in ready:
            if descriptor == sys.stdin.fileno():
                if not os.read(descriptor, 4096):
                    return code
                continue
            if descriptor != kernel.stdout.fileno():
                # A packet that cannot be sent is lost, as on any network.
                with contextlib.suppress(OSError):
                    actions[descriptor]()
                continue
            lines = console.read()
            if lines is None:
                print("\n".join(console.lines[-3:]) or "the kernel printed nothing", file=sys.stderr)
                return 1
            for line in lines:
                if line == "listening":
                    open_wires()
                elif line.startswith("{"):
                    print(line, flush=True)
                elif line.startswith("exit "):
                    code = int(line.split()[1])
                    if code > 1:
                        print("\n".join(console.lines[-4:-1]), file=sys.stderr)
                    if chosen.role == "server" or code:
                        return code
                    poll.register(sys.stdin, select.POLLIN)
                    timeout = chosen.linger * 1000


def main():
    chosen, others = options()
    build = pathlib.Path(__file__).resolve().parent.parent / "build"
    if chosen.over == "udp":
        wires = [UdpWire(chosen.local[0], chosen.remote)]
    elif chosen.over == "tcp":
        wires = [TunnelWire(chosen.local[0], chosen.remote)]
    else:
        added = [chosen.add_address] if chosen.add_address else []
        wires = [DeviceWire(local) for local in chosen.local + added]
    pairs = [pair() for _ in wires]
    work = pathlib.Path(tempfile.mkdtemp(prefix="interop-linux-"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    kernel = None
    try:
        init = init_script(wires, program_line(chosen, others, build), work)
        kernel = boot(init, [end for _, end in pairs], work, build)
        code = serve(chosen, kernel, wires, [own for own, _ in pairs])
    finally:
        if kernel:
            os.killpg(kernel.pid, signal.SIGKILL)
            kernel.wait()
        shutil.rmtree(work, ignore_errors=True)
    sys.exit(code)


if __name__ == "__main__":
    main()

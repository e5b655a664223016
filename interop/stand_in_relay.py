#!/usr/bin/env python3
"""A lossy UDP relay, as a stand-in for the emulator: `run --relay stand-in`.

It shares no code with the project, so a pair that fails through the emulator and passes here, or
the other way round, tells where to look. Loss, delay and reordering alone; for 127.0.0.1.
"""

import argparse
import heapq
import json
import random
import select
import signal
import socket
import sys
import time


def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


class Relay:
    def __init__(self, options):
        self.options = options
        self.random = random.Random(options.seed)
        self.front = self.bound(options.listen)
        self.back = self.bound(("127.0.0.1", 0))
        self.client = None
        self.waiting = []  # (due, count, socket to send from, address, packet)
        self.count = 0
        self.totals = {"packets": 0, "dropped": 0, "reordered": 0}

    @staticmethod
    def bound(local):
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        udp.bind(local)
        udp.setblocking(False)
        return udp

    def offer(self, out, to, packet):
        self.totals["packets"] += 1
        if self.random.random() < self.options.loss:
            self.totals["dropped"] += 1
            return
        delay = self.options.delay
        if self.random.random() < self.options.reorder:
            self.totals["reordered"] += 1
            delay += self.random.uniform(0, self.options.delay)
        self.count += 1
        heapq.heappush(self.waiting, (time.monotonic() + delay, self.count, out, to, packet))

    def take_in(self, udp):
        while True:
            try:
                packet, source = udp.recvfrom(65536)
            except (BlockingIOError, ConnectionRefusedError):
                return
            if udp is self.front:
                self.client = source
                self.offer(self.back, self.options.to, packet)
            elif self.client:
                self.offer(self.front, self.client, packet)

    def send_due(self):
        while self.waiting and self.waiting[0][0] <= time.monotonic():
            _, _, out, to, packet = heapq.heappop(self.waiting)
            try:
                out.sendto(packet, to)
            except OSError:
                pass

    def run(self):
        while True:
            timeout = self.waiting[0][0] - time.monotonic() if self.waiting else 0.5
            readable, _, _ = select.select([self.front, self.back], [], [], max(0, timeout))
            for udp in readable:
                self.take_in(udp)
            self.send_due()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--listen", type=address, required=True)
    parser.add_argument("--to", type=address, required=True)
    parser.add_argument("--loss", type=float, default=0, help="probability")
    parser.add_argument("--reorder", type=float, default=0, help="probability")
    parser.add_argument("--delay", type=float, default=0, help="seconds, each way")
    parser.add_argument("--seed", type=int, default=1)
    relay = Relay(parser.parse_args())

    def leave(*_):
        print(json.dumps(relay.totals), flush=True)
        sys.exit(0)

    signal.signal(signal.SIGTERM, leave)
    relay.run()


if __name__ == "__main__":
    main()

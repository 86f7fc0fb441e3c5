#!/usr/bin/env python3
"""A peer of the tunnel's daemon in another language: shakes hands, validates two paths, and has the daemon's host answer
ICMP echo requests over both of them. Prints one line of JSON; exits with 1 and a reason if anything is not as in
docs/reference/protocol.md.

    protocol_peer.py CAPABILITIES PRIVATE_KEY PEER_PUBLIC_KEY INNER_SOURCE INNER_DESTINATION SOURCE:PORT=DESTINATION:PORT...

CAPABILITIES is 1 if this end takes bundles and names its paths, or 0 as an earlier version of the protocol. Keys are in base64; the order of the addresses is that of the path ids."""

import base64
import ipaddress
import json
import os
import select
import socket
import struct
import sys
import time

import protocol
from protocol import Bundle, Data, Initiation, Reassembly

STREAM = 7
TIMEOUT = 60.0


def checksum(octets):
    octets += b"\0" * (len(octets) % 2)
    total = sum(struct.unpack(f">{len(octets) // 2}H", octets))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def echo_request(source, destination, number, size):
    """An ICMP echo request (RFC 792) in IPv4."""
    data = bytes((number + k) % 256 for k in range(size))
    icmp = struct.pack(">BBHHH", 8, 0, 0, 0x5257, number) + data
    icmp = icmp[:2] + struct.pack(">H", checksum(icmp)) + icmp[4:]
    start = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(icmp), number, 0, 64, 1, 0) + source + destination
    return start[:10] + struct.pack(">H", checksum(start)) + start[12:] + icmp


def echo_reply(packet):
    """The number and the data of an ICMP echo reply, or None."""
    header_len = (packet[0] & 15) * 4
    length = struct.unpack(">H", packet[2:4])[0]
    icmp = packet[header_len:length]
    if packet[0] >> 4 != 4 or packet[9] != 1 or icmp[0] != 0 or checksum(icmp) != 0:
        return None
    return struct.unpack(">H", icmp[6:8])[0], icmp[8:]


class Peer:
    """One end of a tunnel."""

    def __init__(self, capabilities, private_key, remote_public_key, routes):
        self.capabilities = capabilities
        self.private_key, self.remote_public_key = private_key, remote_public_key
        self.sockets = []
        for source, destination in routes:
            udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            udp.bind(source)
            udp.connect(destination)
            self.sockets.append(udp)
        self.session = None
        self.numbers = [0] * len(routes)
        self.received = [set() for _ in routes]
        self.acknowledged = [set() for _ in routes]
        self.data_received = [0] * len(routes)
        self.pings = {}
        self.validated = set()
        self.reassembly = Reassembly()
        self.packets = []
        self.refused = 0
        self.bundles = 0

    def handshake(self):
        boot_id = int.from_bytes(os.urandom(8), "big")
        self.initiations, self.cookies = {}, {}
        retry = 0.0
        deadline = time.monotonic() + TIMEOUT
        while self.session is None:
            if time.monotonic() >= retry:
                index = int.from_bytes(os.urandom(3), "big")
                keys = (self.private_key, self.remote_public_key, bytes(32))
                numbers = (index, time.time_ns(), boot_id)
                initiation = Initiation(*keys, *numbers, os.urandom(32), capabilities=self.capabilities)
                self.initiations[index] = initiation
                for path, udp in enumerate(self.sockets):
                    udp.send(initiation.message(self.cookies.get(path)))
                retry = time.monotonic() + 1
            self.receive(0.1)
            if time.monotonic() > deadline:
                raise SystemExit("no session")

    def send(self, path, body):
        number = self.numbers[path]
        self.numbers[path] += 1
        self.sockets[path].send(self.session.seal(path, number, body))
        return number

    def ping(self, path):
        token = os.urandom(8)
        self.pings[token] = path
        name = protocol.path_name_frame(path, b"line-%d" % path) if self.capabilities else b""
        self.send(path, protocol.ping(token) + name)

    def receive(self, seconds):
        for udp in select.select(self.sockets, [], [], seconds)[0]:
            path = self.sockets.index(udp)
            try:
                self.on_datagram(path, udp.recv(65535))
            except (protocol.Refused, ConnectionError):
                self.refused += 1

    def on_datagram(self, arrival, datagram):
        if datagram[:4] == protocol.HANDSHAKE:
            return self.on_handshake(arrival, datagram)
        if self.session is None:
            raise protocol.Refused("no session")
        path, number, body = self.session.open(datagram)
        if path != arrival:
            raise SystemExit(f"path {path} arrived by the addresses of path {arrival}")
        self.received[path].add(number)
        content = protocol.parse(body)
        if isinstance(content, Bundle) and not self.capabilities:
            raise SystemExit("a bundle, although this end takes none")
        self.bundles += isinstance(content, Bundle)
        frames, entries = {
            Bundle: lambda: (content.frames, content.entries),
            Data: lambda: ([], [content]),
            list: lambda: (content, []),
        }[type(content)]()
        for name, fields in frames:
            self.on_frame(path, name, fields)
        for entry in entries:
            self.packets += [data.fragment for data in self.reassembly.add(entry)]
        if entries:
            self.data_received[path] += 1
            self.send(path, protocol.ack(path, self.received[path], time.monotonic_ns() // 1000, 0))

    def on_handshake(self, arrival, message):
        kind, index = protocol.parse_header(message)
        initiation = self.initiations.get(index)
        if initiation is None:
            raise protocol.Refused("no such handshake")
        if kind == protocol.COOKIE_REPLY:
            self.cookies[arrival] = initiation.cookie(message)
        elif self.session is None:
            self.session, _ = initiation.session(message)

    def on_frame(self, path, name, fields):
        if name == "ping":
            self.send(path, protocol.pong(fields))
        elif name == "pong" and self.pings.pop(fields, None) == path:
            self.validated.add(path)
        elif name == "ack":
            acked_path, ranges = fields
            for first, last in ranges:
                self.acknowledged[acked_path].update(range(first, last + 1))

    def wait(self, what, condition, repeat=lambda: None):
        """Receives until the condition holds; repeats what may have been lost."""
        deadline, next_repeat = time.monotonic() + TIMEOUT, time.monotonic() + 0.5
        while not condition():
            if time.monotonic() > deadline:
                raise SystemExit(f"{what}: not within {TIMEOUT:.0f} s")
            if time.monotonic() > next_repeat:
                repeat()
                next_repeat = time.monotonic() + 0.5
            self.receive(0.1)


def run(peer, source, destination):
    paths = range(len(peer.sockets))
    peer.handshake()

    def ping_all():
        for path in paths:
            peer.ping(path)

    ping_all()
    peer.wait("a pong on each path", lambda: peer.validated == set(paths), ping_all)

    sequence, sent_data = 0, [set() for _ in paths]
    replies = {}

    def send_packet(number, size):
        nonlocal sequence
        pieces = protocol.fragments(STREAM, sequence, echo_request(source, destination, number, size), 1000)
        sequence += len(pieces)
        for k, data in enumerate(pieces):
            path = (number + k) % len(peer.sockets)
            sent_data[path].add(peer.send(path, data.body()))

    def send_bundle(path, numbers):
        nonlocal sequence
        packets = [echo_request(source, destination, number, 56) for number in numbers]
        entries = [protocol.fragments(STREAM, sequence + k, packet, 1000)[0] for k, packet in enumerate(packets)]
        sequence += len(entries)
        acknowledgement = protocol.ack(path, peer.received[path], time.monotonic_ns() // 1000, 0)
        sent_data[path].add(peer.send(path, protocol.bundle(acknowledgement, entries)))

    def all_replied(numbers):
        while peer.packets:
            reply = echo_reply(peer.packets.pop())
            if reply:
                replies[reply[0]] = reply[1]
        return all(number in replies for number in numbers)

    # The daemon answers by the path that is not a backup: each of them in turn.
    for regular in paths:
        for path in paths:
            peer.send(path, protocol.path_frame(path, protocol.REGULAR if path == regular else protocol.BACKUP))
        before = peer.data_received[regular]
        small, large = range(100 * regular, 100 * regular + 10), range(100 * regular + 50, 100 * regular + 55)
        if peer.capabilities & peer.session.capabilities & protocol.TAKES_BUNDLES:
            send_bundle(regular, small)
        else:
            for number in small:
                send_packet(number, 56)
        for number in large:
            send_packet(number, 1200)
        peer.wait(f"replies while path {regular} is regular", lambda: all_replied([*small, *large]))
        for number, size in [(number, 56) for number in small] + [(number, 1200) for number in large]:
            if replies[number] != bytes((number + k) % 256 for k in range(size)):
                raise SystemExit(f"reply {number} has other data than its request")
        if peer.data_received[regular] == before:
            raise SystemExit(f"no data on path {regular}, the only regular one")
    if peer.capabilities & peer.session.capabilities & protocol.TAKES_BUNDLES:
        more = iter(range(1000, 2000))
        ask = lambda: send_bundle(0, [next(more) for _ in range(10)])
        peer.wait("a bundle", lambda: peer.bundles > 0, ask)
    acknowledged = lambda: all(sent <= peer.acknowledged[path] for path, sent in enumerate(sent_data))
    peer.wait("acknowledgements of all data", acknowledged)
    peer.send(0, protocol.CLOSE)
    return {"replies": len(replies), "data_received": peer.data_received, "refused": peer.refused, "bundles": peer.bundles}


def main():
    private_key, public_key = (base64.b64decode(text) for text in sys.argv[2:4])
    source, destination = (ipaddress.ip_address(text).packed for text in sys.argv[4:6])
    endpoint = lambda text: (text.rsplit(":", 1)[0], int(text.rsplit(":", 1)[1]))
    routes = [tuple(endpoint(end) for end in route.split("=")) for route in sys.argv[6:]]
    print(json.dumps(run(Peer(int(sys.argv[1]), private_key, public_key, routes), source, destination)))


if __name__ == "__main__":
    main()

"""The tunnel's protocol, written from docs/reference/protocol.md alone: handshake, sealed datagrams, frames. Section numbers are
those of that document."""

import dataclasses
import hashlib
import hmac
import re
import struct

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from noise.connection import Keypair, NoiseConnection

SEALED = bytes.fromhex("300088b5")
HANDSHAKE = bytes.fromhex("000088b6")
VERSION = 2
INITIATION, RESPONSE, COOKIE_REPLY = 1, 2, 3
LENGTHS = {INITIATION: 164, RESPONSE: 96, COOKIE_REPLY: 60}
CIPHERS = {1: AESGCM, 2: ChaCha20Poly1305}
FIRST, LAST, RETRANSMISSION, OFFLOAD = 1, 2, 4, 8
REGULAR, BACKUP, REMOVED = 0, 1, 2
TAKES_BUNDLES = 1
BUNDLE, MAX_BUNDLE_ENTRIES = 0x50, 64
FIRST_UNORDERED_STREAM = 240
PATH_NAME = re.compile(rb"[A-Za-z0-9._:@+-]{1,32}")


class Refused(Exception):
    """A datagram is not what this document allows."""


# 3. Handshake


def mac(key, message):
    return hmac.new(key, message, hashlib.sha256).digest()[:16]


def mac1_key(key):
    return hashlib.sha256(b"ropewalk mac1" + key).digest()


def public_key(private_key):
    return X25519PrivateKey.from_private_bytes(private_key).public_key().public_bytes_raw()


def header(kind, index):
    return HANDSHAKE + bytes([kind, VERSION, 0, 0]) + struct.pack(">I", index)


def parse_header(message):
    """The type and the session index of a handshake message."""
    if message[:4] != HANDSHAKE or message[5:9] != bytes([VERSION, 0, 0, 0]):
        raise Refused("no handshake message of this version")
    if LENGTHS.get(message[4]) != len(message):
        raise Refused("its length is not that of its type")
    return message[4], struct.unpack(">I", message[8:12])[0]


def noise(is_initiator, private_key, preshared_key, prologue_header, ephemeral, remote_public_key=None):
    connection = NoiseConnection.from_name(b"Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s")
    connection.set_psks(preshared_key)
    connection.set_prologue(b"ropewalk" + prologue_header)
    connection.set_as_initiator() if is_initiator else connection.set_as_responder()
    connection.set_keypair_from_private_bytes(Keypair.STATIC, private_key)
    connection.set_keypair_from_private_bytes(Keypair.EPHEMERAL, ephemeral)
    if remote_public_key:
        connection.set_keypair_from_public_bytes(Keypair.REMOTE_STATIC, remote_public_key)
    connection.start_handshake()
    return connection


def split(connection):
    """The keys that this end seals and opens with."""
    state = connection.noise_protocol
    return state.cipher_state_encrypt.k, state.cipher_state_decrypt.k


class Initiation:
    """A handshake that this end has initiated."""

    def __init__(self, private_key, remote_public_key, preshared_key, index, timestamp, boot_id, ephemeral, ciphers=3, capabilities=0):
        self.index, self.remote_public_key = index, remote_public_key
        start = header(INITIATION, index)
        self.noise = noise(True, private_key, preshared_key, start, ephemeral, remote_public_key)
        payload = struct.pack(">QQBB6x", timestamp, boot_id, ciphers, capabilities)
        before_mac1 = start + bytes(self.noise.write_message(payload))
        self.mac1 = mac(mac1_key(remote_public_key), before_mac1)
        self.ephemeral_public = before_mac1[12:44]
        self.before_mac2 = before_mac1 + self.mac1

    def message(self, cookie=None):
        return self.before_mac2 + (mac(cookie, self.before_mac2) if cookie else bytes(16))

    def cookie(self, reply):
        """The cookie of a cookie reply (3.3)."""
        kind, index = parse_header(reply)
        if kind != COOKIE_REPLY or index != self.index:
            raise Refused("no cookie reply to this initiation")
        nonce, sealed = reply[12:28], reply[28:]
        label_key = hashlib.sha256(b"ropewalk cookie" + self.remote_public_key).digest()
        key = hmac.new(label_key, self.mac1 + nonce, hashlib.sha256).digest()
        return ChaCha20Poly1305(key).decrypt(bytes(12), sealed, self.mac1)

    def session(self, response):
        """The session that a response establishes, and the responder's boot id."""
        kind, index = parse_header(response)
        if kind != RESPONSE or index != self.index:
            raise Refused("no response to this initiation")
        if not hmac.compare_digest(mac(mac1_key(self.ephemeral_public), response[:80]), response[80:]):
            raise Refused("mac1 of the response is wrong")
        payload = bytes(self.noise.read_message(response[12:80]))
        boot_id, remote_index, cipher, capabilities = struct.unpack(">QIBB6x", payload)
        seal_key, open_key = split(self.noise)
        return Session(cipher, seal_key, open_key, self.index, remote_index, capabilities), boot_id


class Responder:
    """What a responder keeps of one initiator."""

    def __init__(self, private_key, initiator_public_key, preshared_key):
        self.private_key, self.initiator, self.preshared_key = private_key, initiator_public_key, preshared_key
        self.mac1_key = mac1_key(public_key(private_key))
        self.timestamp = -1

    def respond(self, initiation, index, boot_id, ephemeral, preferred=(1, 2), capabilities=0):
        """The response to an initiation, its session, and the initiator's boot id."""
        kind, remote_index = parse_header(initiation)
        if kind != INITIATION:
            raise Refused("no initiation")
        if not hmac.compare_digest(mac(self.mac1_key, initiation[:132]), initiation[132:148]):
            raise Refused("mac1 is wrong")
        connection = noise(False, self.private_key, self.preshared_key, initiation[:12], ephemeral)
        payload = bytes(connection.read_message(initiation[12:132]))
        timestamp, remote_boot_id, offered, remote_capabilities = struct.unpack(">QQBB6x", payload)
        if connection.noise_protocol.handshake_state.rs.public_bytes != self.initiator:
            raise Refused("an unknown peer")
        if timestamp <= self.timestamp:
            raise Refused("a replay")
        self.timestamp = timestamp
        cipher = next(cipher for cipher in preferred if cipher & offered)
        payload = struct.pack(">QIBB6x", boot_id, index, cipher, capabilities)
        before_mac1 = header(RESPONSE, remote_index) + bytes(connection.write_message(payload))
        response = before_mac1 + mac(mac1_key(initiation[12:44]), before_mac1)
        seal_key, open_key = split(connection)
        session = Session(cipher, seal_key, open_key, index, remote_index, remote_capabilities)
        return response, session, remote_boot_id


# 4. Sessions


class Session:
    """Keys and indices of both directions, what the peer can do, and the packet numbers received on each path."""

    def __init__(self, cipher, seal_key, open_key, local_index, remote_index, capabilities):
        self.capabilities = capabilities
        self.seal_key, self.open_key = seal_key, open_key
        self.sealing, self.opening = CIPHERS[cipher](seal_key), CIPHERS[cipher](open_key)
        self.local_index, self.remote_index = local_index, remote_index
        self.received = {}

    def seal(self, path, number, body):
        start = SEALED + struct.pack(">II", self.remote_index << 8 | path, number & 0xFFFFFFFF)
        return start + self.sealing.encrypt(struct.pack(">IQ", path, number), body, start)

    def open(self, datagram):
        """The path, the packet number and the body."""
        if datagram[:4] != SEALED or len(datagram) < 28:
            raise Refused("no sealed datagram")
        word, low = struct.unpack(">II", datagram[4:12])
        index, path = word >> 8, word & 0xFF
        if index != self.local_index:
            raise Refused("a session index of somebody else")
        numbers = self.received.setdefault(path, set())
        number = nearest(max(numbers, default=-1) + 1, low)
        if number in numbers:
            raise Refused("a replay")
        body = self.opening.decrypt(struct.pack(">IQ", path, number), datagram[12:], datagram[:12])
        numbers.add(number)
        return path, number, body


def nearest(expected, low):
    """The number with these low 32 bits that is nearest to the expected one."""
    candidates = ((expected >> 32) + k << 32 | low for k in (-1, 0, 1))
    return min((number for number in candidates if number >= 0), key=lambda number: abs(number - expected))


# 5. Bodies


@dataclasses.dataclass
class Data:
    stream: int
    sequence: int
    bits: int
    fragment: bytes

    def body(self):
        return struct.pack(">BBI", 0x40 | self.bits, self.stream, self.sequence & 0xFFFFFFFF) + self.fragment


@dataclasses.dataclass
class Bundle:
    frames: list
    entries: list


def bundle(frames, entries):
    """A bundle of encoded frames and Data that are whole inner packets."""
    encoded = b"".join(data.body()[:6] + varint(len(data.fragment)) + data.fragment for data in entries)
    return bytes([BUNDLE]) + varint(len(frames)) + frames + encoded


def varint(value):
    for prefix, size in enumerate((1, 2, 4, 8)):
        if value < 1 << 8 * size - 2:
            return (value | prefix << 8 * size - 2).to_bytes(size, "big")
    raise ValueError(value)


class Reader:
    def __init__(self, octets):
        self.octets = octets

    def take(self, size):
        if len(self.octets) < size:
            raise Refused("a frame is cut short")
        taken, self.octets = self.octets[:size], self.octets[size:]
        return taken

    def number(self, size):
        return int.from_bytes(self.take(size), "big")

    def varint(self):
        first = self.take(1)
        size = 1 << (first[0] >> 6)
        return int.from_bytes(first + self.take(size - 1), "big") & (1 << 8 * size - 2) - 1


def ping(token):
    return b"\x02" + token


def pong(token):
    return b"\x03" + token


def path_frame(path, state):
    return bytes([5, path, state])


def path_name_frame(path, name):
    return bytes([7, path, len(name)]) + name


CLOSE = b"\x06"


def ack(path, numbers, timestamp_us, ack_delay_us, ce_count=0):
    """An ACK of the packet numbers received on a path."""
    ranges = []
    for number in sorted(numbers, reverse=True):
        if ranges and ranges[-1][0] == number + 1:
            ranges[-1][0] = number
        elif len(ranges) < 32:
            ranges.append([number, number])
    encoded = b"".join(
        (varint(ranges[k - 1][0] - last - 1) if k else b"") + varint(last - first + 1) for k, (first, last) in enumerate(ranges)
    )
    largest, clock = ranges[0][1] & 0xFFFFFFFF, timestamp_us & 0xFFFFFFFF
    fields = varint(ack_delay_us) + varint(ce_count) + varint(len(ranges))
    return struct.pack(">BBII", 1, path, largest, clock) + fields + encoded


def parse(body):
    """A Data, a Bundle, or a list of frames: (name, fields)."""
    if body and body[0] == BUNDLE:
        return parse_bundle(Reader(body[1:]))
    if body and body[0] >= 0x40:
        return Data(*parse_data_header(Reader(body)), body[6:])
    return parse_frames(body)


def parse_data_header(reader):
    """The stream, the sequence number and the bits."""
    kind, stream, sequence = struct.unpack(">BBI", reader.take(6))
    if kind & 0xF0 != 0x40:
        raise Refused("no data header")
    return stream, sequence, kind & 0x0F


def parse_bundle(reader):
    """The frames of a bundle, and the entries before the first error."""
    bundle = Bundle(parse_frames(reader.take(reader.varint())), [])
    try:
        while reader.octets and len(bundle.entries) < MAX_BUNDLE_ENTRIES:
            header = parse_data_header(reader)
            fragment = reader.take(reader.varint())
            if not fragment or header[2] & (FIRST | LAST) != FIRST | LAST:
                raise Refused("an entry is no whole packet")
            bundle.entries.append(Data(*header, fragment))
    except Refused:
        pass
    return bundle


def parse_frames(body):
    reader, frames = Reader(body), []
    while reader.octets:
        kind = reader.number(1)
        if kind == 0:
            break
        if kind == 1:
            frames.append(("ack", parse_ack(reader)))
        elif kind in (2, 3):
            frames.append(("ping" if kind == 2 else "pong", reader.take(8)))
        elif kind == 4:
            frames.append(("reorder timeout", reader.number(4)))
        elif kind == 5:
            frames.append(("path", (reader.number(1), reader.number(1))))
        elif kind == 6:
            frames.append(("close", None))
        elif kind == 7:
            path = reader.number(1)
            name = reader.take(reader.number(1))
            if not PATH_NAME.fullmatch(name):
                raise Refused("no name of a path")
            frames.append(("path name", (path, name.decode())))
        else:
            raise Refused(f"unknown frame {kind}")
    return frames


def parse_ack(reader):
    """The path, and the first and last numbers of the ranges, low 32 bits."""
    path, largest, _timestamp = reader.number(1), reader.number(4), reader.number(4)
    _delay, _ce, count = reader.varint(), reader.varint(), reader.varint()
    ranges, end = [], largest
    for k in range(count):
        end -= reader.varint() if k else 0
        length = reader.varint()
        ranges.append((end - length + 1, end))
        end -= length
    return path, ranges


# 7. Data


class Reassembly:
    """Puts fragments in order, and inner packets together. It waits for missing fragments without end."""

    def __init__(self):
        self.expected, self.waiting, self.parts = {}, {}, {}

    def add(self, data):
        """The inner packets that this fragment completes."""
        whole = FIRST | LAST
        if data.stream >= FIRST_UNORDERED_STREAM and data.bits & whole == whole:
            number = nearest(self.expected.get(data.stream, 0), data.sequence)
            self.waiting.setdefault(data.stream, {})[number] = None
            yield data
        else:
            number = nearest(self.expected.get(data.stream, 0), data.sequence)
            self.waiting.setdefault(data.stream, {})[number] = data
        waiting, number = self.waiting[data.stream], self.expected.get(data.stream, 0)
        while number in waiting:
            fragment = waiting.pop(number)
            number += 1
            if fragment is not None:
                yield from self.append(fragment)
        self.expected[data.stream] = number

    def append(self, data):
        parts = self.parts.setdefault(data.stream, [])
        if data.bits & FIRST:
            parts.clear()
        parts.append(data.fragment)
        if data.bits & LAST:
            yield dataclasses.replace(data, fragment=b"".join(parts))


def fragments(stream, sequence, packet, size):
    """The fragments of an inner packet; the first one has this sequence number."""
    pieces = [packet[k : k + size] for k in range(0, len(packet), size)]
    last = len(pieces) - 1
    return [
        Data(stream, sequence + k, (FIRST if k == 0 else 0) | (LAST if k == last else 0), piece)
        for k, piece in enumerate(pieces)
    ]

#!/usr/bin/env python3
"""Checks that this implementation computes the test vectors of the tunnel's messages, and refuses those to be refused:

    protocol_vectors.py tunnel/seal/tests/vectors.json"""

import copy
import json
import sys

from cryptography.exceptions import InvalidTag
from noise.exceptions import NoiseInvalidMessage

import protocol
from protocol import Initiation, Refused, Responder

REFUSALS = (Refused, InvalidTag, NoiseInvalidMessage)


def number(text):
    return int(text, 16)


def equal(what, computed, expected):
    if computed != bytes.fromhex(expected):
        raise SystemExit(f"{what}: computed {computed.hex()}, not {expected}")


def refuses(receive, message):
    try:
        receive(message)
    except REFUSALS:
        return True
    return False


def initiate(vector):
    own, remote = vector["initiator"], vector["responder"]
    keys = [bytes.fromhex(text) for text in (own["private_key"], remote["public_key"], vector["preshared_key"])]
    numbers = [number(own[name]) for name in ("session_index", "timestamp", "boot_id")]
    bits = [number(own[name]) for name in ("offered_ciphers", "capabilities")]
    return Initiation(*keys, *numbers, bytes.fromhex(own["ephemeral_private_key"]), *bits)


def responder_of(vector):
    own, remote = vector["responder"], vector["initiator"]
    keys = (own["private_key"], remote["public_key"], vector["preshared_key"])
    return Responder(*(bytes.fromhex(key) for key in keys))


def respond(responder, vector, message):
    own = vector["responder"]
    numbers = [number(own[name]) for name in ("session_index", "boot_id")]
    preferred, capabilities = (number(own["cipher"]),), number(own["capabilities"])
    return responder.respond(message, *numbers, bytes.fromhex(own["ephemeral_private_key"]), preferred, capabilities)


def check(vector):
    """The number of messages checked."""
    initiation, responder = initiate(vector), responder_of(vector)
    equal("initiation", initiation.message(), vector["initiation"])
    cookie = initiation.cookie(bytes.fromhex(vector["cookie_reply"]))
    equal("cookie", cookie, vector["cookie"]["cookie"])
    equal("initiation with mac2", initiation.message(cookie), vector["initiation_with_mac2"])
    response, responding, _ = respond(responder, vector, initiation.message())
    equal("response", response, vector["response"])
    initiating, boot_id = initiation.session(response)
    if [initiating.capabilities, responding.capabilities] != [number(vector[end]["capabilities"]) for end in ("responder", "initiator")]:
        raise SystemExit("other capabilities")
    equal("boot id", boot_id.to_bytes(8, "big"), vector["responder"]["boot_id"])
    equal("first key", initiating.seal_key, vector["keys"]["initiator_to_responder"])
    equal("second key", initiating.open_key, vector["keys"]["responder_to_initiator"])
    for data in vector["datagrams"]:
        ends = (initiating, responding) if data["from"] == "initiator" else (responding, initiating)
        body = bytes.fromhex(data["body"])
        equal("datagram", ends[0].seal(data["path"], data["packet_number"], body), data["datagram"])
        opened = ends[1].open(bytes.fromhex(data["datagram"]))
        if opened != (data["path"], data["packet_number"], body):
            raise SystemExit(f"opened as {opened}")
    receivers = {
        ("initiator", "pending"): lambda message: receive_pending(initiate(vector), message),
        ("responder", "pending"): lambda message: respond(responder_of(vector), vector, message),
        ("initiator", "established"): copy.copy(initiating).open,
        ("responder", "established"): lambda message: receive_established(vector, responder, responding, message),
    }
    for rejected in vector["rejected"]:
        if not refuses(receivers[rejected["receiver"], rejected["when"]], bytes.fromhex(rejected["message"])):
            raise SystemExit(f"{rejected['name']} is accepted by the {rejected['receiver']}")
    return 4 + len(vector["datagrams"]) + len(vector["rejected"])


def receive_pending(initiation, message):
    return initiation.cookie(message) if message[4] == protocol.COOKIE_REPLY else initiation.session(message)


def receive_established(vector, responder, session, message):
    return session.open(message) if message[:4] == protocol.SEALED else respond(responder, vector, message)


def main():
    with open(sys.argv[1]) as file:
        vectors = json.load(file)["vectors"]
    print(sum(check(vector) for vector in vectors), "messages")


if __name__ == "__main__":
    main()

//! The test vectors of `tests/vectors.json`: whole messages from fixed keys and random bytes. Any change on the wire
//! fails here. Other implementations run the same file; `docs/reference/protocol.md` describes the protocol.
//!
//! Every value is hexadecimal, numbers big-endian, but for `path` and `packet_number`. `rejected` are messages that the
//! `receiver` drops for `reason`: those with `when` = `pending` after the initiation was sent and before anything else,
//! those with `established` after all messages of the handshake and all `datagrams` have arrived, in their order.
//!
//! After an intended change `ROPEWALK_WRITE_VECTORS=1 cargo test -p ropewalk-seal --lib vectors` writes the file.

#![expect(clippy::disallowed_methods, reason = "the vectors are a file")]

use std::collections::VecDeque;
use std::path::PathBuf;

use serde_json::{Value, json};
use units::Instant;

use crate::cipher::{Cipher, TAG_LEN};
use crate::keys::KEY_LEN;
use crate::keys::tests::unhex;
use crate::mac::{MAC_LEN, MAC1_KEY_LABEL, MacKey};
use crate::message::{InitiationPayload, ResponsePayload};
use crate::noise::Noise;
use crate::{
    DropReason, Entropy, HEADER_LEN, HandshakeConfig, PeerId, PresharedKey, PrivateKey, SEAL_OVERHEAD, SealDevice,
    Session, SessionKeys,
};

const NOW: Instant = Instant(1_000_000_000);

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of a value of the file.
fn bytes(value: &Value) -> Vec<u8> {
    unhex(value.as_str().expect("a string of hexadecimal digits"))
}

fn array<const N: usize>(value: &Value) -> [u8; N] {
    bytes(value).try_into().expect("as long as the field is")
}

fn number(value: &Value) -> u64 {
    u64::from_str_radix(value.as_str().expect("a string of hexadecimal digits"), 16).unwrap()
}

/// Random bytes that the file gives, in the order in which they are drawn.
struct FixedEntropy(VecDeque<Vec<u8>>);

impl FixedEntropy {
    fn boxed(draws: &[&[u8]]) -> Box<dyn Entropy + Send> {
        Box::new(Self(draws.iter().map(|draw| draw.to_vec()).collect()))
    }
}

impl Entropy for FixedEntropy {
    fn fill(&mut self, target: &mut [u8]) {
        target.copy_from_slice(&self.0.pop_front().expect("no more is drawn than the file gives"));
    }
}

/// The fields of one end.
struct End<'a>(&'a Value);

impl End<'_> {
    fn private_key(&self) -> PrivateKey {
        PrivateKey::from_bytes(array(&self.0["private_key"]))
    }

    fn ephemeral(&self) -> Vec<u8> {
        bytes(&self.0["ephemeral_private_key"])
    }

    /// The four bytes of which the index is the first three.
    fn index_draw(&self) -> Vec<u8> {
        [bytes(&self.0["session_index"]), vec![0]].concat()
    }

    fn with_public_keys(&self) -> Value {
        let mut end = self.0.clone();
        end["public_key"] = hex(self.private_key().public_key().bytes()).into();
        let ephemeral = PrivateKey::from_bytes(array(&self.0["ephemeral_private_key"]));
        end["ephemeral_public_key"] = hex(ephemeral.public_key().bytes()).into();
        end
    }
}

/// The two hosts of a handshake.
struct Hosts {
    initiator: SealDevice,
    responder_id: PeerId,
    responder: SealDevice,
    initiator_id: PeerId,
}

impl Hosts {
    /// The initiator has sent its initiation; a responder accepts `threshold` a second without a cookie, and draws
    /// `draws` after its boot id.
    fn new(vector: &Value, threshold: u32, draws: &[&[u8]]) -> Self {
        let (i, r) = (End(&vector["initiator"]), End(&vector["responder"]));
        let preshared = || Some(PresharedKey::from_bytes(array(&vector["preshared_key"])));
        let offered = number(&vector["initiator"]["offered_ciphers"]) as u8;
        let ciphers = [Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305];
        let config = HandshakeConfig {
            private_key: i.private_key(),
            ciphers: ciphers.into_iter().filter(|cipher| offered & cipher.bit() != 0).collect(),
            under_load_threshold: 0,
            index_prefix: None,
            capabilities: number(&i.0["capabilities"]) as u8,
        };
        let (index, jitter) = (i.index_draw(), [0; 8]);
        let entropy = FixedEntropy::boxed(&[&bytes(&i.0["boot_id"]), &jitter, &index, &i.ephemeral()]);
        let mut initiator = SealDevice::new(config, entropy);
        let config = HandshakeConfig {
            private_key: r.private_key(),
            ciphers: ciphers.to_vec(),
            under_load_threshold: threshold,
            index_prefix: None,
            capabilities: number(&r.0["capabilities"]) as u8,
        };
        let boot_id = bytes(&r.0["boot_id"]);
        let mut responder = SealDevice::new(config, FixedEntropy::boxed(&[&[&boot_id[..]], draws].concat()));
        let responder_id = initiator.add(*responder.public_key(), preshared()).unwrap();
        let initiator_id = responder.add(*initiator.public_key(), preshared()).unwrap();
        initiator.start_initiating(NOW, responder_id);
        assert_eq!(initiator.initiation_due(NOW, number(&i.0["timestamp"])), Some(responder_id));
        Self { initiator, responder_id, responder, initiator_id }
    }

    /// Hosts whose responder is not under load.
    fn unloaded(vector: &Value) -> Self {
        let responder = End(&vector["responder"]);
        // The last one is for a replayed initiation.
        Self::new(vector, 100, &[&responder.ephemeral(), &responder.index_draw(), &[0; KEY_LEN]])
    }

    fn initiation(&self) -> Vec<u8> {
        self.initiator.initiation(NOW, self.responder_id, 0).unwrap().as_bytes().to_vec()
    }

    /// Delivers a handshake message or a datagram to `receiver`; returns the reply, or the body.
    fn deliver(&mut self, receiver: &str, message: &[u8]) -> Result<Option<Vec<u8>>, DropReason> {
        let device = if receiver == "initiator" { &mut self.initiator } else { &mut self.responder };
        if message.first() != Some(&0) {
            let mut datagram = message.to_vec();
            device.open(NOW, &mut datagram)?;
            return Ok(Some(datagram[HEADER_LEN..datagram.len() - TAG_LEN].to_vec()));
        }
        let outcome = device.receive(NOW, |_| 0, &[192, 0, 2, 1, 0x12, 0x92], message)?;
        Ok(outcome.reply.map(|reply| reply.as_bytes().to_vec()))
    }

    fn seal(&mut self, datagram: &Value) -> Vec<u8> {
        let (device, peer) = match datagram["from"].as_str() {
            Some("initiator") => (&mut self.initiator, self.responder_id),
            _ => (&mut self.responder, self.initiator_id),
        };
        let body = bytes(&datagram["body"]);
        let mut sealed = vec![0; body.len() + SEAL_OVERHEAD];
        sealed[HEADER_LEN..][..body.len()].copy_from_slice(&body);
        let path = datagram["path"].as_u64().unwrap() as u8;
        device.seal(NOW, peer, path, datagram["packet_number"].as_u64().unwrap(), &mut sealed).unwrap();
        sealed
    }
}

/// A vector with all that follows from its keys, random bytes and bodies.
fn complete(given: &Value) -> Value {
    let mut vector = given.clone();
    vector["initiator"] = End(&given["initiator"]).with_public_keys();
    vector["responder"] = End(&given["responder"]).with_public_keys();
    let (secret, nonce) = (bytes(&given["cookie"]["secret"]), bytes(&given["cookie"]["nonce"]));
    let mut hosts = Hosts::new(given, 0, &[&secret, &nonce]);
    let initiation = hosts.initiation();
    let source = bytes(&given["cookie"]["source"]);
    let reply = hosts.responder.receive(NOW, |_| 0, &source, &initiation).unwrap().reply.unwrap();
    hosts.initiator.receive(NOW, |_| 0, &[], reply.as_bytes()).unwrap();
    vector["initiation"] = hex(&initiation).into();
    vector["cookie"]["cookie"] = hex(&MacKey::new(&secret).mac(&source)).into();
    vector["cookie_reply"] = hex(reply.as_bytes()).into();
    vector["initiation_with_mac2"] = hex(&hosts.initiation()).into();

    let mut hosts = Hosts::unloaded(given);
    let response = hosts.deliver("responder", &bytes(&vector["initiation_with_mac2"])).unwrap().unwrap();
    assert_eq!(hosts.deliver("initiator", &response), Ok(None));
    vector["response"] = hex(&response).into();
    for datagram in vector["datagrams"].as_array_mut().unwrap() {
        let sealed = hosts.seal(datagram);
        let receiver = if datagram["from"] == "initiator" { "responder" } else { "initiator" };
        assert_eq!(hosts.deliver(receiver, &sealed), Ok(Some(bytes(&datagram["body"]))));
        datagram["datagram"] = hex(&sealed).into();
    }
    let established = rejected(&vector, "established").into_iter();
    let established = established.map(|(name, receiver, message, reason)| {
        assert_eq!(hosts.deliver(receiver, &message), Err(reason), "{name}");
        rejected_value(name, "established", receiver, &message, reason)
    });
    let pending = rejected(&vector, "pending").into_iter().map(|(name, receiver, message, reason)| {
        assert_eq!(Hosts::unloaded(given).deliver(receiver, &message), Err(reason), "{name}");
        rejected_value(name, "pending", receiver, &message, reason)
    });
    vector["rejected"] = pending.chain(established).collect();
    vector["keys"] = split(&vector);
    vector
}

fn rejected_value(name: &str, when: &str, receiver: &str, message: &[u8], reason: DropReason) -> Value {
    json!({"name": name, "when": when, "receiver": receiver, "message": hex(message), "reason": reason.name()})
}

/// The keys after `Split()`, from the handshake without devices; they open the datagrams.
fn split(vector: &Value) -> Value {
    let (i, r) = (End(&vector["initiator"]), End(&vector["responder"]));
    let (initiation, response) = (bytes(&vector["initiation"]), bytes(&vector["response"]));
    let preshared = PresharedKey::from_bytes(array(&vector["preshared_key"]));
    let header = initiation.first_chunk().unwrap();
    let payload = InitiationPayload {
        timestamp: number(&i.0["timestamp"]),
        boot_id: number(&i.0["boot_id"]),
        ciphers: number(&i.0["offered_ciphers"]) as u8,
        capabilities: number(&i.0["capabilities"]) as u8,
    };
    let mut message = vec![0; initiation.len() - HEADER_LEN - 2 * MAC_LEN];
    let (public, private) = (r.private_key().public_key(), i.private_key());
    let keys = (&private, &public, &preshared);
    let mut entropy = FixedEntropy::boxed(&[&i.ephemeral()]);
    let mut noise = Noise::write_initiation(&mut *entropy, keys, header, &payload.write(), &mut message).unwrap();
    assert_eq!(message, initiation[HEADER_LEN..][..message.len()]);
    let cipher = Cipher::from_bit(number(&r.0["cipher"]) as u8).unwrap();
    let mut payload = [0; crate::message::RESPONSE_PAYLOAD_LEN];
    let split = noise.read_response(&response[HEADER_LEN..response.len() - MAC_LEN], &mut payload).unwrap();
    let (boot_id, index) = (number(&r.0["boot_id"]), number(&r.0["session_index"]) as u32);
    let capabilities = number(&r.0["capabilities"]) as u8;
    assert_eq!(ResponsePayload::read(&payload), Some(ResponsePayload { boot_id, index, cipher, capabilities }));
    assert_opens(vector, cipher, &split);
    json!({"initiator_to_responder": hex(&split.0), "responder_to_initiator": hex(&split.1)})
}

fn assert_opens(vector: &Value, cipher: Cipher, (from_initiator, from_responder): &([u8; KEY_LEN], [u8; KEY_LEN])) {
    let session = |open: &[u8; KEY_LEN]| Session::new(&SessionKeys { cipher, seal: [0; KEY_LEN], open: *open });
    let (mut responder, mut initiator) = (session(from_initiator), session(from_responder));
    for datagram in vector["datagrams"].as_array().unwrap() {
        let opener = if datagram["from"] == "initiator" { &mut responder } else { &mut initiator };
        let mut bytes = bytes(&datagram["datagram"]);
        let (header, sealed) = bytes.split_first_chunk_mut::<HEADER_LEN>().unwrap();
        let truncated = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
        let opened = opener.open(header[7], truncated, header, sealed);
        assert_eq!(opened.ok(), datagram["packet_number"].as_u64());
    }
}

/// A rejected message: its name, its receiver, its bytes, and why it is dropped.
type Rejected = (&'static str, &'static str, Vec<u8>, DropReason);

/// Messages that are dropped when the handshake is pending or the session established.
fn rejected(vector: &Value, when: &str) -> Vec<Rejected> {
    let (initiation, response) = (bytes(&vector["initiation"]), bytes(&vector["response"]));
    let with_flipped_bit = |mut message: Vec<u8>, byte: usize| {
        message[byte] ^= 1;
        message
    };
    let with_mac1 = |key: &Value, mut message: Vec<u8>, start: usize| {
        let mac = MacKey::derive(MAC1_KEY_LABEL, &array(key)).mac(&message[..start]);
        message[start..start + MAC_LEN].copy_from_slice(&mac);
        message
    };
    let (initiator, responder) = (&vector["initiator"], &vector["responder"]);
    let cookie_reply = bytes(&vector["cookie_reply"]);
    if when == "pending" {
        let forged_initiation = with_mac1(&responder["public_key"], with_flipped_bit(initiation.clone(), 60), 132);
        let forged = with_mac1(&initiator["ephemeral_public_key"], with_flipped_bit(response.clone(), 50), 80);
        let old_mac1 = with_mac1(&initiator["public_key"], response.clone(), 80);
        return vec![
            ("an initiation of version 1", "responder", with_byte(&initiation, 5, 1), DropReason::UnknownVersion),
            ("an initiation without its last byte", "responder", initiation[..163].to_vec(), DropReason::Malformed),
            ("a flipped bit", "responder", with_flipped_bit(initiation.clone(), 60), DropReason::InvalidMac1),
            ("a flipped bit and a valid mac1", "responder", forged_initiation, DropReason::AuthenticationFailed),
            ("a flipped bit", "initiator", with_flipped_bit(response.clone(), 50), DropReason::InvalidMac1),
            ("a flipped bit and a valid mac1", "initiator", forged, DropReason::AuthenticationFailed),
            ("mac1 with the initiator's static key", "initiator", old_mac1, DropReason::InvalidMac1),
            ("a response to another index", "initiator", with_flipped_bit(response, 11), DropReason::NoHandshake),
            ("a flipped bit", "initiator", with_flipped_bit(cookie_reply, 30), DropReason::AuthenticationFailed),
        ];
    }
    let datagram = |index: usize| bytes(&vector["datagrams"][index]["datagram"]);
    // A number that has not been received: the tag decides.
    let fresh_number = |index: usize| with_byte(&datagram(index), 11, 9);
    vec![
        ("a replayed initiation", "responder", initiation, DropReason::ReplayedInitiation),
        ("a replayed response", "initiator", response, DropReason::NoHandshake),
        ("a cookie reply after the response", "initiator", cookie_reply, DropReason::NoHandshake),
        ("a replayed datagram", "responder", datagram(0), DropReason::Replayed),
        ("another packet number", "responder", fresh_number(0), DropReason::AuthenticationFailed),
        ("another path", "responder", with_byte(&fresh_number(0), 7, 1), DropReason::AuthenticationFailed),
        ("another session", "responder", with_flipped_bit(datagram(0), 6), DropReason::NoSession),
        ("a datagram without its tag", "initiator", fresh_number(3)[..12].to_vec(), DropReason::Malformed),
    ]
}

fn with_byte(message: &[u8], position: usize, byte: u8) -> Vec<u8> {
    let mut changed = message.to_vec();
    changed[position] = byte;
    changed
}

/// What the vectors are made from.
fn given(
    name: &str,
    seed: u8,
    preshared: [u8; KEY_LEN],
    (offered_ciphers, cipher): (&str, &str),
    capabilities: &str,
) -> Value {
    let draw = |label: &str, length: usize| hex(&MacKey::new(&[seed]).sign(&[label.as_bytes()])[..length]);
    let datagrams = [
        ("initiator", 0, 0, "68656c6c6f"),
        ("initiator", 0, 1, ""),
        ("initiator", 7, 258, "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff01"),
        ("responder", 0, 0, "6261636b"),
        ("responder", 7, 65_537, "ff"),
        ("responder", 0, 1, "50010643030000000701614304000000070162"),
    ];
    let datagrams = datagrams
        .map(|(from, path, number, body)| json!({"from": from, "path": path, "packet_number": number, "body": body}));
    json!({
        "name": name,
        "preshared_key": hex(&preshared),
        "initiator": {
            "private_key": draw("initiator", 32),
            "ephemeral_private_key": draw("ephemeral of the initiator", 32),
            "boot_id": draw("boot id of the initiator", 8),
            "timestamp": "18868a3b5dc28000",
            "session_index": draw("index of the initiator", 3),
            "offered_ciphers": offered_ciphers,
            "capabilities": capabilities,
        },
        "responder": {
            "private_key": draw("responder", 32),
            "ephemeral_private_key": draw("ephemeral of the responder", 32),
            "boot_id": draw("boot id of the responder", 8),
            "session_index": draw("index of the responder", 3),
            "cipher": cipher,
            "capabilities": capabilities,
        },
        "cookie": {
            "source": "cb0071071292",
            "secret": draw("secret of cookies", 32),
            "nonce": draw("nonce of the cookie reply", 16),
        },
        "datagrams": datagrams,
    })
}

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors.json")
}

/// Writes the file, after an intended change of the protocol.
fn write_the_vectors() {
    let vectors = [
        given("AES-256-GCM with a preshared key", 1, [0x5a; KEY_LEN], ("03", "01"), "01"),
        given("ChaCha20-Poly1305 without a preshared key or capabilities", 2, [0; KEY_LEN], ("02", "02"), "00"),
    ];
    let document = json!({
        "protocol": crate::NOISE_PROTOCOL_NAME,
        "version": hex(&[crate::VERSION]),
        "prologue": hex(b"ropewalk"),
        "vectors": vectors.iter().map(complete).collect::<Vec<_>>(),
    });
    std::fs::write(file(), serde_json::to_string_pretty(&document).unwrap() + "\n").unwrap();
}

#[test]
fn every_message_is_that_of_the_test_vectors() {
    if std::env::var_os("ROPEWALK_WRITE_VECTORS").is_some() {
        write_the_vectors();
    }
    let document: Value = serde_json::from_str(&std::fs::read_to_string(file()).unwrap()).unwrap();
    assert_eq!(document["version"], hex(&[crate::VERSION]));
    let vectors = document["vectors"].as_array().unwrap();
    assert_eq!(vectors.len(), 2, "one for each cipher");
    for vector in vectors {
        let completed = complete(vector);
        for (field, value) in vector.as_object().unwrap() {
            assert_eq!(&completed[field], value, "{}: {field}", vector["name"]);
        }
    }
}

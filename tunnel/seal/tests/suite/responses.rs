//! Responses as an attacker makes or reads them: they name nobody, and forged ones cost little and keep nothing off.

use seal::{DropReason, HandshakeMessage, RESPONSE_LEN};
use units::Span;

use crate::test_peer::{TestPeer, key, pair, secs};

/// docs/reference/protocol.md, section 3.2: HMAC-SHA-256 with SHA-256("ropewalk mac1" | public key), the first 16 bytes.
pub(crate) fn mac1(public: &[u8], authenticated: &[u8]) -> [u8; 16] {
    use ring::{digest, hmac};
    let label = [b"ropewalk mac1".as_slice(), public].concat();
    let key = hmac::Key::new(hmac::HMAC_SHA256, digest::digest(&digest::SHA256, &label).as_ref());
    *hmac::sign(&key, authenticated).as_ref().first_chunk().unwrap()
}

/// `response` with one byte changed and a valid mac1, which who saw the initiation can compute.
pub(crate) fn forged_response(initiation: &HandshakeMessage, response: &HandshakeMessage, byte: usize) -> Vec<u8> {
    let mut forged = response.as_bytes().to_vec();
    forged[byte] ^= 0x40;
    let mac = mac1(&initiation.as_bytes()[12..44], &forged[..RESPONSE_LEN - 16]);
    forged[RESPONSE_LEN - 16..].copy_from_slice(&mac);
    forged
}

/// An initiator, its initiation, and the response, which has not arrived.
fn response() -> (TestPeer, HandshakeMessage, HandshakeMessage) {
    let (mut a, mut b) = pair();
    a.device.start_initiating(secs(1), a.peer_id);
    let initiation = a.initiate(secs(1)).unwrap();
    let response = b.receive(secs(1), &initiation).unwrap().reply.unwrap();
    (a, initiation, response)
}

#[test]
fn a_response_tells_a_listener_with_a_list_of_public_keys_nothing() {
    let (_, initiation, response) = response();
    let (authenticated, sent) = response.as_bytes().split_at(RESPONSE_LEN - 16);
    for name in ["a", "b", "somebody else"] {
        assert_ne!(mac1(key(1, name).public_key().bytes(), authenticated), sent, "it is a response of or to {name}");
    }
    assert_eq!(mac1(&initiation.as_bytes()[12..44], authenticated), sent, "keyed with the ephemeral key alone");
}

#[test]
fn a_flood_of_forged_responses_by_one_path_is_bounded_and_the_response_by_another_arrives() {
    let (mut a, initiation, response) = response();
    let forged = forged_response(&initiation, &response, 50);
    for step in 0..10_000 {
        let now = secs(1) + Span(100_000) * step;
        assert!(a.device.receive(now, |_| 0, &[1; 6], &forged).is_err());
    }
    assert_eq!(a.device.counters().get(DropReason::AuthenticationFailed), 20 + 19, "20 at once and 20 a second");
    assert_eq!(a.device.counters().get(DropReason::RateLimited), 10_000 - 39);
    let established = a.device.receive(secs(2), |_| 1, &[2; 6], response.as_bytes()).unwrap().established;
    assert!(established.is_some());
}

#[test]
fn a_response_that_answers_nothing_is_dropped_before_its_route_is_looked_for() {
    let (mut a, _, response) = response();
    let mut receive = |datagram: &[u8]| {
        a.device.receive(secs(1), |_| panic!("it is no response to a pending handshake"), &[1; 6], datagram)
    };
    let mut other_index = response.as_bytes().to_vec();
    other_index[11] ^= 1;
    assert_eq!(receive(&other_index).unwrap_err(), DropReason::NoHandshake);
    let mut other_mac1 = response.as_bytes().to_vec();
    other_mac1[RESPONSE_LEN - 1] ^= 1;
    assert_eq!(receive(&other_mac1).unwrap_err(), DropReason::InvalidMac1);
}

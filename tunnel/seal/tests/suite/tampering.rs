//! Changed, replayed and forged messages are dropped, counted, and not replied to.

use proptest::prelude::*;
use seal::{
    COOKIE_REPLY_LEN, DropReason, HandshakeConfig, HandshakeMessage, INITIATION_LEN, PresharedKey, RESPONSE_LEN,
    SILENCE_TIMEOUT, SealDevice,
};
use units::Span;

use crate::responses::{forged_response, mac1};
use crate::test_peer::{TestPeer, entropy, establish, key, pair, secs};

/// The peer `b`, which has received nothing.
fn responder() -> TestPeer {
    pair().1
}

fn initiation() -> (TestPeer, HandshakeMessage) {
    let (mut a, _) = pair();
    a.device.start_initiating(secs(1), a.peer_id);
    let initiation = a.initiate(secs(1)).unwrap();
    (a, initiation)
}

/// Every datagram that differs from `message` in one bit.
fn with_flipped_bit(message: &[u8]) -> impl Iterator<Item = (usize, Vec<u8>)> + '_ {
    (0..message.len() * 8).map(|bit| {
        let mut changed = message.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        (bit, changed)
    })
}

#[test]
fn a_flipped_bit_anywhere_in_an_initiation_gets_no_reply() {
    let (_, initiation) = initiation();
    for (bit, changed) in with_flipped_bit(initiation.as_bytes()) {
        let is_before_mac2 = bit / 8 < INITIATION_LEN - 16;
        let outcome = responder().device.receive(secs(1), |_| 0, &[1; 6], &changed);
        assert_eq!(outcome.is_err(), is_before_mac2, "bit {bit}: mac2 is only checked under load");
    }
}

#[test]
fn changed_bytes_with_a_valid_mac1_are_not_authentic() {
    // A host that knows b's public key can compute mac1, but no key of the Noise message.
    let b_public = key(1, "b").public_key();
    let (_, initiation) = initiation();
    let with_mac1 = |mut bytes: Vec<u8>| {
        let authenticated = INITIATION_LEN - 32;
        let mac = mac1(b_public.bytes(), &bytes[..authenticated]);
        bytes[authenticated..authenticated + 16].copy_from_slice(&mac);
        bytes
    };
    assert_eq!(with_mac1(initiation.as_bytes().to_vec()), initiation.as_bytes(), "mac1 of the test");
    for byte in 8..INITIATION_LEN - 32 {
        let mut changed = initiation.as_bytes().to_vec();
        changed[byte] ^= 0x10;
        let reason = responder().device.receive(secs(1), |_| 0, &[1; 6], &with_mac1(changed)).unwrap_err();
        let expected = if byte == 8 { DropReason::Malformed } else { DropReason::AuthenticationFailed };
        assert_eq!(reason, expected, "byte {byte}: even the header is part of the handshake");
    }
}

#[test]
fn a_flipped_bit_anywhere_in_a_response_is_detected_and_the_authentic_one_accepted() {
    let (mut a, initiation) = initiation();
    let response = responder().receive(secs(1), &initiation).unwrap().reply.unwrap();
    assert_eq!(response.as_bytes().len(), RESPONSE_LEN);
    for (bit, changed) in with_flipped_bit(response.as_bytes()) {
        assert!(a.device.receive(secs(1), |_| 0, &[1; 6], &changed).is_err(), "bit {bit}");
    }
    assert!(a.receive(secs(1), &response).unwrap().established.is_some());
}

#[test]
fn a_forged_noise_message_with_a_valid_mac1_leaves_the_handshake_pending() {
    let (mut a, initiation) = initiation();
    let response = responder().receive(secs(1), &initiation).unwrap().reply.unwrap();
    for byte in 12..RESPONSE_LEN - 16 {
        // 20 failed responses a second are processed.
        let now = secs(1) + Span::from_millis(50) * byte as u64;
        let changed = forged_response(&initiation, &response, byte);
        let reason = a.device.receive(now, |_| 0, &[1; 6], &changed).unwrap_err();
        assert_eq!(reason, DropReason::AuthenticationFailed, "byte {byte}");
    }
    assert!(a.receive(secs(12), &response).unwrap().established.is_some());
}

#[test]
fn a_flipped_bit_anywhere_in_a_cookie_reply_is_detected() {
    let config = HandshakeConfig { under_load_threshold: 0, ..HandshakeConfig::new(key(1, "b")) };
    let mut b = SealDevice::new(config, Box::new(entropy(1, "b")));
    b.add(key(1, "a").public_key(), None).unwrap();
    let (mut a, initiation) = initiation();
    let cookie = b.receive(secs(1), |_| 0, &[1; 6], initiation.as_bytes()).unwrap().reply.unwrap();
    assert_eq!(cookie.as_bytes().len(), COOKIE_REPLY_LEN);
    for (bit, changed) in with_flipped_bit(cookie.as_bytes()) {
        assert!(a.device.receive(secs(1), |_| 0, &[1; 6], &changed).is_err(), "bit {bit}");
    }
    assert!(a.receive(secs(1), &cookie).is_ok());
    assert_eq!(
        a.receive(secs(1), &cookie).unwrap_err(),
        DropReason::AuthenticationFailed,
        "one cookie for each initiation"
    );
}

#[test]
fn a_replayed_initiation_is_always_dropped() {
    let (mut a, mut b) = pair();
    a.device.start_initiating(secs(1), a.peer_id);
    let recorded = a.initiate(secs(1)).unwrap();
    assert!(b.receive(secs(1), &recorded).is_ok());
    assert_eq!(b.receive(secs(1), &recorded).unwrap_err(), DropReason::ReplayedInitiation);
    let newer = a.initiate(secs(3)).unwrap();
    assert!(b.receive(secs(3), &newer).is_ok());
    assert_eq!(b.receive(secs(500), &recorded).unwrap_err(), DropReason::ReplayedInitiation);
    assert_eq!(b.device.counters().get(DropReason::ReplayedInitiation), 2);
    assert_eq!(b.device.outdated_initiations(), 0, "a copy, and one that a newer one may have overtaken");
    let newest = a.initiate(secs(520)).unwrap();
    assert!(b.receive(secs(520), &newest).is_ok());
    assert_eq!(b.receive(secs(520), &newer).unwrap_err(), DropReason::ReplayedInitiation);
    assert_eq!(b.device.outdated_initiations(), 1, "minutes older");
}

#[test]
fn a_replay_to_a_restarted_end_harms_no_session() {
    let (mut a, mut b) = pair();
    a.device.start_initiating(secs(1), a.peer_id);
    let recorded = a.initiate(secs(1)).unwrap();
    b = {
        drop(b);
        responder()
    };
    establish(secs(5), &mut a, &mut b);
    assert_eq!(b.receive(secs(6), &recorded).unwrap_err(), DropReason::ReplayedInitiation, "a newer one came before");
    let mut restarted = responder();
    assert!(
        restarted.receive(secs(7), &recorded).unwrap().established.is_none(),
        "it responds, and no session is confirmed"
    );
    assert!(restarted.device.seal(secs(7), restarted.peer_id, 0, 0, &mut [0; 64]).is_err());
}

#[test]
fn an_unknown_peer_that_knows_the_public_key_gets_no_reply() {
    let mut unknown = SealDevice::new(HandshakeConfig::new(key(9, "stranger")), Box::new(entropy(9, "stranger")));
    let b_at_unknown = unknown.add(key(1, "b").public_key(), None).unwrap();
    unknown.start_initiating(secs(1), b_at_unknown);
    let peer_id = unknown.initiation_due(secs(1), 1).unwrap();
    let initiation = unknown.initiation(secs(1), peer_id, 0).unwrap();
    assert_eq!(responder().receive(secs(1), &initiation).unwrap_err(), DropReason::UnknownPeer);
}

#[test]
fn another_preshared_key_fails_at_the_initiator() {
    let config = |name| HandshakeConfig::new(key(1, name));
    let preshared = |name| Some(PresharedKey::generate(&mut entropy(3, name)));
    let mut a = SealDevice::new(config("a"), Box::new(entropy(1, "a")));
    let mut b = SealDevice::new(config("b"), Box::new(entropy(1, "b")));
    let b_at_a = a.add(*b.public_key(), preshared("one")).unwrap();
    b.add(*a.public_key(), preshared("two")).unwrap();
    a.start_initiating(secs(1), b_at_a);
    let peer_id = a.initiation_due(secs(1), 1).unwrap();
    let initiation = a.initiation(secs(1), peer_id, 0).unwrap();
    let response = b.receive(secs(1), |_| 0, &[1; 6], initiation.as_bytes()).unwrap().reply.unwrap();
    assert_eq!(a.receive(secs(1), |_| 0, &[1; 6], response.as_bytes()).unwrap_err(), DropReason::AuthenticationFailed);
    assert!(a.seal(secs(1), b_at_a, 0, 0, &mut [0; 64]).is_err());
}

#[test]
fn another_version_is_dropped_as_such() {
    let (_, initiation) = initiation();
    let mut message = initiation.as_bytes().to_vec();
    message[5] = 1;
    let mut b = responder();
    assert_eq!(b.device.receive(secs(1), |_| 0, &[1; 6], &message).unwrap_err(), DropReason::UnknownVersion);
    assert_eq!(b.device.counters().get(DropReason::UnknownVersion), 1);
}

#[test]
fn a_response_without_a_pending_handshake_is_dropped() {
    let (_, initiation) = initiation();
    let response = responder().receive(secs(1), &initiation).unwrap().reply.unwrap();
    let mut other = pair().0;
    assert_eq!(other.receive(secs(1), &response).unwrap_err(), DropReason::NoHandshake);
}

#[test]
fn a_removed_peer_is_unknown() {
    let (mut a, mut b) = pair();
    establish(secs(1), &mut a, &mut b);
    b.device.remove(b.peer_id);
    let datagram = a.seal(secs(2), b"hello?");
    assert_eq!(b.open(secs(2), &datagram).unwrap_err(), DropReason::NoSession);
    let initiation = a.initiate(secs(2) + SILENCE_TIMEOUT).unwrap();
    assert_eq!(b.receive(secs(5), &initiation).unwrap_err(), DropReason::UnknownPeer);
    assert!(b.device.status(b.peer_id).is_none());
}

proptest! {
    #[test]
    fn random_bytes_are_dropped_without_a_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..300), shape in 0u8..5) {
        let (mut a, mut b) = pair();
        establish(secs(1), &mut a, &mut b);
        let prefix: &[u8] = match shape {
            0 => &[],
            1 => &[0, 0, 0x88, 0xb6, 1, 2, 0, 0, 0],
            2 => &[0, 0, 0x88, 0xb6, 2, 2, 0, 0, 0],
            3 => &[0, 0, 0x88, 0xb6, 3, 2, 0, 0, 0],
            _ => &[0x30, 0, 0x88, 0xb5],
        };
        let length = bytes.len().min(prefix.len());
        bytes[..length].copy_from_slice(&prefix[..length]);
        bytes.resize([bytes.len(), INITIATION_LEN, RESPONSE_LEN, COOKIE_REPLY_LEN, bytes.len()][usize::from(shape)], 0);
        prop_assert!(b.device.receive(secs(1) + Span(1), |_| 0, &[1; 6], &bytes).is_err());
        prop_assert!(b.device.open(secs(1), &mut bytes).is_err());
    }
}

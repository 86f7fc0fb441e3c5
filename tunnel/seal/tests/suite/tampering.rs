//! Whatever a stranger or someone on the way changes, repeats or invents is refused, counted, and not answered.

use proptest::prelude::*;
use seal::{COOKIE, INITIATION, Message, Peers, PresharedKey, RESPONSE, Refusal, SILENCE, Setup};
use units::Span;

use crate::world::{End, at, entropy, key, meet, pair};

/// `b`, as it was before anything arrived.
fn answerer() -> End {
    pair().1
}

fn question() -> (End, Message) {
    let (mut a, _) = pair();
    a.peers.want(at(1), a.other);
    let question = a.ask(at(1)).unwrap();
    (a, question)
}

/// Every datagram that differs from `message` in one bit.
fn flips(message: &[u8]) -> impl Iterator<Item = (usize, Vec<u8>)> + '_ {
    (0..message.len() * 8).map(|bit| {
        let mut changed = message.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        (bit, changed)
    })
}

#[test]
fn a_bit_changed_anywhere_in_an_initiation_gets_silence() {
    let (_, question) = question();
    for (bit, changed) in flips(question.as_bytes()) {
        let before_mac2 = bit / 8 < INITIATION - 16;
        let taken = answerer().peers.receive(at(1), 0, &[1; 6], &changed);
        assert_eq!(taken.is_err(), before_mac2, "bit {bit}: mac2 is only read when many ask");
    }
}

#[test]
fn changed_bytes_with_a_right_mac1_do_not_pass_either() {
    // Someone on the way who knows b's public key can make mac1 right again: not what is under it.
    let b_public = key(1, "b").public();
    let (_, question) = question();
    let signed = |mut bytes: Vec<u8>| {
        let covered = INITIATION - 32;
        let mac = mac1(&b_public, &bytes[..covered]);
        bytes[covered..covered + 16].copy_from_slice(&mac);
        bytes
    };
    assert_eq!(signed(question.as_bytes().to_vec()), question.as_bytes(), "the test computes mac1 as the machine does");
    for byte in 8..INITIATION - 32 {
        let mut changed = question.as_bytes().to_vec();
        changed[byte] ^= 0x10;
        let refused = answerer().peers.receive(at(1), 0, &[1; 6], &signed(changed)).unwrap_err();
        let expected = if byte == 8 { Refusal::Malformed } else { Refusal::Forged };
        assert_eq!(refused, expected, "byte {byte}: even the header is part of the handshake");
    }
}

/// docs/security.md: HMAC-SHA-256 with SHA-256("ropewalk mac1" | public key), the first 16 bytes.
fn mac1(public: &seal::PublicKey, covered: &[u8]) -> [u8; 16] {
    use ring::{digest, hmac};
    let label = [b"ropewalk mac1".as_slice(), public.bytes()].concat();
    let key = hmac::Key::new(hmac::HMAC_SHA256, digest::digest(&digest::SHA256, &label).as_ref());
    *hmac::sign(&key, covered).as_ref().first_chunk().unwrap()
}

#[test]
fn a_bit_changed_anywhere_in_a_response_is_refused_and_the_true_one_is_still_taken() {
    let (mut a, question) = question();
    let response = answerer().receive(at(1), &question).unwrap().reply.unwrap();
    assert_eq!(response.as_bytes().len(), RESPONSE);
    for (bit, changed) in flips(response.as_bytes()) {
        assert!(a.peers.receive(at(1), 0, &[1; 6], &changed).is_err(), "bit {bit}");
    }
    assert!(a.receive(at(1), &response).unwrap().established.is_some());
}

#[test]
fn a_forged_noise_part_under_a_right_mac1_leaves_the_question_open() {
    let (mut a, question) = question();
    let response = answerer().receive(at(1), &question).unwrap().reply.unwrap();
    let a_public = key(1, "a").public();
    for byte in 12..RESPONSE - 16 {
        let mut changed = response.as_bytes().to_vec();
        changed[byte] ^= 0x40;
        let mac = mac1(&a_public, &changed[..RESPONSE - 16]);
        changed[RESPONSE - 16..].copy_from_slice(&mac);
        assert_eq!(a.peers.receive(at(1), 0, &[1; 6], &changed).unwrap_err(), Refusal::Forged, "byte {byte}");
    }
    assert!(a.receive(at(1), &response).unwrap().established.is_some());
}

#[test]
fn a_bit_changed_anywhere_in_a_cookie_is_refused() {
    let setup = Setup { unasked: 0, ..Setup::new(key(1, "b")) };
    let mut b = Peers::new(setup, Box::new(entropy(1, "b")));
    b.add(key(1, "a").public(), None).unwrap();
    let (mut a, question) = question();
    let cookie = b.receive(at(1), 0, &[1; 6], question.as_bytes()).unwrap().reply.unwrap();
    assert_eq!(cookie.as_bytes().len(), COOKIE);
    for (bit, changed) in flips(cookie.as_bytes()) {
        assert!(a.peers.receive(at(1), 0, &[1; 6], &changed).is_err(), "bit {bit}");
    }
    assert!(a.receive(at(1), &cookie).is_ok());
    assert_eq!(a.receive(at(1), &cookie).unwrap_err(), Refusal::Forged, "one cookie a question");
}

#[test]
fn a_recorded_initiation_is_refused_whenever_it_comes_again() {
    let (mut a, mut b) = pair();
    a.peers.want(at(1), a.other);
    let recorded = a.ask(at(1)).unwrap();
    assert!(b.receive(at(1), &recorded).is_ok());
    assert_eq!(b.receive(at(1), &recorded).unwrap_err(), Refusal::ReplayedInitiation);
    let newer = a.ask(at(3)).unwrap();
    assert!(b.receive(at(3), &newer).is_ok());
    assert_eq!(b.receive(at(500), &recorded).unwrap_err(), Refusal::ReplayedInitiation);
    assert_eq!(b.peers.counters().get(Refusal::ReplayedInitiation), 2);
}

#[test]
fn a_recording_played_to_a_restarted_end_harms_no_session() {
    let (mut a, mut b) = pair();
    a.peers.want(at(1), a.other);
    let recorded = a.ask(at(1)).unwrap();
    b = {
        drop(b);
        answerer()
    };
    meet(at(5), &mut a, &mut b);
    assert_eq!(b.receive(at(6), &recorded).unwrap_err(), Refusal::ReplayedInitiation, "a newer one came before");
    let mut again = answerer();
    assert!(again.receive(at(7), &recorded).unwrap().established.is_none(), "it answers, and nobody can prove it");
    assert!(again.peers.seal(at(7), again.other, 0, 0, &mut [0; 64]).is_err());
}

#[test]
fn a_stranger_who_knows_the_public_key_gets_silence() {
    let mut stranger = Peers::new(Setup::new(key(9, "stranger")), Box::new(entropy(9, "stranger")));
    let b_at_stranger = stranger.add(key(1, "b").public(), None).unwrap();
    stranger.want(at(1), b_at_stranger);
    let due = stranger.question_due(at(1), 1).unwrap();
    let question = stranger.question(at(1), due, 0).unwrap();
    assert_eq!(answerer().receive(at(1), &question).unwrap_err(), Refusal::UnknownPeer);
}

#[test]
fn another_preshared_key_fails_at_who_asked() {
    let setup = |name| Setup::new(key(1, name));
    let preshared = |name| Some(PresharedKey::generate(&mut entropy(3, name)));
    let mut a = Peers::new(setup("a"), Box::new(entropy(1, "a")));
    let mut b = Peers::new(setup("b"), Box::new(entropy(1, "b")));
    let b_at_a = a.add(*b.public(), preshared("one")).unwrap();
    b.add(*a.public(), preshared("two")).unwrap();
    a.want(at(1), b_at_a);
    let due = a.question_due(at(1), 1).unwrap();
    let question = a.question(at(1), due, 0).unwrap();
    let response = b.receive(at(1), 0, &[1; 6], question.as_bytes()).unwrap().reply.unwrap();
    assert_eq!(a.receive(at(1), 0, &[1; 6], response.as_bytes()).unwrap_err(), Refusal::Forged);
    assert!(a.seal(at(1), b_at_a, 0, 0, &mut [0; 64]).is_err());
}

#[test]
fn another_version_is_refused_by_name() {
    let (_, question) = question();
    let mut other = question.as_bytes().to_vec();
    other[5] = 2;
    let mut b = answerer();
    assert_eq!(b.peers.receive(at(1), 0, &[1; 6], &other).unwrap_err(), Refusal::UnknownVersion);
    assert_eq!(b.peers.counters().get(Refusal::UnknownVersion), 1);
}

#[test]
fn a_response_to_nobodys_question_is_refused() {
    let (_, question) = question();
    let response = answerer().receive(at(1), &question).unwrap().reply.unwrap();
    let mut other = pair().0;
    assert_eq!(other.receive(at(1), &response).unwrap_err(), Refusal::NoHandshake);
}

#[test]
fn a_peer_that_was_removed_is_a_stranger() {
    let (mut a, mut b) = pair();
    meet(at(1), &mut a, &mut b);
    b.peers.remove(b.other);
    let datagram = a.seal(at(2), b"hello?");
    assert_eq!(b.open(at(2), &datagram).unwrap_err(), Refusal::NoSession);
    let question = a.ask(at(2) + SILENCE).unwrap();
    assert_eq!(b.receive(at(5), &question).unwrap_err(), Refusal::UnknownPeer);
    assert!(b.peers.status(b.other).is_none());
}

proptest! {
    #[test]
    fn random_bytes_neither_panic_nor_pass(mut bytes in prop::collection::vec(any::<u8>(), 0..300), shape in 0u8..5) {
        let (mut a, mut b) = pair();
        meet(at(1), &mut a, &mut b);
        let begin: &[u8] = match shape {
            0 => &[],
            1 => &[0, 0, 0x88, 0xb6, 1, 1, 0, 0, 0],
            2 => &[0, 0, 0x88, 0xb6, 2, 1, 0, 0, 0],
            3 => &[0, 0, 0x88, 0xb6, 3, 1, 0, 0, 0],
            _ => &[0x30, 0, 0x88, 0xb5],
        };
        let length = bytes.len().min(begin.len());
        bytes[..length].copy_from_slice(&begin[..length]);
        bytes.resize([bytes.len(), INITIATION, RESPONSE, COOKIE, bytes.len()][usize::from(shape)], 0);
        prop_assert!(b.peers.receive(at(1) + Span(1), 0, &[1; 6], &bytes).is_err());
        prop_assert!(b.peers.open(at(1), &mut bytes).is_err());
    }
}

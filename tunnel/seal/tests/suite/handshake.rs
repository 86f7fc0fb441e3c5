//! Question, answer, first datagram: what both ends then know, and when they ask again.

use seal::{Cipher, REJECT_AFTER, REKEY_AFTER, Refusal, SILENCE, Setup, Unsealed};
use units::{Instant, Span};

use crate::world::{End, at, key, meet, pair, pair_of};

#[test]
fn two_ends_meet_and_talk_both_ways() {
    let (mut a, mut b) = pair();
    let (at_a, at_b) = meet(at(1), &mut a, &mut b);
    assert!(at_a.fresh && at_b.fresh, "neither remembers the other");
    assert_eq!(at_a.cipher, at_b.cipher);
    let back = b.seal(at(1), b"good day");
    assert_eq!(a.open(at(1), &back).unwrap().1, b"good day");
}

#[test]
fn who_answered_does_not_send_before_something_came() {
    let (mut a, mut b) = pair();
    a.peers.want(at(1), a.other);
    let question = a.ask(at(1)).unwrap();
    b.receive(at(1), &question).unwrap();
    let refused = b.peers.seal(at(1), b.other, 0, 0, &mut [0; 64]);
    assert_eq!(refused, Err(Unsealed::NoSession));
}

#[test]
fn aes_is_chosen_only_if_both_like_it_and_the_answerer_decides() {
    let both = vec![Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305];
    let only = vec![Cipher::ChaCha20Poly1305];
    let reversed = vec![Cipher::ChaCha20Poly1305, Cipher::Aes256Gcm];
    let chosen = |asker: &Vec<Cipher>, answerer: &Vec<Cipher>| {
        let setup = |name, ciphers: &Vec<Cipher>| Setup { ciphers: ciphers.clone(), ..Setup::new(key(1, name)) };
        let (mut a, mut b) = pair_of(setup("a", asker), setup("b", answerer));
        let (at_a, at_b) = meet(at(1), &mut a, &mut b);
        assert_eq!(at_a.cipher, at_b.cipher);
        at_a.cipher
    };
    assert_eq!(chosen(&both, &both), Cipher::Aes256Gcm);
    assert_eq!(chosen(&both, &only), Cipher::ChaCha20Poly1305);
    assert_eq!(chosen(&only, &both), Cipher::ChaCha20Poly1305);
    assert_eq!(chosen(&both, &reversed), Cipher::ChaCha20Poly1305);
}

#[test]
fn without_a_common_cipher_there_is_no_session() {
    let setup = |name, cipher| Setup { ciphers: vec![cipher], ..Setup::new(key(1, name)) };
    let (mut a, mut b) = pair_of(setup("a", Cipher::Aes256Gcm), setup("b", Cipher::ChaCha20Poly1305));
    a.peers.want(at(1), a.other);
    let question = a.ask(at(1)).unwrap();
    assert_eq!(b.receive(at(1), &question).unwrap_err(), Refusal::NoCommonCipher);
    assert_eq!(b.peers.counters().get(Refusal::NoCommonCipher), 1);
}

#[test]
fn features_are_told_both_ways() {
    let setup = |name, features| Setup { features, ..Setup::new(key(1, name)) };
    let (mut a, mut b) = pair_of(setup("a", 0xa000_0001), setup("b", 0x5));
    let (at_a, at_b) = meet(at(1), &mut a, &mut b);
    assert_eq!((at_a.features, at_b.features), (0x5, 0xa000_0001));
}

/// When `end` asks, if nothing is answered, until `last`.
fn questions(end: &mut End, first: Instant, last: Instant) -> Vec<Instant> {
    let (mut now, mut asked) = (first, Vec::new());
    while now <= last {
        if end.ask(now).is_some() {
            asked.push(now);
        } else {
            now = end.peers.deadline().max(now + Span(1));
        }
    }
    asked
}

#[test]
fn an_unanswered_question_is_repeated_after_1_2_3_4_and_then_every_5_seconds_with_jitter() {
    let (mut a, _) = pair();
    a.peers.want(at(10), a.other);
    let asked = questions(&mut a, at(10), at(60));
    assert_eq!(asked[0], at(10));
    for (pair, seconds) in asked.windows(2).zip([1, 2, 3, 4, 5, 5, 5, 5]) {
        let waited = pair[1].since(pair[0]);
        assert!(waited >= Span::from_secs(seconds) && waited < Span::from_millis(seconds * 1000 + 333), "{waited}");
    }
    assert!(asked.len() >= 12, "it never gives up");
}

#[test]
fn who_asked_asks_again_after_two_minutes_and_after_three_nothing_is_sealed_or_opened() {
    let (mut a, mut b) = pair();
    meet(at(1), &mut a, &mut b);
    let (back, late) = (b.seal(at(1), b"answer"), b.seal(at(1), b"late"));
    a.open(at(1), &back).unwrap();
    assert_eq!(questions(&mut a, at(1), at(200))[0], at(1) + REKEY_AFTER);
    let end = at(1) + REJECT_AFTER;
    assert_eq!(a.peers.seal(end, a.other, 0, 9, &mut [0; 64]), Err(Unsealed::NoSession));
    assert_eq!(a.open(end, &late).unwrap_err(), Refusal::NoSession, "it was dropped when its time had come");
    let from_a = b.open(end, &[0x30, 0, 0x88, 0xb5, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(from_a.unwrap_err(), Refusal::NoSession);
}

#[test]
fn an_old_session_is_refused_even_if_no_timer_ran() {
    let (mut a, mut b) = pair();
    meet(at(1), &mut a, &mut b);
    let late = b.seal(at(1), b"late");
    assert_eq!(a.open(at(1) + REJECT_AFTER, &late).unwrap_err(), Refusal::Expired);
    assert!(a.open(at(1) + REJECT_AFTER - Span(1), &late).is_ok());
}

#[test]
fn who_answered_and_wants_a_session_waits_ten_seconds_for_the_other() {
    let (mut a, mut b) = pair();
    meet(at(1), &mut a, &mut b);
    b.peers.want(at(2), b.other);
    assert_eq!(questions(&mut b, at(2), at(150))[0], at(131));
}

#[test]
fn silence_of_three_seconds_after_sending_asks_and_an_idle_tunnel_does_not() {
    let (mut a, mut b) = pair();
    meet(at(1), &mut a, &mut b);
    let back = b.seal(at(1), b"answer");
    a.open(at(1), &back).unwrap();
    assert_eq!(questions(&mut a, at(1), at(100)), []);
    a.seal(at(100), b"is anyone there?");
    assert_eq!(questions(&mut a, at(100), at(104))[0], at(100) + SILENCE);
}

#[test]
fn a_peer_that_restarts_is_met_again_and_told_apart() {
    let (mut a, mut b) = pair();
    meet(at(1), &mut a, &mut b);
    let (_, mut anew) = pair_of(Setup::new(key(1, "a")), Setup::new(key(1, "b")));
    // Another process draws other numbers.
    anew.peers.forget(at(2), anew.other);
    let lost = a.seal(at(2), b"to whom?");
    assert_eq!(anew.open(at(2), &lost).unwrap_err(), Refusal::NoSession);
    let question = (0..50).find_map(|tenth| a.ask(at(2) + Span::from_millis(100) * tenth)).expect("silence asks");
    let answer = anew.receive(at(6), &question).unwrap().reply.unwrap();
    let established = a.receive(at(6), &answer).unwrap().established.unwrap();
    assert!(established.fresh, "it has forgotten us");
    a.number = 0;
    let datagram = a.seal(at(6), b"again");
    assert!(anew.open(at(6), &datagram).unwrap().0.established.unwrap().fresh);
}

#[test]
fn what_was_sealed_in_a_former_life_is_not_opened_in_the_new_one() {
    let (mut a, mut b) = pair();
    meet(at(1), &mut a, &mut b);
    let former = a.seal(at(1), b"a former life");
    a.peers.forget(at(2), a.other);
    a.number = 0;
    assert!(meet(at(2), &mut a, &mut b).1.fresh);
    assert_eq!(b.open(at(2), &former).unwrap_err(), Refusal::NoSession);
}

#[test]
fn a_new_session_of_two_that_remember_each_other_goes_on() {
    let (mut a, mut b) = pair();
    meet(at(1), &mut a, &mut b);
    a.peers.renew(at(5), a.other);
    let (at_a, at_b) = meet(at(5), &mut a, &mut b);
    assert!(!at_a.fresh && !at_b.fresh);
}

#[test]
fn packet_numbers_beyond_32_bits_go_on_in_the_next_session() {
    let (mut a, mut b) = pair();
    meet(at(1), &mut a, &mut b);
    for step in 0..8 {
        a.number += 1 << 30;
        let datagram = a.seal(at(2), b"far");
        assert_eq!(b.open(at(2), &datagram).unwrap().0.number, a.number - 1, "step {step}");
    }
    a.peers.renew(at(5), a.other);
    meet(at(5), &mut a, &mut b);
    assert!(a.number > 1 << 32);
}

#[test]
fn a_clock_that_goes_back_does_not_stop_who_keeps_running() {
    let (mut a, mut b) = pair();
    meet(at(100), &mut a, &mut b);
    a.peers.renew(at(101), a.other);
    let due = a.peers.question_due(at(101), 5).expect("it is wanted");
    let question = a.peers.question(at(101), due, 0).unwrap();
    assert!(b.receive(at(101), &question).is_ok(), "its questions are told apart by more than its clock");
}

#[test]
fn the_bytes_of_a_handshake_stay_what_they_are() {
    // Fixed keys and chance: another digest means that another version of this program would not be understood.
    let ciphers = vec![Cipher::ChaCha20Poly1305];
    let setup = |name| Setup { ciphers: ciphers.clone(), ..Setup::new(key(1, name)) };
    let (mut a, mut b) = pair_of(setup("a"), setup("b"));
    a.peers.want(at(1), a.other);
    let question = a.ask(at(1)).unwrap();
    let response = b.receive(at(1), &question).unwrap().reply.unwrap();
    a.receive(at(1), &response).unwrap();
    let datagram = a.seal(at(1), b"transcript");
    let transcript = [question.as_bytes(), response.as_bytes(), &datagram].concat();
    let digest = ring::digest::digest(&ring::digest::SHA256, &transcript);
    let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digest, "87bfff92904ed574527efb5f155fb5718f3e8a6f24bafc33461a1029c5439a71");
}

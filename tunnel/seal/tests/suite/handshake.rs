//! Handshakes: initiation, response, key confirmation; and when peers initiate again.

use seal::{Cipher, DropReason, HandshakeConfig, REJECT_AFTER, REKEY_AFTER, SEAL_OVERHEAD, SILENCE_TIMEOUT, SealError};
use units::{Instant, Span};

use crate::test_peer::{TestPeer, establish, key, pair, pair_of, secs};

#[test]
fn a_session_carries_data_both_ways() {
    let (mut a, mut b) = pair();
    let (at_a, at_b) = establish(secs(1), &mut a, &mut b);
    assert!(at_a.numbers_reset && at_b.numbers_reset, "neither has state of the other");
    assert_eq!(at_a.cipher, at_b.cipher);
    let reply = b.seal(secs(1), b"back");
    assert_eq!(a.open(secs(1), &reply).unwrap().1, b"back");
}

#[test]
fn the_responder_does_not_seal_before_key_confirmation() {
    let (mut a, mut b) = pair();
    a.device.start_initiating(secs(1), a.peer_id);
    let initiation = a.initiate(secs(1)).unwrap();
    b.receive(secs(1), &initiation).unwrap();
    let result = b.device.seal(secs(1), b.peer_id, 0, 0, &mut [0; 64]);
    assert_eq!(result, Err(SealError::NoSession));
}

#[test]
fn aes_is_chosen_only_if_both_accept_it_and_the_responder_decides() {
    let both_ciphers = vec![Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305];
    let one_cipher = vec![Cipher::ChaCha20Poly1305];
    let reversed_order = vec![Cipher::ChaCha20Poly1305, Cipher::Aes256Gcm];
    let chosen_cipher = |initiator: &Vec<Cipher>, responder: &Vec<Cipher>| {
        let config = |name, ciphers: &Vec<Cipher>| HandshakeConfig {
            ciphers: ciphers.clone(),
            ..HandshakeConfig::new(key(1, name))
        };
        let (mut a, mut b) = pair_of(config("a", initiator), config("b", responder));
        let (at_a, at_b) = establish(secs(1), &mut a, &mut b);
        assert_eq!(at_a.cipher, at_b.cipher);
        at_a.cipher
    };
    assert_eq!(chosen_cipher(&both_ciphers, &both_ciphers), Cipher::Aes256Gcm);
    assert_eq!(chosen_cipher(&both_ciphers, &one_cipher), Cipher::ChaCha20Poly1305);
    assert_eq!(chosen_cipher(&one_cipher, &both_ciphers), Cipher::ChaCha20Poly1305);
    assert_eq!(chosen_cipher(&both_ciphers, &reversed_order), Cipher::ChaCha20Poly1305);
}

#[test]
fn without_a_common_cipher_there_is_no_session() {
    let config = |name, cipher| HandshakeConfig { ciphers: vec![cipher], ..HandshakeConfig::new(key(1, name)) };
    let (mut a, mut b) = pair_of(config("a", Cipher::Aes256Gcm), config("b", Cipher::ChaCha20Poly1305));
    a.device.start_initiating(secs(1), a.peer_id);
    let initiation = a.initiate(secs(1)).unwrap();
    assert_eq!(b.receive(secs(1), &initiation).unwrap_err(), DropReason::NoCommonCipher);
    assert_eq!(b.device.counters().get(DropReason::NoCommonCipher), 1);
}

/// The times from `first` to `last` at which `peer` initiates without responses.
fn initiations(peer: &mut TestPeer, first: Instant, last: Instant) -> Vec<Instant> {
    let (mut now, mut times) = (first, Vec::new());
    while now <= last {
        if peer.initiate(now).is_some() {
            times.push(now);
        } else {
            now = peer.device.deadline().max(now + Span(1));
        }
    }
    times
}

#[test]
fn an_initiation_is_retried_after_1_2_3_4_and_then_every_5_seconds_with_jitter() {
    let (mut a, _) = pair();
    a.device.start_initiating(secs(10), a.peer_id);
    let times = initiations(&mut a, secs(10), secs(60));
    assert_eq!(times[0], secs(10));
    for (pair, seconds) in times.windows(2).zip([1, 2, 3, 4, 5, 5, 5, 5]) {
        let interval = pair[1].since(pair[0]);
        assert!(
            interval >= Span::from_secs(seconds) && interval < Span::from_millis(seconds * 1000 + 333),
            "{interval}"
        );
    }
    assert!(times.len() >= 12, "it never gives up");
}

#[test]
fn the_initiator_rekeys_after_two_minutes_and_a_session_expires_after_three() {
    let (mut a, mut b) = pair();
    establish(secs(1), &mut a, &mut b);
    let (reply, late) = (b.seal(secs(1), b"response"), b.seal(secs(1), b"late"));
    a.open(secs(1), &reply).unwrap();
    assert_eq!(initiations(&mut a, secs(1), secs(200))[0], secs(1) + REKEY_AFTER);
    let end = secs(1) + REJECT_AFTER;
    assert_eq!(a.device.seal(end, a.peer_id, 0, 9, &mut [0; 64]), Err(SealError::NoSession));
    assert_eq!(a.open(end, &late).unwrap_err(), DropReason::NoSession, "it was removed at its expiry");
    let result = b.open(end, &[0x30, 0, 0x88, 0xb5, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(result.unwrap_err(), DropReason::NoSession);
}

#[test]
fn an_expired_session_is_not_used_even_if_no_timer_ran() {
    let (mut a, mut b) = pair();
    establish(secs(1), &mut a, &mut b);
    let late = b.seal(secs(1), b"late");
    assert_eq!(a.open(secs(1) + REJECT_AFTER, &late).unwrap_err(), DropReason::Expired);
    assert!(a.open(secs(1) + REJECT_AFTER - Span(1), &late).is_ok());
}

#[test]
fn a_responder_rekeys_ten_seconds_later_than_the_initiator() {
    let (mut a, mut b) = pair();
    establish(secs(1), &mut a, &mut b);
    b.device.start_initiating(secs(2), b.peer_id);
    assert_eq!(initiations(&mut b, secs(2), secs(150))[0], secs(131));
}

#[test]
fn three_seconds_of_silence_after_sending_start_a_handshake_and_an_idle_tunnel_does_not() {
    let (mut a, mut b) = pair();
    establish(secs(1), &mut a, &mut b);
    let reply = b.seal(secs(1), b"response");
    a.open(secs(1), &reply).unwrap();
    assert_eq!(initiations(&mut a, secs(1), secs(100)), []);
    // An acknowledgement, which is not answered.
    a.device.seal(secs(50), a.peer_id, 1, 0, &mut [0; SEAL_OVERHEAD]).unwrap();
    assert_eq!(initiations(&mut a, secs(50), secs(100)), []);
    a.seal(secs(100), b"unanswered");
    assert_eq!(initiations(&mut a, secs(100), secs(104))[0], secs(100) + SILENCE_TIMEOUT);
}

#[test]
fn a_restarted_peer_is_recognised() {
    let (mut a, mut b) = pair();
    establish(secs(1), &mut a, &mut b);
    let (_, mut restarted) = pair_of(HandshakeConfig::new(key(1, "a")), HandshakeConfig::new(key(1, "b")));
    // Another process draws other numbers.
    restarted.device.reset(secs(2), restarted.peer_id);
    let lost = a.seal(secs(2), b"lost");
    assert_eq!(restarted.open(secs(2), &lost).unwrap_err(), DropReason::NoSession);
    let initiation = (0..50)
        .find_map(|step| a.initiate(secs(2) + Span::from_millis(100) * step))
        .expect("silence starts a handshake");
    let response = restarted.receive(secs(6), &initiation).unwrap().reply.unwrap();
    let established = a.receive(secs(6), &response).unwrap().established.unwrap();
    assert!(established.numbers_reset, "it has lost its state");
    a.next_packet_number = 0;
    let datagram = a.seal(secs(6), b"again");
    assert!(restarted.open(secs(6), &datagram).unwrap().0.established.unwrap().numbers_reset);
}

#[test]
fn two_hosts_with_one_key_are_told_from_one_that_restarts() {
    let (_, mut b) = pair();
    // Each process draws other numbers.
    let process = |number| {
        let (mut host, _) = pair();
        (0..number).for_each(|_| host.device.reset(secs(0), host.peer_id));
        host
    };
    let mut processes: Vec<TestPeer> = (0..3).map(process).collect();
    for (second, host) in (1..).zip(&mut processes) {
        assert!(establish(secs(second), host, &mut b).1.numbers_reset);
        b.next_packet_number = 0;
        assert_eq!(b.device.status(b.peer_id).unwrap().latest_takeover, None, "a restart");
    }
    let first = &mut processes[0];
    first.device.rekey(secs(9), first.peer_id);
    establish(secs(9), first, &mut b);
    assert_eq!(b.device.status(b.peer_id).unwrap().latest_takeover, Some(secs(9)));
}

/// The peer answers, restarts and initiates; only then its answer arrives. Its session is one that the peer has lost.
#[test]
fn a_response_from_before_the_peers_restart_that_comes_late_is_dropped() {
    let (mut a, mut b) = pair();
    a.device.start_initiating(secs(1), a.peer_id);
    let initiation = a.initiate(secs(1)).unwrap();
    let late_response = b.receive(secs(1), &initiation).unwrap().reply.unwrap();
    b.device.reset(secs(2), b.peer_id);
    b.device.start_initiating(secs(2), b.peer_id);
    let initiation = b.initiate(secs(2)).unwrap();
    let response = a.receive(secs(2), &initiation).unwrap().reply.unwrap();
    b.receive(secs(2), &response).unwrap();
    let datagram = b.seal(secs(2), b"after the restart");
    assert!(a.open(secs(2), &datagram).unwrap().0.established.unwrap().numbers_reset);
    assert_eq!(a.receive(secs(3), &late_response).unwrap_err(), DropReason::NoHandshake);
    let datagram = a.seal(secs(3), b"still its session");
    assert_eq!(b.open(secs(3), &datagram).unwrap().1, b"still its session");
}

#[test]
fn a_datagram_from_before_a_restart_is_not_opened() {
    let (mut a, mut b) = pair();
    establish(secs(1), &mut a, &mut b);
    let datagram = a.seal(secs(1), b"before the restart");
    a.device.reset(secs(2), a.peer_id);
    a.next_packet_number = 0;
    assert!(establish(secs(2), &mut a, &mut b).1.numbers_reset);
    assert_eq!(b.open(secs(2), &datagram).unwrap_err(), DropReason::NoSession);
}

#[test]
fn a_rekeyed_session_continues() {
    let (mut a, mut b) = pair();
    establish(secs(1), &mut a, &mut b);
    a.device.rekey(secs(5), a.peer_id);
    let (at_a, at_b) = establish(secs(5), &mut a, &mut b);
    assert!(!at_a.numbers_reset && !at_b.numbers_reset);
}

#[test]
fn packet_numbers_beyond_32_bits_continue_in_the_next_session() {
    let (mut a, mut b) = pair();
    establish(secs(1), &mut a, &mut b);
    for step in 0..8 {
        a.next_packet_number += 1 << 30;
        let datagram = a.seal(secs(2), b"far");
        assert_eq!(b.open(secs(2), &datagram).unwrap().0.packet_number, a.next_packet_number - 1, "step {step}");
    }
    a.device.rekey(secs(5), a.peer_id);
    establish(secs(5), &mut a, &mut b);
    assert!(a.next_packet_number > 1 << 32);
}

#[test]
fn a_clock_that_goes_back_does_not_stop_a_running_initiator() {
    let (mut a, mut b) = pair();
    establish(secs(100), &mut a, &mut b);
    a.device.rekey(secs(101), a.peer_id);
    let peer_id = a.device.initiation_due(secs(101), 5).expect("a handshake is due");
    let initiation = a.device.initiation(secs(101), peer_id, 0).unwrap();
    assert!(b.receive(secs(101), &initiation).is_ok(), "timestamps increase whatever the clock says");
}

#[test]
fn the_encoding_of_a_handshake_is_fixed() {
    // Fixed keys and random bytes: another digest means an incompatible protocol. Without capabilities the bytes are those of
    // versions before there were any.
    let ciphers = vec![Cipher::ChaCha20Poly1305];
    let config =
        |name| HandshakeConfig { ciphers: ciphers.clone(), capabilities: 0, ..HandshakeConfig::new(key(1, name)) };
    let (mut a, mut b) = pair_of(config("a"), config("b"));
    a.device.start_initiating(secs(1), a.peer_id);
    let initiation = a.initiate(secs(1)).unwrap();
    let response = b.receive(secs(1), &initiation).unwrap().reply.unwrap();
    a.receive(secs(1), &response).unwrap();
    let datagram = a.seal(secs(1), b"transcript");
    let transcript = [initiation.as_bytes(), response.as_bytes(), &datagram].concat();
    let digest = ring::digest::digest(&ring::digest::SHA256, &transcript);
    let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digest, "f5a072e67e298366d0c9c3b9c1dc07fb6d33b3eec6df16ebe05356f9b1fcf260");
}

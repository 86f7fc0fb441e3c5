//! Sealed datagrams: their layout, what is authenticated, and the drop reasons.

use proptest::prelude::*;
use seal::{Cipher, DropReason, PACKET_NUMBER_SPACES, REPLAY_WINDOW, SEAL_OVERHEAD, SealError, Session, SessionKeys};

use crate::test_peer::{establish, pair, secs};

fn sessions(cipher: Cipher) -> (Session, Session) {
    let session = |seal, open| Session::new(&SessionKeys { cipher, seal, open });
    (session([1; 32], [2; 32]), session([2; 32], [1; 32]))
}

fn seal(session: &mut Session, path: u8, number: u64, body: &[u8]) -> Vec<u8> {
    let mut sealed = [body, &[0; 16]].concat();
    let (body, tag) = sealed.split_last_chunk_mut().unwrap();
    session.seal(path, number, b"header", body, tag).unwrap();
    sealed
}

#[test]
fn a_datagram_is_gre_with_key_sequence_number_and_a_tag() {
    let (mut a, mut b) = pair();
    establish(secs(1), &mut a, &mut b);
    a.next_packet_number = 0x1234_5678;
    let mut datagram = vec![0; 100 + SEAL_OVERHEAD];
    a.device.seal(secs(1), a.peer_id, 7, a.next_packet_number, &mut datagram).unwrap();
    assert_eq!(datagram[..4], [0x30, 0x00, 0x88, 0xb5]);
    assert_eq!(datagram[7..12], [7, 0x12, 0x34, 0x56, 0x78]);
    assert!(datagram[12..112] != [0; 100]);
    let opened = b.device.open(secs(1), &mut datagram).unwrap();
    assert_eq!((opened.path, opened.packet_number), (7, 0x1234_5678));
    assert_eq!(datagram[12..112], [0; 100]);
}

#[test]
fn a_flipped_bit_anywhere_in_a_datagram_is_detected() {
    let (mut a, mut b) = pair();
    establish(secs(1), &mut a, &mut b);
    let datagram = a.seal(secs(1), b"forty-two");
    for bit in 0..datagram.len() * 8 {
        let mut changed = datagram.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(b.open(secs(1), &changed).is_err(), "bit {bit}");
    }
    assert_eq!(b.open(secs(1), &datagram).unwrap().1, b"forty-two");
    assert_eq!(b.open(secs(1), &datagram).unwrap_err(), DropReason::Replayed);
}

#[test]
fn a_datagram_cannot_be_reflected() {
    let (mut a, mut b) = pair();
    establish(secs(1), &mut a, &mut b);
    let datagram = a.seal(secs(1), b"echo");
    let mut reflected = b.seal(secs(1), b"echo");
    reflected[12..].copy_from_slice(&datagram[12..]);
    assert_eq!(a.open(secs(1), &reflected).unwrap_err(), DropReason::AuthenticationFailed);
}

#[test]
fn a_number_cannot_be_sealed_twice_on_a_path() {
    for cipher in [Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305] {
        let (mut a, _) = sessions(cipher);
        let mut seal = |path, number| a.seal(path, number, b"", &mut [0; 4], &mut [0; 16]);
        assert_eq!(seal(0, 5), Ok(()));
        assert_eq!(seal(0, 5), Err(SealError::NumberUsed));
        assert_eq!(seal(0, 4), Err(SealError::NumberUsed));
        assert_eq!(seal(1, 4), Ok(()), "another path has other nonces");
        assert_eq!(seal(0, 1 << 62), Err(SealError::Exhausted));
    }
}

#[test]
fn a_number_behind_the_replay_window_is_too_old() {
    let (mut a, mut b) = sessions(Cipher::Aes256Gcm);
    let (mut first, mut second) = (seal(&mut a, 0, 10, b"first"), seal(&mut a, 0, 11, b"second"));
    let mut newest = seal(&mut a, 0, 10 + REPLAY_WINDOW, b"far");
    assert_eq!(b.open(0, 10 + REPLAY_WINDOW as u32, b"header", &mut newest), Ok(10 + REPLAY_WINDOW));
    assert_eq!(b.open(0, 10, b"header", &mut first), Err(DropReason::TooOld));
    assert_eq!(b.open(0, 11, b"header", &mut second), Ok(11));
}

#[test]
fn a_forged_number_does_not_move_the_window() {
    let (mut a, mut b) = sessions(Cipher::ChaCha20Poly1305);
    let mut authentic = seal(&mut a, 0, 1, b"authentic");
    assert_eq!(b.open(0, 0x7fff_ffff, b"header", &mut [0; 40]), Err(DropReason::AuthenticationFailed));
    assert_eq!(b.open(0, 1, b"header", &mut authentic), Ok(1));
}

proptest! {
    #[test]
    fn an_opened_body_is_the_sealed_one_of_that_path_number_and_header(
        cipher in prop::sample::select(vec![Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305]),
        body in prop::collection::vec(any::<u8>(), 0..2000),
        path in 0..16_u8,
        number in 0u64..1 << 32,
        (other_path, other_truncated) in (any::<u8>(), any::<u32>()),
    ) {
        let (mut a, mut b) = sessions(cipher);
        let sealed = seal(&mut a, path, number, &body);
        if (other_path, other_truncated) != (path, number as u32) {
            let result = b.open(other_path, other_truncated, b"header", &mut sealed.clone());
            let has_space = usize::from(other_path) < PACKET_NUMBER_SPACES;
            let reason = if has_space { DropReason::AuthenticationFailed } else { DropReason::Malformed };
            prop_assert_eq!(result, Err(reason));
        }
        prop_assert_eq!(b.open(path, number as u32, b"Header", &mut sealed.clone()), Err(DropReason::AuthenticationFailed));
        let mut authentic = sealed.clone();
        prop_assert_eq!(b.open(path, number as u32, b"header", &mut authentic), Ok(number));
        prop_assert_eq!(&authentic[..body.len()], &body[..]);
        prop_assert_eq!(b.open(path, number as u32, b"header", &mut sealed.clone()), Err(DropReason::Replayed));
    }
}

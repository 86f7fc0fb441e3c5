//! Checks for any bytes, which the fuzz targets and property tests call. They panic if a property does not hold.

use units::Instant;

use crate::{
    Cipher, DropReason, Entropy, HandshakeConfig, HandshakeMessage, PresharedKey, PrivateKey, PublicKey, REPLAY_WINDOW,
    SealDevice, Session, SessionKeys, TAG_LEN,
};

/// A deterministic source: a counter.
pub(crate) struct CountingEntropy(pub(crate) u64);

impl Entropy for CountingEntropy {
    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            chunk.copy_from_slice(&self.0.to_be_bytes()[..chunk.len()]);
        }
    }
}

const NOW: Instant = Instant(1_000_000_000);

fn private(seed: u8) -> PrivateKey {
    PrivateKey::from_bytes([seed; 32])
}

/// Two peers; the first has sent the second an initiation.
fn pair() -> (SealDevice, SealDevice, HandshakeMessage) {
    let mut a = SealDevice::new(
        HandshakeConfig { under_load_threshold: 2, ..HandshakeConfig::new(private(1)) },
        Box::new(CountingEntropy(1)),
    );
    let mut b = SealDevice::new(
        HandshakeConfig { under_load_threshold: 2, ..HandshakeConfig::new(private(2)) },
        Box::new(CountingEntropy(2)),
    );
    let b_at_a = a.add(*b.public_key(), None).expect("another key");
    b.add(*a.public_key(), None).expect("another key");
    a.start_initiating(NOW, b_at_a);
    a.initiation_due(NOW, 1).expect("it initiates");
    let initiation = a.initiation(NOW, b_at_a, 0).expect("it was due");
    (a, b, initiation)
}

/// Any bytes as a handshake message: to an initiator, to a responder, and to one under load. No session may be
/// established.
pub fn handshake(bytes: &[u8]) {
    let (mut a, mut b, initiation) = pair();
    for _ in 0..4 {
        for end in [&mut a, &mut b] {
            if let Ok(outcome) = end.receive(NOW, |_| 0, &[1; 6], bytes) {
                assert!(outcome.established.is_none(), "nothing is authentic");
                assert!(outcome.reply.is_none_or(|reply| reply.as_bytes().len() <= bytes.len()), "no amplification");
            }
        }
    }
    check_changed_messages(&mut a, &mut b, &initiation, bytes);
}

/// An authentic initiation and response, XORed with `bytes`: dropped unless unchanged.
fn check_changed_messages(a: &mut SealDevice, b: &mut SealDevice, initiation: &HandshakeMessage, bytes: &[u8]) {
    let changed = xor_from_end(initiation.as_bytes(), bytes);
    let authentic = b.receive(NOW, |_| 0, &[1; 6], &changed).ok().and_then(|outcome| outcome.peer);
    let mac2 = initiation.as_bytes().len() - 16;
    assert!(
        authentic.is_none() || changed[..mac2] == initiation.as_bytes()[..mac2],
        "a changed initiation was accepted"
    );
    let (_, mut idle, _) = pair();
    let response = idle.receive(NOW, |_| 0, &[1; 6], initiation.as_bytes()).ok().and_then(|outcome| outcome.reply);
    let response = response.expect("a peer gets a response");
    let changed = xor_from_end(response.as_bytes(), bytes);
    let established = a.receive(NOW, |_| 0, &[1; 6], &changed).is_ok_and(|outcome| outcome.established.is_some());
    assert_eq!(
        established,
        changed == response.as_bytes(),
        "a changed response was accepted, or the authentic one was not"
    );
}

/// `message` XORed with `bytes`, from its end.
fn xor_from_end(message: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut changed = message.to_vec();
    for (target, byte) in changed.iter_mut().rev().zip(bytes) {
        *target ^= byte;
    }
    changed
}

/// Any bytes as a sealed datagram, for both ciphers and for a host: dropped. The bytes also select a sequence of packet
/// numbers, each of which a session opens at most once.
pub fn session(bytes: &[u8]) {
    for cipher in [Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305] {
        let keys = SessionKeys { cipher, seal: [1; 32], open: [1; 32] };
        let (path, truncated) = (bytes.first().copied().unwrap_or(0), bytes.len() as u32);
        let opened = Session::new(&keys).open(path, truncated, &bytes[..bytes.len().min(12)], &mut bytes.to_vec());
        assert!(matches!(opened, Err(DropReason::AuthenticationFailed | DropReason::Malformed)));
    }
    let (mut a, ..) = pair();
    assert!(a.open(NOW, &mut bytes.to_vec()).is_err());
    check_packet_numbers(bytes);
}

/// For every three bytes, seals a datagram, whose packet number they increase, and delivers one of those sealed so far.
fn check_packet_numbers(bytes: &[u8]) {
    let keys = SessionKeys { cipher: Cipher::Aes256Gcm, seal: [1; 32], open: [1; 32] };
    let (mut sealer, mut opener) = (Session::new(&keys), Session::new(&keys));
    let (mut next, mut end, mut sent_datagrams) = (0, 0, Vec::new());
    for step in bytes.as_chunks::<3>().0 {
        let packet_number = next + u64::from(step[0]) * u64::from(step[1]);
        next = packet_number + 1;
        let mut sealed = [0; TAG_LEN];
        sealer.seal(0, packet_number, &[], &mut [], &mut sealed).expect("numbers grow");
        sent_datagrams.push((packet_number, sealed, false));
        let index = sent_datagrams.len() - 1 - usize::from(step[2]) % sent_datagrams.len();
        let (packet_number, sealed, was_opened) = &mut sent_datagrams[index];
        let opened = opener.open(0, *packet_number as u32, &[], &mut sealed.clone());
        let expected = match end {
            end if end > *packet_number + REPLAY_WINDOW => Err(DropReason::TooOld),
            _ if *was_opened => Err(DropReason::Replayed),
            _ => Ok(*packet_number),
        };
        assert_eq!(opened, expected, "number {packet_number} of {end}");
        *was_opened |= opened.is_ok();
        end = end.max(if opened.is_ok() { *packet_number + 1 } else { 0 });
    }
}

/// Any bytes as the text of a key: rejected, or exactly the text of that key; and no error repeats the text.
pub fn key(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match text.parse::<PrivateKey>() {
        Ok(key) => {
            assert_eq!(key.to_text().as_str(), text.trim_ascii());
            assert!(text.parse::<PublicKey>().is_ok() && text.parse::<PresharedKey>().is_ok());
        }
        Err(error) => assert!(error.to_string().len() < 200, "an error has its own words"),
    }
}

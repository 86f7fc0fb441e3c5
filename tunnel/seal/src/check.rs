//! What fuzzing calls: each function takes any bytes, and panics only if a promise is broken. The same checks run as
//! property tests.

use units::Instant;

use crate::{
    Cipher, Entropy, Message, Peers, PresharedKey, PrivateKey, PublicKey, Refusal, Session, SessionKeys, Setup, TAG,
    WINDOW,
};

/// Chance that is none: a counter.
struct Counted(u64);

impl Entropy for Counted {
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

/// Two that know each other; the first has asked the second.
fn two() -> (Peers, Peers, Message) {
    let mut a = Peers::new(Setup { unasked: 2, ..Setup::new(private(1)) }, Box::new(Counted(1)));
    let mut b = Peers::new(Setup { unasked: 2, ..Setup::new(private(2)) }, Box::new(Counted(2)));
    let b_at_a = a.add(*b.public(), None).expect("another key");
    b.add(*a.public(), None).expect("another key");
    a.want(NOW, b_at_a);
    a.question_due(NOW, 1).expect("it is wanted");
    let question = a.question(NOW, b_at_a, 0).expect("it was due");
    (a, b, question)
}

/// Any bytes as a handshake message: to one who waits for an answer, to one who answers, and to one who is busy. No session
/// may come of them.
pub fn handshake(bytes: &[u8]) {
    let (mut a, mut b, question) = two();
    for _ in 0..4 {
        for end in [&mut a, &mut b] {
            if let Ok(taken) = end.receive(NOW, 0, &[1; 6], bytes) {
                assert!(taken.established.is_none(), "nobody proved anything");
                assert!(taken.reply.is_none_or(|reply| reply.as_bytes().len() <= bytes.len()), "no amplification");
            }
        }
    }
    spoiled(&mut a, &mut b, &question, bytes);
}

/// A true question and a true answer, with `bytes` laid over them: refused unless nothing changed.
fn spoiled(a: &mut Peers, b: &mut Peers, question: &Message, bytes: &[u8]) {
    let changed = overlay(question.as_bytes(), bytes);
    let proved = b.receive(NOW, 0, &[1; 6], &changed).ok().and_then(|taken| taken.peer);
    let mac2 = question.as_bytes().len() - 16;
    assert!(proved.is_none() || changed[..mac2] == question.as_bytes()[..mac2], "a changed question was believed");
    let (_, mut calm, _) = two();
    let answer = calm.receive(NOW, 0, &[1; 6], question.as_bytes()).ok().and_then(|taken| taken.reply);
    let answer = answer.expect("a peer is answered");
    let changed = overlay(answer.as_bytes(), bytes);
    let established = a.receive(NOW, 0, &[1; 6], &changed).is_ok_and(|taken| taken.established.is_some());
    assert_eq!(established, changed == answer.as_bytes(), "a changed answer was believed, or the true one was not");
}

/// `message` with `bytes` added to it bit by bit, from its end.
fn overlay(message: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut changed = message.to_vec();
    for (place, byte) in changed.iter_mut().rev().zip(bytes) {
        *place ^= byte;
    }
    changed
}

/// Any bytes as sealed data, for both ciphers and for a router: refused. Also as a sequence of numbers that a session
/// opens: each at most once.
pub fn session(bytes: &[u8]) {
    for cipher in [Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305] {
        let keys = SessionKeys { cipher, seal: [1; 32], open: [1; 32] };
        let (path, low) = (bytes.first().copied().unwrap_or(0), bytes.len() as u32);
        let opened = Session::new(&keys).open(path, low, &bytes[..bytes.len().min(12)], &mut bytes.to_vec());
        assert!(matches!(opened, Err(Refusal::Forged | Refusal::Malformed)));
    }
    let (mut a, ..) = two();
    assert!(a.open(NOW, &mut bytes.to_vec()).is_err());
    numbers(bytes);
}

/// Each three bytes seal a datagram some numbers further on, and deliver one of those sealed so far.
fn numbers(bytes: &[u8]) {
    let keys = SessionKeys { cipher: Cipher::Aes256Gcm, seal: [1; 32], open: [1; 32] };
    let (mut sealer, mut opener) = (Session::new(&keys), Session::new(&keys));
    let (mut next, mut end, mut kept) = (0, 0, Vec::new());
    for step in bytes.as_chunks::<3>().0 {
        let number = next + u64::from(step[0]) * u64::from(step[1]);
        next = number + 1;
        let mut sealed = [0; TAG];
        sealer.seal(0, number, &[], &mut [], &mut sealed).expect("numbers grow");
        kept.push((number, sealed, false));
        let place = kept.len() - 1 - usize::from(step[2]) % kept.len();
        let (number, sealed, seen) = &mut kept[place];
        let opened = opener.open(0, *number as u32, &[], &mut sealed.clone());
        let expected = match end {
            end if end > *number + WINDOW => Err(Refusal::TooOld),
            _ if *seen => Err(Refusal::Replayed),
            _ => Ok(*number),
        };
        assert_eq!(opened, expected, "number {number} of {end}");
        *seen |= opened.is_ok();
        end = end.max(if opened.is_ok() { *number + 1 } else { 0 });
    }
}

/// Any bytes as the text of a key: refused, or exactly the text of that key; and no refusal repeats what it read.
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

//! Benchmark of sealing: nanoseconds for a datagram of 1438 bytes (12 of them header, 16 tag), and microseconds for the
//! parts of a handshake.
//!
//!     cargo run --release -p ropewalk-seal --example seal_speed

#![allow(clippy::disallowed_types, reason = "a measurement reads the clock")]

use std::hint::black_box;
use std::time::Instant as Clock;

use seal::{Cipher, HandshakeConfig, PrivateKey, SealDevice, Session, SessionKeys, SystemEntropy};
use units::Instant;

const BODY: usize = 1410;
const DATAGRAMS: usize = 100;
const BATCHES: u64 = 5000;

fn main() {
    for cipher in [Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305] {
        data(cipher);
    }
    handshake();
}

/// Time of one round of `work`, nanoseconds: the minimum of some batches, as other programs use the machine too.
fn nanoseconds(batches: u64, rounds: u64, mut work: impl FnMut(u64)) -> f64 {
    let times = (0..batches).map(|batch| {
        let start = Clock::now();
        (0..rounds).for_each(|round| work(batch * rounds + round));
        start.elapsed().as_nanos() as f64 / rounds as f64
    });
    times.fold(f64::INFINITY, f64::min)
}

fn data(cipher: Cipher) {
    let session = || Session::new(&SessionKeys { cipher, seal: [1; 32], open: [1; 32] });
    let (mut sealer, mut opener) = (session(), session());
    let (header, mut sealed) = ([7; 12], vec![[0; BODY + 16]; DATAGRAMS]);
    let (mut seal_ns, mut open_ns) = (f64::INFINITY, f64::INFINITY);
    for batch in 0..BATCHES {
        let first = batch * DATAGRAMS as u64;
        seal_ns = seal_ns.min(nanoseconds(1, DATAGRAMS as u64, |index| {
            let (body, tag) = sealed[index as usize].split_last_chunk_mut().unwrap();
            sealer.seal(1, first + index, &header, black_box(body), tag).unwrap();
        }));
        open_ns = open_ns.min(nanoseconds(1, DATAGRAMS as u64, |index| {
            opener.open(1, (first + index) as u32, &header, black_box(&mut sealed[index as usize])).unwrap();
        }));
    }
    println!("{:18} seal {seal_ns:4.0} ns, open {open_ns:4.0} ns", cipher.name());
}

fn handshake() {
    let key = || PrivateKey::generate(&mut SystemEntropy);
    let (a_key, b_key) = (key(), key());
    let (a_public, b_public) = (a_key.public_key(), b_key.public_key());
    let config = |key| HandshakeConfig { under_load_threshold: u32::MAX, ..HandshakeConfig::new(key) };
    let mut a = SealDevice::new(config(a_key), Box::new(SystemEntropy));
    let b = a.add(b_public, None).unwrap();
    a.start_initiating(Instant::ZERO, b);
    let mut initiations = Vec::new();
    let initiation = nanoseconds(5, 200, |round| {
        let now = Instant(round * 10_000_000_000);
        a.rekey(now, b);
        if a.initiation_due(now, now.0).is_some() {
            initiations.push(a.initiation(now, b, 0).unwrap());
        }
    });
    let response = |is_peer: bool| {
        let mut b = SealDevice::new(config(b_key.clone()), Box::new(SystemEntropy));
        if is_peer {
            b.add(a_public, None).unwrap();
        }
        let mut index = 0;
        nanoseconds(5, initiations.len() as u64 / 5, |_| {
            let _ = black_box(b.receive(Instant::ZERO, |_| 0, &[1; 6], initiations[index].as_bytes()));
            index += 1;
        })
    };
    let (peer, unknown_peer) = (response(true) / 1000.0, response(false) / 1000.0);
    println!(
        "handshake          initiation {:.0} us, response {peer:.0} us, refuse an unknown peer {unknown_peer:.0} us",
        initiation / 1000.0
    );
    let mut b = SealDevice::new(config(b_key.clone()), Box::new(SystemEntropy));
    let mut forged = initiations[0].as_bytes().to_vec();
    forged[140] ^= 1;
    let forged_ns = nanoseconds(20, 1000, |_| {
        let _ = black_box(b.receive(Instant::ZERO, |_| 0, &[1; 6], &forged));
    });
    let mut b = SealDevice::new(
        HandshakeConfig { under_load_threshold: 0, ..HandshakeConfig::new(b_key) },
        Box::new(SystemEntropy),
    );
    let cookie = nanoseconds(20, 1000, |_| {
        let _ = black_box(b.receive(Instant::ZERO, |_| 0, &[1; 6], initiations[0].as_bytes()));
    });
    println!("under a flood      bad mac1 {forged_ns:.0} ns, cookie {cookie:.0} ns");
}

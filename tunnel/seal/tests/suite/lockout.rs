//! Floods of initiations whose senders know the host's public key and have valid cookies: known peers are served beside
//! them, wherever they are. All counts are closed forms of the limits in `docs/explanation/security.md`.

use seal::{DropReason, HandshakeConfig, HandshakeMessage, INITIATION_LEN, PeerId, SealDevice};
use units::{Instant, Span};

use crate::test_peer::{WALL_CLOCK, entropy, key, secs};

/// 1000 initiations of 164 bytes a second are 1.7 Mbit/s with the headers of IPv6 and UDP.
const FLOOD: usize = 1000;
/// Seconds of flood.
const SECONDS: u64 = 20;
/// Initiations a second that are processed without a cookie: fewer than the default, so that the test is fast.
const WITHOUT_COOKIE: u64 = 20;

/// The octets of an IPv6 address and port 4754; `network` is its /48, `subnet` the /64 in that.
fn source(network: u32, subnet: u16) -> Vec<u8> {
    let mut octets = vec![0x20, 0x01];
    octets.extend(network.to_be_bytes());
    octets.extend(subnet.to_be_bytes());
    octets.extend([0, 0, 0, 0, 0, 0, 0, 1, 0x12, 0x92]);
    octets
}

/// A known peer of the responder.
struct KnownPeer {
    device: SealDevice,
    responder_id: PeerId,
    tries: u32,
}

struct Fixture {
    responder: SealDevice,
    peer: KnownPeer,
    /// Initiations of a stranger with a valid mac2, and where they come from.
    flood: Vec<(Vec<u8>, HandshakeMessage)>,
}

impl Fixture {
    /// A stranger with a cookie for each of `sources` (at most 256), and a peer that has a session from `home`.
    fn new(home: &[u8], sources: impl Iterator<Item = Vec<u8>>) -> Self {
        let config =
            HandshakeConfig { under_load_threshold: WITHOUT_COOKIE as u32, ..HandshakeConfig::new(key(1, "r")) };
        let mut responder = SealDevice::new(config, Box::new(entropy(1, "r")));
        let new_device = |name: &str, responder: &SealDevice| {
            let mut device = SealDevice::new(HandshakeConfig::new(key(1, name)), Box::new(entropy(1, name)));
            let responder_id = device.add(*responder.public_key(), None).unwrap();
            device.start_initiating(secs(1), responder_id);
            (device, responder_id)
        };
        let (device, responder_id) = new_device("peer", &responder);
        responder.add(*device.public_key(), None).unwrap();
        let mut peer = KnownPeer { device, responder_id, tries: 0 };
        assert!(peer.try_at(&mut responder, secs(1), home), "there is no flood yet");
        let mut datagram = [0; seal::SEAL_OVERHEAD];
        peer.device.seal(secs(1), responder_id, 0, 0, &mut datagram).unwrap();
        peer.device.expect_answer(secs(1), responder_id);
        assert!(responder.open(secs(1), &mut datagram).unwrap().established.is_some());
        let (mut stranger, responder_at_stranger) = new_device("stranger", &responder);
        stranger.initiation_due(secs(2), 1).unwrap();
        let plain = stranger.initiation(secs(2), responder_at_stranger, 0).unwrap();
        for _ in 0..WITHOUT_COOKIE {
            let _ = responder.receive(secs(2), |_| 0, &source(1, 1), plain.as_bytes());
        }
        let flood = sources.enumerate().map(|(route, source)| {
            let reply = responder.receive(secs(2), |_| 0, &source, plain.as_bytes()).unwrap().reply.expect("a cookie");
            stranger.receive(secs(2), |_| u8::try_from(route).unwrap(), &[], reply.as_bytes()).unwrap();
            let initiation = stranger.initiation(secs(2), responder_at_stranger, route as u8).unwrap();
            (source, initiation)
        });
        let flood = flood.collect();
        Self { responder, peer, flood }
    }

    /// The next `count` initiations of the flood.
    fn flood(&mut self, now: Instant, count: usize) {
        for (source, initiation) in self.flood.iter().cycle().take(count) {
            let _ = self.responder.receive(now, |_| 0, source, initiation.as_bytes());
        }
    }

    /// `count` initiations of the flood in the second `second`: one each 50 ms, which takes what comes anew for those
    /// without a cookie, and the others at the start, which leaves nothing of a limit by the second. After each,
    /// `then` is called.
    fn flood_second(&mut self, second: u64, count: usize, mut then: impl FnMut(&mut Self, Instant)) {
        self.flood(secs(second), count - 19);
        for step in 0..20 {
            let now = secs(second) + Span::from_millis(50) * step;
            self.flood(now, usize::from(step > 0));
            then(self, now);
        }
    }

    /// Floods from second 10 on, while the peer, which is at `source`, rekeys every five seconds; returns the
    /// largest number of tries that a handshake took, and how many were established.
    fn run(&mut self, count: usize, source: &[u8]) -> (u32, u32) {
        let (mut max_tries, mut established) = (0, 0);
        for second in 10..10 + SECONDS {
            if second % 5 == 0 {
                self.peer.device.rekey(secs(second), self.peer.responder_id);
                self.peer.tries = 0;
            }
            self.flood_second(second, count, |fixture, now| {
                if fixture.peer.device.deadline() <= now && fixture.peer.try_at(&mut fixture.responder, now, source) {
                    (max_tries, established) = (max_tries.max(fixture.peer.tries), established + 1);
                }
            });
        }
        (max_tries, established)
    }

    /// Initiations of the stranger that cost Curve25519 operations.
    fn processed(&self) -> u64 {
        self.responder.counters().get(DropReason::UnknownPeer)
    }
}

impl KnownPeer {
    /// An initiation by the peer at `source`, if one is due; true if it got a response.
    fn try_at(&mut self, responder: &mut SealDevice, now: Instant, source: &[u8]) -> bool {
        let Some(id) = self.device.initiation_due(now, WALL_CLOCK + now.0) else { return false };
        self.tries += 1;
        let initiation = self.device.initiation(now, id, 0).unwrap();
        let reply = responder.receive(now, |_| 0, source, initiation.as_bytes()).ok().and_then(|outcome| outcome.reply);
        let outcome = reply.and_then(|reply| self.device.receive(now, |_| 0, &[0; 6], reply.as_bytes()).ok());
        outcome.is_some_and(|outcome| outcome.established.is_some())
    }
}

/// Initiations that the flood gets processed without a cookie: those at once, and one each 50 ms after the first.
fn without_cookie() -> u64 {
    WITHOUT_COOKIE + WITHOUT_COOKIE * SECONDS - 1
}

#[test]
fn one_48_with_valid_cookies_is_held_to_40_a_second() {
    let mut fixture = Fixture::new(&source(9, 9), (0..256).map(|subnet| source(1, subnet)));
    let before = fixture.processed();
    for second in 10..10 + SECONDS {
        fixture.flood_second(second, FLOOD, |_, _| ());
    }
    assert_eq!(fixture.processed() - before, without_cookie() + SECONDS * 40);
}

#[test]
fn a_known_peer_that_has_roamed_is_served_beside_a_flood_from_one_48() {
    let mut fixture = Fixture::new(&source(9, 9), (0..256).map(|subnet| source(1, subnet)));
    let (max_tries, established) = fixture.run(FLOOD, &source(2, 7));
    assert_eq!((max_tries, established), (2, 4), "a cookie, then a response");
}

#[test]
fn a_known_peer_at_its_address_is_served_beside_a_flood_from_anywhere() {
    let home = source(9, 9);
    let mut fixture = Fixture::new(&home, (0..256).map(|network| source(100 + network, 0)));
    let before = fixture.processed();
    let (max_tries, established) = fixture.run(5_120, &home);
    assert_eq!((max_tries, established), (2, 4));
    assert_eq!(fixture.processed() - before, without_cookie() + SECONDS * 8 * WITHOUT_COOKIE, "the bound of the work");
}

#[test]
fn a_spoofed_flood_from_a_peers_address_is_not_charged_to_the_peer() {
    let home = source(9, 9);
    let mut fixture = Fixture::new(&home, (0..1).map(|subnet| source(1, subnet)));
    let without_mac2 = |initiation: &HandshakeMessage| {
        let (before, _) = initiation.as_bytes().split_at(INITIATION_LEN - 16);
        [before, &[0; 16]].concat()
    };
    let spoofed = without_mac2(&fixture.flood[0].1);
    fixture.peer.device.rekey(secs(10), fixture.peer.responder_id);
    for step in 0..300 {
        let now = secs(10) + Span::from_millis(10) * step;
        for _ in 0..100 {
            let _ = fixture.responder.receive(now, |_| 0, &home, &spoofed);
        }
        if fixture.peer.device.deadline() <= now && fixture.peer.try_at(&mut fixture.responder, now, &home) {
            break;
        }
    }
    assert_eq!(fixture.peer.tries, 3, "one before the flood, one for a cookie, one for the response");
}

#[test]
fn a_hostile_peer_gets_five_responses_a_second() {
    let mut fixture = Fixture::new(&source(9, 9), std::iter::empty());
    let mut accepted = |now: Instant| {
        let answered = (0..50).filter(|_| {
            fixture.peer.device.reset(now, fixture.peer.responder_id);
            fixture.peer.try_at(&mut fixture.responder, now, &source(9, 9))
        });
        answered.count()
    };
    assert_eq!(accepted(secs(10)), 5);
    assert_eq!(accepted(secs(10) + Span::from_millis(200)), 1);
    assert_eq!(accepted(secs(20)), 5);
}

//! Strangers with many addresses, who know the public key of a host and ask it for sessions.

use crate::tunnel_pair::{AddressFamilies, Family, PORT, TunnelPair};
use daemon::keys;
use lab::testbed::{LEFT, RIGHT};
use seal::{PrivateKey, PublicKey, SystemEntropy};
use std::net::{Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use testing::eventually;
use testnet::HostilePeer;

/// The second link, which has no limits, is the strangers' too.
const LINKS: [&str; 2] = ["rate=20mbit delay=5ms", ""];
const IPV6: AddressFamilies = AddressFamilies { outer: Family::V6, inner: Family::V4 };
/// The strangers' network: a /48, of which each has a /64.
const NETWORK: &str = "fd99:1::/48";
/// Their number: together they may ask more often than any limit for all of them.
const STRANGERS: u16 = 500;
/// Initiations that are sent without a pause of a millisecond.
const BURST: usize = 20;
/// Initiations that must have been refused: the flood is above every limit then.
const REFUSED: u64 = 1000;

/// A stranger with an address of its own, at which it reads, so that it gets a cookie.
struct Stranger {
    peer: HostilePeer,
    socket: UdpSocket,
    /// An initiation with a cookie: only the Noise message shows that it comes from a stranger.
    initiation: Vec<u8>,
}

impl Stranger {
    fn new(pair: &TunnelPair, number: u16, remote: PublicKey) -> Self {
        let source = SocketAddr::from((Ipv6Addr::new(0xfd99, 1, 0, number, 0, 0, 0, 1), 7777));
        let socket = pair.testbed.within(LEFT, || Ok(UdpSocket::bind(source)?)).unwrap();
        socket.connect((pair.testbed.v6(1, RIGHT), PORT)).unwrap();
        socket.set_nonblocking(true).unwrap();
        let peer = HostilePeer::new(PrivateKey::generate(&mut SystemEntropy), remote);
        Self { peer, socket, initiation: Vec::new() }
    }

    /// Makes another initiation, with a cookie if one has arrived.
    fn prepare(&mut self, now: units::Instant) {
        let mut buffer = [0; 2048];
        let mut has_answer = false;
        while let Ok(len) = self.socket.recv(&mut buffer) {
            self.peer.receive(now, &mut buffer[..len]);
            has_answer = true;
        }
        if self.initiation.is_empty() || has_answer {
            self.peer.restart(now);
            let wall_clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
            self.initiation = self.peer.initiation(now, wall_clock).expect("one is due").as_bytes().to_vec();
        }
    }
}

/// Sends initiations until it is stopped.
fn flood(strangers: &mut [Stranger], stopped: &AtomicBool) {
    let start = Instant::now();
    while !stopped.load(Relaxed) {
        for burst in strangers.chunks_mut(BURST) {
            for stranger in burst {
                stranger.prepare(units::Instant(start.elapsed().as_nanos() as u64));
                // A queue on the way may be full.
                let _ = stranger.socket.send(&stranger.initiation);
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn a_known_peer_gets_a_session_beside_a_network_of_strangers() {
    let Some(mut pair) = TunnelPair::configured(IPV6, &LINKS) else { return };
    let device = pair.testbed.device(1);
    pair.testbed.run(LEFT, &format!("ip -6 route add local {NETWORK} dev lo")).unwrap();
    pair.testbed.run(LEFT, "sysctl -qw net.ipv6.ip_nonlocal_bind=1").unwrap();
    let gateway = pair.testbed.v6(1, LEFT);
    pair.testbed.run(RIGHT, &format!("ip -6 route add {NETWORK} via {gateway} dev {device}")).unwrap();
    [RIGHT, LEFT].into_iter().for_each(|host| pair.start(host));
    pair.wait_until_up(LEFT);

    let remote: PublicKey = keys::pubkey(pair.private_key(RIGHT)).unwrap().parse().unwrap();
    let mut strangers: Vec<_> = (0..STRANGERS).map(|number| Stranger::new(&pair, number, remote)).collect();
    let stopped = AtomicBool::new(false);
    thread::scope(|scope| {
        let _stop = StopOnDrop(&stopped);
        scope.spawn(|| flood(&mut strangers, &stopped));
        assert!(eventually(|| refused(&pair) >= REFUSED), "{:?}", pair.status(RIGHT).drops);
        for _ in 0..3 {
            let before = refused(&pair);
            pair.kill(LEFT);
            pair.start(LEFT);
            pair.wait_until_up(LEFT);
            assert!(eventually(|| refused(&pair) > before), "the flood goes on");
        }
    });
}

/// Initiations that the right host has refused.
fn refused(pair: &TunnelPair) -> u64 {
    pair.drops(RIGHT, "rate-limited")
}

/// Ends the flood, also when an assertion fails.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

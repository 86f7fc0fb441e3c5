//! A hostile peer with a UDP socket, configured at a host beside the honest one.

use crate::tunnel_pair::{PORT, TunnelPair};
use daemon::keys;
use lab::testbed::{LEFT, RIGHT};
use seal::{PrivateKey, PublicKey};
use std::fmt::Write as _;
use std::net::UdpSocket;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use testing::eventually;
use testnet::{HostilePeer, InnerAddresses};

/// The inner addresses of the attacker and of the hosts of a pair.
pub(crate) const INNER: InnerAddresses =
    InnerAddresses { own: [10, 77, 0, 3], foreign: [10, 77, 0, 1], target: [10, 77, 0, 2], port: 9000 };

/// The attacker, on the left host.
pub(crate) struct HostileClient {
    pub(crate) peer: HostilePeer,
    pub(crate) socket: UdpSocket,
    start: Instant,
}

impl HostileClient {
    /// Adds the attacker to the right host's configuration, before its daemon starts.
    pub(crate) fn configure(pair: &TunnelPair) -> Self {
        let private_key = keys::genkey();
        let public = keys::pubkey(&private_key).unwrap();
        pair.edit(RIGHT, |mut text| {
            write!(text, "\n[[peer]]\npublic-key = \"{public}\"\nallowed-ips = \"10.77.0.3/32\"\n").unwrap();
            text
        });
        let remote: PublicKey = keys::pubkey(pair.private_key(RIGHT)).unwrap().parse().unwrap();
        let private_key: PrivateKey = private_key.parse().unwrap();
        let socket = pair.testbed.within(LEFT, || Ok(UdpSocket::bind((pair.testbed.v4(0, LEFT), 7777))?)).unwrap();
        socket.connect((pair.testbed.v4(0, RIGHT), PORT)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        Self { peer: HostilePeer::new(private_key, remote), socket, start: Instant::now() }
    }

    fn now(&self) -> units::Instant {
        units::Instant(self.start.elapsed().as_nanos() as u64)
    }

    /// Shakes hands.
    pub(crate) fn connect(&mut self) {
        let connected = || {
            let now = self.now();
            let wall_clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
            if let Some(initiation) = self.peer.initiation(now, wall_clock) {
                self.socket.send(initiation.as_bytes()).unwrap();
            }
            self.receive();
            self.peer.has_session()
        };
        assert!(eventually(connected), "no session");
    }

    /// Handles the next datagram, if one arrives soon.
    pub(crate) fn receive(&mut self) {
        let mut buffer = [0; 65_536];
        if let Ok(len) = self.socket.recv(&mut buffer) {
            self.peer.receive(self.now(), &mut buffer[..len]);
        }
    }

    /// Sends a body on a path.
    pub(crate) fn send(&mut self, path: u8, body: &[u8]) {
        let datagram = self.peer.seal(self.now(), path, body).expect("a session");
        // A queue on the way may be full.
        let _ = self.socket.send(&datagram);
    }

    /// Opens path 0 by a ping.
    pub(crate) fn open_path(&mut self) {
        let mut body = Vec::new();
        wire::frame::Frame::Ping { token: 1 }.write(&mut body);
        self.send(0, &body);
        self.receive();
    }
}

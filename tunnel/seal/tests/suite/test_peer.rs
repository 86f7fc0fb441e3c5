//! Two peers with seeded random bytes and one clock. A test passes the messages between them, and may drop, keep or
//! change them.

use seal::{
    DropReason, Established, HandshakeConfig, HandshakeMessage, Opened, PeerId, PrivateKey, SEAL_OVERHEAD, SealDevice,
};
use units::{Instant, RngStream, Span};

/// 2026-01-01 in nanoseconds since 1970.
pub(crate) const WALL_CLOCK: u64 = 1_767_225_600_000_000_000;

pub(crate) fn entropy(seed: u64, name: &str) -> impl FnMut(&mut [u8]) + Send + 'static {
    let mut stream = RngStream::named(seed, name);
    move |bytes: &mut [u8]| bytes.iter_mut().for_each(|byte| *byte = stream.bits() as u8)
}

pub(crate) fn key(seed: u64, name: &str) -> PrivateKey {
    PrivateKey::generate(&mut entropy(seed, name))
}

/// A host with one peer.
pub(crate) struct TestPeer {
    pub(crate) device: SealDevice,
    pub(crate) peer_id: PeerId,
    /// The next packet number on path 0.
    pub(crate) next_packet_number: u64,
}

impl TestPeer {
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        message: &HandshakeMessage,
    ) -> Result<seal::HandshakeOutcome, DropReason> {
        self.device.receive(now, |_| 0, &[192, 0, 2, 1, 0, 80], message.as_bytes())
    }

    /// An initiation, if one is due.
    pub(crate) fn initiate(&mut self, now: Instant) -> Option<HandshakeMessage> {
        let peer_id = self.device.initiation_due(now, WALL_CLOCK + now.0);
        peer_id.map(|id| self.device.initiation(now, id, 0).expect("created when it was due"))
    }

    /// Seals `body` with the next packet number; the peer answers it.
    pub(crate) fn seal(&mut self, now: Instant, body: &[u8]) -> Vec<u8> {
        let mut datagram = vec![0; body.len() + SEAL_OVERHEAD];
        datagram[seal::HEADER_LEN..][..body.len()].copy_from_slice(body);
        self.device.seal(now, self.peer_id, 0, self.next_packet_number, &mut datagram).expect("there is a session");
        self.device.expect_answer(now, self.peer_id);
        self.next_packet_number += 1;
        datagram
    }

    /// Opens a copy of `datagram`; returns its body.
    pub(crate) fn open(&mut self, now: Instant, datagram: &[u8]) -> Result<(Opened, Vec<u8>), DropReason> {
        let mut copy = datagram.to_vec();
        let opened = self.device.open(now, &mut copy)?;
        Ok((opened, copy[seal::HEADER_LEN..copy.len() - seal::TAG_LEN].to_vec()))
    }
}

/// Two hosts, `a` and `b`, that are peers and have no session.
pub(crate) fn pair() -> (TestPeer, TestPeer) {
    pair_of(HandshakeConfig::new(key(1, "a")), HandshakeConfig::new(key(1, "b")))
}

pub(crate) fn pair_of(a: HandshakeConfig, b: HandshakeConfig) -> (TestPeer, TestPeer) {
    let (a_public, b_public) = (a.private_key.public_key(), b.private_key.public_key());
    let mut a = SealDevice::new(a, Box::new(entropy(1, "chance of a")));
    let mut b = SealDevice::new(b, Box::new(entropy(1, "chance of b")));
    let (b_at_a, a_at_b) = (a.add(b_public, None).unwrap(), b.add(a_public, None).unwrap());
    (
        TestPeer { device: a, peer_id: b_at_a, next_packet_number: 0 },
        TestPeer { device: b, peer_id: a_at_b, next_packet_number: 0 },
    )
}

/// Establishes a session, up to key confirmation by a first datagram.
pub(crate) fn establish(
    now: Instant,
    initiator: &mut TestPeer,
    responder: &mut TestPeer,
) -> (Established, Established) {
    initiator.device.start_initiating(now, initiator.peer_id);
    let initiation = initiator.initiate(now).expect("a handshake is due");
    let response = responder.receive(now, &initiation).unwrap().reply.expect("a peer gets a response");
    let first = initiator.receive(now, &response).unwrap().established.expect("the response is authentic");
    let datagram = initiator.seal(now, b"hello");
    let (opened, body) = responder.open(now, &datagram).unwrap();
    assert_eq!(body, b"hello");
    (first, opened.established.expect("the first datagram confirms the session"))
}

pub(crate) fn secs(seconds: u64) -> Instant {
    Instant::ZERO + Span::from_secs(seconds)
}

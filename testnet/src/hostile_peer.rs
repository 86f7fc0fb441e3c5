//! A peer that the other end has configured. It performs a correct handshake and then sends arbitrary datagrams.

use seal::{
    Entropy, HandshakeConfig, HandshakeMessage, Opened, PACKET_NUMBER_SPACES, PeerId, PrivateKey, PublicKey,
    SEAL_OVERHEAD, SealDevice, SystemEntropy,
};
use units::Instant;

/// The hostile end of a tunnel, without sockets and clock.
pub struct HostilePeer {
    device: SealDevice,
    peer: PeerId,
    next_packet_numbers: [u64; PACKET_NUMBER_SPACES],
}

impl HostilePeer {
    /// A peer without a session.
    ///
    /// # Panics
    /// If `remote` cannot be a peer's key.
    #[must_use]
    pub fn new(private_key: PrivateKey, remote: PublicKey) -> Self {
        Self::with_entropy(private_key, remote, Box::new(SystemEntropy))
    }

    /// A peer without a session, with random numbers from `entropy`.
    ///
    /// # Panics
    /// If `remote` cannot be a peer's key.
    #[must_use]
    pub fn with_entropy(private_key: PrivateKey, remote: PublicKey, entropy: Box<dyn Entropy + Send>) -> Self {
        let mut device = SealDevice::new(HandshakeConfig::new(private_key), entropy);
        let peer = device.add(remote, None).expect("a peer's key");
        device.start_initiating(Instant::ZERO, peer);
        Self { device, peer, next_packet_numbers: [0; PACKET_NUMBER_SPACES] }
    }

    /// The initiation to send now, if one is due. `wall_clock` is the time in nanoseconds since 1970.
    pub fn initiation(&mut self, now: Instant, wall_clock: u64) -> Option<HandshakeMessage> {
        let id = self.device.initiation_due(now, wall_clock)?;
        self.device.initiation(now, id, 0)
    }

    /// Forgets the session, as a restart does: an initiation with another boot id is then due.
    pub fn restart(&mut self, now: Instant) {
        self.device.reset(now, self.peer);
        self.next_packet_numbers = [0; PACKET_NUMBER_SPACES];
    }

    /// Receives a datagram. Returns its path, packet number and body if it is authentic and sealed.
    pub fn receive(&mut self, now: Instant, datagram: &mut [u8]) -> Option<(Opened, Vec<u8>)> {
        if let Ok(opened) = self.device.open(now, datagram) {
            let body = &datagram[seal::HEADER_LEN..datagram.len() - (SEAL_OVERHEAD - seal::HEADER_LEN)];
            return Some((opened, body.to_vec()));
        }
        // The source is the responder's address, which only a responder needs.
        let _ = self.device.receive(now, |_| 0, &[], datagram);
        None
    }

    /// Whether there is a session.
    #[must_use]
    pub fn has_session(&self) -> bool {
        self.device.status(self.peer).is_some_and(|status| status.latest_handshake.is_some())
    }

    /// Skips this many packet numbers of a path.
    pub fn skip_packet_numbers(&mut self, path: u8, count: u64) {
        self.next_packet_numbers[usize::from(path)] += count;
    }

    /// A sealed datagram with this body. `None` without a session.
    pub fn seal(&mut self, now: Instant, path: u8, body: &[u8]) -> Option<Vec<u8>> {
        let mut datagram = vec![0; SEAL_OVERHEAD + body.len()];
        datagram[seal::HEADER_LEN..][..body.len()].copy_from_slice(body);
        let number = &mut self.next_packet_numbers[usize::from(path)];
        self.device.seal(now, self.peer, path, *number, &mut datagram).ok()?;
        *number += 1;
        Some(datagram)
    }
}

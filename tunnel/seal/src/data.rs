//! Sealing and opening of datagrams by [`SealDevice`].

use units::Instant;
use wire::gre::Sealed;

use crate::cipher::TAG_LEN;
use crate::device::{HEADER_LEN, Opened, PeerId, SEAL_OVERHEAD, SealDevice};
use crate::drop_reason::{DropReason, SealError};
use crate::initiator::established;

impl SealDevice {
    /// Opens a sealed datagram in place. A dropped one is not replied to.
    ///
    /// # Errors
    /// The reason why the datagram was dropped; it is counted, and its bytes are undefined.
    pub fn open(&mut self, now: Instant, datagram: &mut [u8]) -> Result<Opened, DropReason> {
        self.try_open(now, datagram).inspect_err(|&reason| self.counters.add(reason))
    }

    fn try_open(&mut self, now: Instant, datagram: &mut [u8]) -> Result<Opened, DropReason> {
        let (header, sealed) = datagram.split_first_chunk_mut::<HEADER_LEN>().ok_or(DropReason::Malformed)?;
        let Sealed { session: index, path, packet_number: truncated } =
            Sealed::parse(header).ok_or(DropReason::Malformed)?;
        let id = *self.session_indices.get(&index).ok_or(DropReason::NoSession)?;
        let peer = self.peers[id.0 as usize].as_mut().ok_or(DropReason::NoSession)?;
        let entry = peer.sessions.find(index).ok_or(DropReason::NoSession)?;
        if entry.is_expired(now) {
            return Err(DropReason::Expired);
        }
        let packet_number = entry.session.open(path, truncated, header, sealed)?;
        entry.unanswered_since = Instant::NEVER;
        let established = if peer.sessions.is_unconfirmed(index) {
            peer.on_established();
            let activation = peer.sessions.confirm(self.public_key > peer.public_key, &mut self.released_indices);
            let established = established(activation, id, peer);
            if let Some(source) = peer.unconfirmed_source.take() {
                self.initiation_limiter.remember(id, source);
            }
            self.release_indices();
            self.schedule(now);
            established
        } else {
            None
        };
        Ok(Opened { peer: id, path, packet_number, established })
    }

    /// Seals a datagram in place: 12 bytes for the header, the body, 16 bytes for the tag.
    ///
    /// # Errors
    /// If there is no session, or it must not seal that packet number; then nothing was written.
    ///
    /// # Panics
    /// If the datagram has no room for header and tag.
    pub fn seal(
        &mut self,
        now: Instant,
        id: PeerId,
        path: u8,
        packet_number: u64,
        datagram: &mut [u8],
    ) -> Result<(), SealError> {
        assert!(datagram.len() >= SEAL_OVERHEAD, "a datagram has room for header and tag");
        let peer = self.peers.get_mut(id.0 as usize).and_then(Option::as_mut).ok_or(SealError::NoSession)?;
        let entry = peer.sessions.current_mut().filter(|entry| !entry.is_expired(now)).ok_or(SealError::NoSession)?;
        let header = Sealed { session: entry.remote_index, path, packet_number: packet_number as u32 }.to_bytes();
        let (header_bytes, body_and_tag) = datagram.split_first_chunk_mut::<HEADER_LEN>().expect("checked above");
        let (body, tag) = body_and_tag.split_last_chunk_mut::<TAG_LEN>().expect("checked above");
        entry.session.seal(path, packet_number, &header, body, tag)?;
        *header_bytes = header;
        Ok(())
    }

    /// Notes that the datagram sealed last is one that the peer answers: [silence](crate::SILENCE_TIMEOUT) after it
    /// shows that the peer may have restarted.
    pub fn expect_answer(&mut self, now: Instant, id: PeerId) {
        let peer = self.peers.get_mut(id.0 as usize).and_then(Option::as_mut);
        if let Some(entry) = peer.and_then(|peer| peer.sessions.current_mut()) {
            entry.unanswered_since = entry.unanswered_since.min(now);
        }
    }
}

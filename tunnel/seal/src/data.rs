//! Sealing and opening of datagrams by [`Peers`].

use units::Instant;
use wire::gre::Sealed;

use crate::cipher::TAG_LEN;
use crate::drop_reason::{DropReason, SealError};
use crate::initiator::established;
use crate::peers::{HEADER_LEN, OVERHEAD, Opened, PeerId, Peers};

impl Peers {
    /// Opens a sealed datagram in place. A dropped one is not replied to.
    ///
    /// # Errors
    /// Why it was dropped; it is counted, and its bytes are undefined.
    pub fn open(&mut self, now: Instant, datagram: &mut [u8]) -> Result<Opened, DropReason> {
        self.try_open(now, datagram).inspect_err(|&reason| self.counters.add(reason))
    }

    fn try_open(&mut self, now: Instant, datagram: &mut [u8]) -> Result<Opened, DropReason> {
        let (header, sealed) = datagram.split_first_chunk_mut::<HEADER_LEN>().ok_or(DropReason::Malformed)?;
        let Sealed { session: index, path, number } = Sealed::parse(header).ok_or(DropReason::Malformed)?;
        let id = *self.indices.get(&index).ok_or(DropReason::NoSession)?;
        let peer = self.peers[id.0 as usize].as_mut().ok_or(DropReason::NoSession)?;
        let entry = peer.sessions.find(index).ok_or(DropReason::NoSession)?;
        if entry.expired(now) {
            return Err(DropReason::Expired);
        }
        let number = entry.session.open(path, number, header, sealed)?;
        entry.unanswered_since = Instant::NEVER;
        let established = if peer.sessions.is_unconfirmed(index) {
            peer.on_established();
            let activation = peer.sessions.confirm(self.public > peer.public, &mut self.freed_indices);
            let established = established(activation, id, peer);
            self.release_indices();
            self.schedule(now);
            established
        } else {
            None
        };
        Ok(Opened { peer: id, path, number, established })
    }

    /// Seals a datagram in place: 12 bytes for the header, the body, 16 bytes for the tag.
    ///
    /// # Errors
    /// If there is no session, or it must not seal that number; then nothing was written.
    ///
    /// # Panics
    /// If the datagram has no room for header and tag.
    pub fn seal(
        &mut self,
        now: Instant,
        id: PeerId,
        path: u8,
        number: u64,
        datagram: &mut [u8],
    ) -> Result<(), SealError> {
        assert!(datagram.len() >= OVERHEAD, "a datagram has room for header and tag");
        let peer = self.peers.get_mut(id.0 as usize).and_then(Option::as_mut).ok_or(SealError::NoSession)?;
        let entry = peer.sessions.current_mut().filter(|entry| !entry.expired(now)).ok_or(SealError::NoSession)?;
        let header = Sealed { session: entry.remote, path, number: number as u32 }.to_bytes();
        let (start, rest) = datagram.split_first_chunk_mut::<HEADER_LEN>().expect("checked above");
        let (body, tag) = rest.split_last_chunk_mut::<TAG_LEN>().expect("checked above");
        entry.session.seal(path, number, &header, body, tag)?;
        *start = header;
        entry.unanswered_since = entry.unanswered_since.min(now);
        Ok(())
    }
}

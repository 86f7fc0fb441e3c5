//! Sealing and opening of datagrams by [`Peers`].

use units::Instant;

use crate::cipher::TAG_LEN;
use crate::drop_reason::{DropReason, SealError};
use crate::initiator::established;
use crate::peers::{HEADER_LEN, OVERHEAD, Opened, PeerId, Peers};

/// First bytes of a sealed datagram: GRE (RFC 2890) with key and sequence number, protocol type 0x88B5 (IEEE 802, local
/// experimental 1).
const GRE: [u8; 4] = [0x30, 0x00, 0x88, 0xb5];

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
        let [f0, f1, p0, p1, i0, i1, i2, path, n0, n1, n2, n3] = *header;
        if [f0, f1, p0, p1] != GRE {
            return Err(DropReason::Malformed);
        }
        let index = u32::from_be_bytes([0, i0, i1, i2]);
        let id = *self.indices.get(&index).ok_or(DropReason::NoSession)?;
        let peer = self.peers[id.0 as usize].as_mut().ok_or(DropReason::NoSession)?;
        let entry = peer.sessions.find(index).ok_or(DropReason::NoSession)?;
        if entry.expired(now) {
            return Err(DropReason::Expired);
        }
        let number = entry.session.open(path, u32::from_be_bytes([n0, n1, n2, n3]), header, sealed)?;
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
        let header = header(entry.remote, path, number);
        let (start, rest) = datagram.split_first_chunk_mut::<HEADER_LEN>().expect("checked above");
        let (body, tag) = rest.split_last_chunk_mut::<TAG_LEN>().expect("checked above");
        entry.session.seal(path, number, &header, body, tag)?;
        *start = header;
        entry.unanswered_since = entry.unanswered_since.min(now);
        Ok(())
    }
}

/// The header of a sealed datagram, which is authenticated but not encrypted.
fn header(remote: u32, path: u8, number: u64) -> [u8; HEADER_LEN] {
    let mut header = [0; HEADER_LEN];
    header[..4].copy_from_slice(&GRE);
    header[4..8].copy_from_slice(&(remote << 8 | u32::from(path)).to_be_bytes());
    header[8..].copy_from_slice(&number.to_be_bytes()[4..]);
    header
}

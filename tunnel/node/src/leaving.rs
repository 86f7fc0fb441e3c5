//! What leaves: handshake messages, and datagrams that are written and sealed where the driver has room.

use crate::host::Host;
use crate::peer::{Address, Peer, Route};
use machine::{Content, DATA_HEADER_BYTES, Fragment, Payload, SEAL_OVERHEAD, Transmit};
use seal::{HEADER, Message, PeerId, TAG};
use units::Instant;
use wire::frame::DataHeader;

impl<P: Payload, A: Address> Host<P, A> {
    /// A handshake message to be sent. `wall` tells the time in nanoseconds since 1970, which must not go back; it is asked
    /// only if there is something to ask for.
    pub fn poll_message(&mut self, now: Instant, wall: impl Fn() -> u64) -> Option<(Route<A>, Message)> {
        while self.messages.is_empty() {
            if now < self.peers.deadline() {
                return None;
            }
            let id = self.peers.question_due(now, wall())?;
            let Some((peer, _)) = self.by_id.get(&id) else { continue };
            // By all routes at once: whichever works first decides, and a dead one does no harm.
            for (number, path) in peer.paths.iter().filter(|(number, _)| !peer.is_disabled(**number)) {
                let question = self.peers.question(now, id, *number);
                self.messages.extend(question.map(|question| (path.route.clone(), question)));
            }
        }
        self.messages.pop_front()
    }

    /// A datagram to be sent to a peer, of [`Host::length`] bytes once it is [written](Host::write). A peer goes on as
    /// long as it has any, so that a driver's batches fill; then it is the next one's turn.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<(PeerId, Transmit<P>)> {
        let turn = self.turn;
        let next = |(id, (peer, _)): (&PeerId, &mut (Peer<P, A>, _))| Some((*id, peer.poll_transmit(now)?));
        let found = self.by_id.range_mut(turn..).find_map(next).or_else(|| self.by_id.range_mut(..turn).find_map(next));
        self.turn = found.as_ref().map_or(PeerId(0), |(id, _)| *id);
        found
    }

    /// Bytes of the datagram.
    #[must_use]
    pub fn length(&mut self, id: PeerId, transmit: &Transmit<P>) -> usize {
        let body = match &transmit.content {
            Content::Data(data) => DATA_HEADER_BYTES as usize + data.payload.len() as usize,
            Content::Control { pad_to } => {
                self.encoded.clear();
                if let Some((peer, _)) = self.by_id.get(&id) {
                    peer.endpoint.control().iter().for_each(|frame| frame.write(&mut self.encoded));
                }
                self.encoded.len().max(*pad_to as usize)
            }
        };
        body + SEAL_OVERHEAD as usize
    }

    /// Writes and seals a datagram of [`Host::length`] bytes, which was asked for just before; a parcel's last piece may have
    /// more, as padding. `fill` copies a payload, pads it, and says whether it begins with a virtio-net header. False if there is no session any more: then it must not be sent.
    pub fn write(
        &mut self,
        now: Instant,
        id: PeerId,
        transmit: &Transmit<P>,
        out: &mut [u8],
        fill: impl FnOnce(&P, &mut [u8]) -> bool,
    ) -> bool {
        let end = out.len() - TAG;
        let body = &mut out[HEADER..end];
        match &transmit.content {
            Content::Data(data) => {
                let Fragment { stream, sequence, first, last, retransmission, ref payload } = *data;
                let offload = fill(payload, &mut body[DataHeader::LEN..]);
                let header = DataHeader { stream, sequence, first, last, retransmission, offload };
                body[..DataHeader::LEN].copy_from_slice(&header.to_bytes());
            }
            Content::Control { .. } => {
                let (frames, padding) = body.split_at_mut(self.encoded.len());
                frames.copy_from_slice(&self.encoded);
                padding.fill(0);
            }
        }
        let sealed = self.peers.seal(now, id, transmit.path.0 as u8, transmit.packet_number, out).is_ok();
        if !sealed && let Some((peer, _)) = self.by_id.get_mut(&id) {
            peer.ready = false;
        }
        sealed
    }
}

//! Sending: handshake messages, and datagrams that are encoded and sealed in the driver's buffers.

use crate::node::Node;
use crate::peer::{Address, Peer, Route};
use machine::{Content, DATA_HEADER_BYTES, Fragment, Payload, SEAL_OVERHEAD, Transmit};
use seal::{HEADER_LEN, HandshakeMessage, PeerId, TAG_LEN};
use units::Instant;
use wire::frame::DataHeader;

impl<P: Payload, A: Address> Node<P, A> {
    /// The next handshake message to send. `wall_clock` tells the time in nanoseconds since 1970, which must not go back;
    /// it is called only when an initiation is due.
    pub fn poll_message(&mut self, now: Instant, wall_clock: impl Fn() -> u64) -> Option<(Route<A>, HandshakeMessage)> {
        while self.messages.is_empty() {
            if now < self.sessions.deadline() {
                return None;
            }
            let id = self.sessions.initiation_due(now, wall_clock())?;
            let Some((peer, _)) = self.peers.get(&id) else { continue };
            // By all routes at once: the first copy to arrive is responded to.
            for (number, path) in &peer.paths {
                let initiation = self.sessions.initiation(now, id, *number);
                self.messages.extend(initiation.map(|initiation| (path.route.clone(), initiation)));
            }
        }
        self.messages.pop_front()
    }

    /// The next datagram to send, of [`Node::length`] bytes once it is [written](Node::write). A peer sends as long as it
    /// has any, so that the driver's batches fill; then it is the next peer's turn.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<(PeerId, Transmit<P>)> {
        let sender = self.next_sender;
        let next = |(id, (peer, _)): (&PeerId, &mut (Peer<P, A>, _))| Some((*id, peer.poll_transmit(now)?));
        let found =
            self.peers.range_mut(sender..).find_map(next).or_else(|| self.peers.range_mut(..sender).find_map(next));
        self.next_sender = found.as_ref().map_or(PeerId(0), |(id, _)| *id);
        found
    }

    /// Length of the datagram, bytes.
    #[must_use]
    pub fn length(&mut self, id: PeerId, transmit: &Transmit<P>) -> usize {
        let body = match &transmit.content {
            Content::Data(data) => DATA_HEADER_BYTES as usize + data.payload.len() as usize,
            Content::Control { pad_to } => {
                self.encoded.clear();
                if let Some((peer, _)) = self.peers.get(&id) {
                    peer.endpoint.control_frames().iter().for_each(|frame| frame.write(&mut self.encoded));
                }
                self.encoded.len().max(*pad_to as usize)
            }
        };
        body + SEAL_OVERHEAD as usize
    }

    /// Encodes and seals a datagram of [`Node::length`] bytes, which was called just before; the last fragment of an inner
    /// packet may have more, as padding. `write_payload` copies a payload, pads it, and tells whether it begins with a
    /// virtio_net_hdr. False if there is no session any more: then the datagram must not be sent.
    pub fn write(
        &mut self,
        now: Instant,
        id: PeerId,
        transmit: &Transmit<P>,
        out: &mut [u8],
        write_payload: impl FnOnce(&P, &mut [u8]) -> bool,
    ) -> bool {
        let end = out.len() - TAG_LEN;
        let body = &mut out[HEADER_LEN..end];
        match &transmit.content {
            Content::Data(data) => {
                let Fragment { stream, sequence, first, last, retransmission, ref payload } = *data;
                let offload = write_payload(payload, &mut body[DataHeader::LEN..]);
                let header = DataHeader { stream, sequence, first, last, retransmission, offload };
                body[..DataHeader::LEN].copy_from_slice(&header.to_bytes());
            }
            Content::Control { .. } => {
                let (frames, padding) = body.split_at_mut(self.encoded.len());
                frames.copy_from_slice(&self.encoded);
                padding.fill(0);
            }
        }
        let sealed = self.sessions.seal(now, id, transmit.path.0 as u8, transmit.packet_number, out).is_ok();
        if !sealed && let Some((peer, _)) = self.peers.get_mut(&id) {
            peer.has_session = false;
        }
        sealed
    }
}

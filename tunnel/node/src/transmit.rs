//! Sending: handshake messages, and datagrams, which are encoded and sealed in the driver's buffers.

use crate::node::Node;
use crate::peer::{Address, Route};
use crate::receive::NO_PATH;
use machine::{DATA_HEADER_BYTES, Fragment, Payload, SEAL_OVERHEAD, Transmit, TransmitBody};
use seal::{HEADER_LEN, HandshakeMessage, PeerId, TAG_LEN};
use units::Instant;
use wire::frame::{Bundle, DataHeader, Frame};

impl<P: Payload, A: Address> Node<P, A> {
    /// The next handshake message to send. `wall_clock` returns the time in nanoseconds since 1970, which must not
    /// decrease; it is called only when an initiation is due.
    pub fn poll_handshake(
        &mut self,
        now: Instant,
        wall_clock: impl Fn() -> u64,
    ) -> Option<(Route<A>, HandshakeMessage)> {
        while self.messages.is_empty() {
            if now < self.sessions.deadline() {
                return None;
            }
            let id = self.sessions.initiation_due(now, wall_clock())?;
            let Some((peer, _)) = self.peers.get(&id) else { continue };
            // The initiation is sent by all routes, and to configured addresses that paths have left; the peer responds to the copy that arrives first.
            for (path_id, path) in &peer.paths {
                let initiation = self.sessions.initiation(now, id, *path_id);
                self.messages.extend(initiation.map(|initiation| (path.route.clone(), initiation)));
                let left = path.configured.as_ref().filter(|configured| !configured.has_same_destination(&path.route));
                if let Some(configured) = left {
                    let initiation = self.sessions.initiation(now, id, NO_PATH);
                    self.messages.extend(initiation.map(|initiation| (configured.clone(), initiation)));
                }
            }
        }
        self.messages.pop_front()
    }

    /// The next datagram to send by its [route](Node::transmit_route), of [`Node::encode_length`] bytes once it is
    /// [sealed](Node::seal_into). A peer sends
    /// until it has no more datagrams, so that the driver's batches fill; then the next peer sends.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<(PeerId, Transmit<P>)> {
        let Self { schedule, peers, next_peer, .. } = self;
        let poll_peer = |id: PeerId| Some((id, peers.get_mut(&id)?.0.poll_transmit(now)?));
        let transmit = schedule.ready_from(*next_peer).find_map(poll_peer);
        match transmit {
            Some((id, _)) => schedule.touch(id),
            None => self.settle(now),
        }
        self.next_peer = transmit.as_ref().map_or(PeerId(0), |(id, _)| *id);
        transmit
    }

    /// Encodes the frames of a control datagram, and returns the length of the sealed datagram, bytes.
    #[must_use]
    pub fn encode_length(&mut self, id: PeerId, transmit: &Transmit<P>) -> usize {
        let body_len = match &transmit.body {
            TransmitBody::Data(data) => DATA_HEADER_BYTES as usize + data.payload.len() as usize,
            TransmitBody::Bundle => {
                let frame_bytes = self.encode_frames(id);
                let bundle = self.peers.get(&id).map_or(&[][..], |(peer, _)| peer.endpoint.bundle());
                let entry_len = |fragment: &Fragment<P>| Bundle::entry_len(fragment.payload.len() as usize);
                Bundle::frames_len(frame_bytes) + bundle.iter().map(entry_len).sum::<usize>()
            }
            TransmitBody::Control { pad_to } => self.encode_frames(id).max(*pad_to as usize),
        };
        body_len + SEAL_OVERHEAD as usize
    }

    /// Encodes the frames of a peer's latest datagram; returns their length, bytes.
    fn encode_frames(&mut self, id: PeerId) -> usize {
        self.control_buffer.clear();
        if let Some((peer, _)) = self.peers.get(&id) {
            peer.endpoint.control_frames().iter().for_each(|frame| frame.write(&mut self.control_buffer));
        }
        self.control_buffer.len()
    }

    /// Encodes and seals a datagram of [`Node::encode_length`] bytes, which must be called just before; the last
    /// fragment of an inner packet may be longer, with padding. `write_payload` copies a payload, pads it, and returns
    /// whether it begins with a virtio_net_hdr. Returns false if there is no longer a session: then the datagram must
    /// not be sent.
    pub fn seal_into(
        &mut self,
        now: Instant,
        id: PeerId,
        transmit: &Transmit<P>,
        datagram: &mut [u8],
        write_payload: impl Fn(&P, &mut [u8]) -> bool,
    ) -> bool {
        let tag_start = datagram.len() - TAG_LEN;
        let body = &mut datagram[HEADER_LEN..tag_start];
        match &transmit.body {
            TransmitBody::Data(data) => {
                let header = write_fragment(data, &mut body[DataHeader::LEN..], &write_payload);
                body[..DataHeader::LEN].copy_from_slice(&header.to_bytes());
            }
            TransmitBody::Bundle => {
                let mut offset = Bundle::write_frames(body, &self.control_buffer);
                let bundle = self.peers.get(&id).map_or(&[][..], |(peer, _)| peer.endpoint.bundle());
                for fragment in bundle {
                    let write = |bytes: &mut [u8]| write_fragment(fragment, bytes, &write_payload);
                    offset += Bundle::write_entry(&mut body[offset..], fragment.payload.len() as usize, write);
                }
            }
            TransmitBody::Control { .. } => {
                let (frames, padding) = body.split_at_mut(self.control_buffer.len());
                frames.copy_from_slice(&self.control_buffer);
                padding.fill(0);
            }
        }
        let is_sealed = self.sessions.seal(now, id, transmit.path.0 as u8, transmit.packet_number, datagram).is_ok();
        let Some((peer, _)) = self.peers.get_mut(&id) else { return false };
        peer.has_session = is_sealed;
        let is_ping = |frame: &Frame| matches!(frame, Frame::Ping { .. });
        let is_answered = match transmit.body {
            TransmitBody::Data(_) | TransmitBody::Bundle => true,
            TransmitBody::Control { .. } => peer.endpoint.control_frames().iter().any(is_ping),
        };
        if is_sealed && is_answered {
            self.sessions.expect_answer(now, id);
        }
        is_sealed
    }
}

/// Writes the payload of a fragment, and returns the header before it.
fn write_fragment<P>(
    fragment: &Fragment<P>,
    bytes: &mut [u8],
    write_payload: impl Fn(&P, &mut [u8]) -> bool,
) -> DataHeader {
    let Fragment { stream, sequence, first, last, retransmission, ref payload } = *fragment;
    let has_vnet_hdr = write_payload(payload, bytes);
    DataHeader { stream, sequence, first, last, retransmission, offload: has_vnet_hdr }
}

//! Bundles: several waiting inner packets, and acknowledgements that are due soon, go in one datagram. Otherwise a
//! small packet, such as an acknowledgement of an inner flow, would have more bytes of headers than of its own.
//!
//! Nothing waits for a bundle to fill: it takes the packets that wait when its first packet may leave, in the order in
//! which they would leave anyway.

use super::{Endpoint, PartlySentPacket};
use crate::fragments::FragmentsInFlight;
use crate::packet::{DATA_HEADER_BYTES, Destination, Fragment, Payload, Transmit, TransmitBody};
use crate::path::DatagramData;
use units::{Instant, PathId};
use wire::frame::{Bundle, Frame, MAX_BUNDLE_ENTRIES};

impl<P: Payload> Endpoint<P> {
    /// Sets whether the peer takes bundles; initially it does not.
    pub fn set_bundling(&mut self, bundling: bool) {
        self.bundling = bundling;
    }

    /// The fragments of the latest [`TransmitBody::Bundle`](crate::TransmitBody::Bundle).
    #[must_use]
    pub fn bundle(&self) -> &[Fragment<P>] {
        &self.bundle
    }

    /// Sends the new fragment `number` and, if it is small, other waiting packets with it.
    pub(super) fn send_with_others(
        &mut self,
        now: Instant,
        path: PathId,
        number: u64,
        fragment: Fragment<P>,
        size: u32,
    ) -> Option<Transmit<P>> {
        let max_body = size + DATA_HEADER_BYTES;
        let is_whole = fragment.first && fragment.last;
        if !self.bundling || !is_whole || entry_bytes(&fragment) + Bundle::frames_len(0) as u32 > max_body {
            return self.send_fragment(now, path, number, fragment);
        }
        let frame_bytes = self.collect_acks(now, path, max_body - entry_bytes(&fragment));
        self.bundle.push(fragment);
        let mut body_bytes = Bundle::frames_len(frame_bytes) as u32 + entry_bytes(&self.bundle[0]);
        while let Some(fragment) = self.next_for_bundle(now, path, max_body - body_bytes) {
            body_bytes += entry_bytes(&fragment);
            self.bundle.push(fragment);
        }
        self.send_bundle(now, path, number, body_bytes)
    }

    /// The next packet of the ingress queue as a fragment, if it may leave by the path now and fits into the bundle,
    /// which has room for `max_bytes`.
    fn next_for_bundle(&mut self, now: Instant, path: PathId, max_bytes: u32) -> Option<Fragment<P>> {
        let max_payload = max_bytes.checked_sub(Bundle::entry_len(0) as u32 + 1)?;
        let may_leave = self.ingress.next_is_sparse(max_payload) || self.path(path)?.can_send(now);
        let fits = self.ingress.next_len().is_some_and(|len| Bundle::entry_len(len as usize) as u32 <= max_bytes);
        if !may_leave || !fits || self.bundle.len() == MAX_BUNDLE_ENTRIES || self.ingress.next_is_realtime() {
            return None;
        }
        let (stream, is_realtime, packet) = self.ingress.pop(now, false, &mut self.counters)?;
        let length = packet.len();
        // CoDel may have dropped the one that was next.
        let fits = Bundle::entry_len(length as usize) as u32 <= max_bytes;
        if !fits || !packet.may_share_datagram(&self.bundle[0].payload) {
            let fragment_size = super::sending::equal_size(length, self.fragment_size().unwrap_or(length));
            self.partly_sent = Some(PartlySentPacket { stream, is_realtime, packet, offset: 0, length, fragment_size });
            return None;
        }
        let memory = packet.memory_bytes();
        let sequence = self.next_sequence(stream);
        let fragment = Fragment { stream, sequence, first: true, last: true, retransmission: false, payload: packet };
        self.counters.new_fragments += 1;
        self.fragments.push(now, &fragment, memory, is_realtime);
        Some(fragment)
    }

    /// Retransmits a fragment, together with those of the same datagram that were lost with it.
    pub(super) fn retransmit_with_others(
        &mut self,
        now: Instant,
        path: PathId,
        number: u64,
        fragment: Fragment<P>,
    ) -> Option<Transmit<P>> {
        let max_body = self.path(path)?.fragment_size() + DATA_HEADER_BYTES;
        let is_whole = fragment.first && fragment.last;
        let mut body_bytes = Bundle::frames_len(0) as u32 + entry_bytes(&fragment);
        if !self.bundling || !is_whole || body_bytes > max_body {
            return self.send_fragment(now, path, number, fragment);
        }
        self.control_frames.clear();
        self.bundle.push(fragment);
        while self.bundle.len() < MAX_BUNDLE_ENTRIES {
            let next_number = number + self.bundle.len() as u64;
            let first = &self.bundle[0].payload;
            let fits = |next: &Fragment<P>| {
                body_bytes + entry_bytes(next) <= max_body && next.payload.may_share_datagram(first)
            };
            let Some(next) = self.fragments.pop_retransmission_if(next_number, fits) else { break };
            self.counters.retransmitted_fragments += 1;
            body_bytes += entry_bytes(&next);
            self.bundle.push(next);
        }
        self.send_bundle(now, path, number, body_bytes)
    }

    /// Sends the fragments of the bundle, which have consecutive numbers from `first` on. A single fragment without
    /// frames is sent as a data frame, which every peer takes.
    fn send_bundle(&mut self, now: Instant, path: PathId, first: u64, body_bytes: u32) -> Option<Transmit<P>> {
        if self.bundle.len() == 1 && self.control_frames.is_empty() {
            let fragment = self.bundle.pop()?;
            return self.send_fragment(now, path, first, fragment);
        }
        let fragments = first..first + self.bundle.len() as u64;
        let bytes = self.bundle.iter().map(|fragment| fragment.payload.len()).sum();
        self.counters.bundled_packets += self.bundle.len() as u64;
        let packet_number = self.send_data(now, path, &DatagramData { fragments, bytes, body_bytes })?;
        Some(Transmit { path, destination: Destination::Present, packet_number, body: TransmitBody::Bundle })
    }

    /// Takes the acknowledgements that may go with data on a path, if it is the path that they return by, and none of
    /// the others has gone without them for too long. Returns their bytes, at most `max_bytes`.
    fn collect_acks(&mut self, now: Instant, id: PathId, max_bytes: u32) -> usize {
        self.control_frames.clear();
        let has_any = self.paths.iter().flatten().any(|path| path.received.deadline != Instant::NEVER);
        if !has_any || self.feedback_path() != Some(id) || self.overdue_feedback_path(now, id).is_some() {
            return 0;
        }
        let mut bytes = 0;
        for (index, path) in self.paths.iter_mut().enumerate() {
            let Some(path) = path.as_mut().filter(|path| path.received.deadline != Instant::NEVER) else { continue };
            let deadline = path.received.deadline;
            let Some(ack) = path.received.ack_frame(now, index as u8).map(Frame::Ack) else { continue };
            if Bundle::frames_len(bytes + ack.len()) > max_bytes as usize {
                path.received.deadline = deadline;
                break;
            }
            bytes += ack.len();
            self.control_frames.push(ack);
        }
        if bytes > 0 {
            self.on_acks_sent(now, id, bytes as u32);
        }
        bytes
    }
}

fn entry_bytes<P: Payload>(fragment: &Fragment<P>) -> u32 {
    Bundle::entry_len(fragment.payload.len() as usize) as u32
}

impl<P: Payload> FragmentsInFlight<P> {
    /// Takes the next retransmission out of the queue if it has this number and `fits`.
    fn pop_retransmission_if(&mut self, number: u64, fits: impl Fn(&Fragment<P>) -> bool) -> Option<Fragment<P>> {
        let fragment = self.peek_retransmission(number)?;
        let is_whole = fragment.first && fragment.last;
        if !is_whole || !fits(&fragment) {
            return None;
        }
        self.pop_retransmission().map(|(_, fragment)| fragment)
    }
}

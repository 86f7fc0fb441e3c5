//! The machine's payload in the daemon: bytes of a pooled buffer, and the offload flag of the device.

use super::outer_tos;
use crate::data_plane::buffer::{BufferSlice, OVERHEAD_BYTES};
use machine::{PacketBuffer, Payload, QueueRelation};
use wire::inner::{ack, ecn};
use wire::segment::trim_first;
use wire::virtio::VirtioNetHeader;

/// An inner packet or super-packet, or a fragment of one.
#[derive(Clone, Debug)]
pub(super) struct PacketSlice {
    pub(super) bytes: BufferSlice,
    /// Whether the whole packet begins with a virtio-net header.
    pub(super) offload: bool,
    /// The original TOS byte of the inner packet, before the ingress queue marks it; 0 on received fragments.
    pub(super) tos: u8,
    /// Bytes before `bytes`: the header of a relay message with data.
    pub(super) prefix: Prefix,
    /// Whether it is a relay message, whose sender has its own flow control.
    pub(super) is_message: bool,
}

/// A few bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prefix {
    bytes: [u8; Self::MAX_LEN],
    start: u8,
    end: u8,
}

impl Prefix {
    /// Maximum length: that of the header of a data message.
    pub(super) const MAX_LEN: usize = 16;

    /// # Panics
    /// If `bytes` are longer than [`Self::MAX_LEN`].
    pub(super) fn new(bytes: &[u8]) -> Self {
        let mut prefix = Self { end: bytes.len() as u8, ..Self::default() };
        prefix.bytes[..bytes.len()].copy_from_slice(bytes);
        prefix
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[usize::from(self.start)..usize::from(self.end)]
    }

    fn len(&self) -> u32 {
        u32::from(self.end - self.start)
    }

    /// The part of `start..end` that is in the prefix.
    fn slice(&self, start: u32, end: u32) -> Self {
        let bound = |offset: u32| self.start + offset.min(self.len()) as u8;
        Self { start: bound(start), end: bound(end), ..*self }
    }
}

impl PacketSlice {
    /// A packet of the host, or a fragment of one.
    pub(super) fn new(bytes: BufferSlice, offload: bool, tos: u8) -> Self {
        Self { bytes, offload, tos, prefix: Prefix::default(), is_message: false }
    }

    /// A relay message.
    pub(super) fn message(bytes: BufferSlice) -> Self {
        Self { is_message: true, ..Self::new(bytes, false, 0) }
    }

    /// The inner packet's connection, and the packet as a pure acknowledgement, if it is one.
    fn tcp(&self) -> Option<(ack::Connection, Option<ack::PureAck<'_>>)> {
        let skip = if self.offload { VirtioNetHeader::LEN } else { 0 };
        self.bytes.get(skip..).filter(|_| !self.is_message).and_then(ack::parse)
    }

    /// Copies all bytes to the beginning of `buffer`; the remainder becomes 0.
    pub(super) fn write(&self, buffer: &mut [u8]) {
        let (prefix, remainder) = buffer.split_at_mut(self.prefix.bytes().len());
        prefix.copy_from_slice(self.prefix.bytes());
        let (fragment, padding) = remainder.split_at_mut(self.bytes.len());
        fragment.copy_from_slice(&self.bytes);
        padding.fill(0);
    }
}

impl Payload for PacketSlice {
    fn len(&self) -> u32 {
        self.prefix.len() + self.bytes.len() as u32
    }

    fn slice(&self, start: u32, end: u32) -> Self {
        let prefix_len = self.prefix.len();
        let bytes = self.bytes.slice(start.saturating_sub(prefix_len), end.saturating_sub(prefix_len));
        Self { bytes, prefix: self.prefix.slice(start, end), ..*self }
    }

    /// The buffer of a relay message is charged to the relay.
    fn memory_bytes(&self) -> u64 {
        if self.is_message { u64::from(self.len()) + OVERHEAD_BYTES } else { self.bytes.memory_bytes() }
    }

    fn detach(&mut self) {
        self.bytes.detach();
    }

    fn may_share_datagram(&self, other: &Self) -> bool {
        outer_tos(self.tos) == outer_tos(other.tos)
    }

    /// A super-packet is not an acknowledgement.
    fn relation(&self, earlier: &Self) -> QueueRelation {
        let (Some((connection, ack)), Some((other, earlier))) = (self.tcp(), earlier.tcp()) else {
            return QueueRelation::Unrelated;
        };
        match (ack, earlier) {
            _ if connection != other => QueueRelation::Unrelated,
            (Some(ack), Some(earlier)) if ack.supersedes(&earlier) => QueueRelation::Supersedes,
            (Some(ack), Some(earlier)) if ack.is_duplicate_of(&earlier) => QueueRelation::Duplicate,
            _ => QueueRelation::SameFlow,
        }
    }

    /// Marks an ECN-capable packet, and keeps a relay message; otherwise drops the first segment of a super-packet.
    fn signal_congestion(&mut self) -> bool {
        if self.is_message {
            return true;
        }
        let skip = if self.offload { VirtioNetHeader::LEN } else { 0 };
        let Some(bytes) = self.bytes.unique_mut() else { return false };
        if ecn::set_ce(&mut bytes[skip..]) {
            return true;
        }
        let dropped = if self.offload { trim_first(bytes) } else { None };
        let Some(dropped) = dropped else { return false };
        self.bytes = self.bytes.slice(dropped as u32, self.bytes.len() as u32);
        true
    }
}

/// The bytes of a packet that is being reassembled.
#[derive(Debug, Default)]
pub(super) struct PacketBytes {
    pub(super) bytes: Vec<u8>,
    /// Whether the packet begins with a virtio-net header.
    pub(super) offload: bool,
}

impl PacketBytes {
    /// Whether it is a message of the peer's relay.
    pub(super) fn is_message(&self) -> bool {
        !self.offload && ::relay::Header::is_message(&self.bytes)
    }
}

impl PacketBuffer<PacketSlice> for PacketBytes {
    fn clear(&mut self) {
        self.bytes.clear();
    }

    fn append(&mut self, payload: &PacketSlice) {
        debug_assert!(payload.prefix.bytes().is_empty(), "received fragments have none");
        self.bytes.extend_from_slice(&payload.bytes);
        self.offload = payload.offload;
    }

    fn memory_bytes(&self) -> u64 {
        self.bytes.capacity() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6040, but for CE: an ECT(1) packet stays one for the queues of the path, also when the ingress queue has marked it.
    #[test]
    fn the_outer_ecn_field_is_the_one_with_which_the_packet_came() {
        for (tos, outer, inner) in [(0xb8, 0xb8, None), (1, 1, Some(3)), (2, 2, Some(3)), (3, 2, Some(3))] {
            let mut bytes = vec![0; 20];
            (bytes[0], bytes[1]) = (0x45, tos);
            let mut packet = PacketSlice::new(bytes.into(), false, tos);
            assert_eq!(outer_tos(packet.tos), outer);
            assert_eq!(packet.signal_congestion(), inner.is_some());
            assert_eq!(outer_tos(packet.tos), outer);
            let mut sent = [0; 20];
            packet.write(&mut sent);
            assert_eq!(sent[1], inner.unwrap_or(tos));
        }
    }

    #[test]
    fn a_message_is_its_prefix_and_its_bytes_however_it_is_cut() {
        let message = PacketSlice { prefix: Prefix::new(b"head"), ..PacketSlice::message(b"chunk".to_vec().into()) };
        let whole = b"headchunk";
        for start in 0..=9 {
            for end in start..=9 {
                for middle in start..=end {
                    let part = message.slice(start, end);
                    let mut bytes = [1; 12];
                    let first = part.slice(0, middle - start);
                    let (left, right) = bytes.split_at_mut(first.len() as usize);
                    first.write(left);
                    part.slice(middle - start, end - start).write(right);
                    let len = (end - start) as usize;
                    assert_eq!(part.len() as usize, len);
                    assert_eq!(bytes[..len], whole[start as usize..end as usize]);
                    assert!(bytes[len..].iter().all(|byte| *byte == 0), "padding");
                }
            }
        }
    }
}

//! The payload of the machine in the daemon: bytes of a pooled buffer, and the offload flag of the device.

use crate::data_plane::buffer::BufferSlice;
use machine::{PacketBuffer, Payload};
use wire::inner::ecn;
use wire::segment::trim_first;
use wire::virtio::VirtioNetHeader;

/// An inner packet or super-packet, or a fragment of one.
#[derive(Clone, Debug)]
pub(super) struct PacketSlice {
    pub(super) bytes: BufferSlice,
    /// Whether the whole packet begins with a virtio-net header.
    pub(super) offload: bool,
    /// The inner packet's TOS byte; 0 on received fragments.
    pub(super) tos: u8,
}

impl Payload for PacketSlice {
    fn len(&self) -> u32 {
        self.bytes.len() as u32
    }

    fn slice(&self, start: u32, end: u32) -> Self {
        Self { bytes: self.bytes.slice(start, end), ..*self }
    }

    /// Marks an ECN-capable packet; otherwise drops the first segment of a super-packet.
    fn signal_congestion(&mut self) -> bool {
        let skip = if self.offload { VirtioNetHeader::LEN } else { 0 };
        let Some(bytes) = self.bytes.unique_mut() else { return false };
        if ecn::set_ce(&mut bytes[skip..]) {
            self.tos |= 3;
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

impl PacketBuffer<PacketSlice> for PacketBytes {
    fn clear(&mut self) {
        self.bytes.clear();
    }

    fn append(&mut self, payload: &PacketSlice) {
        self.bytes.extend_from_slice(&payload.bytes);
        self.offload = payload.offload;
    }
}

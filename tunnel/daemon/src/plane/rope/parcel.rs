//! What the machine carries in the daemon: bytes of a pooled buffer, and what the device said of them.

use crate::plane::buffer::Slice;
use machine::Payload;
use wire::inner::ecn;
use wire::offload::Offload;
use wire::segment::trim_first;

/// A packet or a super-packet, or a piece of one.
#[derive(Clone, Debug)]
pub(super) struct Parcel {
    pub(super) bytes: Slice,
    /// The whole parcel begins with a virtio-net header.
    pub(super) offload: bool,
    /// The inner packet's TOS byte; nothing is known of it after the journey.
    pub(super) tos: u8,
}

impl Payload for Parcel {
    fn len(&self) -> u32 {
        self.bytes.len() as u32
    }

    fn slice(&self, from: u32, to: u32) -> Self {
        Self { bytes: self.bytes.slice(from, to), ..*self }
    }

    /// A mark, if the flow understands marks; else the first packet of a super-packet is lost.
    fn signal_congestion(&mut self) -> bool {
        let skip = if self.offload { Offload::LEN } else { 0 };
        let Some(bytes) = self.bytes.unique_mut() else { return false };
        if ecn::mark(&mut bytes[skip..]) {
            self.tos |= 3;
            return true;
        }
        let dropped = if self.offload { trim_first(bytes) } else { None };
        let Some(dropped) = dropped else { return false };
        self.bytes = self.bytes.slice(dropped as u32, self.bytes.len() as u32);
        true
    }
}

//! Packets of any size in full-size segments.

/// Small packets in a row from which on there is nothing but small ones: more than acknowledgements of a fast download between
/// two packets of an upload.
const MAX_SMALL_PACKETS: u32 = 64;

/// Counts bytes in full-size segments, the unit of congestion windows (RFC 9002 counts bytes, Linux segments of the MSS): a
/// packet counts as the segments that it completes, so that acknowledgements of an inner flow, of which dozens make a
/// segment, take no more of a window than their bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct SegmentCounter {
    /// Bytes beyond the last full segment.
    remainder: u32,
    /// Small packets since the last large one.
    small_packets: u32,
}

impl SegmentCounter {
    /// The segments that a packet of `bytes` completes, with full segments of `full_bytes`.
    pub fn count(&mut self, bytes: u32, full_bytes: u32) -> u32 {
        self.small_packets = if bytes * 2 < full_bytes { self.small_packets.saturating_add(1) } else { 0 };
        let sum = self.remainder + bytes;
        self.remainder = sum % full_bytes.max(1);
        sum / full_bytes.max(1)
    }

    /// Whether nothing but small packets has been counted for a while.
    #[must_use]
    pub fn has_small_alone(self) -> bool {
        self.small_packets > MAX_SMALL_PACKETS
    }
}

//! Decoding of 32-bit sequence numbers to 64 bits, and detection of a restarted peer.
//!
//! A number is decoded to the one nearest to the largest so far (RFC 2890, section 2.2: modulo 2^32), which MPT does
//! not do. MPT does not signal that its counter restarted. Its published heuristic assumes a restart at a number of up
//! to 50 that is too low. Here such a number must also be behind the reorder window. If the first numbers were lost,
//! several packets in a row behind the window also mean a restart.

/// The largest number that MPT takes for one of the first after a start.
const MAX_FIRST: u32 = 50;
/// Packets in a row behind the reorder window that mean a restart.
const RESTART_PACKETS: u32 = 16;

/// Decodes sequence numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SequenceDecoder {
    largest: Option<u64>,
    window: u64,
    consecutive_stale: u32,
}

/// A decoded sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sequence {
    /// The packet's number.
    Number(u64),
    /// The peer restarted; the packet's number.
    Restart(u64),
    /// Older than the first packet.
    Stale,
}

impl SequenceDecoder {
    /// A decoder for a reorder window of this many packets.
    pub(crate) fn new(window: u32) -> Self {
        Self { largest: None, window: u64::from(window.max(MAX_FIRST)), consecutive_stale: 0 }
    }

    /// Decodes the low 32 bits of a packet's number.
    pub(crate) fn decode(&mut self, truncated: u32) -> Sequence {
        let Some(largest) = self.largest else {
            self.largest = Some(u64::from(truncated));
            return Sequence::Number(u64::from(truncated));
        };
        let distance = truncated.wrapping_sub(largest as u32) as i32;
        let number = largest.checked_add_signed(i64::from(distance));
        let is_far_back = distance < 0 && u64::from(distance.unsigned_abs()) > self.window;
        self.consecutive_stale = if is_far_back { self.consecutive_stale + 1 } else { 0 };
        if is_far_back && (truncated <= MAX_FIRST || self.consecutive_stale == RESTART_PACKETS) {
            *self = Self { largest: Some(u64::from(truncated)), consecutive_stale: 0, ..*self };
            return Sequence::Restart(u64::from(truncated));
        }
        let Some(number) = number else { return Sequence::Stale };
        self.largest = Some(largest.max(number));
        Sequence::Number(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap_at_2_to_the_32_in_both_directions() {
        let mut decoder = SequenceDecoder::new(1000);
        let mut decode = |truncated: u32| decoder.decode(truncated);
        assert_eq!(decode(u32::MAX - 1), Sequence::Number(u64::from(u32::MAX - 1)));
        assert_eq!(decode(1), Sequence::Number((1 << 32) + 1));
        assert_eq!(decode(u32::MAX), Sequence::Number(u64::from(u32::MAX)));
    }

    #[test]
    fn a_restart_is_detected_by_its_first_numbers_or_by_several_low_ones() {
        let mut decoder = SequenceDecoder::new(1000);
        decoder.decode(0);
        assert_eq!(decoder.decode(u32::MAX), Sequence::Stale);
        decoder.decode(900);
        assert_eq!(decoder.decode(3), Sequence::Number(3), "within the reorder window");
        decoder.decode(100_000);
        assert_eq!(decoder.decode(3), Sequence::Restart(3));
        decoder.decode(100_000);
        assert!(
            (60..75).all(|truncated| decoder.decode(truncated) == Sequence::Number(u64::from(truncated))),
            "they may only be late"
        );
        assert_eq!(decoder.decode(75), Sequence::Restart(75));
    }
}

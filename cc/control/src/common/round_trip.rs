//! Packet-timed round trips.

use crate::AckSample;

/// Round trips by packet numbers: one ends when `snd_una` passes the `snd_nxt` of its start.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundTrip {
    end: u64,
}

impl RoundTrip {
    /// Whether this acknowledgement ends a round; the next one then begins.
    pub fn ends(&mut self, sample: &AckSample) -> bool {
        self.ends_at(sample.snd_una, sample.snd_nxt)
    }

    /// Whether an acknowledgement up to `snd_una` ends a round; the next one then begins at `snd_nxt`.
    pub fn ends_at(&mut self, snd_una: u64, snd_nxt: u64) -> bool {
        let ends = snd_una > self.end;
        if ends {
            self.end = snd_nxt;
        }
        ends
    }

    /// Begins a round at `snd_nxt`, the number of the next new packet.
    pub fn restart(&mut self, snd_nxt: u64) {
        self.end = snd_nxt;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds counted while `windows` windows of ten packets are acknowledged, this many packets per acknowledgement.
    fn rounds(windows: u64, per_ack: u64) -> usize {
        let mut round = RoundTrip::default();
        let acks = (1..=windows * 10 / per_ack).map(|ack| ack * per_ack);
        acks.filter(|&snd_una| {
            round.ends(&AckSample { snd_una, snd_nxt: snd_una - per_ack + 10, ..AckSample::default() })
        })
        .count()
    }

    #[test]
    fn a_full_window_is_one_round_with_and_without_delayed_acknowledgements() {
        assert_eq!([1, 2, 5].map(|per_ack| rounds(100, per_ack)), [100, 100, 100]);
    }
}

//! Packet-timed round trips.

use crate::AckSample;

/// Counts round trips by packet numbers: one ends when what was next at its start is acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Round {
    end: u64,
}

impl Round {
    /// True if this acknowledgement ends a round; the next one then begins.
    pub fn ends(&mut self, sample: &AckSample) -> bool {
        let over = sample.snd_una > self.end;
        if over {
            self.end = sample.snd_nxt;
        }
        over
    }

    /// Begins a round now.
    pub fn restart(&mut self, sample: &AckSample) {
        self.end = sample.snd_nxt;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds counted while `windows` windows of ten packets are acknowledged, so many packets an acknowledgement.
    fn rounds(windows: u64, per_ack: u64) -> usize {
        let mut round = Round::default();
        let acks = (1..=windows * 10 / per_ack).map(|ack| ack * per_ack);
        acks.filter(|&una| round.ends(&AckSample { snd_una: una, snd_nxt: una - per_ack + 10, ..AckSample::default() }))
            .count()
    }

    #[test]
    fn a_full_window_is_one_round_with_and_without_delayed_acknowledgements() {
        assert_eq!([1, 2, 5].map(|per_ack| rounds(100, per_ack)), [100, 100, 100]);
    }
}

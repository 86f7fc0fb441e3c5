//! Loss detection by count: forward acknowledgement (Mathis and Mahdavi, SIGCOMM 1996), as in Linux before RACK.
//!
//! A packet is lost once three packets that were sent after it have been delivered. That is RFC 6675's threshold of
//! duplicate acknowledgements, but counted in the order of sending, so that it detects lost retransmissions, too.

use super::Scoreboard;
use std::collections::VecDeque;
use units::Instant;

/// FACK's state: the delivered packets that were sent most recently, oldest first.
#[derive(Clone, Debug)]
pub struct Fack {
    newest: VecDeque<(Instant, u64)>,
    threshold: usize,
}

impl Fack {
    /// `threshold` is the number of later packets that shows a loss (`tcp_reordering`, 3).
    #[must_use]
    pub fn new(threshold: u32) -> Self {
        Self { newest: VecDeque::new(), threshold: threshold.max(1) as usize }
    }

    /// Records a delivered packet.
    pub fn on_delivered(&mut self, seq: u64, sent: Instant) {
        let index = self.newest.partition_point(|delivered| *delivered < (sent, seq));
        self.newest.insert(index, (sent, seq));
        if self.newest.len() > self.threshold {
            self.newest.pop_front();
        }
    }

    /// Marks the packets lost that were sent before the last `threshold` delivered packets. Returns the number of newly
    /// lost packets.
    pub fn mark_lost(&self, scoreboard: &mut Scoreboard) -> u32 {
        match self.newest.front() {
            Some(oldest) if self.newest.len() == self.threshold => scoreboard.expire(*oldest, |_| true).0,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::SendSnapshot;
    use units::Span;

    fn millis(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    /// Ten packets, one per millisecond.
    fn scoreboard() -> (Scoreboard, Fack) {
        let mut scoreboard = Scoreboard::default();
        (0..10).for_each(|ms| _ = scoreboard.push(millis(ms), SendSnapshot::default()));
        (scoreboard, Fack::new(3))
    }

    fn deliver(scoreboard: &mut Scoreboard, fack: &mut Fack, seqs: &[u64]) -> u32 {
        let mut lost = 0;
        for seq in seqs {
            let packet = scoreboard.sack(*seq);
            fack.on_delivered(*seq, packet.sent);
            lost += fack.mark_lost(scoreboard);
        }
        lost
    }

    #[test]
    fn three_later_packets_show_a_loss_and_two_do_not() {
        let (mut scoreboard, mut fack) = scoreboard();
        assert_eq!(deliver(&mut scoreboard, &mut fack, &[0, 2, 4]), 0);
        assert_eq!(deliver(&mut scoreboard, &mut fack, &[5]), 1, "packet 1; above 3 there are only two");
        assert_eq!(deliver(&mut scoreboard, &mut fack, &[6]), 1);
        assert!(scoreboard.packet(1).is_lost() && scoreboard.packet(3).is_lost());
    }

    #[test]
    fn a_lost_retransmission_is_shown_by_three_packets_sent_after_it() {
        let (mut scoreboard, mut fack) = scoreboard();
        assert_eq!(deliver(&mut scoreboard, &mut fack, &[1, 2, 3]), 1);
        scoreboard.retransmit(0, millis(10), SendSnapshot::default());
        (11..14).for_each(|ms| _ = scoreboard.push(millis(ms), SendSnapshot::default()));
        assert_eq!(
            deliver(&mut scoreboard, &mut fack, &[4, 5, 6, 7, 8, 9, 10, 11]),
            0,
            "only two of these came after it"
        );
        assert_eq!(deliver(&mut scoreboard, &mut fack, &[12]), 1);
    }
}

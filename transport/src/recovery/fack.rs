//! Loss detection by count: forward acknowledgement (Mathis and Mahdavi, SIGCOMM 1996), as in Linux before RACK.
//!
//! A packet is lost once three packets that were sent after it have been delivered: RFC 6675's threshold of duplicate
//! acknowledgements, but counted in the order of sending, so that it finds lost retransmissions too.

use super::Scoreboard;
use std::collections::VecDeque;
use units::Instant;

/// The detector's state: the packets sent last of all that were delivered, oldest first.
#[derive(Clone, Debug)]
pub struct Fack {
    newest: VecDeque<(Instant, u64)>,
    threshold: usize,
}

impl Fack {
    /// `threshold`: so many later packets (`tcp_reordering`, 3).
    #[must_use]
    pub fn new(threshold: u32) -> Self {
        Self { newest: VecDeque::new(), threshold: threshold.max(1) as usize }
    }

    /// A packet was delivered.
    pub fn on_delivered(&mut self, seq: u64, sent: Instant) {
        let after = self.newest.partition_point(|newest| *newest < (sent, seq));
        self.newest.insert(after, (sent, seq));
        if self.newest.len() > self.threshold {
            self.newest.pop_front();
        }
    }

    /// Marks what was sent before all of them as lost. Returns the packets newly lost.
    pub fn detect(&self, board: &mut Scoreboard) -> u32 {
        match self.newest.front() {
            Some(oldest) if self.newest.len() == self.threshold => board.expire(*oldest, |_| true).0,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::Snapshot;
    use units::Span;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    /// Ten packets, one a millisecond.
    fn board() -> (Scoreboard, Fack) {
        let mut board = Scoreboard::default();
        (0..10).for_each(|ms| _ = board.push(at(ms), Snapshot::default()));
        (board, Fack::new(3))
    }

    fn deliver(board: &mut Scoreboard, fack: &mut Fack, seqs: &[u64]) -> u32 {
        let mut lost = 0;
        for seq in seqs {
            let before = board.sack(*seq);
            fack.on_delivered(*seq, before.sent);
            lost += fack.detect(board);
        }
        lost
    }

    #[test]
    fn three_later_packets_show_a_loss_and_two_do_not() {
        let (mut board, mut fack) = board();
        assert_eq!(deliver(&mut board, &mut fack, &[0, 2, 4]), 0);
        assert_eq!(deliver(&mut board, &mut fack, &[5]), 1, "packet 1; above 3 there are only two");
        assert_eq!(deliver(&mut board, &mut fack, &[6]), 1);
        assert!(board.record(1).is_lost() && board.record(3).is_lost());
    }

    #[test]
    fn a_lost_retransmission_is_shown_by_three_packets_sent_after_it() {
        let (mut board, mut fack) = board();
        assert_eq!(deliver(&mut board, &mut fack, &[1, 2, 3]), 1);
        board.retransmit(0, at(10), Snapshot::default());
        (11..14).for_each(|ms| _ = board.push(at(ms), Snapshot::default()));
        assert_eq!(deliver(&mut board, &mut fack, &[4, 5, 6, 7, 8, 9, 10, 11]), 0, "only two of these came after it");
        assert_eq!(deliver(&mut board, &mut fack, &[12]), 1);
    }
}

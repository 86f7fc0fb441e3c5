//! The recovery state machine (Linux `tcp_fastretrans_alert`): what a dubious acknowledgement means.

use super::Sender;
use super::ack::News;
use control::{Cause, Event, Phase};
use units::Instant;

impl Sender {
    pub(super) fn alert(&mut self, now: Instant, news: &mut News, prior_una: u64) {
        self.transmit.new_data_only = false;
        if self.check_reneging(now) {
            return;
        }
        self.try_leave(now, news.echo);
        match self.phase {
            Phase::Recovery => {
                if news.advanced && self.try_undo_partially(now, news.echo, prior_una) {
                    return;
                }
                if self.try_undo_by_duplicates(now) {
                    self.try_to_open(now, news.marked);
                }
                self.detect_loss(now, news);
                if self.phase != Phase::Recovery && self.board.counts().lost > 0 {
                    self.enter_recovery(now);
                }
                return;
            }
            Phase::Loss => {
                self.process_loss(now, news);
                self.detect_loss(now, news);
                if !(self.phase == Phase::Open || news.lost_retransmission) {
                    return;
                }
            }
            Phase::Open | Phase::Disorder | Phase::Cwr => {
                if self.phase <= Phase::Disorder {
                    self.try_undo_by_duplicates(now);
                }
                self.detect_loss(now, news);
            }
        }
        if self.board.counts().lost == 0 {
            self.try_to_open(now, news.marked);
        } else {
            self.enter_recovery(now);
        }
    }

    /// Everything that was outstanding when the phase began is acknowledged.
    fn try_leave(&mut self, now: Instant, echo: u32) {
        if self.phase == Phase::Open {
            self.undo.first_retransmission = 0;
            return;
        }
        if self.board.una() < self.high {
            return;
        }
        match self.phase {
            // One more packet must be acked, so that a mark echoed at the edge does not count twice.
            Phase::Cwr if self.board.una() > self.high => {
                self.notify(now, &Event::Recovered { settle: true });
                self.phase = Phase::Open;
            }
            Phase::Recovery => {
                self.try_undo_at_end(now, echo);
                self.phase = Phase::Open;
                let settle = self.undo.marker.is_some();
                self.notify(now, &Event::Recovered { settle });
            }
            _ => {}
        }
    }

    pub(super) fn enter_recovery(&mut self, now: Instant) {
        if self.phase == Phase::Recovery {
            return;
        }
        self.counters.recoveries += 1;
        let outstanding = self.board.counts().retransmitted + u32::from(self.transmit.probe_retransmitted());
        self.undo.begin(self.board.una(), outstanding);
        if self.phase != Phase::Cwr {
            self.high = self.board.next();
            self.transmit.forget_probe();
            self.sent_since = 0;
        }
        self.notify(now, &Event::Congestion { cause: Cause::Loss, cut: true, in_flight: self.in_flight() });
        self.phase = Phase::Recovery;
    }

    /// The window shrinks without loss: an ECN echo or a local drop.
    pub(super) fn enter_reduction(&mut self, now: Instant, cause: Cause) {
        if self.phase >= Phase::Cwr {
            return;
        }
        self.undo.marker = None;
        self.high = self.board.next();
        self.transmit.forget_probe();
        self.sent_since = 0;
        self.notify(now, &Event::Congestion { cause, cut: true, in_flight: self.in_flight() });
        self.phase = Phase::Cwr;
        self.transmit.reduced = cause == Cause::Mark;
    }

    fn try_to_open(&mut self, now: Instant, marked: bool) {
        if self.board.counts().retransmitted == 0 {
            self.undo.first_retransmission = 0;
        }
        if marked {
            self.enter_reduction(now, Cause::Mark);
        }
        if self.phase != Phase::Cwr {
            self.try_keep_open();
        }
    }

    pub(super) fn try_keep_open(&mut self) {
        let counts = self.board.counts();
        let clean = counts.sacked + counts.lost + counts.retransmitted == 0;
        let phase = if clean { Phase::Open } else { Phase::Disorder };
        if phase != self.phase {
            self.phase = phase;
            self.high = self.board.next();
        }
    }

    /// In recovery, the head was filled by an original that had only been late.
    fn try_undo_partially(&mut self, now: Instant, echo: u32, prior_una: u64) -> bool {
        if self.undo.marker.is_none() || !self.original_was_late(echo) {
            return false;
        }
        self.rack.on_reordering(prior_una, self.board.highest_sacked());
        // Retransmissions still out may be needless too: wait for them, send no more.
        if self.board.counts().retransmitted > 0 {
            self.transmit.new_data_only = true;
            return true;
        }
        self.undo.first_retransmission = 0;
        self.undo_reduction(now, true);
        self.try_keep_open();
        true
    }

    pub(super) fn detect_loss(&mut self, now: Instant, news: &mut News) {
        let retransmitted = self.board.counts().retransmitted;
        let window = self.reordering_window();
        let (lost, wait) = self.rack.detect(now, &mut self.board, window);
        self.counters.lost += u64::from(lost);
        self.timers.set_reordering(now, wait, self.config.tick);
        news.lost_retransmission |= self.board.counts().retransmitted < retransmitted;
    }

    /// After a timeout. F-RTO (RFC 5682): first find out whether the timeout was spurious.
    fn process_loss(&mut self, now: Instant, news: &News) {
        let recovered = self.board.una() >= self.high;
        if news.advanced && self.may_undo(news.echo) {
            return self.undo_timeout(now);
        }
        if self.transmit.spurious_timeout_possible {
            if news.original_delivered {
                return self.undo_timeout(now);
            }
            if self.board.next() > self.high {
                if news.sacked || !news.advanced {
                    self.transmit.spurious_timeout_possible = false;
                }
            } else if news.advanced && !recovered {
                self.high = self.board.next();
                if self.can_send_new() {
                    self.transmit.new_data_only = true;
                    return;
                }
                self.transmit.spurious_timeout_possible = false;
            }
        }
        if recovered {
            self.try_undo_at_end(now, news.echo);
            self.phase = Phase::Open;
        }
    }

    fn undo_timeout(&mut self, now: Instant) {
        self.undo_reduction(now, true);
        self.timers.retransmissions = 0;
        self.transmit.spurious_timeout_possible = false;
        self.phase = Phase::Open;
    }

    /// The receiver went back on a SACK: the head is SACKed, and yet not acknowledged.
    fn check_reneging(&mut self, now: Instant) -> bool {
        let head = self.board.una();
        let reneged = self.board.counts().sacked > 0 && self.board.record(head).is_sacked();
        if reneged {
            self.board.renege();
            self.timers.expire_soon(now);
        }
        reneged
    }
}

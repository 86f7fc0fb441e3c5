//! The recovery state machine (Linux `tcp_fastretrans_alert`): what a dubious acknowledgement means.

use super::Sender;
use super::ack::{Before, News};
use control::{Cause, Event, Phase};
use units::Instant;

impl Sender {
    pub(super) fn alert(&mut self, now: Instant, news: &mut News, before: &Before) {
        self.transmit.new_data_only = false;
        if news.marked && self.phase >= Phase::Recovery && self.undo.marker.is_some() {
            self.note_mark(now);
        }
        if self.seems_reneged(now, news) {
            return;
        }
        if self.try_leave(now, news) {
            return;
        }
        match self.phase {
            Phase::Recovery => {
                if !news.advanced {
                    self.count_repeated(news);
                } else if self.try_undo_partially(now, news.echo, before.una) {
                    return;
                }
                if self.try_undo_by_duplicates(now) {
                    self.try_to_open(now, news.marked);
                }
                self.detect_loss(now, news);
                if self.phase != Phase::Recovery && self.board.counts().lost > 0 {
                    self.enter_recovery(now, news.marked);
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
                if !self.config.sack && news.advanced {
                    self.board.forget_repeated();
                }
                self.count_repeated(news);
                if self.phase <= Phase::Disorder {
                    self.try_undo_by_duplicates(now);
                }
                self.detect_loss(now, news);
            }
        }
        if self.board.counts().lost == 0 {
            self.try_to_open(now, news.marked);
        } else {
            self.enter_recovery(now, news.marked);
        }
    }

    /// Everything that was outstanding when the phase began is acknowledged. True if the alert ends with it.
    fn try_leave(&mut self, now: Instant, news: &News) -> bool {
        if self.phase == Phase::Open {
            self.undo.first_retransmission = 0;
            return false;
        }
        if self.board.una() < self.high {
            return false;
        }
        match self.phase {
            // One more packet must be acked, so that a mark echoed at the edge does not count twice.
            Phase::Cwr if self.board.una() > self.high => {
                self.notify(now, &Event::Recovered { settle: true });
                self.phase = Phase::Open;
                false
            }
            Phase::Recovery => {
                if !self.config.sack {
                    self.board.forget_repeated();
                }
                self.try_undo_at_end(now, news.echo);
                if self.must_not_reopen() {
                    return true;
                }
                self.phase = Phase::Open;
                let settle = self.undo.marker.is_some() || self.fack.is_some();
                self.notify(now, &Event::Recovered { settle });
                false
            }
            _ => false,
        }
    }

    pub(super) fn enter_recovery(&mut self, now: Instant, marked: bool) {
        if self.phase == Phase::Recovery {
            return;
        }
        self.counters.recoveries += 1;
        if !self.board.any_retransmitted() {
            self.undo.first_retransmission = 0;
        }
        let outstanding = self.board.counts().retransmitted + u32::from(self.transmit.probe_retransmitted());
        self.begin_episode(self.board.una(), outstanding);
        if self.phase != Phase::Cwr {
            self.begin_reduction();
        }
        self.notify(now, &Event::Congestion { cause: Cause::Loss, cut: true, in_flight: self.in_flight() });
        self.phase = Phase::Recovery;
        if marked {
            self.note_mark(now);
        }
    }

    /// The window shrinks without loss: an ECN echo or a local drop.
    pub(super) fn enter_reduction(&mut self, now: Instant, cause: Cause) {
        if self.phase >= Phase::Cwr {
            return;
        }
        self.undo.marker = None;
        self.begin_reduction();
        self.notify(now, &Event::Congestion { cause, cut: true, in_flight: self.in_flight() });
        self.phase = Phase::Cwr;
    }

    fn begin_reduction(&mut self) {
        self.high = self.board.next();
        self.transmit.forget_probe();
        self.sent_since = 0;
        self.transmit.reduced = self.config.ecn;
    }

    /// A mark during a reduction costs nothing more, but the reduction is then no mistake.
    fn note_mark(&mut self, now: Instant) {
        self.undo.marked = true;
        self.notify(now, &Event::Congestion { cause: Cause::Mark, cut: false, in_flight: self.in_flight() });
    }

    fn try_to_open(&mut self, now: Instant, marked: bool) {
        if !self.board.any_retransmitted() {
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
        let clean = counts.sacked + counts.lost == 0 && !self.board.any_retransmitted();
        let phase = if clean { Phase::Open } else { Phase::Disorder };
        if phase != self.phase {
            self.phase = phase;
            self.high = self.board.next();
        }
    }

    /// In recovery, the head was filled by an original that had only been late. True if nothing may be retransmitted now.
    fn try_undo_partially(&mut self, now: Instant, echo: u32, prior_una: u64) -> bool {
        if self.undo.marker.is_none() || !self.original_was_late(echo) {
            return false;
        }
        self.rack.on_reordering(prior_una, self.board.sacked_end());
        // Retransmissions still out may be needless too: wait for them, send no more.
        if self.board.counts().retransmitted > 0 {
            self.transmit.new_data_only = true;
            return true;
        }
        if !self.board.any_retransmitted() {
            self.undo.first_retransmission = 0;
        }
        self.undo_reduction(now, true);
        self.try_keep_open();
        false
    }

    fn detect_loss(&mut self, now: Instant, news: &mut News) {
        if self.board.counts().out == 0 {
            return;
        }
        if !self.config.sack {
            return self.mark_head(news.advanced);
        }
        let retransmitted = self.board.counts().retransmitted;
        let window = self.reordering_window();
        let (lost, wait) = match &self.fack {
            Some(fack) => (fack.detect(&mut self.board), None),
            None => self.rack.detect(now, &mut self.board, window),
        };
        self.counters.lost += u64::from(lost);
        if self.timers.set_reordering(now, wait, self.config.tick) {
            news.restarts_timers = false;
        }
        let lost_again = retransmitted.saturating_sub(self.board.counts().retransmitted);
        self.counters.lost_retransmissions += u64::from(lost_again);
        news.lost_retransmission |= lost_again > 0;
    }

    /// After a timeout. F-RTO (RFC 5682): first find out whether the timeout was spurious.
    fn process_loss(&mut self, now: Instant, news: &News) {
        let recovered = self.board.una() >= self.high;
        if news.advanced && self.may_undo(news.echo) {
            return self.undo_timeout(now, false);
        }
        if self.transmit.spurious_timeout_possible {
            if news.original_delivered {
                self.counters.spurious_timeouts += 1;
                return self.undo_timeout(now, true);
            }
            if self.board.next() > self.high {
                if news.sacked || news.repeated {
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
            if !self.must_not_reopen() {
                self.phase = Phase::Open;
            }
        } else if !self.config.sack {
            // Without SACK a duplicate acknowledgement says that F-RTO's new data has arrived.
            if self.board.next() > self.high && news.repeated {
                self.count_repeated(news);
            } else if news.advanced {
                self.board.forget_repeated();
            }
        }
    }

    fn undo_timeout(&mut self, now: Instant, by_original: bool) {
        self.undo_reduction(now, true);
        self.timers.retransmissions = 0;
        self.transmit.spurious_timeout_possible = false;
        if !self.must_not_reopen() && (by_original || self.config.sack) {
            self.phase = Phase::Open;
        }
    }

    /// The head is SACKed, and yet not acknowledged: the receiver seems to have gone back on its word. It may also be a
    /// mere delay, so that only a timer's expiry makes it certain.
    fn seems_reneged(&mut self, now: Instant, news: &mut News) -> bool {
        let reneged = news.advanced && self.board.head_is_sacked();
        if reneged {
            let wait = self.round_trip.smoothed() / 2;
            self.timers.expire_soon(now, wait, self.config.tick);
            news.restarts_timers = false;
        }
        reneged
    }
}

//! Three timers: retransmission (RFC 6298), tail-loss probe and reordering (RFC 8985).

use super::{Sender, handshake::Handshake};
use control::{Cause, Event, Phase};
use units::{Instant, Span};

/// What is pending. The probe's time follows from the last progress, so that it costs nothing to move.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    retransmission: Instant,
    reordering: Instant,
    probe: Instant,
    /// Doublings of the timeout.
    pub backoff: u32,
    /// Timeouts since the last progress.
    pub retransmissions: u32,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            retransmission: Instant::NEVER,
            reordering: Instant::NEVER,
            probe: Instant::NEVER,
            backoff: 0,
            retransmissions: 0,
        }
    }
}

/// Added to waits that must not be early (`TCP_TIMEOUT_MIN_US`).
const SLACK: Span = Span::from_millis(2);
/// A lone packet's acknowledgement may be delayed by up to this.
const DELAYED_ACK: Span = Span::from_millis(200);
/// Probe timeout without an RTT sample.
const BLIND_PROBE: Span = Span::from_secs(1);
/// Greatest timeout (`TCP_RTO_MAX`).
const MAX_TIMEOUT: Span = Span::from_secs(120);
/// A reneged SACK is given at least this long to be a mere delay.
const RENEGING_WAIT: Span = Span::from_millis(10);

/// When a timer set `now` expires: its wait is rounded up to ticks, and counted from the present one (Linux's jiffies).
fn expiry(now: Instant, wait: Span, tick: Span) -> Instant {
    Instant((now.0 / tick.0 + wait.0.div_ceil(tick.0)).saturating_mul(tick.0))
}

impl Timers {
    pub(super) fn retransmission(&self) -> Instant {
        self.retransmission
    }

    /// Something is in doubt for so long. True if so.
    pub(super) fn set_reordering(&mut self, now: Instant, wait: Option<Span>, tick: Span) -> bool {
        if let Some(wait) = wait {
            self.reordering = expiry(now, wait + SLACK, tick);
        }
        wait.is_some()
    }

    pub(super) fn expire_soon(&mut self, now: Instant, wait: Span, tick: Span) {
        self.retransmission = expiry(now, wait.max(RENEGING_WAIT), tick);
        self.probe = Instant::NEVER;
        self.reordering = Instant::NEVER;
    }
}

impl Sender {
    /// When something must happen next, if no input comes.
    pub(super) fn deadline(&self) -> Instant {
        self.timers.retransmission.min(self.timers.reordering).min(self.timers.probe).min(self.syn_deadline())
    }

    fn timeout(&self) -> Span {
        (self.round_trip.timeout() * (1 << self.timers.backoff.min(20))).min(MAX_TIMEOUT)
    }

    /// Data was acknowledged: both timers start afresh.
    pub(super) fn restart_timers(&mut self, now: Instant) {
        self.timers.retransmissions = 0;
        if self.board.counts().out == 0 {
            self.timers = Timers { backoff: self.timers.backoff, ..Timers::default() };
            return;
        }
        self.timers.retransmission = expiry(now, self.timeout(), self.config.tick);
        self.schedule_probe(now);
    }

    /// The head was sent again.
    pub(super) fn restart_retransmission_timer(&mut self, now: Instant) {
        self.timers.retransmission = expiry(now, self.timeout(), self.config.tick);
    }

    /// New data left.
    pub(super) fn on_new_data(&mut self, now: Instant, was_empty: bool) {
        if was_empty {
            self.timers.retransmission = expiry(now, self.timeout(), self.config.tick);
        }
        self.schedule_probe(now);
    }

    /// RFC 8985 section 7.2, with Linux's slack. Only while nothing is wrong.
    fn schedule_probe(&mut self, now: Instant) {
        let out = self.board.counts().out;
        if !self.config.sack
            || self.fack.is_some()
            || out == 0
            || !matches!(self.phase, Phase::Open | Phase::Cwr)
            || self.transmit.probe_outstanding()
        {
            self.timers.probe = Instant::NEVER;
            return;
        }
        let srtt = self.round_trip.smoothed();
        let wait = match out {
            _ if srtt == Span::ZERO => BLIND_PROBE,
            1 => srtt * 2 + DELAYED_ACK,
            _ => srtt * 2 + SLACK,
        };
        self.timers.probe = expiry(now, wait, self.config.tick).min(self.timers.retransmission);
    }

    pub(super) fn on_timeout(&mut self, now: Instant) {
        if self.handshake != Handshake::Open {
            return;
        }
        if self.timers.reordering <= now {
            self.timers.reordering = Instant::NEVER;
            self.on_reordering_timeout(now);
        }
        if self.timers.probe <= now && self.timers.probe <= self.timers.retransmission {
            self.timers.probe = Instant::NEVER;
            self.transmit.request_probe();
            self.timers.retransmission = expiry(now, self.timeout(), self.config.tick);
        }
        if self.timers.retransmission <= now {
            self.on_retransmission_timeout(now);
        }
    }

    fn on_reordering_timeout(&mut self, now: Instant) {
        let window = self.reordering_window();
        let (lost, wait) = self.rack.detect_again(now, &mut self.board, window);
        self.counters.lost += u64::from(lost);
        self.timers.set_reordering(now, wait, self.config.tick);
        if lost > 0 {
            self.enter_recovery(now, false);
        }
    }

    pub(super) fn reordering_window(&self) -> Span {
        self.rack.window(self.phase, self.board.counts().sacked, self.min_rtt.get(), self.round_trip.smoothed())
    }

    /// RFC 6298 section 5.4-5.7; everything outstanding is lost but what was sent within the last round trip.
    fn on_retransmission_timeout(&mut self, now: Instant) {
        if self.board.counts().out == 0 {
            self.timers.retransmission = Instant::NEVER;
            return;
        }
        self.counters.timeouts += 1;
        if self.phase <= Phase::Disorder && self.board.counts().sacked >= self.config.reordering {
            self.rack.forget_reordering(self.config.reordering);
        }
        let first = self.phase < Phase::Recovery;
        let (una, next) = (self.board.una(), self.board.next());
        let cut = self.phase <= Phase::Disorder
            || una >= self.high
            || (self.phase == Phase::Loss && self.timers.retransmissions == 0);
        let reneged = self.forget_sacks();
        for seq in una..next {
            if reneged || seq == una || !self.rack.is_recent(now, self.board.record(seq).sent) {
                self.counters.lost += u64::from(self.board.mark_lost(seq));
            }
        }
        if cut {
            let probe = u32::from(self.transmit.probe_retransmitted());
            self.begin_episode(una, self.board.counts().retransmitted + probe);
        }
        self.transmit.spurious_timeout_possible = self.fack.is_none() && (first || self.timers.retransmissions > 0);
        self.transmit.new_data_only = false;
        self.transmit.forget_probe();
        self.high = next;
        self.timers.retransmissions += 1;
        self.timers.backoff += 1;
        self.timers.probe = Instant::NEVER;
        self.timers.reordering = Instant::NEVER;
        self.timers.retransmission = expiry(now, self.timeout(), self.config.tick);
        self.sent_since = 0;
        self.transmit.reduced = self.config.ecn;
        self.notify(now, &Event::Congestion { cause: Cause::Timeout, cut, in_flight: self.in_flight() });
        self.phase = Phase::Loss;
    }

    /// True if the receiver went back on its SACKs: the head had one. Without SACK, duplicates are counted afresh.
    fn forget_sacks(&mut self) -> bool {
        let reneged = self.board.head_is_sacked();
        if reneged {
            self.counters.renegings += 1;
            self.board.renege();
            self.known_blocks = crate::tcp::Blocks::default();
        } else if !self.config.sack {
            self.board.forget_repeated();
        }
        reneged
    }
}

//! Three timers: retransmission (RFC 6298), tail-loss probe and reordering (RFC 8985).

use super::{Sender, handshake::Handshake};
use crate::path::ControllerHandle;
use control::CaState;
use units::{Instant, Span};

/// Expiry times of the timers; [`Instant::NEVER`] where a timer is not set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    retransmission: Instant,
    reordering: Instant,
    tlp: Instant,
    /// Exponential backoff: how many times the RTO was doubled (Linux `icsk_backoff`).
    pub backoff: u32,
    /// Timeouts since the last progress (Linux `icsk_retransmits`).
    pub retransmissions: u32,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            retransmission: Instant::NEVER,
            reordering: Instant::NEVER,
            tlp: Instant::NEVER,
            backoff: 0,
            retransmissions: 0,
        }
    }
}

/// Added to the probe and reordering timeouts (`TCP_TIMEOUT_MIN_US`).
const TIMEOUT_MIN: Span = Span::from_millis(2);
/// Longest delay of the acknowledgement of a lone packet (`TCP_RTO_MIN`).
const DELAYED_ACK: Span = Span::from_millis(200);
/// Probe timeout without an RTT sample.
const TLP_WITHOUT_RTT: Span = Span::from_secs(1);
/// Greatest timeout (`TCP_RTO_MAX`).
const MAX_TIMEOUT: Span = Span::from_secs(120);
/// Least wait before SACK reneging is taken for certain.
const RENEGING_WAIT: Span = Span::from_millis(10);

/// When a timer set `now` expires: its wait is rounded up to ticks, and counted from the present one (Linux's jiffies).
fn expiry(now: Instant, wait: Span, tick: Span) -> Instant {
    Instant((now.0 / tick.0 + wait.0.div_ceil(tick.0)).saturating_mul(tick.0))
}

impl Timers {
    pub(super) fn retransmission(&self) -> Instant {
        self.retransmission
    }

    /// Sets the reordering timer if there is a `wait`. Returns whether there is.
    pub(super) fn set_reordering(&mut self, now: Instant, wait: Option<Span>, tick: Span) -> bool {
        if let Some(wait) = wait {
            self.reordering = expiry(now, wait + TIMEOUT_MIN, tick);
        }
        wait.is_some()
    }

    pub(super) fn expire_after(&mut self, now: Instant, wait: Span, tick: Span) {
        self.retransmission = expiry(now, wait.max(RENEGING_WAIT), tick);
        self.tlp = Instant::NEVER;
        self.reordering = Instant::NEVER;
    }
}

impl Sender {
    /// The earliest expiry of all timers.
    pub(super) fn deadline(&self) -> Instant {
        self.timers.retransmission.min(self.timers.reordering).min(self.timers.tlp).min(self.syn_deadline())
    }

    fn timeout(&self) -> Span {
        (self.path.rtt.rto() * (1 << self.timers.backoff.min(20))).min(MAX_TIMEOUT)
    }

    /// Restarts the retransmission and probe timers after data was acknowledged (Linux `tcp_rearm_rto`).
    pub(super) fn restart_timers(&mut self, now: Instant) {
        self.timers.retransmissions = 0;
        if self.scoreboard.counts().packets_out == 0 {
            self.timers = Timers { backoff: self.timers.backoff, ..Timers::default() };
            return;
        }
        self.timers.retransmission = expiry(now, self.timeout(), self.config.tick);
        self.schedule_tlp(now);
    }

    /// Restarts the retransmission timer after the head was retransmitted.
    pub(super) fn restart_retransmission_timer(&mut self, now: Instant) {
        self.timers.retransmission = expiry(now, self.timeout(), self.config.tick);
    }

    /// Sets the timers after new data was sent.
    pub(super) fn on_new_data(&mut self, now: Instant, was_empty: bool) {
        if was_empty {
            self.timers.retransmission = expiry(now, self.timeout(), self.config.tick);
        }
        self.schedule_tlp(now);
    }

    /// Sets the probe timer (RFC 8985 section 7.2, Linux `tcp_schedule_loss_probe`), in the states Open and CWR only.
    fn schedule_tlp(&mut self, now: Instant) {
        let out = self.scoreboard.counts().packets_out;
        if !self.config.sack
            || self.fack.is_some()
            || out == 0
            || !matches!(self.path.ca_state, CaState::Open | CaState::Cwr)
            || self.transmit.tlp_outstanding()
        {
            self.timers.tlp = Instant::NEVER;
            return;
        }
        let srtt = self.path.rtt.srtt();
        let wait = match out {
            _ if srtt == Span::ZERO => TLP_WITHOUT_RTT,
            1 => srtt * 2 + DELAYED_ACK,
            _ => srtt * 2 + TIMEOUT_MIN,
        };
        self.timers.tlp = expiry(now, wait, self.config.tick).min(self.timers.retransmission);
    }

    pub(super) fn on_timeout(&mut self, now: Instant, controller: &mut ControllerHandle) {
        if self.handshake != Handshake::Established {
            return;
        }
        if self.timers.reordering <= now {
            self.timers.reordering = Instant::NEVER;
            self.on_reordering_timeout(now, controller);
        }
        if self.timers.tlp <= now && self.timers.tlp <= self.timers.retransmission {
            self.timers.tlp = Instant::NEVER;
            self.transmit.request_tlp();
            self.timers.retransmission = expiry(now, self.timeout(), self.config.tick);
        }
        if self.timers.retransmission <= now {
            self.enter_loss(now, controller);
        }
    }

    fn on_reordering_timeout(&mut self, now: Instant, controller: &mut ControllerHandle) {
        let window = self.reo_wnd();
        let (lost, wait) = self.rack.detect_loss(now, &mut self.scoreboard, window);
        self.path.count_lost(lost);
        self.timers.set_reordering(now, wait, self.config.tick);
        if lost > 0 {
            self.enter_recovery(now, false, controller);
        }
    }

    pub(super) fn reo_wnd(&self) -> Span {
        self.rack.reo_wnd(
            self.path.ca_state,
            self.scoreboard.counts().sacked_out,
            self.path.min_rtt(),
            self.path.rtt.srtt(),
        )
    }

    /// Retransmission timeout (RFC 6298 sections 5.4 to 5.7, Linux `tcp_enter_loss`): everything outstanding is lost
    /// but what was sent within the last round trip.
    fn enter_loss(&mut self, now: Instant, controller: &mut ControllerHandle) {
        if self.scoreboard.counts().packets_out == 0 {
            self.timers.retransmission = Instant::NEVER;
            return;
        }
        self.counters.timeouts += 1;
        if self.path.ca_state <= CaState::Disorder && self.scoreboard.counts().sacked_out >= self.config.reordering {
            self.rack.reset_reordering(self.config.reordering);
        }
        let first = self.path.ca_state < CaState::Recovery;
        let (una, next) = (self.scoreboard.snd_una(), self.scoreboard.snd_nxt());
        let reduce_cwnd = self.path.ca_state <= CaState::Disorder
            || una >= self.path.high_seq
            || (self.path.ca_state == CaState::Loss && self.timers.retransmissions == 0);
        let reneged = self.forget_sacks();
        for seq in una..next {
            if reneged || seq == una || !self.rack.is_recent(now, self.scoreboard.packet(seq).sent) {
                self.path.count_lost(u32::from(self.scoreboard.mark_lost(seq)));
            }
        }
        if reduce_cwnd {
            let tlp = u32::from(self.transmit.tlp_retransmitted());
            self.init_undo(una, self.scoreboard.counts().retrans_out + tlp);
        }
        self.transmit.frto = self.fack.is_none() && (first || self.timers.retransmissions > 0);
        self.transmit.new_data_only = false;
        self.transmit.clear_tlp();
        self.timers.retransmissions += 1;
        self.timers.backoff += 1;
        self.timers.tlp = Instant::NEVER;
        self.timers.reordering = Instant::NEVER;
        self.timers.retransmission = expiry(now, self.timeout(), self.config.tick);
        self.transmit.cwr_pending = self.config.ecn;
        let outstanding = self.outstanding();
        self.path.enter_loss(now, reduce_cwnd, &outstanding, controller);
    }

    /// Forgets every SACK if the head is SACKed: the receiver has reneged. Returns whether. Without SACK, duplicate
    /// acknowledgements are counted afresh.
    fn forget_sacks(&mut self) -> bool {
        let reneged = self.scoreboard.head_is_sacked();
        if reneged {
            self.counters.renegings += 1;
            self.scoreboard.renege();
            self.recv_sack_cache = crate::tcp::SackBlocks::default();
        } else if !self.config.sack {
            self.scoreboard.reset_reno_sack();
        }
        reneged
    }
}

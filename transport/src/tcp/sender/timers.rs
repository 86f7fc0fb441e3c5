//! Four timers: retransmission (RFC 6298), tail-loss probe and reordering (RFC 8985), and persist (RFC 9293 section
//! 3.8.6.1).

use super::Sender;
use crate::path::ControllerHandle;
use crate::tcp::timer_wheel::expiry;
use control::CaState;
use units::{Instant, Span};

/// Expiry times of the timers; [`Instant::NEVER`] where a timer is not set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    retransmit_timer: Instant,
    reordering: Instant,
    tlp: Instant,
    persist: Instant,
    /// The probe timer is to be set once nothing more is sent.
    is_tlp_due: bool,
    /// Probes of the closed receive window since it was closed.
    window_probes: u32,
    /// Exponential backoff: how many times the RTO was doubled (Linux `icsk_backoff`).
    pub backoff: u32,
    /// Timeouts since the last progress (Linux `icsk_retransmits`).
    pub retransmits: u32,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            retransmit_timer: Instant::NEVER,
            reordering: Instant::NEVER,
            tlp: Instant::NEVER,
            persist: Instant::NEVER,
            is_tlp_due: false,
            window_probes: 0,
            backoff: 0,
            retransmits: 0,
        }
    }
}

/// Added to the probe and reordering timeouts (`TCP_TIMEOUT_MIN_US`).
const TIMEOUT_MIN: Span = Span::from_millis(2);
/// Worst case of a delayed acknowledgement, for the probe timeout of a single packet (RFC 8985 section 7.2; Linux
/// `TCP_RTO_MIN`).
const WC_DEL_ACK_T: Span = Span::from_millis(200);
/// Probe timeout without an RTT sample (`TCP_TIMEOUT_INIT`).
const TIMEOUT_INIT: Span = Span::from_secs(1);
/// Maximum of the RTO (`TCP_RTO_MAX`).
const RTO_MAX: Span = Span::from_secs(120);
/// Minimum delay before SACK reneging is certain.
const MIN_RENEGING_DELAY: Span = Span::from_millis(10);

impl Timers {
    pub(super) fn retransmit_timer(&self) -> Instant {
        self.retransmit_timer
    }

    /// Sets the reordering timer if there is a `timeout`. Returns whether it was set.
    pub(super) fn set_reordering(&mut self, now: Instant, timeout: Option<Span>, tick: Span) -> bool {
        if let Some(timeout) = timeout {
            self.reordering = expiry(now, timeout + TIMEOUT_MIN, tick);
        }
        timeout.is_some()
    }

    /// Sets the retransmission timer alone to the time after which SACK reneging is certain.
    pub(super) fn set_reneging_timer(&mut self, now: Instant, delay: Span, tick: Span) {
        self.retransmit_timer = expiry(now, delay.max(MIN_RENEGING_DELAY), tick);
        self.tlp = Instant::NEVER;
        self.reordering = Instant::NEVER;
    }
}

impl Sender {
    /// The earliest expiry of all timers, once the connection is established.
    pub(super) fn deadline(&self) -> Instant {
        let timers = &self.timers;
        timers.retransmit_timer.min(timers.reordering).min(timers.tlp).min(timers.persist)
    }

    /// Sets the persist timer if there is data, nothing is outstanding, and the receive window is closed (`is_closed`):
    /// the acknowledgement that opened it may be lost.
    pub(super) fn set_persist_timer(&mut self, now: Instant, is_closed: bool) {
        if !is_closed || self.scoreboard.counts().packets_out > 0 {
            (self.timers.persist, self.timers.window_probes) = (Instant::NEVER, 0);
        } else if self.timers.persist == Instant::NEVER {
            let timeout = self.path.rtt.rto() * (1 << self.timers.window_probes.min(20));
            self.timers.persist = expiry(now, timeout.min(RTO_MAX), self.config.tick);
        }
    }

    /// Counts a probe that is sent, and starts the next timeout, twice as long.
    pub(super) fn restart_persist_timer(&mut self, now: Instant) {
        self.timers.window_probes += 1;
        self.timers.persist = Instant::NEVER;
        self.set_persist_timer(now, true);
    }

    fn rto_with_backoff(&self) -> Span {
        (self.path.rtt.rto() * (1 << self.timers.backoff.min(20))).min(RTO_MAX)
    }

    /// Restarts the retransmission and probe timers after data was acknowledged (Linux `tcp_rearm_rto`).
    pub(super) fn restart_timers(&mut self, now: Instant) {
        self.timers.retransmits = 0;
        if self.scoreboard.counts().packets_out == 0 {
            self.timers = Timers { backoff: self.timers.backoff, ..Timers::default() };
            return;
        }
        self.timers.retransmit_timer = expiry(now, self.rto_with_backoff(), self.config.tick);
        self.timers.is_tlp_due = true;
    }

    /// Restarts the retransmission timer after the head was retransmitted.
    pub(super) fn restart_retransmission_timer(&mut self, now: Instant) {
        self.timers.retransmit_timer = expiry(now, self.rto_with_backoff(), self.config.tick);
    }

    /// Sets the timers after new data was sent.
    pub(super) fn on_new_data(&mut self, now: Instant, was_idle: bool) {
        if was_idle {
            self.timers.retransmit_timer = expiry(now, self.rto_with_backoff(), self.config.tick);
        }
        self.timers.is_tlp_due = true;
    }

    /// Sets the probe timer, if data was acknowledged or new data sent: once for both.
    pub(super) fn schedule_due_tlp(&mut self, now: Instant) {
        if std::mem::take(&mut self.timers.is_tlp_due) {
            self.schedule_tlp(now);
        }
    }

    /// Sets the probe timer (RFC 8985 section 7.2, Linux `tcp_schedule_loss_probe`), in the states Open and CWR only.
    fn schedule_tlp(&mut self, now: Instant) {
        let packets_out = self.scoreboard.counts().packets_out;
        if !self.config.sack
            || self.fack.is_some()
            || packets_out == 0
            || !matches!(self.path.ca_state, CaState::Open | CaState::Cwr)
            || self.transmit.tlp_outstanding()
        {
            self.timers.tlp = Instant::NEVER;
            return;
        }
        let srtt = self.path.rtt.srtt();
        let timeout = match packets_out {
            _ if srtt == Span::ZERO => TIMEOUT_INIT,
            1 => srtt * 2 + WC_DEL_ACK_T,
            _ => srtt * 2 + TIMEOUT_MIN,
        };
        self.timers.tlp = expiry(now, timeout, self.config.tick).min(self.timers.retransmit_timer);
    }

    pub(super) fn on_timeout(&mut self, now: Instant, controller: &mut ControllerHandle) {
        if !self.is_established() {
            return;
        }
        if self.timers.reordering <= now {
            self.timers.reordering = Instant::NEVER;
            self.on_reordering_timeout(now, controller);
        }
        if self.timers.tlp <= now && self.timers.tlp <= self.timers.retransmit_timer {
            self.timers.tlp = Instant::NEVER;
            self.transmit.request_tlp();
            self.timers.retransmit_timer = expiry(now, self.rto_with_backoff(), self.config.tick);
        }
        if self.timers.retransmit_timer <= now {
            self.enter_loss(now, controller);
        }
        if self.timers.persist <= now {
            self.transmit.is_window_probe_due = true;
        }
    }

    fn on_reordering_timeout(&mut self, now: Instant, controller: &mut ControllerHandle) {
        let reo_wnd = self.reo_wnd();
        let (lost, timeout) = self.rack.detect_loss(now, &mut self.scoreboard, reo_wnd);
        self.path.count_lost(lost);
        self.timers.set_reordering(now, timeout, self.config.tick);
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

    /// Retransmission timeout (RFC 6298 sections 5.4 to 5.7, Linux `tcp_enter_loss`): all outstanding packets are lost,
    /// except those sent within the last round trip.
    fn enter_loss(&mut self, now: Instant, controller: &mut ControllerHandle) {
        if self.scoreboard.counts().packets_out == 0 {
            self.timers.retransmit_timer = Instant::NEVER;
            return;
        }
        self.counters.timeouts += 1;
        if self.path.ca_state <= CaState::Disorder && self.scoreboard.counts().sacked_out >= self.config.reordering {
            self.rack.reset_reordering(self.config.reordering);
        }
        let new_recovery = self.path.ca_state < CaState::Recovery;
        let (snd_una, snd_nxt) = (self.scoreboard.snd_una(), self.scoreboard.snd_nxt());
        let reduce_cwnd = self.path.ca_state <= CaState::Disorder
            || snd_una >= self.path.high_seq
            || (self.path.ca_state == CaState::Loss && self.timers.retransmits == 0);
        let has_reneged = self.check_sack_reneging();
        for seq in snd_una..snd_nxt {
            if has_reneged || seq == snd_una || !self.rack.within_rack_timeout(now, self.scoreboard.packet(seq).sent) {
                self.path.count_lost(u32::from(self.scoreboard.mark_lost(seq)));
            }
        }
        if reduce_cwnd {
            let tlp_retransmissions = u32::from(self.transmit.tlp_retransmitted());
            self.init_undo(snd_una, self.scoreboard.counts().retrans_out + tlp_retransmissions);
        }
        self.transmit.frto = self.fack.is_none() && (new_recovery || self.timers.retransmits > 0);
        self.transmit.frto_new_data = false;
        self.transmit.clear_tlp();
        self.timers.retransmits += 1;
        self.timers.backoff += 1;
        self.timers.tlp = Instant::NEVER;
        self.timers.reordering = Instant::NEVER;
        self.timers.retransmit_timer = expiry(now, self.rto_with_backoff(), self.config.tick);
        self.transmit.cwr_pending = self.config.ecn;
        let outstanding = self.outstanding();
        self.path.enter_loss(now, reduce_cwnd, &outstanding, controller);
    }

    /// Removes all SACK marks if the head is SACKed: the receiver has reneged. Returns whether it has. Without SACK,
    /// resets the count of duplicate acknowledgements.
    fn check_sack_reneging(&mut self) -> bool {
        let has_reneged = self.scoreboard.head_is_sacked();
        if has_reneged {
            self.counters.renegings += 1;
            self.scoreboard.renege();
            self.recv_sack_cache = crate::tcp::SackBlocks::default();
        } else if !self.config.sack {
            self.scoreboard.reset_reno_sack();
        }
        has_reneged
    }
}

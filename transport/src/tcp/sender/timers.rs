//! The sender's timer. As in Linux (`icsk_pending`), one timer is set at a time, of four kinds: retransmission
//! (RFC 6298), tail-loss probe and reordering (RFC 8985), and persist (RFC 9293 section 3.8.6.1).

use super::Sender;
use crate::path::ControllerHandle;
use crate::tcp::timer_wheel::{Wheel, expiry};
use control::CaState;
use units::{Instant, Span};

/// The kind of a timer: the action when it expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    Retransmission,
    LossProbe,
    Reordering,
    Persist,
}

/// The timer that is set, and the state on which it depends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    pending: Option<Timer>,
    /// Time at which it was set; [`Instant::NEVER`] if none is, or the expired one is being handled.
    start: Instant,
    timeout: Span,
    /// The wheel in which the timer waits, if its memory counts.
    wheel: Option<Wheel>,
    /// Whether new data was sent, so that the probe timer must be set once nothing more is sent.
    is_tlp_due: bool,
    /// The timer whose expiry was the latest input; data sent now does not set it again.
    pub expired: Option<Timer>,
    /// Probes of the receive window since it was closed.
    window_probes: u32,
    /// Whether the persist timer is set again, after an acknowledgement or a probe.
    persists: bool,
    /// Exponential backoff: the number of times that the RTO was doubled (Linux `icsk_backoff`).
    pub backoff: u32,
    /// Timeouts since the last progress (Linux `icsk_retransmits`).
    pub retransmits: u32,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            pending: None,
            start: Instant::NEVER,
            timeout: Span::ZERO,
            wheel: None,
            is_tlp_due: false,
            expired: None,
            window_probes: 0,
            persists: false,
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
    fn set(&mut self, timer: Timer, now: Instant, timeout: Span) {
        (self.pending, self.start, self.timeout) = (Some(timer), now, timeout);
        if let Some(wheel) = &mut self.wheel {
            wheel.set(now, timeout);
        }
    }

    fn clear(&mut self) {
        (self.pending, self.start) = (None, Instant::NEVER);
    }

    /// Restarts the time until the next window probe (Linux `tcp_ack_probe`).
    pub(super) fn restart_persist(&mut self) {
        if self.pending == Some(Timer::Persist) {
            self.persists = true;
            self.clear();
        }
    }

    fn is_running(&self) -> bool {
        self.start < Instant::NEVER
    }

    /// Sets the reordering timer, in place of any other, if there is a `timeout`. Returns whether it was set.
    pub(super) fn set_reordering(&mut self, now: Instant, timeout: Option<Span>, rto: Span) -> bool {
        if let Some(timeout) = timeout {
            self.set(Timer::Reordering, now, (timeout + TIMEOUT_MIN).min(rto));
        }
        timeout.is_some()
    }

    /// Sets the retransmission timer to the time after which SACK reneging is certain.
    pub(super) fn set_reneging_timer(&mut self, now: Instant, delay: Span) {
        self.set(Timer::Retransmission, now, delay.max(MIN_RENEGING_DELAY));
    }
}

impl Sender {
    /// Time at which the timer expires, once the connection is established; never if none is set. The timer may be set
    /// several times for one acknowledgement and the data sent after it, so ticks are counted here.
    #[inline]
    pub(super) fn deadline(&self) -> Instant {
        let Timers { start, timeout, wheel, .. } = &self.timers;
        match (self.timers.is_running(), wheel) {
            (true, None) => expiry(*start, *timeout, self.config.tick),
            (true, Some(wheel)) => wheel.expiry(),
            (false, _) => Instant::NEVER,
        }
    }

    /// Another timer of the host expires in this tick. The first call makes what the kernel's wheel remembers count, by which
    /// timers of 63 ticks or more expire up to eight ticks sooner or later.
    pub(crate) fn on_other_timer(&mut self, now: Instant) {
        self.timers.wheel.get_or_insert(Wheel::new(self.config.tick)).on_other_expiry(now);
    }

    /// Sets the persist timer if there is data, nothing is outstanding, and the receive window is closed (`is_closed`),
    /// because the acknowledgement that opened it may be lost.
    pub(super) fn set_persist_timer(&mut self, now: Instant, is_closed: bool) {
        if !is_closed || self.scoreboard.counts().packets_out > 0 {
            (self.timers.window_probes, self.timers.persists) = (0, false);
            if self.timers.pending == Some(Timer::Persist) {
                self.timers.clear();
            }
        } else if self.timers.pending != Some(Timer::Persist) {
            // A backoff by retransmissions without a measured RTT since (Karn) counts once at first (Linux 6.1
            // `tcp_probe0_base`), and then twice: in the timeout and in its backoff (`tcp_probe0_when`).
            let backoff = if self.timers.persists { self.timers.backoff + self.timers.window_probes } else { 0 };
            let timeout = self.rto_with_backoff() * (1 << backoff.min(20));
            self.timers.set(Timer::Persist, now, timeout.min(RTO_MAX));
        }
    }

    /// Counts a sent probe, and starts the next timeout, which is twice as long.
    pub(super) fn restart_persist_timer(&mut self, now: Instant) {
        self.timers.window_probes += 1;
        self.timers.persists = true;
        self.timers.clear();
        self.set_persist_timer(now, true);
    }

    #[inline]
    pub(super) fn rto_with_backoff(&self) -> Span {
        (self.path.rto_in_ticks() * (1 << self.timers.backoff.min(20))).min(RTO_MAX)
    }

    /// Time at which the retransmission timer expires, or will expire if the timer set in its place does nothing; never
    /// if nothing is outstanding.
    pub(crate) fn retransmission_timer(&self, now: Instant) -> Instant {
        match self.timers.pending {
            Some(Timer::Retransmission) => self.deadline(),
            Some(Timer::LossProbe | Timer::Reordering) if self.scoreboard.counts().packets_out > 0 => {
                now + self.rest_of_rto(now)
            }
            _ => Instant::NEVER,
        }
    }

    /// The remaining retransmission timeout, counted from the last sending of the oldest outstanding packet (Linux
    /// `tcp_rto_delta_us`); zero if it is over.
    fn rest_of_rto(&self, now: Instant) -> Span {
        let head = self.scoreboard.packet(self.scoreboard.snd_una());
        (head.sent + self.rto_with_backoff()).since(now)
    }

    /// Sets the retransmission timer if anything is outstanding (Linux `tcp_rearm_rto`). If it replaces the probe or
    /// the reordering timer, it is set to the remaining timeout.
    fn restart_retransmission_timer(&mut self, now: Instant) {
        if self.scoreboard.counts().packets_out == 0 {
            return self.timers.clear();
        }
        let timeout = match self.timers.pending {
            Some(Timer::Reordering | Timer::LossProbe) => self.rest_of_rto(now).max(Span::from_micros(1)),
            _ => self.rto_with_backoff(),
        };
        self.timers.set(Timer::Retransmission, now, timeout + self.pacing_delay(now));
    }

    /// Whole ticks until the pacer allows sending, by which timers are longer (Linux 6.1 `tcp_pacing_delay`).
    fn pacing_delay(&self, now: Instant) -> Span {
        if !self.is_paced() {
            return Span::ZERO;
        }
        let tick = self.config.tick.0.max(1);
        Span(self.path.pacer.delay(now).0 / tick * tick)
    }

    /// Sets the timer after data was acknowledged (Linux `tcp_set_xmit_timer`).
    pub(super) fn set_timer_after_ack(&mut self, now: Instant) {
        if !self.schedule_tlp(now, true) {
            self.restart_retransmission_timer(now);
        }
    }

    /// Restarts the retransmission timer after the head was retransmitted. If the reordering timer or this timer was
    /// the cause, it is already set.
    pub(super) fn on_head_retransmitted(&mut self, now: Instant) {
        if self.timers.pending != Some(Timer::Reordering) && self.timers.expired != Some(Timer::Retransmission) {
            let timeout = self.rto_with_backoff() + self.pacing_delay(now);
            self.timers.set(Timer::Retransmission, now, timeout);
        }
    }

    /// Sets the timers after new data was sent (Linux `tcp_event_new_data_sent`).
    #[inline]
    pub(super) fn on_new_data(&mut self, now: Instant, was_idle: bool) {
        if was_idle || self.timers.pending == Some(Timer::LossProbe) {
            self.restart_retransmission_timer(now);
        }
        self.timers.is_tlp_due = true;
    }

    /// Sets the timer once nothing more is sent: the probe timer after new data, and the retransmission timer after the
    /// reordering timer has expired.
    #[inline]
    pub(super) fn finish_timers(&mut self, now: Instant) {
        if std::mem::take(&mut self.timers.is_tlp_due) && self.timers.expired != Some(Timer::LossProbe) {
            self.schedule_tlp(now, false);
        }
        if self.timers.pending == Some(Timer::Reordering) && !self.timers.is_running() {
            self.restart_retransmission_timer(now);
        }
    }

    /// Sets the probe timer (RFC 8985 section 7.2, Linux `tcp_schedule_loss_probe`), only in the states Open and CWR.
    /// It does not go beyond the retransmission timeout, which is the whole timeout if it `restarts`. Returns whether
    /// it was set.
    fn schedule_tlp(&mut self, now: Instant, restarts: bool) -> bool {
        let packets_out = self.scoreboard.counts().packets_out;
        if !self.config.early_retrans
            || !self.config.sack
            || self.fack.is_some()
            || packets_out == 0
            || !matches!(self.path.ca_state, CaState::Open | CaState::Cwr)
        {
            return false;
        }
        let srtt = self.path.rtt.srtt();
        let timeout = match packets_out {
            _ if srtt == Span::ZERO => TIMEOUT_INIT,
            1 => srtt * 2 + WC_DEL_ACK_T,
            _ => srtt * 2 + TIMEOUT_MIN,
        };
        let rto = if restarts { self.rto_with_backoff() } else { self.rest_of_rto(now) };
        let timeout = if rto > Span::ZERO { timeout.min(rto) } else { timeout };
        self.timers.set(Timer::LossProbe, now, timeout + self.pacing_delay(now));
        true
    }

    /// Called after an attempt to send the probe (Linux `tcp_send_loss_probe`). If it was sent, the whole timeout
    /// begins; otherwise the remaining timeout continues.
    pub(super) fn on_tlp(&mut self, now: Instant, was_sent: bool) {
        if was_sent {
            self.timers.clear();
        }
        self.restart_retransmission_timer(now);
    }

    pub(super) fn on_timeout(&mut self, now: Instant, controller: &mut ControllerHandle) {
        if !self.is_established() || self.deadline() > now {
            return;
        }
        self.timers.start = Instant::NEVER;
        self.timers.expired = self.timers.pending;
        if let Some(wheel) = &mut self.timers.wheel {
            wheel.on_expiry(now);
        }
        // No timer allows new data except for a probe, which is one packet: a segment, or a super-segment.
        self.transmit.holds_new_data = true;
        match self.timers.pending {
            Some(Timer::Retransmission) => self.enter_loss(now, controller),
            Some(Timer::LossProbe) if self.transmit.tlp_outstanding() => self.on_tlp(now, false),
            Some(Timer::LossProbe) => self.transmit.request_tlp(),
            Some(Timer::Reordering) => self.on_reordering_timeout(now, controller),
            Some(Timer::Persist) => self.transmit.is_window_probe_due = true,
            None => {}
        }
    }

    /// Handles the reordering timer. The retransmission timer follows once the lost packets are retransmitted.
    fn on_reordering_timeout(&mut self, now: Instant, controller: &mut ControllerHandle) {
        let reo_wnd = self.reo_wnd();
        let (lost, _) = self.rack.detect_loss(now, &mut self.scoreboard, reo_wnd);
        self.path.count_lost(lost);
        if lost > 0 {
            self.enter_recovery(now, true, false, controller);
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

    /// Handles a retransmission timeout (RFC 6298 sections 5.4 to 5.7, Linux `tcp_enter_loss`): all outstanding packets
    /// are lost, except those sent within the last RTT.
    fn enter_loss(&mut self, now: Instant, controller: &mut ControllerHandle) {
        if self.scoreboard.counts().packets_out == 0 {
            return self.timers.clear();
        }
        self.counters.timeouts += 1;
        // Without SACK, nothing counts as SACKed any more.
        let sacked_out = if self.config.sack { self.scoreboard.counts().sacked_out } else { 0 };
        if self.path.ca_state <= CaState::Disorder && sacked_out >= self.config.reordering {
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
        // If the window is closed, it is a probe (Linux `tcp_retransmit_timer`).
        self.timers.retransmits += u32::from(self.snd_wnd > 0);
        self.timers.backoff += 1;
        self.timers.set(Timer::Retransmission, now, self.rto_with_backoff());
        self.transmit.cwr_pending = self.config.ecn;
        let outstanding = self.outstanding();
        self.path.enter_loss(now, reduce_cwnd, &outstanding, controller);
    }

    /// Removes all SACK marks if the head is SACKed, because the receiver has reneged. Returns whether it has. Without
    /// SACK, it resets the count of duplicate acknowledgements.
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

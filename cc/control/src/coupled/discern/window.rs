//! The window of a path: slow start, CUBIC's curve of an n-th of a flow, reductions, undo. Windows are in packets, times in
//! seconds.
//!
//! A window of weight N grows and falls as N CUBIC flows together do (MulTCP: Crowcroft and Oechslin 1998). Of N flows, L lost packets hit
//! the part `f = 1 - (1 - 1/N)^L` in the mean, and each flow that is hit leaves β: together they leave `1 - (1 - β) f`. Each flow is hit
//! once in 1/f reductions, so that the curve that regains `f (1 - β) W_max` in the part f of a flow's period has the constant
//! `N C / f²`: `N C` where all are hit at once, `N³ C` where one is. The Reno-friendly increase is that of N flows.

use crate::PathInfo;
use units::{INFINITE_SSTHRESH, Instant, Span};

/// What a reduction leaves (RFC 9438 section 4.6).
pub(super) const BETA: f64 = 0.7;
/// CUBIC's constant C, packets per cubic second (RFC 9438 section 5.1).
const C: f64 = 0.4;
/// The increase of the Reno-friendly window, packets a round trip (RFC 9438 section 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// The least window outside a timeout.
pub(super) const MIN_CWND: f64 = 2.0;
/// Growth a round trip at least, of a path without history of reductions: a twentieth (as Linux).
const GROWTH_WITHOUT_HISTORY: f64 = 1.0 / 20.0;
/// The longest time for which a window that is not used is kept (RFC 7661 section 4.4.3).
pub(super) const MAX_IDLE: Span = Span::from_secs(300);
/// Seconds of a base RTT that CUBIC looks ahead at most.
const MAX_LOOK_AHEAD: f64 = 10.0;

/// The time since the latest reduction as CUBIC counts it.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    /// Seconds until the curve reaches its origin.
    k: f64,
    origin: f64,
    /// The Reno-friendly window.
    w_est: f64,
    /// The curve's constant, packets per cubic second.
    c: f64,
}

/// A reduction of which more losses may be found: what a flow that is hit leaves, and the losses so far.
#[derive(Clone, Copy, Debug)]
struct Hit {
    part: f64,
    lost: f64,
}

/// What undo returns to.
#[derive(Clone, Copy, Debug)]
struct Prior {
    cwnd: f64,
    ssthresh: f64,
    w_max: f64,
    epoch: Option<Epoch>,
}

/// A congestion window.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) cwnd: f64,
    pub(super) ssthresh: f64,
    clamp: f64,
    initial: f64,
    /// The flows that it stands for.
    weight: f64,
    /// The latest reduction for losses, if it was the latest change.
    hit: Option<Hit>,
    w_max: f64,
    epoch: Option<Epoch>,
    last_reduction: Option<Instant>,
    /// Before the first reduction of the present episode of losses.
    prior: Option<Prior>,
    /// A window that was proved harmless; the next growth begins there.
    proved: f64,
}

impl Window {
    /// The initial window, which stands for `weight` flows.
    pub(super) fn new(info: &PathInfo, weight: f64) -> Self {
        let initial = f64::from(info.initial_window.max(1));
        Self {
            cwnd: initial,
            ssthresh: f64::INFINITY,
            clamp: f64::from(info.cwnd_clamp.clamp(1, INFINITE_SSTHRESH)),
            initial,
            weight,
            hit: None,
            w_max: 0.0,
            epoch: None,
            last_reduction: None,
            prior: None,
            proved: 0.0,
        }
    }

    pub(super) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Whether no congestion was seen yet.
    pub(super) fn in_first_slow_start(&self) -> bool {
        self.ssthresh.is_infinite()
    }

    pub(super) fn initial(&self) -> f64 {
        self.initial
    }

    /// A window of before, or what is in flight of it.
    pub(super) fn resume_at(&mut self, cwnd: f64) {
        self.cwnd = cwnd.min(self.clamp);
    }

    /// A window of before was too large, and the path carries `pipe` packets: half of them, from where CUBIC's curve leads to all.
    pub(super) fn retreat(&mut self, pipe: f64) {
        self.cwnd = (pipe / 2.0).max(MIN_CWND);
        (self.ssthresh, self.w_max, self.epoch, self.proved) = (self.cwnd, pipe, None, 0.0);
    }

    /// Ends slow start without a reduction.
    pub(super) fn end_slow_start(&mut self) {
        self.ssthresh = self.cwnd.max(MIN_CWND);
    }

    /// Seconds since the latest reduction; infinite without one.
    pub(super) fn since_reduction(&self, now: Instant) -> f64 {
        self.last_reduction.map_or(f64::INFINITY, |at| now.since(at).as_secs_f64())
    }

    /// Losses of so many packets are found: the flows that they hit leave `part` of their windows.
    pub(super) fn reduce_hit(&mut self, part: f64, lost: f64, now: Instant) {
        let hit = Hit { part, lost: lost.max(1.0) };
        self.reduce(self.part_left(hit), now);
        self.hit = Some(hit);
    }

    /// More losses of the latest reduction are found: more flows were hit.
    pub(super) fn hit_more(&mut self, lost: f64) {
        let Some(hit) = self.hit else { return };
        let more = Hit { lost: hit.lost + lost, ..hit };
        let part = self.part_left(more) / self.part_left(hit);
        if part < 1.0 {
            self.cwnd = (self.cwnd * part).max(MIN_CWND.min(self.cwnd));
            (self.ssthresh, self.epoch, self.hit) = (self.cwnd.max(MIN_CWND), None, Some(more));
            self.proved = 0.0;
        }
    }

    /// What all flows together are left.
    fn part_left(&self, hit: Hit) -> f64 {
        1.0 - (1.0 - hit.part) * self.part_hit(hit.lost)
    }

    /// The part of the flows that so many lost packets hit in the mean.
    fn part_hit(&self, lost: f64) -> f64 {
        1.0 - libm::pow(1.0 - 1.0 / self.weight, lost)
    }

    /// The constant of CUBIC's curve after the latest reduction.
    fn curve(&self) -> f64 {
        let part = self.hit.map_or(1.0, |hit| self.part_hit(hit.lost));
        self.weight * C / (part * part)
    }

    /// Reduces the window to a part of itself, and notes it as CUBIC does, with fast convergence.
    pub(super) fn reduce(&mut self, part: f64, now: Instant) {
        self.w_max = if self.cwnd < self.w_max { self.cwnd * (1.0 + part) / 2.0 } else { self.cwnd };
        self.back_off(part, now);
    }

    /// Reduces the window to a part of itself, from where CUBIC's curve returns to the window before.
    pub(super) fn back_off(&mut self, part: f64, now: Instant) {
        self.cwnd = (self.cwnd * part).max(MIN_CWND.min(self.cwnd));
        self.ssthresh = self.cwnd.max(MIN_CWND);
        (self.epoch, self.proved, self.hit) = (None, 0.0, None);
        self.last_reduction = Some(now);
    }

    /// CUBIC's curve leads back to this window at least.
    pub(super) fn aim_at(&mut self, cwnd: f64) {
        (self.w_max, self.epoch) = (self.w_max.max(cwnd), None);
    }

    pub(super) fn w_max(&self) -> f64 {
        self.w_max
    }

    /// A reduction was for nothing: grows from this window on at least, along CUBIC's curve from there.
    pub(super) fn restore(&mut self, cwnd: f64) {
        self.proved = self.proved.max(cwnd);
        self.aim_at(cwnd);
    }

    /// A reduction was for nothing: grows from this window on, without history.
    pub(super) fn give_back(&mut self, cwnd: f64) {
        (self.proved, self.epoch, self.w_max) = (cwnd, None, 0.0);
    }

    /// An episode of losses begins: what it reduces can be undone.
    pub(super) fn begin_episode(&mut self) {
        let Self { cwnd, ssthresh, w_max, epoch, .. } = *self;
        self.prior = Some(Prior { cwnd, ssthresh, w_max, epoch });
    }

    /// What happened cannot be undone.
    pub(super) fn forbid_undo(&mut self) {
        self.prior = None;
    }

    /// The losses of the episode were spurious.
    pub(super) fn undo(&mut self) {
        let Some(prior) = self.prior.take().filter(|prior| prior.cwnd > self.cwnd) else { return };
        self.cwnd = prior.cwnd;
        self.ssthresh = self.ssthresh.max(prior.ssthresh);
        (self.w_max, self.epoch, self.last_reduction, self.hit) = (prior.w_max, prior.epoch, None, None);
    }

    /// A timeout: one packet, and no history (RFC 9438 section 4.8).
    pub(super) fn on_timeout(&mut self, in_flight: u32, reduce: bool, now: Instant) {
        if reduce {
            self.begin_episode();
            self.reduce(BETA, now);
            self.w_max = 0.0;
        }
        (self.cwnd, self.epoch, self.proved) = (f64::from(in_flight.min(INFINITE_SSTHRESH - 1) + 1), None, 0.0);
    }

    /// Slow start, then CUBIC's growth of an n-th of a flow, for `acked` packets on a path with this base RTT.
    pub(super) fn grow(&mut self, acked: f64, n: f64, base: f64, now: Instant) {
        self.cwnd = self.cwnd.max(self.proved.min(self.clamp));
        self.proved = 0.0;
        let rest = self.slow_start(acked);
        if rest > 0.0 {
            let growth = self.cubic(rest, n, base, now);
            self.cwnd = (self.cwnd + growth.min(rest / 2.0)).min(self.clamp.max(self.cwnd));
        }
    }

    /// Grows to the threshold; returns the packets that are left.
    fn slow_start(&mut self, acked: f64) -> f64 {
        if !self.in_slow_start() {
            return acked;
        }
        let grown = (self.cwnd + acked).min(self.ssthresh).min(self.clamp.max(self.cwnd));
        let rest = if self.in_first_slow_start() { 0.0 } else { acked - (grown - self.cwnd) };
        self.cwnd = grown;
        rest
    }

    /// The growth of RFC 9438 section 4 of an n-th of the flows: with a constant and a Reno-friendly increase of an n-th.
    fn cubic(&mut self, acked: f64, n: f64, base: f64, now: Instant) -> f64 {
        let (cwnd, w_max, c, alpha) = (self.cwnd, self.w_max, self.curve(), self.weight * ALPHA);
        let epoch = self.epoch.get_or_insert_with(|| {
            let origin = w_max.max(cwnd);
            Epoch { start: now, k: libm::cbrt((origin - cwnd) * n / c), origin, w_est: cwnd, c }
        });
        let t = now.since(epoch.start).as_secs_f64() + base.min(MAX_LOOK_AHEAD) - epoch.k;
        let target = epoch.origin + epoch.c / n * t * t * t;
        let mut growth = if target > cwnd { (target - cwnd) / cwnd * acked } else { acked / (100.0 * cwnd) };
        if w_max == 0.0 {
            growth = growth.max(GROWTH_WITHOUT_HISTORY / n * acked);
        }
        epoch.w_est += alpha / n * acked / cwnd;
        growth.max((epoch.w_est - cwnd) / cwnd * acked)
    }

    /// The first packet after nothing was in flight: time without data is no time on the curve. After five minutes nothing is
    /// known of the path any more (RFC 7661 section 4.4.3).
    pub(super) fn on_idle(&mut self, idle: Span, now: Instant) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start = (epoch.start + idle).min(now);
        }
        if idle > MAX_IDLE {
            self.ssthresh = self.ssthresh.max(0.75 * self.cwnd);
            (self.cwnd, self.proved) = (self.cwnd.min(self.initial), 0.0);
        }
    }

    /// Only so many packets of the window were used lately: what congestion reduces are these, if they are less than half of it
    /// (RFC 7661 sections 4.2 and 4.4.1).
    pub(super) fn validate(&mut self, used: f64) {
        if used < 0.5 * self.cwnd {
            self.cwnd = used.max(self.initial.min(self.cwnd));
        }
    }

    /// Lowers the window to so many packets, if it is larger.
    pub(super) fn use_at_most(&mut self, packets: f64) {
        self.cwnd = self.cwnd.min(packets.max(MIN_CWND));
    }

    /// Halves the window, without a sign of congestion.
    pub(super) fn penalise(&mut self) {
        if !self.in_slow_start() {
            self.ssthresh = (self.ssthresh / 2.0).max(MIN_CWND);
        }
        self.cwnd = (self.cwnd / 2.0).max(1.0);
        (self.epoch, self.proved) = (None, 0.0);
    }

    /// Whole packets.
    pub(super) fn packets(&self) -> u32 {
        (self.cwnd as u32).clamp(1, INFINITE_SSTHRESH)
    }

    /// The threshold in whole packets.
    pub(super) fn threshold(&self) -> u32 {
        (self.ssthresh as u32).clamp(MIN_CWND as u32, INFINITE_SSTHRESH)
    }
}

#[cfg(test)]
mod tests;

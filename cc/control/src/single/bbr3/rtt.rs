//! The least RTT, and emptying the path to see it.

use super::bandwidth::GAIN_ONE;
use super::cycle::{Acks, Mode};
use super::model::MIN_WINDOW;
use super::{Ack, Bbr3};
use crate::Context;
use crate::single::bbr::rtt_probe::RttProbe;
use units::{Instant, Span};

/// How long a least RTT holds in the model, and how long without a new one calls for a probe.
const HOLDS: Span = Span::from_secs(10);
const PROBE_AFTER: Span = Span::from_secs(5);
/// How long the path is kept half empty...
const PROBE: Span = Span::from_millis(200);
/// ...at this share of the bandwidth-delay product.
const PROBE_GAIN: u32 = GAIN_ONE / 2;

/// A least RTT and when it was seen.
#[derive(Clone, Copy, Debug, Default)]
struct Least {
    micros: Option<u64>,
    since: Instant,
}

/// The least RTT of the model, and the one that probing watches.
#[derive(Debug, Default)]
pub(super) struct LeastRtt {
    model: Least,
    recent: Least,
}

impl LeastRtt {
    pub(super) fn new(rtt: Option<Span>, now: Instant) -> Self {
        let least = Least { micros: rtt.map(Span::as_micros), since: now };
        Self { model: least, recent: least }
    }

    /// The model's.
    pub(super) fn micros(&self) -> Option<u64> {
        self.model.micros
    }

    /// True if there was no new least RTT for so long that a probe is due.
    fn update(&mut self, rtt: Option<u64>, delayed: bool, now: Instant) -> bool {
        let due = now > self.recent.since + PROBE_AFTER;
        if let Some(rtt) = rtt
            && (self.recent.micros.is_none_or(|least| rtt < least) || due && !delayed)
        {
            self.recent = Least { micros: Some(rtt), since: now };
        }
        let lower = match (self.recent.micros, self.model.micros) {
            (Some(recent), Some(model)) => recent <= model,
            (recent, _) => recent.is_some(),
        };
        if lower || now > self.model.since + HOLDS {
            self.model = self.recent;
        }
        due
    }
}

impl Bbr3 {
    pub(super) fn update_least_rtt(&mut self, ack: &Ack<'_>, cx: &mut Context<'_>) {
        let delayed = ack.rs.is_some_and(|rs| rs.ack_delayed);
        let due = self.least_rtt.update(ack.sample.rtt.map(Span::as_micros), delayed, ack.now);
        if due && !self.restarted && self.mode != Mode::ProbeRtt {
            self.save_window();
            self.mode = Mode::ProbeRtt;
            self.cycle.acks = Acks::Stopping;
            self.round.end = self.delivered;
            self.rtt_probe = RttProbe { held: Some((self.delivered, 0)), ..RttProbe::default() };
        }
        if self.mode == Mode::ProbeRtt {
            self.probe_rtt(ack, cx);
        }
        self.restarted &= ack.sample.acked == 0;
    }

    fn probe_rtt(&mut self, ack: &Ack<'_>, cx: &mut Context<'_>) {
        let empty = ack.sample.in_flight <= self.rtt_probe_window();
        let probe = &mut self.rtt_probe;
        if let Some((_, last)) = &mut probe.held {
            *last = self.delivered + u64::from(ack.sample.in_flight);
        }
        if probe.until.is_some() {
            probe.round_done |= self.round.begun;
            if probe.round_done {
                self.check_rtt_probe_over(cx);
            }
        } else if empty {
            probe.until = Some(cx.now + PROBE);
            self.round.end = self.delivered;
        }
    }

    /// Half of what the path holds.
    pub(super) fn rtt_probe_window(&self) -> u32 {
        let half = self.product(self.bandwidth(), PROBE_GAIN);
        u32::try_from(half).unwrap_or(u32::MAX / 2).max(MIN_WINDOW)
    }

    pub(super) fn check_rtt_probe_over(&mut self, cx: &mut Context<'_>) {
        if self.rtt_probe.until.is_none_or(|until| cx.now <= until) {
            return;
        }
        self.least_rtt.recent.since = cx.now;
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        self.bounds.forget_short_term();
        if self.full_pipe.reached {
            // There is less in flight than the path holds: nothing to go down from.
            self.go_down(cx);
            self.cruise();
        } else {
            self.mode = Mode::Startup;
        }
    }
}

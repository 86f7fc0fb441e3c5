//! Losses without delay: are they random? Backing off tells, because random loss does not follow the rate.
//!
//! - Known is a random loss rate p̂ from n̂ packets. Of N packets since the last verdict L were lost without delay. The
//!   losses are suspect where `L > p̂ N + 3 sqrt(p̂ N (1 + N / n̂))`: three standard deviations, p̂'s own included.
//! - Fewer suspect losses than `evidence` are congestion. With more the window is backed off, and a round trip later the
//!   loss rate is measured: for at least three rounds, until there are enough losses or packets.
//! - If more than the part `respond` of the loss rate remains, the loss is random: it is pooled into p̂, and the window is
//!   given back. Otherwise it was congestion, and the window stays.
//!
//! Limit: N flows that share a queue without delay see their loss rate L fall to `max(0, L - (1 - L) d / N)`, if one backs
//! off by d and the others hold still. It falls by half where `N <= 2 d (1 - L) / L`; more flows do not find out.

use super::Config;
use super::round::Counts;
use units::Instant;

/// What an experiment forgives at most: random loss above it is treated as congestion.
pub(super) const MAX_RANDOM_LOSS: f64 = 0.08;
/// Standard deviations by which the losses exceed the known random loss before they are suspect.
const SUSPICION: f64 = 3.0;
/// Round trips of an experiment at least and, with losses too few to tell, at most.
const ROUNDS: [f64; 2] = [3.0, 40.0];
/// Losses that prove random loss, at least.
const MIN_PROOF: f64 = 3.0;
/// An experiment ends with so many losses beyond `evidence`.
const MORE_LOSSES: f64 = 3.0;
/// Packets for which an earlier estimate of the random loss counts, at most.
const MEMORY: f64 = 5_000.0;
/// Packets after which the counts since the last verdict fade.
const MAX_COUNTED: f64 = 20_000.0;

/// An experiment under way.
#[derive(Debug)]
struct Trial {
    from: Instant,
    counts: Counts,
    prior_cwnd: f64,
    /// The loss rate that began it.
    trigger: f64,
}

/// What a loss without delay asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// No more than the known random loss.
    Random,
    /// Too few to learn from: congestion.
    Congestion,
    /// An experiment: back off.
    BackOff,
}

/// The random loss of a path, and how it is learnt.
#[derive(Debug, Default)]
pub(super) struct RandomLoss {
    /// p̂: the part of packets that is lost at random.
    rate: f64,
    /// n̂: the packets from which it is known.
    packets: f64,
    /// Since the last verdict.
    counts: Counts,
    trial: Option<Trial>,
    /// From when on the rate is to be learnt again.
    stale_at: Option<Instant>,
}

impl RandomLoss {
    /// p̂.
    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    pub(super) fn is_under_trial(&self) -> bool {
        self.trial.is_some()
    }

    /// Counts packets; a trial counts from a round trip after the window was backed off.
    pub(super) fn count(&mut self, acked: f64, lost: f64, srtt: f64, now: Instant) {
        if let Some(trial) = &mut self.trial
            && now.since(trial.from).as_secs_f64() > srtt
        {
            trial.counts.add(acked, lost);
        }
        self.counts.add(acked, lost);
        if self.counts.packets > MAX_COUNTED {
            self.counts = Counts { packets: self.counts.packets / 2.0, lost: self.counts.lost / 2.0 };
        }
    }

    /// So many lost packets proved to be late only.
    pub(super) fn forgive(&mut self, lost: f64) {
        self.counts.forgive(lost);
        self.trial = None;
    }

    /// Congestion was seen otherwise: what was counted says nothing.
    pub(super) fn abandon(&mut self) {
        (self.trial, self.counts) = (None, Counts::default());
    }

    /// Ends the trial, if there is one, without a verdict.
    pub(super) fn end_trial(&mut self) {
        self.trial = None;
    }

    /// Losses beyond which they are more than the known random loss.
    fn expected(&self) -> f64 {
        let expected = self.rate.min(MAX_RANDOM_LOSS) * self.counts.packets;
        let uncertainty = if self.packets > 0.0 { 1.0 + self.counts.packets / self.packets } else { 1.0 };
        expected + SUSPICION * (expected * uncertainty).sqrt()
    }

    /// A packet was lost without delay.
    pub(super) fn judge(&mut self, config: &Config, cwnd: f64, now: Instant) -> Verdict {
        let has_evidence = self.counts.lost >= config.evidence;
        let is_stale = has_evidence && self.rate > 0.0 && self.stale_at.is_some_and(|at| now > at);
        if !is_stale && self.counts.lost <= self.expected() {
            return Verdict::Random;
        }
        self.stale_at = config.revalidate.map(|span| now + span);
        if !has_evidence {
            return Verdict::Congestion;
        }
        let trigger = self.counts.rate().max(1e-5);
        self.counts = Counts::default();
        self.trial = Some(Trial { from: now, counts: Counts::default(), prior_cwnd: cwnd, trigger });
        Verdict::BackOff
    }

    /// Ends a trial that has seen enough; returns the window to give back if the loss is random.
    pub(super) fn check(&mut self, config: &Config, srtt: f64, now: Instant) -> Option<f64> {
        let trial = self.trial.as_ref()?;
        let rounds = now.since(trial.from).as_secs_f64() / srtt.max(1e-4);
        let has_enough = trial.counts.lost >= config.evidence + MORE_LOSSES
            || trial.counts.packets >= 2.0 * config.evidence / trial.trigger
            || rounds >= ROUNDS[1];
        if rounds < ROUNDS[0] || !has_enough {
            return None;
        }
        let trial = self.trial.take()?;
        self.counts = Counts::default();
        let rate = trial.counts.rate();
        if trial.counts.lost < MIN_PROOF || rate <= config.respond * trial.trigger {
            self.rate = self.rate.min(rate);
            return None;
        }
        self.pool(trial.counts);
        Some(trial.prior_cwnd)
    }

    /// Adds what a trial has found to the estimate.
    fn pool(&mut self, found: Counts) {
        let known = self.packets.min(MEMORY);
        self.rate = (self.rate * known + found.lost) / (known + found.packets);
        self.packets = known + found.packets;
    }
}

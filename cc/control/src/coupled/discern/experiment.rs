//! Losses without delay: are they random? Backing off tells, because random loss does not follow the rate.
//!
//! - Known is a random loss rate p̂ from n̂ packets. Of N packets since the last verdict L were lost without delay. The
//!   losses are suspect where `L > p̂ N + 3 sqrt(p̂ N (1 + N / n̂)) + 1`: three standard deviations, p̂'s own included, and one
//!   packet where p̂ > 0, as losses come whole (the Poisson distribution's quantile for 0.135 %).
//! - Fewer suspect losses than `evidence` are congestion. With more the window is backed off, and a round trip later the
//!   loss rate is measured: for at least three rounds, until there are enough losses or packets.
//! - A trial ends after 40 rounds. If it has seen too little by then, the next one goes on with its counts.
//! - If more than the part `respond` of the loss rate remains, the loss is random: it is pooled into p̂, and the window is
//!   given back. Otherwise it was congestion, and the window stays.
//!
//! Limit: N flows that share a queue without delay see their loss rate L fall to `max(0, 1 - (1 - L) / (1 - d / N))`, if one
//! backs off by d and the others hold still. It falls by half where `N <= d (2 - L) / L`; more flows do not find out.

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
    /// The losses that began it.
    before: Counts,
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
    /// What earlier trials have left open: before backing off, and after.
    open: [Counts; 2],
    /// From when on the rate is to be learnt again.
    stale_at: Option<Instant>,
}

impl RandomLoss {
    /// A loss rate that is known from so many packets.
    #[cfg(test)]
    pub(super) fn known(rate: f64, packets: f64) -> Self {
        Self { rate, packets, ..Self::default() }
    }

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

    /// Losses with delay were seen: what was counted says nothing of random loss.
    pub(super) fn clear(&mut self) {
        self.counts = Counts::default();
    }

    /// Ends the trial, if there is one, without a verdict.
    pub(super) fn end_trial(&mut self) {
        self.trial = None;
    }

    /// Losses beyond which they are more than the known random loss.
    fn expected(&self) -> f64 {
        let expected = self.rate.min(MAX_RANDOM_LOSS) * self.counts.packets;
        let uncertainty = if self.packets > 0.0 { 1.0 + self.counts.packets / self.packets } else { 1.0 };
        let whole = if expected > 0.0 { 1.0 } else { 0.0 };
        expected + SUSPICION * (expected * uncertainty).sqrt() + whole
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
        let [before, counts] = std::mem::take(&mut self.open);
        let before = before.plus(std::mem::take(&mut self.counts));
        self.trial = Some(Trial { from: now, counts, prior_cwnd: cwnd, before });
        Verdict::BackOff
    }

    /// Ends a trial that has seen enough; returns the window to give back if the loss is random.
    pub(super) fn check(&mut self, config: &Config, srtt: f64, now: Instant) -> Option<f64> {
        let trial = self.trial.as_ref()?;
        let rounds = now.since(trial.from).as_secs_f64() / srtt.max(1e-4);
        let trigger = trial.before.rate().max(1e-5);
        let has_enough = trial.counts.lost >= config.evidence + MORE_LOSSES
            || trial.counts.packets >= 2.0 * config.evidence / trigger;
        if rounds < ROUNDS[0] || !has_enough && rounds < ROUNDS[1] {
            return None;
        }
        let trial = self.trial.take()?;
        self.counts = Counts::default();
        let rate = trial.counts.rate();
        if trial.counts.lost >= MIN_PROOF && rate > config.respond * trigger {
            self.pool(trial.counts);
            return Some(trial.prior_cwnd);
        }
        if has_enough {
            self.rate = self.rate.min(rate);
        } else {
            self.open = [trial.before, trial.counts];
        }
        None
    }

    /// Adds what a trial has found to the estimate.
    fn pool(&mut self, found: Counts) {
        let known = self.packets.min(MEMORY);
        self.rate = (self.rate * known + found.lost) / (known + found.packets);
        self.packets = known + found.packets;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Params;
    use std::collections::BTreeMap;
    use units::Span;

    const SRTT: f64 = 0.04;

    fn config() -> Config {
        Config::new(&Params::new(super::super::ENTRY.parameters, &BTreeMap::new()).expect("defaults are allowed"))
    }

    fn at(rounds: u32) -> Instant {
        Instant::ZERO + Span::from_secs_f64(SRTT * f64::from(rounds))
    }

    /// Begins an experiment at a window of 100 packets and a loss rate, then measures another one over so many rounds of a
    /// thousand packets. Returns the window that is given back.
    fn experiment(random_loss: &mut RandomLoss, trigger: f64, remaining: f64) -> Option<f64> {
        let thousand = |loss: f64| (1_000.0 * (1.0 - loss), 1_000.0 * loss);
        let (acked, lost) = thousand(trigger);
        random_loss.count(acked, lost, SRTT, at(0));
        assert_eq!(random_loss.judge(&config(), 100.0, at(0)), Verdict::BackOff);
        let (acked, lost) = thousand(remaining);
        (2..60).find_map(|round| {
            random_loss.count(acked, lost, SRTT, at(round));
            random_loss.check(&config(), SRTT, at(round))
        })
    }

    #[test]
    fn loss_that_stays_is_random_and_the_window_is_given_back() {
        let mut random_loss = RandomLoss::default();
        assert_eq!(experiment(&mut random_loss, 0.03, 0.03), Some(100.0));
        assert!((random_loss.rate() - 0.03).abs() < 1e-9, "{random_loss:?}");
    }

    #[test]
    fn loss_that_follows_the_window_is_congestion_and_is_not_learnt() {
        for remaining in [0.0, 0.014] {
            let mut random_loss = RandomLoss::default();
            assert_eq!(experiment(&mut random_loss, 0.03, remaining), None);
            assert_eq!((random_loss.rate(), random_loss.is_under_trial()), (0.0, false));
        }
    }

    /// Backing off by half of a share of 1/N leaves `1 - (1 - L) / (1 - 1/2N)` of a loss rate L, if the others hold still:
    /// less than half of L where `N < δ (2 - L) / L`, which is 19.5 at 5 %.
    #[test]
    fn nineteen_flows_at_5_percent_find_out_and_twenty_do_not() {
        let remaining = |flows: f64| 1.0 - 0.95 / (1.0 - 0.5 / flows);
        for flows in [1.0, 2.0, 10.0, 19.0] {
            assert_eq!(experiment(&mut RandomLoss::default(), 0.05, f64::max(0.0, remaining(flows))), None, "{flows}");
        }
        assert_eq!(experiment(&mut RandomLoss::default(), 0.05, remaining(20.0)), Some(100.0));
    }

    #[test]
    fn fewer_losses_than_the_evidence_are_congestion() {
        let mut random_loss = RandomLoss::default();
        random_loss.count(96.0, 4.0, SRTT, at(0));
        assert_eq!(random_loss.judge(&config(), 100.0, at(0)), Verdict::Congestion);
        random_loss.count(99.0, 1.0, SRTT, at(0));
        assert_eq!(random_loss.judge(&config(), 100.0, at(0)), Verdict::BackOff);
    }

    #[test]
    fn suspect_are_losses_three_standard_deviations_above_the_known_loss() {
        // 1 % of 1000 packets, known from 1000: 10 + 3 sqrt(10 (1 + 1)) + 1 = 24.4.
        let verdict = |lost| {
            let counts = Counts { packets: 1_000.0, lost };
            let mut random_loss = RandomLoss { rate: 0.01, packets: 1_000.0, counts, ..RandomLoss::default() };
            random_loss.judge(&config(), 100.0, at(0))
        };
        assert_eq!([24.0, 25.0].map(verdict), [Verdict::Random, Verdict::BackOff]);
    }

    /// Of the Poisson distribution of mean 0.05 two and more have 0.12 %, one and more 4.9 %; without a known loss one is suspect.
    #[test]
    fn one_loss_is_not_suspect_where_random_loss_is_known() {
        let verdict = |rate, lost| {
            let counts = Counts { packets: 10.0, lost };
            let mut random_loss = RandomLoss { rate, packets: 1_000.0, counts, ..RandomLoss::default() };
            random_loss.judge(&config(), 100.0, at(0))
        };
        assert_eq!([1.0, 2.0].map(|lost| verdict(0.005, lost)), [Verdict::Random, Verdict::Congestion]);
        assert_eq!(verdict(0.0, 1.0), Verdict::Congestion);
    }

    #[test]
    fn trials_are_pooled_with_what_was_known_from_at_most_5000_packets() {
        let mut random_loss = RandomLoss { rate: 0.01, packets: 1_000.0, ..RandomLoss::default() };
        random_loss.pool(Counts { packets: 1_000.0, lost: 30.0 });
        assert_eq!((random_loss.rate, random_loss.packets), (40.0 / 2_000.0, 2_000.0));
        random_loss.packets = 50_000.0;
        random_loss.pool(Counts { packets: 5_000.0, lost: 300.0 });
        assert_eq!((random_loss.rate, random_loss.packets), (400.0 / 10_000.0, 10_000.0));
    }

    /// Of 100 packets a round, one in 2000 is lost: 40 rounds bring two losses, where three are a proof.
    #[test]
    fn a_trial_with_too_few_losses_goes_on_with_the_next_one() {
        let mut random_loss = RandomLoss::default();
        let mut trial = |from: u32| {
            random_loss.count(9_995.0, 5.0, SRTT, at(from));
            assert_eq!(random_loss.judge(&config(), 100.0, at(from)), Verdict::BackOff);
            (from + 2..from + 60).find_map(|round| {
                random_loss.count(99.95, 0.05, SRTT, at(round));
                random_loss.check(&config(), SRTT, at(round))
            })
        };
        assert_eq!([trial(0), trial(100)], [None, Some(100.0)]);
    }

    #[test]
    fn a_loss_rate_becomes_stale_after_the_time_that_is_given() {
        let config = Config { revalidate: Some(Span::from_secs(15)), ..config() };
        let mut random_loss = RandomLoss::default();
        assert_eq!(experiment(&mut random_loss, 0.03, 0.03), Some(100.0));
        random_loss.stale_at = Some(at(0) + Span::from_secs(15));
        let mut verdict_after = |seconds| {
            random_loss.count(970.0, 30.0, SRTT, at(0) + Span::from_secs(seconds));
            random_loss.judge(&config, 100.0, at(0) + Span::from_secs(seconds))
        };
        assert_eq!([14, 16].map(&mut verdict_after), [Verdict::Random, Verdict::BackOff]);
    }

    #[test]
    fn losses_that_were_only_late_do_not_count() {
        let mut random_loss = RandomLoss::default();
        random_loss.count(990.0, 10.0, SRTT, at(0));
        random_loss.forgive(10.0);
        assert_eq!(random_loss.judge(&config(), 100.0, at(0)), Verdict::Random);
    }
}

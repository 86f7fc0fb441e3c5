//! The closed forms of docs/explanation/algorithm.md against the code that they describe.

use super::experiment::{RandomLoss, Verdict};
use super::window::{BETA, Window};
use super::{Config, ENTRY};
use crate::Params;
use crate::single::testing::path;
use std::collections::BTreeMap;
use units::{Instant, RngStream, Span};

fn at(seconds: f64) -> Instant {
    Instant::ZERO + Span::from_secs_f64(seconds)
}

/// A window that was just reduced to a part β of its maximum.
fn reduced(maximum: f64) -> Window {
    let mut window = Window::new(&path(10, None), 1.0);
    (window.cwnd, window.ssthresh) = (maximum, 2.0);
    window.reduce(BETA, at(0.0));
    window
}

/// Equation 10, of RFC 9438 section 5.1: after a loss with delay the window follows CUBIC's curve for `K = cbrt(0.3 W / C)` from
/// 0.7 W to W, and `W (3 + β) / 4 · K / R` packets are sent. The window is that of the curve a round trip later, which makes
/// 0.3 W of the packets at most.
#[test]
fn a_cycle_has_the_length_and_the_packets_of_rfc_9438() {
    let (rtt, rounds) = (0.1, 160);
    let maximum = 0.4 * libm::pow(rtt * f64::from(rounds), 3.0) / (1.0 - BETA);
    let (mut window, mut sent) = (reduced(maximum), 0.0);
    for round in 1..=rounds {
        sent += window.cwnd;
        window.grow(window.cwnd, 1.0, rtt, at(rtt * f64::from(round)));
    }
    assert!((window.cwnd / maximum - 1.0).abs() < 1e-5, "{window:?}");
    let expected = maximum * (3.0 + BETA) / 4.0 * f64::from(rounds);
    assert!((sent - expected).abs() < 0.3 * maximum, "{sent} instead of {expected}");
}

/// Equation 11: in the Reno-friendly region each loss that two flows share takes the same part of their difference.
#[test]
fn the_difference_of_two_flows_shrinks_to_0_7_of_itself_with_each_loss_that_they_share() {
    let (mut large, mut small) = (reduced(45.0 / BETA), reduced(15.0 / BETA));
    let mut difference = large.cwnd - small.cwnd;
    let (mut round, rtt) = (0_u32, 0.02);
    for _ in 0..5 {
        while large.cwnd + small.cwnd < 100.0 {
            let now = at(rtt * f64::from(round));
            [&mut large, &mut small].into_iter().for_each(|window| window.grow(window.cwnd, 1.0, rtt, now));
            round += 1;
        }
        let now = at(rtt * f64::from(round));
        [&mut large, &mut small].into_iter().for_each(|window| window.back_off(BETA, now));
        difference *= BETA;
        let found = large.cwnd - small.cwnd;
        assert!((found - difference).abs() < 0.2, "{found} instead of {difference}");
    }
}

/// Theorem 1: n windows of any split have the sum of one window at the reduction, and then deviate from it by
/// `3 C t ((m2 - K^2) - t (m1 - K))` of CUBIC's curve, with the mean m1 of their K and m2 of its square: a hundredth at 4:1.
#[test]
fn two_windows_of_4_to_1_have_the_sum_of_one_within_a_hundredth() {
    let (mut one, mut pair) = (reduced(5_000.0), [reduced(4_000.0), reduced(1_000.0)]);
    for round in 0..150 {
        let now = at(0.1 * f64::from(round));
        one.grow(one.cwnd, 1.0, 0.1, now);
        pair.iter_mut().for_each(|window| window.grow(window.cwnd, 2.0, 0.1, now));
        let sum: f64 = pair.iter().map(|window| window.cwnd).sum();
        assert!((sum / one.w_max() - one.cwnd / one.w_max()).abs() < 0.0101, "{sum} and {} in {round}", one.cwnd);
    }
}

/// The share of 2000 trials, begun at 5 of 100 packets lost, that take a loss rate of `after` for random. A round has 10 packets.
fn found_random(after: f64) -> f64 {
    let (rtt, mut losses) = (0.04, RngStream::named(1, "losses"));
    let config = Config::new(&Params::new(ENTRY.parameters, &BTreeMap::new()).expect("defaults are allowed"));
    let mut is_random = || {
        let mut random_loss = RandomLoss::default();
        random_loss.count(95.0, 5.0, rtt, at(0.0));
        assert_eq!(random_loss.judge(&config, 100.0, at(0.0)), Verdict::BackOff);
        let mut round = 1;
        while random_loss.is_under_trial() {
            round += 1;
            let lost = (0..10).filter(|_| losses.chance(after)).count() as f64;
            random_loss.count(10.0 - lost, lost, rtt, at(rtt * f64::from(round)));
            let given_back = random_loss.check(&config, rtt, at(rtt * f64::from(round)));
            if given_back.is_some() {
                return true;
            }
        }
        false
    };
    (0..2_000).filter(|_| is_random()).count() as f64 / 2_000.0
}

/// The chance of `least` successes or more among `n`.
fn binomial_tail(n: u32, chance: f64, least: u32) -> f64 {
    let mut term = libm::pow(1.0 - chance, f64::from(n));
    let mut below = 0.0;
    for successes in 0..least {
        below += term;
        term *= f64::from(n - successes) / f64::from(successes + 1) * chance / (1.0 - chance);
    }
    1.0 - below
}

/// Equation 14: a trial at a loss rate L looks at 10/L packets, here 200, and finds the loss random from six losses on.
#[test]
fn a_trial_takes_loss_for_random_with_the_binomial_chance_of_six_losses_in_ten_intervals() {
    for after in [0.05, 0.025, 0.0125] {
        let (found, expected) = (found_random(after), binomial_tail(200, after, 6));
        // Three standard deviations of a share of 2000.
        assert!(
            (found - expected).abs() < 3.0 * libm::sqrt(0.25 / 2_000.0),
            "{found} instead of {expected} at {after}"
        );
    }
}

/// Equation 16: M flows whose loss rate is L, of which one backs off by a half, see half of it or more from M = (2 - L) / 2 L on.
#[test]
fn the_number_of_flows_that_an_experiment_can_tell_is_the_root_of_its_loss_after_backing_off() {
    for loss in [0.02, 0.05, 0.09] {
        let after = |flows: f64| 1.0 - (1.0 - loss) / (1.0 - 0.5 / flows);
        let most = (2.0 - loss) / (2.0 * loss);
        assert!((after(most) / loss - 0.5).abs() < 1e-9);
        assert!(after(most * 0.99) < loss / 2.0 && after(most * 1.01) > loss / 2.0);
    }
}

/// Inequality 5, looked at with each loss: the paths with 1 % of random loss that have a suspect one within 10 000 packets, where
/// that loss rate is known from 5000 packets. (Without the one packet in the inequality it is 15 %.)
#[test]
fn four_percent_of_paths_suspect_a_random_loss_that_they_know_from_5000_packets() {
    let config = Config::new(&Params::new(ENTRY.parameters, &BTreeMap::new()).expect("defaults are allowed"));
    let mut losses = RngStream::named(1, "suspicion");
    let mut has_suspect_loss = || {
        let found = (0..5_000).filter(|_| losses.chance(0.01)).count();
        let mut random_loss = RandomLoss::known(found as f64 / 5_000.0, 5_000.0);
        (0..10_000).any(|_| {
            let is_lost = losses.chance(0.01);
            random_loss.count(f64::from(!is_lost), f64::from(is_lost), 0.1, at(0.0));
            is_lost && random_loss.judge(&config, 100.0, at(0.0)) != Verdict::Random
        })
    };
    let share = (0..2_000).filter(|_| has_suspect_loss()).count() as f64 / 2_000.0;
    // Four standard deviations about the 4.2 % of another generator.
    assert!((share - 0.042).abs() < 4.0 * libm::sqrt(0.042 * 0.958 / 2_000.0), "{share}");
}

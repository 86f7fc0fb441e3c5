//! The window against CUBIC's closed forms, and what is common to all windows.

use super::*;
use crate::common::{CongestionOps, CwndState};
use crate::single::cubic::{self, Cubic};
use crate::single::testing::path;
use crate::{AckSample, Context, Params};
use std::collections::BTreeMap;
use units::RngStream;

fn at(seconds: f64) -> Instant {
    Instant::ZERO + Span::from_secs_f64(seconds)
}

/// A window in congestion avoidance.
fn window(cwnd: f64) -> Window {
    Window { cwnd, ssthresh: 2.0, ..Window::new(&path(10, None), 1.0) }
}

/// The round trip of the tests, seconds.
const RTT: f64 = 0.1;
/// Round trips of a mean: some 400 cycles where one packet in 10^4 is lost.
const ROUNDS: u32 = 20_000;

/// Lets the window grow for some round trips from `start` in seconds.
fn run(window: &mut Window, n: f64, start: f64, rounds: u32) {
    (0..rounds).for_each(|round| window.grow(window.cwnd, n, RTT, at(start + RTT * f64::from(round))));
}

#[test]
fn growth_is_the_rfcs_curve_after_a_reduction_at_100_packets() {
    let mut window = window(100.0);
    window.reduce(BETA, at(0.0));
    assert_eq!(window.packets(), 70);
    for second in 1..=8 {
        run(&mut window, 1.0, f64::from(second - 1), 10);
        let offset = f64::from(second) - libm::cbrt(30.0 / 0.4);
        let expected = 100.0 + 0.4 * offset * offset * offset;
        assert!((window.cwnd - expected).abs() < 1.0, "{} after {second} s, not {expected}", window.cwnd);
    }
}

/// n windows of w/n that grow by C/n reach their origin when one of w does: K = cbrt(n (1 - β) w/n / C).
#[test]
fn n_windows_with_an_nth_of_c_are_one_window() {
    let (mut one, mut third) = (window(300.0), window(100.0));
    one.reduce(BETA, at(0.0));
    third.reduce(BETA, at(0.0));
    for second in 0..10 {
        run(&mut one, 1.0, f64::from(second), 10);
        run(&mut third, 3.0, f64::from(second), 10);
        assert!((one.cwnd - 3.0 * third.cwnd).abs() < 1.0, "{one:?} {third:?} after {second} s");
    }
}

/// RFC 9438 section 4.3: an increase of 3 (1 - β) / (1 + β) a round trip has Reno's mean window. Two seconds after a
/// reduction at 20 packets CUBIC's curve is below it.
#[test]
fn a_short_path_grows_as_reno_does_and_an_nth_of_that() {
    for n in [1.0, 2.0] {
        let mut window = window(20.0);
        window.reduce(BETA, at(0.0));
        run(&mut window, n, 0.0, 20);
        let expected = 14.0 + 20.0 * ALPHA / n;
        assert!((window.cwnd - expected).abs() < 0.5, "{} instead of {expected}", window.cwnd);
    }
}

/// The mean window of a flow of which one packet in `interval` is lost at random. `round` reduces the window, if it may,
/// lets it grow for a round trip, and returns it.
fn mean_window(interval: f64, mut round: impl FnMut(Instant, bool) -> f64) -> f64 {
    let (mut cwnd, mut total, mut losses) = (10.0, 0.0, RngStream::named(1, "losses"));
    for number in 0..ROUNDS {
        total += cwnd;
        let is_lost = losses.unit() > libm::exp(-cwnd / interval);
        cwnd = round(at(RTT * f64::from(number)), is_lost);
    }
    total / f64::from(ROUNDS)
}

/// The same with the registry's CUBIC, in the kernel's integers.
fn mean_window_of_cubic(interval: f64) -> f64 {
    let mut cubic = Cubic::new(&Params::new(cubic::ENTRY.parameters, &BTreeMap::new()).expect("defaults are allowed"));
    let mut state = CwndState { cwnd: 10, ssthresh: 2, ..CwndState::default() };
    let mut rng = RngStream::named(1, "test");
    mean_window(interval, |now, is_lost| {
        let mut cx = Context { now, rng: &mut rng };
        if is_lost {
            state.ssthresh = cubic.ssthresh(&state, &mut cx);
            state.cwnd = state.ssthresh;
        }
        let sample = AckSample { acked: 1, rtt: Some(Span::from_secs_f64(RTT)), ..AckSample::default() };
        let acks = state.cwnd;
        for ack in 0..acks {
            cx.now = now + Span::from_secs_f64(RTT * f64::from(ack) / f64::from(acks));
            cubic.on_ack(&mut state, &sample, &mut cx);
            cubic.cong_avoid(&mut state, 1, &sample, &mut cx);
        }
        f64::from(state.cwnd)
    })
}

/// Where CUBIC's curve is the faster one, and where Reno is.
#[test]
fn the_mean_window_is_that_of_cubic() {
    for interval in [1e4, 500.0] {
        let mut window = window(10.0);
        let mean = mean_window(interval, |now, is_lost| {
            if is_lost {
                window.reduce(BETA, now);
            }
            window.grow(window.cwnd, 1.0, RTT, now);
            window.cwnd
        });
        let expected = mean_window_of_cubic(interval);
        // Three standard deviations of the mean of 400 cycles at least, which vary by a third; and half a packet of rounding.
        assert!((mean - expected).abs() < 0.5 + 0.05 * expected, "1 in {interval}: {mean} instead of {expected}");
    }
}

fn weighted(cwnd: f64, weight: f64) -> Window {
    Window { cwnd, ssthresh: 2.0, ..Window::new(&path(10, None), weight) }
}

/// One of four flows at 100 packets leaves 30, and regains them in K = cbrt(30 / 0.4) s. The four together are hit four times in that
/// time: they regain 30 of 400 in K / 4.
#[test]
fn where_losses_hit_one_flow_each_a_window_of_weight_n_regains_it_in_an_nth_of_the_time() {
    let mut window = weighted(400.0, 4.0);
    window.reduce_hit(BETA, 1.0, at(0.0));
    assert_eq!(window.packets(), 370);
    run(&mut window, 1.0, 0.0, 10);
    let (curve, offset) = (64.0 * 0.4, 1.0 - libm::cbrt(30.0 / 0.4) / 4.0);
    let expected = 400.0 + curve * offset * offset * offset;
    assert!((window.cwnd - expected).abs() < 1.0, "{} instead of {expected}", window.cwnd);
}

/// All flows are hit: each leaves β, and they grow as N windows of an Nth.
#[test]
fn where_losses_hit_all_flows_a_window_of_weight_n_is_n_windows() {
    let (mut all, mut one) = (weighted(400.0, 4.0), window(100.0));
    all.reduce_hit(BETA, 1e3, at(0.0));
    one.reduce(BETA, at(0.0));
    for second in 0..10 {
        run(&mut all, 1.0, f64::from(second), 10);
        run(&mut one, 1.0, f64::from(second), 10);
        assert!((all.cwnd - 4.0 * one.cwnd).abs() < 4.0, "{all:?} {one:?} after {second} s");
    }
}

/// Two losses among four flows hit 1 - (3/4)^2 = 7/16 of them in the mean, and a quarter if it was one.
#[test]
fn losses_hit_so_many_of_the_flows_at_once_or_one_after_the_other() {
    let after = |losses: &[f64]| {
        let mut window = weighted(1000.0, 4.0);
        window.reduce_hit(BETA, losses[0], at(0.0));
        losses[1..].iter().for_each(|lost| window.hit_more(*lost));
        window.cwnd
    };
    assert_eq!(after(&[1.0]), 1000.0 * (1.0 - 0.3 / 4.0));
    for losses in [&[2.0][..], &[1.0, 1.0]] {
        assert!((after(losses) - 1000.0 * (1.0 - 0.3 * 7.0 / 16.0)).abs() < 1e-9);
    }
}

#[test]
fn to_one_flow_a_second_loss_of_an_event_changes_nothing() {
    let mut window = window(100.0);
    window.reduce_hit(BETA, 1.0, at(0.0));
    window.cwnd += 1.0;
    window.hit_more(5.0);
    assert_eq!(window.cwnd, 71.0);
}

#[test]
fn fast_convergence_lowers_the_origin_after_a_loss_below_the_last_maximum() {
    let mut window = window(100.0);
    window.reduce(BETA, at(0.0));
    assert_eq!(window.w_max(), 100.0);
    window.cwnd = 80.0;
    window.reduce(BETA, at(1.0));
    assert_eq!(window.w_max(), 80.0 * 1.7 / 2.0);
}

#[test]
fn a_window_without_history_grows_by_a_twentieth_a_round_trip() {
    let mut window = window(100.0);
    run(&mut window, 1.0, 0.0, 10);
    let expected = 100.0 * libm::pow(1.05, 10.0);
    assert!((window.cwnd / expected - 1.0).abs() < 0.01, "{} instead of {expected}", window.cwnd);
}

#[test]
fn a_window_given_back_returns_with_the_next_growth_and_not_after_another_reduction() {
    let mut window = window(100.0);
    window.reduce(0.5, at(0.0));
    window.give_back(100.0);
    assert_eq!(window.packets(), 50, "an unfilled window does not grow");
    window.grow(1.0, 1.0, RTT, at(0.1));
    assert_eq!(window.packets(), 100);
    window.reduce(0.5, at(1.0));
    window.give_back(100.0);
    window.reduce(BETA, at(2.0));
    window.grow(1.0, 1.0, RTT, at(2.1));
    assert_eq!(window.packets(), 35);
}

#[test]
fn a_window_restored_returns_with_the_next_growth_and_cubic_goes_on_from_there() {
    let mut window = window(100.0);
    window.reduce(0.5, at(0.0));
    window.restore(100.0);
    assert_eq!((window.packets(), window.w_max()), (50, 100.0), "an unfilled window does not grow");
    window.grow(0.0, 1.0, RTT, at(0.1));
    assert_eq!((window.packets(), window.w_max()), (100, 100.0));
    window.restore(80.0);
    window.grow(0.0, 1.0, RTT, at(0.2));
    assert_eq!(window.packets(), 100, "at least");
}

#[test]
fn undo_returns_to_what_was_before_the_first_reduction_of_the_episode() {
    let mut window = window(100.0);
    window.begin_episode();
    window.reduce(BETA, at(0.0));
    window.reduce(BETA, at(1.0));
    window.undo();
    assert_eq!((window.packets(), window.threshold(), window.w_max()), (100, 49, 0.0));
    window.reduce(BETA, at(2.0));
    window.undo();
    assert_eq!(window.packets(), 70, "once");
}

#[test]
fn a_timeout_leaves_one_packet_and_can_be_undone() {
    let mut window = window(100.0);
    window.on_timeout(0, true, at(0.0));
    assert_eq!((window.packets(), window.threshold(), window.w_max()), (1, 70, 0.0));
    window.on_timeout(0, false, at(1.0));
    assert_eq!(window.threshold(), 70, "once an episode");
    window.undo();
    assert_eq!(window.packets(), 100);
}

#[test]
fn idle_time_is_not_time_on_the_curve() {
    let (mut idle, mut busy) = (window(100.0), window(100.0));
    [&mut idle, &mut busy].into_iter().for_each(|window| window.reduce(BETA, at(0.0)));
    run(&mut idle, 1.0, 0.0, 10);
    run(&mut busy, 1.0, 0.0, 20);
    idle.on_idle(Span::from_secs(9), at(10.0));
    run(&mut idle, 1.0, 10.0, 10);
    assert!((idle.cwnd - busy.cwnd).abs() < 0.1, "{idle:?} {busy:?}");
}

/// RFC 7661.
#[test]
fn a_window_without_use_is_kept_for_five_minutes() {
    let after = |seconds| {
        let mut window = window(100.0);
        window.restore(120.0);
        window.on_idle(Span::from_secs(seconds), at(1_000.0));
        let unused = (window.packets(), window.threshold());
        window.grow(0.0, 1.0, RTT, at(1_000.0));
        (unused, window.packets())
    };
    assert_eq!([300, 301].map(after), [((100, 2), 120), ((10, 75), 10)]);
}

/// RFC 7661.
#[test]
fn what_congestion_reduces_is_the_used_part_of_a_window_of_which_less_than_half_is_used() {
    let after = |used| {
        let mut window = window(100.0);
        window.validate(used);
        window.packets()
    };
    assert_eq!([50.0, 49.0, 3.0].map(after), [100, 49, 10]);
}

#[test]
fn a_penalty_halves() {
    let mut window = window(100.0);
    window.penalise();
    assert_eq!((window.packets(), window.threshold()), (50, 2));
}

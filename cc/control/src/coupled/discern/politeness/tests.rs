//! Tests of politeness: its verdicts, and what follows from them.

use super::*;
use crate::single::testing::path;

const BASE: f64 = 0.02;

/// Rounds with this queueing delay in seconds, and so many packets in flight, at a rate in packets a second.
struct Rounds {
    delay: Delay,
    round: Round,
}

impl Rounds {
    fn new(queueing: f64, in_flight: f64, rate: f64) -> Self {
        let (mut delay, mut round) = (Delay::new(Instant::ZERO), Round::new(Instant::ZERO));
        (0..4).for_each(|_| {
            delay.on_sample(BASE, true, Instant::ZERO);
        });
        for number in 1..=MEMORY as u64 {
            let now = Instant::ZERO + Span::from_millis(10 * number);
            round.begin(now);
            round.add_in_flight(in_flight, now);
            round.add_queueing(queueing);
            round.ends(0.01, now + Span::from_millis(10));
        }
        (round.rate, round.latest_rates) = (rate, [rate; 2]);
        Self { delay, round }
    }

    fn view(&self, seconds: f64) -> View<'_> {
        let now = Instant::ZERO + Span::from_secs_f64(seconds);
        View { delay: &self.delay, round: &self.round, srtt: 0.04, return_queueing: 0.0, may_reduce: true, now }
    }
}

fn window(cwnd: f64) -> Window {
    let mut window = Window::new(&path(10, None), 1.0);
    (window.cwnd, window.ssthresh) = (cwnd, 2.0);
    window
}

/// The window of a flow that fills it, once a packet without weight is acknowledged.
fn grown(window: &mut Window) -> f64 {
    window.grow(0.0, 1.0, BASE, Instant::ZERO);
    window.cwnd
}

/// A test that left 0.7 of 100 packets, at a queueing delay of 20 ms and a base RTT of 20 ms.
const TEST: Test = Test {
    at: Instant::ZERO,
    load: Load { in_flight: 100.0, queueing: 0.02 },
    cwnd: 100.0,
    left: 0.7,
    rate: 1_000.0,
    is_steady: true,
};

/// The verdict on the test: verdicts that the queue is ours, and that it is others'.
fn verdict(test: Test, queueing: f64, in_flight: f64, rate: f64) -> (u32, usize) {
    let mut politeness = Politeness::default();
    politeness.judge(test, &Rounds::new(queueing, in_flight, rate).view(1.0), &mut window(70.0));
    (politeness.own_verdicts, politeness.other_verdicts)
}

/// `q_alone = 0.7 (20 + 20) - 20 = 8 ms`; a share of 3/4 of the queue is 11 ms.
#[test]
fn a_queue_that_falls_by_three_quarters_of_what_it_would_if_we_were_alone_is_ours() {
    let verdict = |queueing| verdict(TEST, queueing, 70.0, 900.0);
    assert_eq!([0.008, 0.0109, 0.0111, 0.020].map(verdict), [(1, 0), (1, 0), (0, 1), (0, 1)]);
}

#[test]
fn a_rate_that_falls_by_half_of_the_reduction_shows_others_unless_nothing_is_left_of_the_queue() {
    let verdict = |(queueing, rate)| verdict(TEST, queueing, 70.0, rate);
    assert_eq!([(0.008, 860.0), (0.008, 840.0), (0.0009, 840.0)].map(verdict), [(1, 0), (0, 1), (1, 0)]);
}

#[test]
fn a_test_without_a_window_in_use_says_nothing() {
    assert_eq!(
        verdict(Test { is_steady: false, ..TEST }, 0.02, 70.0, 840.0),
        (0, 0),
        "the rate of before is not known"
    );
    assert_eq!(verdict(TEST, 0.02, 96.0, 1_000.0), (0, 0), "the packets in flight have hardly fallen");
    let mut rounds = Rounds::new(0.02, 70.0, 1_000.0);
    rounds.round.add_in_flight(40.0, Instant::ZERO);
    let mut politeness = Politeness::default();
    politeness.judge(TEST, &rounds.view(1.0), &mut window(70.0));
    assert_eq!((politeness.own_verdicts, politeness.other_verdicts), (0, 0));
}

#[test]
fn after_a_test_that_says_nothing_the_window_returns_unless_it_was_not_needed() {
    let after = |in_flight, rate| {
        let mut rounds = Rounds::new(0.02, in_flight, rate);
        rounds.round.add_in_flight(40.0, Instant::ZERO);
        let mut window = window(70.0);
        Politeness::default().judge(TEST, &rounds.view(1.0), &mut window);
        assert_eq!(window.cwnd, 70.0, "an unfilled window does not grow");
        grown(&mut window)
    };
    assert_eq!(after(70.0, 1_000.0), 70.0, "the rate stayed");
    assert_eq!(after(70.0, 840.0), 100.0, "the rate fell");
    assert_eq!(after(96.0 * 4.0, 1_000.0), 100.0, "nothing was backed off");
}

/// With 20 ms of the RTT of 60 on the acknowledgements' way, 20 ms of queue are a third of the packets in flight.
#[test]
fn what_waits_on_the_way_back_is_not_backed_off() {
    let mut window = window(90.0);
    let rounds = Rounds::new(BASE, 90.0, 1_000.0);
    let view = View { return_queueing: 0.02, ..rounds.view(1.0) };
    Politeness { alone: true, ..Politeness::default() }.begin_test(&view, &mut window);
    assert!((window.cwnd - 60.0).abs() < 1e-9, "{}", window.cwnd);
}

/// With nine tenths of the packets in flight, `0.7 / (1 - 0.3 * 0.9) = 0.959` of the rate is left.
#[test]
fn a_rate_that_nine_tenths_of_the_packets_would_leave_shows_that_the_queue_is_ours() {
    assert_eq!([958.0, 960.0].map(|rate| verdict(TEST, 0.02, 70.0, rate)), [(0, 1), (1, 0)]);
}

#[test]
fn one_of_two_like_flows_never_finds_itself_alone() {
    // Of 100 packets in flight, 50 are ours; 35 are left: the queue falls by 15 of 100 packets.
    let after = 0.85 * (BASE + 0.02) - BASE;
    assert_eq!(verdict(TEST, after, 70.0, 1_000.0 * 0.7 / 0.85), (0, 1));
}

/// Equation 15: of I packets in flight φ I are ours. We leave 0.7 of them, the others hold still, and the queue falls by as much:
/// `s = φ`. Our rate goes to 0.7 / (1 - 0.3 φ) of itself.
#[test]
fn the_share_of_the_queue_that_leaves_is_our_share_of_the_packets_in_flight() {
    let owner = |share: f64| {
        let left = 1.0 - 0.3 * share;
        verdict(TEST, left * (BASE + 0.02) - BASE, 70.0, 1_000.0 * 0.7 / left)
    };
    assert_eq!([0.5, 0.74, 0.76, 1.0].map(owner), [(0, 1), (0, 1), (1, 0), (1, 0)]);
}

#[test]
fn three_verdicts_make_alone_and_three_others_end_it_and_give_the_window_back() {
    let mut politeness = Politeness::default();
    let (own, others) = (Rounds::new(0.008, 70.0, 900.0), Rounds::new(0.020, 70.0, 900.0));
    let mut window = window(100.0);
    politeness.begin_test(&others.view(0.5), &mut window);
    for _ in 0..3 {
        assert!(!politeness.alone);
        politeness.judge(TEST, &own.view(1.0), &mut window);
    }
    assert!(politeness.alone);
    window.cwnd = 70.0;
    for alone in [true, true, false] {
        politeness.judge(TEST, &others.view(10.0), &mut window);
        assert_eq!(politeness.alone, alone);
    }
    assert_eq!(window.w_max(), 70.0, "what was used of it");
}

#[test]
fn a_rate_that_falls_with_the_window_gives_the_window_back() {
    let mut politeness = Politeness { alone: true, own_verdicts: VERDICTS, ..Politeness::default() };
    let mut window = window(70.0);
    politeness.judge(TEST, &Rounds::new(0.020, 70.0, 800.0).view(10.0), &mut window);
    assert_eq!((politeness.own_verdicts, grown(&mut window)), (VERDICTS - 1, 100.0));
}

/// The queue of 20 ms is that of a base RTT of 20 ms: 2 ms are a standing queue, and 1 ms is half of it.
#[test]
fn a_delay_that_stays_while_the_rate_falls_with_the_window_is_a_longer_path() {
    let longer_by = |latest: f64, rate: f64| {
        let mut rounds = Rounds::new(0.02, 70.0, rate);
        rounds.round.add_queueing(latest);
        let mut politeness = Politeness { test: Some(TEST), ..Politeness::default() };
        let mut window = window(70.0);
        let seconds = politeness.end_round(&rounds.view(1.0), &mut window, &mut RngStream::named(1, "test"));
        window.grow(1.0, 1.0, BASE, Instant::ZERO);
        (seconds, window.cwnd >= 100.0)
    };
    assert_eq!(longer_by(0.0191, 700.0), (Some(0.0191), true));
    assert_eq!(longer_by(0.0189, 700.0), (None, true), "the queue moves: it is of others, and the window returns");
    assert_eq!(longer_by(0.02, 1_000.0), (None, false), "the rate stayed: it is ours");
}

#[test]
fn who_is_alone_backs_off_to_nine_tenths_of_that_until_an_old_base_rtt_is_seen_again() {
    let mut rounds = Rounds::new(2.0 * BASE, 90.0, 1_000.0);
    let after = |rounds: &Rounds| {
        let mut politeness = Politeness { alone: true, ..Politeness::default() };
        let mut window = window(90.0);
        politeness.begin_test(&rounds.view(1.0), &mut window);
        window.cwnd
    };
    let mut samples = |rtt: f64| {
        (0..8).for_each(|_| {
            rounds.delay.on_sample(rtt, true, Instant::ZERO + Span::from_secs(11));
        });
        after(&rounds)
    };
    assert!((samples(1.06 * BASE) - 27.0).abs() < 1e-9);
    assert!((samples(BASE) - 30.0).abs() < 1e-9);
}

#[test]
fn who_is_alone_backs_off_to_an_empty_queue_and_others_to_0_7_of_the_used_window() {
    for (alone, left) in [(false, 0.7), (true, 1.0 / 3.0)] {
        let mut politeness = Politeness { alone, ..Politeness::default() };
        let mut window = window(200.0);
        politeness.begin_test(&Rounds::new(2.0 * BASE, 90.0, 1_000.0).view(1.0), &mut window);
        assert!((window.cwnd - 90.0 * left).abs() < 1e-9, "{}", window.cwnd);
    }
}

#[test]
fn a_queue_that_halves_for_good_without_us_shows_others() {
    let sees = |later: f64, in_flight: f64| {
        let mut rounds = Rounds::new(0.03, 70.0, 1_000.0);
        for number in 0..4 {
            let now = Instant::ZERO + Span::from_millis(200 + 10 * number);
            rounds.round.begin(now);
            rounds.round.add_in_flight(in_flight, now);
            rounds.round.add_queueing(later);
        }
        Politeness::default().sees_others(&rounds.view(1.0), &window(70.0))
    };
    assert_eq!(
        [(0.014, 70.0), (0.016, 70.0), (0.014, 50.0)].map(|(later, packets)| sees(later, packets)),
        [true, false, false]
    );
}

#[test]
fn after_others_were_seen_there_is_no_test_for_1_then_3_then_10_seconds() {
    let (mut politeness, mut window) = (Politeness::default(), window(100.0));
    for (now, next) in [(1, 2), (2, 5), (5, 15), (20, 30)] {
        politeness.on_others(&mut window, Instant::ZERO + Span::from_secs(now));
        assert_eq!(politeness.next_test, Instant::ZERO + Span::from_secs(next));
    }
}

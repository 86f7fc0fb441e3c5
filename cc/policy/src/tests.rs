//! Closed forms of features, actions and rewards, and the boundaries of intervals.

use crate::{
    Action, Feature, Interval, Observation, Policy, PolicyController, PolicyError, Reward, Settings, Share, Summary,
};
use control::{AckSample, CaState, Context, Controller, LinuxRelease, PathEvent, PathInfo, Reduction};
use units::{Instant, PathId, Rate, RngStream, Span};

const MSS: u32 = 1250; // 100 packets a second are 1 Mbit/s

fn settings(observation: &str, action: &str, interval: Interval) -> Settings {
    let observation = Observation::parse(observation, None).expect("known");
    Settings { observation, action: Action::parse(action).expect("known"), interval, paths: 1 }
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

fn send(controller: &mut PolicyController, millis: u64, event: &PathEvent) {
    let mut rng = RngStream::named(1, "test");
    controller.on_event(PathId(0), event, &mut Context { now: at(millis), rng: &mut rng });
}

fn up(rtt_ms: u64) -> PathEvent {
    PathEvent::PathUp(PathInfo {
        mss: MSS,
        initial_window: 10,
        rtt: Some(Span::from_millis(rtt_ms)),
        tick: Span::from_millis(1),
        cwnd_clamp: u32::MAX,
        reduction: Reduction::default(),
        release: LinuxRelease::default(),
    })
}

fn ack(acked: u32, sent: u32, lost: u32, rtt_ms: u64) -> PathEvent {
    let rtt = Span::from_millis(rtt_ms);
    PathEvent::Ack(AckSample { acked, sent, lost, rtt: Some(rtt), srtt: rtt, min_rtt: rtt, ..AckSample::default() })
}

/// Answers with the number of its call, and remembers what it saw.
#[derive(Debug, Default)]
struct Counting(f32);

impl Policy for Counting {
    fn act(&mut self, _: &[f32], action: &mut [f32]) -> Result<(), PolicyError> {
        self.0 += 1.0;
        action.fill(self.0);
        Ok(())
    }
}

#[derive(Debug)]
struct Constant(f32);

impl Policy for Constant {
    fn act(&mut self, _: &[f32], action: &mut [f32]) -> Result<(), PolicyError> {
        action.fill(self.0);
        Ok(())
    }
}

#[test]
fn an_interval_is_closed_at_its_boundary_and_not_at_the_event_that_shows_it() {
    let fixed = Interval::Fixed(Span::from_millis(10));
    let mut controller =
        PolicyController::new(settings("elapsed_ms,acked_packets", "rate", fixed), Box::new(Counting(0.0)));
    send(&mut controller, 1, &up(20));
    send(&mut controller, 5, &ack(3, 3, 0, 20));
    send(&mut controller, 9, &ack(4, 4, 0, 20));
    assert_eq!(controller.decisions(), 0);
    // The boundary at 10 ms is crossed; intervals without an event are not decided.
    send(&mut controller, 35, &ack(5, 5, 0, 20));
    assert_eq!((controller.decisions(), controller.observation_for_tests()), (1, &[10.0, 7.0][..]));
    assert_eq!(controller.boundary(), at(40));
    // An event at the boundary belongs to the next interval; the one before began at 10 ms.
    send(&mut controller, 40, &ack(6, 6, 0, 20));
    assert_eq!((controller.decisions(), controller.observation_for_tests()), (2, &[30.0, 5.0][..]));
    assert_eq!(controller.boundary(), at(50));
}

#[test]
fn an_interval_of_a_round_trip_has_the_length_of_the_rtt_at_its_start() {
    let mut controller = PolicyController::from_outside(settings("aurora", "rate_change", Interval::RoundTrip));
    send(&mut controller, 1, &up(30));
    assert_eq!(controller.boundary(), at(10));
    controller.observe();
    assert_eq!(controller.boundary(), at(40));
    send(&mut controller, 20, &ack(1, 1, 0, 50));
    assert_eq!(controller.boundary(), at(40));
    controller.observe();
    assert_eq!(controller.boundary(), at(90));
    assert!(!controller.is_due());
    controller.skip();
    assert_eq!(controller.boundary(), at(140));
}

#[test]
fn aurora_sees_the_slope_of_the_rtt_its_ratio_and_the_send_ratio() {
    let fixed = Interval::Fixed(Span::from_millis(100));
    let mut controller = PolicyController::from_outside(settings("aurora", "rate_change", fixed));
    send(&mut controller, 0, &up(20));
    send(&mut controller, 10, &ack(10, 10, 0, 20));
    let newest = |controller: &mut PolicyController| controller.observe()[27..].to_vec();
    assert_eq!(newest(&mut controller), [0.0, 1.0, 1.0]);
    // The RTT rises by 1 ms each 10 ms: a slope of 0.1; its mean is 30 ms, 1.5 of the least; 30 sent for 20 delivered.
    for (index, millis) in [110, 120, 130, 140].into_iter().enumerate() {
        send(&mut controller, millis, &ack(5, if index == 0 { 15 } else { 5 }, 0, 28 + index as u64));
    }
    let [slope, latency, send_ratio] = newest(&mut controller)[..] else { panic!("three features") };
    assert!((slope - 0.1).abs() < 1e-6, "{slope}");
    assert!((latency - 29.5 / 20.0).abs() < 1e-6, "{latency}");
    assert_eq!(send_ratio, 1.5);
}

#[test]
fn a_rate_changes_by_auroras_rule_and_inversely() {
    let fixed = Interval::Fixed(Span::from_millis(100));
    let rate = |actions: &[f32]| {
        let mut controller = PolicyController::from_outside(settings("aurora", "rate_change(0.025)", fixed));
        send(&mut controller, 0, &up(100));
        let mut rng = RngStream::named(1, "test");
        actions.iter().for_each(|a| controller.decide(&[*a], &mut Context { now: at(0), rng: &mut rng }));
        controller.decision(PathId(0)).pacing_rate.expect("paced").as_mbps()
    };
    // Ten packets of 1250 bytes in 100 ms.
    assert_eq!(rate(&[]), 1.0);
    assert_eq!(rate(&[2.0]), 1.05);
    assert!((rate(&[2.0, -2.0]) - 1.0).abs() < 2e-6);
    assert_eq!(rate(&[1e9]), 2.0, "doubled at most");
}

#[test]
fn a_rate_is_set_on_a_logarithmic_scale() {
    let mut controller =
        PolicyController::from_outside(settings("aurora", "rate(1, 100)", Interval::Fixed(Span::from_millis(10))));
    send(&mut controller, 0, &up(100));
    let mut rng = RngStream::named(1, "test");
    let mut rate = |a: f32| {
        controller.decide(&[a], &mut Context { now: at(0), rng: &mut rng });
        controller.decision(PathId(0)).pacing_rate.expect("paced")
    };
    assert_eq!([rate(-1.0), rate(0.0), rate(1.0)], [1, 10, 100].map(Rate::from_mbit));
}

#[test]
fn a_window_and_cubics_window_are_multiplied() {
    for (action, a, cwnd) in [
        ("window_change", 1.0, 20),
        ("window_change", -1.0, 5),
        ("cubic_steering", 1.0, 40),
        ("cubic_steering", -1.0, 2),
    ] {
        let mut controller =
            PolicyController::from_outside(settings("orca", action, Interval::Fixed(Span::from_millis(20))));
        send(&mut controller, 0, &up(100));
        let mut rng = RngStream::named(1, "test");
        controller.decide(&[a], &mut Context { now: at(0), rng: &mut rng });
        assert_eq!(controller.decision(PathId(0)).cwnd, cwnd, "{action} {a}");
    }
}

#[test]
fn a_policy_that_answers_nan_leaves_cubic_at_the_present_window() {
    let fixed = Interval::Fixed(Span::from_millis(10));
    let mut controller = PolicyController::new(settings("orca", "window_change", fixed), Box::new(Constant(f32::NAN)));
    send(&mut controller, 0, &up(20));
    send(&mut controller, 30, &PathEvent::Ack(AckSample { ca_state: CaState::Open, ..AckSample::default() }));
    assert_eq!(controller.failure(), Some(&PolicyError("the policy answered NaN".to_owned())));
    assert_eq!(controller.decision(PathId(0)).cwnd, 10);
    let grows = AckSample { acked: 4, may_raise_cwnd: true, cwnd_limited: true, ..AckSample::default() };
    send(&mut controller, 40, &PathEvent::Ack(grows));
    assert_eq!(controller.decision(PathId(0)).cwnd, 14, "slow start");
}

#[test]
fn rewards_are_those_of_their_papers() {
    let summary = Summary {
        elapsed: 0.1,
        acked: 90.0,
        lost: 10.0,
        rtt: 0.05,
        srtt: 0.05,
        min_rtt: 0.02,
        throughput: 9.0,
        lost_rate: 1.0,
        max_throughput: 18.0,
        ..Summary::default()
    };
    let share = Share { capacity: 10.0, fair: 5.0 };
    let reward = |name| Reward::preset(name).expect("known").of(&summary, &share);
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} for {b}");
    close(reward("aurora"), 10.0 * 900.0 - 1000.0 * 0.05 - 2000.0 * 0.1);
    close(reward("orca"), ((9.0 - 5.0) / (0.05 / 1.25)) / (18.0 / 0.02));
    close(reward("sage"), 25.0 * 0.7 * 0.7 * 0.4);
    let x = 9.0 / 4.75;
    close(reward("sage_friendliness"), 25.0 * libm::exp(-8.0 * (x - 1.0) * (x - 1.0)));
    let terms = Reward::terms([("throughput_mbps", 2.0), ("rtt_ms", -0.1)]).expect("known");
    close(terms.of(&summary, &share), 2.0 * 9.0 - 0.1 * 50.0);
}

#[test]
fn sages_windows_keep_the_last_ten_two_hundred_and_thousand() {
    let fixed = Interval::Fixed(Span::from_millis(10));
    let mut controller = PolicyController::from_outside(settings(
        "rtt_s_avg,rtt_s_max,rtt_m_min,rtt_l_min,rtt_l_max",
        "window_change",
        fixed,
    ));
    send(&mut controller, 0, &up(100));
    let mut last = Vec::new();
    // RTTs of 1, 2, ... 1500 ms; the unit is 100 ms.
    for rtt in 1..=1500 {
        send(&mut controller, 10 * rtt, &ack(1, 1, 0, rtt));
        last = controller.observe().to_vec();
    }
    assert_eq!(last, [14.955, 15.0, 13.01, 5.01, 15.0]);
}

#[test]
fn names_round_trip_and_wrong_ones_are_refused_with_what_there_is() {
    assert_eq!(Observation::parse("sage", None).expect("known").len(), 69);
    assert_eq!(Observation::parse("aurora", None).expect("known").len(), 30);
    for name in Feature::all().map(Feature::name) {
        assert_eq!(Feature::find(&name).expect("known").name(), name);
    }
    for text in ["aurora", "orca", "sage", "rtt_ms,loss_ratio"] {
        assert_eq!(Observation::parse(text, None).expect("known").to_string(), text);
    }
    for text in ["rate_change(0.025)", "rate(1, 100)", "window_change(1)", "cubic_steering(2)"] {
        assert_eq!(Action::parse(text).expect("known").to_string(), text);
    }
    for text in ["rate(2, 1)", "rate(1)", "rate_change(0)", "rate_change(x)", "rat", "rate(1, 2"] {
        assert!(Action::parse(text).expect_err("wrong").to_string().starts_with(&format!("`{text}` is not")));
    }
    assert!(Observation::parse("rtt", None).expect_err("wrong").to_string().contains("rtt_ms"));
    assert!(Reward::terms([("rtt_s_avg", 1.0)]).is_err(), "a window is not a term");
}

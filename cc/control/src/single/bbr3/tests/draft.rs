//! The test cases of draft-ietf-ccwg-bbr-06's appendix ("BBR Example Test Cases": 22), by driving events. The cases
//! that need a network (aggregation in Startup, a bandwidth-delay product below a packet, ten times the bandwidth, a
//! policer) are in `sim/tests/suite/bbr3_draft.rs`.
//!
//! Where the text is ambiguous:
//! - Drain ends "after 3 round trips"; by the pseudocode (`round_count > drain_start_round + 3`) at the fourth.
//! - Application-limited loss in ProbeBW_UP updates inflight_longterm "appropriately, regardless of the
//!   application-limited state"; by the pseudocode a lost packet that was sent application-limited does not change it.
//! - An application-limited flow stays in ProbeBW_UP "indefinitely": but for ProbeRTT, which any state enters. Its RTT
//!   estimate is kept fresh here.
//! - ProbeBW_UP ends at a plateau while the flow fills "inflight_longterm or cwnd": only cwnd, as a flow that is
//!   limited by inflight_longterm restarts the search for a plateau.
//! - Loss ends Startup with `full_bw_now` set; the algorithm's text sets `full_bw_reached` alone. Set are both.
//! - A loss episode saves "the current BBR.state"; by the pseudocode the state is noted when the episode's loss ends it,
//!   which Startup and ProbeBW_UP only are.
//! - The table of control parameters bounds Drain's window by inflight_longterm; the pseudocode does not.

use super::super::super::bbr3_draft;
use super::*;

/// A flow with RTTs of 50 ms.
fn flow() -> Flow {
    Flow::with_rtt(Bbr3::as_in_draft(&defaults(&bbr3_draft::ENTRY)), RTT)
}

/// A flow in Drain with too much in flight, on a path of 100 packets a round trip.
fn draining() -> Flow {
    let mut flow = flow();
    for acked in [10, 20, 40, 80, 100, 100, 100, 100] {
        flow.round_with(acked, |sample| sample.in_flight = 1000);
    }
    flow
}

/// A flow in this mode of ProbeBW, on a path of 100 packets a round trip.
fn flow_in(mode: Mode) -> Flow {
    let mut flow = draining();
    flow.rounds_until(mode);
    flow
}

/// Makes the minimum RTT a new one, so that no ProbeRTT is due for five seconds.
fn refresh_min_rtt(flow: &mut Flow) {
    let now = Instant::ZERO + Span::from_millis(flow.now_ms);
    flow.controller.min_rtt = MinRtt::new(Some(Span::from_millis(RTT)), now);
}

fn set_app_limited(sample: &mut AckSample) {
    sample.cwnd_limited = false;
    sample.rate_sample.as_mut().expect("there is one").app_limited = true;
    for sent in [&mut sample.newest_lost, &mut sample.newest_delivered].into_iter().flatten() {
        sent.app_limited = true;
    }
}

/// The pacing rate over the bandwidth, without the pacing margin of 1 %.
fn pacing_gain(flow: &Flow) -> f64 {
    let bandwidth = bytes_per_second(flow.controller.bw(), flow.controller.mss, BBR_UNIT);
    flow.controller.pacing_rate as f64 / bandwidth as f64
}

/// Whether two gains are equal in units of 1/256.
fn are_equal(gain: f64, expected: f64) -> bool {
    (gain - expected).abs() <= 0.5 / 256.0 + 1e-6
}

#[test]
fn exiting_startup_on_bandwidth_plateau() {
    let mut flow = flow();
    for acked in [10, 20, 40, 80, 100, 100, 100] {
        flow.round_with(acked, |sample| sample.in_flight = 1000);
        assert!(are_equal(pacing_gain(&flow), 2.77) || flow.now_ms == RTT, "{}", pacing_gain(&flow));
    }
    assert_eq!((flow.controller.mode, flow.controller.full_bw.full_bw_reached), (Mode::Startup, false));
    flow.round_with(100, |sample| sample.in_flight = 1000);
    let FullBw { full_bw_now, full_bw_reached, .. } = flow.controller.full_bw;
    assert_eq!((flow.controller.mode, full_bw_now, full_bw_reached), (Mode::Drain, true, true));
    let max_bw = flow.controller.max_bw() as f64 / model::rate(100, Span::from_millis(RTT)) as f64;
    assert!((0.98..=1.02).contains(&max_bw), "{max_bw}");
}

/// Startup of an application-limited flow, in which a round of recovery loses so many of 200 packets, one an
/// acknowledgement.
fn app_limited_startup_with_loss(lost: u32) -> Bbr3 {
    let mut flow = flow();
    flow.rounds(3, 50);
    flow.congestion(Cause::Loss, 0);
    let in_recovery = |sample: &mut AckSample, lost| {
        set_lost(sample, 200, lost);
        (sample.ca_state, sample.in_flight) = (CaState::Recovery, 1000);
        set_app_limited(sample);
    };
    (1..=lost).for_each(|lost| flow.ack_with(5, |sample| in_recovery(sample, lost)));
    flow.round_with(50, |sample| {
        in_recovery(sample, lost);
        (sample.lost, sample.newest_lost) = (0, None);
    });
    flow.controller
}

#[test]
fn exiting_startup_on_loss_when_application_limited() {
    let bbr = app_limited_startup_with_loss(6);
    assert_eq!((bbr.mode, bbr.full_bw.full_bw_now, bbr.full_bw.full_bw_reached), (Mode::Drain, true, true));
    assert_eq!(bbr.undo_mode, Some(Mode::Startup));
    let bdp = u32::try_from(bbr.bdp(bbr.max_bw(), BBR_UNIT)).expect("small");
    assert_eq!(bbr.bounds.inflight_hi, bdp.max(bbr.congestion.inflight_latest));
    assert_eq!(app_limited_startup_with_loss(5).mode, Mode::Startup, "2.5 %, but less than six ranges");
}

#[test]
fn more_than_two_percent_is_too_much() {
    let draft = flow().controller;
    for (in_flight, allowed) in [(49, 0), (50, 1), (99, 1), (100, 2), (150, 3), (1000, 20)] {
        assert!(!draft.is_inflight_too_high(&record(in_flight, allowed)), "{in_flight}");
        assert!(draft.is_inflight_too_high(&record(in_flight, allowed + 1)), "{in_flight}");
    }
}

#[test]
fn exiting_drain_based_on_inflight() {
    let mut flow = draining();
    assert!(are_equal(pacing_gain(&flow), 0.5), "{}", pacing_gain(&flow));
    let bdp = flow.controller.inflight(flow.controller.bw());
    assert!(bdp.abs_diff(100) <= 1, "{bdp}");
    let in_flight =
        |packets| move |sample: &mut AckSample| (sample.in_flight, sample.prior_in_flight) = (packets, 1000);
    flow.round_with(100, in_flight(bdp + 1));
    assert_eq!(flow.controller.mode, Mode::Drain);
    flow.round_with(100, in_flight(bdp));
    assert_eq!(flow.controller.mode, Mode::ProbeBwDown);
}

#[test]
fn exiting_drain_based_on_time() {
    let mut flow = draining();
    for _ in 0..3 {
        flow.round_with(90, |sample| (sample.in_flight, sample.prior_in_flight) = (1000, 1000));
        assert_eq!(flow.controller.mode, Mode::Drain);
    }
    flow.round_with(90, |sample| (sample.in_flight, sample.prior_in_flight) = (1000, 1000));
    assert_eq!(flow.controller.mode, Mode::ProbeBwDown, "three round trips, and 1000 packets in flight");
}

#[test]
fn exiting_probe_up_on_bandwidth_plateau() {
    let mut flow = flow_in(Mode::ProbeBwUp);
    assert!(are_equal(pacing_gain(&flow), 1.25), "{}", pacing_gain(&flow));
    for acked in [100, 124] {
        flow.round_with(acked, |sample| sample.prior_in_flight = 1000);
        assert_eq!((flow.controller.mode, flow.controller.full_bw.full_bw_now), (Mode::ProbeBwUp, false));
    }
    flow.round_with(124, |sample| sample.prior_in_flight = 1000);
    assert_eq!((flow.controller.mode, flow.controller.full_bw.full_bw_now), (Mode::ProbeBwDown, true));
    let mut growing = flow_in(Mode::ProbeBwUp);
    [125, 157, 197].into_iter().for_each(|acked| growing.round(acked));
    assert_eq!(growing.controller.mode, Mode::ProbeBwUp, "25 % a round");
}

#[test]
fn exiting_probe_up_on_loss_when_application_limited() {
    let down = |lost, lost_app_limited| {
        let mut flow = flow_in(Mode::ProbeBwUp);
        flow.round_with(100, |sample| {
            set_lost(sample, 200, lost);
            set_app_limited(sample);
            sample.newest_lost.as_mut().expect("set").app_limited = lost_app_limited;
            sample.prior_in_flight = 1000;
        });
        (flow.controller.mode, flow.controller.bounds.inflight_hi)
    };
    assert_eq!(down(4, true), (Mode::ProbeBwUp, u32::MAX), "2 %");
    assert_eq!(down(5, true), (Mode::ProbeBwDown, u32::MAX), "a lost packet that was application-limited");
    // 199 + (0.02 * 199 - 4) / 0.98 = 198.98 packets.
    assert_eq!(down(5, false), (Mode::ProbeBwDown, 199));
}

#[test]
fn never_exiting_probe_up_or_startup_when_application_limited_with_no_loss() {
    for (mut flow, mode) in [(flow(), Mode::Startup), (flow_in(Mode::ProbeBwUp), Mode::ProbeBwUp)] {
        for _ in 0..1000 {
            refresh_min_rtt(&mut flow);
            flow.round_with(10, set_app_limited);
            assert_eq!(flow.controller.mode, mode);
        }
    }
}

#[test]
fn exiting_probe_down_on_inflight() {
    let mut flow = draining();
    flow.round_with(100, |sample| sample.prior_in_flight = 1000);
    assert_eq!(flow.controller.mode, Mode::ProbeBwDown);
    assert!(are_equal(pacing_gain(&flow), 0.90), "{}", pacing_gain(&flow));
    // Both the headroom, 0.85 * 110 = 93.5 packets, and the bandwidth-delay product of 100.
    flow.controller.bounds.inflight_hi = 110;
    flow.round_with(100, |sample| sample.prior_in_flight = 95);
    assert_eq!(flow.controller.mode, Mode::ProbeBwDown);
    flow.controller.bounds.inflight_hi = 1000;
    flow.round_with(100, |sample| sample.prior_in_flight = 102);
    assert_eq!(flow.controller.mode, Mode::ProbeBwDown);
    flow.controller.bounds.inflight_hi = 110;
    flow.round_with(100, |sample| sample.prior_in_flight = 93);
    assert_eq!(flow.controller.mode, Mode::ProbeBwCruise);
}

#[test]
fn exiting_probe_down_after_max_time() {
    let mut flow = draining();
    flow.round_with(100, |sample| sample.prior_in_flight = 1000);
    let start_ms = flow.now_ms;
    while flow.controller.mode == Mode::ProbeBwDown {
        refresh_min_rtt(&mut flow);
        flow.round_with(90, |sample| sample.prior_in_flight = 1000);
    }
    assert_eq!(flow.controller.mode, Mode::ProbeBwRefill);
    // bw_probe_wait is 2 to 3 s, and is looked at once a round.
    let waited_ms = flow.now_ms - start_ms;
    assert!((2000..=3000 + RTT).contains(&waited_ms), "{waited_ms} ms");
}

#[test]
fn entering_and_exiting_probe_rtt() {
    let mut flow = flow_in(Mode::ProbeBwCruise);
    while flow.now_ms < 5000 {
        assert!(flow.controller.mode.is_probe_bw(), "{:?}", flow.controller.mode);
        flow.round(100);
    }
    flow.round_with(100, |sample| sample.in_flight = 100);
    // Half the product of 100 packets.
    assert_eq!(flow.controller.mode, Mode::ProbeRtt);
    assert!(flow.controller.cwnd.abs_diff(50) <= 1, "{}", flow.controller.cwnd);
    flow.round_with(50, |sample| sample.in_flight = 50);
    let start_ms = flow.now_ms;
    while flow.controller.mode == Mode::ProbeRtt {
        flow.round_with(50, |sample| sample.in_flight = 50);
    }
    assert!(flow.now_ms - start_ms > 200, "{} ms", flow.now_ms - start_ms);
    assert_eq!(flow.controller.mode, Mode::ProbeBwCruise);
    assert!(flow.controller.cwnd >= 200, "{}", flow.controller.cwnd);
}

#[test]
fn skipping_probe_rtt_due_to_application_limited_sending() {
    let after_idling = |tells: bool| {
        let mut flow = flow_in(Mode::ProbeBwCruise);
        flow.now_ms += 6000;
        if tells {
            flow.event(&PathEvent::IdleRestart {
                idle: Span::from_secs(6),
                rto: Span::from_millis(250),
                app_limited: true,
            });
            assert!(flow.controller.idle_restart);
            assert!(are_equal(pacing_gain(&flow), 1.0), "{}", pacing_gain(&flow));
        }
        flow.round(10);
        flow.controller
    };
    let bbr = after_idling(true);
    assert!(bbr.mode.is_probe_bw() && !bbr.idle_restart, "{:?}", bbr.mode);
    assert_eq!(after_idling(false).mode, Mode::ProbeRtt, "without a pause");
}

/// A round trip of 100 packets, acknowledged two each millisecond.
fn even_round(flow: &mut Flow) {
    for _ in 0..RTT {
        flow.now_ms += 1;
        flow.prior_delivered = flow.delivered + 2 - 100;
        flow.ack_with(2, |sample| sample.prior_in_flight = 100);
    }
}

#[test]
fn achieving_expected_cruise_bandwidth_on_a_link_with_aggregation() {
    // All 100 packets of a round trip are acknowledged at once, though none is expected at the end of an interval.
    let mut flow = flow_in(Mode::ProbeBwCruise);
    flow.rounds(3, 100);
    let Bbr3 { cwnd, extra_acked_filter, .. } = &flow.controller;
    let bdp = flow.controller.bdp(flow.controller.bw(), 2 * BBR_UNIT);
    assert_eq!((extra_acked_filter.get(), u64::from(*cwnd)), (100, bdp + 100));
    // Then the aggregation ends, with a pause in which as much is expected as was acknowledged: remembered for ten
    // round trips.
    flow.now_ms += RTT + 1;
    (0..10).for_each(|_| even_round(&mut flow));
    assert_eq!(flow.controller.extra_acked_filter.get(), 100);
    (0..2).for_each(|_| even_round(&mut flow));
    assert!(flow.controller.extra_acked_filter.get() <= 4, "{}", flow.controller.extra_acked_filter.get());
}

#[test]
fn increasing_bandwidth_10x_doubles_the_step_of_inflight_longterm_each_round_trip() {
    let mut flow = flow_in(Mode::ProbeBwRefill);
    flow.controller.bounds.inflight_hi = 128;
    flow.controller.cwnd = 128;
    flow.round(100);
    let mut bounds = vec![128];
    for _ in 0..5 {
        flow.controller.cwnd = 128.max(flow.controller.bounds.inflight_hi);
        flow.stream(128);
        bounds.push(flow.controller.bounds.inflight_hi);
    }
    let steps: Vec<u32> = bounds.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!((flow.controller.mode, steps), (Mode::ProbeBwUp, vec![1, 2, 4, 8, 16]));
}

#[test]
fn decreasing_bandwidth_10x_and_ensuring_max_bandwidth_adapts_down() {
    let mut flow = flow_in(Mode::ProbeBwCruise);
    let [full, tenth] = [100, 10].map(|packets| model::rate(packets, Span::from_millis(RTT)));
    assert_eq!(flow.controller.bw(), full);
    // The round in which the loss begins still delivers the earlier bandwidth.
    let round = |flow: &mut Flow| {
        refresh_min_rtt(flow);
        flow.prior_delivered = flow.delivered - 9;
        flow.ack_with(1, |sample| set_lost(sample, 100, 10));
        flow.round(10);
    };
    round(&mut flow);
    let shares: Vec<f64> = (0..8)
        .map(|_| {
            round(&mut flow);
            flow.controller.bounds.bw_lo as f64 / full as f64
        })
        .collect();
    // Half of 1/256 a round is the precision of 0.7.
    let betas = (0..8).scan(1.0, |product, _| {
        *product *= 0.7;
        Some(*product)
    });
    for ((round, beta), share) in (1..).zip(betas).zip(&shares) {
        assert!((share / f64::max(beta, 0.1) - 1.0).abs() < 0.003 * f64::from(round), "{shares:?}");
    }
    assert_eq!((flow.controller.bw(), flow.controller.max_bw()), (tenth, full));
    for _ in 0..2 {
        for mode in [Mode::ProbeBwUp, Mode::ProbeBwCruise] {
            while flow.controller.mode != mode {
                refresh_min_rtt(&mut flow);
                flow.round(10);
            }
        }
    }
    assert_eq!(flow.controller.max_bw(), tenth);
}

/// A probe that spurious loss of a fifth of its packets ends.
fn probe_with_spurious_loss(cause: Cause, state: CaState) {
    let mut flow = flow_in(Mode::ProbeBwUp);
    let saved = Bounds { bw_lo: 3 << 24, inflight_lo: 300, inflight_hi: 400 };
    flow.controller.bounds = saved;
    let cwnd = flow.controller.cwnd;
    flow.congestion(cause, 0);
    assert_eq!((flow.controller.undo_bounds, flow.controller.prior_cwnd), (Some(saved), cwnd));
    flow.round_with(20, |sample| {
        set_lost(sample, 100, 20);
        (sample.ca_state, sample.prior_in_flight) = (state, 1000);
    });
    assert_eq!((flow.controller.mode, flow.controller.undo_mode), (Mode::ProbeBwDown, Some(Mode::ProbeBwUp)));
    assert!(flow.controller.bounds.inflight_hi < 400, "{:?}", flow.controller.bounds);
    flow.event(&PathEvent::SpuriousLoss);
    // Back to the probe, by its refill, which clears the short-term bounds.
    assert_eq!(flow.controller.mode, Mode::ProbeBwRefill);
    assert_eq!(flow.controller.bounds, Bounds { inflight_hi: 400, ..Bounds::NONE });
    assert!(flow.controller.cwnd >= cwnd && flow.controller.undo_mode.is_none(), "{}", flow.controller.cwnd);
    flow.round(100);
    assert_eq!(flow.controller.mode, Mode::ProbeBwUp);
}

#[test]
fn handling_spurious_fast_recovery() {
    probe_with_spurious_loss(Cause::Loss, CaState::Recovery);
    // Cruising, the bounds return and the state stays.
    let mut flow = flow_in(Mode::ProbeBwCruise);
    flow.congestion(Cause::Loss, 0);
    flow.round_with(10, |sample| set_lost(sample, 100, 1));
    flow.round(10);
    assert!(flow.controller.bounds.inflight_lo < u32::MAX);
    flow.event(&PathEvent::SpuriousLoss);
    assert_eq!((flow.controller.mode, flow.controller.bounds), (Mode::ProbeBwCruise, Bounds::NONE));
    // Startup continues.
    let mut startup = flow;
    startup.controller = app_limited_startup_with_loss(6);
    startup.event(&PathEvent::SpuriousLoss);
    let Bbr3 { mode, bounds, full_bw, .. } = &startup.controller;
    assert_eq!((*mode, *bounds, full_bw.full_bw_reached), (Mode::Startup, Bounds::NONE, false));
}

#[test]
fn handling_spurious_rto_recovery() {
    probe_with_spurious_loss(Cause::Timeout, CaState::Loss);
}

#[test]
fn entering_and_exiting_probe_rtt_during_startup() {
    let mut flow = flow();
    while flow.controller.mode == Mode::Startup {
        flow.round_with(10, set_app_limited);
    }
    assert_eq!((flow.controller.mode, flow.now_ms), (Mode::ProbeRtt, 5000 + RTT));
    while flow.controller.mode == Mode::ProbeRtt {
        flow.round_with(4, set_app_limited);
    }
    assert!((5250..=5500).contains(&flow.now_ms), "{} ms", flow.now_ms);
    assert_eq!((flow.controller.mode, flow.controller.full_bw.full_bw_reached), (Mode::Startup, false));
}

#[test]
fn handling_loss_during_probe_up_after_inflight_longterm_is_set() {
    let mut flow = flow_in(Mode::ProbeBwRefill);
    flow.controller.bounds.inflight_hi = 150;
    flow.round(100);
    let target = flow.controller.target_inflight();
    assert_eq!(flow.controller.mode, Mode::ProbeBwUp);
    flow.round_with(100, |sample| {
        set_lost(sample, 20, 20);
        sample.prior_in_flight = 1000;
    });
    assert_eq!(flow.controller.mode, Mode::ProbeBwDown);
    // 0.7 of the bandwidth-delay product, as that is more than the 20 in flight.
    let bound = flow.controller.bounds.inflight_hi;
    assert!(bound.abs_diff(target * 7 / 10) <= 1 && target.abs_diff(100) <= 1, "{bound} of {target}");
}

#[test]
fn handling_application_limited_sending_during_probe_refill() {
    let mut flow = flow_in(Mode::ProbeBwRefill);
    let filter = flow.controller.bw_filter;
    flow.round_with(5, set_app_limited);
    assert_eq!((flow.controller.mode, flow.controller.bw_filter), (Mode::ProbeBwUp, filter));
    // The probe that follows finds twice the bandwidth.
    [125, 157, 197].into_iter().for_each(|acked| flow.round(acked));
    assert_eq!(flow.controller.max_bw(), model::rate(197, Span::from_millis(RTT)));
    assert_eq!(flow.rounds_until(Mode::ProbeBwDown), 3);
}

//! Undo, timeouts, tail-loss probes, restarts and marks.

use super::*;

#[test]
fn undo_restores_bounds_and_window() {
    let mut flow = Flow::cruising();
    let cwnd = flow.controller.cwnd;
    flow.congestion(Cause::Loss, 0);
    flow.ack_with(1, |sample| {
        sample.ca_state = CaState::Recovery;
        set_lost(sample, 100, 1);
    });
    flow.round_with(10, |sample| sample.ca_state = CaState::Recovery);
    assert!(flow.controller.bounds.inflight_lo < u32::MAX && flow.controller.cwnd < cwnd, "{:?}", flow.controller);
    flow.event(&PathEvent::SpuriousLoss);
    assert_eq!((flow.controller.bounds, flow.controller.cwnd), (Bounds::NONE, cwnd));
    assert!(!flow.controller.congestion.loss_in_round && flow.controller.full_bw.full_bw_reached);
}

#[test]
fn undo_restores_the_long_term_bound() {
    let mut flow = Flow::probing();
    flow.congestion(Cause::Loss, 0);
    flow.round_with(100, |sample| set_lost(sample, 200, 20));
    assert_eq!(flow.controller.bounds.inflight_hi, 200);
    flow.event(&PathEvent::SpuriousLoss);
    assert_eq!(flow.controller.bounds.inflight_hi, u32::MAX);
}

/// As in `bbr`: the hook that saves is called once per reduction, and the one that undoes not after a mark.
#[test]
fn a_loss_after_a_mark_keeps_what_the_mark_saved_and_is_not_undone() {
    let mut flow = Flow::cruising();
    let cwnd = flow.controller.cwnd;
    flow.congestion(Cause::EcnMark, 0);
    (flow.controller.cwnd, flow.controller.bounds.inflight_lo) = (cwnd / 2, 20);
    flow.congestion(Cause::Loss, 0);
    assert_eq!((flow.controller.prior_cwnd, flow.controller.undo_bounds), (cwnd, Some(Bounds::NONE)));
    flow.event(&PathEvent::SpuriousLoss);
    assert_eq!((flow.controller.cwnd, flow.controller.bounds.inflight_lo), (cwnd / 2, 20));
}

#[test]
fn undo_restores_the_threshold() {
    let mut flow = Flow::cruising();
    let cwnd = flow.controller.cwnd;
    flow.controller.ssthresh = 10;
    flow.congestion(Cause::Loss, 0);
    flow.event(&PathEvent::SpuriousLoss);
    assert_eq!(flow.controller.ssthresh, cwnd / 2 + cwnd / 4);
}

#[test]
fn a_timeout_sends_one_packet_and_its_end_restores_the_window() {
    let mut flow = Flow::cruising();
    let cwnd = flow.controller.cwnd;
    flow.congestion(Cause::Timeout, 0);
    assert_eq!((flow.controller.cwnd, flow.controller.bounds.inflight_lo), (1, cwnd));
    flow.round_with(1, |sample| sample.ca_state = CaState::Loss);
    assert_eq!(flow.controller.cwnd, 4);
    flow.round(1);
    assert!(flow.controller.cwnd > cwnd / 2, "{} of {cwnd}", flow.controller.cwnd);
}

#[test]
fn a_probe_that_repaired_a_loss_counts_as_one_lost_packet() {
    let mut flow = Flow::probing();
    flow.controller.congestion.inflight_latest = 40;
    let target = flow.controller.target_inflight();
    flow.congestion(Cause::TlpRecovery, 0);
    assert_eq!((flow.controller.mode, flow.controller.cycle.prior_probe_too_high), (Mode::ProbeBwDown, true));
    // One of 41 is more than 2 %, as Linux rounds; the bound is those 41, or 0.7 of the target.
    assert_eq!(flow.controller.bounds.inflight_hi, model::share(target, 180).max(41));
}

#[test]
fn a_restart_paces_at_the_bandwidth() {
    let mut flow = Flow::cruising();
    flow.controller.pacing_rate = 1;
    flow.event(&PathEvent::IdleRestart { idle: Span::from_secs(1), rto: Span::from_millis(250), app_limited: true });
    assert_eq!(flow.controller.pacing_rate, bytes_per_second(flow.controller.bw(), 1448, BBR_UNIT));
}

#[test]
fn marks_count_only_with_ecn_and_on_short_paths() {
    let marked = |ecn: &str, rtt_us| {
        let set = [("ecn".to_owned(), ParamValue::Choice(ecn.to_owned()))].into();
        let mut flow = Flow::with_rtt(Bbr3::new(&Params::new(ENTRY.parameters, &set).expect("allowed")), RTT);
        flow.controller.min_rtt = MinRtt::new(Some(Span::from_micros(rtt_us)), Instant::ZERO);
        (0..3).for_each(|_| flow.round_with(10, |sample| sample.marked = 10));
        (flow.controller.ecn.ecn_eligible, flow.controller.full_bw.full_bw_reached)
    };
    assert_eq!(marked("on", 5_000), (true, true), "two rounds of marks end startup");
    assert_eq!(marked("on", 5_001), (false, false));
    assert_eq!(marked("off", 5_000), (false, false));
}

#[test]
fn without_send_states_rate_samples_are_used() {
    let mut flow = Flow::probing();
    let high_loss = |sample: &mut AckSample, lost| (sample.newest_delivered, sample.lost) = (None, lost);
    flow.round_with(100, |sample| high_loss(sample, 1));
    assert_eq!(flow.controller.mode, Mode::ProbeBwUp, "1 of 101");
    flow.round_with(100, |sample| high_loss(sample, 3));
    assert_eq!(
        (flow.controller.mode, flow.controller.cycle.prior_probe_too_high),
        (Mode::ProbeBwDown, true),
        "3 more of 103"
    );
}

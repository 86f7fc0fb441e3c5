//! Linux's numbers, and the behaviour of each mode.

use super::bandwidth::{bytes_per_second, rate};
use super::*;
use crate::single::testing::{self, context_with};

/// 100 Mbit/s of payload at 1448 bytes a packet.
const MBIT_100: u64 = 144_830;

/// BBR in the middle of bandwidth probing, with this model.
fn model(bandwidth: u64, rtt_ms: u64) -> Bbr {
    let mut bbr = Bbr::new();
    bbr.bw.reset(0, bandwidth);
    bbr.min_rtt.min_rtt_us = Some(rtt_ms * 1000);
    (bbr.mode, bbr.cycle_idx, bbr.full_bw.full_bw_reached) = (Mode::ProbeBw, 2, true);
    bbr.update_gains();
    bbr.set_pacing_rate(Span::from_millis(rtt_ms));
    bbr
}

fn pacing_bits(bandwidth: u64, gain: u32) -> u64 {
    bytes_per_second(bandwidth, 1448, gain) * 8
}

#[test]
fn pacing_rates_are_the_kernels() {
    assert_eq!(pacing_bits(MBIT_100, BBR_UNIT), 98_999_352);
    assert_eq!(pacing_bits(MBIT_100, HIGH_GAIN) / 10_000, 28_578);
    assert_eq!(pacing_bits(rate(10, Span::from_millis(1)), HIGH_GAIN) / 10_000, 33_105, "no RTT yet");
    assert_eq!(pacing_bits(rate(10, Span::from_millis(50)), HIGH_GAIN) / 10_000, 662);
}

#[test]
fn the_window_is_twice_the_bandwidth_delay_product_and_three_bursts() {
    let bbr = model(MBIT_100, 50);
    assert_eq!((bbr.bdp(MBIT_100, BBR_UNIT), bbr.tso_segs_goal()), (432, 8));
    assert_eq!(bbr.quantization_budget(bbr.bdp(MBIT_100, bbr.cwnd_gain)), 888);
    let slow = model(1448, 50);
    assert_eq!((slow.bdp(1448, slow.cwnd_gain), slow.tso_segs_goal()), (9, 1));
    assert_eq!(slow.quantization_budget(9), 12);
}

#[test]
fn a_path_without_rtt_holds_the_initial_window() {
    assert_eq!(Bbr::new().bdp(MBIT_100, HIGH_GAIN), 10);
}

type Flow = testing::Flow<Bbr>;

impl Flow {
    fn new() -> Self {
        Self::with_rtt(Bbr::new(), 50)
    }

    /// Moves ProbeBW to the start of this phase of the gain cycle.
    fn set_cycle_idx(&mut self, cycle_idx: usize) {
        assert_eq!(self.controller.mode, Mode::ProbeBw);
        (self.controller.cycle_idx, self.controller.cycle_mstamp) =
            (cycle_idx, self.controller.totals.delivered_mstamp);
        self.controller.update_gains();
    }
}

#[test]
fn startup_ends_after_three_rounds_without_a_quarter_more_bandwidth() {
    let mut flow = Flow::new();
    for acked in [10, 20, 40, 80, 99, 99] {
        flow.round_with(acked, |sample| sample.in_flight = 1000);
    }
    assert_eq!(flow.controller.mode, Mode::Startup, "99 is less than 1.25 * 80, twice so far");
    flow.round_with(99, |sample| sample.in_flight = 1000);
    assert_eq!(flow.controller.mode, Mode::Drain);
    flow.round(99);
    assert_eq!(flow.controller.mode, Mode::ProbeBw, "nothing is in flight: drained");
}

#[test]
fn an_application_that_sends_little_does_not_end_startup() {
    let mut flow = Flow::new();
    for _ in 0..20 {
        flow.round_with(10, |sample| {
            sample.rate_sample.as_mut().expect("there is one").app_limited = true;
        });
    }
    assert_eq!(flow.controller.mode, Mode::Startup);
}

#[test]
fn probe_bw_never_starts_in_the_draining_phase() {
    let mut seen = [false; 8];
    let mut flow = Flow::new();
    for _ in 0..500 {
        flow.controller.enter_probe_bw(&mut context_with(0, &mut flow.rng));
        seen[flow.controller.cycle_idx] = true;
    }
    assert_eq!(seen, [true, false, true, true, true, true, true, true]);
}

#[test]
fn cruising_phases_last_one_min_rtt() {
    let mut flow = Flow::new();
    flow.rounds(8, 100);
    flow.set_cycle_idx(2);
    flow.round(100);
    assert_eq!(flow.controller.cycle_idx, 2, "exactly one RTT is not yet more than one");
    flow.now_ms += 1;
    flow.round(100);
    assert_eq!(flow.controller.cycle_idx, 3);
}

#[test]
fn the_probing_phase_lasts_until_there_is_a_queue_or_loss() {
    let mut flow = Flow::new();
    flow.rounds(8, 100);
    flow.set_cycle_idx(0);
    flow.rounds(3, 100);
    assert_eq!(flow.controller.cycle_idx, 0, "100 in flight are not 1.25 times the product");
    flow.round_with(100, |sample| sample.prior_in_flight = 140);
    assert_eq!(flow.controller.cycle_idx, 1);
}

#[test]
fn probe_rtt_lasts_200_ms_after_ten_seconds() {
    let mut flow = Flow::new();
    flow.rounds(199, 100);
    flow.set_cycle_idx(2);
    flow.round(100);
    assert_eq!(flow.controller.mode, Mode::ProbeBw, "10 s are over with the next one");
    let cwnd = flow.controller.cwnd;
    flow.round_with(100, |sample| sample.in_flight = 100);
    assert_eq!((flow.controller.mode, flow.controller.cwnd), (Mode::ProbeRtt, 4));
    flow.round_with(4, |sample| sample.in_flight = 4);
    flow.rounds(4, 4);
    assert_eq!(flow.controller.mode, Mode::ProbeRtt, "200 ms since the path was empty");
    flow.round(4);
    assert_eq!(flow.controller.mode, Mode::ProbeBw);
    assert!(flow.controller.cwnd >= cwnd, "the window is back at once");
}

/// Linux compares ticks: a stamp of 10 ms is exceeded from the tick after it.
#[test]
fn times_end_at_a_tick_of_the_host() {
    let bbr = Bbr { tick: Span::from_millis(10), ..Bbr::new() };
    let after_ms = |now_us: u64, span| bbr.after(Instant(now_us * 1000), span).as_millis();
    assert_eq!([0, 9_999, 10_000].map(|now| after_ms(now, mode::MIN_RTT_WINDOW)), [10_010, 10_010, 10_020]);
    assert_eq!([0, 9_999].map(|now| after_ms(now, Span::from_millis(205))), [220, 220]);
}

#[test]
fn packets_sent_in_probe_rtt_do_not_lower_the_bandwidth() {
    let mut flow = Flow::with_rtt(Bbr::new(), 10);
    flow.rounds(1000, 100);
    let bandwidth = flow.controller.bandwidth();
    // More round trips than the filter holds.
    for _ in 0..20 {
        flow.round_with(4, |sample| sample.in_flight = 4);
        assert_eq!(flow.controller.mode, Mode::ProbeRtt);
    }
    assert_eq!(flow.controller.bandwidth(), bandwidth);
}

#[test]
fn the_first_round_of_recovery_conserves_packets_and_its_end_restores_the_window() {
    let mut flow = Flow::new();
    flow.rounds(8, 100);
    flow.set_cycle_idx(2);
    flow.round(100);
    let cwnd = flow.controller.cwnd;
    flow.congestion(Cause::Loss, 60);
    flow.round_with(2, |sample| {
        (sample.ca_state, sample.in_flight, sample.lost) = (CaState::Recovery, 60, 5);
        sample.rate_sample = None;
    });
    assert_eq!((flow.controller.cwnd, flow.controller.packet_conservation), (62, true));
    flow.round_with(2, |sample| (sample.ca_state, sample.in_flight) = (CaState::Recovery, 60));
    assert_eq!((flow.controller.cwnd, flow.controller.packet_conservation), (64, false), "the second round grows");
    flow.round(2);
    assert_eq!((flow.controller.cwnd, flow.controller.packet_conservation), (cwnd, false));
}

#[test]
fn a_timeout_sends_one_packet_and_resets_full_bw() {
    let mut flow = Flow::new();
    flow.rounds(3, 100);
    flow.congestion(Cause::Timeout, 0);
    assert_eq!((flow.controller.cwnd, flow.controller.full_bw.full_bw), (1, 0));
}

/// Linux 6.1.192, situation 113 of `cargo xtask kernel-drill --congestion bbr`.
#[test]
fn a_loss_after_a_mark_restores_the_window_of_the_mark_and_is_not_undone() {
    let mut flow = Flow::new();
    flow.rounds(3, 100);
    let cwnd = flow.controller.cwnd;
    flow.congestion(Cause::EcnMark, 60);
    flow.controller.cwnd += 5;
    flow.congestion(Cause::Loss, 60);
    assert_eq!(flow.controller.prior_cwnd, cwnd);
    let full_bw = flow.controller.full_bw.full_bw;
    flow.event(&PathEvent::SpuriousLoss);
    assert_eq!(flow.controller.full_bw.full_bw, full_bw);
}

#[test]
fn undo_keeps_the_window_restores_the_threshold_and_resets_full_bw() {
    let mut flow = Flow::new();
    flow.rounds(8, 100);
    let cwnd = flow.controller.cwnd;
    flow.controller.ssthresh = 10;
    flow.congestion(Cause::Loss, 60);
    flow.event(&PathEvent::SpuriousLoss);
    assert_eq!(flow.controller.ssthresh, cwnd / 2 + cwnd / 4);
    assert_eq!(
        (flow.controller.cwnd, flow.controller.full_bw.full_bw, flow.controller.full_bw.full_bw_reached),
        (cwnd, 0, true)
    );
}

#[test]
fn a_restart_paces_at_the_bandwidth() {
    let mut flow = Flow::new();
    flow.rounds(8, 100);
    flow.controller.pacing_rate = 1;
    flow.event(&PathEvent::IdleRestart { idle: Span::from_secs(1), rto: Span::from_millis(250), app_limited: true });
    assert_eq!(flow.controller.pacing_rate, bytes_per_second(rate(100, Span::from_millis(50)), 1448, BBR_UNIT));
    assert!(flow.controller.idle_restart);
    flow.round(1);
    assert!(!flow.controller.idle_restart, "until the first delivery");
}

#[test]
fn heavy_loss_at_a_steady_rate_is_a_policer_for_48_rounds() {
    let mut flow = Flow::new();
    flow.rounds(8, 100);
    let policed = |flow: &Flow| flow.controller.lt_bw.rate().is_some();
    // Two intervals of four round trips (the first loss counts as one); a quarter of what is delivered is lost in each.
    for round in 1..=8 {
        assert!(!policed(&flow), "round {round}");
        flow.round_with(40, |sample| sample.lost = 10);
    }
    assert_eq!(flow.controller.lt_bw.rate(), Some(rate(40, Span::from_millis(50))));
    assert_eq!((flow.controller.pacing_gain, flow.controller.bandwidth()), (BBR_UNIT, rate(40, Span::from_millis(50))));
    flow.rounds(47, 40);
    assert!(policed(&flow));
    flow.round(40);
    assert!(!policed(&flow));
}

/// Linux `bbr_packets_in_net_at_edt` takes `bbr_bw`, which a policer's rate replaces.
#[test]
fn what_is_delivered_until_departure_is_at_the_rate_of_the_policer() {
    let mut flow = Flow::with_rtt(Bbr::linux(), 50);
    flow.rounds(8, 100);
    let sample = AckSample { until_departure: Span::from_millis(25), ..AckSample::default() };
    flow.controller.pacing_gain = BBR_UNIT;
    assert_eq!(flow.controller.in_net_at_departure(80, &sample), 31, "of 100 packets each 50 ms, rounded down");
    (0..8).for_each(|_| flow.round_with(40, |sample| sample.lost = 10));
    assert_eq!(flow.controller.in_net_at_departure(80, &sample), 61, "of 40");
}

#[test]
fn excess_acknowledgements_raise_the_window() {
    let mut aggregation = Aggregation::default();
    // Rounded up, so that 5 ms are 5 packets.
    let bandwidth = rate(1, Span::from_millis(1)) + 1;
    let mut ack = |acked, ms| aggregation.update(acked, bandwidth, 1000, None, Instant::ZERO + Span::from_millis(ms));
    ack(10, 100);
    ack(30, 105);
    assert_eq!(aggregation.extra_acked(bandwidth), 35, "40 packets where 5 were due");
    assert_eq!(aggregation.extra_acked(rate(1, Span::from_millis(10)) + 1), 10, "at most 100 ms of bandwidth");
}

//! Linux's numbers, and the draft's cases: the end of each mode, loss, undo.

mod draft;
mod episodes;

use super::bandwidth::{bytes_per_second, rate};
use super::cycle::ProbeUp;
use super::*;
use crate::single::testing::{self, defaults};
use crate::{ParamValue, SendState};

/// 100 Mbit/s of payload at 1448 bytes a packet.
const MBIT_100: u64 = 144_830;

fn bbr() -> Bbr3 {
    Bbr3::new(&defaults(&ENTRY))
}

/// BBR in this mode, with this model.
fn model(mode: Mode, rtt_us: u64) -> Bbr3 {
    let mut bbr = bbr();
    bbr.bw_filter = [0, MBIT_100];
    bbr.min_rtt = MinRtt::new(Some(Span::from_micros(rtt_us)), Instant::ZERO);
    (bbr.mode, bbr.full_bw.full_bw_reached) = (mode, true);
    bbr.pacing_rate = bytes_per_second(MBIT_100, 1448, BBR_UNIT);
    bbr
}

fn target(bbr: &Bbr3) -> u32 {
    bbr.quantization_budget(bbr.bdp(MBIT_100, bbr.mode.cwnd_gain()))
}

#[test]
fn startup_paces_at_the_kernels_rates() {
    let bits = |interval| bytes_per_second(rate(10, interval), 1448, rules::LINUX.startup_gain) * 8 / 10_000;
    assert_eq!(bits(Span::from_millis(1)), 31_806, "no RTT yet");
    assert_eq!(bits(Span::from_millis(50)), 636);
}

#[test]
fn windows_are_the_kernels() {
    assert_eq!(target(&model(Mode::ProbeBwCruise, 50_000)), 864);
    assert_eq!(target(&model(Mode::ProbeBwUp, 50_000)), 974, "2.25 products and two packets");
    assert_eq!(model(Mode::ProbeRtt, 50_000).probe_rtt_cwnd(), 216);
    assert_eq!([50_000, 1_000].map(|rtt| model(Mode::ProbeBwCruise, rtt).send_quantum()), [8, 30]);
}

#[test]
fn shares_are_the_kernels() {
    let Constants { loss_thresh, beta: beta_share, headroom, .. } = bbr().constants;
    assert_eq!((loss_thresh, beta_share, headroom), (5, 180, 38));
    assert_eq!(model::share(1000, beta_share), 703);
    let with_headroom = |inflight_hi| {
        let mut bbr = bbr();
        bbr.bounds.inflight_hi = inflight_hi;
        bbr.inflight_with_headroom()
    };
    assert_eq!([1000, 100, 10, 5, u32::MAX].map(with_headroom), [852, 86, 9, 4, u32::MAX]);
}

fn record(in_flight: u32, lost: u32) -> TxRecord {
    TxRecord { tx_in_flight: in_flight, lost, ..TxRecord::default() }
}

#[test]
fn too_much_is_more_than_two_percent_rounded_down() {
    // The most that may be lost.
    for (in_flight, allowed) in [(51, 0), (52, 1), (102, 1), (205, 4)] {
        assert!(!bbr().is_inflight_too_high(&record(in_flight, allowed)), "{in_flight}");
        assert!(bbr().is_inflight_too_high(&record(in_flight, allowed + 1)), "{in_flight}");
    }
}

#[test]
fn the_level_is_where_losses_crossed_two_percent() {
    let inflight = |in_flight, lost, count| record(in_flight, lost).inflight_hi_from_lost_packet(count, 5);
    assert_eq!([inflight(1000, 25, 10), inflight(1000, 21, 2), inflight(100, 3, 1)], [995, 999, 99]);
}

#[test]
fn the_long_term_bound_grows_by_twice_as_much_each_round() {
    let mut growth = ProbeUp::default();
    let packets = [(); 5].map(|()| {
        growth.raise_slope(160);
        (0..160).map(|_| growth.increase(1)).sum::<u32>()
    });
    assert_eq!(packets, [1, 2, 4, 8, 16]);
}

type Flow = testing::Flow<Bbr3>;

const RTT: u64 = 50;

impl Flow {
    fn new() -> Self {
        Self::with_rtt(bbr(), RTT)
    }

    /// A round trip of an even stream with this window, acknowledged in pairs.
    fn stream(&mut self, cwnd: u32) {
        self.now_ms += RTT;
        for _ in 0..cwnd / 2 {
            self.prior_delivered = self.delivered + 2 - u64::from(cwnd);
            self.ack_with(2, |sample| sample.prior_in_flight = cwnd);
        }
    }

    /// Count of rounds of 100 packets until this mode.
    fn rounds_until(&mut self, mode: Mode) -> u32 {
        for round in 0..200 {
            if self.controller.mode == mode {
                return round;
            }
            self.round(100);
        }
        panic!("{mode:?} does not come: {:?}", self.controller);
    }

    /// A flow of 100 packets a round trip that cruises.
    fn cruising() -> Self {
        let mut flow = Self::new();
        [10, 20, 40, 80].into_iter().for_each(|acked| flow.round(acked));
        flow.rounds_until(Mode::ProbeBwCruise);
        flow
    }

    fn probing() -> Self {
        let mut flow = Self::cruising();
        flow.rounds_until(Mode::ProbeBwUp);
        flow
    }
}

/// One of `in_flight` packets was lost, the `lost`th since its sending. The newest one delivered is of the same flight.
fn set_lost(sample: &mut AckSample, in_flight: u32, lost: u32) {
    sample.lost = 1;
    sample.newest_lost = Some(SendState { tx_in_flight: in_flight, lost, ..SendState::default() });
    sample.newest_delivered = sample.newest_lost;
}

#[test]
fn startup_ends_after_three_rounds_without_a_quarter_more_bandwidth() {
    let mut flow = Flow::new();
    for acked in [10, 20, 40, 80, 99, 99] {
        flow.round_with(acked, |sample| sample.in_flight = 1000);
    }
    assert_eq!(flow.controller.mode, Mode::Startup, "99 is less than 1.25 * 80, twice so far");
    flow.round_with(99, |sample| sample.in_flight = 1000);
    assert_eq!((flow.controller.mode, flow.controller.bounds), (Mode::Drain, Bounds::NONE));
}

#[test]
fn an_application_that_sends_little_does_not_end_startup() {
    let mut flow = Flow::new();
    for _ in 0..20 {
        flow.round_with(10, |sample| sample.rate_sample.as_mut().expect("there is one").app_limited = true);
    }
    assert_eq!(flow.controller.mode, Mode::Startup);
}

/// Startup, in which a round of recovery has so many acknowledgements with loss; `lost` of 200 packets in all.
fn startup_with_loss(events: u32, lost: u32) -> Bbr3 {
    let mut flow = Flow::new();
    [10, 20, 40].into_iter().for_each(|acked| flow.round(acked));
    flow.congestion(Cause::Loss, 0);
    for event in 1..=events {
        flow.ack_with(5, |sample| {
            sample.ca_state = CaState::Recovery;
            set_lost(sample, 200, event);
        });
    }
    flow.round_with(80, |sample| {
        (sample.ca_state, sample.in_flight) = (CaState::Recovery, 1000);
        sample.newest_delivered = Some(SendState { tx_in_flight: 200, lost, ..SendState::default() });
    });
    flow.controller
}

#[test]
fn startup_ends_after_a_round_of_recovery_with_much_loss() {
    let bbr = startup_with_loss(6, 6);
    assert_eq!((bbr.mode, bbr.full_bw.full_bw_reached), (Mode::Drain, true));
    // The most delivered in a round: 80, or 40 and six times 5.
    assert_eq!(bbr.bounds.inflight_hi, bbr.inflight(bbr.max_bw()).max(80));
    assert_eq!(startup_with_loss(5, 6).mode, Mode::Startup, "five acknowledgements with loss may be an accident");
    assert_eq!(startup_with_loss(6, 3).mode, Mode::Startup, "3 of 200 is not too much");
}

#[test]
fn drain_ends_when_the_queue_is_gone() {
    let mut flow = Flow::new();
    for acked in [10, 20, 40, 80, 99, 99, 99] {
        flow.round_with(acked, |sample| sample.in_flight = 1000);
    }
    let full_inflight = flow.controller.ssthresh;
    let too_many = |sample: &mut AckSample| sample.prior_in_flight = 1000;
    flow.round_with(99, |sample| (sample.in_flight, sample.prior_in_flight) = (full_inflight + 1, 1000));
    assert_eq!(flow.controller.mode, Mode::Drain);
    flow.round_with(99, too_many);
    assert_eq!((flow.controller.mode, flow.controller.pacing_gain()), (Mode::ProbeBwDown, 232));
    flow.round_with(99, too_many);
    assert_eq!(flow.controller.mode, Mode::ProbeBwDown, "until no more is in flight than the path holds");
    flow.round(99);
    assert_eq!(flow.controller.mode, Mode::ProbeBwCruise);
}

#[test]
fn a_cycle_cruises_for_two_to_three_seconds_refills_for_a_round_and_probes_until_the_plateau() {
    let mut flow = Flow::cruising();
    let waited = flow.rounds_until(Mode::ProbeBwRefill);
    assert!((39..=61).contains(&waited), "{waited} rounds of 50 ms");
    assert_eq!(flow.rounds_until(Mode::ProbeBwUp), 1);
    assert_eq!(flow.rounds_until(Mode::ProbeBwDown), 3, "three flat rounds");
    assert_eq!(flow.rounds_until(Mode::ProbeBwCruise), 1);
}

#[test]
fn a_small_flow_probes_as_often_as_reno_would_lose() {
    let mut flow = Flow::new();
    (0..5).for_each(|_| flow.round(10));
    flow.rounds_until(Mode::ProbeBwCruise);
    let mut rounds = 0;
    while flow.controller.mode == Mode::ProbeBwCruise {
        flow.round(10);
        rounds += 1;
    }
    assert!((8..=13).contains(&rounds), "a window of some ten packets: {rounds} rounds");
}

#[test]
fn the_bandwidth_is_the_greatest_of_this_cycle_and_the_last() {
    let mut flow = Flow::cruising();
    let before = flow.controller.max_bw();
    for cycle in 0..3 {
        // It falls by half. Startup was the cycle before the first.
        assert_eq!(flow.controller.max_bw() == before, cycle < 1, "cycle {cycle}");
        while flow.controller.mode != Mode::ProbeBwUp {
            flow.round(50);
        }
        while flow.controller.mode != Mode::ProbeBwCruise {
            flow.round(50);
        }
    }
}

#[test]
fn a_probe_that_loses_too_much_sets_the_long_term_bound_once() {
    let mut flow = Flow::probing();
    flow.round_with(100, |sample| set_lost(sample, 200, 3));
    assert_eq!(
        (flow.controller.mode, flow.controller.bounds.inflight_hi),
        (Mode::ProbeBwUp, u32::MAX),
        "3 of 200 is not too much"
    );
    flow.ack_with(1, |sample| {
        sample.prior_in_flight = 1000;
        set_lost(sample, 200, 4);
    });
    assert_eq!(
        (flow.controller.mode, flow.controller.bounds.inflight_hi, flow.controller.cycle.prior_probe_too_high),
        (Mode::ProbeBwDown, 200, true)
    );
    flow.ack_with(1, |sample| set_lost(sample, 150, 20));
    assert_eq!(flow.controller.bounds.inflight_hi, 200, "the same probe");
}

#[test]
fn the_long_term_bound_falls_to_seven_tenths_of_the_target_at_most() {
    let mut flow = Flow::probing();
    let target = flow.controller.target_inflight();
    flow.round_with(100, |sample| set_lost(sample, 20, 20));
    assert_eq!(flow.controller.bounds.inflight_hi, model::share(target, 180));
}

#[test]
fn an_application_limited_loss_does_not_change_the_long_term_bound() {
    let mut flow = Flow::probing();
    flow.round_with(100, |sample| {
        set_lost(sample, 200, 20);
        sample.prior_in_flight = 1000;
        sample.newest_lost.as_mut().expect("set").app_limited = true;
    });
    assert_eq!((flow.controller.mode, flow.controller.bounds.inflight_hi), (Mode::ProbeBwDown, u32::MAX));
}

#[test]
fn after_much_loss_the_next_probe_stops_at_the_bound_and_the_one_after_it_exceeds_it() {
    let mut flow = Flow::probing();
    flow.round_with(100, |sample| set_lost(sample, 200, 20));
    let bound = flow.controller.bounds.inflight_hi;
    flow.rounds_until(Mode::ProbeBwUp);
    flow.round_with(100, |sample| sample.prior_in_flight = bound);
    assert_eq!(
        (flow.controller.mode, flow.controller.cycle.stopped_risky_probe, flow.controller.bounds.inflight_hi),
        (Mode::ProbeBwDown, true, bound)
    );
    flow.round(100);
    assert_eq!(flow.controller.mode, Mode::ProbeBwRefill, "no harm in it: again, at once");
    flow.round(100);
    assert_eq!(flow.controller.mode, Mode::ProbeBwUp);
    let mut bounds = vec![bound];
    for _ in 0..5 {
        flow.stream(bound);
        bounds.push(flow.controller.bounds.inflight_hi);
    }
    assert_eq!(flow.controller.mode, Mode::ProbeBwUp, "the bound, not the path, keeps the bandwidth flat");
    let growth: Vec<u32> = bounds.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(growth.is_sorted() && growth[4] >= 12, "{growth:?}");
}

#[test]
fn a_flight_without_much_loss_raises_the_long_term_bound_in_any_mode() {
    let mut flow = Flow::cruising();
    flow.controller.bounds.inflight_hi = 150;
    flow.round_with(100, |sample| {
        sample.newest_delivered = Some(SendState { tx_in_flight: 160, lost: 3, ..SendState::default() });
    });
    assert_eq!(flow.controller.bounds.inflight_hi, 160);
    flow.round_with(100, |sample| {
        sample.newest_delivered = Some(SendState { tx_in_flight: 170, lost: 4, ..SendState::default() });
    });
    assert_eq!(flow.controller.bounds.inflight_hi, 160, "4 of 170 are too much");
}

#[test]
fn cruising_leaves_headroom_below_the_long_term_bound() {
    let mut flow = Flow::cruising();
    flow.controller.bounds.inflight_hi = 120;
    flow.round(100);
    assert_eq!(flow.controller.cwnd, 120 - 120 * 38 / 256);
}

#[test]
fn a_round_with_loss_lowers_the_short_term_bounds_to_what_it_delivered_or_seven_tenths() {
    let mut flow = Flow::cruising();
    let bandwidth = flow.controller.max_bw();
    flow.ack_with(1, |sample| set_lost(sample, 100, 1));
    let cwnd = flow.controller.cwnd;
    assert_eq!(flow.controller.bounds, Bounds::NONE, "the round is not over");
    flow.round_with(10, |_| {});
    assert_eq!(flow.controller.bounds.inflight_lo, model::share(cwnd, 180).max(101));
    assert_eq!(flow.controller.bounds.bw_lo, flow.controller.max_bw(), "the round delivered as much as ever");
    // And now a round that delivers little.
    let inflight_lo = flow.controller.bounds.inflight_lo;
    flow.ack_with(1, |sample| set_lost(sample, 100, 1));
    flow.round(10);
    assert_eq!(flow.controller.bounds.inflight_lo, model::share(inflight_lo, 180));
    assert!(flow.controller.bw() < bandwidth * 3 / 4, "{:?}", flow.controller.bounds);
    assert_eq!(flow.controller.bounds.inflight_hi, u32::MAX);
}

#[test]
fn refilling_resets_the_short_term_bounds() {
    let mut flow = Flow::cruising();
    (flow.controller.bounds.inflight_lo, flow.controller.bounds.bw_lo) = (70, 1);
    flow.rounds_until(Mode::ProbeBwRefill);
    assert_eq!(flow.controller.bounds, Bounds::NONE);
}

#[test]
fn loss_in_a_probe_that_is_not_too_much_lowers_nothing() {
    let mut flow = Flow::probing();
    flow.ack_with(1, |sample| set_lost(sample, 200, 1));
    flow.round(100);
    assert_eq!((flow.controller.mode, flow.controller.bounds), (Mode::ProbeBwUp, Bounds::NONE));
}

#[test]
fn probe_rtt_halves_the_window_for_200_ms_after_five_seconds() {
    let mut flow = Flow::cruising();
    while flow.now_ms < 5000 {
        assert_ne!(flow.controller.mode, Mode::ProbeRtt);
        flow.round(100);
    }
    let (cwnd, bandwidth) = (flow.controller.cwnd, flow.controller.max_bw());
    flow.round_with(100, |sample| sample.in_flight = 100);
    let half = flow.controller.probe_rtt_cwnd();
    assert_eq!((flow.controller.mode, flow.controller.cwnd), (Mode::ProbeRtt, half));
    assert!((50..=51).contains(&half), "{half}");
    flow.round_with(50, |sample| sample.in_flight = half);
    (0..4).for_each(|_| flow.round_with(50, |sample| sample.in_flight = 50));
    assert_eq!(flow.controller.mode, Mode::ProbeRtt, "200 ms since the path was half empty");
    flow.round_with(50, |sample| sample.in_flight = 50);
    assert_eq!(flow.controller.mode, Mode::ProbeBwCruise);
    assert!(flow.controller.cwnd >= cwnd.min(200), "the window is back at once: {} of {cwnd}", flow.controller.cwnd);
    assert_eq!(flow.controller.max_bw(), bandwidth);
}

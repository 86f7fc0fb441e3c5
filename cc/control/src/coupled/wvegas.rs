//! wVegas, weighted Vegas: each path keeps a number of queued packets in proportion to its share of the rate, which
//! equalises congestion.
//!
//! Once per round trip, with the mean RTT of the round and the minimum ever (`base`): `diff = w (rtt - base) / rtt`,
//! about the number of packets that this path has queued.
//! - Slow start ends if `diff > gamma`, at the window without a queue: `w base / rtt`.
//! - If `diff >= alpha`: rate = w / rtt, weight = rate over the sum of the siblings' rates,
//!   `alpha = max(2, weight total_alpha)`.
//! - Increase: one packet if `diff < alpha`. Decrease: one packet if `diff > alpha`.
//! - Backoff: if the queueing delay (`rtt - base`) is twice the minimum, which packets of other flows cause:
//!   `w = w base / (2 rtt)`, and the minimum is reset.
//! - Loss: half. Reno's growth in a round with too few samples and outside of the open state.
//!
//! Source: Cao, Xu and Fu, "Delay-based congestion control for multipath TCP" (ICNP 2012);
//! draft-xu-mptcp-congestion-control; constants and integers as in the out-of-tree MPTCP kernel.
//!
//! The backoff leaves much of a path unused if the flow is alone on it, because the queueing delay doubles as soon as
//! its own packets queue. On a path of 20 Mbit/s and 20 ms, half is unused; with `backoff = "off"`, nothing.
//!
//! A single path has all the weight: it is Vegas with alpha = total_alpha, not Reno, in both kernel and paper.

use super::{PATH, boxed};
use crate::common::{Coupling, CwndState, SubflowGroup, VegasRtt, reno_cong_avoid_if_limited, slow_start};
use crate::{
    AckProgress, AckSample, AlgorithmEntry, CaState, Constructor, Deviation, ParamKind, Parameter, Params, Properties,
};

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "wvegas",
    aliases: &[],
    title: "weighted Vegas: delay-based, each path queues by its share of the rate",
    source: "Cao, Xu, Fu, ICNP 2012; draft-xu-mptcp-congestion-control",
    parameters: &[
        Parameter {
            name: "total_alpha",
            description: "packets that all paths together keep queued",
            kind: ParamKind::Number { default: 10.0, min: 1.0, max: 1000.0 },
        },
        Parameter {
            name: "gamma",
            description: "leave slow start when more packets than this are queued",
            kind: ParamKind::Number { default: 1.0, min: 0.0, max: 1000.0 },
        },
        Parameter {
            name: "backoff",
            description: "drain the queue if its delay is twice the minimum so far",
            kind: ParamKind::Choice(&["on", "off"]),
        },
        PATH,
    ],
    properties: Properties {
        deviations: &[(Deviation::RaisesUnfilledCwnd, "the queueing delay tells what the path carries")],
        // On a single path it is Vegas with `total_alpha`.
        single_path: None,
        ..Properties::DEFAULT
    },
    constructor: Constructor::Coupled(|params| boxed(params, WVegas::new(params))),
};

/// Minimum alpha, also used for a path whose rate is not known, packets.
const MIN_ALPHA: u64 = 2;

/// wVegas.
#[derive(Debug)]
pub struct WVegas {
    total_alpha: f64,
    gamma: u64,
    backoff: bool,
}

/// State of one path.
#[derive(Debug)]
pub struct WVegasPath {
    vegas_rtt: VegasRtt,
    /// Sum of this round's RTTs, microseconds.
    sampled_rtt: u64,
    ca_state: CaState,
    alpha: u64,
    /// Window over mean RTT, packets per second; zero before the first comparison.
    instant_rate: f64,
    /// Minimum queueing delay since the last backoff, microseconds.
    queue_delay: Option<u64>,
}

impl Default for WVegasPath {
    fn default() -> Self {
        let (vegas_rtt, ca_state) = (VegasRtt::default(), CaState::Open);
        Self { vegas_rtt, sampled_rtt: 0, ca_state, alpha: MIN_ALPHA, instant_rate: 0.0, queue_delay: None }
    }
}

impl WVegasPath {
    fn reset_round(&mut self) {
        self.vegas_rtt.reset_round();
        self.sampled_rtt = 0;
    }

    /// Updates the minimum queueing delay. Returns whether this delay is at least twice the minimum.
    fn backoff_due(&mut self, queueing_delay: u64) -> bool {
        if queueing_delay == 0 {
            return false;
        }
        let min_delay = self.queue_delay.map_or(queueing_delay, |min_delay| min_delay.min(queueing_delay));
        let backoff_due = queueing_delay >= 2 * min_delay;
        self.queue_delay = (!backoff_due).then_some(min_delay);
        backoff_due
    }
}

impl WVegas {
    fn new(params: &Params) -> Self {
        let (total_alpha, gamma) = (params.number("total_alpha"), params.number("gamma") as u64);
        Self { total_alpha, gamma, backoff: params.choice("backoff") == "on" }
    }

    /// Changes the window at the end of a round with this mean RTT, microseconds.
    fn end_round(&self, group: &mut SubflowGroup<'_, WVegasPath>, state: &mut CwndState, acked: u32, rtt: u64) {
        let (cwnd, base) = (u64::from(state.cwnd), group.own_subflow().state.vegas_rtt.base_rtt);
        let diff = cwnd * (rtt - base) / rtt;
        if state.in_slow_start() {
            if diff > self.gamma {
                state.cwnd = state.cwnd.min((cwnd * base / rtt) as u32 + 1);
                state.ssthresh = state.ssthresh.min(state.cwnd);
            } else {
                slow_start(state, acked);
            }
        } else {
            self.avoid_congestion(group, state, diff, rtt);
        }
        state.cwnd = state.cwnd.min(state.cwnd_clamp).max(2);
        state.ssthresh = state.current_ssthresh().max(2);
    }

    fn avoid_congestion(&self, group: &mut SubflowGroup<'_, WVegasPath>, state: &mut CwndState, diff: u64, rtt: u64) {
        if diff >= group.own_subflow().state.alpha {
            self.update_alpha(group, state.cwnd, rtt);
        }
        let path_state = group.own_state();
        if diff > path_state.alpha {
            state.cwnd -= 1;
            state.ssthresh = state.ssthresh.min(state.cwnd);
        } else if diff < path_state.alpha {
            state.cwnd += 1;
        }
        let base = path_state.vegas_rtt.base_rtt;
        if self.backoff && path_state.backoff_due(rtt - base) {
            state.cwnd = (u64::from(state.cwnd) * base / (2 * rtt)) as u32;
        }
    }

    /// Sets alpha to the path's share of the rate times `total_alpha`.
    fn update_alpha(&self, group: &mut SubflowGroup<'_, WVegasPath>, cwnd: u32, rtt: u64) {
        let rate = f64::from(cwnd) * 1e6 / rtt as f64;
        group.own_state().instant_rate = rate;
        let sibling_rates: f64 = group.others().filter(|path| path.active).map(|path| path.state.instant_rate).sum();
        group.own_state().alpha = MIN_ALPHA.max((rate / (rate + sibling_rates) * self.total_alpha) as u64);
    }
}

impl Coupling for WVegas {
    type PathState = WVegasPath;

    /// Not used, because `cong_avoid` changes the window once per round.
    fn increase(&mut self, _group: &SubflowGroup<'_, WVegasPath>) -> f64 {
        0.0
    }

    fn ignores_cwnd_limited(&self) -> bool {
        true
    }

    fn cong_avoid(
        &mut self,
        group: &mut SubflowGroup<'_, WVegasPath>,
        state: &mut CwndState,
        acked: u32,
        sample: &AckSample,
    ) {
        if group.own_subflow().state.ca_state != CaState::Open {
            return reno_cong_avoid_if_limited(state, acked, sample);
        }
        let path_state = group.own_state();
        if !path_state.vegas_rtt.ends(sample) {
            if state.in_slow_start() {
                slow_start(state, acked);
            }
            return;
        }
        if path_state.vegas_rtt.has_enough_samples() {
            let rtt = path_state.sampled_rtt / u64::from(path_state.vegas_rtt.cnt_rtt);
            self.end_round(group, state, acked, rtt);
        } else {
            reno_cong_avoid_if_limited(state, acked, sample);
        }
        group.own_state().reset_round();
    }

    fn pkts_acked(&mut self, path_state: &mut WVegasPath, progress: &AckProgress) {
        path_state.vegas_rtt.add_sample(progress);
        // One microsecond more, as in the minimum RTTs.
        path_state.sampled_rtt += progress.rtt.map_or(0, |rtt| rtt.as_micros() + 1);
    }

    fn set_state(&mut self, path_state: &mut WVegasPath, next: CaState) {
        path_state.ca_state = next;
        path_state.vegas_rtt.set_state(next);
        match next {
            CaState::Open => (path_state.sampled_rtt, path_state.alpha, path_state.queue_delay) = (0, MIN_ALPHA, None),
            CaState::Loss => path_state.instant_rate = 0.0,
            _ => {}
        }
    }

    fn on_window_restart(&mut self, path_state: &mut WVegasPath) {
        path_state.vegas_rtt.reset();
        path_state.sampled_rtt = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::subflows::testing::siblings;
    use crate::common::{SubflowView, reno_ssthresh};

    const WVEGAS: WVegas = WVegas { total_alpha: 10.0, gamma: 1, backoff: true };

    /// A path of base RTT 100 ms, next to another with this rate in packets per second.
    fn group(sibling_rate: f64) -> Vec<SubflowView<WVegasPath>> {
        let mut subflows = siblings::<WVegasPath>(&[(60.0, 0.1); 2]);
        subflows[0].state.vegas_rtt.base_rtt = 100_000;
        subflows[1].state.instant_rate = sibling_rate;
        subflows
    }

    /// The window after a round of this mean RTT.
    fn end_round(subflows: &mut [SubflowView<WVegasPath>], cwnd: u32, rtt_ms: u64) -> CwndState {
        let mut state = CwndState {
            cwnd,
            ssthresh: reno_ssthresh(&CwndState { cwnd, ..CwndState::default() }),
            ..CwndState::default()
        };
        WVEGAS.end_round(&mut SubflowGroup::new(subflows, 0), &mut state, 1, rtt_ms * 1000);
        state
    }

    #[test]
    fn alpha_is_the_share_of_the_rate() {
        let alpha = |own: f64, sibling| {
            let mut subflows = group(sibling);
            let rtt = 100_000;
            WVEGAS.update_alpha(&mut SubflowGroup::new(&mut subflows, 0), (own / 10.0) as u32, rtt);
            subflows[0].state.alpha
        };
        assert_eq!((alpha(300.0, 100.0), alpha(100.0, 300.0)), (7, 2), "7.5 and 2.5 of ten");
        assert_eq!((alpha(100.0, 900.0), alpha(100.0, 0.0)), (2, 10), "at least two; alone, all");
    }

    #[test]
    fn the_window_moves_towards_alpha_packets_in_the_queue() {
        // Of 66 packets at 110 ms, 6 are queued; of 60 at 102 ms, 1. The share of 600 and 588 packets/s beside none is
        // 10.
        let cwnd = |alpha, cwnd, rtt| {
            let mut subflows = group(0.0);
            (subflows[0].state.alpha, subflows[0].state.queue_delay) = (alpha, None);
            end_round(&mut subflows, cwnd, rtt).cwnd
        };
        assert_eq!((cwnd(2, 60, 102), cwnd(10, 66, 110)), (61, 67));
        assert_eq!(cwnd(2, 132, 110), 131, "12 queued, 10 allowed");
    }

    #[test]
    fn the_window_backs_off_at_twice_the_minimum_queueing_delay() {
        let mut subflows = group(0.0);
        subflows[0].state.queue_delay = Some(10_000);
        // 60 packets at 120 ms: 10 are queued, which is alpha after weighing; 60 * 100 / 240.
        assert_eq!(end_round(&mut subflows, 60, 120).cwnd, 25);
        assert_eq!(subflows[0].state.queue_delay, None);
    }

    #[test]
    fn slow_start_ends_at_the_window_without_queue() {
        let mut state = CwndState { cwnd: 50, ..CwndState::default() };
        WVEGAS.end_round(&mut SubflowGroup::new(&mut group(0.0), 0), &mut state, 1, 110_000);
        assert_eq!((state.cwnd, state.ssthresh), (46, 46), "50 * 100 / 110 + 1");
    }
}

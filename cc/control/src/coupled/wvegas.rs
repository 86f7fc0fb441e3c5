//! wVegas, weighted Vegas: each path keeps packets queued in proportion to its share of the rate, so that all see the
//! same congestion.
//!
//! Once a round trip, with the mean RTT of the round and the least ever (`base`): `diff = w (rtt - base) / rtt`, about
//! the packets this path has in the queue.
//! - Slow start ends where `diff > gamma`, at what the path carries without queue: `w base / rtt`.
//! - Where `diff >= alpha`: rate = w / rtt, weight = rate over the sum of the siblings' rates,
//!   `alpha = max(2, weight total_alpha)`.
//! - Increase: one packet where `diff < alpha`. Decrease: one packet where `diff > alpha`.
//! - Backoff: where the queueing delay (`rtt - base`) is twice the least that was seen, other nodes' packets are in the
//!   queue: `w base / (2 rtt)`, and the least is forgotten.
//! - Loss: half. Reno's growth in a round with too few samples and outside the open phase.
//!
//! Source: Cao, Xu and Fu, "Delay-based congestion control for multipath TCP" (ICNP 2012);
//! draft-xu-mptcp-congestion-control; constants and integers as in the out-of-tree MPTCP kernel.
//!
//! The backoff leaves much of a quiet path unused: there, the queueing delay doubles as soon as the own packets queue. On
//! a 20 Mbit/s path of 20 ms with one flow, half goes to waste; with `backoff = "off"`, nothing.
//!
//! A path that is alone has all the weight: it is Vegas with alpha = total_alpha, not Reno, in kernel and paper.

use super::{PATH, boxed};
use crate::frame::{Coupling, CwndState, RoundDelay, SubflowGroup, reno_increase, slow_start};
use crate::{AckSample, AlgorithmEntry, CaState, Constructor, ParamDefault, Parameter, Params};

/// The registry's line.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "wvegas",
    aliases: &[],
    title: "weighted Vegas: delay-based, each path queues by its share of the rate",
    source: "Cao, Xu, Fu, ICNP 2012; draft-xu-mptcp-congestion-control",
    parameters: &[
        Parameter {
            name: "total_alpha",
            meaning: "packets that all paths together keep queued",
            default: ParamDefault::Number { value: 10.0, least: 1.0, most: 1000.0 },
        },
        Parameter {
            name: "gamma",
            meaning: "leave slow start when more packets than this are queued",
            default: ParamDefault::Number { value: 1.0, least: 0.0, most: 1000.0 },
        },
        Parameter {
            name: "backoff",
            meaning: "drain the queue where its delay is twice the least that was seen",
            default: ParamDefault::Word(&["on", "off"]),
        },
        PATH,
    ],
    make: Constructor::Group(|settings| boxed(settings, WVegas::new(settings))),
};

/// The alpha of a path whose share is not known, and the least; packets.
const LEAST_ALPHA: u64 = 2;

/// wVegas' own part: the step at the end of a round.
#[derive(Debug)]
pub struct WVegas {
    total_alpha: f64,
    gamma: u64,
    backs_off: bool,
}

/// What a path knows of its delay and its rate.
#[derive(Debug)]
pub struct Delay {
    round: RoundDelay,
    /// Of this round's RTTs, microseconds.
    sum: u64,
    ca_state: CaState,
    alpha: u64,
    /// Window over mean RTT, packets a second; zero before it was first compared.
    rate: f64,
    /// Least queueing delay since the last backoff, microseconds.
    queueing: Option<u64>,
}

impl Default for Delay {
    fn default() -> Self {
        let (round, ca_state) = (RoundDelay::default(), CaState::Open);
        Self { round, sum: 0, ca_state, alpha: LEAST_ALPHA, rate: 0.0, queueing: None }
    }
}

impl Delay {
    fn forget_round(&mut self) {
        self.round.forget_round();
        self.sum = 0;
    }

    /// Takes the least down to this queueing delay; true if that is twice the least, with other nodes' packets.
    fn must_back_off(&mut self, queueing: u64) -> bool {
        if queueing == 0 {
            return false;
        }
        let least = self.queueing.map_or(queueing, |least| least.min(queueing));
        let back_off = queueing >= 2 * least;
        self.queueing = (!back_off).then_some(least);
        back_off
    }
}

impl WVegas {
    fn new(settings: &Params) -> Self {
        let (total_alpha, gamma) = (settings.number("total_alpha"), settings.number("gamma") as u64);
        Self { total_alpha, gamma, backs_off: settings.word("backoff") == "on" }
    }

    /// The step at the end of a round with this mean RTT, microseconds.
    fn judge(&self, paths: &mut SubflowGroup<'_, Delay>, state: &mut CwndState, acked: u32, rtt: u64) {
        let (size, base) = (u64::from(state.cwnd), paths.own().state.round.base);
        let queued = size * (rtt - base) / rtt;
        if state.in_slow_start() {
            if queued > self.gamma {
                state.cwnd = state.cwnd.min((size * base / rtt) as u32 + 1);
                state.ssthresh = state.ssthresh.min(state.cwnd);
            } else {
                slow_start(state, acked);
            }
        } else {
            self.avoid_congestion(paths, state, queued, rtt);
        }
        state.cwnd = state.cwnd.min(state.cwnd_clamp).max(2);
        state.ssthresh = state.current_ssthresh().max(2);
    }

    fn avoid_congestion(&self, paths: &mut SubflowGroup<'_, Delay>, state: &mut CwndState, queued: u64, rtt: u64) {
        if queued >= paths.own().state.alpha {
            self.weigh(paths, state.cwnd, rtt);
        }
        let delay = paths.own_state();
        if queued > delay.alpha {
            state.cwnd -= 1;
            state.ssthresh = state.ssthresh.min(state.cwnd);
        } else if queued < delay.alpha {
            state.cwnd += 1;
        }
        let base = delay.round.base;
        if self.backs_off && delay.must_back_off(rtt - base) {
            state.cwnd = (u64::from(state.cwnd) * base / (2 * rtt)) as u32;
        }
    }

    /// The own share of the rate makes the own share of the packets queued.
    fn weigh(&self, paths: &mut SubflowGroup<'_, Delay>, size: u32, rtt: u64) {
        let rate = f64::from(size) * 1e6 / rtt as f64;
        paths.own_state().rate = rate;
        let others: f64 = paths.others().filter(|path| path.active).map(|path| path.state.rate).sum();
        paths.own_state().alpha = LEAST_ALPHA.max((rate / (rate + others) * self.total_alpha) as u64);
    }
}

impl Coupling for WVegas {
    type PathState = Delay;

    /// Not asked: the window moves once a round.
    fn increase(&mut self, _paths: &SubflowGroup<'_, Delay>) -> f64 {
        0.0
    }

    /// The queue tells what the path carries, however much of the window is used.
    fn ignores_cwnd_limited(&self) -> bool {
        true
    }

    fn cong_avoid(
        &mut self,
        paths: &mut SubflowGroup<'_, Delay>,
        state: &mut CwndState,
        acked: u32,
        sample: &AckSample,
    ) {
        if paths.own().state.ca_state != CaState::Open {
            return reno(state, acked, sample);
        }
        let delay = paths.own_state();
        if !delay.round.ends(sample) {
            if state.in_slow_start() {
                slow_start(state, acked);
            }
            return;
        }
        if delay.round.is_telling() {
            let rtt = delay.sum / u64::from(delay.round.samples);
            self.judge(paths, state, acked, rtt);
        } else {
            reno(state, acked, sample);
        }
        paths.own_state().forget_round();
    }

    fn on_ack(&mut self, memory: &mut Delay, sample: &AckSample) {
        memory.round.add(sample);
        // One microsecond more, as the least RTTs have.
        memory.sum += sample.rtt.map_or(0, |rtt| rtt.as_micros() + 1);
    }

    fn set_state(&mut self, memory: &mut Delay, next: CaState) {
        memory.ca_state = next;
        memory.round.change_phase(next);
        match next {
            CaState::Open => (memory.sum, memory.alpha, memory.queueing) = (0, LEAST_ALPHA, None),
            CaState::Loss => memory.rate = 0.0,
            _ => {}
        }
    }

    fn on_idle_restart(&mut self, memory: &mut Delay) {
        memory.round.forget_base();
        memory.sum = 0;
    }
}

fn reno(state: &mut CwndState, acked: u32, sample: &AckSample) {
    if sample.cwnd_limited {
        reno_increase(state, acked);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::paths::testing::siblings;
    use crate::frame::{SubflowView, reno_threshold};

    const WVEGAS: WVegas = WVegas { total_alpha: 10.0, gamma: 1, backs_off: true };

    /// A path of base RTT 100 ms, beside another with this rate in packets a second.
    fn group(sibling: f64) -> Vec<SubflowView<Delay>> {
        let mut all = siblings::<Delay>(&[(60.0, 0.1); 2]);
        all[0].state.round.base = 100_000;
        all[1].state.rate = sibling;
        all
    }

    /// The window after a round of this mean RTT.
    fn after(all: &mut [SubflowView<Delay>], size: u32, rtt_ms: u64) -> CwndState {
        let mut state = CwndState {
            cwnd: size,
            ssthresh: reno_threshold(&CwndState { cwnd: size, ..CwndState::default() }),
            ..CwndState::default()
        };
        WVEGAS.judge(&mut SubflowGroup::new(all, 0), &mut state, 1, rtt_ms * 1000);
        state
    }

    #[test]
    fn alpha_is_the_share_of_the_rate() {
        let alpha = |own: f64, sibling| {
            let mut all = group(sibling);
            let rtt = 100_000;
            WVEGAS.weigh(&mut SubflowGroup::new(&mut all, 0), (own / 10.0) as u32, rtt);
            all[0].state.alpha
        };
        assert_eq!((alpha(300.0, 100.0), alpha(100.0, 300.0)), (7, 2), "7.5 and 2.5 of ten");
        assert_eq!((alpha(100.0, 900.0), alpha(100.0, 0.0)), (2, 10), "at least two; alone, all");
    }

    #[test]
    fn the_window_seeks_alpha_packets_in_the_queue() {
        // Of 66 packets at 110 ms, 6 are queued; of 60 at 102 ms, 1. The share of 600 and 588 packets/s beside none is 10.
        let size = |alpha, size, rtt| {
            let mut all = group(0.0);
            (all[0].state.alpha, all[0].state.queueing) = (alpha, None);
            after(&mut all, size, rtt).cwnd
        };
        assert_eq!((size(2, 60, 102), size(10, 66, 110)), (61, 67));
        assert_eq!(size(2, 132, 110), 131, "12 queued, 10 allowed");
    }

    #[test]
    fn a_queue_of_twice_the_least_delay_is_left_to_others() {
        let mut all = group(0.0);
        all[0].state.queueing = Some(10_000);
        // 60 packets at 120 ms: 10 are queued, which is alpha after weighing; 60 * 100 / 240.
        assert_eq!(after(&mut all, 60, 120).cwnd, 25);
        assert_eq!(all[0].state.queueing, None);
    }

    #[test]
    fn slow_start_ends_at_what_the_path_carries_without_queue() {
        let mut state = CwndState { cwnd: 50, ..CwndState::default() };
        WVEGAS.judge(&mut SubflowGroup::new(&mut group(0.0), 0), &mut state, 1, 110_000);
        assert_eq!((state.cwnd, state.ssthresh), (46, 46), "50 * 100 / 110 + 1");
    }
}

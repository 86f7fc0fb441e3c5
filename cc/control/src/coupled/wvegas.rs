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
use crate::frame::{Coupling, Paths, RoundDelay, Window, reno_increase, slow_start};
use crate::{Default as Range, Entry, Feedback, Make, Parameter, Phase, Settings};

/// The registry's line.
pub const ENTRY: Entry = Entry {
    name: "wvegas",
    aliases: &[],
    title: "weighted Vegas: delay-based, each path queues by its share of the rate",
    source: "Cao, Xu, Fu, ICNP 2012; draft-xu-mptcp-congestion-control",
    parameters: &[
        Parameter {
            name: "total_alpha",
            meaning: "packets that all paths together keep queued",
            default: Range::Number { value: 10.0, least: 1.0, most: 1000.0 },
        },
        Parameter {
            name: "gamma",
            meaning: "leave slow start when more packets than this are queued",
            default: Range::Number { value: 1.0, least: 0.0, most: 1000.0 },
        },
        Parameter {
            name: "backoff",
            meaning: "drain the queue where its delay is twice the least that was seen",
            default: Range::Word(&["on", "off"]),
        },
        PATH,
    ],
    make: Make::Group(|settings| boxed(settings, WVegas::new(settings))),
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
    phase: Phase,
    alpha: u64,
    /// Window over mean RTT, packets a second; zero before it was first compared.
    rate: f64,
    /// Least queueing delay since the last backoff, microseconds.
    queueing: Option<u64>,
}

impl Default for Delay {
    fn default() -> Self {
        let (round, phase) = (RoundDelay::default(), Phase::Open);
        Self { round, sum: 0, phase, alpha: LEAST_ALPHA, rate: 0.0, queueing: None }
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
    fn new(settings: &Settings) -> Self {
        let (total_alpha, gamma) = (settings.number("total_alpha"), settings.number("gamma") as u64);
        Self { total_alpha, gamma, backs_off: settings.word("backoff") == "on" }
    }

    /// The step at the end of a round with this mean RTT, microseconds.
    fn judge(&self, paths: &mut Paths<'_, Delay>, window: &mut Window, acked: u32, rtt: u64) {
        let (size, base) = (u64::from(window.size), paths.own().memory.round.base);
        let queued = size * (rtt - base) / rtt;
        if window.in_slow_start() {
            if queued > self.gamma {
                window.size = window.size.min((size * base / rtt) as u32 + 1);
                window.threshold = window.threshold.min(window.size);
            } else {
                slow_start(window, acked);
            }
        } else {
            self.avoid_congestion(paths, window, queued, rtt);
        }
        window.size = window.size.min(window.clamp).max(2);
        window.threshold = window.current_threshold().max(2);
    }

    fn avoid_congestion(&self, paths: &mut Paths<'_, Delay>, window: &mut Window, queued: u64, rtt: u64) {
        if queued >= paths.own().memory.alpha {
            self.weigh(paths, window.size, rtt);
        }
        let delay = paths.memory();
        if queued > delay.alpha {
            window.size -= 1;
            window.threshold = window.threshold.min(window.size);
        } else if queued < delay.alpha {
            window.size += 1;
        }
        let base = delay.round.base;
        if self.backs_off && delay.must_back_off(rtt - base) {
            window.size = (u64::from(window.size) * base / (2 * rtt)) as u32;
        }
    }

    /// The own share of the rate makes the own share of the packets queued.
    fn weigh(&self, paths: &mut Paths<'_, Delay>, size: u32, rtt: u64) {
        let rate = f64::from(size) * 1e6 / rtt as f64;
        paths.memory().rate = rate;
        let others: f64 = paths.others().filter(|path| path.active).map(|path| path.memory.rate).sum();
        paths.memory().alpha = LEAST_ALPHA.max((rate / (rate + others) * self.total_alpha) as u64);
    }
}

impl Coupling for WVegas {
    type Memory = Delay;

    /// Not asked: the window moves once a round.
    fn increase(&mut self, _paths: &Paths<'_, Delay>) -> f64 {
        0.0
    }

    /// The queue tells what the path carries, however much of the window is used.
    fn grows_unfilled(&self) -> bool {
        true
    }

    fn grow(&mut self, paths: &mut Paths<'_, Delay>, window: &mut Window, acked: u32, feedback: &Feedback) {
        if paths.own().memory.phase != Phase::Open {
            return reno(window, acked, feedback);
        }
        let delay = paths.memory();
        if !delay.round.ends(feedback) {
            if window.in_slow_start() {
                slow_start(window, acked);
            }
            return;
        }
        if delay.round.is_telling() {
            let rtt = delay.sum / u64::from(delay.round.samples);
            self.judge(paths, window, acked, rtt);
        } else {
            reno(window, acked, feedback);
        }
        paths.memory().forget_round();
    }

    fn measure(&mut self, memory: &mut Delay, feedback: &Feedback) {
        memory.round.add(feedback);
        // One microsecond more, as the least RTTs have.
        memory.sum += feedback.rtt.map_or(0, |rtt| rtt.as_micros() + 1);
    }

    fn change_phase(&mut self, memory: &mut Delay, next: Phase) {
        memory.phase = next;
        memory.round.change_phase(next);
        match next {
            Phase::Open => (memory.sum, memory.alpha, memory.queueing) = (0, LEAST_ALPHA, None),
            Phase::Loss => memory.rate = 0.0,
            _ => {}
        }
    }

    fn restarts(&mut self, memory: &mut Delay) {
        memory.round.forget_base();
        memory.sum = 0;
    }
}

fn reno(window: &mut Window, acked: u32, feedback: &Feedback) {
    if feedback.window_limited {
        reno_increase(window, acked);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::paths::testing::siblings;
    use crate::frame::{Sibling, reno_threshold};

    const WVEGAS: WVegas = WVegas { total_alpha: 10.0, gamma: 1, backs_off: true };

    /// A path of base RTT 100 ms, beside another with this rate in packets a second.
    fn group(sibling: f64) -> Vec<Sibling<Delay>> {
        let mut all = siblings::<Delay>(&[(60.0, 0.1); 2]);
        all[0].memory.round.base = 100_000;
        all[1].memory.rate = sibling;
        all
    }

    /// The window after a round of this mean RTT.
    fn after(all: &mut [Sibling<Delay>], size: u32, rtt_ms: u64) -> Window {
        let mut window =
            Window { size, threshold: reno_threshold(&Window { size, ..Window::default() }), ..Window::default() };
        WVEGAS.judge(&mut Paths::new(all, 0), &mut window, 1, rtt_ms * 1000);
        window
    }

    #[test]
    fn alpha_is_the_share_of_the_rate() {
        let alpha = |own: f64, sibling| {
            let mut all = group(sibling);
            let rtt = 100_000;
            WVEGAS.weigh(&mut Paths::new(&mut all, 0), (own / 10.0) as u32, rtt);
            all[0].memory.alpha
        };
        assert_eq!((alpha(300.0, 100.0), alpha(100.0, 300.0)), (7, 2), "7.5 and 2.5 of ten");
        assert_eq!((alpha(100.0, 900.0), alpha(100.0, 0.0)), (2, 10), "at least two; alone, all");
    }

    #[test]
    fn the_window_seeks_alpha_packets_in_the_queue() {
        // Of 66 packets at 110 ms, 6 are queued; of 60 at 102 ms, 1. The share of 600 and 588 packets/s beside none is 10.
        let size = |alpha, size, rtt| {
            let mut all = group(0.0);
            (all[0].memory.alpha, all[0].memory.queueing) = (alpha, None);
            after(&mut all, size, rtt).size
        };
        assert_eq!((size(2, 60, 102), size(10, 66, 110)), (61, 67));
        assert_eq!(size(2, 132, 110), 131, "12 queued, 10 allowed");
    }

    #[test]
    fn a_queue_of_twice_the_least_delay_is_left_to_others() {
        let mut all = group(0.0);
        all[0].memory.queueing = Some(10_000);
        // 60 packets at 120 ms: 10 are queued, which is alpha after weighing; 60 * 100 / 240.
        assert_eq!(after(&mut all, 60, 120).size, 25);
        assert_eq!(all[0].memory.queueing, None);
    }

    #[test]
    fn slow_start_ends_at_what_the_path_carries_without_queue() {
        let mut window = Window { size: 50, ..Window::default() };
        WVEGAS.judge(&mut Paths::new(&mut group(0.0), 0), &mut window, 1, 110_000);
        assert_eq!((window.size, window.threshold), (46, 46), "50 * 100 / 110 + 1");
    }
}

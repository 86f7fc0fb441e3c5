//! HighSpeed TCP: the larger the window, the larger the increase and the smaller the decrease.
//!
//! - Increase: `a(w)` packets per round trip; decrease: by `b(w) w`. Reno (1, 1/2) up to 38 packets.
//! - `b(w) = 0.5 + (0.1 - 0.5) (ln w - ln 38) / (ln 83000 - ln 38)`
//! - `a(w) = w^2 p(w) 2 b(w) / (2 - b(w))` with the response `p(w) = 1 / (12.8 w^1.2)`
//!
//! Source: RFC 3649 (Floyd 2003), table of appendix B; steps as in Linux 6.1 (`tcp_highspeed.c`).
//! Deviations from the RFC, all as in Linux: `a` is added per acknowledgement, not per packet, so that delayed
//! acknowledgements halve the growth. Packets of an acknowledgement beyond slow start are dropped. The table is looked
//! up only in congestion avoidance, so that a loss in slow start still uses the previous row (at first: one half).

use crate::common::{self, CongestionOps, CwndController, CwndState};
use crate::{AckSample, AlgorithmEntry, Constructor, Context, Properties};

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "highspeed",
    aliases: &["hstcp"],
    title: "HighSpeed TCP: larger increase and smaller decrease as the window grows",
    source: "RFC 3649; Linux 6.1 tcp_highspeed.c",
    parameters: &[],
    properties: Properties::DEFAULT,
    constructor: Constructor::PerPath(|_| CwndController::boxed(HighSpeed { aimd_vals: table(), ai: 0 })),
};

/// Window up to which it is Reno, packets (RFC 3649 Low_Window).
const LOW_WINDOW: u32 = 38;
/// Window at which b reaches [`HIGH_DECREASE`], packets (RFC 3649 High_Window).
const HIGH_WINDOW: u32 = 83_000;
/// RFC 3649 High_Decrease.
const HIGH_DECREASE: f64 = 0.1;
/// Row i grows by i + 1 packets per round trip. The last row covers High_Window and a little more, as in Linux.
const AIMD_MAX: usize = 72;

/// State of HighSpeed TCP.
#[derive(Debug)]
pub struct HighSpeed {
    aimd_vals: [AimdEntry; AIMD_MAX],
    ai: usize,
}

/// One row of the table: valid above the previous row, up to this window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct AimdEntry {
    cwnd: u32,
    /// b, in 1/256.
    md: u32,
}

/// `b(w)`, RFC 3649 section 5.
fn decrease(cwnd: f64) -> f64 {
    let (low, high) = (libm::log(f64::from(LOW_WINDOW)), libm::log(f64::from(HIGH_WINDOW)));
    0.5 + (HIGH_DECREASE - 0.5) * (libm::log(cwnd) - low) / (high - low)
}

/// `a(w)`, RFC 3649 section 5.
fn increase(cwnd: f64) -> f64 {
    let (b, p) = (decrease(cwnd), 1.0 / (12.8 * libm::pow(cwnd, 1.2)));
    cwnd * cwnd * p * 2.0 * b / (2.0 - b)
}

/// The table of RFC 3649 appendix B, with a new row when `a` exceeds that of the previous row by one.
fn table() -> [AimdEntry; AIMD_MAX] {
    let mut last = (LOW_WINDOW, 1.0);
    std::array::from_fn(|row| {
        if row > 0 {
            let cwnd = first_above(last.0, last.1 + 1.0);
            last = (cwnd, increase(f64::from(cwnd)));
        }
        AimdEntry { cwnd: last.0, md: (decrease(f64::from(last.0)) * 256.0) as u32 }
    })
}

/// The minimum window beyond `low` whose increase is more than `bound` (`a` rises with the window).
fn first_above(mut low: u32, bound: f64) -> u32 {
    let mut high = 2 * HIGH_WINDOW;
    while high - low > 1 {
        let middle = low.midpoint(high);
        if increase(f64::from(middle)) > bound { high = middle } else { low = middle }
    }
    high
}

impl HighSpeed {
    /// Moves to the row of `cwnd`.
    fn update_ai(&mut self, cwnd: u32) {
        while cwnd > self.aimd_vals[self.ai].cwnd && self.ai + 1 < AIMD_MAX {
            self.ai += 1;
        }
        while self.ai > 0 && cwnd <= self.aimd_vals[self.ai - 1].cwnd {
            self.ai -= 1;
        }
    }
}

impl CongestionOps for HighSpeed {
    fn cong_avoid(&mut self, state: &mut CwndState, acked: u32, _sample: &AckSample, _cx: &mut Context<'_>) {
        if state.in_slow_start() {
            common::slow_start(state, acked);
            return;
        }
        self.update_ai(state.cwnd);
        if state.cwnd < state.cwnd_clamp {
            state.cwnd_cnt += self.ai as u32 + 1;
            if state.cwnd_cnt >= state.cwnd {
                state.cwnd_cnt -= state.cwnd;
                state.cwnd += 1;
            }
        }
    }

    fn ssthresh(&mut self, state: &CwndState, _cx: &mut Context<'_>) -> u32 {
        let reduction = (u64::from(state.cwnd) * u64::from(self.aimd_vals[self.ai].md)) >> 8;
        (state.cwnd - reduction as u32).max(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single::testing::{congestion_avoidance, context, slow_start};

    #[test]
    fn the_table_is_the_rfcs() {
        let rows = table();
        let row = |number: usize| (rows[number - 1].cwnd, rows[number - 1].md);
        assert_eq!([1, 2, 3, 4, 5].map(row), [(38, 128), (118, 112), (221, 104), (347, 98), (495, 93)]);
        assert_eq!([6, 7, 8, 9, 10].map(row), [(663, 89), (851, 86), (1058, 83), (1284, 81), (1529, 78)]);
        assert_eq!([30, 71, 72].map(row), [(10_661, 52), (84_035, 25), (89_053, 24)]);
    }

    #[test]
    fn the_formulas_give_the_rfcs_values() {
        let near = |value: f64, expected: f64| (value - expected).abs() < 0.005 * expected;
        assert!(near(decrease(118.0), 0.441) && near(decrease(1058.0), 0.327) && near(decrease(83_000.0), 0.1));
        assert!(near(increase(118.0), 2.006) && near(increase(1058.0), 8.01) && near(increase(83_000.0), 70.7));
    }

    #[test]
    fn grows_by_the_rows_increase_per_acknowledgement() {
        let mut flow = HighSpeed { aimd_vals: table(), ai: 0 };
        let mut state = congestion_avoidance(100);
        for _ in 0..50 {
            flow.cong_avoid(&mut state, 7, &AckSample::default(), &mut context(0));
        }
        assert_eq!((state.cwnd, state.cwnd_cnt), (101, 0), "a(100) = 2: fifty acknowledgements of any size");
        assert_eq!(flow.ssthresh(&CwndState { cwnd: 100, ..state }, &mut context(0)), 57);
    }

    #[test]
    fn a_loss_in_slow_start_halves() {
        let mut flow = HighSpeed { aimd_vals: table(), ai: 0 };
        let state = slow_start(328);
        assert_eq!(flow.ssthresh(&state, &mut context(0)), 164);
    }

    #[test]
    fn the_row_follows_the_window_both_ways() {
        let mut flow = HighSpeed { aimd_vals: table(), ai: 0 };
        for (cwnd, row) in [(38, 0), (39, 1), (118, 1), (119, 2), (1_000_000, 71), (83_000, 70), (5, 0)] {
            flow.update_ai(cwnd);
            assert_eq!(flow.ai, row, "window {cwnd}");
        }
    }
}

//! Scalable TCP: increase and decrease in proportion to the window, so that recovery takes the same number of round
//! trips at any rate.
//!
//! - Increase: 1 packet per 100 acknowledged (1 % per round trip); below a window of 100 packets, one packet per window
//!   as Reno. (Older kernels: 50, because acknowledgements are delayed.)
//! - Decrease: threshold = 7/8 of the window, at least 2 packets.
//!
//! Source: Kelly, "Scalable TCP: improving performance in highspeed wide area networks" (CCR 2003); integer steps as in
//! Linux 6.1 (`tcp_scalable.c`).

use crate::common::{self, CongestionOps, CwndController, CwndState};
use crate::{AckSample, AlgorithmEntry, Constructor, Context, ParamKind, Parameter, Params, Properties};

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "scalable",
    aliases: &["stcp"],
    title: "multiplicative increase: 1 % per RTT up, 1/8 down",
    source: "Kelly, CCR 2003; Linux 6.1 tcp_scalable.c",
    parameters: &[Parameter {
        name: "period",
        description: "packets acked per packet of growth (the paper's 1 / a)",
        kind: ParamKind::Number { default: 100.0, min: 1.0, max: 1e6 },
    }],
    properties: Properties::DEFAULT,
    constructor: Constructor::PerPath(|params| CwndController::boxed(Scalable::new(params))),
};

/// The window shrinks by 2^-3 (the paper's b = 0.125).
const MD_SCALE: u32 = 3;

/// Scalable TCP, which has no state.
#[derive(Debug)]
pub struct Scalable {
    /// Acknowledged packets per packet of growth.
    ai_cnt: u32,
}

impl Scalable {
    fn new(params: &Params) -> Self {
        Self { ai_cnt: params.number("period") as u32 }
    }
}

impl CongestionOps for Scalable {
    fn cong_avoid(&mut self, state: &mut CwndState, acked: u32, _sample: &AckSample, _cx: &mut Context<'_>) {
        let remaining_acked = if state.in_slow_start() { common::slow_start(state, acked) } else { acked };
        if remaining_acked > 0 {
            common::cong_avoid_ai(state, state.cwnd.min(self.ai_cnt), remaining_acked);
        }
    }

    fn ssthresh(&mut self, state: &CwndState, _cx: &mut Context<'_>) -> u32 {
        (state.cwnd - (state.cwnd >> MD_SCALE)).max(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single::testing::{congestion_avoidance, context, defaults, slow_start};

    /// The window after `acked` packets in congestion avoidance.
    fn grown(cwnd: u32, acked: u32) -> u32 {
        let mut state = congestion_avoidance(cwnd);
        Scalable::new(&defaults(&ENTRY)).cong_avoid(&mut state, acked, &AckSample::default(), &mut context(0));
        state.cwnd
    }

    #[test]
    fn one_packet_per_window_below_a_hundred_and_per_hundred_above() {
        assert_eq!([grown(20, 19), grown(20, 20)], [20, 21]);
        assert_eq!([grown(1000, 99), grown(1000, 100)], [1000, 1001]);
    }

    #[test]
    fn loses_an_eighth() {
        let mut ssthresh = |cwnd| Scalable::new(&defaults(&ENTRY)).ssthresh(&slow_start(cwnd), &mut context(0));
        assert_eq!([20, 100, 1000, 2].map(&mut ssthresh), [18, 88, 875, 2]);
    }
}

//! Reno (NewReno): add one packet per round trip, halve on loss.
//!
//! - Increase: slow start by the acknowledged packets up to the threshold, then +1 packet per window acknowledged.
//! - Decrease: threshold = window / 2, at least 2 packets.
//!
//! Source: RFC 5681, RFC 6582; constants and integer steps as in Linux 6.1 (`tcp_cong.c`).
//! Deviations from the RFC, all as in Linux: the window, not the flight size, is halved; no inflation during recovery
//! (proportional rate reduction instead); no byte-counting limit in slow start.

use crate::common::{self, CongestionOps, CwndState, careful_resume};
use crate::{AckSample, AlgorithmEntry, Constructor, Context, Properties};

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "reno",
    aliases: &["newreno"],
    title: "additive increase, multiplicative decrease (NewReno)",
    source: "RFC 5681, RFC 6582; Linux 6.1 tcp_cong.c",
    parameters: &[careful_resume::SAVED_CWND, careful_resume::SAVED_RTT],
    properties: Properties { check: careful_resume::check, ..Properties::DEFAULT },
    constructor: Constructor::PerPath(|params| careful_resume::boxed(Reno, params)),
};

/// Reno has no state.
#[derive(Debug)]
pub struct Reno;

impl CongestionOps for Reno {
    fn cong_avoid(&mut self, state: &mut CwndState, acked: u32, _sample: &AckSample, _cx: &mut Context<'_>) {
        common::reno_cong_avoid(state, acked);
    }

    fn ssthresh(&mut self, state: &CwndState, _cx: &mut Context<'_>) -> u32 {
        common::reno_ssthresh(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single::testing::slow_start;

    #[test]
    fn adds_one_packet_per_window_acked() {
        let mut state = CwndState { cwnd: 10, ssthresh: 5, ..CwndState::default() };
        common::reno_cong_avoid(&mut state, 10);
        assert_eq!((state.cwnd, state.cwnd_cnt), (11, 0));
    }

    #[test]
    fn congestion_avoidance_uses_what_slow_start_leaves() {
        let mut state = CwndState { cwnd: 10, ssthresh: 14, ..CwndState::default() };
        common::reno_cong_avoid(&mut state, 8);
        assert_eq!((state.cwnd, state.cwnd_cnt), (14, 4));
    }

    #[test]
    fn halves_but_never_below_two() {
        let ssthresh = |cwnd| common::reno_ssthresh(&slow_start(cwnd));
        assert_eq!((ssthresh(21), ssthresh(3)), (10, 2));
    }
}

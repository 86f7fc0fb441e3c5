//! Veno: Reno that distinguishes random loss from congestion by Vegas' estimate of the queue.
//!
//! `diff = window - window base / rtt` estimates the number of packets that this flow has queued.
//! - Increase: Reno; if `diff >= 3`, only one packet every second window.
//! - Decrease: by 1/5 if `diff < 3` (the loss was random), otherwise by half.
//!
//! Source: Fu and Liew, "TCP Veno: TCP enhancement for transmission over wireless access networks" (JSAC 2003); integer
//! steps as in Linux 6.1 (`tcp_veno.c`). Deviations from the paper, as in Linux: the RTT is the minimum since the last
//! acknowledgement that could raise the window, not that of a round trip. At a loss, `diff` is that of the last growth,
//! and of the last full window.

use crate::common::{self, CongestionOps, CwndController, CwndState};
use crate::{
    AckProgress, AckSample, AlgorithmEntry, CaState, Constructor, Context, ParamKind, Parameter, Params, PathInfo,
    Properties,
};
use units::Span;

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "veno",
    aliases: &[],
    title: "Reno that spares the window when a loss looks random",
    source: "Fu and Liew, JSAC 2003; Linux 6.1 tcp_veno.c",
    parameters: &[
        Parameter {
            name: "beta",
            description: "packets in the queue from which a loss counts as congestion (halves)",
            kind: ParamKind::Number { default: 3.0, min: 0.0, max: 1000.0 },
        },
        Parameter {
            name: "random_decrease",
            description: "window after a loss that looks random, as a fraction of the window before it",
            kind: ParamKind::Number { default: 0.8, min: 0.5, max: 1.0 },
        },
    ],
    properties: Properties::DEFAULT,
    constructor: Constructor::PerPath(|params| CwndController::boxed(Veno::new(params))),
};

/// Number of samples since the start below which Veno is Reno.
const MIN_SAMPLES: u32 = 3;
/// The RTT before the first sample, microseconds.
const RTT_UNKNOWN: u64 = 0x7fff_ffff;
/// Denominator of `random_decrease`.
const MILLE: u64 = 1000;

/// State of Veno.
#[derive(Debug)]
pub struct Veno {
    /// Beta in half packets, as `diff`.
    beta: u64,
    random_decrease: u64,
    base_rtt: u64,
    min_rtt: u64,
    cnt_rtt: u32,
    diff: u64,
    /// Whether the next full window grows.
    inc: bool,
    /// As in [`common::VegasRtt::is_enabled`].
    is_enabled: bool,
}

impl Veno {
    fn new(params: &Params) -> Self {
        Self {
            beta: (params.number("beta") * 2.0) as u64,
            random_decrease: libm::round(params.number("random_decrease") * MILLE as f64) as u64,
            base_rtt: RTT_UNKNOWN,
            min_rtt: RTT_UNKNOWN,
            cnt_rtt: 0,
            diff: 0,
            inc: true,
            is_enabled: true,
        }
    }

    fn update_diff(&mut self, cwnd: u32) {
        let cwnd = 2 * u64::from(cwnd);
        self.diff = cwnd - cwnd * self.base_rtt / self.min_rtt;
    }

    /// One packet every second window.
    fn increase_every_other_window(&mut self, state: &mut CwndState, acked: u32) {
        if state.cwnd_cnt < state.cwnd {
            state.cwnd_cnt += acked;
            return;
        }
        state.cwnd_cnt = 0;
        let grows = self.inc && state.cwnd < state.cwnd_clamp;
        state.cwnd += u32::from(grows);
        self.inc = !grows;
    }
}

impl CongestionOps for Veno {
    /// The RTT of the handshake counts as a sample, but not for the minimum.
    fn init(&mut self, _state: &mut CwndState, path: &PathInfo, _cx: &mut Context<'_>) {
        self.cnt_rtt = u32::from(path.rtt.is_some());
    }

    fn cong_avoid(&mut self, state: &mut CwndState, acked: u32, _sample: &AckSample, _cx: &mut Context<'_>) {
        if !self.is_enabled {
            return common::reno_cong_avoid(state, acked);
        }
        if self.cnt_rtt < MIN_SAMPLES {
            common::reno_cong_avoid(state, acked);
        } else {
            self.update_diff(state.cwnd);
            let remaining_acked = if state.in_slow_start() { common::slow_start(state, acked) } else { acked };
            if remaining_acked > 0 && self.diff < self.beta {
                common::cong_avoid_ai(state, state.cwnd, remaining_acked);
            } else if remaining_acked > 0 {
                self.increase_every_other_window(state, remaining_acked);
            }
            state.cwnd = state.cwnd.max(2);
        }
        self.min_rtt = RTT_UNKNOWN;
    }

    fn ssthresh(&mut self, state: &CwndState, _cx: &mut Context<'_>) -> u32 {
        if self.diff < self.beta {
            ((u64::from(state.cwnd) * self.random_decrease / MILLE) as u32).max(2)
        } else {
            common::reno_ssthresh(state)
        }
    }

    fn min_cwnd(&self, state: &CwndState) -> u32 {
        state.ssthresh
    }

    fn pkts_acked(&mut self, _state: &mut CwndState, progress: &AckProgress, _cx: &mut Context<'_>) {
        if let Some(rtt) = progress.rtt {
            // One microsecond more, so that no RTT is ever zero.
            let rtt = (rtt.as_micros() + 1).min(RTT_UNKNOWN);
            (self.base_rtt, self.min_rtt) = (self.base_rtt.min(rtt), self.min_rtt.min(rtt));
            self.cnt_rtt = self.cnt_rtt.saturating_add(1);
        }
    }

    fn set_state(&mut self, _state: &mut CwndState, next: CaState, _cx: &mut Context<'_>) {
        self.is_enabled = next == CaState::Open;
        if self.is_enabled {
            self.min_rtt = RTT_UNKNOWN;
        }
    }

    /// The route may have changed during an idle period.
    fn on_tx_start(&mut self, _state: &mut CwndState, _idle: Span, _cx: &mut Context<'_>) {
        (self.base_rtt, self.min_rtt, self.inc) = (RTT_UNKNOWN, RTT_UNKNOWN, true);
        self.is_enabled = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single::testing::{congestion_avoidance, context, defaults, slow_start};

    /// A flow in congestion avoidance that has just seen these RTTs.
    fn veno(base_ms: u64, rtt_ms: u64) -> Veno {
        Veno { base_rtt: base_ms * 1000, min_rtt: rtt_ms * 1000, cnt_rtt: 3, ..Veno::new(&defaults(&ENTRY)) }
    }

    #[test]
    fn a_loss_with_fewer_than_three_packets_queued_costs_a_fifth() {
        for (cwnd, rtt, diff, ssthresh) in [(20, 110, 4, 16), (20, 118, 7, 10), (40, 110, 8, 20)] {
            let mut veno = veno(100, rtt);
            veno.update_diff(cwnd);
            assert_eq!(veno.diff, diff, "in half packets");
            let state = slow_start(cwnd);
            assert_eq!(veno.ssthresh(&state, &mut context(0)), ssthresh);
        }
    }

    /// Acknowledgements of one packet, at this RTT, until the window has grown.
    fn acks_to_grow(rtt_ms: u64, cwnd: u32) -> u32 {
        let mut veno = veno(100, rtt_ms);
        let mut state = congestion_avoidance(cwnd);
        // The window has grown once, so that the flag has changed.
        veno.inc = false;
        let mut acks = 0;
        while state.cwnd == cwnd {
            acks += 1;
            veno.min_rtt = rtt_ms * 1000;
            veno.cong_avoid(&mut state, 1, &AckSample::default(), &mut context(0));
        }
        acks
    }

    #[test]
    fn a_queue_halves_the_growth() {
        assert_eq!(acks_to_grow(101, 20), 20);
        assert_eq!(acks_to_grow(150, 20), 42, "two windows, each with the acknowledgement that finds it full");
    }

    #[test]
    fn outside_the_open_state_veno_is_reno() {
        let mut veno = veno(100, 150);
        let mut state = congestion_avoidance(20);
        veno.set_state(&mut state, CaState::Disorder, &mut context(0));
        veno.cong_avoid(&mut state, 20, &AckSample::default(), &mut context(0));
        assert_eq!((state.cwnd, veno.diff), (21, 0));
    }
}

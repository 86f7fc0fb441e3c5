//! Hybla: a flow with a long RTT grows as fast as one with a short RTT.
//!
//! With `rho = max(RTT / RTT0, 1)` and `RTT0` = 25 ms, an acknowledgement adds:
//! - in slow start `2^rho - 1` packets,
//! - in congestion avoidance `rho^2 / window` packets: as many per second as Reno at RTT0.
//! - Decrease: half, as Reno. Reno's growth outside the open state.
//!
//! Source: Caini and Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks" (2004); fixed point as in
//! Linux 6.1 (`tcp_hybla.c`), where the RTT is the minimum smoothed one so far. Deviations from the paper, as in Linux:
//! the flow begins with a window of `rho` packets; rho is in eighths, at most 16 in the exponent; there is one step per
//! acknowledgement, however many packets it covers; no window exceeds 65535 packets. Deviation from Linux: without a
//! sample from the handshake the flow begins with the initial window, and the first sample sets rho (in Linux rho then
//! stays 1).

use crate::common::{self, CongestionOps, CwndController, CwndState};
use crate::{
    AckSample, AlgorithmEntry, CaState, Constructor, Context, ParamKind, Parameter, Params, PathInfo, Properties,
};
use units::Span;

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "hybla",
    aliases: &[],
    title: "growth made independent of the round-trip time, for satellites",
    source: "Caini and Firrincieli, Int. J. Satellite Communications 2004; Linux 6.1 tcp_hybla.c",
    parameters: &[Parameter {
        name: "rtt0_ms",
        description: "RTT whose growth all flows get, ms",
        kind: ParamKind::Number { default: 25.0, min: 1.0, max: 10_000.0 },
    }],
    properties: Properties::DEFAULT,
    constructor: Constructor::PerPath(|params| CwndController::boxed(Hybla::new(params))),
};

/// Growth is counted in 1/128 packets.
const ONE: u32 = 128;
/// `2^(i/8)`, in 1/128: the fraction of rho in the exponent.
const FRACTION: [u32; 8] = [128, 139, 152, 165, 181, 197, 215, 234];
/// Maximum of the whole part of rho in the exponent.
const LARGEST_EXPONENT: u32 = 16;
/// Maximum number of packets in flight.
const CLAMP: u32 = 65_535;

/// State of Hybla.
#[derive(Debug)]
pub struct Hybla {
    rtt0: Span,
    /// In eighths.
    rho: u32,
    min_rtt: Span,
    /// Growth below one packet, in 1/128.
    cwnd_cents: u32,
}

impl Hybla {
    fn new(params: &Params) -> Self {
        let rtt0 = Span::from_secs_f64(params.number("rtt0_ms") / 1000.0);
        Self { rtt0, rho: 8, min_rtt: Span::MAX, cwnd_cents: 0 }
    }

    fn recalc_param(&mut self, srtt: Span) {
        if srtt > Span::ZERO && srtt < self.min_rtt {
            self.min_rtt = srtt;
            self.rho = (8 * srtt.as_nanos() / self.rtt0.as_nanos()).clamp(8, 1 << 15) as u32;
        }
    }

    /// `2^rho - 1`, in 1/128.
    fn slow_start_step(&self) -> u32 {
        (FRACTION[(self.rho % 8) as usize] << (self.rho / 8).min(LARGEST_EXPONENT)) - ONE
    }

    /// `rho^2 / window`, in 1/128.
    fn avoidance_step(&self, cwnd: u32) -> u32 {
        2 * self.rho * self.rho / cwnd
    }

    fn increase(&mut self, state: &mut CwndState, step: u32) {
        self.cwnd_cents += step % ONE;
        let packets = self.cwnd_cents / ONE;
        self.cwnd_cents %= ONE;
        state.cwnd += step / ONE + packets;
        if packets > 0 {
            state.cwnd_cnt = 0;
        }
        // A window that is too large for such steps grows as Reno's, counting one packet per acknowledgement.
        if step == 0 && state.cwnd_cnt >= state.cwnd {
            (state.cwnd, state.cwnd_cnt) = (state.cwnd + 1, 0);
        }
    }
}

impl CongestionOps for Hybla {
    fn init(&mut self, state: &mut CwndState, path: &PathInfo, _cx: &mut Context<'_>) {
        self.recalc_param(path.rtt.unwrap_or(Span::ZERO));
        state.cwnd_clamp = state.cwnd_clamp.min(CLAMP);
        if path.rtt.is_some() {
            state.cwnd = (self.rho / 8).min(state.cwnd_clamp);
        }
    }

    /// The RTT is also measured while the window is not filled, but the window does not grow then.
    fn ignores_cwnd_limited(&self) -> bool {
        true
    }

    fn cong_avoid(&mut self, state: &mut CwndState, acked: u32, sample: &AckSample, _cx: &mut Context<'_>) {
        self.recalc_param(sample.srtt);
        if !sample.cwnd_limited {
            return;
        }
        if state.ca_state != CaState::Open {
            return common::reno_cong_avoid(state, acked);
        }
        if state.in_slow_start() {
            self.increase(state, self.slow_start_step());
            state.cwnd = state.cwnd.min(state.ssthresh);
        } else {
            let step = self.avoidance_step(state.cwnd);
            state.cwnd_cnt += u32::from(step < ONE);
            self.increase(state, step);
        }
        state.cwnd = state.cwnd.min(state.cwnd_clamp);
    }

    fn ssthresh(&mut self, state: &CwndState, _cx: &mut Context<'_>) -> u32 {
        common::reno_ssthresh(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single::testing::{congestion_avoidance, context, defaults, path};

    fn with_rtt(rtt_ms: u64) -> Hybla {
        let mut hybla = Hybla::new(&defaults(&ENTRY));
        hybla.recalc_param(Span::from_millis(rtt_ms));
        hybla
    }

    #[test]
    fn slow_start_adds_two_to_the_rho_less_one() {
        let packets = |rtt_ms| f64::from(with_rtt(rtt_ms).slow_start_step()) / f64::from(ONE);
        assert_eq!([25, 50, 100, 110].map(packets), [1.0, 3.0, 15.0, 19.625]);
        assert_eq!(packets(500), 65_535.0, "the exponent is at most 16");
    }

    #[test]
    fn congestion_avoidance_adds_rho_squared_over_the_window() {
        assert_eq!(with_rtt(110).rho, 35);
        let steps = |rtt_ms| with_rtt(rtt_ms).avoidance_step(100);
        assert_eq!([25, 100].map(steps), [1, 20]);
        assert_eq!(with_rtt(5).rho, 8, "a short round trip is no handicap");
    }

    fn after_acks(mut hybla: Hybla, mut state: CwndState, acks: u32) -> CwndState {
        let sample = AckSample { cwnd_limited: true, ..AckSample::default() };
        for _ in 0..acks {
            hybla.cong_avoid(&mut state, 2, &sample, &mut context(0));
        }
        state
    }

    #[test]
    fn fractions_add_up_to_packets() {
        let state = congestion_avoidance(100);
        // 20/128 a step: the seventh makes 140/128.
        assert_eq!([6, 7].map(|acks| after_acks(with_rtt(100), state.clone(), acks).cwnd), [100, 101]);
        let state = congestion_avoidance(1000);
        assert_eq!(
            [999, 1000].map(|acks| after_acks(with_rtt(25), state.clone(), acks).cwnd),
            [1000, 1001],
            "none to add"
        );
    }

    #[test]
    fn slow_start_stops_at_the_threshold() {
        assert_eq!(after_acks(with_rtt(500), CwndState { ssthresh: 70, ..CwndState::default() }, 1).cwnd, 70);
    }

    #[test]
    fn the_flow_begins_with_rho_packets() {
        let initial_cwnd = |rtt_ms| {
            let (mut hybla, mut state) = (Hybla::new(&defaults(&ENTRY)), CwndState::default());
            let path = path(10, Some(Span::from_millis(rtt_ms)));
            hybla.init(&mut state, &path, &mut context(0));
            state.cwnd
        };
        assert_eq!([10, 50, 600].map(initial_cwnd), [1, 2, 24]);
    }
}

//! Elastic-TCP: growth by the ratio of the maximum RTT to the current one.
//!
//! - Increase: `WWF / window` packets per acknowledgement, with the window-correlated weight
//!   `WWF = sqrt(window * maximum RTT / current RTT)`: fast while the queue is empty, Reno-like when it is full.
//! - Decrease: half, as Reno. A timeout resets the maximum RTT.
//!
//! Source: Alrshah, Al-Maqri, Othman, "Elastic-TCP: flexible congestion control algorithm to adapt for high-BDP
//! networks" (IEEE Systems Journal 2019, arXiv:1904.13105). It is not in Linux; everything else is as in the Linux
//! modules written for the paper: slow start and loss are Reno's, and packets of an acknowledgement beyond slow start
//! are dropped. Deviations: the weight keeps six binary digits (the modules truncate it to packets). Implementations
//! differ in whether an acknowledgement of many packets counts once or for each packet: `count`.

use crate::common::{self, CongestionOps, CwndController, CwndState};
use crate::{AckSample, AlgorithmEntry, Constructor, Context, ParamKind, Parameter, Params, Properties};

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "elastic",
    aliases: &["elastic-tcp"],
    title: "Reno with growth weighted by maximum RTT over current RTT",
    source: "Alrshah, Al-Maqri, Othman, IEEE Systems Journal 2019",
    parameters: &[Parameter {
        name: "count",
        description: "event that causes growth: each acknowledgement, or each acknowledged packet",
        kind: ParamKind::Choice(&["acknowledgements", "packets"]),
    }],
    properties: Properties::DEFAULT,
    constructor: Constructor::PerPath(|params| CwndController::boxed(Elastic::new(params))),
};

/// Weights are kept in 1/64 packets.
const ONE: u64 = 64;

/// State of Elastic-TCP. RTTs are microseconds.
#[derive(Debug)]
pub struct Elastic {
    per_packet: bool,
    max_rtt: u64,
    rtt: u64,
    /// Growth below one packet, in 1/64 of a window.
    cwnd_fraction: u64,
}

impl Elastic {
    fn new(params: &Params) -> Self {
        Self { per_packet: params.choice("count") == "packets", max_rtt: 0, rtt: 1, cwnd_fraction: 0 }
    }

    /// The window-weighting function, in 1/64 packets.
    fn wwf(&self, cwnd: u32) -> u64 {
        let max_rtt = self.max_rtt.max(self.rtt);
        (u128::from(cwnd) * u128::from(ONE * ONE) * u128::from(max_rtt) / u128::from(self.rtt)).isqrt() as u64
    }

    /// Grows by whole packets. `cwnd_fraction` keeps the rest, because [`CwndState::cwnd_cnt`] counts whole packets.
    fn increase(&mut self, state: &mut CwndState, acked: u32) {
        let acks = if self.per_packet { u64::from(acked) } else { 1 };
        let cwnd_units = u64::from(state.cwnd) * ONE;
        self.cwnd_fraction += self.wwf(state.cwnd).saturating_mul(acks);
        let packets = (self.cwnd_fraction / cwnd_units).min(u64::from(state.cwnd_clamp));
        self.cwnd_fraction %= cwnd_units;
        state.cwnd = (state.cwnd + packets as u32).min(state.cwnd_clamp);
    }
}

impl CongestionOps for Elastic {
    fn cong_avoid(&mut self, state: &mut CwndState, acked: u32, _sample: &AckSample, _cx: &mut Context<'_>) {
        if state.in_slow_start() {
            common::slow_start(state, acked);
        } else {
            self.increase(state, acked);
        }
    }

    fn ssthresh(&mut self, state: &CwndState, _cx: &mut Context<'_>) -> u32 {
        self.cwnd_fraction = 0;
        common::reno_ssthresh(state)
    }

    fn on_ack(&mut self, _state: &mut CwndState, sample: &AckSample, _cx: &mut Context<'_>) {
        if let Some(rtt) = sample.rtt {
            // One microsecond more, so that the RTT is never zero.
            self.rtt = rtt.as_micros() + 1;
            self.max_rtt = self.max_rtt.max(self.rtt);
        }
    }

    fn on_timeout(&mut self, _state: &mut CwndState, _cx: &mut Context<'_>) {
        self.max_rtt = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single::testing::{congestion_avoidance, context, defaults};
    use units::Span;

    fn elastic(max_rtt: u64, rtt: u64) -> Elastic {
        Elastic { max_rtt, rtt, ..Elastic::new(&defaults(&ENTRY)) }
    }

    #[test]
    fn the_weight_is_the_root_of_window_times_rtt_ratio() {
        for (cwnd, max_rtt, weight) in [(100, 150, 12.25), (100, 100, 10.0), (10_000, 200, 141.4)] {
            let wwf = elastic(max_rtt, 100).wwf(cwnd) as f64 / ONE as f64;
            assert!((wwf - weight).abs() < 0.03, "{cwnd}: {wwf} instead of {weight}");
        }
    }

    fn acks_to_grow(mut elastic: Elastic, acked: u32) -> u32 {
        let mut state = congestion_avoidance(100);
        let mut acks = 0;
        while state.cwnd == 100 {
            acks += 1;
            elastic.increase(&mut state, acked);
        }
        acks
    }

    #[test]
    fn an_acknowledgement_adds_weight_over_window() {
        // 1 / 0.1225 = 8.2 and 1 / 0.1 = 10.
        assert_eq!([acks_to_grow(elastic(150, 100), 1), acks_to_grow(elastic(100, 100), 1)], [9, 10]);
        assert_eq!(acks_to_grow(elastic(100, 100), 2), 10, "however many packets it covers");
        assert_eq!(acks_to_grow(Elastic { per_packet: true, ..elastic(100, 100) }, 2), 5);
    }

    #[test]
    fn a_timeout_resets_the_greatest_rtt() {
        let (mut elastic, mut state) = (elastic(0, 1), CwndState::default());
        let mut sample = |elastic: &mut Elastic, rtt| {
            let sample = AckSample { rtt: Some(Span::from_micros(rtt)), ..AckSample::default() };
            elastic.on_ack(&mut state, &sample, &mut context(0));
            elastic.max_rtt
        };
        assert_eq!([900, 400].map(|rtt| sample(&mut elastic, rtt)), [901, 901]);
        elastic.on_timeout(&mut CwndState::default(), &mut context(0));
        assert_eq!(sample(&mut elastic, 400), 401);
    }
}

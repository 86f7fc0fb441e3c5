//! DCTCP: decrease in proportion to the fraction of marked packets.
//!
//! Switches mark above a short queue. The sender estimates the marked fraction `alpha` and reduces by half of it:
//! - Once per round trip: `alpha <- (1 - g) alpha + g F`, with `F` the fraction of CE-marked packets and `g` = 1/16.
//! - A mark: threshold = window (1 - alpha / 2), once per window. Loss: half, as Reno. Increase: Reno's.
//!
//! It needs `AckSample::marked` from the sender, and a receiver that echoes each packet's mark ([`Ecn::PerPacket`],
//! RFC 8257 section 3.2). An echo until CWR (RFC 3168) would count as a round trip of marks and make alpha too large.
//! Without marks it is Reno.
//!
//! Source: RFC 8257; integers as in Linux 6.1 (`tcp_dctcp.c`): alpha in 1/1024, marks counted in packets (RFC: bytes).
//! A loss while a mark reduces the window halves the window at that time.

use crate::common::{self, CongestionOps, CwndController, CwndState};
use crate::{
    AckProgress, AckSample, AlgorithmEntry, CaState, Constructor, Context, Deviation, Ecn, ParamKind, Parameter,
    Params, Properties,
};

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "dctcp",
    aliases: &[],
    title: "data centres: reduces in proportion to the fraction of ECN-marked packets",
    source: "RFC 8257; Linux 6.1 tcp_dctcp.c",
    parameters: &[
        Parameter {
            name: "gain_shift",
            description: "g = 2^-gain_shift: gain of the filter for the marked fraction",
            kind: ParamKind::Number { default: 4.0, min: 1.0, max: 10.0 },
        },
        Parameter {
            name: "alpha",
            description: "estimate of the marked fraction before the first RTT",
            kind: ParamKind::Number { default: 1.0, min: 0.0, max: 1.0 },
        },
    ],
    properties: Properties {
        ecn: |_| Ecn::PerPacket,
        deviations: &[(
            Deviation::ReducesOnLossAfterMark,
            "a mark costs a share of alpha, loss always half (Linux dctcp_react_to_loss)",
        )],
        ..Properties::DEFAULT
    },
    constructor: Constructor::PerPath(|params| CwndController::boxed(Dctcp::new(params))),
};

/// An alpha of one.
const MAX_ALPHA: u64 = 1024;
const MAX_ALPHA_SHIFT: u32 = 10;

/// State of DCTCP.
#[derive(Debug)]
pub struct Dctcp {
    gain_shift: u32,
    /// The marked fraction, in 1/1024.
    alpha: u64,
    /// Packet number whose acknowledgement ends the round.
    next_seq: u64,
    delivered: u64,
    delivered_ce: u64,
    /// What the progress of the current acknowledgement has counted: packets, and marked packets.
    counted: (u32, u32),
}

impl Dctcp {
    fn new(params: &Params) -> Self {
        Self {
            gain_shift: params.number("gain_shift") as u32,
            alpha: libm::round(params.number("alpha") * MAX_ALPHA as f64) as u64,
            next_seq: 0,
            delivered: 0,
            delivered_ce: 0,
            counted: (0, 0),
        }
    }

    /// Updates alpha at the end of a round trip, in which `delivered` packets arrived, `delivered_ce` of them marked.
    fn update_alpha(&mut self) {
        // A small alpha becomes zero, because its shift would be zero.
        self.alpha -= match self.alpha >> self.gain_shift {
            0 => self.alpha,
            decrease => decrease,
        };
        let increase = (self.delivered_ce << (MAX_ALPHA_SHIFT - self.gain_shift)) / self.delivered.max(1);
        self.alpha = (self.alpha + increase).min(MAX_ALPHA);
        (self.delivered, self.delivered_ce) = (0, 0);
    }
}

impl CongestionOps for Dctcp {
    fn cong_avoid(&mut self, state: &mut CwndState, acked: u32, _sample: &AckSample, _cx: &mut Context<'_>) {
        common::reno_cong_avoid(state, acked);
    }

    fn ssthresh(&mut self, state: &CwndState, _cx: &mut Context<'_>) -> u32 {
        let reduction = (u64::from(state.cwnd) * self.alpha) >> (MAX_ALPHA_SHIFT + 1);
        (state.cwnd - reduction as u32).max(2)
    }

    fn in_ack_event(&mut self, _state: &mut CwndState, progress: &AckProgress, _cx: &mut Context<'_>) {
        self.delivered += u64::from(progress.acked);
        self.delivered_ce += u64::from(progress.marked);
        self.counted = (progress.acked, progress.marked);
        if progress.snd_una >= self.next_seq {
            self.next_seq = progress.snd_nxt;
            self.update_alpha();
        }
    }

    /// Without SACK, a duplicate acknowledgement counts as a packet after its progress.
    fn on_ack(&mut self, _state: &mut CwndState, sample: &AckSample, _cx: &mut Context<'_>) {
        let (acked, marked) = std::mem::take(&mut self.counted);
        self.delivered += u64::from(sample.acked.saturating_sub(acked));
        self.delivered_ce += u64::from(sample.marked.saturating_sub(marked));
    }

    /// A loss halves the current window, even one that marks are reducing (Linux `dctcp_react_to_loss`).
    fn set_state(&mut self, state: &mut CwndState, next: CaState, _cx: &mut Context<'_>) {
        if next == CaState::Recovery && state.ca_state != CaState::Recovery {
            state.ssthresh = (state.cwnd / 2).max(2);
        }
    }

    fn on_timeout(&mut self, state: &mut CwndState, _cx: &mut Context<'_>) {
        halve(state);
    }
}

fn halve(state: &mut CwndState) {
    state.ssthresh = state.ssthresh.min(state.prior_cwnd / 2).max(2);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single::testing::{context, defaults, path, slow_start};
    use crate::{Cause, PathController as _, PathEvent};

    fn dctcp(alpha: u64) -> Dctcp {
        Dctcp { alpha, ..Dctcp::new(&defaults(&ENTRY)) }
    }

    /// Alpha after a round trip of 100 packets.
    fn after_round(alpha: u64, marked: u32) -> u64 {
        let mut dctcp = dctcp(alpha);
        let progress = AckProgress { acked: 100, marked, snd_una: 100, snd_nxt: 200, ..AckProgress::default() };
        dctcp.in_ack_event(&mut CwndState::default(), &progress, &mut context(0));
        dctcp.alpha
    }

    #[test]
    fn alpha_follows_the_marked_share() {
        assert_eq!(after_round(1024, 100), 1024);
        assert_eq!(after_round(512, 50), 512);
    }

    #[test]
    fn without_marks_alpha_decays_by_a_sixteenth_a_round_to_zero() {
        let alphas = std::iter::successors(Some(1024), |&alpha| Some(after_round(alpha, 0)));
        assert_eq!(alphas.take(7).collect::<Vec<_>>(), [1024, 960, 900, 844, 792, 743, 697]);
        assert_eq!(after_round(15, 0), 0);
    }

    #[test]
    fn alpha_is_estimated_once_a_round() {
        let mut dctcp = dctcp(1024);
        for una in (10..=200).step_by(10) {
            let progress = AckProgress { acked: 10, snd_una: una, snd_nxt: 100 + una, ..AckProgress::default() };
            dctcp.in_ack_event(&mut CwndState::default(), &progress, &mut context(0));
        }
        // Rounds end at 10 (nothing was under way before) and at 110.
        assert_eq!(dctcp.alpha, 900);
    }

    #[test]
    fn a_mark_reduces_by_half_of_alpha() {
        let ssthresh_after_mark = |alpha| {
            let state = slow_start(100);
            dctcp(alpha).ssthresh(&state, &mut context(0))
        };
        assert_eq!([1024, 512, 64].map(ssthresh_after_mark), [50, 75, 97]);
    }

    /// The threshold of a flow of initially 100 packets and this alpha after these causes.
    fn ssthresh(alpha: f64, causes: &[(Cause, bool)]) -> u32 {
        let params = [("alpha".to_owned(), crate::ParamValue::Number(alpha))].into();
        let params = Params::new(ENTRY.parameters, &params).expect("allowed");
        let mut flow = CwndController::boxed(Dctcp::new(&params));
        flow.on_event(&PathEvent::PathUp(path(100, None)), &mut context(0));
        for &(cause, reduce_cwnd) in causes {
            let event = PathEvent::Congestion { cause, reduce_cwnd, in_flight: 90, by_timer: false };
            flow.on_event(&event, &mut context(0));
        }
        flow.decision().ssthresh
    }

    #[test]
    fn the_mark_that_ends_a_round_reduces_by_the_new_alpha() {
        let mut flow = CwndController::new(dctcp(1024));
        flow.on_event(&PathEvent::PathUp(path(100, None)), &mut context(0));
        let progress = AckProgress { acked: 100, snd_una: 100, snd_nxt: 200, ..AckProgress::default() };
        flow.on_event(&PathEvent::AckProgress(progress), &mut context(0));
        flow.on_event(
            &PathEvent::Congestion { cause: Cause::EcnMark, reduce_cwnd: true, in_flight: 90, by_timer: false },
            &mut context(0),
        );
        assert_eq!(flow.decision().ssthresh, 54, "alpha is 960 of 1024");
    }

    #[test]
    fn loss_and_timeout_halve_at_any_alpha() {
        let ssthresh_after = |cause| ssthresh(0.0625, &[(cause, true)]);
        assert_eq!([Cause::EcnMark, Cause::Loss, Cause::Timeout].map(ssthresh_after), [97, 50, 50]);
    }

    #[test]
    fn a_loss_after_a_mark_halves_the_window_of_that_moment() {
        assert_eq!(ssthresh(0.0625, &[(Cause::EcnMark, true), (Cause::Loss, true)]), 50);
        assert_eq!(ssthresh(1.0, &[(Cause::EcnMark, true), (Cause::Loss, true)]), 50);
        assert_eq!(ssthresh(0.0625, &[(Cause::EcnMark, true), (Cause::Timeout, false)]), 97, "already paid for");
    }
}

//! Fixtures of the algorithms' unit tests.

use crate::common::CwndState;
use crate::{AckSample, AlgorithmEntry, Context, Params, PathInfo, RateSample, Reduction};
use std::collections::BTreeMap;
use units::{Instant, RngStream, Span};

/// Default parameters of an algorithm.
pub(super) fn defaults(entry: &AlgorithmEntry) -> Params {
    Params::new(entry.parameters, &BTreeMap::new()).expect("defaults are allowed")
}

/// A path as it comes up.
pub(super) fn path(initial_window: u32, rtt: Option<Span>) -> PathInfo {
    let (tick, reduction) = (Span::from_millis(1), Reduction::Proportional);
    PathInfo { mss: 1448, initial_window, rtt, tick, cwnd_clamp: u32::MAX / 2, reduction }
}

/// A window in the first slow start.
pub(super) fn slow_start(cwnd: u32) -> CwndState {
    CwndState { cwnd, ..CwndState::default() }
}

/// A window in congestion avoidance.
pub(super) fn congestion_avoidance(cwnd: u32) -> CwndState {
    CwndState { cwnd, ssthresh: 2, ..CwndState::default() }
}

/// An acknowledgement of `acked` packets, `delivered` in all, of which `prior_delivered` at the sending of the newest.
pub(super) fn ack_sample(acked: u32, delivered: u64, prior_delivered: u64, rtt: Span) -> AckSample {
    let rate_sample = RateSample {
        delivered: (delivered - prior_delivered) as u32,
        interval: rtt,
        prior_delivered,
        app_limited: false,
        ack_delayed: false,
    };
    AckSample {
        acked,
        prior_in_flight: acked,
        rtt: Some(rtt),
        srtt: rtt,
        delivered,
        rate_sample: Some(rate_sample),
        ..AckSample::default()
    }
}

/// A context at `ms` with a new random stream.
pub(super) fn context(ms: u64) -> Context<'static> {
    context_with(ms, Box::leak(Box::new(RngStream::named(1, "test"))))
}

/// A context at `ms` with `rng`.
pub(super) fn context_with(ms: u64, rng: &mut RngStream) -> Context<'_> {
    Context { now: Instant::ZERO + Span::from_millis(ms), rng }
}

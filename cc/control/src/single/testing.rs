//! What the unit tests of algorithms share.

use crate::AlgorithmEntry;
use crate::{Context, Params, PathInfo, Reduction};
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

/// A call at `millis`.
pub(super) fn context(millis: u64, rng: &mut RngStream) -> Context<'_> {
    Context { now: Instant::ZERO + Span::from_millis(millis), rng }
}

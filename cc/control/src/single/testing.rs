//! What the unit tests of algorithms share.

use crate::Entry;
use crate::{Context, PathInfo, Reduction, Settings};
use std::collections::BTreeMap;
use units::{Instant, Span, Stream};

/// The settings of someone who set nothing.
pub(super) fn defaults(entry: &Entry) -> Settings {
    Settings::new(entry.parameters, &BTreeMap::new()).expect("defaults are allowed")
}

/// A path as it comes up.
pub(super) fn path(initial_window: u32, rtt: Option<Span>) -> PathInfo {
    let (tick, reduction) = (Span::from_millis(1), Reduction::Proportional);
    PathInfo { mss: 1448, initial_window, rtt, tick, clamp: u32::MAX / 2, reduction }
}

/// A call at `millis`.
pub(super) fn context(millis: u64, random: &mut Stream) -> Context<'_> {
    Context { now: Instant::ZERO + Span::from_millis(millis), random }
}

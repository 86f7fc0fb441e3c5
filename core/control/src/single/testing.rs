//! What the unit tests of algorithms share.

use crate::Entry;
use crate::{Context, Settings};
use std::collections::BTreeMap;
use units::{Instant, Span, Stream};

/// The settings of someone who set nothing.
pub(super) fn defaults(entry: &Entry) -> Settings {
    Settings::new(entry.parameters, &BTreeMap::new()).expect("defaults are allowed")
}

/// A call at `millis`.
pub(super) fn context(millis: u64, random: &mut Stream) -> Context<'_> {
    Context { now: Instant::ZERO + Span::from_millis(millis), random }
}

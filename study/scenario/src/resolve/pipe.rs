//! The tables of a link's direction, but for its queue.

use super::checks::check_positive;
use super::network::DEFAULT_MTU;
use crate::file;
use link::{GrantConfig, PolicerConfig, Reordering, SlotConfig};
use parse::{Diagnostic, Spanned};
use std::num::NonZeroU32;
use units::{Rate, Span};

/// The grants of a direction with this rate.
pub(super) fn grants(table: &Spanned<file::Grants>, rate: Option<Rate>) -> Result<GrantConfig, Diagnostic> {
    let period = check_positive("period", &table.get().period, |time| time.0.0)?.0;
    let Some(rate) = rate else {
        let diagnostic = Diagnostic::new(table.span(), "`grants` without `rate`");
        return Err(diagnostic.with_help("give the link the rate that its grants make on average"));
    };
    if rate.bytes_in(period) == 0 {
        let span = table.get().period.span();
        return Err(Diagnostic::new(span, format!("a grant each {period} carries nothing at {rate}")));
    }
    Ok(GrantConfig { period, request: table.get().request.0 })
}

/// The packets that are not delayed on a wire with this propagation delay.
pub(super) fn reorder(table: &Spanned<file::Reorder>, delay: Span) -> Result<Reordering, Diagnostic> {
    let file::Reorder(reorder) = *table.get();
    if reorder.share > 0.0 && delay == Span::ZERO {
        let diagnostic =
            Diagnostic::new(table.span(), "`reorder` without `delay`: no packet is delayed, so none is overtaken");
        return Err(diagnostic.with_help("give the link a `delay`"));
    }
    Ok(reorder)
}

/// The slots of a wire.
pub(super) fn slot(table: &Spanned<file::Slot>) -> Result<SlotConfig, Diagnostic> {
    let file::Slot { min, max, packets, bytes } = table.get();
    let greatest = max.as_ref().map_or(min.0, |max| max.get().0);
    if let Some(max) = max.as_ref().filter(|_| greatest < min.0) {
        return Err(Diagnostic::new(max.span(), format!("`max` is less than `min`, {}", min.0)));
    }
    if packets.is_none() && bytes.is_none() {
        let diagnostic =
            Diagnostic::new(table.span(), "`slot` without `packets` and `bytes`: the first slot never ends");
        return Err(diagnostic.with_help("set the size of a slot: `packets = 32`, `bytes = \"42kB\"`"));
    }
    let bytes = bytes.as_ref().map(|bytes| check_positive("bytes", bytes, |size| size.0)).transpose()?;
    Ok(SlotConfig { min: min.0, max: greatest, packets: packets.map(NonZeroU32::get), bytes: bytes.map(|size| size.0) })
}

/// The policer of a direction whose packets have `overhead` bytes more.
pub(super) fn policer(table: &Spanned<file::Policer>, overhead: u32, local: bool) -> Result<PolicerConfig, Diagnostic> {
    let file::Policer { rate, burst } = table.get();
    if local {
        let diagnostic = Diagnostic::new(table.span(), "a link whose queue is `local` has no policer");
        return Err(
            diagnostic.with_help("a policer stands in the network; leave out `local`, or give it a link of its own")
        );
    }
    let full_packet = u64::from(DEFAULT_MTU) + u64::from(overhead);
    if burst.get().0 < full_packet {
        let diagnostic = Diagnostic::new(burst.span(), "`burst` is less than a full packet, so that none would pass");
        return Err(diagnostic.with_help(format!("at least {full_packet}b; usual: the rate times the RTT")));
    }
    Ok(PolicerConfig { rate: rate.0, burst: burst.get().0 })
}

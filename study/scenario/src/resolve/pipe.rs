//! The tables of a link's direction, but for its queue.

use super::checks::check_positive;
use super::network::DEFAULT_MTU;
use crate::file;
use link::{GrantConfig, PolicerConfig};
use parse::{Diagnostic, Percent, Spanned};
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

/// The share of packets that are not delayed on a wire with this propagation delay.
pub(super) fn reorder(share: &Spanned<Percent>, delay: Span) -> Result<f64, Diagnostic> {
    let Percent(reorder) = *share.get();
    if reorder > 0.0 && delay == Span::ZERO {
        let diagnostic =
            Diagnostic::new(share.span(), "`reorder` without `delay`: no packet is delayed, so none is overtaken");
        return Err(diagnostic.with_help("give the link a `delay`"));
    }
    Ok(reorder)
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
        return Err(diagnostic.with_help(format!("at least {full_packet}b; usual: the rate times a round trip")));
    }
    Ok(PolicerConfig { rate: rate.0, burst: burst.get().0 })
}

//! `[mpt]`.

use super::context::{Context, flag};
use super::value;
use crate::config::model::MptOptions;
use crate::config::tables::MptTable;
use parse::{Diagnostic, Spanned};
use units::Span;

/// The dead time without `dead-time`, in keepalive intervals.
const DEAD_INTERVALS: u64 = 3;

pub(super) fn options(table: Option<&Spanned<MptTable>>, context: &mut Context<'_>) -> MptOptions {
    let table = table.map_or_else(MptTable::default, |table| table.get().clone());
    let reorder_window = value::integer(table.reorder_window.as_ref(), 0..=1_000_000, 0, context) as u32;
    let keepalive_time = value::time(table.keepalive_time.as_ref(), context).filter(|span| *span > Span::ZERO);
    let default = keepalive_time.unwrap_or(Span::ZERO) * DEAD_INTERVALS;
    let dead_time = value::time(table.dead_time.as_ref(), context).unwrap_or(default);
    if let (Some(keepalive_time), Some(dead_time_key)) = (keepalive_time, &table.dead_time)
        && dead_time <= keepalive_time
    {
        let message = "a path whose `dead-time` does not exceed `keepalive-time` is always down";
        context.report(
            Diagnostic::new(dead_time_key.span(), message)
                .with_help(format!("more than {keepalive_time}, such as {default}")),
        );
    }
    MptOptions { reorder_window, offload: flag(table.offload.as_ref(), true), keepalive_time, dead_time }
}

//! The progress of a sweep on a terminal: runs done, total, rate and remaining time.

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::time::Duration;

/// A bar on standard error for `total` runs, or one that never shows.
pub(crate) fn bar(total: usize, quiet: bool) -> ProgressBar {
    if quiet || total == 0 {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:32} {pos}/{len} runs  {rate}  {eta} left");
    let style = style.expect("the template is well-formed").with_key("rate", rate);
    let bar = ProgressBar::new(total as u64).with_style(style);
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

fn rate(state: &ProgressState, out: &mut dyn Write) {
    let _ = write!(out, "{:.1} a second", state.per_sec());
}

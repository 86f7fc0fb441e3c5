//! The progress of a sweep on a terminal: runs done, total, rate and remaining time.

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use record::Run;
use runner::Observer;
use std::fmt::Write;
use std::time::Duration;
use store::Key;

/// A bar on standard error.
#[derive(Debug)]
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// A bar for `total` runs, or one that never shows.
    pub(crate) fn new(total: usize, quiet: bool) -> Self {
        if quiet || total == 0 {
            return Self(ProgressBar::hidden());
        }
        let style = ProgressStyle::with_template("{bar:32} {pos}/{len} runs  {rate}  {eta} left");
        let style = style.expect("the template is well-formed").with_key("rate", rate);
        let bar = ProgressBar::new(total as u64).with_style(style);
        bar.enable_steady_tick(Duration::from_millis(500));
        Self(bar)
    }

    /// Removes the bar from the terminal.
    pub(crate) fn clear(&self) {
        self.0.finish_and_clear();
    }
}

impl Observer for Bar {
    fn finished(&mut self, _: Key, _: &Run) {
        self.0.inc(1);
    }
}

fn rate(state: &ProgressState, out: &mut dyn Write) {
    let _ = write!(out, "{:.1} a second", state.per_sec());
}

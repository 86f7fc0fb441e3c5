//! The daemon's log: text lines or JSON on standard error, or entries of systemd's journal. Events at packet rate are
//! counted, not logged.

use crate::journal;
use std::io::IsTerminal;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::prelude::*;

/// Initialises the log of this process. `json` asks for JSON lines; otherwise the journal gets entries with fields if
/// standard error leads to it, and text lines go to standard error if not. `RUST_LOG` selects what is logged (`debug`, or
/// `info,ropewalk_daemon=trace`); `info` is the default.
pub fn start(json: bool) {
    let targets = std::env::var("RUST_LOG").ok().and_then(|text| text.parse().ok());
    let filter: Targets = targets.unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false);
    let layer = layer.with_ansi(std::io::stderr().is_terminal());
    let registry = tracing_subscriber::registry().with(filter);
    // A test may have initialised it already.
    let _ = match journal::of_standard_error() {
        _ if json => registry.with(layer.json()).try_init(),
        Some(journal) => registry.with(journal).try_init(),
        None => registry.with(layer).try_init(),
    };
}

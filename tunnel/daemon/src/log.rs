//! The daemon's log on standard error: text lines or JSON. Events at packet rate are counted, not logged.

use std::io::IsTerminal;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::prelude::*;

/// Initialises the log of this process: JSON, or text lines. Under journald text lines have no times, because journald
/// adds its own. `RUST_LOG` selects what is logged (`debug`, or `info,ropewalk_daemon=trace`); `info` is the default.
pub fn start(json: bool) {
    let targets = std::env::var("RUST_LOG").ok().and_then(|text| text.parse().ok());
    let filter: Targets = targets.unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false);
    let layer = layer.with_ansi(std::io::stderr().is_terminal());
    let registry = tracing_subscriber::registry().with(filter);
    // A test may have initialised it already.
    let _ = match std::env::var_os("JOURNAL_STREAM") {
        _ if json => registry.with(layer.json()).try_init(),
        Some(_) => registry.with(layer.without_time()).try_init(),
        None => registry.with(layer).try_init(),
    };
}

//! Where the daemon's log goes: lines for people or JSON for collectors, on standard error. Nothing is logged at the rate
//! of packets; those are counted.

use std::io::IsTerminal;
use tracing::Level;
use tracing_subscriber::EnvFilter;

/// The form of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people and for journald, which adds the time itself.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts the log of this process. `RUST_LOG` chooses what is told; without it everything from `Level::INFO` on.
pub fn start(format: Format) {
    let filter = EnvFilter::builder().with_default_directive(Level::INFO.into()).from_env_lossy();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    let log = log.with_ansi(std::io::stderr().is_terminal());
    // A log that is there already, in a test, stays.
    let _ = match (format, std::env::var_os("JOURNAL_STREAM")) {
        (Format::Json, _) => log.json().try_init(),
        (Format::Text, Some(_)) => log.without_time().try_init(),
        (Format::Text, None) => log.try_init(),
    };
}

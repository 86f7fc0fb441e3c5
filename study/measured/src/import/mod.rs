//! Files of other programs, recognised by their content.
//!
//! Each importer takes what a document has a place for, and names what it could not use. The path has the name of the file
//! without its ending.

mod flent;
mod history;
mod iperf3;
mod irtt;
mod ping;
mod rates;
mod speed_test;
mod ss;
mod value;

use crate::Measured;
use serde_json::Value;

/// What is known of a file before its content.
pub(crate) struct Source<'a> {
    /// The name of the path.
    pub(crate) path: &'a str,
}

/// A fault with its line, if it has one.
pub(crate) type Fault = (Option<usize>, String);

/// The formats, for a file of none of them.
pub(crate) const FORMATS: &str = "measurements are a document of this program, or a file of iperf3 (-J), ping, irtt, flent, ss (-tin), \
                       `ropewalk test --json` or a tunnel's history, or a trace of rates";

/// Reads JSON of another program; none if it is of none of those.
pub(crate) fn json(value: &Value, source: &Source<'_>) -> Option<Result<Measured, Fault>> {
    let has = |keys: &[&str]| keys.iter().all(|key| value.get(key).is_some());
    if has(&["start", "intervals"]) || has(&["start", "error"]) {
        Some(iperf3::import(value, source))
    } else if has(&["round_trips", "stats"]) {
        Some(irtt::import(value, source))
    } else if has(&["metadata", "results", "x_values"]) {
        Some(flent::import(value, source))
    } else if has(&["idle_rtt", "measurements", "interface"]) {
        Some(speed_test::import(value))
    } else if has(&["from_s", "step_s", "series"]) {
        Some(history::import(value))
    } else if has(&["config", "data_flow_direction"]) {
        Some(Err((
            None,
            "a profile of iBoxNet describes a link, and measures none: `ropewalk new --ibox FILE`".to_owned(),
        )))
    } else {
        None
    }
}

/// Reads text that is no JSON.
pub(crate) fn text(text: &str, source: &Source<'_>) -> Result<Measured, Fault> {
    if ping::is_ping(text) {
        ping::import(text, source)
    } else if ss::is_ss(text) {
        ss::import(text, source)
    } else {
        rates::import(text, source).map_err(|(line, message)| (line, format!("{message}\n  help: {FORMATS}")))
    }
}

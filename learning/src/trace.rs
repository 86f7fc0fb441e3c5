//! Traces in a configuration: lists of milliseconds in mahimahi's format, or names of files.

use crate::message::shortened;
use link::RateTrace;
use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::Value;

/// A trace: the name of a file, or a list of milliseconds.
fn trace(value: &Value) -> Result<RateTrace, String> {
    match value {
        Value::String(name) => scenario::trace_file(name),
        Value::Array(list) => opportunities(list),
        _ => Err(format!("{}: the name of a file is expected, or a list of milliseconds", shortened(value))),
    }
}

/// The trace of a list of milliseconds.
fn opportunities(list: &[Value]) -> Result<RateTrace, String> {
    let whole = |number: f64| (number >= 0.0 && number.trunc() == number && number < 1e15).then_some(number as u64);
    let millisecond = |value: &Value| {
        let number = value.as_u64().or_else(|| whole(value.as_f64()?));
        number.ok_or_else(|| format!("{}: milliseconds are whole numbers from 0 on", shortened(value)))
    };
    let opportunities: Vec<u64> = list.iter().map(millisecond).collect::<Result<_, _>>()?;
    let (period_ms, is_sorted) = (opportunities.last().copied().unwrap_or_default(), opportunities.is_sorted());
    let trace = RateTrace { opportunities: opportunities.into(), period_ms };
    match is_sorted && trace.is_usable() {
        true => Ok(trace),
        false => {
            Err("milliseconds must ascend, and the last one (the period) must be between 1 ms and one year".to_owned())
        }
    }
}

/// A list of traces.
pub(crate) fn list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<RateTrace>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let Value::Array(list) = &value else {
        let message = format!("{}: a list of traces is expected, [\"FILE\", ...]", shortened(&value));
        return Err(D::Error::custom(message));
    };
    let numbered =
        |(index, value)| trace(value).map_err(|problem| D::Error::custom(format!("trace {index}: {problem}")));
    list.iter().enumerate().map(numbered).collect()
}

//! Traces of a link's capacity, in the formats that researchers exchange. The format follows from the first line.
//!
//! - one number per line: mahimahi's, a millisecond at which one 1500-byte packet may leave; the last is the period;
//! - two numbers per line: `time Mbit/s`, as Pensieve's and Genet's (FCC, Norway, Belgium);
//! - `{`: the [report of iperf3](iperf) in JSON;
//! - anything else: [CSV](csv) with a header.
//!
//! An error shows nothing of the file's content, because a stranger's scenario may name any file.

mod columns;
mod csv;
mod date;
mod iperf;
mod rates;

use link::RateTrace;

/// Help for a file of no known format.
const FORMATS: &str = "a trace has one time stamp in ms per line (mahimahi), or a time in s and a rate in Mbit/s per \
                       line, is CSV with a header, or the JSON of iperf3";

/// The fault in a trace, without any of its text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TraceError {
    /// Line number from 1; 1 also stands for the whole file.
    pub(crate) line: usize,
    pub(crate) message: String,
    /// Help, or empty.
    pub(crate) help: String,
}

impl TraceError {
    fn new(line: usize, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { line, message: message.into(), help: help.into() }
    }
}

/// Lines with their numbers, from 1.
type Lines<'t> = Box<dyn Iterator<Item = (usize, &'t str)> + 't>;

/// Reads a trace; in CSV with several columns of rates, the one called `column`.
///
/// # Errors
/// A line that is not of the format, a time that goes backwards, or a trace that carries nothing.
pub(crate) fn parse(text: &str, column: Option<&str>) -> Result<RateTrace, TraceError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with('{') {
        return iperf::parse(text);
    }
    let is_row = |(_, line): &(usize, &str)| !line.trim().is_empty() && !line.starts_with('#');
    let mut rows = (1..).zip(text.lines()).filter(is_row).peekable();
    let first = rows.peek().map_or("", |(_, line)| *line);
    let fields: Vec<&str> = first.split([' ', '\t', ',', ';']).filter(|field| !field.is_empty()).collect();
    let is_number = |field: &&str| field.parse::<f64>().is_ok();
    match fields.as_slice() {
        [] | [_] if column.is_none() => mahimahi(text),
        [time, rate] if column.is_none() && is_number(time) && is_number(rate) => csv::two_columns(Box::new(rows)),
        fields if fields.iter().all(is_number) => {
            let message = format!("a line of {} numbers, and no header", fields.len());
            Err(TraceError::new(rows.next().map_or(1, |(number, _)| number), message, FORMATS))
        }
        _ => csv::with_header(Box::new(rows), column),
    }
}

/// Reads the text of a trace in any of the formats.
///
/// # Errors
///
/// The line of the fault, from 1, and the fault.
pub fn rate_trace(text: &str) -> Result<RateTrace, (usize, String)> {
    parse(text, None).map_err(|error| (error.line, error.message))
}

/// Reads a trace of mahimahi.
fn mahimahi(text: &str) -> Result<RateTrace, TraceError> {
    let mut opportunities = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let millisecond = line.trim().parse();
        let not_a_number = |_| TraceError::new(number, "this is not a time stamp in milliseconds", FORMATS);
        let millisecond = millisecond.map_err(not_a_number)?;
        if opportunities.last().is_some_and(|last| *last > millisecond) {
            return Err(TraceError::new(number, "time goes backwards", "time stamps ascend; repeats are allowed"));
        }
        opportunities.push(millisecond);
    }
    let whole = |message| Err(TraceError::new(1, message, ""));
    let Some(&period_ms) = opportunities.last() else { return whole("an empty trace carries nothing") };
    let trace = RateTrace { opportunities: opportunities.into(), period_ms };
    match period_ms {
        0 => whole("the last time stamp is the trace's period and cannot be 0"),
        _ if !trace.is_usable() => whole("the trace is longer than a year, or carries less than 1 bit/s"),
        _ => Ok(trace),
    }
}

#[cfg(test)]
mod tests;

//! Mahimahi traces: each line a millisecond at which one 1500-byte packet may leave; the last is the period.

use link::RateTrace;

/// What is wrong with a trace, without anything of its text.
#[derive(Debug)]
pub(crate) struct TraceError {
    /// From 1, which stands for the whole, too.
    pub(crate) line: usize,
    pub(crate) message: &'static str,
    /// Help, or empty.
    pub(crate) help: &'static str,
}

/// Reads a trace.
///
/// # Errors
/// A line that is not a time stamp, or not after the one before; an empty trace, or one of no time.
pub(crate) fn parse(text: &str) -> Result<RateTrace, TraceError> {
    let mut opportunities = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let wrong = |message, help| TraceError { line: index + 1, message, help };
        let help = "a mahimahi trace has one whole number a line, nothing else";
        let millisecond = line.trim().parse();
        let millisecond = millisecond.map_err(|_| wrong("this is not a time stamp in milliseconds", help))?;
        if opportunities.last().is_some_and(|last| *last > millisecond) {
            return Err(wrong("time goes backwards", "time stamps ascend; repeats are allowed"));
        }
        opportunities.push(millisecond);
    }
    let whole = |message| TraceError { line: 1, message, help: "" };
    match opportunities.last() {
        None => Err(whole("an empty trace carries nothing")),
        Some(0) => Err(whole("the last time stamp is the trace's period and cannot be 0")),
        Some(&period_ms) => Ok(RateTrace { opportunities: opportunities.into(), period_ms }),
    }
}

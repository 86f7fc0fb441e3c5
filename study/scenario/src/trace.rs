//! Mahimahi traces: each line a millisecond at which one 1500-byte packet may leave; the last is the period.

use link::RateTrace;
use parse::Diagnostic;

/// Reads a trace.
///
/// # Errors
/// A line that is not a time stamp, or not after the one before; an empty trace, or one of no time.
pub(crate) fn parse(text: &str) -> Result<RateTrace, Diagnostic> {
    let (mut opportunities, mut start) = (Vec::new(), 0);
    for line in text.split_inclusive('\n') {
        let span = start..start + line.trim_end().len();
        start += line.len();
        let line = line.trim();
        let Ok(millisecond) = line.parse() else {
            let message = format!("`{line}` is not a time stamp in milliseconds");
            return Err(
                Diagnostic::new(span, message).with_help("a mahimahi trace has one whole number a line, nothing else")
            );
        };
        if opportunities.last().is_some_and(|last| *last > millisecond) {
            return Err(
                Diagnostic::new(span, "time goes backwards").with_help("time stamps ascend; repeats are allowed")
            );
        }
        opportunities.push(millisecond);
    }
    match opportunities.last() {
        None => Err(Diagnostic::new(0..0, "an empty trace carries nothing")),
        Some(0) => Err(Diagnostic::new(0..0, "the last time stamp is the trace's period and cannot be 0")),
        Some(&period_ms) => Ok(RateTrace { opportunities: opportunities.into(), period_ms }),
    }
}

//! The report of `iperf3 --json`: the rate of each interval, of all its streams together.

use super::TraceError;
use super::csv::rate_of;
use super::rates::{Sample, opportunities};
use link::RateTrace;
use serde::Deserialize;

#[derive(Deserialize)]
struct Report {
    intervals: Vec<Interval>,
}

#[derive(Deserialize)]
struct Interval {
    sum: Sum,
}

/// Seconds since the test's start, and a rate.
#[derive(Deserialize)]
struct Sum {
    start: f64,
    end: f64,
    bits_per_second: f64,
}

/// Reads a report.
pub(super) fn parse(text: &str) -> Result<RateTrace, TraceError> {
    let help = "iperf3 --json, which has `intervals` with a `sum`";
    let report: Report = serde_json::from_str(text)
        .map_err(|error| TraceError::new(error.line().max(1), "this is not the JSON of iperf3", help))?;
    let whole = |message: &str| TraceError::new(1, message, help);
    let start = report.intervals.first().map_or(0.0, |interval| interval.sum.start);
    let (mut samples, mut last) = (Vec::new(), 0);
    for Interval { sum } in &report.intervals {
        let end = ((sum.end - start) * 1e9).round() as u64;
        let rate = rate_of(sum.bits_per_second).ok_or_else(|| whole("a rate is negative or above 10 Tbit/s"))?;
        if end <= last {
            return Err(whole("the intervals do not follow each other"));
        }
        samples.push(Sample { line: 1, end, rate });
        last = end;
    }
    opportunities(&samples)
}

//! Rates over time, in every format of traces that a scenario reads: CSV, `time Mbit/s`, mahimahi.

use super::{Fault, Source};
use crate::{Direction, Measured, TcpFlow};
use scenario::RateTrace;

pub(super) fn import(text: &str, source: &Source<'_>) -> Result<Measured, Fault> {
    let trace = scenario::rate_trace(text).map_err(|(line, message)| (Some(line), message))?;
    // Of a trace that is shorter than a few seconds, tenths of seconds.
    let interval_ms = if trace.period_ms < 5000 { 100 } else { 1000 };
    let rates = rates(&trace, interval_ms);
    let seconds = rates.len() as f64 * interval_ms as f64 / 1e3;
    let mut measured = Measured::default();
    measured.path_mut(source.path).tcp.push(TcpFlow {
        seconds: Some(seconds),
        goodput_mbps: (seconds > 0.0).then(|| rates.iter().sum::<f64>() / rates.len() as f64),
        interval_s: Some(interval_ms as f64 / 1e3),
        goodput_intervals_mbps: rates,
        ..TcpFlow::new(Direction::Down)
    });
    let name = source.path;
    measured.not_measured.push(format!("{name}: direction: rates over time are taken for those of downloads"));
    measured.not_measured.push(format!("{name}: congestion control, RTTs and losses: the file has rates alone"));
    Ok(measured)
}

/// Mbit/s in each whole interval.
fn rates(trace: &RateTrace, interval_ms: u64) -> Vec<f64> {
    let mut counts = vec![0_u64; usize::try_from(trace.period_ms / interval_ms).unwrap_or(0)];
    for opportunity in trace.opportunities.iter() {
        // An opportunity stands at the end of the millisecond in which its bytes are complete.
        let interval = (opportunity.saturating_sub(1) / interval_ms) as usize;
        if let Some(count) = counts.get_mut(interval) {
            *count += 1;
        }
    }
    let mbps = |count: u64| (count * RateTrace::OPPORTUNITY_BYTES * 8) as f64 / interval_ms as f64 / 1e3;
    counts.into_iter().map(mbps).collect()
}

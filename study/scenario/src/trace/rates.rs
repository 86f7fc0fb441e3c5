//! From measured rates to delivery opportunities.

use super::TraceError;
use link::RateTrace;

/// Bits of an opportunity, in units of 1 ns at 1 bit/s.
const OPPORTUNITY: u128 = RateTrace::OPPORTUNITY_BYTES as u128 * 8 * 1_000_000_000;
/// The greatest number of opportunities: 50 GB of data, 256 MiB of memory.
const MAX_OPPORTUNITIES: u64 = 1 << 25;
const MAX_LEN: u64 = RateTrace::MAX_PERIOD_MS * NANOS_PER_MILLI;
const NANOS_PER_MILLI: u64 = 1_000_000;

/// A rate in bit/s that holds until `end`, ns since the trace's beginning.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) line: usize,
    pub(super) end: u64,
    pub(super) rate: u64,
}

/// One opportunity per 1500 bytes that the rates carry, at the end of the millisecond in which these are complete.
///
/// # Errors
/// Rates that carry nothing, or too much.
pub(super) fn opportunities(samples: &[Sample]) -> Result<RateTrace, TraceError> {
    let (mut opportunities, mut carried, mut start) = (Vec::new(), 0_u128, 0_u64);
    for Sample { line, end, rate } in samples {
        let count = u128::from(*rate) * u128::from(end - start) + carried;
        if count / OPPORTUNITY + opportunities.len() as u128 > u128::from(MAX_OPPORTUNITIES) || *end > MAX_LEN {
            let help = "cut it into parts of at most 50 GB and a year";
            return Err(TraceError::new(*line, "the trace is too long", help));
        }
        for number in 1..=count / OPPORTUNITY {
            let time = (number * OPPORTUNITY - carried).div_ceil(u128::from(*rate)) as u64;
            opportunities.push((start + time).div_ceil(NANOS_PER_MILLI));
        }
        (carried, start) = (count % OPPORTUNITY, *end);
    }
    let trace = RateTrace { opportunities: opportunities.into(), period_ms: start.div_ceil(NANOS_PER_MILLI) };
    match trace.is_usable() {
        true => Ok(trace),
        false => Err(TraceError::new(1, "the rates carry less than a packet", "at least one rate has to be above 0")),
    }
}

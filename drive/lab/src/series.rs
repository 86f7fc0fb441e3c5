//! A flow's time series: the simulator's columns, and what only a kernel tells.

use crate::plan::{Observation, Sample};
use record::Series;
use units::{Rate, Span};

const COLUMNS: [&str; 11] = [
    "goodput_mbps",
    "window_packets",
    "threshold_packets",
    "rtt_ms",
    "in_flight_packets",
    "retransmitted_packets",
    "throughput_mbps",
    "sent_packets",
    "pacing_mbps",
    "delivery_mbps",
    "congestion_state",
];
/// `TCP_INFINITE_SSTHRESH`.
const NO_THRESHOLD: u32 = 0x7fff_ffff;

/// The series of the flow `name`, whose full packets have `packet` bytes.
pub(crate) fn series(name: &str, seen: &Observation, packet: u64, interval: Span) -> Series {
    let count = seen.samples.len();
    let mut values = vec![Vec::with_capacity(count); COLUMNS.len()];
    let mut before = Sample::default();
    for sample in &seen.samples {
        let row = row(sample, &before, packet, interval);
        values.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
        before = *sample;
    }
    Series {
        subject: format!("flow {name}"),
        columns: COLUMNS.map(str::to_owned).to_vec(),
        time_s: (1..=count as u64).map(|number| Span(interval.0 * number).as_secs_f64()).collect(),
        values,
    }
}

/// One sample's values; rates and counts are those of the interval since the sample before.
fn row(sample: &Sample, before: &Sample, packet: u64, interval: Span) -> [f64; COLUMNS.len()] {
    let mut row = [f64::NAN; COLUMNS.len()];
    row[0] = Rate::of(sample.delivered - before.delivered, interval).as_mbps();
    let Some(tcp) = sample.tcp else { return row };
    let earlier = before.tcp.unwrap_or_default();
    row[1] = f64::from(tcp.window);
    if tcp.threshold < NO_THRESHOLD {
        row[2] = f64::from(tcp.threshold);
    }
    row[3] = f64::from(tcp.rtt) / 1e3;
    row[4] = f64::from(tcp.in_flight);
    row[5] = f64::from(tcp.retransmitted - earlier.retransmitted);
    row[6] = Rate::of(u64::from(sample.arrived.saturating_sub(before.arrived)) * packet, interval).as_mbps();
    row[7] = f64::from(tcp.sent - earlier.sent);
    row[8] = mbps(tcp.pacing_rate);
    row[9] = mbps(tcp.delivery_rate);
    row[10] = f64::from(tcp.state);
    row
}

/// From bytes a second, to the kbit/s, which keeps files small; all ones are no limit.
fn mbps(bytes: u64) -> f64 {
    if bytes == u64::MAX { f64::NAN } else { (bytes as f64 * 8.0 / 1e3).round() / 1e3 }
}

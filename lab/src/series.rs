//! A flow's time series: the columns of every driver, and some that only a kernel provides.

use crate::protocol::Sample;
use record::{FLOW_COLUMNS, Series};
use units::{Rate, Span};

/// Columns that only a kernel provides.
const KERNEL_COLUMNS: [&str; 3] = ["pacing_mbps", "delivery_mbps", "congestion_state"];
const COLUMNS: usize = FLOW_COLUMNS.len() + KERNEL_COLUMNS.len();

/// The series of a flow or subflow, whose full packets have `packet_bytes` bytes.
pub(crate) fn series(subject: &str, samples: &[Sample], packet_bytes: u64, interval: Span) -> Series {
    let count = samples.len();
    let mut values = vec![Vec::new(); COLUMNS];
    let mut previous = Sample::default();
    for sample in samples {
        let row = row(sample, &previous, packet_bytes, interval);
        values.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
        previous = Sample { tcp: sample.tcp.or(previous.tcp), ..*sample };
    }
    Series {
        subject: subject.to_owned(),
        columns: FLOW_COLUMNS.iter().chain(&KERNEL_COLUMNS).map(|column| (*column).to_owned()).collect(),
        time_s: (1..=count as u64).map(|number| Span(interval.0 * number).as_secs_f64()).collect(),
        values,
    }
}

/// A sample's values; rates and counts are of the interval since the previous sample.
fn row(sample: &Sample, previous: &Sample, packet_bytes: u64, interval: Span) -> [f64; COLUMNS] {
    let mut row = [f64::NAN; COLUMNS];
    // A program's own count, at its end, may be less than the kernel's earlier count.
    row[0] = Rate::of(sample.delivered.saturating_sub(previous.delivered), interval).as_mbps();
    let throughput =
        Rate::of(u64::from(sample.arrived.saturating_sub(previous.arrived)) * packet_bytes, interval).as_mbps();
    // The instants at which a flow's packets were dropped are unknown: row[8] stays NaN.
    if let Some(sent) = sample.datagrams {
        (row[6], row[7]) = (throughput, f64::from(sent - previous.datagrams.unwrap_or(0)));
    }
    let Some(tcp) = sample.tcp else { return row };
    let previous_tcp = previous.tcp.unwrap_or_default();
    row[5] = f64::from(tcp.retransmitted - previous_tcp.retransmitted);
    row[6] = throughput;
    row[7] = f64::from(tcp.sent - previous_tcp.sent);
    if !tcp.is_established() {
        return row;
    }
    row[1] = f64::from(tcp.snd_cwnd);
    if tcp.snd_ssthresh < units::INFINITE_SSTHRESH {
        row[2] = f64::from(tcp.snd_ssthresh);
    }
    row[3] = f64::from(tcp.rtt) / 1e3;
    row[4] = f64::from(tcp.in_flight);
    row[9] = mbps(tcp.pacing_rate);
    row[10] = mbps(tcp.delivery_rate);
    row[11] = f64::from(tcp.ca_state);
    row
}

/// Bytes per second as Mbit/s, rounded to the kbit/s, which keeps files small; NaN for all ones, the kernel's "no limit".
fn mbps(bytes: u64) -> f64 {
    if bytes == u64::MAX { f64::NAN } else { (bytes as f64 * 8.0 / 1e3).round() / 1e3 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::TcpInfo;

    fn columns(samples: &[Sample], names: [&str; 3]) -> Vec<Vec<f64>> {
        let series = series("flow x", samples, 1000, Span::from_millis(100));
        let position = |name: &str| series.columns.iter().position(|column| column == name).expect("a column");
        names.map(|name| series.values[position(name)].clone()).to_vec()
    }

    #[test]
    fn datagrams_are_counted_and_have_no_window() {
        let sample = |sent, arrived| Sample { datagrams: Some(sent), arrived, ..Sample::default() };
        let values = columns(&[sample(25, 20), sample(50, 50)], ["sent_packets", "throughput_mbps", "cwnd_packets"]);
        assert_eq!((&values[0], &values[1]), (&vec![25.0, 25.0], &vec![1.6, 2.4]));
        assert!(values[2].iter().all(|window| window.is_nan()));
    }

    #[test]
    fn between_connections_counts_go_on_and_there_is_no_window() {
        let sample = |sent, snd_cwnd, rtt| Sample {
            tcp: Some(TcpInfo { sent, snd_cwnd, rtt, ..TcpInfo::default() }),
            ..Sample::default()
        };
        let samples = [sample(10, 4, 20_000), sample(14, 0, 0), sample(20, 6, 30_000)];
        let values = columns(&samples, ["sent_packets", "cwnd_packets", "srtt_ms"]);
        assert_eq!(values[0], [10.0, 4.0, 6.0]);
        assert!(values[1][1].is_nan() && values[2][1].is_nan(), "{values:?}");
        assert_eq!([values[1][0], values[2][2]], [4.0, 30.0]);
    }
}

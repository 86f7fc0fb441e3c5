//! Measurements of the TCP flows of a capture. The host at which it was made sends up and receives down.

use super::flows::{Flow, Segment, flows};
use super::table::{CaptureEnd, Table};
use measured::{Direction, Measured, RttSample, Summary, TcpFlow};
use std::collections::BTreeMap;
use std::path::Path;

/// A direction that carries fewer bytes is no flow.
const MIN_BYTES: u64 = 100_000;
/// The length of an interval of goodput, nanoseconds.
const INTERVAL_NS: u64 = 100_000_000;
/// At most one round-trip time is kept in this time, nanoseconds.
const SAMPLE_NS: u64 = 50_000_000;

/// Reads a capture (pcap, pcapng) as measurements of one path, which has the name of the file.
///
/// # Errors
/// The file cannot be read, is no capture, is damaged, or has no TCP flow of 100 kB; the error names it.
pub fn measure_capture(path: &Path) -> Result<Measured, String> {
    let is_near = Table::open(path, None)?.end() == CaptureEnd::Near;
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let mut measured = Measured { program: Some("capture".to_owned()), ..Measured::default() };
    let found = flows(path)?;
    let directions = found.iter().flat_map(|flow| [true, false].map(|of_opener| (flow, of_opener)));
    let tcp = directions.filter_map(|(flow, of_opener)| {
        let direction = if of_opener == is_near { Direction::Up } else { Direction::Down };
        tcp_flow(flow, of_opener, direction)
    });
    let tcp: Vec<TcpFlow> = tcp.collect();
    if tcp.is_empty() {
        return Err(format!("{}: no TCP flow carries {MIN_BYTES} bytes", path.display()));
    }
    if tcp.iter().any(|flow| flow.direction == Direction::Down) {
        measured.not_measured.push(format!("{name}: RTTs and retransmissions of what came to the capture's host"));
    }
    measured.not_measured.push(format!("{name}: congestion control: packets do not tell it"));
    if tcp.len() > 1 {
        measured.not_measured.push(format!("{name}: which flows had the path to themselves: {} are taken", tcp.len()));
    }
    measured.path_mut(&name).tcp = tcp;
    Ok(measured)
}

/// One direction of a flow; none if it carries little.
fn tcp_flow(flow: &Flow, of_opener: bool, direction: Direction) -> Option<TcpFlow> {
    let data = || flow.segments.iter().filter(|segment| segment.of_opener == of_opener && segment.len > 0);
    let first = data().next()?;
    let acks = flow.segments.iter().filter(|segment| segment.of_opener != of_opener);
    let progress = progress(acks, first);
    let &(end_ns, bytes) = progress.last().filter(|(_, bytes)| *bytes >= MIN_BYTES)?;
    let seconds = (end_ns - first.at_ns) as f64 / 1e9;
    let is_up = direction == Direction::Up;
    let rtt_samples = if is_up { round_trips(flow, of_opener, first.at_ns) } else { Vec::new() };
    Some(TcpFlow {
        seconds: Some(seconds),
        bytes: Some(bytes),
        goodput_mbps: (seconds > 0.0).then(|| bytes as f64 * 8.0 / seconds / 1e6),
        interval_s: Some(INTERVAL_NS as f64 / 1e9),
        goodput_intervals_mbps: intervals(&progress, first.at_ns),
        rtt_ms: Summary::of(rtt_samples.iter().map(|sample| sample.rtt_ms)),
        rtt_samples,
        sent_segments: is_up.then(|| data().count() as u64),
        retransmitted_segments: is_up.then(|| retransmitted(data())),
        mss_bytes: data().map(|segment| u64::from(segment.len)).max(),
        ..TcpFlow::new(direction)
    })
}

/// Times of acknowledgements that acknowledge more, and the bytes since the first one with data.
fn progress<'a>(acks: impl Iterator<Item = &'a Segment>, first: &Segment) -> Vec<(u64, u64)> {
    let mut progress: Vec<(u64, u64)> = Vec::new();
    for segment in acks.filter(|segment| segment.at_ns >= first.at_ns) {
        let bytes = segment.ack.unwrap_or(0).saturating_sub(first.seq);
        if bytes > progress.last().map_or(0, |(_, bytes)| *bytes) {
            progress.push((segment.at_ns, bytes));
        }
    }
    progress
}

/// Mbit/s in each whole interval.
fn intervals(progress: &[(u64, u64)], start_ns: u64) -> Vec<f64> {
    let end_ns = progress.last().map_or(start_ns, |(at_ns, _)| *at_ns);
    let mut bytes = vec![0_u64; ((end_ns - start_ns) / INTERVAL_NS) as usize];
    let mut before = 0;
    for (at_ns, acked) in progress {
        if let Some(sum) = bytes.get_mut(((at_ns - start_ns) / INTERVAL_NS) as usize) {
            *sum += acked - before;
        }
        before = *acked;
    }
    bytes.into_iter().map(|bytes| bytes as f64 * 8e3 / INTERVAL_NS as f64).collect()
}

/// The number of segments that begin before what was sent already.
fn retransmitted<'a>(data: impl Iterator<Item = &'a Segment>) -> u64 {
    let mut next = 0;
    let again = data.filter(|segment| {
        let is_again = segment.seq < next;
        next = next.max(segment.seq + u64::from(segment.len));
        is_again
    });
    again.count() as u64
}

/// Times from a segment to its acknowledgement, but for those that were sent again (Karn's rule, RFC 6298, section 3).
fn round_trips(flow: &Flow, of_opener: bool, start_ns: u64) -> Vec<RttSample> {
    let mut outstanding: BTreeMap<u64, u64> = BTreeMap::new();
    let (mut samples, mut next, mut kept_ns) = (Vec::new(), 0, None);
    for segment in &flow.segments {
        if segment.of_opener == of_opener && segment.len > 0 {
            let end = segment.seq + u64::from(segment.len);
            if segment.seq < next {
                outstanding.remove(&end);
            } else {
                outstanding.insert(end, segment.at_ns);
            }
            next = next.max(end);
        } else if let Some(ack) = segment.ack.filter(|_| segment.of_opener != of_opener) {
            let rest = outstanding.split_off(&(ack + 1));
            let newest = std::mem::replace(&mut outstanding, rest).pop_last();
            let is_due = kept_ns.is_none_or(|kept_ns| segment.at_ns >= kept_ns + SAMPLE_NS);
            if let Some((_, sent_ns)) = newest.filter(|_| is_due) {
                kept_ns = Some(segment.at_ns);
                let at_s = sent_ns.saturating_sub(start_ns) as f64 / 1e9;
                samples.push(RttSample { at_s, rtt_ms: segment.at_ns.saturating_sub(sent_ns) as f64 / 1e6 });
            }
        }
    }
    samples
}

//! Snapshots of `ss -tin`, one after another. A line with nothing but a number before a snapshot is its time in seconds, as
//! `date +%s.%N` prints it.

use super::{Fault, Source};
use crate::{Direction, Measured, RttSample, Summary, TcpFlow};
use std::collections::BTreeMap;

/// A connection that sent fewer bytes is no flow.
const MIN_BYTES: u64 = 100_000;

pub(super) fn is_ss(text: &str) -> bool {
    let is_state = |line: &str| ["ESTAB", "CLOSE-WAIT", "FIN-WAIT"].iter().any(|state| line.starts_with(state));
    let is_info = |line: &str| line.contains(" rto:") && line.contains(" rtt:") && line.contains("mss:");
    text.lines().any(is_info) && text.lines().any(|line| is_state(line) || is_info(line))
}

/// A snapshot of one connection.
struct Snapshot {
    at_s: Option<f64>,
    rtt_ms: f64,
    acked: Option<u64>,
    line: String,
}

pub(super) fn import(text: &str, source: &Source<'_>) -> Result<Measured, Fault> {
    let mut measured = Measured { program: Some("ss".to_owned()), ..Measured::default() };
    let connections = connections(text);
    let flows: Vec<TcpFlow> = connections.values().filter_map(|snapshots| flow(snapshots)).collect();
    let others = connections.len() - flows.len();
    if flows.is_empty() {
        return Err((
            None,
            format!("no connection has sent {MIN_BYTES} bytes: `ss -tin` of the sender tells of its flows"),
        ));
    }
    if others > 0 {
        measured.not_measured.push(format!("{}: {others} connections sent less than {MIN_BYTES} bytes", source.path));
    }
    if flows.iter().any(|flow| flow.goodput_mbps.is_none()) {
        measured
            .not_measured
            .push(format!("{}: goodput: snapshots have no times; `date +%s.%N` before each gives them", source.path));
    }
    measured.path_mut(source.path).tcp = flows;
    Ok(measured)
}

/// The snapshots by both addresses.
fn connections(text: &str) -> BTreeMap<String, Vec<Snapshot>> {
    let mut connections: BTreeMap<String, Vec<Snapshot>> = BTreeMap::new();
    let (mut time, mut addresses) = (None, String::new());
    for line in text.lines() {
        if let Ok(seconds) = line.trim().parse::<f64>() {
            time = Some(seconds);
        } else if let Some(rtt_ms) = value(line, "rtt").and_then(|rtt| rtt.split('/').next()?.parse().ok()) {
            let acked = number(line, "bytes_acked");
            let snapshot = Snapshot { at_s: time, rtt_ms, acked, line: line.to_owned() };
            connections.entry(addresses.clone()).or_default().push(snapshot);
        } else {
            let words: Vec<&str> = line.split_whitespace().filter(|word| word.contains(':')).take(2).collect();
            addresses = words.join(" ");
        }
    }
    connections
}

/// The value of a key: `rtt:0.045/0.031`.
fn value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix(':'))
}

fn number(line: &str, key: &str) -> Option<u64> {
    value(line, key)?.parse().ok()
}

/// The flow of a connection whose sender this host is.
fn flow(snapshots: &[Snapshot]) -> Option<TcpFlow> {
    let (first, last) = (snapshots.first()?, snapshots.last()?);
    last.acked.filter(|acked| *acked >= MIN_BYTES)?;
    let start = first.at_s.unwrap_or(0.0);
    let seconds = last.at_s.zip(first.at_s).map(|(to, from)| to - from).filter(|seconds| *seconds > 0.0);
    let bytes = last.acked.zip(first.acked).and_then(|(to, from)| to.checked_sub(from));
    let samples = snapshots
        .iter()
        .filter_map(|snapshot| Some(RttSample { at_s: (snapshot.at_s? - start).max(0.0), rtt_ms: snapshot.rtt_ms }));
    // `retrans:0/5`: under way, and in all.
    let retransmitted = value(&last.line, "retrans").and_then(|counts| counts.split('/').next_back()?.parse().ok());
    Some(TcpFlow {
        congestion: congestion(&last.line),
        seconds,
        bytes,
        goodput_mbps: bytes.zip(seconds).map(|(bytes, seconds)| bytes as f64 * 8.0 / seconds / 1e6),
        rtt_ms: Summary::of(snapshots.iter().map(|snapshot| snapshot.rtt_ms)),
        rtt_samples: samples.collect(),
        sent_segments: number(&last.line, "data_segs_out"),
        retransmitted_segments: Some(retransmitted.unwrap_or(0)),
        mss_bytes: number(&last.line, "mss"),
        ..TcpFlow::new(Direction::Up)
    })
}

/// The first word without a value, but for the marks of options that may stand before it.
fn congestion(line: &str) -> Option<String> {
    const MARKS: [&str; 4] = ["ts", "sack", "ecn", "ecnseen"];
    let mut words = line.split_whitespace().filter(|word| !word.contains(':') && !MARKS.contains(word));
    words.next().map(str::to_owned)
}

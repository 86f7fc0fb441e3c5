//! The report of `iperf3 --json`: TCP flows in one direction, or one UDP stream.

use super::value::{count, list, number, positive, text};
use super::{Fault, Source};
use crate::{Direction, Ends, Measured, Parallel, RttSample, Summary, TcpFlow, UdpStream};
use serde_json::Value;

pub(super) fn import(report: &Value, source: &Source<'_>) -> Result<Measured, Fault> {
    if let Some(error) = text(report, "/error") {
        return Err((None, format!("iperf3 failed: {error}")));
    }
    let mut measured = Measured {
        program: text(report, "/start/version").map(str::to_owned),
        ends: ends(report),
        ..Measured::default()
    };
    let is_reverse = number(report, "/start/test_start/reverse") == Some(1.0);
    let direction = if is_reverse { Direction::Down } else { Direction::Up };
    let is_udp = text(report, "/start/test_start/protocol") == Some("UDP");
    let streams = list(report, "/end/streams").len();
    let path = measured.path_mut(source.path);
    let is_one_way = number(report, "/start/test_start/num_streams").is_none_or(|count| count as usize == streams);
    if streams == 0 || !is_one_way || is_udp && streams > 1 {
        measured.not_measured.push(format!(
            "{}: {streams} streams, of UDP or in both directions, tell nothing of one: iperf3 --json without --bidir, and \
             without -P for UDP, does",
            source.path
        ));
        return Ok(measured);
    }
    match (is_udp, streams) {
        (true, _) => path.udp.push(udp(report, direction)),
        (false, 1) => path.tcp.push(tcp(report, direction)),
        (false, _) => path.parallel.push(Parallel { streams: streams as u32, flow: tcp(report, direction) }),
    }
    if !is_udp {
        measured.not_measured.extend(missing(report, source, is_reverse));
    }
    Ok(measured)
}

fn ends(report: &Value) -> Option<Ends> {
    let end = |key: &str| text(report, &format!("/start/connected/0/{key}_host")).map(str::to_owned);
    Some(Ends { here: end("local")?, there: end("remote")? })
}

fn udp(report: &Value, direction: Direction) -> UdpStream {
    // The receiver's counts; older versions have them in `sum` alone.
    let end =
        ["/end/sum_received", "/end/sum"].into_iter().find(|end| count(report, &format!("{end}/packets")).is_some());
    let end = end.unwrap_or("/end/sum");
    let sent = count(report, &format!("{end}/packets"));
    let lost = count(report, &format!("{end}/lost_packets"));
    let rate = number(report, "/end/sum_sent/bits_per_second").or_else(|| number(report, "/end/sum/bits_per_second"));
    UdpStream {
        seconds: number(report, &format!("{end}/seconds")),
        rate_mbps: rate.map(|rate| rate / 1e6),
        payload_bytes: count(report, "/start/test_start/blksize"),
        sent,
        received: sent.zip(lost).and_then(|(sent, lost)| sent.checked_sub(lost)),
        lost,
        reordered: count(report, "/end/streams/0/udp/out_of_order"),
        jitter_rfc3550_ms: number(report, &format!("{end}/jitter_ms")),
        ..UdpStream::new(direction)
    }
}

fn tcp(report: &Value, direction: Direction) -> TcpFlow {
    let intervals = receiver_intervals(report);
    let bytes = count(report, "/end/sum_received/bytes");
    let retransmitted = count(report, "/end/sum_sent/retransmits");
    let mss =
        count(report, "/start/tcp_mss_default").or_else(|| count(report, "/start/tcp_mss")).filter(|mss| *mss > 0);
    let rtt_samples: Vec<RttSample> = intervals_of_streams(report).flatten().filter_map(rtt).collect();
    let senders = |key: &str| -> Vec<f64> {
        let streams = list(report, "/end/streams").iter();
        streams.filter_map(|stream| Some(positive(stream, &format!("/sender/{key}"))? / 1e3)).collect()
    };
    let means = senders("mean_rtt");
    let summary = Summary {
        min: senders("min_rtt").into_iter().reduce(f64::min),
        mean: (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64),
        max: senders("max_rtt").into_iter().reduce(f64::max),
        ..Summary::default()
    };
    TcpFlow {
        congestion: text(report, "/end/sender_tcp_congestion").map(str::to_owned),
        seconds: number(report, "/end/sum_received/seconds"),
        bytes,
        goodput_mbps: number(report, "/end/sum_received/bits_per_second").map(|rate| rate / 1e6),
        interval_s: intervals.as_ref().map(|(seconds, _)| *seconds),
        goodput_intervals_mbps: intervals.map(|(_, rates)| rates).unwrap_or_default(),
        rtt_ms: Summary::of(rtt_samples.iter().map(|sample| sample.rtt_ms)).or(summary.max.map(|_| summary)),
        rtt_samples,
        // What arrived, and what had to be sent again.
        sent_segments: bytes.zip(mss).zip(retransmitted).map(|((bytes, mss), again)| bytes.div_ceil(mss) + again),
        retransmitted_segments: retransmitted,
        mss_bytes: mss,
        ..TcpFlow::new(direction)
    }
}

/// The streams of each interval that counts.
fn intervals_of_streams(report: &Value) -> impl Iterator<Item = Vec<&Value>> {
    let streams = list(report, "/intervals").iter().map(|interval| list(interval, "/streams"));
    streams.map(|streams| streams.iter().filter(|stream| stream["omitted"] != true).collect())
}

fn rtt(interval: &Value) -> Option<RttSample> {
    let rtt_ms = positive(interval, "/rtt")? / 1e3;
    Some(RttSample { at_s: number(interval, "/end")?, rtt_ms })
}

/// The length of an interval and the receiver's rates, Mbit/s, if the receiver's report is there. The last interval may be
/// shorter, and is left out then.
fn receiver_intervals(report: &Value) -> Option<(f64, Vec<f64>)> {
    let reports = [Some(report), report.get("server_output_json")];
    reports.into_iter().flatten().find_map(|report| {
        let received = intervals_of_streams(report).filter_map(|streams| {
            let received = streams.iter().filter(|stream| stream["sender"] == false);
            let rates: Vec<f64> = received.clone().filter_map(|stream| number(stream, "/bits_per_second")).collect();
            Some((received.clone().find_map(|stream| number(stream, "/seconds"))?, rates.iter().sum::<f64>() / 1e6))
        });
        let received: Vec<(f64, f64)> = received.collect();
        let (seconds, _) = *received.first()?;
        Some((seconds, received.iter().filter(|(found, _)| *found > 0.9 * seconds).map(|(_, rate)| *rate).collect()))
    })
}

fn missing(report: &Value, source: &Source<'_>, is_reverse: bool) -> Option<String> {
    let name = source.path;
    if is_reverse {
        let has_rtt = positive(report, "/end/streams/0/sender/mean_rtt").is_some();
        return (!has_rtt).then(|| format!("{name}: RTTs of the flow: iperf3 -R does not tell those of the other end"));
    }
    receiver_intervals(report).is_none().then(|| {
        format!(
            "{name}: goodput by interval: this end's counts are of what it gave to its socket; iperf3 -R or \
                 --get-server-output has the receiver's"
        )
    })
}

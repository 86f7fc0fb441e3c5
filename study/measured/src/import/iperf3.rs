//! The report of `iperf3 --json`: one TCP flow, or one UDP stream.

use super::value::{count, list, number, positive, text};
use super::{Fault, Source};
use crate::{Direction, Ends, Measured, RttSample, Summary, TcpFlow, UdpStream};
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
    if streams != 1 {
        measured.not_measured.push(format!(
            "{}: {streams} parallel streams share the path, and tell nothing of one: iperf3 without -P and --bidir does",
            source.path
        ));
    } else if is_udp {
        path.udp.push(udp(report, direction));
    } else {
        path.tcp.push(tcp(report, direction));
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
    let rtt_samples: Vec<RttSample> = unomitted(report).filter_map(rtt).collect();
    let sender = |key: &str| positive(report, &format!("/end/streams/0/sender/{key}")).map(|micros| micros / 1e3);
    let summary =
        Summary { min: sender("min_rtt"), mean: sender("mean_rtt"), max: sender("max_rtt"), ..Summary::default() };
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

/// The intervals of the first stream that count.
fn unomitted(report: &Value) -> impl Iterator<Item = &Value> {
    let streams = list(report, "/intervals").iter().filter_map(|interval| interval.pointer("/streams/0"));
    streams.filter(|stream| stream["omitted"] != true)
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
        let received = || unomitted(report).filter(|stream| stream["sender"] == false);
        let seconds = received().find_map(|stream| number(stream, "/seconds"))?;
        let whole = received().filter(|stream| number(stream, "/seconds").is_some_and(|found| found > 0.9 * seconds));
        Some((seconds, whole.filter_map(|stream| Some(number(stream, "/bits_per_second")? / 1e6)).collect()))
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

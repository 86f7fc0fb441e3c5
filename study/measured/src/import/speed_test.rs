//! The JSON of `ropewalk test`: several TCP streams through a tunnel, with small datagrams at the same time.
//!
//! With one path alone, the tunnel's endpoint is one flow over that path, by the congestion control of the tunnel. That is the
//! flow of the document, because it is what the link carried: the streams inside wait in the tunnel's own queue.

use super::Fault;
use super::value::{count, list, number, text};
use crate::{BulkCall, Direction, IdleRtt, Measured, Summary, TcpFlow};
use serde_json::Value;

/// Bytes of a datagram, and the seconds between two.
const DATAGRAM: (u64, f64) = (16, 0.05);

pub(super) fn import(report: &Value) -> Result<Measured, Fault> {
    let mut measured = Measured { program: Some("ropewalk test".to_owned()), ..Measured::default() };
    let congestion = text(report, "/congestion");
    let mut has_idle = false;
    for found in list(report, "/measurements") {
        let Some(path) = text(found, "/path") else { continue };
        let direction = match text(found, "/direction") {
            Some("up") => Direction::Up,
            Some("down") => Direction::Down,
            _ => return Err((None, "measurements[].direction: it is `up` or `down`".to_owned())),
        };
        let path = measured.path_mut(path);
        let repeat = path.calls.iter().filter(|call| call.direction == direction).count() as u32;
        path.idle_rtt.extend(idle(found, path.idle_rtt.len() as u32));
        path.calls.push(call(found, direction, congestion, repeat));
        path.tcp.push(flow(report, found, direction, congestion, repeat));
        has_idle |= !path.idle_rtt.is_empty();
    }
    measured.not_measured.extend(not_measured(congestion, has_idle));
    Ok(measured)
}

fn not_measured(congestion: Option<&str>, has_idle: bool) -> Vec<String> {
    let mut lines = vec![
        "losses at a low rate: the tunnel repairs them; of downloads, losses are only known to the other end"
            .to_owned(),
        "a second algorithm: a tunnel has one; `ropewalk probe` measures with several".to_owned(),
    ];
    if !has_idle {
        lines.push("RTTs of each path without load: they are of the whole tunnel".to_owned());
    }
    if congestion.is_none() {
        lines.push("the congestion control of the tunnel: flows are taken for CUBIC's".to_owned());
    }
    lines
}

fn idle(found: &Value, repeat: u32) -> Option<IdleRtt> {
    let rtt_ms = rtt(found, "/idle_rtt").filter(|rtt| rtt.p50.is_some())?;
    let (sent, lost) = sent_and_lost(found, "/idle_rtt");
    let (payload_bytes, interval_s) = (Some(DATAGRAM.0), Some(DATAGRAM.1));
    Some(IdleRtt { repeat, interval_s, payload_bytes, sent, lost, samples: Vec::new(), rtt_ms: Some(rtt_ms) })
}

fn rtt(found: &Value, place: &str) -> Option<Summary> {
    let of = |key: &str| number(found, &format!("{place}/{key}"));
    found.pointer(place)?.is_object().then(|| Summary {
        count: count(found, &format!("{place}/answered")),
        min: of("min_ms"),
        p50: of("median_ms"),
        p95: of("p95_ms"),
        ..Summary::default()
    })
}

fn sent_and_lost(found: &Value, place: &str) -> (Option<u64>, Option<u64>) {
    let of = |key: &str| count(found, &format!("{place}/{key}"));
    let (answered, lost) = (of("answered"), of("lost"));
    (answered.zip(lost).map(|(answered, lost)| answered + lost), lost)
}

fn flow(report: &Value, found: &Value, direction: Direction, congestion: Option<&str>, repeat: u32) -> TcpFlow {
    let sent_segments = count(found, "/packets/sent");
    TcpFlow {
        repeat,
        congestion: congestion.map(str::to_owned),
        seconds: number(report, "/seconds"),
        goodput_mbps: number(found, "/rate_bps").map(|rate| rate / 1e6),
        sent_segments,
        retransmitted_segments: count(found, "/packets/lost").filter(|lost| Some(*lost) <= sent_segments),
        ..TcpFlow::new(direction)
    }
}

fn call(found: &Value, direction: Direction, congestion: Option<&str>, repeat: u32) -> BulkCall {
    let (sent, lost) = sent_and_lost(found, "/rtt");
    BulkCall {
        repeat,
        direction,
        congestion: congestion.map(str::to_owned),
        interval_s: Some(DATAGRAM.1),
        payload_bytes: Some(DATAGRAM.0),
        sent,
        lost,
        rtt_ms: rtt(found, "/rtt"),
        rtt_samples: Vec::new(),
        goodput_mbps: number(found, "/rate_bps").map(|rate| rate / 1e6),
    }
}

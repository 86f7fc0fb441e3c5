//! The JSON of `ropewalk test`: several TCP streams through a tunnel, with small datagrams at the same time.

use super::Fault;
use super::value::{count, list, number, text};
use crate::{BulkCall, Direction, Measured, Summary};
use serde_json::Value;

pub(super) fn import(report: &Value) -> Result<Measured, Fault> {
    let mut measured = Measured { program: Some("ropewalk test".to_owned()), ..Measured::default() };
    for found in list(report, "/measurements") {
        let Some(path) = text(found, "/path") else { continue };
        let direction = match text(found, "/direction") {
            Some("up") => Direction::Up,
            Some("down") => Direction::Down,
            _ => return Err((None, "measurements[].direction: it is `up` or `down`".to_owned())),
        };
        measured.path_mut(path).calls.push(call(found, direction));
    }
    measured.not_measured.push("RTTs of each path without load: they are of the whole tunnel".to_owned());
    measured
        .not_measured
        .push("TCP flows: rates are of several streams, whose congestion control is not told".to_owned());
    Ok(measured)
}

fn call(found: &Value, direction: Direction) -> BulkCall {
    let (answered, lost) = (count(found, "/rtt/answered"), count(found, "/rtt/lost"));
    BulkCall {
        repeat: 0,
        direction,
        congestion: None,
        interval_s: None,
        payload_bytes: None,
        sent: answered.zip(lost).map(|(answered, lost)| answered + lost),
        lost,
        rtt_ms: Some(Summary {
            p50: number(found, "/rtt/median_ms"),
            p95: number(found, "/rtt/p95_ms"),
            ..Summary::default()
        }),
        rtt_samples: Vec::new(),
        goodput_mbps: number(found, "/rate_bps").map(|rate| rate / 1e6),
    }
}

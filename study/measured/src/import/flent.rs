//! The data of flent: series over time. A test with one TCP flow tells of that flow, of the round-trip times next to it, and of
//! those before and after it, without load.

use super::value::{list, number, text};
use super::{Fault, Source};
use crate::{BulkCall, Direction, IdleRtt, Measured, RttSample, Summary, TcpFlow};
use serde_json::Value;

/// Beginnings of names of series.
const FLOWS: [(&str, Direction); 2] = [("TCP upload", Direction::Up), ("TCP download", Direction::Down)];

pub(super) fn import(data: &Value, source: &Source<'_>) -> Result<Measured, Fault> {
    let mut measured = Measured {
        program: Some(format!("flent {}", text(data, "/metadata/FLENT_VERSION").unwrap_or_default()).trim().to_owned()),
        when: text(data, "/metadata/TIME").map(str::to_owned),
        ..Measured::default()
    };
    let times: Vec<f64> = list(data, "/x_values").iter().filter_map(Value::as_f64).collect();
    let results = data["results"].as_object().ok_or((None, "flent's results are missing".to_owned()))?;
    let is_flow = |name: &str| FLOWS.iter().find(|(flow, _)| name.starts_with(flow)).map(|(_, direction)| *direction);
    // Sums and means are series, too, and named as such.
    let is_single = |name: &str| !["sum", "avg", "totals", "::"].iter().any(|word| name.contains(word));
    let flows: Vec<(&Value, Direction)> = results
        .iter()
        .filter(|(name, _)| is_single(name))
        .filter_map(|(name, values)| Some((values, is_flow(name)?)))
        .collect();
    let ping = results.iter().find(|(name, _)| name.starts_with("Ping") && is_single(name)).map(|(_, values)| values);
    let name = source.path;
    let mut rest = results.len() - flows.len() - usize::from(ping.is_some());
    match flows[..] {
        [] => {}
        [(values, direction)] => add_flow(&mut measured, data, name, values, direction, &times),
        _ => {
            rest += flows.len();
            measured.not_measured.push(format!("{name}: {} flows at the same time tell nothing of one", flows.len()));
        }
    }
    if let Some(ping) = ping {
        add_pings(&mut measured, name, ping, &flows, &times);
    }
    if rest > 0 {
        measured.not_measured.push(format!("{name}: {rest} other series of flent"));
    }
    Ok(measured)
}

/// Adds the flow over the time in which it had a rate.
fn add_flow(measured: &mut Measured, data: &Value, name: &str, values: &Value, direction: Direction, times: &[f64]) {
    let rates: Vec<f64> = list(values, "").iter().filter_map(Value::as_f64).collect();
    let step = number(data, "/metadata/STEP_SIZE").or_else(|| Some(times.get(1)? - times.first()?));
    let congestion = text(data, "/metadata/TEST_PARAMETERS/tcp_cong_control");
    measured.path_mut(name).tcp.push(TcpFlow {
        congestion: congestion.map(str::to_owned),
        seconds: step.map(|step| step * rates.len() as f64),
        goodput_mbps: (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64),
        interval_s: step,
        goodput_intervals_mbps: if step.is_some() { rates } else { Vec::new() },
        ..TcpFlow::new(direction)
    });
    measured.not_measured.push(format!("{name}: retransmissions: flent's series have none"));
}

/// Adds round-trip times: without load while no flow had a rate, and next to the only flow.
fn add_pings(measured: &mut Measured, name: &str, ping: &Value, flows: &[(&Value, Direction)], times: &[f64]) {
    let sample = |(at_s, rtt): (&f64, &Value)| Some(RttSample { at_s: at_s.max(0.0), rtt_ms: rtt.as_f64()? });
    let samples = times.iter().zip(list(ping, "")).enumerate();
    let samples: Vec<(usize, RttSample)> = samples.filter_map(|(index, pair)| Some((index, sample(pair)?))).collect();
    let is_loaded =
        |index: &usize| flows.iter().any(|(flow, _)| list(flow, "").get(*index).is_some_and(Value::is_number));
    let (loaded, idle): (Vec<_>, Vec<_>) = samples.into_iter().partition(|(index, _)| is_loaded(index));
    let [loaded, idle] = [loaded, idle].map(|found| found.into_iter().map(|(_, sample)| sample).collect::<Vec<_>>());
    let summary = |samples: &[RttSample]| Summary::of(samples.iter().map(|sample| sample.rtt_ms));
    let path = measured.path_mut(name);
    if !idle.is_empty() {
        path.idle_rtt.push(IdleRtt { rtt_ms: summary(&idle), samples: idle, ..IdleRtt::default() });
    }
    if let ([(_, direction)], false) = (flows, loaded.is_empty()) {
        let goodput_mbps = path.tcp.last().and_then(|flow| flow.goodput_mbps);
        path.calls.push(BulkCall {
            repeat: 0,
            direction: *direction,
            congestion: None,
            interval_s: None,
            payload_bytes: None,
            sent: None,
            lost: None,
            rtt_ms: summary(&loaded),
            rtt_samples: loaded,
            goodput_mbps,
        });
    }
}

//! What was observed as the record of a run, in the simulator's words.
//!
//! What a kernel does not tell as the simulator does: `rtt_ms` is the distribution of the smoothed RTT at the samples
//! (its `min` is the kernel's own least RTT); a path's `queue_delay_ms` is estimated from it; the path has no series,
//! and a flow's `dropped_packets` are known only at the end.

use crate::Error;
use crate::plan::{Observation, Observed, Sample};
use crate::series::series;
use record::{Digest, Flow, Path, Run, Summary, Work};
use scenario::model::{Experiment, FlowKind, Host};
use serde_json::Value;
use units::{Instant, Rate};

/// A full IP packet, bytes.
const MTU: u32 = 1500;
/// IPv4 and TCP headers without options, bytes.
const HEADERS: u32 = 40;
/// The timestamps option, bytes.
const TIMESTAMPS: u32 = 12;

/// The record of a run whose flows began at `starts`.
pub(crate) fn summarise(
    experiment: &Experiment,
    seed: u64,
    starts: &[Instant],
    observed: &Observed,
) -> Result<Run, Error> {
    let mut flows = Vec::new();
    for (k, (flow, seen)) in experiment.flows.iter().zip(&observed.flows).enumerate() {
        flows.push(summary(experiment, flow, starts[k], seen, dropped(observed, k)?)?);
    }
    let paths = vec![path(experiment, observed)?];
    let all = || experiment.flows.iter().zip(&observed.flows);
    let series = experiment.sample.map_or(Vec::new(), |interval| {
        all().map(|(flow, seen)| series(&flow.name, seen, packet(host(flow)), interval)).collect()
    });
    Ok(Run {
        parameters: std::collections::BTreeMap::new(),
        seed,
        digest: digest(&flows, &paths),
        duration_s: experiment.duration.as_secs_f64(),
        flows,
        subflows: Vec::new(),
        jain: None,
        convergence_s: None,
        paths,
        tunnel: None,
        series,
        work: Work::default(),
    })
}

fn host(flow: &scenario::model::Flow) -> &Host {
    match &flow.kind {
        FlowKind::Tcp { host, .. } => host,
        FlowKind::ConstantRate { .. } => unreachable!("refused by `check`"),
    }
}

/// Bytes of a full packet.
fn packet(host: &Host) -> u64 {
    let headers = HEADERS + if host.timestamps { TIMESTAMPS } else { 0 };
    u64::from(host.mss.map_or(MTU, |mss| mss + headers))
}

fn summary(
    experiment: &Experiment,
    flow: &scenario::model::Flow,
    start: Instant,
    seen: &Observation,
    dropped_packets: u64,
) -> Result<Flow, Error> {
    let FlowKind::Tcp { congestion, host, .. } = &flow.kind else { unreachable!("refused by `check`") };
    let end = Instant::ZERO + experiment.duration;
    let on = flow.stop.unwrap_or(end).min(end).since(start);
    let none = || Error::guest(format!("flow {} never connected", flow.name));
    let last = seen.samples.last().ok_or_else(none)?;
    let tcp = seen.samples.iter().rev().find_map(|sample| sample.tcp).ok_or_else(none)?;
    let arrived = seen.samples.iter().map(|sample| sample.arrived).max().unwrap_or(0);
    Ok(Flow {
        name: flow.name.clone(),
        congestion_control: congestion.name.clone(),
        goodput_mbps: Rate::of(last.delivered, on).as_mbps(),
        delivered_bytes: last.delivered,
        throughput_mbps: Rate::of(u64::from(arrived) * packet(host), on).as_mbps(),
        sent_packets: tcp.sent.into(),
        retransmitted_packets: tcp.retransmitted.into(),
        dropped_packets,
        recoveries: seen.episodes.recoveries,
        undone: seen.episodes.undone,
        timeouts: seen.episodes.timeouts,
        receive_window_limited_s: tcp.receive_window_limited as f64 / 1e6,
        send_buffer_limited_s: tcp.send_buffer_limited as f64 / 1e6,
        rtt_ms: rtt(&seen.samples, f64::from(tcp.min_rtt) / 1e3),
        ..Flow::default()
    })
}

/// The distribution of the smoothed RTT, by the nearest rank.
fn rtt(samples: &[Sample], min: f64) -> Summary {
    let mut all: Vec<f64> = samples.iter().filter_map(|it| it.tcp).map(|it| f64::from(it.rtt) / 1e3).collect();
    all.sort_by(f64::total_cmp);
    let Some(&max) = all.last() else { return Summary::default() };
    let quantile = |q: f64| all[((q * all.len() as f64).ceil() as usize).clamp(1, all.len()) - 1];
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    Summary { mean, p50: quantile(0.5), p95: quantile(0.95), p99: quantile(0.99), min, max }
}

/// Packets that flow `k`'s source sent and its sink never saw.
fn dropped(observed: &Observed, k: usize) -> Result<u64, Error> {
    let count = |index: usize, side: &str| -> Result<u64, Error> {
        let all = parsed(observed.totals.get(index))?;
        Ok(all.first().and_then(|it| it["stats64"][side]["packets"].as_u64()).unwrap_or(0))
    };
    Ok(count(2 * k, "tx")?.saturating_sub(count(2 * k + 1, "rx")?))
}

/// The path from the counters of its queue and of its wire.
fn path(experiment: &Experiment, observed: &Observed) -> Result<Path, Error> {
    let [queue, wire] = [parsed(observed.counters.first())?, parsed(observed.counters.get(1))?];
    let count = |all: &[Value], kind: &str, key: &str| {
        all.iter().find(|it| it["kind"] == kind).and_then(|it| it[key].as_u64()).unwrap_or(0)
    };
    let (dropped, lost) = (count(&queue, "tbf", "drops"), count(&wire, "netem", "drops"));
    let delivered = count(&wire, "netem", "packets");
    Ok(Path {
        name: experiment.paths[0].name.clone(),
        sent_packets: delivered + lost + dropped,
        delivered_packets: delivered,
        dropped_packets: dropped,
        lost_packets: lost,
        marked_packets: 0,
        utilisation: capacity(experiment).map_or(0.0, |most| count(&queue, "tbf", "bytes") as f64 / most),
        queue_delay_ms: queue_delay(observed),
        ..Path::default()
    })
}

/// What `tc -j` or `ip -j` printed.
fn parsed(text: Option<&String>) -> Result<Vec<Value>, Error> {
    let text = text.map_or("[]", String::as_str);
    serde_json::from_str(text).map_err(|why| Error::guest(format!("the guest's counters are no JSON: {why}")))
}

/// What the data direction could have carried, bytes; its rate may change under way.
fn capacity(experiment: &Experiment) -> Option<f64> {
    let mut rate = experiment.links[0].forward.rate?;
    let (mut bytes, mut since) = (0, Instant::ZERO);
    let end = Instant::ZERO + experiment.duration;
    let changes = experiment.events.iter().filter(|event| event.directions != scenario::model::Directions::Reverse);
    for (at, next) in changes.filter_map(|event| Some((event.at.min(end), event.rate?))) {
        bytes += rate.bytes_in(at.since(since));
        (rate, since) = (next, at);
    }
    Some((bytes + rate.bytes_in(end.since(since))) as f64)
}

/// By how much the smoothed RTT was above its least value, on average over all samples of all flows, milliseconds.
fn queue_delay(observed: &Observed) -> f64 {
    let samples = observed.flows.iter().flat_map(|flow| &flow.samples).filter_map(|sample| sample.tcp);
    let least = samples.clone().map(|tcp| tcp.min_rtt).min().unwrap_or(0);
    let (sum, count) = samples.fold((0.0, 0), |(sum, count), tcp| (sum + f64::from(tcp.rtt - least), count + 1));
    sum / f64::from(count.max(1)) / 1e3
}

fn digest(flows: &[Flow], paths: &[Path]) -> String {
    let mut digest = Digest::default();
    for flow in flows {
        digest.add_text(&flow.name);
        [flow.delivered_bytes, flow.sent_packets, flow.retransmitted_packets, flow.recoveries, flow.timeouts]
            .iter()
            .for_each(|count| digest.add(*count));
        digest.add(flow.rtt_ms.mean.to_bits());
    }
    paths.iter().for_each(|path| digest.add(path.delivered_packets));
    digest.hex()
}

//! What was observed as the record of a run, in the simulator's words.
//!
//! Two things a kernel does not tell as the simulator does: `rtt_ms` is the distribution of the smoothed RTT at the
//! samples (but `min` is the kernel's own least RTT), and a path has no series.

use crate::Error;
use crate::plan::{Observation, Observed, Sample, TcpInfo};
use record::{Digest, Flow, Path, Run, Series, Summary, Work};
use scenario::model::{Experiment, FlowKind};
use serde_json::Value;
use units::{Instant, Rate, Span};

/// The simulator's columns, and what only a kernel tells.
const COLUMNS: [&str; 9] = [
    "goodput_mbps",
    "window_packets",
    "threshold_packets",
    "rtt_ms",
    "in_flight_packets",
    "retransmitted_packets",
    "pacing_mbps",
    "delivery_mbps",
    "congestion_state",
];
/// `TCP_INFINITE_SSTHRESH`.
const NO_THRESHOLD: u32 = 0x7fff_ffff;

pub(crate) fn summarise(experiment: &Experiment, seed: u64, observed: &Observed) -> Result<Run, Error> {
    let pairs = || experiment.flows.iter().zip(&observed.flows);
    let flows: Vec<Flow> = pairs().map(|(flow, seen)| summary(experiment, flow, seen)).collect();
    if let Some(silent) = flows.iter().find(|flow| flow.delivered_bytes == 0) {
        return Err(Error::guest(format!("flow {} delivered nothing", silent.name)));
    }
    let paths = vec![path(experiment, observed)?];
    let interval = experiment.sample;
    let series = interval.map_or(Vec::new(), |it| pairs().map(|(flow, seen)| series(&flow.name, seen, it)).collect());
    Ok(Run {
        parameters: std::collections::BTreeMap::new(),
        seed,
        digest: digest(&flows, &paths),
        duration_s: experiment.duration.as_secs_f64(),
        flows,
        paths,
        tunnel: None,
        series,
        work: Work::default(),
    })
}

fn summary(experiment: &Experiment, flow: &scenario::model::Flow, seen: &Observation) -> Flow {
    let end = Instant::ZERO + experiment.duration;
    let on = flow.stop.unwrap_or(end).min(end).since(flow.start);
    let delivered_bytes = seen.samples.last().map_or(0, |sample| sample.delivered);
    let last = seen.samples.iter().rev().find_map(|sample| sample.tcp).unwrap_or_default();
    let congestion_control = match &flow.kind {
        FlowKind::Tcp { congestion, .. } => congestion.name.clone(),
        FlowKind::ConstantRate { .. } => String::new(),
    };
    Flow {
        name: flow.name.clone(),
        congestion_control,
        goodput_mbps: Rate::of(delivered_bytes, on).as_mbps(),
        delivered_bytes,
        sent_packets: last.sent.into(),
        retransmitted_packets: last.retransmitted.into(),
        recoveries: seen.episodes.recoveries,
        undone: seen.episodes.undone,
        timeouts: seen.episodes.timeouts,
        receive_window_limited_s: last.receive_window_limited as f64 / 1e6,
        send_buffer_limited_s: last.send_buffer_limited as f64 / 1e6,
        completion_s: None,
        rtt_ms: rtt(&seen.samples, f64::from(last.min_rtt) / 1e3),
    }
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

fn series(name: &str, seen: &Observation, interval: Span) -> Series {
    let columns: Vec<String> = COLUMNS.iter().map(|column| (*column).to_owned()).collect();
    let mut series = Series {
        subject: format!("flow {name}"),
        values: vec![Vec::with_capacity(seen.samples.len()); columns.len()],
        columns,
        time_s: Vec::with_capacity(seen.samples.len()),
    };
    let mut before = Sample::default();
    for (sample, number) in seen.samples.iter().zip(1_u64..) {
        series.time_s.push(Span(interval.0 * number).as_secs_f64());
        let row = row(sample, &before, interval);
        series.values.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
        before = Sample { tcp: sample.tcp.or(before.tcp), ..*sample };
    }
    series
}

/// One sample's values; rates and counts are the interval's since the sample before.
fn row(sample: &Sample, before: &Sample, interval: Span) -> [f64; 9] {
    let goodput = Rate::of(sample.delivered - before.delivered, interval).as_mbps();
    let Some(tcp) = sample.tcp else {
        return [goodput, f64::NAN, f64::NAN, f64::NAN, f64::NAN, f64::NAN, f64::NAN, f64::NAN, f64::NAN];
    };
    let threshold = if tcp.threshold >= NO_THRESHOLD { f64::NAN } else { f64::from(tcp.threshold) };
    let retransmitted = tcp.retransmitted - before.tcp.map_or(0, |before: TcpInfo| before.retransmitted);
    let mbps = |bytes: u64| if bytes == u64::MAX { f64::NAN } else { bytes as f64 * 8.0 / 1e6 };
    [
        goodput,
        f64::from(tcp.window),
        threshold,
        f64::from(tcp.rtt) / 1e3,
        f64::from(tcp.in_flight),
        f64::from(retransmitted),
        mbps(tcp.pacing_rate),
        mbps(tcp.delivery_rate),
        f64::from(tcp.state),
    ]
}

/// The path from the counters of its queue and of its wire.
fn path(experiment: &Experiment, observed: &Observed) -> Result<Path, Error> {
    let pipe = &experiment.links[0].forward;
    let of = |index: usize| observed.counters.get(index).map_or(Ok(Vec::new()), |text| serde_json::from_str(text));
    let read = |index| of(index).map_err(|why| Error::guest(format!("`tc -s -j` prints no JSON: {why}")));
    let [queue, wire]: [Vec<Value>; 2] = [read(0)?, read(1)?];
    let count = |all: &[Value], kind: &str, key: &str| {
        all.iter().find(|it| it["kind"] == kind).and_then(|it| it[key].as_u64()).unwrap_or(0)
    };
    let (dropped, lost) = (count(&queue, "tbf", "drops"), count(&wire, "netem", "drops"));
    let delivered = count(&wire, "netem", "packets");
    let capacity = pipe.rate.map(|rate| rate.bytes_in(experiment.duration) as f64);
    Ok(Path {
        name: experiment.paths[0].name.clone(),
        sent_packets: delivered + lost + dropped,
        delivered_packets: delivered,
        dropped_packets: dropped,
        lost_packets: lost,
        marked_packets: 0,
        utilisation: capacity.map_or(0.0, |most| count(&queue, "tbf", "bytes") as f64 / most),
        queue_delay_ms: 0.0,
    })
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

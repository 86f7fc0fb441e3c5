//! What every flow, path and tunnel did, in tables: a row each, means over seeds.

use crate::cpu;
use crate::estimate::Estimate;
use crate::number::{NONE, flagged, marked, significant, three};
use crate::sample::{Sample, foot};
use crate::study::{Cell, Study, short_names};
use record::{Cpu, Flow, Path, Run, Subflow, Tunnel};
use std::slice::from_ref;

/// A table as text.
#[derive(Clone, Debug)]
pub(crate) struct Summary {
    pub(crate) title: &'static str,
    pub(crate) head: Vec<String>,
    /// Columns at the left that hold names; the others hold numbers.
    pub(crate) names: usize,
    pub(crate) rows: Vec<Vec<String>>,
    /// The foot line on outliers of the first number, if there are any.
    pub(crate) outliers: Option<String>,
}

/// A column of numbers of records of type `T`.
type Field<T> = (&'static str, fn(&T) -> f64);

const FLOW: [Field<Flow>; 7] = [
    ("goodput Mbit/s", |flow| flow.goodput_mbps),
    ("RTT ms", |flow| flow.rtt_ms.mean),
    ("p95 ms", |flow| flow.rtt_ms.p95),
    ("sent", |flow| flow.sent_packets as f64),
    ("retrans.", |flow| flow.retransmitted_packets as f64),
    ("spurious", |flow| flow.spurious_recoveries as f64),
    ("RTOs", |flow| flow.timeouts as f64),
];

/// Only where flows compete.
const SHARE: [Field<Flow>; 1] = [("share %", |flow| flow.share.map_or(f64::NAN, |share| share * 100.0))];

/// Only where there are requests.
const REQUESTS: [Field<Flow>; 3] = [
    ("requests", |flow| flow.requests as f64),
    ("response ms", |flow| if flow.requests > 0 { flow.response_time_ms.mean } else { f64::NAN }),
    ("response p95 ms", |flow| if flow.requests > 0 { flow.response_time_ms.p95 } else { f64::NAN }),
];

/// Only where there are MPTCP flows.
const MULTIPATH: [Field<Flow>; 5] = [
    ("protocol delay ms", |flow| of_multipath(flow, flow.protocol_delay_ms.mean)),
    ("head-of-line ms", |flow| of_multipath(flow, flow.head_of_line_delay_ms.mean)),
    ("copied", |flow| of_multipath(flow, flow.copied_packets as f64)),
    ("reinjected", |flow| of_multipath(flow, flow.reinjected_packets as f64)),
    ("rescued", |flow| of_multipath(flow, flow.rescued_packets as f64)),
];

fn of_multipath(flow: &Flow, value: f64) -> f64 {
    if is_multipath(flow) { value } else { f64::NAN }
}

/// Data that was acknowledged has a protocol delay.
fn is_multipath(flow: &Flow) -> bool {
    flow.protocol_delay_ms.max > 0.0
}

const SUBFLOW: [Field<Subflow>; 8] = [
    ("throughput Mbit/s", |subflow| subflow.throughput_mbps),
    ("RTT ms", |subflow| subflow.rtt_ms.mean),
    ("p95 ms", |subflow| subflow.rtt_ms.p95),
    ("sent", |subflow| subflow.sent_packets as f64),
    ("retrans.", |subflow| subflow.retransmitted_packets as f64),
    ("drops/s", |subflow| subflow.drops_per_s),
    ("RTOs", |subflow| subflow.timeouts as f64),
    ("failures", |subflow| subflow.failures as f64),
];

/// Only where there is video.
const VIDEO: [Field<Flow>; 5] = [
    ("video Mbit/s", |flow| if flow.frames > 0 { flow.video_mbps } else { f64::NAN }),
    ("startup s", |flow| flow.startup_s.unwrap_or(f64::NAN)),
    ("stalls", |flow| if flow.frames > 0 { flow.stalls as f64 } else { f64::NAN }),
    ("stalled s", |flow| if flow.frames > 0 { flow.stall_s } else { f64::NAN }),
    ("late %", |flow| 100.0 * flow.late_frames as f64 / flow.frames as f64),
];

const RUN: [Field<Run>; 2] = [
    ("Jain's index", |run| run.jain.unwrap_or(f64::NAN)),
    ("convergence s", |run| run.convergence_s.unwrap_or(f64::NAN)),
];

const PATH: [Field<Path>; 6] = [
    ("utilised %", |path| path.utilisation * 100.0),
    ("queue ms", |path| path.queue_delay_ms),
    ("sent", |path| path.sent_packets as f64),
    ("dropped", |path| path.dropped_packets as f64),
    ("lost", |path| path.lost_packets as f64),
    ("marked", |path| path.marked_packets as f64),
];

const TUNNEL: [Field<Tunnel>; 8] = [
    ("delivered", |tunnel| tunnel.delivered_packets as f64),
    ("held", |tunnel| tunnel.held_packets as f64),
    ("reorder ms", |tunnel| tunnel.reorder_delay_ms.mean),
    ("p95 ms", |tunnel| tunnel.reorder_delay_ms.p95),
    ("late", |tunnel| tunnel.late_packets as f64),
    ("dropped", |tunnel| tunnel.dropped_packets as f64),
    ("timeouts", |tunnel| tunnel.timeouts as f64),
    ("overflows", |tunnel| tunnel.overflows as f64),
];

/// Only where CPU time was measured, as on a kernel in real time.
const COST: [Field<Run>; 3] = [
    ("s/GB", |run| cpu::of_machine(run).unwrap_or(f64::NAN)),
    ("tunnel s/GB", |run| cpu::of_tunnel(run).unwrap_or(f64::NAN)),
    ("lacked s", |run| run.stolen_s.unwrap_or(f64::NAN)),
];

const CPU: [Field<Cpu>; 4] = [
    ("busy s", Cpu::busy_s),
    ("user s", |cpu| cpu.user_s),
    ("system s", |cpu| cpu.system_s),
    ("interrupts s", |cpu| cpu.interrupt_s.unwrap_or(f64::NAN)),
];

/// All tables that have rows.
pub(crate) fn summaries(study: &Study<'_>) -> Vec<Summary> {
    // A column of algorithms that repeats a swept parameter is left out.
    let told = |cell: &Cell<'_>| {
        let swept = |flow: &Flow| cell.parameters.values().any(|value| *value == flow.congestion_control);
        cell.runs[0].flows.iter().all(swept)
    };
    let called = if study.cells().iter().all(told) { &["flow"][..] } else { &["flow", "algorithm"] };
    let flow_names = |flow: &Flow| {
        let names = [flow.name.clone(), or_dash(&flow.congestion_control)];
        names.into_iter().take(called.len()).collect()
    };
    let any = |what: fn(&Flow) -> bool| study.runs.iter().any(|run| run.flows.iter().any(what));
    let mut fields = FLOW.to_vec();
    fields.extend(SHARE.iter().filter(|_| any(|flow| flow.share.is_some())));
    fields.extend(REQUESTS.iter().filter(|_| any(|flow| flow.requests > 0)));
    fields.extend(VIDEO.iter().filter(|_| any(|flow| flow.frames > 0)));
    fields.extend(MULTIPATH.iter().filter(|_| any(is_multipath)));
    let subflow_names = |subflow: &Subflow| vec![subflow.flow.clone(), subflow.path.clone()];
    let path_names = |path: &Path| vec![path.name.clone()];
    let all = [
        summary(study, "Flows", called, |run| &run.flows, flow_names, &fields),
        summary(study, "Subflows", &["flow", "path"], |run| &run.subflows, subflow_names, &SUBFLOW),
        summary(study, "Fairness", &[], competition, |_| Vec::new(), &RUN),
        summary(study, "Paths", &["path"], |run| &run.paths, path_names, &PATH),
        summary(study, "Tunnel", &[], |run| run.tunnel.as_slice(), |_| Vec::new(), &TUNNEL),
        summary(study, "CPU time for a GB of payload", &[], measured, |_| Vec::new(), &COST),
        summary(study, "CPU time", &["of"], |run| &run.cpu, |cpu: &Cpu| vec![cpu.name.clone()], &CPU),
    ];
    all.into_iter().filter(|summary| !summary.rows.is_empty()).collect()
}

/// The run itself, if flows compete in it.
fn competition(run: &Run) -> &[Run] {
    if run.jain.is_some() { from_ref(run) } else { &[] }
}

/// The run itself, if its CPU time was measured.
fn measured(run: &Run) -> &[Run] {
    if run.cpu.is_empty() { &[] } else { from_ref(run) }
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { NONE.to_owned() } else { text.to_owned() }
}

fn summary<T>(
    study: &Study<'_>,
    title: &'static str,
    called: &[&str],
    records: impl Fn(&Run) -> &[T],
    names: impl Fn(&T) -> Vec<String>,
    fields: &[Field<T>],
) -> Summary {
    let varying = study.varying();
    let several = study.cells().iter().any(|cell| cell.runs.len() > 1);
    let mut head: Vec<String> = short_names(&varying).into_iter().map(str::to_owned).collect();
    head.extend(called.iter().map(|name| (*name).to_owned()));
    let width = head.len();
    for (index, (name, _)) in fields.iter().enumerate() {
        head.push((*name).to_owned());
        if several && index == 0 {
            head.push("± 95 %".to_owned());
        }
    }
    let (mut rows, mut outliers) = (Vec::new(), Vec::new());
    for cell in study.cells() {
        let count = cell.runs.iter().map(|run| records(run).len()).max().unwrap_or(0);
        for index in 0..count {
            let seen: Vec<&T> = cell.runs.iter().filter_map(|run| records(run).get(index)).collect();
            let mut row: Vec<String> = varying.iter().map(|key| or_dash(cell.parameter(key))).collect();
            row.extend(names(seen[0]));
            let points = cell.runs.iter().filter_map(|run| Some((run.seed, fields[0].1(records(run).get(index)?))));
            let sample = Sample { points: points.collect(), left_out: Vec::new() };
            let told = sample.told(&row.join(", "));
            row.extend(numbers(&seen, fields, several, [cell.disturbed[0], told.is_some()]));
            outliers.extend(told);
            rows.push(row);
        }
    }
    Summary { title, head, names: width, rows, outliers: foot(&outliers) }
}

/// Means; the first is marked where there were disturbed runs, and where there are outliers.
fn numbers<T>(seen: &[&T], fields: &[Field<T>], several: bool, [disturbed, outlier]: [bool; 2]) -> Vec<String> {
    let mut shown = Vec::new();
    for (index, (_, field)) in fields.iter().enumerate() {
        let estimate = Estimate::of(&seen.iter().map(|record| field(record)).collect::<Vec<_>>());
        let mean = estimate.map_or_else(|| NONE.to_owned(), |estimate| three(estimate.mean));
        shown.push(flagged(marked(mean, disturbed && index == 0), outlier && index == 0));
        if several && index == 0 {
            let half = estimate.and_then(|estimate| estimate.half_width);
            shown.push(half.map_or_else(|| NONE.to_owned(), |half| significant(half, 2)));
        }
    }
    shown
}

/// What a cell is called where space is short: the values of the varying parameters alone.
pub(crate) fn cell_name(cell: &Cell<'_>, varying: &[&str]) -> String {
    let values: Vec<String> = varying.iter().map(|key| or_dash(cell.parameter(key))).collect();
    if values.is_empty() { "the run".to_owned() } else { values.join(", ") }
}

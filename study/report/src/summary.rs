//! Summary tables of flows, subflows, paths, tunnels and CPU time: a row for each of them, with means over seeds.

use crate::cpu;
use crate::estimate::Estimate;
use crate::number::{DASH, IDENTICAL, format_number, mark_disturbed, mark_outlier};
use crate::sample::{Sample, outlier_footnote};
use crate::study::{Study, SweepCell, short_names};
use record::{Cpu, Flow, Path, Protocol, Requests, Run, Subflow, Tunnel, Video};
use std::slice::from_ref;

/// A table as text.
#[derive(Clone, Debug)]
pub(crate) struct SummaryTable {
    pub(crate) title: &'static str,
    pub(crate) headings: Vec<String>,
    /// Number of leading columns that hold names; the others hold numbers.
    pub(crate) name_columns: usize,
    pub(crate) rows: Vec<Vec<String>>,
    /// Number of records that have no row.
    pub(crate) omitted: usize,
    /// The footnote on outliers of the first number, if there are any.
    pub(crate) outliers: Option<String>,
}

/// The heading of a column, and its value in a record of type `T`; NaN where the record has none.
type Column<T> = (&'static str, fn(&T) -> f64);

const FLOW: [Column<Flow>; 7] = [
    ("goodput Mbit/s", |flow| flow.goodput_mbps),
    ("RTT ms", |flow| number(reliable(flow), |flow| flow.rtt_ms.mean)),
    ("p95 ms", |flow| number(reliable(flow), |flow| flow.rtt_ms.p95)),
    ("sent", |flow| flow.sent_packets as f64),
    ("retrans.", |flow| number(ours(flow), |flow| flow.retransmitted_packets as f64)),
    ("spurious", |flow| number(ours(flow), |flow| flow.spurious_recoveries as f64)),
    ("RTOs", |flow| number(ours(flow), |flow| flow.timeouts as f64)),
];

/// Shown only if flows compete.
const SHARE: Column<Flow> = ("share %", |flow| flow.share.map_or(f64::NAN, |share| share * 100.0));

/// Shown only if there are requests.
const REQUESTS: [Column<Flow>; 3] = [
    ("requests", |flow| number(flow.requests, |requests| requests.requests as f64)),
    ("response ms", |flow| number(answered(flow), |requests| requests.response_time_ms.mean)),
    ("response p95 ms", |flow| number(answered(flow), |requests| requests.response_time_ms.p95)),
];

/// Shown only if there is an MPTCP flow.
const MPTCP: [Column<Flow>; 5] = [
    ("protocol delay ms", |flow| number(flow.multipath, |data| data.protocol_delay_ms.mean)),
    ("head-of-line ms", |flow| number(flow.multipath, |data| data.head_of_line_delay_ms.mean)),
    ("redundant", |flow| number(flow.multipath, |data| data.redundant_packets as f64)),
    ("reinjected", |flow| number(flow.multipath, |data| data.reinjected_packets as f64)),
    ("redundant first", |flow| number(flow.multipath, |data| data.redundant_first_packets as f64)),
];

/// Shown only if a QUIC sender has declared packets lost.
const LOSSES: [Column<Flow>; 2] = [
    ("declared lost", |flow| number(flow.quic, |losses| losses.declared_lost_packets as f64)),
    ("arrived after all", |flow| number(flow.quic, |losses| losses.spurious_losses as f64)),
];

/// A number of a part of a record; NaN if the record lacks the part.
fn number<T>(part: Option<T>, of: impl FnOnce(T) -> f64) -> f64 {
    part.map_or(f64::NAN, of)
}

/// A flow that is acknowledged: any but UDP's.
fn reliable(flow: &Flow) -> Option<&Flow> {
    (flow.protocol != Protocol::Udp).then_some(flow)
}

/// A flow whose sender tells of its recoveries: acknowledged, and no hosted stack's.
fn ours(flow: &Flow) -> Option<&Flow> {
    reliable(flow).filter(|flow| flow.protocol != Protocol::Hosted)
}

/// The requests of a flow, if some were answered.
fn answered(flow: &Flow) -> Option<Requests> {
    flow.requests.filter(|requests| requests.requests > 0)
}

/// The video of a flow, if frames were due.
fn shown(flow: &Flow) -> Option<Video> {
    flow.video.filter(|video| video.frames > 0)
}

const SUBFLOW: [Column<Subflow>; 8] = [
    ("throughput Mbit/s", |subflow| subflow.throughput_mbps),
    ("RTT ms", |subflow| subflow.rtt_ms.mean),
    ("p95 ms", |subflow| subflow.rtt_ms.p95),
    ("sent", |subflow| subflow.sent_packets as f64),
    ("retrans.", |subflow| number(subflow.retransmitted_packets, |packets| packets as f64)),
    ("drops/s", |subflow| subflow.drops_per_s),
    ("RTOs", |subflow| number(subflow.timeouts, |timeouts| timeouts as f64)),
    ("failures", |subflow| number(subflow.failures, |failures| failures as f64)),
];

/// Shown only if there is video.
const VIDEO: [Column<Flow>; 5] = [
    ("video Mbit/s", |flow| number(shown(flow), |video| video.video_mbps)),
    ("startup s", |flow| number(flow.video.and_then(|video| video.startup_s), |startup_s| startup_s)),
    ("stalls", |flow| number(shown(flow), |video| video.stalls as f64)),
    ("stalled s", |flow| number(shown(flow), |video| video.stall_s)),
    ("late %", |flow| number(shown(flow), |video| 100.0 * video.late_frames as f64 / video.frames as f64)),
];

const FAIRNESS: [Column<Run>; 2] = [
    ("Jain's index", |run| run.jain.unwrap_or(f64::NAN)),
    ("convergence s", |run| run.convergence_s.unwrap_or(f64::NAN)),
];

const PATH: [Column<Path>; 6] = [
    ("utilised %", |path| path.utilisation * 100.0),
    ("queue ms", |path| path.queue_delay_ms),
    ("sent", |path| path.sent_packets as f64),
    ("dropped", |path| path.dropped_packets as f64),
    ("lost", |path| path.lost_packets as f64),
    ("marked", |path| path.marked_packets as f64),
];

const TUNNEL: [Column<Tunnel>; 8] = [
    ("delivered", |tunnel| tunnel.delivered_packets as f64),
    ("buffered", |tunnel| tunnel.reorder_buffered_packets as f64),
    ("reorder ms", |tunnel| tunnel.reorder_delay_ms.mean),
    ("p95 ms", |tunnel| tunnel.reorder_delay_ms.p95),
    ("late", |tunnel| tunnel.late_packets as f64),
    ("dropped", |tunnel| tunnel.dropped_packets as f64),
    ("timeouts", |tunnel| tunnel.timeouts as f64),
    ("overflows", |tunnel| tunnel.overflows as f64),
];

/// Shown only if CPU time was measured, as on a kernel in real time.
const CPU_PER_GB: [Column<Run>; 3] = [
    ("s/GB", |run| cpu::machine_s_per_gb(run).unwrap_or(f64::NAN)),
    ("tunnel s/GB", |run| cpu::tunnel_s_per_gb(run).unwrap_or(f64::NAN)),
    ("steal s", |run| run.steal_s.unwrap_or(f64::NAN)),
];

const CPU: [Column<Cpu>; 4] = [
    ("busy s", Cpu::busy_s),
    ("user s", |cpu| cpu.user_s),
    ("system s", |cpu| cpu.system_s),
    ("interrupts s", |cpu| cpu.interrupt_s.unwrap_or(f64::NAN)),
];

/// All tables that have rows, of `max_rows` at most.
pub(crate) fn summary_tables(study: &Study<'_>, max_rows: usize) -> Vec<SummaryTable> {
    // A column of algorithms that repeats a swept parameter is left out.
    let repeats_parameter = |cell: &SweepCell<'_>| {
        let is_swept = |flow: &Flow| cell.parameters.values().any(|value| *value == flow.congestion_control);
        cell.runs[0].flows.iter().all(is_swept)
    };
    let flow_headings =
        if study.cells().iter().all(repeats_parameter) { &["flow"][..] } else { &["flow", "algorithm"] };
    let flow_names = |flow: &Flow| {
        let names = [flow.name.clone(), or_dash(&flow.congestion_control)];
        names.into_iter().take(flow_headings.len()).collect()
    };
    let has = |property: fn(&Flow) -> bool| study.runs.iter().any(|run| run.flows.iter().any(property));
    let mut flow_columns = FLOW.to_vec();
    flow_columns.extend(has(|flow| flow.share.is_some()).then_some(SHARE));
    flow_columns.extend(REQUESTS.iter().filter(|_| has(|flow| answered(flow).is_some())));
    flow_columns.extend(VIDEO.iter().filter(|_| has(|flow| shown(flow).is_some())));
    flow_columns.extend(MPTCP.iter().filter(|_| has(|flow| flow.multipath.is_some())));
    flow_columns
        .extend(LOSSES.iter().filter(|_| has(|flow| flow.quic.is_some_and(|losses| losses.declared_lost_packets > 0))));
    let study = (study, max_rows);
    let subflow_names = |subflow: &Subflow| vec![subflow.flow.clone(), subflow.path.clone()];
    let path_names = |path: &Path| vec![path.name.clone()];
    let tables = [
        table(study, "Flows", flow_headings, |run| &run.flows, flow_names, &flow_columns),
        table(study, "Subflows", &["flow", "path"], |run| &run.subflows, subflow_names, &SUBFLOW),
        table(study, "Fairness", &[], run_with_fairness, |_| Vec::new(), &FAIRNESS),
        table(study, "Paths", &["path"], |run| &run.paths, path_names, &PATH),
        table(study, "Tunnel", &[], |run| run.tunnel.as_slice(), |_| Vec::new(), &TUNNEL),
        table(study, "CPU time for a GB of payload", &[], run_with_cpu, |_| Vec::new(), &CPU_PER_GB),
        table(study, "CPU time", &["of"], |run| &run.cpu, |cpu: &Cpu| vec![cpu.name.clone()], &CPU),
    ];
    tables.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

/// The run itself, if flows compete in it.
fn run_with_fairness(run: &Run) -> &[Run] {
    if run.jain.is_some() { from_ref(run) } else { &[] }
}

/// The run itself, if its CPU time was measured.
fn run_with_cpu(run: &Run) -> &[Run] {
    if run.cpu.is_empty() { &[] } else { from_ref(run) }
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { DASH.to_owned() } else { text.to_owned() }
}

/// The table of some records, of `max_rows` at most: the parameters that vary, the names of each record, then its `columns`.
fn table<T>(
    (study, max_rows): (&Study<'_>, usize),
    title: &'static str,
    name_headings: &[&str],
    records: impl Fn(&Run) -> &[T],
    names: impl Fn(&T) -> Vec<String>,
    columns: &[Column<T>],
) -> SummaryTable {
    let varying = study.varying_keys();
    let has_intervals = study.cells().iter().any(|cell| cell.runs.len() > 1);
    let mut headings: Vec<String> = short_names(&varying).into_iter().map(str::to_owned).collect();
    headings.extend(name_headings.iter().map(|name| (*name).to_owned()));
    let name_columns = headings.len();
    for (index, (heading, _)) in columns.iter().enumerate() {
        headings.push((*heading).to_owned());
        if has_intervals && index == 0 {
            headings.push("± 95 %".to_owned());
        }
    }
    let (mut rows, mut outliers, mut omitted) = (Vec::new(), Vec::new(), 0);
    for cell in study.cells() {
        let count = cell.runs.iter().map(|run| records(run).len()).max().unwrap_or(0);
        let shown = count.min(max_rows - rows.len());
        omitted += count - shown;
        for index in 0..shown {
            let seed_records: Vec<&T> = cell.runs.iter().filter_map(|run| records(run).get(index)).collect();
            let mut row: Vec<String> = varying.iter().map(|key| or_dash(cell.parameter(key))).collect();
            row.extend(names(seed_records[0]));
            let points = cell.runs.iter().filter_map(|run| Some((run.seed, columns[0].1(records(run).get(index)?))));
            let sample = Sample { points: points.collect(), ..Sample::default() };
            let note = sample.outlier_note(&row.join(", "));
            row.extend(row_values(
                &seed_records,
                columns,
                (has_intervals, cell.has_identical_runs()),
                [cell.disturbed[0], note.is_some()],
            ));
            outliers.extend(note);
            rows.push(row);
        }
    }
    SummaryTable { title, headings, name_columns, rows, omitted, outliers: outlier_footnote(&outliers) }
}

/// The mean of each column over the records of all seeds; the first is marked if there are disturbed runs or outliers.
fn row_values<T>(
    seed_records: &[&T],
    columns: &[Column<T>],
    (has_intervals, are_identical): (bool, bool),
    [disturbed, has_outlier]: [bool; 2],
) -> Vec<String> {
    let mut values = Vec::new();
    for (index, (_, value)) in columns.iter().enumerate() {
        let estimate = Estimate::of(&seed_records.iter().map(|record| value(record)).collect::<Vec<_>>());
        let mean = estimate.map_or_else(|| DASH.to_owned(), |estimate| format_number(estimate.mean));
        values.push(mark_outlier(mark_disturbed(mean, disturbed && index == 0), has_outlier && index == 0));
        if has_intervals && index == 0 {
            let half = estimate.and_then(|estimate| estimate.half_text()).filter(|_| !are_identical);
            values.push(half.unwrap_or_else(|| if are_identical { IDENTICAL } else { DASH }.to_owned()));
        }
    }
    values
}

/// A cell's name without keys: the values of the varying parameters.
pub(crate) fn cell_name(cell: &SweepCell<'_>, varying: &[&str]) -> String {
    let values: Vec<String> = varying.iter().map(|key| or_dash(cell.parameter(key))).collect();
    if values.is_empty() { "the run".to_owned() } else { values.join(", ") }
}

//! Why a flow carries less than its path, or the best of its paths, would: a sentence per flow and cause, where the record
//! shows it.

use crate::number::{format_digits, format_number, plural};
use crate::study::{Study, SweepCell};
use record::{Flow, LimitTimes, Path, Run, Subflow};

/// The flow carries at most this share of what its best path would, which is used to this share at most.
const MAX_SHARE: f64 = 0.9;
/// The cause lasts at least this share of the time.
const MIN_LASTING: f64 = 0.25;
/// The cause explains at least this share of the capacity that was not used.
const MIN_EXPLAINED: f64 = 0.6;
/// The least utilisation from which a path's rate is estimated.
const MIN_UTILISATION: f64 = 0.02;
/// A rate that exceeds the capacity by this factor is no rate: the path carries the acknowledgements.
const MAX_RATE: f64 = 1.25;

/// Why a flow was slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Handshake,
    ReceiveWindow,
    SendBuffer,
    Recovery,
    Pacing,
    Window,
    Scheduler,
}

impl Cause {
    /// The dominant cause of a path that was used to a share of `utilisation`, and the share of the time for which it
    /// lasted. While the algorithm limits a path (by window, pacing or recovery), the path carries data; only what is left
    /// of these times explains that it carries little. An application without data is no cause.
    fn dominant(limits: &LimitTimes, utilisation: f64) -> Option<(Self, f64)> {
        let total = limits.total();
        let share = |time: f64| if total > 0.0 { time / total } else { 0.0 };
        let by_algorithm = share(limits.window + limits.pacing + limits.recovery);
        let excess = if by_algorithm > 0.0 { (1.0 - utilisation / by_algorithm).max(0.0) } else { 0.0 };
        let causes = [
            (Self::Handshake, limits.handshake, 1.0),
            (Self::ReceiveWindow, limits.receive_window, 1.0),
            (Self::SendBuffer, limits.send_buffer, 1.0),
            (Self::Scheduler, limits.scheduler, 1.0),
            (Self::Recovery, limits.recovery, excess),
            (Self::Pacing, limits.pacing, excess),
            (Self::Window, limits.window, excess),
        ];
        let explained = |(_, time, weight): &(Self, f64, f64)| share(*time) * weight;
        let dominant = causes.into_iter().max_by(|a, b| explained(a).total_cmp(&explained(b)))?;
        let dominates = explained(&dominant) >= MIN_EXPLAINED * (1.0 - utilisation);
        (dominates && share(dominant.1) >= MIN_LASTING).then_some((dominant.0, share(dominant.1)))
    }

    /// The state that lasted.
    fn clause(self, algorithm: &str, path: &str) -> String {
        match self {
            Self::Handshake => "the connection was not established".to_owned(),
            Self::ReceiveWindow => "the receive window had no room".to_owned(),
            Self::SendBuffer => format!("the full send buffer had no data for {path}"),
            Self::Recovery => format!("{algorithm} held data back to send lost data again"),
            Self::Pacing => format!("the pacing rate of {algorithm} held data back"),
            Self::Window => format!("the congestion window of {algorithm} was full"),
            Self::Scheduler => format!("the scheduler gave {path} nothing"),
        }
    }
}

/// The cause of a slow flow in one or several cells.
#[derive(Clone, Debug)]
pub(crate) struct Diagnosis {
    pub flow: String,
    pub cause: Cause,
    /// What the flow carried, as a share of what its best path would: of the worst cell.
    share: f64,
    /// The worst cell's sentence.
    sentence: String,
    cells: usize,
}

impl Diagnosis {
    pub(crate) fn sentence(&self) -> String {
        match self.cells - 1 {
            0 => self.sentence.clone(),
            more => format!("{} The cause is the same in {}.", self.sentence, plural(more, "more cell")),
        }
    }
}

/// The causes of a study's slow flows, each once.
pub(crate) fn diagnoses(study: &Study<'_>) -> Vec<Diagnosis> {
    let keys = study.varying_keys();
    let mut diagnoses: Vec<Diagnosis> = Vec::new();
    for found in study.cells().iter().filter_map(|cell| diagnosis(cell, &keys)) {
        let known = diagnoses.iter_mut().find(|known| (&known.flow, known.cause) == (&found.flow, found.cause));
        match known {
            Some(known) => {
                let cells = known.cells + 1;
                let worst = if found.share < known.share { found } else { known.clone() };
                *known = Diagnosis { cells, ..worst };
            }
            None => diagnoses.push(found),
        }
    }
    diagnoses
}

/// A path of a flow in numbers, each the mean of a cell's runs.
struct PathUse<'a> {
    name: &'a str,
    /// The share of the flow's time for which the path was busy.
    utilisation: f64,
    /// What the path would carry: what it carried, over its utilisation, Mbit/s.
    rate_mbps: f64,
    mean_rtt_ms: f64,
    p95_rtt_ms: f64,
    limits: LimitTimes,
}

/// The diagnosis of a cell in which there is one flow: with others on its paths the record does not show what is left for
/// it.
fn diagnosis(cell: &SweepCell<'_>, keys: &[&str]) -> Option<Diagnosis> {
    let runs = &cell.runs[..];
    let first: &Run = runs[0];
    let [flow] = &first.flows[..] else { return None };
    let paths = paths(runs)?;
    let best = paths.iter().max_by(|a, b| a.rate_mbps.total_cmp(&b.rate_mbps))?;
    let of_flow = |value: fn(&Flow) -> f64| mean(runs, |run| run.flows.first().map(value));
    let carried = of_flow(|flow| flow.throughput_mbps)?;
    let (cause, lasting) = Cause::dominant(&best.limits, best.utilisation)?;
    let is_below = carried <= MAX_SHARE * best.rate_mbps && best.utilisation <= MAX_SHARE;
    let others = paths.iter().filter(|path| path.name != best.name && path.p95_rtt_ms > best.p95_rtt_ms);
    let slowest = others.max_by(|a, b| a.p95_rtt_ms.total_cmp(&b.p95_rtt_ms));
    let head_of_line = of_flow(|flow| flow.multipath.map_or(0.0, |data| data.head_of_line_delay_ms.mean))?;
    let is_buffer = matches!(cause, Cause::ReceiveWindow | Cause::SendBuffer);
    let waited = slowest.filter(|_| is_buffer && head_of_line > best.mean_rtt_ms).map_or_else(String::new, |slowest| {
        let delay = format_number(head_of_line);
        format!(" Data waited for {}: the mean head-of-line delay was {delay} ms.", slowest.name)
    });
    let heading = match cell.heading(keys) {
        heading if heading.is_empty() => heading,
        heading => format!(" ({heading})"),
    };
    is_below.then(|| Diagnosis {
        flow: flow.name.clone(),
        cause,
        share: carried / best.rate_mbps,
        sentence: format!(
            "{}{heading}: for {:.0} % of the time {}, while {} was used to {:.0} %.{waited} With headers the flow carried {} \
             Mbit/s; {}{} would carry about {}.",
            flow.name,
            100.0 * lasting,
            cause.clause(&flow.congestion_control, best.name),
            best.name,
            100.0 * best.utilisation,
            format_number(carried),
            best.name,
            if paths.len() > 1 { " alone" } else { "" },
            format_digits(best.rate_mbps, 2),
        ),
        cells: 1,
    })
}

/// The paths of the only flow of these runs: those of its subflows, or the one that has packets. None if it carried too
/// little on one of them to know the path's rate, or more than the paths can: they carry its acknowledgements.
fn paths<'a>(runs: &[&'a Run]) -> Option<Vec<PathUse<'a>>> {
    let first = runs[0];
    let paths: Vec<PathUse<'a>> = if first.subflows.is_empty() {
        let mut used = first.paths.iter().filter(|path| path.sent_packets > 0);
        let (path, others) = (used.next()?, used.count());
        let is_known = others == 0 && first.tunnel.is_none() && first.capacity_mbps.is_some();
        vec![path_use(runs, &path.name).filter(|_| is_known)?]
    } else {
        first.subflows.iter().map(|subflow| path_use(runs, &subflow.path)).collect::<Option<_>>()?
    };
    let rate: f64 = paths.iter().map(|path| path.rate_mbps).sum();
    first.capacity_mbps.is_none_or(|capacity| rate <= MAX_RATE * capacity).then_some(paths)
}

/// A path's use, or none if it carried too little to know its rate.
fn path_use<'a>(runs: &[&Run], name: &'a str) -> Option<PathUse<'a>> {
    let of_run = |value: fn(&Run, &Flow, Option<&Subflow>, &Path) -> f64| {
        mean(runs, |run| {
            let path = run.paths.iter().find(|path| path.name == name)?;
            let subflow = run.subflows.iter().find(|subflow| subflow.path == name);
            Some(value(run, run.flows.first()?, subflow, path))
        })
    };
    let utilisation = of_run(|run, flow, _, path| path.utilisation * run.duration_s / active_s(run, flow))?;
    let carried = of_run(|_, flow, subflow, _| subflow.map_or(flow.throughput_mbps, |it| it.throughput_mbps))?;
    let mut limits = [0.0; LimitTimes::NAMES.len()];
    for (index, time) in limits.iter_mut().enumerate() {
        *time = mean(runs, |run| {
            let subflow = run.subflows.iter().find(|subflow| subflow.path == name);
            Some(limits_of(run, run.flows.first()?, subflow).as_array()[index])
        })?;
    }
    (utilisation >= MIN_UTILISATION).then_some(PathUse {
        name,
        utilisation,
        rate_mbps: carried / utilisation,
        mean_rtt_ms: of_run(|_, flow, subflow, _| subflow.map_or(flow.rtt_ms, |it| it.rtt_ms).mean)?,
        p95_rtt_ms: of_run(|_, flow, subflow, _| subflow.map_or(flow.rtt_ms, |it| it.rtt_ms).p95)?,
        limits: LimitTimes::from_array(limits),
    })
}

/// The time for which a flow was on, seconds.
fn active_s(run: &Run, flow: &Flow) -> f64 {
    flow.limited_s.map_or(run.duration_s, |limits| limits.total())
}

/// The limits of a flow's path. Without a measurement, only the time of the flow's buffers is known; the rest is no cause.
fn limits_of(run: &Run, flow: &Flow, subflow: Option<&Subflow>) -> LimitTimes {
    subflow.map_or(flow.limited_s, |subflow| subflow.limited_s).unwrap_or_else(|| {
        let (receive_window, send_buffer) = (flow.receive_window_limited_s, flow.send_buffer_limited_s);
        let application = (run.duration_s - receive_window - send_buffer).max(0.0);
        LimitTimes { receive_window, send_buffer, application, ..LimitTimes::default() }
    })
}

/// The mean over the runs, if each has the value.
fn mean(runs: &[&Run], value: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
    let values: Option<Vec<f64>> = runs.iter().map(|run| value(run)).collect();
    values.map(|values| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests;

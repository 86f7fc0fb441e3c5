//! Whose result is shown: a flow's, or that of one subflow of an MPTCP flow, which goes by `FLOW/PATH`.

use record::{Flow, Run, Subflow};
use serde_json::Value;

/// Dropped packets as a share of those sent, percent: not a field of a record, but made of two.
pub(crate) const DROP_PERCENT: &str = "drop_percent";

/// A flow or a subflow of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Subject<'r> {
    Flow(&'r Flow),
    Subflow(&'r Subflow),
}

impl<'r> Subject<'r> {
    /// The one of this name; the first flow without a name.
    pub(crate) fn of(run: &'r Run, name: Option<&str>) -> Option<Self> {
        let Some(name) = name else { return run.flows.first().map(Self::Flow) };
        match name.split_once('/') {
            Some((flow, path)) => {
                let mut subflows = run.subflows.iter();
                subflows.find(|subflow| subflow.flow == flow && subflow.path == path).map(Self::Subflow)
            }
            None => run.flows.iter().find(|flow| flow.name == name).map(Self::Flow),
        }
    }

    /// All of a run: flows first.
    pub(crate) fn all(run: &'r Run) -> impl Iterator<Item = Self> {
        run.flows.iter().map(Self::Flow).chain(run.subflows.iter().map(Self::Subflow))
    }

    /// What it goes by.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Flow(flow) => flow.name.clone(),
            Self::Subflow(subflow) => format!("{}/{}", subflow.flow, subflow.path),
        }
    }

    /// What its time series is called.
    pub(crate) fn series(self) -> String {
        let kind = if matches!(self, Self::Flow(_)) { "flow" } else { "subflow" };
        format!("{kind} {}", self.name())
    }

    /// The congestion control; a subflow has that of its flow.
    pub(crate) fn congestion_control(self, run: &'r Run) -> &'r str {
        match self {
            Self::Flow(flow) => &flow.congestion_control,
            Self::Subflow(subflow) => {
                let flow = run.flows.iter().find(|flow| flow.name == subflow.flow);
                flow.map_or("", |flow| &flow.congestion_control)
            }
        }
    }

    /// A numeric field of its record by name: `goodput_mbps`, `rtt_ms.p95`.
    pub(crate) fn number(self, field: &str) -> Option<f64> {
        match (self, field) {
            (Self::Flow(flow), "goodput_mbps") => Some(flow.goodput_mbps), // nearly always; spares a detour over JSON
            (_, DROP_PERCENT) => percent(self.number("dropped_packets")?, self.number("sent_packets")?),
            _ => self.record()?.pointer(&format!("/{}", field.replace('.', "/")))?.as_f64(),
        }
    }

    fn record(self) -> Option<Value> {
        match self {
            Self::Flow(flow) => serde_json::to_value(flow).ok(),
            Self::Subflow(subflow) => serde_json::to_value(subflow).ok(),
        }
    }

    /// The names of its record's numbers.
    pub(crate) fn fields(self) -> Vec<String> {
        let record = self.record().expect("text and numbers");
        let fields = record.as_object().into_iter().flatten();
        let names = fields.flat_map(|(name, value)| match value.as_object() {
            Some(below) => below.keys().map(|key| format!("{name}.{key}")).collect(),
            None => vec![name.clone()],
        });
        names.filter(|name| self.number(name).is_some()).collect()
    }
}

pub(crate) fn percent(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| 100.0 * part / whole)
}

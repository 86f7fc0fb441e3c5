//! The record of a flow, or of a subflow of an MPTCP flow, by its name: `FLOW` or `FLOW/PATH`.

use record::{Flow, Run, Subflow};
use serde_json::Value;

/// The name of a value made of two fields: dropped packets as a share of those sent, percent.
pub(crate) const DROP_PERCENT: &str = "drop_percent";

/// The record of a flow or of a subflow.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FlowRecord<'r> {
    Flow(&'r Flow),
    Subflow(&'r Subflow),
}

impl<'r> FlowRecord<'r> {
    /// The record called `name`; without a name that of the first flow.
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

    /// All records of a run: flows, then subflows.
    pub(crate) fn all(run: &'r Run) -> impl Iterator<Item = Self> {
        run.flows.iter().map(Self::Flow).chain(run.subflows.iter().map(Self::Subflow))
    }

    /// `FLOW` or `FLOW/PATH`.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Flow(flow) => flow.name.clone(),
            Self::Subflow(subflow) => format!("{}/{}", subflow.flow, subflow.path),
        }
    }

    /// The name of its time series.
    pub(crate) fn series(self) -> String {
        let kind = if matches!(self, Self::Flow(_)) { "flow" } else { "subflow" };
        format!("{kind} {}", self.name())
    }

    /// A numeric field of the record by name: `goodput_mbps`, `rtt_ms.p95`.
    pub(crate) fn number(self, field: &str) -> Option<f64> {
        match (self, field) {
            (Self::Flow(flow), "goodput_mbps") => Some(flow.goodput_mbps), // the usual one, without a detour over JSON
            (_, DROP_PERCENT) => percent(self.number("dropped_packets")?, self.number("sent_packets")?),
            _ => self.as_json()?.pointer(&format!("/{}", field.replace('.', "/")))?.as_f64(),
        }
    }

    fn as_json(self) -> Option<Value> {
        match self {
            Self::Flow(flow) => serde_json::to_value(flow).ok(),
            Self::Subflow(subflow) => serde_json::to_value(subflow).ok(),
        }
    }

    /// The names of the numeric fields.
    pub(crate) fn fields(self) -> Vec<String> {
        let record = self.as_json().expect("text and numbers");
        let fields = record.as_object().into_iter().flatten();
        let names = fields.flat_map(|(name, value)| match value.as_object() {
            Some(components) => components.keys().map(|key| format!("{name}.{key}")).collect(),
            None => vec![name.clone()],
        });
        names.filter(|name| self.number(name).is_some()).collect()
    }
}

pub(crate) fn percent(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| 100.0 * part / whole)
}

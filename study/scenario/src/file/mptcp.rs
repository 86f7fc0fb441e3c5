//! The tables of an MPTCP flow.

use parse::{Size, Spanned, Time};
use schemars::JsonSchema;
use serde::Deserialize;

/// A subflow of an MPTCP connection, or a path of a multipath QUIC connection.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "subflow")]
pub(crate) struct Subflow {
    /// Name of its path.
    pub(crate) path: Spanned<String>,
    /// The subflow is used only while no other subflow can be.
    #[serde(default)]
    pub(crate) backup: bool,
    /// The subflow joins this much after the flow's start. Not before the connection is open.
    pub(crate) join: Option<Time>,
    /// The subflow is removed this much after the flow's start. Default: never.
    pub(crate) leave: Option<Spanned<Time>>,
}

/// The other settings of an MPTCP connection.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "mptcp")]
pub(crate) struct Mptcp {
    /// The stack whose rules for reinjection it follows: "upstream" (Linux 6.1) or "out-of-tree" (v0.9x).
    pub(crate) stack: Option<MptcpStack>,
    /// While the receive window or the send buffer is full, send the oldest data again on a faster subflow.
    pub(crate) opportunistic_retransmission: Option<bool>,
    /// Then also halve the congestion window of the subflow that has the data. Default: as
    /// `opportunistic_retransmission`.
    pub(crate) penalisation: Option<bool>,
    /// One weight a subflow, for schedulers that have weights. Default: their rates (weighted), or all 1.
    pub(crate) weights: Option<Spanned<Vec<u32>>>,
    /// Bytes of the DSS option on a data segment.
    pub(crate) dss_option: Option<Spanned<Size>>,
}

/// An MPTCP stack.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "mptcp-stack")]
pub(crate) enum MptcpStack {
    /// Linux 6.1.
    #[default]
    Upstream,
    /// The out-of-tree stack, v0.9x.
    OutOfTree,
}

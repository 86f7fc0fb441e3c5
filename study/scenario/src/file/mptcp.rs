//! The tables of an MPTCP flow.

use parse::{Size, Spanned, Time};
use schemars::JsonSchema;
use serde::Deserialize;

/// A subflow of an MPTCP connection, or a path of a multipath QUIC connection.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "subflow")]
pub(crate) struct Subflow {
    /// Name of the path of the subflow.
    pub(crate) path: Spanned<String>,
    /// The subflow carries data only while no other subflow can.
    #[serde(default)]
    pub(crate) backup: bool,
    /// The subflow joins this long after the start of the flow, but not before the connection is open. Default:
    /// `"0s"`.
    pub(crate) join: Option<Time>,
    /// The subflow is removed this long after the start of the flow. Default: never.
    pub(crate) leave: Option<Spanned<Time>>,
}

/// The other settings of an MPTCP connection.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "mptcp")]
pub(crate) struct Mptcp {
    /// The stack whose rules for reinjection the flow follows. Default: `"upstream"`.
    pub(crate) stack: Option<MptcpStack>,
    /// While the receive window or the send buffer is full, send the oldest data again on a subflow that is much
    /// faster than the one that holds it. Default: `true` for the out-of-tree stack, else `false`.
    pub(crate) opportunistic_retransmission: Option<bool>,
    /// In that case, also halve the congestion window of the subflow that holds the data. Default: as
    /// `opportunistic_retransmission`.
    pub(crate) penalisation: Option<bool>,
    /// One weight per subflow, for schedulers that have weights. Default: the rates of the paths (`weighted`), or all
    /// 1.
    pub(crate) weights: Option<Spanned<Vec<u32>>>,
    /// Bytes of the DSS option on a data segment. The MSS is that much smaller, and is the same on all subflows.
    /// Default: `"24b"`; out-of-tree `"20b"`.
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

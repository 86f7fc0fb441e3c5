//! MPTCP flows: as the file has them, and as the model.

use crate::file;
use crate::model::{self, Multipath, Path};
use crate::resolve::{bytes, find};
use crate::short::Algorithm;
use parse::At;
use parse::Fault;
use parse::{Size, Time};
use schemars::JsonSchema;
use serde::Deserialize;
use units::Span;

/// A subflow of an MPTCP connection.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "subflow")]
pub(crate) struct Subflow {
    /// Name of its path.
    path: At<String>,
    /// Used only while no other subflow can be. Default: false.
    #[serde(default)]
    backup: bool,
    /// It joins this much after the flow's start. Default: "0s", as soon as the connection is open.
    join: Option<Time>,
    /// It is removed this much after the flow's start. Default: never.
    leave: Option<At<Time>>,
}

/// What else an MPTCP connection is set up with.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "mptcp")]
pub(crate) struct Mptcp {
    /// The stack whose rules it follows: "upstream" (Linux 6.1, the default; scheduler: linger) or "out-of-tree"
    /// (v0.9x; scheduler: minrtt).
    rules: Option<Rules>,
    /// While the receive window or the send buffer is full, send the oldest data again on a faster subflow. Default: only
    /// under the rules of the out-of-tree stack.
    opportunistic_retransmission: Option<bool>,
    /// And halve the window of the subflow that holds it. Default: as `opportunistic_retransmission`.
    penalisation: Option<bool>,
    /// One weight a subflow, for schedulers that have weights. Default: their rates (weighted), or all 1.
    weights: Option<At<Vec<u32>>>,
    /// Bytes that MPTCP adds to the TCP header of a data segment. Default: that of the stack, "24b" upstream (32-bit
    /// DATA_ACK, 64-bit data sequence number), "20b" out-of-tree (both 32-bit, checksum).
    option: Option<At<Size>>,
}

/// The stack whose rules are followed.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "mptcp-rules")]
enum Rules {
    /// Linux 6.1.
    #[default]
    Upstream,
    /// The out-of-tree stack, v0.9x.
    OutOfTree,
}

/// Most subflows of a connection.
const MOST_SUBFLOWS: usize = 32;

/// The connection that `given` describes.
pub(crate) fn resolve(given: &file::Flow, paths: &[Path]) -> Result<Multipath, Fault> {
    let subflows = subflows(given, paths)?;
    let keys = given.mptcp.as_ref().map(|mptcp| mptcp.get().clone()).unwrap_or_default();
    let (rules, scheduler, option) = match keys.rules.unwrap_or_default() {
        Rules::Upstream => (model::Rules::Upstream, "linger", 24),
        Rules::OutOfTree => (model::Rules::OutOfTree, "minrtt", 20),
    };
    let opportunistic = keys.opportunistic_retransmission.unwrap_or(rules == model::Rules::OutOfTree);
    let scheduler = given.scheduler.as_ref().map_or_else(|| Algorithm::plain(scheduler), |named| named.get().clone());
    Ok(Multipath {
        scheduler: scheduler.0,
        weights: weights(keys.weights.as_ref(), subflows.len())?,
        subflows,
        rules,
        opportunistic_retransmission: opportunistic,
        penalisation: keys.penalisation.unwrap_or(opportunistic),
        option: keys.option.as_ref().map_or(Ok(option), option_bytes)?,
    })
}

/// A TCP header has 40 bytes for options, of which timestamps take 12.
fn option_bytes(size: &At<Size>) -> Result<u32, Fault> {
    match bytes(size)? {
        option if option > 28 => {
            Err(Fault::at(size.span(), "beside timestamps a TCP header has room for 28 bytes of options"))
        }
        option => Ok(option),
    }
}

fn subflows(given: &file::Flow, paths: &[Path]) -> Result<Vec<model::Subflow>, Fault> {
    let names = || paths.iter().map(|path| path.name.as_str());
    let plain = |path| model::Subflow { path, backup: false, join: Span::ZERO, leave: None };
    let subflows: Vec<model::Subflow> = match (&given.subflow, &given.paths) {
        (Some(subflows), Some(_)) => {
            let fault = Fault::at(subflows.span(), "`paths` and `subflow` say the same thing");
            return Err(fault.help("keep one"));
        }
        (Some(subflows), None) => {
            let one = |at: &At<Subflow>| subflow(at.get(), paths);
            subflows.get().iter().map(one).collect::<Result<_, _>>()?
        }
        (None, Some(list)) => {
            let one = |name: &At<String>| find("path", name.get(), name.span(), names()).map(plain);
            list.get().iter().map(one).collect::<Result<_, _>>()?
        }
        (None, None) => (0..paths.len()).map(plain).collect(),
    };
    match subflows.first() {
        None => Err(Fault::at(given.name.span(), "an mptcp flow needs at least one path")),
        Some(first) if first.join != Span::ZERO => {
            let fault = Fault::at(given.name.span(), "the first subflow opens the connection: it cannot `join` later");
            Err(fault.help("name another one first, or let the flow `start` later"))
        }
        Some(_) if subflows.len() > MOST_SUBFLOWS => {
            let fault = format!("{} subflows, a connection has {MOST_SUBFLOWS} at most", subflows.len());
            Err(Fault::at(given.name.span(), fault).help("name those that it is to use in `paths`"))
        }
        Some(_) => Ok(subflows),
    }
}

fn subflow(given: &Subflow, paths: &[Path]) -> Result<model::Subflow, Fault> {
    let path = find("path", given.path.get(), given.path.span(), paths.iter().map(|path| path.name.as_str()))?;
    let join = given.join.map_or(Span::ZERO, |join| join.0);
    match &given.leave {
        Some(leave) if leave.get().0 <= join => {
            Err(Fault::at(leave.span(), format!("the subflow would leave at {}, before it joins", leave.get().0)))
        }
        leave => {
            let leave = leave.as_ref().map(|leave| leave.get().0);
            Ok(model::Subflow { path, backup: given.backup, join, leave })
        }
    }
}

fn weights(given: Option<&At<Vec<u32>>>, subflows: usize) -> Result<Vec<u32>, Fault> {
    let Some(given) = given else { return Ok(Vec::new()) };
    match given.get() {
        list if list.len() != subflows => {
            Err(Fault::at(given.span(), format!("{} weights for {subflows} subflows", list.len())))
        }
        list if list.contains(&0) => {
            let fault = Fault::at(given.span(), "a weight of zero sends nothing over a subflow");
            Err(fault.help("weights start at 1; to leave a path out, name the others in `paths`"))
        }
        list => Ok(list.clone()),
    }
}

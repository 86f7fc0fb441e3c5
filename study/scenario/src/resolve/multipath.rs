//! MPTCP and multipath QUIC flows.

use super::checks::{algorithm, find, parse_bytes};
use crate::file;
use crate::file::{LossThresholds, MptcpStack, Subflow};
use crate::files::Files;
use crate::model::{self, AlgorithmChoice, Multipath, MultipathTransport, Path};
use parse::{Diagnostic, Size, Spanned};
use transport::quic::MAX_STREAMS;
use units::Span;

/// The default scheduler of each stack.
pub(crate) const UPSTREAM_SCHEDULER: &str = "linger";
pub(crate) const OUT_OF_TREE_SCHEDULER: &str = "minrtt";
/// Bytes that each stack adds to a data segment: 32-bit DATA_ACK and 64-bit data sequence number, or both with 32 bits
/// and a checksum.
pub(crate) const UPSTREAM_DSS_OPTION_BYTES: u32 = 24;
pub(crate) const OUT_OF_TREE_DSS_OPTION_BYTES: u32 = 20;
/// The maximum number of subflows of a connection.
const MAX_SUBFLOWS: usize = 32;

/// The default scheduler of multipath QUIC.
pub(crate) const QUIC_SCHEDULER: &str = "minrtt";

/// The MPTCP connection that `table` describes.
pub(super) fn mptcp(table: &file::Flow, paths: &[Path], files: &mut Files) -> Result<Multipath, Diagnostic> {
    let subflows = subflows(table, paths)?;
    let keys = table.mptcp.as_ref().map(|mptcp| mptcp.get().clone()).unwrap_or_default();
    let (stack, scheduler, dss_option_bytes) = match keys.stack.unwrap_or_default() {
        MptcpStack::Upstream => (model::MptcpStack::Upstream, UPSTREAM_SCHEDULER, UPSTREAM_DSS_OPTION_BYTES),
        MptcpStack::OutOfTree => (model::MptcpStack::OutOfTree, OUT_OF_TREE_SCHEDULER, OUT_OF_TREE_DSS_OPTION_BYTES),
    };
    let opportunistic = keys.opportunistic_retransmission.unwrap_or(stack == model::MptcpStack::OutOfTree);
    let scheduler = algorithm(table.scheduler.as_ref(), AlgorithmChoice::from(scheduler), files)?;
    Ok(Multipath {
        scheduler,
        weights: weights(keys.weights.as_ref(), subflows.len())?,
        subflows,
        transport: MultipathTransport::Mptcp(model::Mptcp {
            stack,
            opportunistic_retransmission: opportunistic,
            penalisation: keys.penalisation.unwrap_or(opportunistic),
            dss_option_bytes: keys.dss_option.as_ref().map_or(Ok(dss_option_bytes), option_bytes)?,
        }),
    })
}

/// The multipath QUIC connection that `table` describes.
pub(super) fn quic(table: &file::Flow, paths: &[Path], files: &mut Files) -> Result<Multipath, Diagnostic> {
    let subflows = subflows(table, paths)?;
    let keys = table.quic.as_ref().map(|quic| quic.get().clone()).unwrap_or_default();
    let defaults = model::Quic::default();
    let quic = model::Quic {
        streams: keys.streams.as_ref().map_or(Ok(defaults.streams), streams)?,
        adaptive_loss_thresholds: keys.loss_thresholds.unwrap_or_default() == LossThresholds::Adaptive,
        undo: keys.undo.unwrap_or(defaults.undo),
    };
    Ok(Multipath {
        scheduler: algorithm(table.scheduler.as_ref(), AlgorithmChoice::from(QUIC_SCHEDULER), files)?,
        weights: weights(keys.weights.as_ref(), subflows.len())?,
        subflows,
        transport: MultipathTransport::Quic(quic),
    })
}

fn streams(streams: &Spanned<u32>) -> Result<u32, Diagnostic> {
    match streams.get() {
        1..=MAX_STREAMS => Ok(*streams.get()),
        _ => Err(Diagnostic::new(streams.span(), format!("a connection has 1 to {MAX_STREAMS} streams"))),
    }
}

/// A TCP header has 40 bytes for options, of which timestamps take 12.
fn option_bytes(size: &Spanned<Size>) -> Result<u32, Diagnostic> {
    match parse_bytes(size)? {
        option if option > 28 => {
            Err(Diagnostic::new(size.span(), "with timestamps a TCP header has room for 28 bytes of further options"))
        }
        option => Ok(option),
    }
}

pub(super) fn subflows(table: &file::Flow, paths: &[Path]) -> Result<Vec<model::Subflow>, Diagnostic> {
    let names = || paths.iter().map(|path| path.name.as_str());
    let plain = |path| model::Subflow { path, backup: false, join: Span::ZERO, leave: None };
    let subflows: Vec<model::Subflow> = match (&table.subflow, &table.paths) {
        (Some(subflows), Some(_)) => {
            let diagnostic = Diagnostic::new(subflows.span(), "`paths` and `subflow` say the same thing");
            return Err(diagnostic.with_help("keep one"));
        }
        (Some(subflows), None) => {
            let resolve_one = |subflow_table: &Spanned<Subflow>| subflow(subflow_table.get(), paths);
            subflows.get().iter().map(resolve_one).collect::<Result<_, _>>()?
        }
        (None, Some(list)) => {
            let resolve_one = |name: &Spanned<String>| find("path", name.get(), name.span(), names()).map(plain);
            list.get().iter().map(resolve_one).collect::<Result<_, _>>()?
        }
        (None, None) => (0..paths.len()).map(plain).collect(),
    };
    match subflows.first() {
        None => Err(Diagnostic::new(table.name.span(), "a connection needs at least one path")),
        Some(first) if first.join != Span::ZERO => {
            let diagnostic =
                Diagnostic::new(table.name.span(), "the first subflow opens the connection: it cannot `join` later");
            Err(diagnostic.with_help("name another one first, or let the flow `start` later"))
        }
        Some(_) if subflows.len() > MAX_SUBFLOWS => {
            let message = format!("{} subflows, a connection has {MAX_SUBFLOWS} at most", subflows.len());
            Err(Diagnostic::new(table.name.span(), message).with_help("name the paths to use in `paths`"))
        }
        Some(_) => Ok(subflows),
    }
}

fn subflow(table: &Subflow, paths: &[Path]) -> Result<model::Subflow, Diagnostic> {
    let path = find("path", table.path.get(), table.path.span(), paths.iter().map(|path| path.name.as_str()))?;
    let join = table.join.map_or(Span::ZERO, |join| join.0);
    match &table.leave {
        Some(leave) if leave.get().0 <= join => {
            Err(Diagnostic::new(leave.span(), format!("the subflow would leave at {}, before it joins", leave.get().0)))
        }
        leave => {
            let leave = leave.as_ref().map(|leave| leave.get().0);
            Ok(model::Subflow { path, backup: table.backup, join, leave })
        }
    }
}

fn weights(weights: Option<&Spanned<Vec<u32>>>, subflows: usize) -> Result<Vec<u32>, Diagnostic> {
    let Some(weights) = weights else { return Ok(Vec::new()) };
    match weights.get() {
        list if list.len() != subflows => {
            Err(Diagnostic::new(weights.span(), format!("{} weights for {subflows} subflows", list.len())))
        }
        list if list.contains(&0) => {
            let diagnostic = Diagnostic::new(weights.span(), "a weight of zero sends nothing over a subflow");
            Err(diagnostic.with_help("weights start at 1; to leave a path out, name the others in `paths`"))
        }
        list => Ok(list.clone()),
    }
}

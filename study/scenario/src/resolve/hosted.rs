//! Connections of hosted stacks.

use super::checks::{algorithm, check_positive};
use super::multipath;
use super::traffic::{refuse_keys, set_host, span};
use crate::file;
use crate::files::Files;
use crate::model::{AlgorithmChoice, FlowKind, Host, Hosted, Path, Route, Subflow};
use parse::Diagnostic;
use units::Span;

/// A connection of a hosted stack.
pub(super) fn flow(
    flow_table: &file::Flow,
    route: Route,
    paths: &[Path],
    host: &file::Host,
    files: &mut Files,
) -> Result<FlowKind, Diagnostic> {
    let file::Flow { subflow, scheduler, mptcp, quic, host: own_host, write, requests, video, packet, .. } = flow_table;
    let transport = [("subflow", span(subflow)), ("scheduler", span(scheduler)), ("mptcp", span(mptcp))];
    let application = [("write", span(write)), ("requests", span(requests)), ("video", span(video))];
    let others = [("quic", span(quic)), ("host", span(own_host)), ("packet", span(packet))];
    [transport, application, others].into_iter().try_for_each(|keys| refuse_keys("hosted", keys))?;
    let Some(stack) = &flow_table.stack else {
        let diagnostic = Diagnostic::new(flow_table.name.span(), "a hosted flow needs `stack`");
        return Err(diagnostic.with_help("`ropewalk list stacks` lists those of this program: stack = \"noq\""));
    };
    let subflows = match route {
        Route::Path(path) => vec![Subflow { path, backup: false, join: Span::ZERO, leave: None }],
        Route::Subflows => multipath::subflows(flow_table, paths)?,
        Route::Tunnel => {
            let diagnostic = Diagnostic::new(flow_table.name.span(), "a hosted flow does not go into the tunnel");
            return Err(diagnostic.with_help("name its `path`, or `paths`"));
        }
    };
    let mut settings = Host::default();
    set_host(&mut settings, host)?;
    let size = flow_table.size.as_ref().map(|size| check_positive("size", size, |size| size.0)).transpose()?;
    let congestion = flow_table.congestion.as_ref();
    Ok(FlowKind::Hosted(Box::new(Hosted {
        stack: algorithm(Some(stack), AlgorithmChoice::from(""), files)?,
        congestion: congestion.map(|it| algorithm(Some(it), AlgorithmChoice::from(""), files)).transpose()?,
        size: size.map(|size| size.0),
        rate: flow_table.rate.as_ref().map(|rate| rate.get().0),
        subflows,
        ip_header: settings.ip_header,
    })))
}

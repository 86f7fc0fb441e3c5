//! Connections of hosted stacks.

use super::checks::{algorithm, check_positive};
use super::multipath;
use super::requests;
use super::traffic::{refuse_keys, set_host, span};
use crate::file;
use crate::files::Files;
use crate::model::{AlgorithmChoice, FlowKind, Host, Hosted, HostedRequests, Path, Route, Subflow};
use parse::{Diagnostic, Spanned};
use units::Span;

/// The maximum number of requests at once, so that a typing error does not exhaust the memory.
const MAX_STREAMS: u32 = 10_000;

/// A connection of a hosted stack.
pub(super) fn flow(
    flow_table: &file::Flow,
    route: Route,
    paths: &[Path],
    host: &file::Host,
    files: &mut Files,
) -> Result<FlowKind, Diagnostic> {
    let file::Flow { subflow, scheduler, mptcp, quic, host: own_host, write, video, packet, .. } = flow_table;
    let transport = [("subflow", span(subflow)), ("scheduler", span(scheduler)), ("mptcp", span(mptcp))];
    let application = [("write", span(write)), ("video", span(video)), ("packet", span(packet))];
    let own = [("quic", span(quic)), ("host", span(own_host))];
    [transport, application].into_iter().try_for_each(|keys| refuse_keys("hosted", keys))?;
    refuse_keys("hosted", own)?;
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
        requests: flow_table.requests.as_ref().map(|table| hosted_requests(flow_table, table)).transpose()?,
        subflows,
        ip_header: settings.ip_header,
    })))
}

/// Requests on the streams of one connection.
fn hosted_requests(flow_table: &file::Flow, table: &Spanned<file::Requests>) -> Result<HostedRequests, Diagnostic> {
    let transfer = [("size", span(&flow_table.size)), ("rate", span(&flow_table.rate))];
    if let Some((key, Some(span))) = transfer.into_iter().find(|(_, span)| span.is_some()) {
        return Err(Diagnostic::new(span, format!("a flow of requests has no `{key}` of its own")));
    }
    if table.get().connection == file::Connection::New {
        let diagnostic = Diagnostic::new(table.span(), "the requests of a hosted flow are all on one connection");
        return Err(diagnostic.with_help("leave out `connection`"));
    }
    let streams = table.get().streams.as_ref();
    let streams =
        streams.map(|streams| check_positive("streams", streams, |streams| u64::from(*streams))).transpose()?;
    let streams = streams.copied().unwrap_or(1);
    if streams > MAX_STREAMS {
        let message = format!("at most {MAX_STREAMS} requests at once");
        return Err(Diagnostic::new(table.span(), message).with_help("reduce `streams`"));
    }
    Ok(HostedRequests { requests: requests::requests(table.get())?, streams })
}

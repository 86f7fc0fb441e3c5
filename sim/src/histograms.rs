//! The histograms of delays in a run's record: of every distribution whose summary the records of flows, subflows and the
//! tunnel have.

use crate::connection::Connection;
use crate::engine::Engine;
use crate::flow::{FlowProtocol, FlowState};
use crate::multipath::MultipathStats;
use crate::packet::Direction;
use crate::tcp::TcpFlow;
use crate::tunnel::Tunnel;
use record::{DelayHistogram, Distribution};
use scenario::model::Experiment;

/// The histograms that have samples: of flows with their subflows, in the scenario's order, then of the tunnel.
pub(crate) fn histograms(engine: &Engine, experiment: &Experiment) -> Vec<DelayHistogram> {
    let flows = engine.flows.iter().take(experiment.flows.len());
    let mut histograms: Vec<DelayHistogram> = flows.flat_map(|flow| of_flow(flow, experiment)).collect();
    if let Some(Tunnel::Mpt(mpt)) = &engine.network.tunnel {
        let reorder_delay = &mpt.egress[Direction::Forward as usize].reorder_delay;
        histograms.extend(reorder_delay.histogram("tunnel", "reorder_delay_ms"));
    }
    histograms
}

fn of_flow(flow: &FlowState, experiment: &Experiment) -> Vec<DelayHistogram> {
    let subject = format!("flow {}", flow.name);
    let near = flow.as_near_connection().map(|split| ("one_way_delay_ms", &split.delay));
    let delays: Vec<(&str, &Distribution)> = match &flow.protocol {
        FlowProtocol::Tcp(tcp) => of_tcp(tcp).into_iter().chain(near).collect(),
        FlowProtocol::Other(protocol) => protocol.distributions(),
    };
    let delays = delays.into_iter().filter_map(|(column, delay)| delay.histogram(&subject, column));
    let subflows = stats(flow).into_iter().flat_map(|stats| &stats.subflows).flat_map(|subflow| {
        let subject = format!("subflow {}/{}", flow.name, experiment.paths[subflow.path].name);
        [subflow.rtt.histogram(&subject, "rtt_ms"), subflow.srtt.histogram(&subject, "srtt_ms")]
    });
    delays.chain(subflows.flatten()).collect()
}

fn of_tcp(tcp: &TcpFlow) -> Vec<(&'static str, &Distribution)> {
    let client = tcp.client().map(|client| ("response_time_ms", &client.times));
    let video = tcp.video().map(|video| ("frame_delay_ms", &video.delay));
    let stats = of_connection(&tcp.connection);
    let of_data = stats.into_iter().flat_map(|stats| {
        [
            ("protocol_delay_ms", &stats.protocol_delay),
            ("head_of_line_degree_ms", &stats.head_of_line_degree),
            ("head_of_line_delay_ms", &stats.head_of_line),
        ]
    });
    std::iter::once(("rtt_ms", &tcp.rtt)).chain(client).chain(video).chain(of_data).collect()
}

/// The measurements of a flow over several paths.
fn stats(flow: &FlowState) -> Option<&MultipathStats> {
    match &flow.protocol {
        FlowProtocol::Tcp(tcp) => of_connection(&tcp.connection),
        FlowProtocol::Other(_) => None,
    }
}

fn of_connection(connection: &Connection) -> Option<&MultipathStats> {
    match connection {
        Connection::Single(_) => None,
        Connection::Multi(multi) => Some(&multi.stats),
        Connection::Quic(quic) => Some(&quic.stats),
    }
}

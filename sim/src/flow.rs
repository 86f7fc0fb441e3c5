//! The flows of a run.

use crate::application::Application;
use crate::connection::Connection;
use crate::daemon::{Sleeper, draw_preemption};
use crate::error::Error;
use crate::hosted::HostedFlow;
use crate::packet::Direction;
use crate::protocol::Protocol;
use crate::split_connection::{FarConnection, NearConnection, SplitConnection};
use crate::tcp::TcpFlow;
use crate::tcp_config::TcpConfig;
use crate::udp::Udp;
use scenario::model::{self, Experiment, Flow, FlowKind, Multipath, Route};
use units::{Instant, RngStream, Span};

/// Both ends of a flow, and its route.
#[derive(Debug)]
pub(crate) struct FlowState {
    pub name: String,
    pub route: Route,
    /// The direction of its data.
    pub direction: Direction,
    pub start: Instant,
    pub stop: Instant,
    pub protocol: FlowProtocol,
    /// The part of a relayed flow that it is, if any.
    pub split: Option<SplitConnection>,
}

/// A flow's transport protocol.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a packet of ten thousand flows waits for each pointer that it follows")]
pub(crate) enum FlowProtocol {
    Tcp(TcpFlow),
    Other(Box<dyn Protocol>),
}

/// The smallest MTU of the subflows' paths, bytes: it decides the MSS of all subflows.
fn min_mtu(experiment: &Experiment, multipath: Option<&Multipath>) -> u32 {
    let subflows = multipath.into_iter().flat_map(|multipath| &multipath.subflows);
    subflows.map(|subflow| experiment.paths[subflow.path].mtu).min().expect("an MPTCP flow has a subflow")
}

/// The receiving program of a flow, if its latency is drawn.
fn reader(experiment: &Experiment, flow: &Flow, seed: u64) -> Option<Box<Sleeper>> {
    let tunnel = experiment.tunnel.as_ref().filter(|_| flow.route == Route::Tunnel)?;
    let latency = Some(tunnel.nuisances.reader?);
    Some(Box::new(Sleeper::new(latency, seed, &format!("flow {} reader", flow.name))))
}

/// The number of acknowledgements after which the receiving program of a flow preempts the tunnel's daemon, if it is drawn.
fn preemption(experiment: &Experiment, flow: &Flow, seed: u64) -> Option<u64> {
    let tunnel = experiment.tunnel.as_ref().filter(|_| flow.route == Route::Tunnel)?;
    Some(draw_preemption(tunnel.nuisances.preemption?, seed, &flow.name))
}

impl FlowState {
    /// The flows of an experiment, and after them the far connections of those that are relayed, whose TCP has the flow's
    /// host settings and the relay's congestion control.
    pub(crate) fn all(experiment: &Experiment, seed: u64) -> Result<Vec<Self>, Error> {
        let flows = experiment.flows.iter().map(|flow| Self::new(experiment, flow, seed));
        let mut flows: Vec<Self> = flows.collect::<Result<_, _>>()?;
        for (index, flow) in experiment.flows.iter().enumerate() {
            let (Some(relay), Some(tunnel)) = (experiment.relay_of(flow), &experiment.tunnel) else { continue };
            let FlowKind::Tcp { size, host, application, .. } = &flow.kind else { continue };
            if !matches!(application, model::Application::Greedy | model::Application::Steady { .. }) {
                let reason = format!("flow {}: a flow with requests or video cannot be relayed", flow.name);
                return Err(Error::Tunnel { reason });
            }
            let far = flows.len() as u16;
            let name = format!("{} relay", flow.name);
            let config = TcpConfig::new(&name, &relay.congestion, host, None, tunnel.tcp_mtu(), seed)?;
            flows.push(Self {
                name,
                route: Route::Path(experiment.paths.len() + 1),
                direction: Direction::Forward,
                start: Instant::NEVER,
                stop: Instant::NEVER,
                protocol: FlowProtocol::Tcp(TcpFlow::new(config, Application::Relayed, *size)),
                split: Some(SplitConnection::Far(FarConnection::new(index as u16))),
            });
            let near = &mut flows[index];
            near.route = Route::Path(experiment.paths.len());
            if let FlowProtocol::Tcp(tcp) = &near.protocol {
                near.split = Some(SplitConnection::Near(NearConnection::new(far, size.map(|_| tcp.end()))));
            }
        }
        Ok(flows)
    }

    fn new(experiment: &Experiment, flow: &Flow, seed: u64) -> Result<Self, Error> {
        let offset = RngStream::named(seed, &format!("flow {} start", flow.name)).below(flow.start_within.0 + 1);
        let start = flow.start + Span(offset);
        let protocol = match &flow.kind {
            FlowKind::Tcp { congestion, application, size, host, multipath } => {
                let mtu = match flow.route {
                    Route::Path(path) => experiment.paths[path].mtu,
                    Route::Subflows => min_mtu(experiment, multipath.as_deref()),
                    Route::Tunnel => experiment.tunnel.as_ref().expect("the flow's route").tcp_mtu(),
                };
                let mut config = TcpConfig::new(&flow.name, congestion, host, multipath.as_deref(), mtu, seed)?;
                config.has_reader = experiment.relay_of(flow).is_some();
                config.preemption = preemption(experiment, flow, seed);
                let has_offload = || experiment.tunnel.as_ref().is_some_and(model::Tunnel::has_offload);
                if flow.route == Route::Tunnel && !config.has_reader && host.tso && has_offload() {
                    config.enable_offload();
                }
                let application = Application::new(application, &flow.name, start, config.mss(), seed);
                let mut tcp = TcpFlow::new(config, application, *size);
                tcp.reader = reader(experiment, flow, seed);
                FlowProtocol::Tcp(tcp)
            }
            FlowKind::ConstantRate { rate, packet } => FlowProtocol::Other(Box::new(Udp::new(*rate, *packet))),
            FlowKind::Hosted(hosted) => FlowProtocol::Other(Box::new(HostedFlow::new(experiment, flow, hosted, seed)?)),
        };
        let stop = flow.stop.unwrap_or(Instant::NEVER);
        let direction = if flow.reverse { Direction::Reverse } else { Direction::Forward };
        Ok(Self { name: flow.name.clone(), route: flow.route, direction, start, stop, protocol, split: None })
    }

    /// Leaves the distributions of times out of the record.
    pub(crate) fn leave_out_distributions(&mut self) {
        match &mut self.protocol {
            FlowProtocol::Tcp(tcp) => {
                tcp.rtt.turn_off();
                match &mut tcp.connection {
                    Connection::Single(_) => {}
                    Connection::Multi(multi) => multi.stats.leave_out_distributions(),
                    Connection::Quic(quic) => quic.stats.leave_out_distributions(),
                }
            }
            FlowProtocol::Other(protocol) => protocol.leave_out_distributions(),
        }
    }

    /// Bytes delivered to the application.
    pub(crate) fn delivered_bytes(&self) -> u64 {
        match &self.protocol {
            FlowProtocol::Tcp(tcp) => tcp.delivered_bytes(),
            FlowProtocol::Other(protocol) => protocol.counters().delivered_bytes,
        }
    }

    /// Whether its application always has data.
    pub(crate) fn is_greedy(&self) -> bool {
        match &self.protocol {
            FlowProtocol::Tcp(tcp) => tcp.is_greedy(),
            FlowProtocol::Other(protocol) => protocol.counters().is_greedy,
        }
    }

    /// Completion time of a flow of limited size.
    pub(crate) fn completed(&self) -> Option<Instant> {
        match &self.protocol {
            FlowProtocol::Tcp(tcp) => tcp.completed,
            FlowProtocol::Other(protocol) => protocol.counters().completed,
        }
    }

    /// Called at the end of the run.
    pub(crate) fn finish(&mut self, end: Instant) {
        if let FlowProtocol::Tcp(tcp) = &mut self.protocol {
            tcp.finish(self.stop.min(end));
        }
    }
}

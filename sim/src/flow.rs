//! The flows of a run.

use crate::daemon::{Sleeper, draw_preemption};
use crate::error::Error;
use crate::hosted::HostedFlow;
use crate::network::Network;
use crate::packet::{Direction, Route};
use crate::protocol::{Host, Protocol};
use crate::split_connection::{FarConnection, NearConnection, SplitConnection};
use crate::stream::{Application, ConfigSource, Mptcp, Quic, StreamFlow, Tcp, TcpFlow};
use crate::udp::Udp;
use scenario::model::{self, Experiment, Flow, FlowKind, MultipathTransport};
use std::any::Any;
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
    pub protocol: Box<dyn Protocol>,
    /// The part of a relayed flow that it is, if any.
    pub split: Option<SplitConnection>,
}

/// The smallest MTU of the paths that a flow can take, bytes: it decides the MSS of all subflows.
fn min_mtu(experiment: &Experiment, flow: &Flow) -> u32 {
    match flow.route {
        model::Route::Path(path) => experiment.paths[path].mtu,
        model::Route::Subflows => {
            let subflows = flow.kind.subflows().iter();
            subflows.map(|subflow| experiment.paths[subflow.path].mtu).min().expect("an MPTCP flow has a subflow")
        }
        model::Route::Tunnel => experiment.tunnel.as_ref().expect("the flow's route").tcp_mtu(),
    }
}

/// The route of a flow; of one with subflows, that of the first.
fn route(flow: &Flow) -> Route {
    match (flow.route, flow.kind.subflows().first()) {
        (model::Route::Path(path), _) => Route::Path(path as u16),
        (model::Route::Subflows, first) => Route::Path(first.map_or(0, |subflow| subflow.path as u16)),
        (model::Route::Tunnel, _) => Route::Tunnel,
    }
}

/// The receiving program of a flow, if its latency is drawn.
fn reader(experiment: &Experiment, flow: &Flow, seed: u64) -> Option<Box<Sleeper>> {
    let tunnel = experiment.tunnel.as_ref().filter(|_| flow.route == model::Route::Tunnel)?;
    let latency = Some(tunnel.nuisances.reader?);
    Some(Box::new(Sleeper::new(latency, seed, &format!("flow {} reader", flow.name))))
}

/// The number of acknowledgements after which the receiving program of a flow preempts the tunnel's daemon, if it is drawn.
fn preemption(experiment: &Experiment, flow: &Flow, seed: u64) -> Option<u64> {
    let tunnel = experiment.tunnel.as_ref().filter(|_| flow.route == model::Route::Tunnel)?;
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
            let congestion = &relay.congestion;
            let tcp = Tcp::new(ConfigSource { name: &name, congestion, host, mtu: tunnel.tcp_mtu(), seed })?;
            flows.push(Self {
                name,
                route: Route::Path(experiment.paths.len() as u16 + 1),
                direction: Direction::Forward,
                start: Instant::NEVER,
                stop: Instant::NEVER,
                protocol: Box::new(TcpFlow::new(tcp, |_| Application::Relayed, *size)),
                split: Some(SplitConnection::Far(FarConnection::new(index as u16))),
            });
            let near = &mut flows[index];
            near.route = Route::Path(experiment.paths.len() as u16);
            if let Some(tcp) = near.tcp() {
                tcp.delivery_times = Some(Box::default());
                let end = size.map(|_| tcp.end());
                near.split = Some(SplitConnection::Near(NearConnection::new(far, end)));
            }
        }
        Ok(flows)
    }

    fn new(experiment: &Experiment, flow: &Flow, seed: u64) -> Result<Self, Error> {
        let offset = RngStream::named(seed, &format!("flow {} start", flow.name)).below(flow.start_within.0 + 1);
        let start = flow.start + Span(offset);
        let protocol: Box<dyn Protocol> = match &flow.kind {
            FlowKind::Tcp { congestion, application, size, host, multipath } => {
                let mtu = min_mtu(experiment, flow);
                let source = ConfigSource { name: &flow.name, congestion, host, mtu, seed };
                let application = |mss| Application::new(application, &flow.name, start, mss, seed);
                match multipath.as_deref().map(|multipath| (multipath, &multipath.transport)) {
                    None => {
                        let mut tcp = TcpFlow::new(tcp(experiment, flow, source)?, application, *size);
                        tcp.reader = reader(experiment, flow, seed);
                        Box::new(tcp)
                    }
                    Some((multipath, MultipathTransport::Mptcp(options))) => {
                        Box::new(StreamFlow::new(Mptcp::new(source, multipath, *options)?, application, *size))
                    }
                    Some((multipath, MultipathTransport::Quic(options))) => {
                        Box::new(StreamFlow::new(Quic::new(source, multipath, *options)?, application, *size))
                    }
                }
            }
            FlowKind::ConstantRate { rate, packet } => Box::new(Udp::new(*rate, *packet)),
            FlowKind::Hosted(hosted) => Box::new(HostedFlow::new(experiment, flow, hosted, seed)?),
        };
        let stop = flow.stop.unwrap_or(Instant::NEVER);
        let direction = if flow.reverse { Direction::Reverse } else { Direction::Forward };
        Ok(Self { name: flow.name.clone(), route: route(flow), direction, start, stop, protocol, split: None })
    }

    /// Calls its protocol, which may use the network. `index` is the number of the flow.
    pub(crate) fn call(
        &mut self,
        index: u16,
        network: &mut Network,
        call: impl FnOnce(&mut dyn Protocol, &mut Host<'_>),
    ) {
        let &mut Self { route, direction, start, stop, ref mut protocol, .. } = self;
        call(&mut **protocol, &mut Host { network, flow: index, route, direction, start, stop });
    }

    /// Calls its TCP, if it is a flow of TCP over one path.
    pub(crate) fn call_tcp(
        &mut self,
        index: u16,
        network: &mut Network,
        call: impl FnOnce(&mut TcpFlow, &mut Host<'_>),
    ) {
        self.call(index, network, |protocol, host| {
            let protocol: &mut dyn Any = protocol;
            if let Some(tcp) = protocol.downcast_mut() {
                call(tcp, host);
            }
        });
    }

    /// Its TCP, if it is a flow of TCP over one path.
    pub(crate) fn tcp(&mut self) -> Option<&mut TcpFlow> {
        let protocol: &mut dyn Any = &mut *self.protocol;
        protocol.downcast_mut()
    }

    /// The near connection, if the flow is relayed.
    pub(crate) fn near_connection(&mut self) -> Option<&mut NearConnection> {
        match &mut self.split {
            Some(SplitConnection::Near(split)) => Some(split),
            _ => None,
        }
    }

    /// The far connection, if the flow is one.
    pub(crate) fn far_connection(&mut self) -> Option<&mut FarConnection> {
        match &mut self.split {
            Some(SplitConnection::Far(split)) => Some(split),
            _ => None,
        }
    }
}

/// The part of flow `index` that reaches its receiver: its far connection, or the flow itself.
pub(crate) fn receiving(flows: &[FlowState], index: usize) -> &FlowState {
    match &flows[index].split {
        Some(SplitConnection::Near(split)) => &flows[usize::from(split.far)],
        _ => &flows[index],
    }
}

/// A flow of TCP over one path or through a tunnel.
fn tcp(experiment: &Experiment, flow: &Flow, source: ConfigSource<'_>) -> Result<Tcp, Error> {
    let mut tcp = Tcp::new(source)?;
    tcp.has_reader = experiment.relay_of(flow).is_some();
    tcp.preemption = preemption(experiment, flow, source.seed);
    let has_offload = || experiment.tunnel.as_ref().is_some_and(model::Tunnel::has_offload);
    let uses_offload = flow.route == model::Route::Tunnel && !tcp.has_reader && source.host.tso && has_offload();
    tcp.config.sender.offload = uses_offload;
    Ok(tcp)
}

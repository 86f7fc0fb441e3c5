//! The flows of a run: TCP and MPTCP, or UDP at a constant rate.

use crate::application::Application;
use crate::connection::Connection;
use crate::daemon::{Sleeper, draw_preemption};
use crate::error::Error;
use crate::packet::Direction;
use crate::split_connection::{FarConnection, NearConnection, SplitConnection};
use crate::tcp::TcpFlow;
use crate::tcp_config::TcpConfig;
use record::Distribution;
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
    Udp(Box<UdpFlow>),
}

/// Both ends of a UDP flow of constant rate.
#[derive(Debug)]
pub(crate) struct UdpFlow {
    /// Size of a datagram from the IP header on, bytes.
    pub packet: u32,
    pub interval: Span,
    pub sent: u64,
    pub received: u64,
    pub delay: Distribution,
    /// The gaps between its datagrams' arrivals.
    pub gaps: ArrivalGaps,
}

/// Gaps at the receiver of a UDP flow. A datagram that later ones have overtaken counts as lost: an application that plays
/// data on arrival has moved on.
#[derive(Debug, Default)]
pub(crate) struct ArrivalGaps {
    latest: Option<Instant>,
    /// The datagram that follows the newest one that arrived.
    next: u64,
    longest: Span,
    longest_loss: u64,
}

impl ArrivalGaps {
    /// Called when datagram `number`, counted from zero, has arrived.
    fn on_arrival(&mut self, now: Instant, number: u64) {
        self.longest = self.longest(now);
        self.latest = Some(now);
        if number >= self.next {
            self.longest_loss = self.longest_loss.max(number - self.next);
            self.next = number + 1;
        }
    }

    /// The longest time between two arrivals, or from the latest until `end`; zero before the first.
    pub(crate) fn longest(&self, end: Instant) -> Span {
        self.longest.max(self.latest.map_or(Span::ZERO, |latest| end.since(latest)))
    }

    /// The greatest number of datagrams in a row that had not arrived when a later one did.
    pub(crate) fn longest_loss(&self) -> u64 {
        self.longest_loss
    }
}

impl UdpFlow {
    /// Called when datagram `number`, sent at `sent`, has arrived.
    pub(crate) fn on_datagram(&mut self, now: Instant, number: u64, sent: Instant) {
        self.received += 1;
        self.delay.add(now.since(sent));
        self.gaps.on_arrival(now, number);
    }
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
            FlowKind::ConstantRate { rate, packet } => {
                let interval = rate.time_for(u64::from(*packet));
                FlowProtocol::Udp(Box::new(UdpFlow {
                    packet: *packet,
                    interval,
                    sent: 0,
                    received: 0,
                    delay: Distribution::default(),
                    gaps: ArrivalGaps::default(),
                }))
            }
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
            FlowProtocol::Udp(source) => source.delay.turn_off(),
        }
    }

    /// Called at the end of the run.
    pub(crate) fn finish(&mut self, end: Instant) {
        if let FlowProtocol::Tcp(tcp) = &mut self.protocol {
            tcp.finish(self.stop.min(end));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_between_arrivals_and_what_is_overtaken_is_lost() {
        let at = |ms| Instant::ZERO + Span::from_millis(ms);
        let mut gaps = ArrivalGaps::default();
        assert_eq!((gaps.longest(at(500)), gaps.longest_loss()), (Span::ZERO, 0), "none before the first arrival");
        for (ms, number) in [(520, 0), (540, 1), (620, 4), (621, 2), (622, 3), (640, 5)] {
            gaps.on_arrival(at(ms), number);
        }
        assert_eq!((gaps.longest(at(650)), gaps.longest_loss()), (Span::from_millis(80), 2));
        assert_eq!(gaps.longest(at(790)), Span::from_millis(150), "the flow was on until then");
    }
}

//! An experiment's network: hosts, routers and links as namespaces and veth pairs with queue disciplines.
//!
//! ```text
//! s0 ---.                                          .--- d0
//! s1 --- l0a --(rate, queue)-- l0b --(delay, loss)-- l0c --- d1
//! ```
//!
//! A link is a chain of routers, a path a chain of links. Data goes from left to right: its queue is in a link's first
//! router, its delay and loss one hop behind, so that a sender's own stack neither sees the queue nor holds packets
//! back for it. The reverse direction has its queue in the last router. Where the scenario says `local`, the queue is
//! in the host instead, as for a tunnel whose device and sockets are part of the scenario, because a full queue then
//! holds back the tunnel. Flows have hosts of their own, since settings and counters belong to a namespace; flows through
//! the tunnel share the tunnel's hosts.
//!
//! - `address`: subnets and addresses. `topology`: namespaces, veth pairs and routes. `shape`: rates, queues, delays,
//!   losses.
//! - `host`: settings of TCP and MPTCP. `tunnel`: the daemons and their configurations. `drawing`: the topology as
//!   text.
//! - `capture`: packet captures. `generators`: programs that make traffic.

mod address;
mod capture;
mod drawing;
mod generators;
mod host;
mod shape;
mod topology;
mod tunnel;

pub(crate) use address::{Family, Subnet};
pub(crate) use capture::CaptureProgram;
pub(crate) use drawing::draw_topology;
pub(crate) use shape::discipline;
pub(crate) use tunnel::ENDS;

use crate::Generator;
use crate::protocol::FlowEnd;
use scenario::model::{Experiment, Flow, FlowKind, Host, Route};
use std::net::SocketAddr;
use units::{Instant, Span};

/// The port of the first flow's sink.
const FIRST_PORT: u16 = 5000;
/// The largest packet, bytes.
pub(crate) const MTU: u32 = 1500;

/// The environment in which a network is built.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    /// Prefix of the namespaces' names.
    pub(crate) prefix: String,
    /// The run's folder, as its processes see it.
    pub(crate) folder: String,
    /// The folder of the daemons' sockets.
    pub(crate) sockets: String,
    /// The program, and the command of the lab's agent, quoted for the shell.
    pub(crate) program: String,
    pub(crate) agent: String,
    /// Whether the kernel has `netem`; otherwise links are emulated.
    pub(crate) netem: bool,
    /// Whether the kernel has RED; otherwise the emulator provides it for the links that it emulates.
    pub(crate) red: bool,
    /// Size of a token bucket, packets.
    pub(crate) burst: u32,
    /// The generator of the traffic.
    pub(crate) generator: Generator,
    /// The program that captures packets, if they are to be captured.
    pub(crate) capture_program: Option<CaptureProgram>,
}

/// A source and a sink, and the paths between them.
#[derive(Clone, Debug)]
struct HostPair {
    paths: Vec<usize>,
    /// The flow whose settings its hosts have: the first TCP flow.
    flow: usize,
}

/// An experiment's network in an environment.
#[derive(Clone, Debug)]
pub(crate) struct Network<'a> {
    experiment: &'a Experiment,
    environment: &'a Environment,
    pairs: Vec<HostPair>,
    /// Index of each flow's pair in `pairs`.
    pair_of: Vec<usize>,
    family: Family,
}

impl<'a> Network<'a> {
    /// The network of an experiment that [`crate::check`] has passed.
    pub(crate) fn new(experiment: &'a Experiment, environment: &'a Environment) -> Self {
        let (mut pairs, mut pair_of) = (Vec::<HostPair>::new(), Vec::new());
        let mut tunnel = None;
        for (k, flow) in experiment.flows.iter().enumerate() {
            let new_pair = pairs.len();
            let pair = if flow.route == Route::Tunnel { *tunnel.get_or_insert(new_pair) } else { new_pair };
            if pair == new_pair {
                pairs.push(HostPair { paths: paths(experiment, flow), flow: k });
            } else if host(&experiment.flows[pairs[pair].flow]).is_none() {
                pairs[pair].flow = k;
            }
            pair_of.push(pair);
        }
        Self { experiment, environment, pairs, pair_of, family: Family::of_all(experiment) }
    }

    /// The commands that build the network, in order.
    pub(crate) fn setup(&self) -> Vec<String> {
        let mut lines = self.interfaces();
        lines.extend(self.routes());
        lines.extend(self.pairs.iter().enumerate().flat_map(|(k, pair)| self.settings(k, pair)));
        lines.extend(self.shapers());
        lines.extend(self.daemons());
        lines.extend(self.files());
        lines.extend(self.captures());
        lines
    }

    /// The commands of the experiment's events, each with its time.
    pub(crate) fn events(&self) -> Vec<(Span, String)> {
        let mut links = self.experiment.links.clone();
        let events = self.experiment.events.iter().filter(|event| self.is_used(event.link)).flat_map(|event| {
            let offset = event.at.since(Instant::ZERO);
            self.change(&mut links[event.link], event).into_iter().map(move |line| (offset, line))
        });
        events.collect()
    }

    /// Both ends of flow `k`: namespaces and addresses.
    pub(crate) fn flow_ends(&self, k: usize) -> [FlowEnd; 2] {
        let pair = self.pair_of[k];
        let path = self.pairs[pair].paths[0];
        let flow_end = |is_source: bool| {
            let subnet = if is_source { Subnet::source(pair, path) } else { Subnet::sink(pair, path) };
            let address = match self.experiment.flows[k].route {
                Route::Tunnel => self.family.inner(if is_source { 1 } else { 2 }),
                Route::Path(_) | Route::Subflows => subnet.address(self.family, 1),
            };
            FlowEnd { netns: self.host(is_source, pair), address: SocketAddr::new(address, port_of(k)) }
        };
        [flow_end(true), flow_end(false)]
    }

    /// The source's address on each path of flow `k`.
    pub(crate) fn subflows(&self, k: usize) -> Vec<std::net::IpAddr> {
        let pair = self.pair_of[k];
        self.pairs[pair].paths.iter().map(|p| Subnet::source(pair, *p).address(self.family, 1)).collect()
    }

    /// Commands that take down the sources' devices.
    pub(crate) fn stop_senders(&self) -> Vec<String> {
        self.interface_ends()
            .step_by(2)
            .map(|(netns, device)| format!("ip -n {netns} link set dev {device} down"))
            .collect()
    }

    /// Commands that print the counters of the hosts' devices: for each pair and path the source's, then the sink's.
    pub(crate) fn device_counters(&self) -> Vec<String> {
        self.interface_ends().map(|(netns, device)| format!("ip -s -j -n {netns} link show dev {device}")).collect()
    }

    /// Pair and path of each two consecutive commands of [`Self::device_counters`].
    pub(crate) fn host_paths(&self) -> Vec<(usize, usize)> {
        self.pairs.iter().enumerate().flat_map(|(k, pair)| pair.paths.iter().map(move |p| (k, *p))).collect()
    }

    /// The pair of flow `k`.
    pub(crate) fn pair(&self, k: usize) -> usize {
        self.pair_of[k]
    }

    /// Whether the counters of its hosts are recorded with flow `k`, because the hosts of a tunnel have several flows.
    pub(crate) fn has_host_counters(&self, k: usize) -> bool {
        self.pairs[self.pair_of[k]].flow == k
    }

    /// Namespace and device of both ends of each pair's paths: source, sink, source, sink ...
    fn interface_ends(&self) -> impl Iterator<Item = (String, String)> + '_ {
        let source_and_sink =
            |(k, p): (usize, usize)| [true, false].map(|is_source| (self.host(is_source, k), uplink(p)));
        self.host_paths().into_iter().flat_map(source_and_sink)
    }

    /// The namespace of a pair's source or sink.
    fn host(&self, is_source: bool, pair: usize) -> String {
        format!("{}{}{pair}", self.environment.prefix, if is_source { 's' } else { 'd' })
    }
}

/// The port of flow `k`.
fn port_of(k: usize) -> u16 {
    FIRST_PORT + k as u16
}

/// A host's device on path `p`.
fn uplink(p: usize) -> String {
    format!("p{p}")
}

fn paths(experiment: &Experiment, flow: &Flow) -> Vec<usize> {
    match flow.route {
        Route::Path(path) => vec![path],
        Route::Tunnel => experiment.tunnel.as_ref().map_or(Vec::new(), |tunnel| tunnel.paths.clone()),
        Route::Subflows => flow.kind.subflows().iter().map(|subflow| subflow.path).collect(),
    }
}

/// The settings of a TCP flow's hosts.
fn host(flow: &Flow) -> Option<&Host> {
    match &flow.kind {
        FlowKind::Tcp { host, .. } => Some(host),
        FlowKind::ConstantRate { .. } | FlowKind::Hosted(_) => None,
    }
}

#[cfg(test)]
mod tests;

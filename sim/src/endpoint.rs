//! Flows with their place in the network: TCP, or a constant-rate source.

use crate::application::Application;
use crate::distribution::Distribution;
use crate::error::Error;
use crate::setup::Setup;
use crate::tcp::Tcp;
use scenario::model::{Experiment, Flow, FlowKind, Multipath, Route};
use units::{Instant, Span, Stream};

/// A flow at work.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub name: String,
    pub route: Route,
    pub start: Instant,
    pub stop: Instant,
    pub kind: Kind,
}

/// What a flow is.
#[derive(Debug)]
pub(crate) enum Kind {
    Tcp(Box<Tcp>),
    Datagrams(Datagrams),
}

/// Both ends of a constant-rate flow.
#[derive(Debug)]
pub(crate) struct Datagrams {
    /// Size of each, bytes.
    pub packet: u32,
    pub interval: Span,
    pub sent: u64,
    pub received: u64,
    pub delay: Distribution,
}

/// All subflows have one MSS: that of the path with the least MTU.
fn least_mtu(experiment: &Experiment, multipath: Option<&Multipath>) -> u32 {
    let subflows = multipath.into_iter().flat_map(|multipath| &multipath.subflows);
    subflows.map(|subflow| experiment.paths[subflow.path].mtu).min().expect("an MPTCP flow has a subflow")
}

impl Endpoint {
    pub(crate) fn new(experiment: &Experiment, flow: &Flow, seed: u64) -> Result<Self, Error> {
        let late = Stream::named(seed, &format!("flow {} start", flow.name)).below(flow.start_within.0 + 1);
        let start = flow.start + Span(late);
        let kind = match &flow.kind {
            FlowKind::Tcp { congestion, application, size, host, multipath } => {
                let mtu = match flow.route {
                    Route::Path(path) => experiment.paths[path].mtu,
                    Route::Subflows => least_mtu(experiment, multipath.as_deref()),
                    Route::Tunnel => experiment.tunnel.as_ref().expect("the flow's route").mtu,
                };
                let setup = Setup::new(&flow.name, congestion, host, multipath.as_deref(), mtu, seed)?;
                let application = Application::new(application, &flow.name, start, setup.mss(), seed);
                Kind::Tcp(Box::new(Tcp::new(setup, application, *size)))
            }
            FlowKind::ConstantRate { rate, packet } => {
                let interval = rate.time_for(u64::from(*packet));
                Kind::Datagrams(Datagrams {
                    packet: *packet,
                    interval,
                    sent: 0,
                    received: 0,
                    delay: Distribution::default(),
                })
            }
        };
        let stop = flow.stop.unwrap_or(Instant::NEVER);
        Ok(Self { name: flow.name.clone(), route: flow.route, start, stop, kind })
    }

    /// The run ends.
    pub(crate) fn finish(&mut self, end: Instant) {
        if let Kind::Tcp(tcp) = &mut self.kind {
            tcp.finish(self.stop.min(end));
        }
    }
}

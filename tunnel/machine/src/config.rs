//! Configuration of an [`Endpoint`](super::Endpoint) and of its paths, for the daemon, the simulator and the scenario's
//! schema alike.

use crate::Entropy;
use control::{AlgorithmChoice, Controller};
use schedule::Scheduler;
use units::{Rate, Span};
use wire::frame::PathName;

/// Maximum number of paths.
pub const MAX_PATHS: usize = 16;

/// The name that turns congestion control off.
pub const OFF: &str = "off";

/// What is wrong with a [scheduler that watches](Scheduler::watches) and a tunnel without congestion control.
pub const NEEDS_CONGESTION: &str = "decides by what congestion control measures, and `congestion` is \"off\"";

/// Options of a tunnel.
#[derive(Clone, Debug, PartialEq)]
pub struct TunnelOptions {
    /// Congestion control of all paths, by its name in `control::registry`; [`OFF`] in networks whose load is managed
    /// otherwise (RFC 8086, section 3).
    pub congestion: AlgorithmChoice,
    /// The scheduler, by its name in `schedule::REGISTRY`. It lets packets wait at the connection
    /// ([`schedule::Fill::Cwnd`]).
    pub scheduler: AlgorithmChoice,
    /// Whether lost fragments are retransmitted.
    pub retransmit: bool,
    /// Whether fragments are delivered in the order of their streams.
    pub in_order: bool,
    /// Whether a fragment that arrives after it was given up is delivered out of order instead of being dropped.
    pub deliver_late: bool,
    /// Maximum reorder timeout.
    pub max_reorder_timeout: Span,
    /// Silence after which a path is probed while the tunnel is in use.
    pub probe_interval: Span,
    /// CoDel's target at the ingress queue.
    pub codel_target: Span,
    /// CoDel's interval at the ingress queue.
    pub codel_interval: Span,
    /// Whether pure TCP acknowledgements that wait in the ingress queue give way to newer ones of their connection.
    pub ack_filter: bool,
    /// Maximum memory of each of the ingress queue, the fragments in flight, and the reorder buffer, bytes. For
    /// fragments in flight it limits their own bytes; the buffers that they keep in use may have three times as many.
    pub memory_bytes: u64,
    /// The real-time class; without it sparse flows go first, and nothing is copied.
    pub realtime: Option<RealtimeOptions>,
}

/// Options of the real-time class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealtimeOptions {
    /// Share of the capacity of all paths that copies may use, in 1000ths; 0 for no copies.
    pub copy_permille: u32,
    /// Whether metered paths carry copies.
    pub copy_on_metered: bool,
    /// Maximum share of the capacity of all paths that goes ahead of bulk traffic, in 1000ths.
    pub share_permille: u32,
}

impl Default for RealtimeOptions {
    fn default() -> Self {
        Self { copy_permille: 50, copy_on_metered: false, share_permille: 500 }
    }
}

impl Default for TunnelOptions {
    fn default() -> Self {
        Self {
            congestion: "discern".into(),
            scheduler: "overflow".into(),
            retransmit: true,
            in_order: true,
            deliver_late: false,
            max_reorder_timeout: Span::from_millis(500),
            probe_interval: Span::from_millis(200),
            // Longer than RFC 8289's 5 ms for a router: a flow's own queue delays no other flow here, and keeps slow
            // paths in use after the flow has reduced its window.
            codel_target: Span::from_millis(20),
            // Longer than RFC 8289's 100 ms: a path that is drained to measure it (BBR's PROBE_RTT, 200 ms) builds a
            // queue that is not a sign of too much traffic.
            codel_interval: Span::from_millis(300),
            ack_filter: true,
            memory_bytes: 64 << 20,
            realtime: None,
        }
    }
}

impl TunnelOptions {
    /// The configuration of an endpoint whose paths have these weights, by path id, and which draws from `entropy`.
    ///
    /// # Errors
    /// A message that names an unknown algorithm, a parameter that the algorithm does not have, or a scheduler that needs
    /// congestion control if there is none.
    pub fn endpoint_config(&self, weights: &[u32], entropy: Entropy) -> Result<EndpointConfig, String> {
        let AlgorithmChoice { name, parameters } = &self.scheduler;
        let entry = schedule::find(name).ok_or_else(|| format!("there is no scheduler `{name}`"))?;
        let mut scheduler = entry.scheduler(weights, 0, parameters).map_err(|error| format!("{name}: {error}"))?;
        let controller = self.controller()?;
        if controller.is_none() && scheduler.watches() {
            return Err(format!("scheduler `{name}`: {NEEDS_CONGESTION}"));
        }
        let controller = controller.map(|controller| scheduler.watch(controller));
        Ok(EndpointConfig { scheduler, controller, options: self.clone(), entropy })
    }

    fn controller(&self) -> Result<Option<Box<dyn Controller>>, String> {
        let AlgorithmChoice { name, parameters } = &self.congestion;
        if name == OFF {
            return Ok(None);
        }
        let entry = control::registry::find(name).ok_or_else(|| format!("there is no algorithm `{name}`"))?;
        entry.controller(parameters).map(Some).map_err(|error| format!("{name}: {error}"))
    }
}

/// Configuration of an endpoint, from [`TunnelOptions::endpoint_config`].
#[derive(Debug)]
pub struct EndpointConfig {
    /// Picks the path of the next fragment.
    pub scheduler: Box<dyn Scheduler>,
    /// Congestion control of all paths, if any.
    pub controller: Option<Box<dyn Controller>>,
    /// The options.
    pub options: TunnelOptions,
    /// The source of ping tokens, and of the seed of the controller's random choices.
    pub entropy: Entropy,
}

/// The classes of packets that a path carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathClasses {
    /// All packets.
    #[default]
    All,
    /// The real-time class only. No other packet uses the path, even if all other paths fail.
    Realtime,
    /// All except the real-time class, which uses the path only if no other path works.
    Bulk,
}

/// Configuration of one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathConfig {
    /// Whether the path is used only while no regular path works.
    pub backup: bool,
    /// Whether the path's traffic costs money: the path is used as a backup, and probed seldom.
    pub metered: bool,
    /// Whether the path is used only while the regular paths are full, or none works.
    pub secondary: bool,
    /// The classes of packets that this end sends on it.
    pub classes: PathClasses,
    /// The largest datagram (UDP payload) that path MTU discovery tries, bytes.
    pub max_datagram_size: u32,
    /// Bytes of the IP and UDP headers around a datagram.
    pub header_bytes: u32,
    /// Maximum send rate, headers included; `None` if congestion control alone decides.
    pub max_rate: Option<Rate>,
    /// The name that the peer gets; `None` for a path that the peer has opened.
    pub name: Option<PathName>,
}

impl PathConfig {
    /// A regular path for all packets, without a rate limit.
    #[must_use]
    pub const fn regular(max_datagram_size: u32, header_bytes: u32) -> Self {
        let classes = PathClasses::All;
        Self {
            backup: false,
            metered: false,
            secondary: false,
            classes,
            max_datagram_size,
            header_bytes,
            max_rate: None,
            name: None,
        }
    }
}

//! noq's controllers and their factory.

use crate::{Error, Params};
use bridge::{Algorithm, Group, INITIAL_WINDOW, Path, StackLimits};
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use std::any::Any;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use units::Span;

const NOQ: StackLimits = StackLimits { name: "noq 1", paces: true, counts_marks: false };

/// Builds the controllers of the paths of a connection.
#[derive(Debug)]
pub struct Factory {
    algorithm: Algorithm,
    /// The seed of the next group of paths.
    seed: AtomicU64,
    /// The group of the connection, once it has a path, and its start; `None` for a factory of a whole endpoint.
    connection: Option<OnceLock<(Instant, Group)>>,
}

impl Factory {
    /// A factory for **one connection**, whose paths share the algorithm `name` with the parameters `params`; the others have
    /// their defaults.
    ///
    /// # Errors
    /// There is no such algorithm, a parameter is wrong, or noq does not tell what the algorithm needs.
    pub fn new(name: &str, params: &Params) -> Result<Self, Error> {
        Ok(Self::of(Algorithm::new(name, params, NOQ)?))
    }

    /// A factory for all connections of an endpoint: each path is controlled alone.
    ///
    /// # Errors
    /// As [`new`](Self::new), and for an algorithm that couples the paths of a connection.
    pub fn for_endpoint(name: &str, params: &Params) -> Result<Self, Error> {
        let factory = Self { connection: None, ..Self::new(name, params)? };
        if factory.algorithm.is_coupled() {
            let reason = format!("`{name}` couples the paths of a connection, so that each needs a `Factory::new`");
            return Err(Error::Unsupported(reason));
        }
        Ok(factory)
    }

    /// A factory for another connection with the same algorithm and parameters, or for another endpoint.
    #[must_use]
    pub fn another(&self) -> Self {
        let connection = self.connection.is_some().then(OnceLock::new);
        Self { connection, ..Self::of(self.algorithm.clone()) }
    }

    /// With this seed of the algorithm's random numbers instead of a random one, so that a simulation can be repeated.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed: AtomicU64::new(seed), ..self }
    }

    fn of(algorithm: Algorithm) -> Self {
        let seed = AtomicU64::new(RandomState::new().hash_one(0));
        Self { algorithm, seed, connection: Some(OnceLock::new()) }
    }

    pub(crate) fn controller(&self, now: Instant, mtu: u16) -> Adapter {
        let new_group = || (now, self.algorithm.group(self.seed.fetch_add(1, Ordering::Relaxed)));
        let (start, group) =
            self.connection.as_ref().map_or_else(new_group, |connection| connection.get_or_init(new_group).clone());
        let path = group.path(since(start, now), mtu);
        Adapter { start, path, mtu }
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(self.controller(now, current_mtu))
    }
}

fn since(start: Instant, time: Instant) -> units::Instant {
    units::Instant::ZERO + Span(time.saturating_duration_since(start).as_nanos() as u64)
}

/// The controller of a path. noq clones that of a path whose port may have changed: clones are the same path.
#[derive(Clone, Debug)]
pub(crate) struct Adapter {
    start: Instant,
    path: Path,
    mtu: u16,
}

impl Adapter {
    fn at(&self, time: Instant) -> units::Instant {
        since(self.start, time)
    }

    /// Packet `number`, which was sent at `sent`, has arrived.
    pub(crate) fn on_acked(&mut self, now: Instant, sent: Instant, number: u64, app_limited: bool) {
        self.path.set_app_limited(app_limited);
        self.path.on_acked(self.at(now), self.at(sent), Some(number));
    }
}

impl Controller for Adapter {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        self.path.on_sent(self.at(now), bytes.into(), Some(pn));
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, _bytes: u64, pn: u64, app_limited: bool, _rtt: &RttEstimator) {
        self.on_acked(now, sent, pn, app_limited);
    }

    fn on_end_acks(&mut self, _now: Instant, in_flight: u64, _app_limited: bool, _largest: Option<u64>) {
        self.path.on_acks_end(in_flight);
    }

    fn on_packet_lost(&mut self, _lost_bytes: u16, pn: u64, now: Instant) {
        self.path.on_lost(self.at(now), pn);
    }

    /// Losses have been told one by one.
    fn on_congestion_event(
        &mut self,
        now: Instant,
        _sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        _lost_bytes: u64,
        _largest_lost_pn: u64,
    ) {
        if is_ecn {
            self.path.on_ce(self.at(now), 1);
        }
        if is_persistent_congestion {
            self.path.on_persistent_congestion(self.at(now));
        }
    }

    fn on_spurious_congestion_event(&mut self) {
        self.path.on_spurious_loss();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = new_mtu;
        self.path.set_mtu(new_mtu);
    }

    fn window(&self) -> u64 {
        self.path.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window();
        metrics.ssthresh = self.path.ssthresh();
        metrics.pacing_rate = self.path.pacing_rate().map(|rate| rate.bytes_in(Span::from_secs(1)));
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        u64::from(INITIAL_WINDOW) * u64::from(self.mtu)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

//! quinn's controllers and their factory.

use crate::{Error, Params};
use bridge::{Algorithm, INITIAL_WINDOW, Path, StackLimits};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use std::any::Any;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use units::Span;

const QUINN: StackLimits = StackLimits { name: "quinn 0.11", paces: false, counts_marks: false };
/// Transmissions below carry acknowledgements only, bytes. quinn does not say which do.
const MIN_DATA_BYTES: u64 = 100;

/// Builds the controllers of quinn's connections: one each, all with the same algorithm.
#[derive(Debug)]
pub struct Factory {
    algorithm: Algorithm,
    /// The seed of the next controller.
    seed: AtomicU64,
}

impl Factory {
    /// A factory of controllers with the algorithm `name` and the parameters `params`; the others have their defaults.
    ///
    /// # Errors
    /// There is no such algorithm, a parameter is wrong, or quinn cannot carry out what the algorithm decides.
    pub fn new(name: &str, params: &Params) -> Result<Self, Error> {
        let algorithm = Algorithm::new(name, params, QUINN)?;
        Ok(Self { algorithm, seed: AtomicU64::new(RandomState::new().hash_one(0)) })
    }

    /// With this seed of the algorithm's random numbers instead of a random one, so that a simulation can be repeated.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed: AtomicU64::new(seed), ..self }
    }

    pub(crate) fn controller(&self, now: Instant, mtu: u16) -> Adapter {
        let group = self.algorithm.group(self.seed.fetch_add(1, Ordering::Relaxed));
        Adapter { start: now, path: group.path(units::Instant::ZERO, mtu), mtu }
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(self.controller(now, current_mtu))
    }
}

/// The controller of a connection. quinn clones that of a path whose port may have changed: clones are the same path.
#[derive(Clone, Debug)]
pub(crate) struct Adapter {
    start: Instant,
    path: Path,
    mtu: u16,
}

impl Adapter {
    fn at(&self, time: Instant) -> units::Instant {
        units::Instant::ZERO + Span(time.saturating_duration_since(self.start).as_nanos() as u64)
    }

    /// A packet that was sent at `sent` has arrived.
    pub(crate) fn on_acked(&mut self, now: Instant, sent: Instant, app_limited: bool) {
        self.path.set_app_limited(app_limited);
        self.path.on_acked(self.at(now), self.at(sent), None);
    }
}

impl Controller for Adapter {
    /// quinn calls this once for each transmission, which may hold several packets.
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        if bytes < MIN_DATA_BYTES {
            return;
        }
        let (now, mut rest) = (self.at(now), bytes);
        while rest > 0 {
            let packet = rest.min(self.mtu.into());
            self.path.on_sent(now, packet, None);
            rest -= packet;
        }
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, _bytes: u64, app_limited: bool, _rtt: &RttEstimator) {
        self.on_acked(now, sent, app_limited);
    }

    fn on_end_acks(&mut self, _now: Instant, in_flight: u64, _app_limited: bool, _largest: Option<u64>) {
        self.path.on_acks_end(in_flight);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent_congestion: bool, lost_bytes: u64) {
        let (now, sent) = (self.at(now), self.at(sent));
        if lost_bytes > 0 {
            self.path.on_lost_bytes(now, sent, lost_bytes);
        } else {
            self.path.on_ce(now, 1);
        }
        if is_persistent_congestion {
            self.path.on_persistent_congestion(now);
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = new_mtu;
        self.path.set_mtu(new_mtu);
    }

    fn window(&self) -> u64 {
        // quinn sends while what is in flight, with the next packet, is less.
        self.path.window() + 1
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window();
        metrics.ssthresh = self.path.ssthresh();
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

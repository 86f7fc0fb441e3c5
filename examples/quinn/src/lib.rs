//! Any congestion control of Ropewalk's registry as quinn's: [`Algorithm`] is a factory of quinn's controllers.
//!
//! quinn tells its controller when a packet was sent, acknowledged or lost, but not which one. So the packets in flight
//! stand in a queue here, by their time of sending. Windows are packets in Ropewalk and bytes in quinn.

use control::{AlgorithmEntry, CaState, Cause, PathEvent, PathInfo};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use sender::path::{AckedPackets, ControllerHandle, Outstanding, PathSender, PriorState};
use sender::recovery::SendSnapshot;
use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;
use units::{PathId, Rate, RngStream, Span};

/// Initial window, packets (RFC 9002, section 7.2).
const INITIAL_WINDOW: u32 = 10;

/// An algorithm of the registry with its defaults.
#[derive(Clone, Copy, Debug)]
pub struct Algorithm(&'static AlgorithmEntry);

impl Algorithm {
    /// The algorithm with this name; `None` if there is none, or if it needs a parameter.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        let entry = control::registry::find(name)?;
        entry.controller(&BTreeMap::new()).ok().map(|_| Self(entry))
    }

    /// A controller of a connection that begins at `start`.
    #[must_use]
    pub fn controller(self, start: Instant, mtu: u16) -> Adapter {
        let controller = self.0.controller(&BTreeMap::new()).ok();
        let mut adapter = Adapter {
            algorithm: self,
            start,
            mtu,
            path: PathSender::new(PathId(0), INITIAL_WINDOW, Span::from_secs(1)),
            controller: ControllerHandle { controller, rng: RngStream::named(1, "quinn") },
            in_flight: VecDeque::new(),
            next: 0,
            ack: None,
        };
        let info = PathInfo { mss: mtu.into(), initial_window: INITIAL_WINDOW, ..PathInfo::DEFAULT };
        adapter.path.start(units::Instant::ZERO, info, &mut adapter.controller);
        adapter
    }
}

impl ControllerFactory for Algorithm {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(self.controller(now, current_mtu))
    }
}

/// A packet in flight.
#[derive(Debug)]
struct Packet {
    number: u64,
    sent: units::Instant,
    snapshot: SendSnapshot,
}

/// quinn's controller.
#[derive(Debug)]
pub struct Adapter {
    algorithm: Algorithm,
    start: Instant,
    mtu: u16,
    path: PathSender,
    controller: ControllerHandle,
    in_flight: VecDeque<Packet>,
    /// The number of the next packet.
    next: u64,
    /// The acknowledgement that quinn is reporting.
    ack: Option<(PriorState, AckedPackets)>,
}

impl Adapter {
    fn at(&self, time: Instant) -> units::Instant {
        units::Instant::ZERO + Span(time.saturating_duration_since(self.start).as_nanos() as u64)
    }

    fn packets(&self) -> u32 {
        self.in_flight.len() as u32
    }

    fn outstanding(&self) -> Outstanding {
        let snd_una = self.in_flight.front().map_or(self.next, |packet| packet.number);
        let packets = self.packets();
        Outstanding { in_flight: packets, packets_out: packets, sacked: 0, snd_una, snd_nxt: self.next }
    }

    /// Ends an acknowledgement, or the report of losses or marks, whose `cause` begins an episode.
    fn finish(&mut self, now: units::Instant, prior: &PriorState, acked: &AckedPackets, cause: Option<Cause>) {
        let outstanding = self.outstanding();
        let (path, controller) = (&mut self.path, &mut self.controller);
        if cause.is_some() || path.ca_state() != CaState::Open {
            path.report_progress(now, prior, acked, &outstanding, controller);
        }
        if outstanding.snd_una >= path.high_seq() {
            match path.ca_state() {
                CaState::Cwr | CaState::Recovery => path.leave_reduction(now, true, controller),
                CaState::Loss => path.leave_loss(),
                CaState::Open | CaState::Disorder => {}
            }
        }
        match cause {
            Some(Cause::Timeout) => path.enter_loss(now, true, &outstanding, controller),
            Some(cause) => {
                let state = if cause == Cause::Loss { CaState::Recovery } else { CaState::Cwr };
                // quinn reports a loss after the acknowledgement that shows it, as a timer would find it.
                path.enter_reduction(now, cause, true, state, &outstanding, controller);
            }
            None => {}
        }
        path.finish_ack(now, prior, acked, &outstanding, controller);
        if path.is_asked_to_reduce(controller) {
            path.enter_reduction(now, Cause::Requested, false, CaState::Cwr, &outstanding, controller);
        }
    }

    /// One packet that was sent at `sent` has arrived.
    pub fn delivered(&mut self, now: Instant, sent: Instant) {
        let (now, sent) = (self.at(now), self.at(sent));
        let prior = self.path.prior_state(self.packets());
        let (_, acked) = self.ack.get_or_insert_with(|| (prior, AckedPackets::default()));
        let index = self.in_flight.partition_point(|packet| packet.sent < sent);
        let Some(packet) = self.in_flight.remove(index) else { return };
        self.path.on_delivered(&mut acked.rate_sample, packet.number, sent, 1, &packet.snapshot);
        acked.pkts_acked += 1;
        acked.rtt = Some(now.since(sent));
    }
}

impl Controller for Adapter {
    /// quinn calls this once for each packet.
    fn on_sent(&mut self, now: Instant, _bytes: u64, _last_packet_number: u64) {
        let (now, packets) = (self.at(now), self.packets());
        self.path.before_send(now, packets, false, &mut self.controller);
        let snapshot = self.path.on_sent(now, packets > 0, packets + 1, 1);
        self.in_flight.push_back(Packet { number: self.next, sent: now, snapshot });
        self.next += 1;
        let outstanding = self.outstanding();
        self.path.validate_cwnd(now, &outstanding, None, &mut self.controller);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, _bytes: u64, _app_limited: bool, _rtt: &RttEstimator) {
        self.delivered(now, sent);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, _largest: Option<u64>) {
        let Some((prior, mut acked)) = self.ack.take() else { return };
        // Packets that nobody acknowledges, because they carry acknowledgements only.
        let packets = in_flight.div_ceil(self.mtu.into()) as usize;
        self.in_flight.drain(..self.in_flight.len().saturating_sub(packets));
        let (now, outstanding) = (self.at(now), self.outstanding());
        if let Some(rtt) = acked.rtt {
            self.path.update_rtt(rtt, outstanding.snd_una, outstanding.snd_nxt);
            self.path.update_min_rtt(now, rtt);
        }
        (acked.advanced, acked.may_raise_cwnd) = (true, true);
        self.finish(now, &prior, &acked, None);
        if app_limited {
            self.path.mark_app_limited(self.packets());
        }
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent_congestion: bool, lost_bytes: u64) {
        let (now, sent) = (self.at(now), self.at(sent));
        let prior = self.path.prior_state(self.packets());
        let until = self.in_flight.partition_point(|packet| packet.sent <= sent);
        let lost = (lost_bytes.div_ceil(self.mtu.into()) as usize).min(until);
        let largest = until.checked_sub(1).map_or(self.next, |index| self.in_flight[index].number);
        let newest_lost = self.in_flight.drain(until - lost..until).next_back().map(|packet| packet.snapshot);
        self.path.count_lost(lost as u32);
        // No reaction to packets that were sent before the latest reduction (RFC 9002, section 7.3.1).
        let begins = largest >= self.path.high_seq();
        let cause = match (is_persistent_congestion, lost_bytes) {
            (true, _) => Some(Cause::Timeout),
            (false, 0) => begins.then_some(Cause::EcnMark),
            _ => begins.then_some(Cause::Loss),
        };
        self.finish(now, &prior, &AckedPackets { newest_lost, ..AckedPackets::default() }, cause);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = new_mtu;
        let event = PathEvent::MssChanged { mss: new_mtu.into() };
        self.path.notify(self.path.last_sent(), &event, &mut self.controller);
    }

    fn window(&self) -> u64 {
        u64::from(self.path.decision().cwnd) * u64::from(self.mtu)
    }

    fn metrics(&self) -> ControllerMetrics {
        let (decision, mut metrics) = (self.path.decision(), ControllerMetrics::default());
        metrics.congestion_window = self.window();
        metrics.ssthresh = Some(u64::from(decision.ssthresh) * u64::from(self.mtu));
        metrics.pacing_rate = decision.pacing_rate.map(Rate::as_bits);
        metrics
    }

    /// quinn clones the controller of a path that may have changed: the other path has a new one.
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.algorithm.controller(self.start, self.mtu))
    }

    fn initial_window(&self) -> u64 {
        u64::from(INITIAL_WINDOW) * u64::from(self.mtu)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

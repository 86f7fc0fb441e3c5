//! One end of a tunnel.
//!
//! ```text
//! device -> ingress queue -> (scheduler, cwnd, pacing) -> path ... path -> reorder buffer -> device
//!                                    \--- kept until acknowledged, retransmitted if lost
//! ```
//!
//! An inner packet is cut into fragments only when a path is ready for them: waiting packets have no path yet, and any
//! path carries any fragment. Fragments are numbered in their stream and kept until they are acknowledged. Each path
//! has packet numbers of its own, and so its own losses, round trips and delivery rates, which feed the congestion
//! control of the registry. Acknowledgements of all paths return by the fastest: a loss on a slow path is detected, and
//! its fragment retransmitted on the fast one, about when the slow path would have delivered it.
//!
//! After each input call [`poll_transmit`](Endpoint::poll_transmit), [`poll_delivery`](Endpoint::poll_delivery) and
//! [`poll_event`](Endpoint::poll_event) until they are empty; then nothing until the next input or the
//! [`deadline`](Endpoint::deadline).

mod bundling;
mod feedback;
mod migration;
mod realtime;
mod receiving;
mod reporting;
mod sending;

use super::config::{EndpointConfig, MAX_PATHS, PathConfig, TunnelOptions};
use super::entropy::Entropy;
use super::fragments::FragmentsInFlight;
use super::ingress::IngressQueue;
use super::packet::{Delivery, Fragment, Payload, Transmit};
use super::path::{CandidateOutcome, FragmentOutcomes, PathTimeout, PingPolicy, PongOutcome, TunnelPath};
use super::realtime::RealtimeClass;
use super::reorder::{ReorderBuffer, ReorderConfig};
use super::secondary::LoadMonitor;
use super::status::{EndpointCounters, EndpointEvent};
use schedule::{Choices, Scheduler};
use sender::path::ControllerHandle;
use std::collections::VecDeque;
use units::{Instant, PathId, RngStream, Span};
use wire::frame::{Ack, Frame, PathName, PathState};

/// The tunnel counts as in use until this long after the latest data.
const TUNNEL_IN_USE_TIME: Span = Span::from_secs(10);
/// A path counts as in use until this long after it last delivered data.
const PATH_IN_USE_TIME: Span = Span::from_millis(500);
/// Age from which a fragment is no longer retransmitted: its inner flow has retransmitted it by then.
const MAX_RETRANSMISSION_AGE: Span = Span::from_secs(1);
/// Fragments retransmitted at the probe timeout of the only path, as probes.
const PTO_PROBES: usize = 2;
/// Maximum number of pings answered per datagram: [`Endpoint`] itself sends one per datagram.
const MAX_PINGS_PER_DATAGRAM: usize = 4;
/// Minimum reorder timeout.
const MIN_REORDER_TIMEOUT: Span = Span::from_millis(5);
/// The reorder timeout before anything is measured.
const INITIAL_REORDER_TIMEOUT: Span = Span::from_millis(100);

/// An inner packet of which some fragments have been sent.
#[derive(Debug)]
struct PartlySentPacket<P> {
    stream: u8,
    /// Whether it is of the real-time class.
    is_realtime: bool,
    packet: P,
    /// Offset of the next fragment, bytes.
    offset: u32,
    length: u32,
    /// Bytes of each fragment. All have the same length except the last one, which is slightly shorter, so that a
    /// driver can send them with GSO.
    fragment_size: u32,
}

/// One end of a tunnel.
#[derive(Debug)]
pub struct Endpoint<P> {
    scheduler: Box<dyn Scheduler>,
    choices: Choices,
    /// The congestion controller of all paths.
    controller: ControllerHandle,
    /// Whether [`EndpointEvent::ControllerFailed`] has been reported.
    controller_failed: bool,
    entropy: Entropy,
    options: TunnelOptions,
    paths: Vec<Option<TunnelPath>>,
    /// The next packet number of each path that was removed: no number is used twice.
    next_packet_numbers: [u64; MAX_PATHS],
    views: Vec<schedule::PathView>,
    ingress: IngressQueue<P>,
    partly_sent: Option<PartlySentPacket<P>>,
    /// The next sequence number of each stream.
    next_sequences: Vec<u32>,
    fragments: FragmentsInFlight<P>,
    realtime: Option<RealtimeClass>,
    reorder: ReorderBuffer<P>,
    /// The path of the current burst, and the number of fragments left in it.
    burst: Option<(PathId, u32)>,
    /// Whether the regular paths are full.
    load: LoadMonitor,
    /// When the scheduler was last asked.
    last_pick: Instant,
    outcomes: FragmentOutcomes,
    control_frames: Vec<Frame>,
    /// Whether the peer takes bundles.
    bundling: bool,
    /// The fragments of the bundle being sent.
    bundle: Vec<Fragment<P>>,
    events: VecDeque<EndpointEvent>,
    /// Outcomes of the validation of candidates.
    candidate_outcomes: VecDeque<(PathId, CandidateOutcome)>,
    counters: EndpointCounters,
    last_data: Option<Instant>,
    /// The reorder timeout last sent to the peer, and the time.
    reorder_timeout_sent: (Span, Instant),
    /// When the reorder timeout was last computed.
    reorder_timeout_computed: Instant,
    /// No control datagram is due before this time. It is set to zero by each event that may make one due earlier.
    control_deadline: Instant,
    /// Whether there was an input since the latest poll that returned nothing to send.
    had_input: bool,
}

impl<P: Payload> Endpoint<P> {
    /// An endpoint without paths.
    #[must_use]
    pub fn new(config: EndpointConfig) -> Self {
        let EndpointConfig { scheduler, controller, options, mut entropy } = config;
        let reorder = ReorderConfig {
            in_order: options.in_order,
            deliver_late: options.deliver_late,
            timeout: INITIAL_REORDER_TIMEOUT.min(options.max_reorder_timeout),
            retransmit: options.retransmit,
            memory_bytes: options.memory_bytes,
        };
        Self {
            scheduler,
            choices: Choices::default(),
            controller: ControllerHandle { controller, rng: RngStream::named(entropy.bits(), "tunnel") },
            controller_failed: false,
            entropy,
            paths: Vec::new(),
            next_packet_numbers: [0; MAX_PATHS],
            views: Vec::new(),
            ingress: IngressQueue::new(&options),
            partly_sent: None,
            next_sequences: vec![0; super::ingress::STREAMS],
            fragments: FragmentsInFlight::default(),
            realtime: options.realtime.map(RealtimeClass::new),
            reorder: ReorderBuffer::new(reorder),
            burst: None,
            load: LoadMonitor::default(),
            last_pick: Instant::ZERO,
            outcomes: FragmentOutcomes::default(),
            control_frames: Vec::new(),
            bundling: false,
            bundle: Vec::new(),
            events: VecDeque::new(),
            candidate_outcomes: VecDeque::new(),
            counters: EndpointCounters::default(),
            last_data: None,
            reorder_timeout_sent: (Span::ZERO, Instant::ZERO),
            reorder_timeout_computed: Instant::ZERO,
            control_deadline: Instant::ZERO,
            had_input: false,
            options,
        }
    }

    /// Adds a path, which is used once a probe has been answered, or changes an existing one.
    ///
    /// # Panics
    /// With a path number of [`MAX_PATHS`] or more.
    pub fn set_path(&mut self, id: PathId, config: PathConfig) {
        assert!(id.index() < MAX_PATHS, "at most {MAX_PATHS} paths");
        // A burst does not go on if the path is used differently.
        (self.control_deadline, self.burst) = (Instant::ZERO, None);
        if self.paths.len() <= id.index() {
            self.paths.resize_with(id.index() + 1, || None);
        }
        match &mut self.paths[id.index()] {
            Some(path) => {
                path.set_config(config);
                path.ping_now();
            }
            slot => {
                *slot = Some(TunnelPath::new(id, config, self.next_packet_numbers[id.index()]));
            }
        }
    }

    /// Removes a path and announces that. Its fragments in flight are retransmitted on the others.
    pub fn remove_path(&mut self, now: Instant, id: PathId) {
        self.forget_path(now, id);
        self.announce_removal(id);
    }

    /// Announces the removal of a path on each of the others: frames may be lost.
    pub fn announce_removal(&mut self, id: PathId) {
        self.control_deadline = Instant::ZERO;
        let frame = Frame::Path { path: id.0 as u8, state: PathState::Removed };
        self.paths.iter_mut().flatten().for_each(|path| path.queue_frame(frame.clone()));
    }

    /// Removes a path without an announcement: the peer knows of the removal. Its fragments in flight are retransmitted
    /// on the others.
    pub fn forget_path(&mut self, now: Instant, id: PathId) {
        self.fail_path(now, id);
        if let Some(path) = self.paths.get_mut(id.index()).and_then(Option::take) {
            self.next_packet_numbers[id.index()] = path.next_packet_number();
        }
        self.update_excess_one_way_delays();
    }

    /// Replaces the scheduler.
    pub fn set_scheduler(&mut self, scheduler: Box<dyn Scheduler>) {
        self.scheduler = scheduler;
        self.burst = None;
    }

    /// The choices of the scheduler, for a driver that keeps them. Their data are fragments.
    pub fn choices_mut(&mut self) -> &mut Choices {
        &mut self.choices
    }

    /// Whether the path exists.
    #[must_use]
    pub fn has_path(&self, id: PathId) -> bool {
        self.path(id).is_some()
    }

    /// Probes all paths now.
    pub fn ping_now(&mut self) {
        self.control_deadline = Instant::ZERO;
        self.paths.iter_mut().flatten().for_each(TunnelPath::ping_now);
    }

    /// An inner packet arrived from the device, of a flow that hashes to `stream`.
    pub fn offer(&mut self, now: Instant, stream: u8, packet: P) {
        self.on_data(now);
        self.had_input = true;
        self.ingress.push(now, stream, packet, &mut self.counters);
    }

    /// Inner data was sent or received: the tunnel is in use.
    fn on_data(&mut self, now: Instant) {
        if !self.is_in_use(now) {
            self.control_deadline = Instant::ZERO;
        }
        self.last_data = Some(now);
    }

    fn is_in_use(&self, now: Instant) -> bool {
        self.last_data.is_some_and(|last| now.since(last) < TUNNEL_IN_USE_TIME)
    }

    /// Whether the ingress queue takes more packets from the device. It also does while all working paths are for the
    /// real-time class only: the queue does not drain then, and other packets are dropped.
    #[must_use]
    pub fn has_room(&self) -> bool {
        let mut up_paths = self.paths.iter().flatten().filter(|path| path.is_up()).peekable();
        let is_bulk_stuck = up_paths.peek().is_some() && !up_paths.any(|path| path.carries(false));
        self.ingress.memory < self.options.memory_bytes / 2 || is_bulk_stuck
    }

    /// Bytes of inner packets that no path has carried yet.
    #[must_use]
    pub fn unsent_bytes(&self) -> u64 {
        self.ingress.bytes + self.partly_sent.as_ref().map_or(0, |packet| u64::from(packet.length - packet.offset))
    }

    /// Bytes that all paths together deliver per millisecond, in whole fragments, at least one. Drivers that choose the
    /// length of inner packets use it, as TCP's segmentation offload does (`tcp_tso_autosize`).
    #[must_use]
    pub fn packet_bytes(&self) -> u32 {
        let rates = self.paths.iter().flatten().filter(|path| path.is_up()).map(TunnelPath::bandwidth);
        let bytes = rates.map(|rate| rate.bytes_in(Span::from_millis(1))).sum::<u64>();
        let fragment = u64::from(self.fragment_size().unwrap_or(1).max(1));
        (bytes.min(u64::from(u16::MAX)) / fragment).max(1) as u32 * fragment as u32
    }

    fn on_ack(&mut self, now: Instant, ack: &Ack) {
        let Some(Some(path)) = self.paths.get_mut(usize::from(ack.path)) else { return };
        if !path.on_ack(now, ack, &mut self.outcomes, &mut self.controller) {
            self.counters.malformed_frames += 1;
        }
        self.update_excess_one_way_delays();
        self.apply_outcomes(now, Some(PathId(u16::from(ack.path))));
        self.check_suspicion(now);
    }

    /// Removes fragments that were acknowledged on `acked_path`, and queues lost ones for retransmission.
    fn apply_outcomes(&mut self, now: Instant, acked_path: Option<PathId>) {
        let retransmit = self.options.retransmit;
        for fragment in self.outcomes.acked.drain(..) {
            let is_copy = acked_path.and_then(|path| self.fragments.on_acked(fragment, path));
            self.counters.first_copies += u64::from(is_copy == Some(true));
            self.counters.wasted_copies += u64::from(is_copy == Some(false));
        }
        for fragment in self.outcomes.lost.drain(..) {
            let is_kept = self
                .fragments
                .on_lost(fragment, |first_sent| retransmit && now.since(first_sent) < MAX_RETRANSMISSION_AGE);
            self.counters.abandoned_fragments += u64::from(!is_kept);
        }
    }

    fn on_pong(&mut self, now: Instant, id: PathId, token: u64) {
        let Some(Some(path)) = self.paths.get_mut(id.index()) else { return };
        let PongOutcome { was_down, plpmtu, refused_candidate } = path.on_pong(now, token, &mut self.controller);
        if refused_candidate {
            self.candidate_outcomes.push_back((id, CandidateOutcome::Refused));
        }
        self.update_excess_one_way_delays();
        if was_down {
            self.events.push_back(EndpointEvent::PathUp(id));
        }
        if let Some(size) = plpmtu {
            self.events.push_back(EndpointEvent::MaxDatagramSize(id, size));
        }
    }

    fn on_path_state(&mut self, now: Instant, id: PathId, state: PathState) {
        let Some(Some(path)) = self.paths.get_mut(id.index()) else { return };
        if std::mem::replace(&mut path.peer_state, state) != state {
            self.burst = None;
        }
        if state == PathState::Removed {
            self.forget_path(now, id);
            self.events.push_back(EndpointEvent::PathRemoved(id));
        }
    }

    fn on_path_name(&mut self, id: PathId, name: PathName) {
        let Some(Some(path)) = self.paths.get_mut(id.index()) else { return };
        let event = EndpointEvent::PathNamed(id);
        // One event tells of all names that came since.
        if path.peer_name.replace(name) != Some(name) && !self.events.contains(&event) {
            self.events.push_back(event);
        }
    }

    /// What the peer calls a path, if it has said so.
    #[must_use]
    pub fn peer_name(&self, id: PathId) -> Option<PathName> {
        self.path(id)?.peer_name
    }

    fn fail_path(&mut self, now: Instant, id: PathId) {
        let Some(Some(path)) = self.paths.get_mut(id.index()) else { return };
        let was_up = path.is_up();
        path.fail(now, &mut self.outcomes, &mut self.controller);
        self.control_deadline = Instant::ZERO;
        self.update_excess_one_way_delays();
        self.apply_outcomes(now, None);
        self.burst = None;
        if was_up {
            self.events.push_back(EndpointEvent::PathDown(id));
        }
    }

    /// The host could not send a datagram on this path: its link is down.
    pub fn on_unreachable(&mut self, now: Instant, id: PathId) {
        if self.path(id).is_some_and(TunnelPath::is_up) {
            self.fail_path(now, id);
        }
    }

    /// The host refused a datagram on this path as too large for its link.
    pub fn on_too_large(&mut self, now: Instant, id: PathId) {
        if let Some(Some(path)) = self.paths.get_mut(id.index()) {
            path.on_too_large(now);
            self.control_deadline = Instant::ZERO;
        }
    }

    /// The next datagram to send, if one may leave now.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit<P>> {
        self.bundle.clear();
        let control = self.poll_control(now).or_else(|| self.poll_realtime(now));
        if control.is_some() {
            return control;
        }
        let data = self.poll_retransmission(now).or_else(|| self.poll_unsent(now));
        if data.is_none() {
            self.ingress.has_backlog = self.ingress.packet_count > 0;
            if std::mem::take(&mut self.had_input) {
                self.validate_cwnd(now);
            }
        }
        data
    }

    /// The frames of the latest [`TransmitBody::Control`](crate::TransmitBody::Control).
    #[must_use]
    pub fn control_frames(&self) -> &[Frame] {
        &self.control_frames
    }

    fn policy(&self, now: Instant) -> PingPolicy {
        PingPolicy { tunnel_in_use: self.is_in_use(now), interval: self.options.probe_interval }
    }

    /// The next fragment for the device.
    pub fn poll_delivery(&mut self) -> Option<Delivery<P>> {
        self.reorder.pop()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<EndpointEvent> {
        self.events.pop_front()
    }

    /// When [`on_timeout`](Self::on_timeout) is due.
    #[must_use]
    pub fn deadline(&self, now: Instant) -> Instant {
        let has_data = self.has_unsent() || self.fragments.has_retransmissions();
        let path_deadline = |path: &TunnelPath| {
            let next_send_time = if has_data && path.has_room() { path.next_send_time() } else { Instant::NEVER };
            // A deadline in the past needs no timer.
            let next_send_time = if next_send_time > now { next_send_time } else { Instant::NEVER };
            path.deadline().min(next_send_time)
        };
        let path_deadlines = self.paths.iter().flatten().map(path_deadline).min().unwrap_or(Instant::NEVER);
        // Set to zero while something is due: the next deadline is not known yet.
        let is_known = self.control_deadline > now;
        let control_deadline = if is_known { self.control_deadline } else { self.next_control_deadline(now) };
        path_deadlines.min(control_deadline).min(self.reorder.deadline).min(self.suspicion_deadline())
    }

    /// Handles the timers that are due.
    pub fn on_timeout(&mut self, now: Instant) {
        (self.had_input, self.control_deadline) = (true, Instant::ZERO);
        self.reorder.on_timeout(now, &mut self.counters);
        self.check_suspicion(now);
        let up_count = self.paths.iter().flatten().filter(|path| path.is_up()).count();
        for index in 0..self.paths.len() {
            let Some(path) = &mut self.paths[index] else { continue };
            let is_only_path = up_count <= 1;
            match path.on_timeout(now, is_only_path, &mut self.outcomes, &mut self.controller) {
                PathTimeout::NotDue => {}
                PathTimeout::Failed => self.fail_path(now, PathId(index as u16)),
                PathTimeout::Pto => {
                    let count = if is_only_path { PTO_PROBES } else { usize::MAX };
                    path.fragments_in_flight().take(count).for_each(|fragment| self.fragments.on_pto(fragment));
                }
            }
        }
        self.handle_candidates(now);
        self.apply_outcomes(now, None);
        if !self.controller_failed && self.controller_failure().is_some() {
            self.controller_failed = true;
            self.events.push_back(EndpointEvent::ControllerFailed);
        }
    }

    fn path(&self, id: PathId) -> Option<&TunnelPath> {
        self.paths.get(id.index()).and_then(Option::as_ref)
    }

    /// Why the controller or the scheduler has failed.
    fn controller_failure(&self) -> Option<&str> {
        let failure = self.controller.controller.as_ref().and_then(|controller| controller.failure());
        failure.or_else(|| self.scheduler.failure())
    }

    /// Queues a CLOSE frame; [`poll_transmit`](Self::poll_transmit) returns it.
    pub fn close(&mut self) {
        if let Some(path) = self.feedback_path().and_then(|path| self.paths[path.index()].as_mut()) {
            path.queue_frame(Frame::Close);
            self.control_deadline = Instant::ZERO;
        }
    }
}

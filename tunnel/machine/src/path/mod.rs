//! One path of the tunnel: the packets sent on it, those received, and whether it works.

mod acks;
mod candidate;
mod lost_packets;
mod migration;
mod phantom_queue;
mod pmtud;
mod probing;
mod received_packets;
mod role;
mod sent_packets;
mod small_packets;
mod status;
mod steadiness;
mod validation;

pub use candidate::{Candidate, CandidateOutcome};
pub(super) use pmtud::BASE_PLPMTU;
pub(super) use probing::PongOutcome;
use received_packets::MAX_ACK_DELAY;
pub(super) use received_packets::ReceivedPackets;
pub(super) use role::PathRole;
pub(super) use sent_packets::{DatagramData, FragmentOutcomes};
pub(super) use validation::PingPolicy;

use super::config::PathConfig;
use super::packet::{DATA_HEADER_BYTES, SEAL_OVERHEAD};
use control::PathEvent;
use migration::Migration;
use phantom_queue::PhantomQueue;
use sender::path::{ControllerHandle, PathSender};
use sent_packets::SentPackets;
use steadiness::RecentLosses;
use units::{Instant, PathId, Rate, Span};
use validation::PathValidation;
use wire::frame::{Frame, PathName, PathState};

/// Initial congestion window, packets (RFC 6928).
const INITIAL_WINDOW: u32 = 10;
/// Retransmission timeout before the first RTT sample (RFC 6298); bounds idle periods only.
const INITIAL_RTO: Span = Span::from_secs(1);
/// The controllers' clock tick: the daemon's clock is finer than any algorithm needs.
const TICK: Span = Span::from_millis(1);
/// Probe timeouts in a row that a path survives: next to other paths, and alone.
const MAX_PTO_COUNT: [u32; 2] = [2, 8];
/// How much before its send time a packet may be sent: a program's timers are late by about as much, and every wake-up
/// costs. Bursts are then a millisecond of data, as with Linux's own pacing (`sk_pacing_shift`).
const PACING_SLACK: Span = Span::from_millis(1);
/// Minimum probe timeout: the peer's host may be slow.
const MIN_PTO: Span = Span::from_millis(60);
/// Minimum number of packets in flight that saturate a path, whatever the delay.
const MIN_SATURATING_PACKETS: u32 = 16;
/// Maximum number of answers to pings that wait to be sent: those to 64 datagrams, which a driver may receive at once.
const MAX_QUEUED_PONGS: usize = 256;
/// Minimum queueing delay that shows a queue on the path.
const MIN_QUEUE_DELAY: Span = Span::from_millis(2);
/// UDP payload of a datagram with a ping alone, bytes: type and token.
const PING_BYTES: u64 = SEAL_OVERHEAD as u64 + 9;
/// Acknowledgements have at most this part of their path.
const MAX_ACK_SHARE: u64 = 64;
/// Their maximum delay for that, and the same as a part of a round trip.
const MAX_SHARED_ACK_DELAY: Span = Span::from_millis(5);
const ACKS_PER_ROUND_TRIP: u64 = 4;
/// Their maximum delay where data waits, with which they go, for the small packets that fill the path; and as above.
const MAX_BUNDLED_ACK_DELAY: Span = Span::from_millis(25);
const BUNDLED_ACKS_PER_ROUND_TRIP: u64 = 2;
/// The rate of a path that nothing paces.
const UNPACED: Rate = Rate(u64::MAX);

/// A path.
#[derive(Debug)]
pub(super) struct TunnelPath {
    id: PathId,
    config: PathConfig,
    sender: PathSender,
    sent: SentPackets,
    validation: PathValidation,
    migration: Migration,
    pub(super) received: ReceivedPackets,
    /// When feedback was last sent on the path.
    pub(super) last_feedback: Instant,
    /// Frames that must be sent on this path, from [`queue_frame`](Self::queue_frame).
    pub(super) frames: Vec<Frame>,
    /// The peer's use of the path.
    pub(super) peer_state: PathState,
    /// The peer's name of the path.
    pub(super) peer_name: Option<PathName>,
    /// Probe timeouts in a row (RFC 9002: `pto_count`).
    pto_count: u32,
    /// When the PTO timer was started.
    pto_start: Instant,
    delivery_rate: Rate,
    /// How much longer the one-way delay is than that of the fastest path.
    pub(super) excess_one_way_delay: Span,
    phantom_queue: PhantomQueue,
    /// Payload of a full fragment, bytes, as the controller knows it: a segment is the packet with it.
    mss: u32,
    /// Arrival of the latest datagram.
    pub(super) last_received: Option<Instant>,
    /// Arrival of the latest data.
    pub(super) last_data_received: Option<Instant>,
    received_data_packets: u64,
    received_data_bytes: u64,
    /// Fragments below this number are no candidates for redundant copies on this path.
    pub(super) redundant_up_to: u64,
    /// Until when the path counts as unsteady, since it lost a packet or was suspected to have failed.
    pub(super) unsteady_until: Instant,
    recent_losses: RecentLosses,
}

/// The result of [`TunnelPath::on_timeout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathTimeout {
    NotDue,
    /// A probe timeout: unacknowledged data is to be sent on another path too.
    Pto,
    /// The path failed.
    Failed,
}

impl TunnelPath {
    /// A path whose packet numbers begin at `first_packet_number`.
    pub(super) fn new(id: PathId, config: PathConfig, first_packet_number: u64) -> Self {
        Self {
            id,
            config,
            sender: PathSender::new(id, u32::MAX, INITIAL_RTO),
            sent: SentPackets::new(first_packet_number),
            validation: PathValidation::new(config.max_datagram_size),
            migration: Migration::default(),
            received: ReceivedPackets::default(),
            last_feedback: Instant::ZERO,
            frames: Vec::new(),
            peer_state: PathState::Regular,
            peer_name: None,
            pto_count: 0,
            pto_start: Instant::ZERO,
            delivery_rate: Rate(0),
            excess_one_way_delay: Span::ZERO,
            phantom_queue: PhantomQueue::default(),
            mss: 0,
            last_received: None,
            last_data_received: None,
            received_data_packets: 0,
            received_data_bytes: 0,
            redundant_up_to: 0,
            unsteady_until: Instant::ZERO,
            recent_losses: RecentLosses::default(),
        }
    }

    /// Queues a frame to be sent on the path, unless the same frame waits there.
    pub(super) fn queue_frame(&mut self, frame: Frame) {
        if !self.frames.contains(&frame) {
            self.frames.push(frame);
        }
    }

    /// Queues the answer to a ping.
    pub(super) fn queue_pong(&mut self, token: u64) {
        if self.frames.len() < MAX_QUEUED_PONGS {
            self.frames.push(Frame::Pong { token });
        }
    }

    /// The next packet number.
    pub(super) fn next_packet_number(&self) -> u64 {
        self.sent.next_packet_number()
    }

    pub(super) fn is_up(&self) -> bool {
        self.validation.up
    }

    pub(super) fn is_backup(&self) -> bool {
        self.role() == PathRole::Backup
    }

    /// Changes the configuration. The peer's address on the path is a configured one, or validated.
    pub(super) fn set_config(&mut self, config: PathConfig) {
        self.config = config;
        self.migration.budget = None;
    }

    /// Payload of the largest fragment that the path carries, bytes.
    pub(super) fn fragment_size(&self) -> u32 {
        self.validation.dplpmtud.plpmtu() - SEAL_OVERHEAD - DATA_HEADER_BYTES
    }

    /// Whether fragments of `bytes` may soon be carried: path MTU discovery is at it.
    pub(super) fn may_carry(&self, bytes: u32) -> bool {
        self.is_up() && self.validation.dplpmtud.is_probing(bytes + SEAL_OVERHEAD + DATA_HEADER_BYTES)
    }

    /// Smoothed RTT of data, or else the probes' latest; zero before the first.
    pub(super) fn srtt(&self) -> Span {
        let srtt = self.sender.rtt().srtt();
        if srtt > Span::ZERO { srtt } else { self.validation.latest_rtt.unwrap_or(Span::ZERO) }
    }

    /// Minimum RTT, once there is one.
    pub(super) fn min_rtt(&self) -> Option<Span> {
        self.sender.min_rtt().measured()
    }

    /// Smoothed one-way delay to the peer's clock, microseconds modulo 2^32; known once data was acknowledged.
    pub(super) fn one_way_delay(&self) -> Option<u32> {
        self.sent.one_way_delay.map(|(mean, _)| mean)
    }

    /// Mean deviation of the one-way delay.
    pub(super) fn jitter(&self) -> Span {
        Span::from_micros(self.sent.one_way_delay.map_or(0, |(_, deviation)| deviation.max(0) as u64))
    }

    /// Probe timeout (RFC 9002, section 6.2.1).
    pub(super) fn pto(&self) -> Span {
        self.sent.pto(&self.sender)
    }

    /// True if the path works and its congestion window has room.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.validation.up && self.sender.has_room(self.sent.in_flight) && !self.is_full_of_small()
    }

    /// True if a packet may be sent now.
    #[inline]
    pub(super) fn can_send(&self, now: Instant) -> bool {
        self.has_room() && self.next_send_time() <= now
    }

    /// When pacing lets the next packet go: [`PACING_SLACK`] early, since timers are late.
    #[inline]
    pub(super) fn next_send_time(&self) -> Instant {
        Instant(self.sender.next_send_time().0.saturating_sub(PACING_SLACK.0))
    }

    /// Whether a probe timeout has passed without an acknowledgement.
    pub(super) fn is_unresponsive(&self) -> bool {
        self.pto_count > 0
    }

    /// Time until the path can send one more packet: until pacing allows it, or about until the next acknowledgement.
    pub(super) fn next_transmission_delay(&self, now: Instant) -> Span {
        if self.has_room() {
            return self.next_send_time().since(now);
        }
        self.srtt() / u64::from(self.sent.in_flight.max(1))
    }

    /// The view of the path for the scheduler.
    pub(super) fn view(&self, now: Instant) -> schedule::PathView {
        let decision = self.sender.decision();
        schedule::PathView {
            has_room: self.can_send(now),
            active: self.validation.up,
            backup: self.is_backup(),
            srtt: self.srtt(),
            rttvar: self.sender.rtt().mdev(),
            cwnd: decision.cwnd,
            ssthresh: decision.ssthresh,
            in_flight: self.sent.in_flight,
            queued: 0,
            pacing_rate: self.pacing_rate(),
            delivery_rate: self.bandwidth(),
            phantom_queue_delay: Some(self.phantom_queue.length(now)),
            buffered_memory: None,
        }
    }

    /// The maximum delivery rate of the last round trips; zero before the first sample.
    pub(super) fn bandwidth(&self) -> Rate {
        self.phantom_queue.bandwidth()
    }

    /// The pacing rate, at most the configured one.
    fn pacing_rate(&self) -> Rate {
        let decision = self.sender.decision();
        let is_unmeasured = decision.cwnd == u32::MAX || self.sender.rtt().srtt() == Span::ZERO;
        let rate = match decision.pacing_rate {
            None if is_unmeasured => UNPACED,
            _ => self.sender.pacing_rate(self.full_packet_bytes(), self.sent.in_flight),
        };
        self.config.max_rate.map_or(rate, |max| rate.min(max))
    }

    /// A full datagram with its outer headers, bytes.
    fn full_packet_bytes(&self) -> u32 {
        self.config.header_bytes + self.validation.dplpmtud.plpmtu()
    }

    /// UDP payload of a datagram with a full fragment, bytes.
    fn full_datagram_bytes(&self) -> u32 {
        self.mss + SEAL_OVERHEAD + DATA_HEADER_BYTES
    }

    /// How long acknowledgements with frames of `bytes` may wait that are sent on this path: they take from what data can
    /// have. `with_data`: data waits, and they may go with it.
    pub(super) fn max_ack_delay(&self, bytes: u32, with_data: bool) -> Span {
        if with_data && self.is_full_of_small() {
            return MAX_BUNDLED_ACK_DELAY.min(self.srtt() / BUNDLED_ACKS_PER_ROUND_TRIP).max(MAX_ACK_DELAY);
        }
        let packet_bytes = bytes + SEAL_OVERHEAD + self.config.header_bytes;
        let delay = self.capacity().time_for(u64::from(packet_bytes) * MAX_ACK_SHARE);
        delay.min(MAX_SHARED_ACK_DELAY).min(self.srtt() / ACKS_PER_ROUND_TRIP).max(MAX_ACK_DELAY)
    }

    /// Packets of one burst, which stay on one path.
    pub(super) fn burst(&self) -> u32 {
        self.sender.burst(self.pacing_rate(), self.full_packet_bytes())
    }

    /// Sends a datagram with data; returns the packet number.
    pub(super) fn send(&mut self, now: Instant, data: &DatagramData, controller: &mut ControllerHandle) -> u64 {
        if self.sent.is_idle() {
            (self.pto_start, self.pto_count) = (now, 0);
            self.sender.before_send(now, 0, false, controller);
        }
        let datagram_bytes = data.datagram_bytes();
        let full_datagram = self.full_datagram_bytes();
        let packet_number = self.sent.push_data(now, data, full_datagram, &mut self.sender);
        self.phantom_queue.on_sent(now, datagram_bytes);
        let rate = self.pacing_rate();
        // Of a path that carries small packets alone no more is known than their own rate, by which pacing would delay them
        // when it rises: the window bounds them.
        if rate != UNPACED && !self.sent.has_small_alone() {
            // The pacer is charged from the packet's send time on, even if it is sent early.
            let send_time = now.max(self.sender.next_send_time());
            self.sender.pace(send_time, datagram_bytes + self.config.header_bytes, rate, self.full_packet_bytes());
        }
        packet_number
    }

    /// Sends frames; returns the packet number.
    pub(super) fn send_control(&mut self, now: Instant) -> u64 {
        self.sent.push_control(now)
    }

    /// Validates the congestion window; called when nothing more can be sent now. `app_limited` if there is no more
    /// data.
    #[inline]
    pub(super) fn validate_cwnd(&mut self, now: Instant, app_limited: bool, controller: &mut ControllerHandle) {
        let is_cwnd_full = self.sender.validate_cwnd(now, &self.sent.outstanding(), None, controller);
        if app_limited && !is_cwnd_full {
            if !self.is_saturated() {
                self.sender.mark_app_limited(self.sent.in_flight);
            }
            self.sender.end_burst();
        }
    }

    /// The queueing delay of the path, without what acknowledgements wait on their way back: the queue there is that of the
    /// other direction.
    fn queue_delay(&self) -> Span {
        let rtt = self.sender.rtt().srtt().saturating_sub(self.sent.return_queueing());
        rtt.saturating_sub(self.sender.min_rtt())
    }

    /// Whether a queue on the path shows that the path is saturated, although no data waits here: the path limits the
    /// inner flows, not their applications.
    fn is_saturated(&self) -> bool {
        let min_rtt = self.sender.min_rtt();
        self.sent.in_flight >= MIN_SATURATING_PACKETS && self.queue_delay() > (min_rtt / 4).max(MIN_QUEUE_DELAY)
    }

    /// An authentic datagram arrived, with so many bytes of data if it had any.
    pub(super) fn on_datagram(&mut self, now: Instant, data_bytes: Option<u32>) {
        self.last_received = Some(now);
        if let Some(bytes) = data_bytes {
            self.last_data_received = Some(now);
            self.received_data_packets += 1;
            self.count_received_data(bytes);
        }
    }

    /// A datagram brought so many bytes of data.
    pub(super) fn count_received_data(&mut self, bytes: u32) {
        self.received_data_bytes += u64::from(bytes);
    }

    /// The path failed or was removed.
    pub(super) fn fail(&mut self, now: Instant, outcomes: &mut FragmentOutcomes, controller: &mut ControllerHandle) {
        if self.validation.up {
            self.validation.fail();
        }
        self.sent.on_path_failed(&mut self.sender, outcomes);
        self.sender.notify(now, &PathEvent::PathDown, controller);
    }

    /// The host refused a datagram as too large.
    pub(super) fn on_too_large(&mut self, now: Instant) {
        self.validation.dplpmtud.on_local_drop(now);
    }

    /// Handles expired timers.
    pub(super) fn on_timeout(
        &mut self,
        now: Instant,
        is_only_path: bool,
        outcomes: &mut FragmentOutcomes,
        controller: &mut ControllerHandle,
    ) -> PathTimeout {
        if self.sent.loss_time <= now {
            let prior = self.sender.prior_state(self.sent.in_flight);
            let before = outcomes.counts();
            let acked = self.sent.on_loss_timer(now, &mut self.sender, outcomes);
            let [_, lost] = outcomes.counts_since(before);
            if lost > 0 {
                self.count_losses(now, lost, 0);
                self.finish_ack(now, &prior, acked, controller);
            }
        }
        if self.black_hole_deadline() <= now {
            return PathTimeout::Failed;
        }
        if self.pto_deadline() > now {
            return PathTimeout::NotDue;
        }
        self.mark_unsteady(now);
        self.pto_count += 1;
        self.pto_start = now;
        if self.pto_count > MAX_PTO_COUNT[usize::from(is_only_path)] { PathTimeout::Failed } else { PathTimeout::Pto }
    }

    #[inline]
    fn black_hole_deadline(&self) -> Instant {
        self.sent.black_hole_deadline(&self.sender)
    }

    /// The probe timeout with its lower bound.
    #[inline]
    pub(super) fn bounded_pto(&self) -> Span {
        self.pto().max(MIN_PTO)
    }

    #[inline]
    fn pto_deadline(&self) -> Instant {
        if self.sent.is_idle() || !self.validation.up {
            return Instant::NEVER;
        }
        self.pto_start + self.bounded_pto()
    }

    /// When [`on_timeout`](Self::on_timeout) is due.
    #[inline]
    pub(super) fn deadline(&self) -> Instant {
        self.sent.loss_time.min(self.pto_deadline()).min(self.black_hole_deadline()).min(self.candidate_deadline())
    }

    /// When a ping or an acknowledgement is due.
    pub(super) fn control_deadline(&self, policy: PingPolicy) -> Instant {
        self.validation.ping_deadline(self.policy(policy)).min(self.received.deadline)
    }

    /// Fragments in flight, oldest first.
    pub(super) fn fragments_in_flight(&self) -> impl Iterator<Item = u64> + '_ {
        self.sent.fragments()
    }
}

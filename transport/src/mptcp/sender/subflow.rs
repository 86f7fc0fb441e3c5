//! A subflow: its TCP sender, the mappings of its segments, and its state.

use super::{ConnectionConfig, SubflowConfig};
use crate::tcp::Segment;
use crate::tcp::sender;
use control::CaState;
use control::common::WindowedMax;
use schedule::{Fill, PathView};
use std::collections::VecDeque;
use units::{Instant, PathId, Rate};

/// RTTs over which the maximum delivery rate is taken, as in BBR's filter.
const DELIVERY_RATE_ROUNDS: u64 = 10;

/// State of a subflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SubflowState {
    /// Not joined yet.
    #[default]
    Waiting,
    /// The handshake has begun.
    Joining,
    /// Established; it carries data.
    Up,
    /// Removed.
    Removed,
}

/// The data that a segment of a subflow carries (RFC 8684 section 3.3).
#[derive(Clone, Copy, Debug)]
struct Mapping {
    data: u64,
    copy: bool,
}

/// One subflow.
#[derive(Debug)]
pub(super) struct Subflow {
    pub config: SubflowConfig,
    pub state: SubflowState,
    /// When the peer has answered the third packet of the handshake. Only then does the subflow carry data, and do
    /// further ones join.
    pub fully_established_at: Instant,
    pub sender: sender::Sender,
    /// Entry `i` belongs to segment `sender.acknowledged() + i`.
    mappings: VecDeque<Mapping>,
    mapping_start: u64,
    /// Failed or stale: it gets no data until a segment is acknowledged.
    pub failed: bool,
    pub failures: u64,
    /// Retransmission intervals of the connection without progress on the subflow (Linux `stale_count`).
    pub stale_count: u32,
    pub stale_una: u64,
    /// All data below was assigned to the subflow, or no longer needs it.
    pub cursor: u64,
    pub deadline: Instant,
    pub last_penalised: Instant,
    /// Retransmission timeouts that have been handled.
    pub handled_timeouts: u64,
    delivery_rate: WindowedMax,
    round: u64,
    round_end: u64,
    mss: u32,
}

impl Subflow {
    pub(super) fn new(config: SubflowConfig, index: usize, connection: &ConnectionConfig) -> Self {
        Self {
            config,
            state: SubflowState::Waiting,
            fully_established_at: Instant::NEVER,
            sender: sender::Sender::of_subflow(connection.tcp, PathId(index as u16)),
            mappings: VecDeque::new(),
            mapping_start: 0,
            failed: false,
            failures: 0,
            stale_count: 0,
            stale_una: 0,
            cursor: 0,
            deadline: Instant::NEVER,
            last_penalised: Instant::ZERO,
            handled_timeouts: 0,
            delivery_rate: WindowedMax::default(),
            round: 0,
            round_end: 0,
            mss: connection.tcp.mss,
        }
    }

    /// True if data may be assigned.
    pub(super) fn is_active(&self) -> bool {
        self.state == SubflowState::Up && !self.failed
    }

    /// Assigns data to the subflow's next segment.
    #[inline]
    pub(super) fn assign(&mut self, data: u64, copy: bool) {
        let continues = self.mappings.back().is_some_and(|mapping| mapping.data + 1 == data);
        self.mappings.push_back(Mapping { data, copy });
        self.sender.assign(continues);
    }

    /// The mapping of a segment: data sequence number, and whether the data was assigned to another subflow before.
    pub(super) fn mapping(&self, segment: &Segment) -> (u64, bool) {
        let mapping = self.mappings.get((segment.seq.wrapping_sub(self.mapping_start)) as usize);
        mapping.map_or((0, false), |mapping| (mapping.data, mapping.copy))
    }

    /// The data of the unacknowledged segments, in their order.
    pub(super) fn unacknowledged(&self) -> impl Iterator<Item = u64> {
        self.mappings.iter().map(|mapping| mapping.data)
    }

    /// Called after an acknowledgement was handled. Returns whether the subflow made progress.
    pub(super) fn on_ack_handled(&mut self) -> bool {
        let una = self.sender.acknowledged();
        let has_progressed = una > self.mapping_start;
        while self.mapping_start < una {
            self.mappings.pop_front();
            self.mapping_start += 1;
        }
        if una > self.round_end {
            self.round += 1;
            self.round_end = una + u64::from(self.sender.pipe().packets_out);
        }
        if let Some(delivery) = self.sender.last_delivery() {
            let rate = delivery.rate(self.mss).as_bits();
            if !delivery.app_limited || rate >= self.delivery_rate.get() {
                self.delivery_rate.update(DELIVERY_RATE_ROUNDS, self.round, rate);
            }
        }
        has_progressed
    }

    /// Updates the scheduler's view of the subflow.
    #[inline]
    pub(super) fn update_view(&self, view: &mut PathView, fill: Fill) {
        let decision = self.sender.decision();
        // The out-of-tree kernel's schedulers skip a subflow in the state Loss.
        view.active = self.is_active() && (fill == Fill::SendBuffer || self.sender.ca_state() != CaState::Loss);
        view.backup = self.config.backup;
        view.srtt = self.sender.srtt();
        view.rttvar = self.sender.rttvar();
        view.cwnd = decision.cwnd;
        view.ssthresh = decision.ssthresh;
        view.in_flight = self.sender.in_flight();
        view.queued = self.sender.unsent();
        view.pacing_rate = self.sender.pacing_rate();
        view.delivery_rate = Rate(self.delivery_rate.get());
        view.buffered_memory = Some(self.sender.queued_bytes());
        view.has_room = self.has_room(view, fill);
    }

    /// Updates the parts of the view that depend on the sent data, after the subflow has only sent.
    #[inline]
    pub(super) fn update_view_after_sending(&self, view: &mut PathView, fill: Fill) {
        let decision = self.sender.decision();
        let is_paced_by_cwnd = decision.pacing_rate.is_none() && self.sender.pipe().packets_out <= decision.cwnd;
        if !is_paced_by_cwnd || (decision.cwnd, decision.ssthresh) != (view.cwnd, view.ssthresh) {
            return self.update_view(view, fill);
        }
        view.in_flight = self.sender.in_flight();
        view.queued = self.sender.unsent();
        view.buffered_memory = Some(self.sender.queued_bytes());
        view.has_room = self.has_room(view, fill);
    }

    /// True if the place where segments wait has room for another one.
    #[inline]
    pub(super) fn has_room(&self, view: &PathView, fill: Fill) -> bool {
        view.active
            && match fill {
                Fill::Cwnd => view.cwnd_space() > 0,
                Fill::SendBuffer => self.sender.has_memory(),
            }
    }
}

//! A subflow as the connection sees it: its TCP sender, which data its segments carry, and how it fares.

use super::{ConnectionConfig, SubflowConfig};
use crate::tcp::Segment;
use crate::tcp::sender::{self, Steering};
use control::CaState;
use control::common::WindowedMax;
use schedule::{Fill, PathView};
use std::collections::VecDeque;
use units::{Instant, PathId, Rate};

/// Delivery rates are remembered for this many round trips, as in BBR's filter.
const BANDWIDTH_ROUNDS: u64 = 10;
/// Linux lets a send buffer grow to twice the window (`tcp_sndbuf_expand`), but to that of this window at least.
const LEAST_BUFFERED: u32 = 10;

/// Where a subflow stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SubflowState {
    /// It has not been asked to join.
    #[default]
    Waiting,
    /// Its handshake is under way.
    Joining,
    /// It carries data.
    Up,
    /// It was removed.
    Gone,
}

/// What a segment of a subflow carries.
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
    pub sender: sender::Sender,
    /// Of segment `sender.acknowledged() + i`.
    mappings: VecDeque<Mapping>,
    mapped_from: u64,
    /// It has failed or is stale: nothing is given to it until something of it is acknowledged.
    pub failed: bool,
    pub failures: u64,
    /// Retransmission intervals of the connection in which nothing of it was acknowledged.
    pub stale: u32,
    pub stale_una: u64,
    /// All data below was given to it, or need not be.
    pub cursor: u64,
    pub deadline: Instant,
    pub penalised: Instant,
    /// Timeouts that have been dealt with.
    pub timeouts: u64,
    most_window: u32,
    bandwidth: WindowedMax,
    round: u64,
    round_end: u64,
    mss: u32,
}

impl Subflow {
    pub(super) fn new(config: SubflowConfig, index: usize, of: &ConnectionConfig) -> Self {
        Self {
            config,
            state: SubflowState::Waiting,
            // Window and buffer are the connection's: it gives a subflow no more than they hold.
            sender: sender::Sender::subflow(
                sender::SenderConfig { send_buffer: u64::MAX, ..of.tcp },
                PathId(index as u16),
            ),
            mappings: VecDeque::new(),
            mapped_from: 0,
            failed: false,
            failures: 0,
            stale: 0,
            stale_una: 0,
            cursor: 0,
            deadline: Instant::NEVER,
            penalised: Instant::ZERO,
            timeouts: 0,
            most_window: LEAST_BUFFERED,
            bandwidth: WindowedMax::default(),
            round: 0,
            round_end: 0,
            mss: of.tcp.mss,
        }
    }

    /// Calls its sender with the connection's controller at hand.
    #[inline]
    pub(super) fn with<R>(
        &mut self,
        steering: &mut Option<Box<Steering>>,
        act: impl FnOnce(&mut sender::Sender) -> R,
    ) -> R {
        self.sender.lend(steering);
        let result = act(&mut self.sender);
        self.sender.lend(steering);
        result
    }

    /// It may be given data.
    pub(super) fn is_active(&self) -> bool {
        self.state == SubflowState::Up && !self.failed
    }

    /// Its next segment carries this.
    pub(super) fn assign(&mut self, data: u64, copy: bool) {
        self.mappings.push_back(Mapping { data, copy });
        self.sender.assign();
    }

    /// What a segment carries: the data, and whether another subflow was given it before.
    pub(super) fn carried(&self, segment: &Segment) -> (u64, bool) {
        let mapping = self.mappings.get((segment.seq.wrapping_sub(self.mapped_from)) as usize);
        mapping.map_or((0, false), |mapping| (mapping.data, mapping.copy))
    }

    /// The data of every segment that it has not been acknowledged, in the order of its segments.
    pub(super) fn unacknowledged(&self) -> impl Iterator<Item = u64> {
        self.mappings.iter().map(|mapping| mapping.data)
    }

    /// An acknowledgement was dealt with. True if it brought progress.
    pub(super) fn note_ack(&mut self) -> bool {
        let una = self.sender.acknowledged();
        let progress = una > self.mapped_from;
        while self.mapped_from < una {
            self.mappings.pop_front();
            self.mapped_from += 1;
        }
        if una > self.round_end {
            self.round += 1;
            self.round_end = una + u64::from(self.sender.pipe().packets_out);
        }
        if let Some(delivery) = self.sender.last_delivery() {
            let rate = delivery.rate(self.mss).as_bits();
            if !delivery.app_limited || rate >= self.bandwidth.get() {
                self.bandwidth.update(BANDWIDTH_ROUNDS, self.round, rate);
            }
        }
        progress
    }

    /// What the scheduler sees of it.
    pub(super) fn view(&mut self, fill: Fill) -> PathView {
        let decision = self.sender.decision();
        self.most_window = self.most_window.max(decision.cwnd);
        let mut view = PathView {
            open: false,
            // A scheduler that decides late counts on no path that has just timed out (out-of-tree kernel).
            active: self.is_active() && (fill == Fill::SendBuffer || self.sender.ca_state() != CaState::Loss),
            backup: self.config.backup,
            srtt: self.sender.srtt(),
            rttvar: self.sender.rttvar(),
            cwnd: decision.cwnd,
            ssthresh: decision.ssthresh,
            in_flight: self.sender.in_flight(),
            queued: self.sender.unsent(),
            pacing_rate: self.sender.pacing_rate(),
            delivery_rate: Rate(self.bandwidth.get()),
            phantom_queue: None,
        };
        view.open = self.takes_more(&view, fill);
        view
    }

    /// There is room for a segment where segments wait.
    #[inline]
    pub(super) fn takes_more(&self, view: &PathView, fill: Fill) -> bool {
        view.active
            && match fill {
                Fill::Cwnd => view.cwnd_space() > 0,
                Fill::SendBuffer => self.sender.pipe().packets_out + view.queued < self.buffer(),
            }
    }

    /// Packets that its send buffer holds.
    #[inline]
    pub(super) fn buffer(&self) -> u32 {
        2 * self.most_window
    }
}

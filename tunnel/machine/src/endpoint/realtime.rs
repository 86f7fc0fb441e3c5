//! The real-time class: its packets go first, on the path with the least delay, and are copied over a second path while
//! that one is unsteady.

use super::{Endpoint, PathId};
use crate::packet::{DATA_HEADER_BYTES, Fragment, Payload, SEAL_OVERHEAD, Transmit};
use crate::path::TunnelPath;
use crate::realtime::{PathCost, RealtimeClass, SentRealtime};
use units::{Instant, Rate, Span};

/// Delay added to the cost of a path for each step of its role, microseconds: a secondary path is used when no regular
/// path is healthy, and a backup when no other path is.
const ROLE_COST: i64 = 1 << 40;
/// Cost of a lost packet: it arrives at least a probe timeout later, and so do the packets behind it.
const LOSS_COST: Span = Span::from_millis(500);
/// Margin by which another path must be better before the class moves to it, microseconds.
const MOVE_MARGIN: i64 = 10_000;

impl<P: Payload> Endpoint<P> {
    /// The next packet of the class, or copy of one.
    pub(super) fn poll_realtime(&mut self, now: Instant) -> Option<Transmit<P>> {
        self.realtime.as_ref()?;
        self.refill(now);
        self.poll_copy(now).or_else(|| self.poll_realtime_packet(now))
    }

    /// Fills the budgets by the traffic of all paths.
    fn refill(&mut self, now: Instant) {
        let capacity = self.paths.iter().flatten().filter(|path| path.is_up()).map(|path| path.capacity().as_bits());
        let capacity = Rate(capacity.fold(0, u64::saturating_add));
        let Some(class) = &mut self.realtime else { return };
        class.copy_budget.refill(now, capacity);
        class.share.refill(now, capacity);
        self.ingress.realtime_credit = class.share.has(1);
    }

    fn poll_realtime_packet(&mut self, now: Instant) -> Option<Transmit<P>> {
        let size = self.fragment_size().filter(|_| self.ingress.has_realtime_packets() && !self.exceeds_memory())?;
        let path = self.realtime_path(now)?;
        let can_send = self.path(path)?.can_send(now);
        let partly_sent = self.partly_sent.as_ref().map(|packet| packet.stream);
        // A sparse flow does not wait for the congestion window; a marked one with more packets does.
        let may_send = |stream, is_sparse| (is_sparse || can_send) && partly_sent != Some(stream);
        let stream = self.ingress.next_realtime(size, may_send)?;
        let packet = self.ingress.pop_realtime(now, stream, &mut self.counters)?;
        self.send_realtime(now, path, stream, &packet)
    }

    fn send_realtime(&mut self, now: Instant, path: PathId, stream: u8, packet: &P) -> Option<Transmit<P>> {
        let bytes = packet.len();
        let sequence = self.next_sequence(stream);
        let payload = packet.slice(0, bytes);
        let fragment = Fragment { stream, sequence, first: true, last: true, retransmission: false, payload };
        self.counters.new_fragments += 1;
        let number = self.fragments.push(now, &fragment, packet.memory_bytes(), true);
        let is_unsteady = self.path(path).is_some_and(|path| path.is_unsteady(now));
        let class = self.realtime.as_mut()?;
        class.share.take(u64::from(bytes));
        if is_unsteady {
            class.queue_copy(number);
        } else {
            class.remember(SentRealtime { number, path, sent: now });
        }
        self.send_fragment(now, path, number, fragment)
    }

    /// Sends the next copy that the budget and the other paths allow.
    fn poll_copy(&mut self, now: Instant) -> Option<Transmit<P>> {
        loop {
            let number = self.realtime.as_mut()?.copies.pop_front()?;
            let Some(path) = self.copy_path(now, number) else { continue };
            let Some(fragment) = self.fragments.copy(number, path) else { continue };
            let bytes = u64::from(fragment.payload.len() + DATA_HEADER_BYTES + SEAL_OVERHEAD);
            let fits = self.path(path).is_some_and(|path| path.fragment_size() >= fragment.payload.len());
            if !fits || !self.realtime.as_mut()?.copy_budget.take(bytes) {
                self.fragments.forget_copy(number);
                continue;
            }
            self.counters.copied_fragments += 1;
            self.counters.copied_bytes += bytes;
            return self.send_fragment(now, path, number, fragment);
        }
    }

    /// The best path that has not carried a fragment and may carry copies.
    fn copy_path(&self, now: Instant, number: u64) -> Option<PathId> {
        let copy_on_metered = self.realtime.as_ref()?.options.copy_on_metered;
        let costs = self.costs(now).filter(|cost| {
            let path = self.path(cost.path);
            let may_copy = path.is_some_and(|path| copy_on_metered || !path.is_metered());
            cost.is_healthy && may_copy && !self.fragments.was_sent_on(number, cost.path)
        });
        costs.min_by_key(|cost| cost.cost).map(|cost| cost.path)
    }

    /// The path of the class now.
    fn realtime_path(&mut self, now: Instant) -> Option<PathId> {
        let costs: Vec<PathCost> = self.costs(now).collect();
        let (path, has_moved) = self.realtime.as_mut()?.update_path(now, &costs)?;
        self.counters.realtime_moves += u64::from(has_moved);
        Some(path)
    }

    /// The costs that decide which path is the best for the class: whether it answers, and its delay with its
    /// deviation. One-way delays are compared if data has recently shown them; otherwise half the RTTs.
    fn costs(&self, now: Instant) -> impl Iterator<Item = PathCost> + '_ {
        let up_paths = || (0..).map(PathId).zip(&self.paths).filter_map(|(id, path)| Some((id, path.as_ref()?)));
        let all_recent = up_paths().filter(|(_, path)| path.is_up()).all(|(_, path)| path.has_recent_delay(now));
        let has_own = up_paths().any(|(_, path)| path.carries(true));
        up_paths().filter(move |(_, path)| if has_own { path.carries(true) } else { path.is_up() }).map(
            move |(id, path)| {
                let delay = if all_recent { path.excess_one_way_delay } else { path.latest_rtt(now) / 2 };
                let cost = delay + path.jitter() * 2 + path.loss_cost(LOSS_COST);
                PathCost {
                    path: id,
                    is_healthy: !path.is_unresponsive(),
                    role: path.role(),
                    cost: cost.as_micros() as i64 + path.role() as i64 * ROLE_COST,
                    margin: MOVE_MARGIN,
                }
            },
        )
    }

    /// When an unacknowledged packet of the class makes its path suspect.
    pub(super) fn suspicion_deadline(&self) -> Instant {
        let class = self.realtime.as_ref();
        let Some(oldest) = class.and_then(|class| class.sent.front()) else { return Instant::NEVER };
        let delay = self.path(oldest.path).map_or(Span::ZERO, TunnelPath::suspicion_delay);
        oldest.sent + delay
    }

    /// Forgets acknowledged packets. If the oldest unacknowledged packet has waited for too long, its path is suspect,
    /// and the unacknowledged packets of that path are copied.
    pub(super) fn check_suspicion(&mut self, now: Instant) {
        let Self { realtime: Some(class), fragments, .. } = self else { return };
        while class.sent.front().is_some_and(|sent| !fragments.is_unacked(sent.number)) {
            class.sent.pop_front();
        }
        if self.suspicion_deadline() > now {
            return;
        }
        let Some(suspect) = self.realtime.as_ref().and_then(|class| class.sent.front()).map(|sent| sent.path) else {
            return;
        };
        if let Some(Some(path)) = self.paths.get_mut(suspect.index()) {
            path.mark_unsteady(now);
        }
        let Some(RealtimeClass { sent, .. }) = &mut self.realtime else { return };
        let suspects: Vec<u64> = sent.iter().filter(|sent| sent.path == suspect).map(|sent| sent.number).collect();
        sent.retain(|sent| sent.path != suspect);
        suspects.into_iter().for_each(|number| self.realtime.as_mut().expect("it was there").queue_copy(number));
    }
}

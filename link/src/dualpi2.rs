//! DualPI2: a short queue for L4S packets and one for all others, coupled so that flows of both get equal rates.
//!
//! RFC 9332, Appendix A; names in brackets are the RFC's, those of parameters Linux's:
//! - ECT(1) and CE go to the L4S queue, all other packets to the Classic one (section 2.5.1); they share one limit;
//! - every `tupdate` a proportional-integral controller changes the base probability:
//!   `p' += alpha (delay - target) + beta (delay - previous delay)`, where the delay is the longer of the waiting times
//!   of the two heads;
//! - Classic packets are dropped, or marked if they are ECT(0), with `p_C = p'^2`, and L4S packets are marked with
//!   `p_CL = k p'`. Hence `p_C = (p_CL / k)^2`, and a window `~ 1/sqrt(p_C)` matches one `~ 1/p_CL`;
//! - an L4S packet that waited for longer than `step_thresh` is marked, whatever `p'` is, unless less than a full
//!   packet remains behind it \[`Th_len`\];
//! - overload: from `k p' = 1` on, which is `p_C` = 25 % at k = 2 \[`p_Cmax`\], ECT(0) packets are dropped like those
//!   that are not ECN-capable. L4S packets are dropped with `p_C`, too, and otherwise marked (section 4.2.3);
//! - the L4S queue goes first, until it has sent `1 - classic_protection` of the bytes for each `classic_protection`
//!   that the Classic queue could have sent in that time (weighted round robin, section 4.2.2).
//!
//! As in Linux and unlike in the appendix, there is a step in place of a ramp, and weighted round robin in place of a
//! time-shifted FIFO. Drops and marks are drawn at random, while the appendix adds up the probabilities. While less
//! than two full packets are left, only the step signals. Packets are dropped at departure (Linux `drop_dequeue`).

use super::egress::Egress;
use super::limit::EffectiveLimit;
use super::packet::{Packet, Verdict};
use super::packet_queue::{Backlog, PacketQueue, QueuedPacket};
use super::qdisc::Qdisc;
use crate::config::DualPi2Config;
use units::{Instant, RngStream, Span};

/// A full packet with its Ethernet header, bytes.
const FULL_PACKET: u64 = 1514;

/// The two queues and the state that couples them.
#[derive(Debug)]
pub(super) struct DualPi2<P> {
    config: DualPi2Config,
    classic: PacketQueue<P>,
    l4s: PacketQueue<P>,
    base: BaseProbability,
    /// Bytes that the Classic queue is owed; while it is positive, that queue is served.
    credit: f64,
}

/// The proportional-integral controller.
#[derive(Clone, Copy, Debug)]
struct BaseProbability {
    /// \[`p'`\], 0 to 1.
    value: f64,
    /// The delay at the last update \[`prevq`\].
    delay_old: Span,
    next_update: Instant,
}

/// The action for the packet at the head of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Pass,
    Mark,
    Drop,
}

impl<P: Packet> DualPi2<P> {
    pub(super) fn new(config: DualPi2Config) -> Self {
        assert!(config.tupdate > Span::ZERO, "the probability is updated");
        let base = BaseProbability { value: 0.0, delay_old: Span::ZERO, next_update: Instant::ZERO + config.tupdate };
        Self { config, classic: PacketQueue::default(), l4s: PacketQueue::default(), base, credit: 0.0 }
    }

    /// Performs the updates that were due by `now`. No packet has left or joined the queues since the last update.
    fn update_until(&mut self, now: Instant) {
        while self.base.next_update <= now {
            let at = self.base.next_update;
            let delay = self.head_arrival_oldest().map_or(Span::ZERO, |arrived| at.since(arrived));
            self.base.update(&self.config, delay);
            self.base.next_update += self.config.tupdate;
            if self.base.is_idle() && delay == Span::ZERO {
                let tupdate = self.config.tupdate;
                self.base.next_update += tupdate * (now.since(self.base.next_update).0 / tupdate.0);
            }
        }
    }

    fn head_arrival_oldest(&self) -> Option<Instant> {
        [&self.classic, &self.l4s].into_iter().filter_map(|queue| queue.head().map(|head| head.arrived)).min()
    }

    /// Removes the head of the queue whose turn it is. Returns the packet, and whether that queue is the L4S queue.
    fn pop(&mut self) -> Option<(QueuedPacket<P>, bool)> {
        let (is_l4s, other_waits) = match (self.l4s.is_empty(), self.classic.is_empty()) {
            (false, false) => (self.credit <= 0.0, true),
            (l4s_is_empty, _) => (!l4s_is_empty, false),
        };
        let head = if is_l4s { self.l4s.pop() } else { self.classic.pop() }?;
        let share = self.config.classic_protection;
        if other_waits {
            self.credit += head.size as f64 * if is_l4s { share } else { share - 1.0 };
        }
        Some((head, is_l4s))
    }

    fn action(&self, now: Instant, head: &QueuedPacket<P>, is_l4s: bool, rng: &mut RngStream) -> Action {
        let base = if self.backlog().bytes < 2 * FULL_PACKET { 0.0 } else { self.base.value };
        let coupled = self.config.coupling_factor * base;
        let is_overloaded = coupled >= 1.0;
        if !is_l4s {
            return match (strikes_squared(base, rng), head.packet.ecn_capable() && !is_overloaded) {
                (false, _) => Action::Pass,
                (true, true) => Action::Mark,
                (true, false) => Action::Drop,
            };
        }
        if is_overloaded && strikes_squared(base, rng) {
            return Action::Drop;
        }
        let is_above_step = now.since(head.arrived) > self.config.step_thresh && self.l4s.bytes() >= FULL_PACKET;
        if is_above_step || (coupled > 0.0 && rng.chance(coupled)) { Action::Mark } else { Action::Pass }
    }
}

/// Draws an event of probability `p^2`.
fn strikes_squared(p: f64, rng: &mut RngStream) -> bool {
    p > 0.0 && rng.chance(p) && rng.chance(p)
}

impl BaseProbability {
    fn update(&mut self, config: &DualPi2Config, delay: Span) {
        let (delay_s, old_s) = (delay.as_secs_f64(), self.delay_old.as_secs_f64());
        let step = config.alpha * (delay_s - config.target.as_secs_f64()) + config.beta * (delay_s - old_s);
        self.value = (self.value + step).clamp(0.0, 1.0);
        self.delay_old = delay;
    }

    fn is_idle(&self) -> bool {
        self.value == 0.0 && self.delay_old == Span::ZERO
    }
}

impl<P: Packet> Qdisc<P> for DualPi2<P> {
    fn enqueue(&mut self, packet: QueuedPacket<P>, limit: Option<&EffectiveLimit>, egress: &mut Egress<P>) -> Verdict {
        self.update_until(packet.arrived);
        let Backlog { packets, bytes } = self.backlog();
        if limit.is_some_and(|limit| !limit.has_room_for(packets as usize, bytes, packet.size)) {
            return egress.discard_dropped(packet.packet);
        }
        let queue = if packet.packet.ecn().is_l4s() { &mut self.l4s } else { &mut self.classic };
        queue.push(packet);
        Verdict::Accepted
    }

    fn dequeue(&mut self, now: Instant, egress: &mut Egress<P>) -> Option<QueuedPacket<P>> {
        self.update_until(now);
        loop {
            let (mut head, is_l4s) = self.pop()?;
            match self.action(now, &head, is_l4s, &mut egress.rng) {
                Action::Pass => {}
                Action::Mark => egress.mark(&mut head.packet),
                Action::Drop => {
                    egress.discard_dropped(head.packet);
                    continue;
                }
            }
            return Some(head);
        }
    }

    fn remove_head(&mut self) -> Option<QueuedPacket<P>> {
        self.l4s.pop().or_else(|| self.classic.pop())
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.classic.packets() + self.l4s.packets(), bytes: self.classic.bytes() + self.l4s.bytes() }
    }

    fn head_arrival(&self) -> Option<Instant> {
        self.l4s.head().or_else(|| self.classic.head()).map(|head| head.arrived)
    }

    fn on_idle(&mut self, _now: Instant) {
        self.credit = 0.0;
    }
}

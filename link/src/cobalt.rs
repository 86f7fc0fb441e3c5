//! COBALT: a combination of CoDel and BLUE, as in each flow queue of CAKE.
//!
//! - The CoDel part signals like CoDel, `interval / sqrt(count)` apart, but it has no dropping state: `count` goes up
//!   with each signal while the delay is above `target`, and down at the same pace while it is not. If the delay is
//!   soon above target again, it continues with the same count.
//! - BLUE drops packets of unresponsive flows at random. Its probability goes up by 1/256 when the queue overflows, and
//!   down by 1/4096 when the flow queue is served but empty; each happens at most once per `target`. It never marks.
//! - The last packet of a flow queue may be marked but is not dropped.
//!
//! `interval` is the RTT for which it is tuned, and `target` a 20th of it. On slow links `target` is one and a half
//! full packets, and delays below four full packets are ignored.
//!
//! Sources: T. Høiland-Jørgensen, D. Täht, J. Morton, "Piece of CAKE", 2018; J. Palmei et al., "Design and Evaluation
//! of COBALT Queue Discipline", 2019; W. Feng et al., "The BLUE Active Queue Management Algorithms", 2002; `tc-cake`
//! and the numbers of Linux 6.1.

use super::aqm::{HeadDropAqm, SharedBacklog};
use super::egress::Egress;
use super::packet::Packet;
use super::packet_queue::{PacketQueue, QueuedPacket};
use units::{Instant, Rate, RngStream, Span};

/// Bytes of a full packet with its Ethernet header.
const FULL_PACKET_BYTES: u64 = 1514;
/// Increase of BLUE's drop probability on overflow.
const BLUE_INCREMENT: f64 = 1.0 / 256.0;
/// Decrease of BLUE's drop probability when the queue is empty.
const BLUE_DECREMENT: f64 = 1.0 / 4096.0;

/// COBALT at the head of a flow queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cobalt {
    rtt: Span,
    ecn: bool,
    target: Span,
    interval: Span,
    /// The delay must also exceed this to count as above target: four full packets at the link's rate.
    min_delay: Span,
    /// Whether the last delay was above target.
    above_target: bool,
    count: u32,
    /// Time at which `count` changes next \[`drop_next`\].
    drop_next: Instant,
    blue: Blue,
}

/// BLUE: a drop probability that follows overflow and idleness.
#[derive(Clone, Copy, Debug, Default)]
struct Blue {
    probability: f64,
    changed_at: Instant,
}

/// Action for the packet at the head of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Pass,
    Mark,
    Drop,
}

impl Cobalt {
    pub(super) fn new(rtt: Span, ecn: bool) -> Self {
        Self {
            rtt,
            ecn,
            target: rtt / 20,
            interval: rtt,
            min_delay: Span::ZERO,
            above_target: false,
            count: 0,
            drop_next: Instant::ZERO,
            blue: Blue::default(),
        }
    }

    fn action(&mut self, now: Instant, sojourn: Span, markable: bool, rng: &mut RngStream) -> Action {
        let signal_due = self.is_signal_due(now);
        self.set_above_target(now, sojourn > self.target && sojourn > self.min_delay);
        let mut action = Action::Pass;
        if signal_due && self.above_target {
            action = if markable { Action::Mark } else { Action::Drop };
            self.count = self.count.saturating_add(1);
            self.drop_next += self.control_law();
        } else if signal_due {
            self.decay(now);
        }
        if self.blue.probability > 0.0 && rng.chance(self.blue.probability) {
            action = Action::Drop;
        }
        self.reschedule_overdue(now, action);
        action
    }

    fn is_signal_due(&self, now: Instant) -> bool {
        self.count > 0 && now >= self.drop_next
    }

    fn set_above_target(&mut self, now: Instant, above: bool) {
        if above && !self.above_target {
            self.drop_next = now + self.control_law();
        }
        self.above_target = above;
        if above {
            self.count = self.count.max(1);
        }
    }

    /// Lowers the count at the pace of the control law.
    fn decay(&mut self, now: Instant) {
        while self.is_signal_due(now) {
            self.count -= 1;
            self.drop_next += self.control_law();
        }
    }

    /// Skips overdue signals, so that the next one is due now.
    fn reschedule_overdue(&mut self, now: Instant, action: Action) {
        if self.count == 0 {
            self.drop_next = now + self.interval;
        } else if now > self.drop_next && action != Action::Drop {
            self.drop_next = now;
        }
    }

    fn control_law(&self) -> Span {
        Span((self.interval.0 as f64 / f64::from(self.count.max(1)).sqrt()) as u64)
    }
}

impl HeadDropAqm for Cobalt {
    fn dequeue<P: Packet>(
        &mut self,
        now: Instant,
        queue: &mut PacketQueue<P>,
        _shared: SharedBacklog,
        egress: &mut Egress<P>,
    ) -> Option<QueuedPacket<P>> {
        loop {
            let mut head = queue.pop()?;
            let markable = self.ecn && head.packet.ecn_capable();
            match self.action(now, now.since(head.arrived), markable, &mut egress.rng) {
                Action::Drop if !queue.is_empty() => {
                    egress.discard_dropped(head.packet);
                    continue;
                }
                Action::Mark => egress.mark(&mut head.packet),
                Action::Drop | Action::Pass => {}
            }
            return Some(head);
        }
    }

    fn on_overflow(&mut self, now: Instant, _packets: u32) {
        self.blue.on_overflow(now, self.target);
        self.above_target = true;
        self.count = self.count.max(1);
        self.drop_next = now;
    }

    fn on_empty(&mut self, now: Instant) {
        self.blue.on_empty(now, self.target);
        self.above_target = false;
        self.decay(now);
    }

    /// Accounts for the time in which the queue was empty.
    fn on_activated(&mut self, now: Instant) {
        self.blue.on_activated(now, self.target);
        self.decay(now);
    }

    fn set_rate(&mut self, rate: Option<Rate>) {
        let full_packet_time = rate.map_or(Span::ZERO, |rate| rate.time_for(FULL_PACKET_BYTES));
        let target_without_rate = self.rtt / 20;
        self.target = target_without_rate.max(full_packet_time * 3 / 2);
        self.interval = (self.rtt + self.target.saturating_sub(target_without_rate)).max(self.target * 2);
        self.min_delay = full_packet_time * 4;
    }
}

impl Blue {
    /// Called when the queue overflows.
    fn on_overflow(&mut self, now: Instant, min_interval: Span) {
        if now.since(self.changed_at) > min_interval {
            self.probability = (self.probability + BLUE_INCREMENT).min(1.0);
            self.changed_at = now;
        }
    }

    /// Called when the flow queue is served but empty.
    fn on_empty(&mut self, now: Instant, min_interval: Span) {
        if self.probability > 0.0 && now.since(self.changed_at) > min_interval {
            self.probability = (self.probability - BLUE_DECREMENT).max(0.0);
            self.changed_at = now;
        }
    }

    /// Called when the flow queue gets a packet after it has been empty for some time.
    fn on_activated(&mut self, now: Instant, min_interval: Span) {
        let steps = now.since(self.changed_at).0 / min_interval.0.max(1);
        if self.probability > 0.0 && steps > 0 {
            self.probability = (self.probability - BLUE_DECREMENT * steps as f64).max(0.0);
            self.changed_at += min_interval * steps;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn cobalt() -> Cobalt {
        Cobalt::new(Span::from_millis(100), true)
    }

    /// Times of the signals, ms, with one packet per millisecond with this sojourn time from `from` to `to` ms.
    fn signals(cobalt: &mut Cobalt, from: u64, to: u64, sojourn_ms: u64) -> Vec<u64> {
        let mut rng = RngStream::named(1, "cobalt");
        let mut action = |ms: &u64| cobalt.action(Instant(ms * MS), Span::from_millis(sojourn_ms), true, &mut rng);
        (from..to).filter(|ms| action(ms) == Action::Mark).collect()
    }

    /// The first `n` signals of a delay that is above target from `from` ms on: an interval later, and then ever
    /// faster, the gap after the k-th being interval / sqrt(k + 1).
    fn expected_signals(from: u64, n: u64) -> Vec<u64> {
        let mut time = from as f64;
        let signal_time = |k| {
            time += 100.0 / f64::from(k).sqrt();
            time.ceil() as u64
        };
        (1..=n as u32).map(signal_time).collect()
    }

    #[test]
    fn target_and_interval_follow_the_round_trip_time_and_on_slow_links_the_packet() {
        let target_interval_min_delay = |rate: Option<u64>| {
            let mut cobalt = cobalt();
            cobalt.set_rate(rate.map(Rate::from_bits));
            [cobalt.target, cobalt.interval, cobalt.min_delay].map(Span::as_micros)
        };
        assert_eq!(target_interval_min_delay(None), [5_000, 100_000, 0]);
        assert_eq!(target_interval_min_delay(Some(100_000_000)), [5_000, 100_000, 484]);
        // A packet of 1514 bytes takes 12.112 ms.
        assert_eq!(target_interval_min_delay(Some(1_000_000)), [18_168, 113_168, 48_448]);
        assert_eq!(target_interval_min_delay(Some(100_000)), [181_680, 363_360, 484_480]);
    }

    #[test]
    fn signals_come_an_interval_after_the_first_delay_and_then_ever_faster() {
        let mut cobalt = cobalt();
        assert_eq!(signals(&mut cobalt, 0, 50, 5), [0; 0], "not above target");
        assert_eq!(signals(&mut cobalt, 50, 500, 6), expected_signals(50, 8), "the ninth comes at 520 ms");
    }

    #[test]
    fn below_target_the_count_goes_down_by_the_control_law() {
        let mut cobalt = cobalt();
        let signalled = signals(&mut cobalt, 0, 400, 20);
        let (count, last_signal) = (cobalt.count, *signalled.last().expect("there are signals"));
        assert_eq!(count as usize, signalled.len() + 1);
        // Below target each due signal decrements the count: at drop_next, and then interval / sqrt(count) later.
        let mut expected = count;
        let mut time = cobalt.drop_next;
        while time <= Instant(500 * MS) {
            expected -= 1;
            time += Span((100.0 * MS as f64 / f64::from(expected.max(1)).sqrt()) as u64);
        }
        assert_eq!(signals(&mut cobalt, 400, 501, 0), [0; 0]);
        assert_eq!(cobalt.count, expected, "below target from {last_signal} to 500 ms");
        assert!(expected > 1);
        // Above target again: the next signal after interval / sqrt(count), not after an interval.
        let gap = (100.0 / f64::from(expected).sqrt()).ceil() as u64;
        assert_eq!(signals(&mut cobalt, 501, 700, 20)[0], 501 + gap);
    }

    #[test]
    fn blue_goes_up_by_a_256th_a_target_of_overflow_and_down_by_a_4096th_a_target_of_idleness() {
        let mut blue = Blue::default();
        let min_interval = Span::from_millis(5);
        (1..=1000).for_each(|ms| blue.on_overflow(Instant(ms * MS), min_interval));
        // More than 5 ms apart: at 6, 12, ... 996 ms.
        assert_eq!(blue.probability, 166.0 / 256.0);
        (1001..=2000).for_each(|ms| blue.on_empty(Instant(ms * MS), min_interval));
        // At 1002, 1008, ... 1998 ms.
        assert_eq!(blue.probability, 166.0 / 256.0 - 167.0 / 4096.0);
        blue.on_activated(Instant(1998 * MS + 12 * MS), min_interval);
        assert_eq!((blue.probability, blue.changed_at), (166.0 / 256.0 - 169.0 / 4096.0, Instant(2008 * MS)));
        blue.on_activated(Instant(60_000 * MS), min_interval);
        assert_eq!(blue.probability, 0.0);
        (0..3000).for_each(|step| blue.on_overflow(Instant((60_000 + step * 6) * MS), min_interval));
        assert_eq!(blue.probability, 1.0, "and not beyond");
    }

    #[test]
    fn blue_drops_its_share_and_never_marks() {
        let mut cobalt = Cobalt { blue: Blue { probability: 0.25, changed_at: Instant::ZERO }, ..cobalt() };
        let mut rng = RngStream::named(2, "cobalt");
        let actions: Vec<Action> =
            (0..100_000).map(|us| cobalt.action(Instant(us * 1000), Span::ZERO, true, &mut rng)).collect();
        assert!(!actions.contains(&Action::Mark));
        let share = actions.iter().filter(|action| **action == Action::Drop).count() as f64 / 1e5;
        assert!((share - 0.25).abs() < 5.0 * (0.25 * 0.75 / 1e5_f64).sqrt(), "{share}");
    }
}

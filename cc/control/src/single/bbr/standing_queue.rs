//! On a path of a tunnel: the gain of the cruising phases, which drains a standing queue.
//!
//! The bandwidth is a maximum over ten round trips, and therefore some percent too high if deliveries jitter: 2 to 5 %
//! on a kernel. Cruising at gain 1 then fills the window, and a bandwidth-delay product stands in the queue for every
//! flow that shares the path. Therefore the gain falls from cycle to cycle while no packet of the cruising phases has
//! met an empty queue, and otherwise rises to 1. A queue that the minimum gain does not halve is another sender's, as
//! in Copa (Arun and Balakrishnan, NSDI 2018, section 2.2), and the gain is then 1 for some cycles.

use super::bandwidth::{BBR_UNIT, BW_SCALE};
use units::Span;

/// Change of the gain between cycles, and its minimum, in 1/256.
const STEP: u32 = 3;
const MIN_GAIN: u32 = 235;
/// A queue that is shorter than this, or has less than two packets, is not a standing queue.
const MIN_QUEUE: Span = Span::from_millis(1);
/// Cycles at the minimum gain that halve a queue of this sender: 8 % of six phases each drain half a bandwidth-delay
/// product per cycle, minus the excess of the bandwidth.
const DRAIN_CYCLES: u32 = 8;
/// Cycles with gain 1 after another sender was detected.
const COMPETING_CYCLES: u32 = 30;

/// The RTTs of the cruising phases.
#[derive(Debug, Default)]
pub(super) struct StandingQueue {
    /// Minimum RTT in the cruising phases of this cycle, microseconds.
    cruise_rtt: Option<u64>,
    /// The queue when the gain began to fall, microseconds.
    initial_queue: u64,
    /// Cycles at the minimum gain since then.
    cycles_at_minimum: u32,
    /// Remaining cycles with a competing sender.
    competing_cycles: u32,
}

impl StandingQueue {
    /// Records an RTT in a cruising phase, microseconds.
    pub(super) fn on_cruise_rtt(&mut self, rtt: u64) {
        self.cruise_rtt = Some(self.cruise_rtt.map_or(rtt, |least| least.min(rtt)));
    }

    /// The gain of the next cycle after `gain`, with the minimum RTT in microseconds and the bandwidth.
    pub(super) fn next_gain(&mut self, gain: u32, min_rtt: u64, bandwidth: u64) -> u32 {
        let Some(cruise_rtt) = self.cruise_rtt.take() else { return gain };
        if self.competing_cycles > 0 {
            self.competing_cycles -= 1;
            return BBR_UNIT;
        }
        let queue = cruise_rtt.saturating_sub(min_rtt);
        let two_packets = (2 << BW_SCALE) / bandwidth.max(1);
        if queue <= MIN_QUEUE.as_micros().max(two_packets) {
            return (gain + STEP).min(BBR_UNIT);
        }
        if gain == BBR_UNIT {
            (self.initial_queue, self.cycles_at_minimum) = (queue, 0);
        }
        if gain > MIN_GAIN {
            return gain - STEP;
        }
        self.cycles_at_minimum += 1;
        if queue <= self.initial_queue / 2 || self.cycles_at_minimum < DRAIN_CYCLES {
            return gain;
        }
        self.competing_cycles = COMPETING_CYCLES;
        BBR_UNIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN_RTT: u64 = 16_000;
    /// 8 packets per millisecond.
    const BANDWIDTH: u64 = (8 << BW_SCALE) / 1000;

    /// The gains of so many cycles, in each of which a packet meets the queue that `queue` makes of the gain, in
    /// microseconds.
    fn gains(cycles: usize, mut queue: impl FnMut(u32) -> u64) -> Vec<u32> {
        let mut standing_queue = StandingQueue::default();
        let mut gain = BBR_UNIT;
        let next = |_| {
            standing_queue.on_cruise_rtt(MIN_RTT + queue(gain) + 5000);
            standing_queue.on_cruise_rtt(MIN_RTT + queue(gain));
            gain = standing_queue.next_gain(gain, MIN_RTT, BANDWIDTH);
            gain
        };
        (0..cycles).map(next).collect()
    }

    #[test]
    fn a_bandwidth_of_five_percent_too_much_is_found_and_the_queue_is_drained() {
        // Six cruising phases of a minimum RTT each; the window bounds the queue.
        let mut queue = 16_000_i64;
        let gains = gains(60, |gain| {
            let rate = f64::from(gain) / 256.0 * 1.05;
            // Called twice a cycle, each for three phases.
            queue = (queue + (3.0 * 16_000.0 * (rate - 1.0)) as i64).clamp(0, 16_000);
            queue as u64
        });
        let exact = (256.0 / 1.05) as u32;
        assert!(gains[20..].iter().all(|gain| gain.abs_diff(exact) <= 2 * STEP), "{gains:?}");
    }

    #[test]
    fn an_empty_queue_leaves_the_gain_at_one() {
        assert!(gains(20, |_| 900).iter().all(|gain| *gain == BBR_UNIT));
    }

    #[test]
    fn a_queue_of_another_sender_is_left_to_it_and_the_gain_is_one_for_thirty_cycles() {
        let gains = gains(46, |_| 30_000);
        assert_eq!(gains[..7], [253, 250, 247, 244, 241, 238, 235]);
        assert!(gains[7..14].iter().all(|gain| *gain == 235), "{gains:?}");
        assert!(gains[14..45].iter().all(|gain| *gain == BBR_UNIT), "{gains:?}");
        assert_eq!(gains[45], 253);
    }
}

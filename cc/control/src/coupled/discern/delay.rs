//! What the RTT samples of a path say: its base RTT, its queueing delay, and from which delay on a loss is congestion.
//!
//! Times are in seconds.

use super::Config;
use units::{Instant, Span};

/// The base RTT is the minimum of the present slot and the one before.
const SLOT: Span = Span::from_secs(10);
/// The least and the greatest of what is taken for noise of the hosts: five times the base RTT between these.
const NOISE: [f64; 2] = [50e-6, 2e-3];
/// Samples in a row of which the greatest counts for the base RTT, at least and at most.
const LEAST_IN_A_ROW: usize = 3;
const MOST_IN_A_ROW: usize = 8;
/// A base RTT is old where the present slot's is so much greater.
const OLD: f64 = 1.05;
/// A delay of so much of the base RTT is a queue.
const BASE_PART: f64 = 1.0 / 16.0;

/// RTT samples of a path.
#[derive(Debug)]
pub(super) struct Delay {
    slots: [f64; 2],
    slot_start: Instant,
    latest: f64,
    /// When the latest sample of packets in order came. Where there is none for long, the others have to do.
    in_order_at: Instant,
    /// The latest samples of packets in order. The greatest of some in a row counts: a packet that overtakes others tells of
    /// no base RTT, nor does one that jitter held up less than its neighbours.
    samples: [f64; MOST_IN_A_ROW],
    /// How many of them.
    in_a_row: usize,
    /// The queueing delays of the latest samples: the least of four counts.
    recent: [f64; 4],
    queueing: f64,
    /// The greatest queueing delay, which fades by 1/512 a round.
    max: f64,
}

impl Delay {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            slots: [f64::INFINITY; 2],
            slot_start: now,
            latest: 0.0,
            in_order_at: now,
            samples: [0.0; MOST_IN_A_ROW],
            in_a_row: LEAST_IN_A_ROW,
            recent: [0.0; 4],
            queueing: 0.0,
            max: 0.0,
        }
    }

    /// Takes an RTT sample, of packets in order or not; returns the queueing delay.
    pub(super) fn on_sample(&mut self, rtt: f64, is_in_order: bool, now: Instant) -> f64 {
        self.latest = rtt;
        if is_in_order || self.base().is_infinite() {
            self.in_order_at = now;
        }
        if is_in_order || self.base().is_infinite() || now.since(self.in_order_at) > SLOT {
            self.update_base(rtt, now);
        }
        // A packet that overtakes others skips what delays them: it does not show that there is no queue.
        if !is_in_order && rtt < self.base() {
            return self.queueing;
        }
        let [a, b, c, _] = self.recent;
        self.recent = [(rtt - self.base()).max(0.0), a, b, c];
        self.queueing = self.recent.iter().copied().fold(f64::INFINITY, f64::min);
        self.max = self.max.max(self.queueing);
        self.queueing
    }

    fn update_base(&mut self, rtt: f64, now: Instant) {
        self.samples.rotate_right(1);
        self.samples[0] = rtt;
        let settled = self.samples[..self.in_a_row].iter().copied().fold(0.0, f64::max);
        if now.since(self.slot_start) > SLOT {
            self.slots = [settled, self.slots[0]];
            self.slot_start = now;
        }
        self.slots[0] = self.slots[0].min(settled);
    }

    /// With so many packets in flight, the base RTT has to last for a quarter of them, within three and eight.
    pub(super) fn set_in_flight(&mut self, packets: f64) {
        self.in_a_row = ((packets / 4.0) as usize).clamp(LEAST_IN_A_ROW, MOST_IN_A_ROW);
    }

    /// A round has ended in which this was the greatest queueing delay.
    pub(super) fn end_round(&mut self, max: f64) {
        self.max = max.max(self.max * (1.0 - 1.0 / 512.0));
    }

    /// The path has become longer by so much: the delay of now is no queue.
    pub(super) fn lengthen(&mut self, by: f64) {
        self.slots = [self.base() + by, f64::INFINITY];
        (self.recent, self.queueing, self.max) = ([0.0; 4], 0.0, 0.0);
    }

    /// The RTT without a queue; infinite before the first sample.
    pub(super) fn base(&self) -> f64 {
        self.slots[0].min(self.slots[1])
    }

    /// Whether the base RTT was seen in the slot before, and not yet in the present one.
    pub(super) fn is_base_old(&self) -> bool {
        self.slots[0] > OLD * self.slots[1]
    }

    /// The latest RTT; 0 before the first sample.
    pub(super) fn latest(&self) -> f64 {
        self.latest
    }

    /// The queueing delay now.
    pub(super) fn queueing(&self) -> f64 {
        self.queueing
    }

    /// The queueing delay from which a loss is congestion: θ.
    pub(super) fn threshold(&self, config: &Config) -> f64 {
        let noise = (5.0 * self.base()).clamp(NOISE[0], NOISE[1]);
        noise.max(BASE_PART * self.base()).max(config.theta * self.max)
    }

    /// The queueing delay of a round from which a queue stands, and from which politeness tests.
    pub(super) fn standing(&self) -> f64 {
        (BASE_PART * self.base()).max(NOISE[1])
    }

    /// The least queueing delay of a round that ends slow start.
    pub(super) fn slow_start_limit(&self) -> f64 {
        (self.base() / 8.0).clamp(4e-3, 16e-3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Params;
    use std::collections::BTreeMap;

    fn config(theta: f64) -> Config {
        let given = BTreeMap::from([("theta".to_owned(), crate::ParamValue::Number(theta))]);
        Config::new(&Params::new(super::super::ENTRY.parameters, &given).expect("allowed"))
    }

    /// After eight samples of `base` and as many of `rtt`, in seconds.
    fn delay(base: f64, rtt: f64) -> Delay {
        let mut delay = Delay::new(Instant::ZERO);
        [[base; 8], [rtt; 8]].iter().flatten().for_each(|rtt| {
            delay.on_sample(*rtt, true, Instant::ZERO);
        });
        delay
    }

    fn assert_close(value: f64, expected: f64) {
        assert!((value / expected - 1.0).abs() < 1e-9, "{value} instead of {expected}");
    }

    #[test]
    fn theta_is_five_base_rtts_between_50_us_and_2_ms_or_a_sixteenth_of_the_base_rtt() {
        for (base, theta) in [(5e-6, 50e-6), (100e-6, 500e-6), (20e-3, 2e-3), (40e-3, 2.5e-3), (160e-3, 10e-3)] {
            assert_close(delay(base, base).threshold(&config(0.0)), theta);
        }
    }

    #[test]
    fn theta_can_be_a_part_of_the_greatest_queueing_delay_which_fades_by_a_512th_a_round() {
        let mut delay = delay(20e-3, 60e-3);
        assert_close(delay.threshold(&config(0.25)), 10e-3);
        delay.end_round(0.0);
        assert_close(delay.threshold(&config(0.25)), 10e-3 * 511.0 / 512.0);
    }

    #[test]
    fn one_late_packet_is_no_queue_and_one_that_overtakes_no_base_rtt() {
        let mut delay = delay(20e-3, 20e-3);
        assert_eq!(delay.on_sample(90e-3, true, Instant::ZERO), 0.0);
        delay.on_sample(1e-3, true, Instant::ZERO);
        assert_close(delay.base(), 20e-3);
        (0..8).for_each(|_| {
            delay.on_sample(1e-3, false, Instant::ZERO);
        });
        assert_close(delay.base(), 20e-3);
    }

    #[test]
    fn a_packet_that_overtakes_others_does_not_show_that_the_queue_has_gone() {
        let mut delay = delay(20e-3, 60e-3);
        assert_close(delay.on_sample(15e-3, false, Instant::ZERO), 40e-3);
        assert_close(delay.on_sample(30e-3, false, Instant::ZERO), 10e-3);
        assert_eq!(delay.on_sample(15e-3, true, Instant::ZERO), 0.0);
    }

    /// A path of 20 to 30 ms whose jitter keeps packets in order: the delay jumps up and falls a millisecond a packet.
    #[test]
    fn with_many_packets_in_flight_the_base_rtt_has_to_last_so_that_jitter_is_no_queue() {
        let greatest = |in_flight: f64| {
            let mut delay = Delay::new(Instant::ZERO);
            delay.set_in_flight(in_flight);
            let rtts = (0..1_000).map(|packet| 30e-3 - f64::from(packet % 11) * 1e-3);
            rtts.map(|rtt| delay.on_sample(rtt, true, Instant::ZERO)).skip(11).fold(0.0, f64::max)
        };
        assert_close(greatest(12.0), 5e-3);
        assert_eq!(greatest(100.0), 0.0);
    }

    #[test]
    fn a_base_rtt_is_old_while_the_present_slot_has_not_seen_it() {
        let mut delay = delay(20e-3, 20e-3);
        let mut is_old = |rtt, second| {
            (0..8).for_each(|_| {
                delay.on_sample(rtt, true, Instant::ZERO + Span::from_secs(second));
            });
            delay.is_base_old()
        };
        assert_eq!([is_old(22e-3, 9), is_old(22e-3, 11), is_old(20.5e-3, 12)], [false, true, false]);
    }

    #[test]
    fn of_a_longer_path_the_delay_is_no_queue_at_once_and_a_shorter_one_is_seen_as_before() {
        let mut delay = delay(20e-3, 60e-3);
        delay.lengthen(40e-3);
        assert_close(delay.base(), 60e-3);
        assert_eq!(delay.on_sample(60e-3, true, Instant::ZERO), 0.0);
        (0..8).for_each(|_| {
            delay.on_sample(30e-3, true, Instant::ZERO);
        });
        assert_close(delay.base(), 30e-3);
    }

    #[test]
    fn the_base_rtt_rises_after_two_slots_of_ten_seconds() {
        let mut delay = delay(20e-3, 20e-3);
        let mut base_at = |second| {
            (0..4).for_each(|_| {
                delay.on_sample(50e-3, true, Instant::ZERO + Span::from_secs(second));
            });
            delay.base()
        };
        assert_close(base_at(9), 20e-3);
        assert_close(base_at(11), 20e-3);
        assert_close(base_at(22), 50e-3);
    }
}

use super::*;
use crate::quic::AckRanges;
use units::PathId;

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

fn ack(ranges: &[(u64, u64)]) -> PathAck {
    let mut ack_ranges = AckRanges::default();
    ranges.iter().for_each(|(start, end)| ack_ranges.push(*start, *end));
    PathAck { path: 0, delay_us: 0, ranges: ack_ranges, ce_count: 0, max_data: 0, one_way_delay_us: 0 }
}

/// A space whose packet number `n` carries chunk `n`, and an estimator with one sample of 100 ms.
struct Space {
    sent: SentPackets,
    rtt: RttEstimator,
    sender: PathSender,
    outcomes: PacketOutcomes,
}

impl Space {
    fn new() -> Self {
        let mut rtt = RttEstimator::default();
        rtt.update(Instant::ZERO, Span::from_millis(100), Span::ZERO);
        Self {
            sent: SentPackets::new(true),
            rtt,
            sender: PathSender::new(PathId(0), 10, Span::from_secs(1)),
            outcomes: PacketOutcomes::default(),
        }
    }

    fn send_at(&mut self, at: Instant) {
        let number = self.sent.next();
        assert_eq!(self.sent.push(at, Some(number), false, &mut self.sender), number);
    }

    fn ack(&mut self, at: Instant, ranges: &[(u64, u64)]) -> (Vec<u64>, Vec<u64>) {
        assert!(self.sent.on_ack(at, &ack(ranges), &mut self.rtt, &mut self.sender, &mut self.outcomes));
        let mut acked = self.outcomes.acked_chunks.clone();
        acked.sort_unstable();
        (acked, self.outcomes.lost_chunks.clone())
    }
}

/// RFC 9002, section 6.1.1.
#[test]
fn a_packet_is_lost_when_one_sent_three_packets_later_is_acknowledged() {
    let mut space = Space::new();
    (0..6).for_each(|number| space.send_at(ms(1000 + number)));
    assert_eq!(space.ack(ms(1100), &[(2, 2)]), (vec![2], vec![]), "packet 0 is two older");
    assert_eq!(space.ack(ms(1101), &[(2, 3)]), (vec![3], vec![0]));
    assert_eq!(space.ack(ms(1102), &[(2, 4)]), (vec![4], vec![1]));
    assert_eq!(space.sent.in_flight(), 1);
}

/// RFC 9002, section 6.1.2: 9/8 of the greater of smoothed and latest RTT, from when the packet was sent.
#[test]
fn a_packet_is_lost_when_the_time_threshold_has_passed() {
    let mut space = Space::new();
    (0..2).for_each(|_| space.send_at(ms(1000)));
    assert_eq!(space.ack(ms(1100), &[(1, 1)]), (vec![1], vec![]));
    let deadline = ms(1000) + Span::from_micros(112_500);
    assert_eq!(space.sent.loss_time(), deadline);
    space.sent.on_loss_timer(deadline - Span(1), &space.rtt, &mut space.sender, &mut space.outcomes);
    assert!(space.outcomes.lost_chunks.is_empty());
    space.sent.on_loss_timer(deadline, &space.rtt, &mut space.sender, &mut space.outcomes);
    assert_eq!((&space.outcomes.lost_chunks, space.sent.in_flight()), (&vec![0], 0));
    assert_eq!(space.sent.loss_time(), Instant::NEVER);
}

/// The events of the table in RFC 9002, section 7.6.3, in other units of time: what is lost spans seven of them, and the
/// duration is 0.975 s or less, so that 100 ms are too short and 200 ms are not.
#[test]
fn losses_over_three_probe_timeouts_with_nothing_acknowledged_between_are_a_persistent_congestion() {
    for (unit_ms, is_persistent) in [(100, false), (200, true)] {
        let mut space = Space::new();
        let at = |units: u64| ms(1000) + Span::from_millis(unit_ms) * units;
        (0..2).for_each(|units| space.send_at(at(units)));
        space.ack(ms(1100), &[(0, 0)]);
        [2, 3, 4, 5, 6, 8, 12].into_iter().for_each(|units| space.send_at(at(units)));
        // Packets 2 through 8 of the table are numbers 1 to 7 here; its packet 9 is number 8.
        let now = at(12) + Span::from_millis(100);
        assert_eq!(space.ack(now, &[(8, 8)]), (vec![8], (1..8).collect()));
        let duration = space.rtt.persistent_congestion_duration();
        assert_eq!(Span::from_millis(unit_ms) * 7 > duration, is_persistent, "{duration}");
        assert_eq!(space.outcomes.is_persistent, is_persistent, "{duration}");
    }
}

#[test]
fn an_acknowledgement_between_two_losses_and_losses_before_a_sample_are_no_persistent_congestion() {
    let mut space = Space::new();
    [1000, 2000, 3000, 3500].into_iter().for_each(|at| space.send_at(ms(at)));
    assert_eq!(space.ack(ms(3600), &[(3, 3), (1, 1)]), (vec![1, 3], vec![0, 2]));
    assert!(!space.outcomes.is_persistent, "packet 1 was acknowledged");
    let mut space = Space { rtt: RttEstimator::default(), ..Space::new() };
    [1000, 5000, 9000].into_iter().for_each(|at| space.send_at(ms(at)));
    assert_eq!(space.ack(ms(9100), &[(2, 2)]), (vec![2], vec![0, 1]));
    assert!(!space.outcomes.is_persistent, "there was no sample");
}

/// RFC 9000, section 13.3.
#[test]
fn a_packet_that_was_only_late_is_found_spurious_within_a_probe_timeout() {
    let mut space = Space::new();
    (0..5).for_each(|_| space.send_at(ms(1000)));
    assert_eq!(space.ack(ms(1100), &[(4, 4)]).1, [0, 1]);
    assert_eq!(space.ack(ms(1101), &[(4, 4), (0, 0)]), (vec![0], vec![]));
    assert_eq!(space.outcomes.spurious_losses, 1);
    // After it the packet is forgotten.
    (0..5).for_each(|_| space.send_at(ms(2000)));
    space.ack(ms(2100), &[(9, 9), (2, 4)]);
    assert_eq!(space.ack(ms(2101), &[(1, 9)]).0, [5, 6, 7, 8]);
}

#[test]
fn packets_that_were_never_sent_are_not_acknowledged() {
    let mut space = Space::new();
    space.send_at(ms(1000));
    let mut on_ack =
        |ack: &PathAck| space.sent.on_ack(ms(1100), ack, &mut space.rtt, &mut space.sender, &mut space.outcomes);
    assert!(!on_ack(&ack(&[(1, 1)])) && !on_ack(&ack(&[])));
    assert!(on_ack(&ack(&[(0, 0)])));
}

/// RFC 9002, section 5.1: a sample only if the largest acknowledged packet is newly acknowledged. RFC 9000, section
/// 13.4.2.1: counts of marks only from the newest acknowledgement.
#[test]
fn an_overtaken_acknowledgement_gives_no_sample_and_no_marks() {
    let mut space = Space::new();
    (0..4).for_each(|number| space.send_at(ms(1000 + number)));
    space.sent.on_ack(
        ms(1110),
        &PathAck { ce_count: 1, ..ack(&[(2, 2)]) },
        &mut space.rtt,
        &mut space.sender,
        &mut space.outcomes,
    );
    assert_eq!((space.outcomes.acked.marked, space.outcomes.acked.rtt), (1, Some(Span::from_millis(108))));
    assert_eq!(space.ack(ms(1111), &[(1, 1)]), (vec![1], vec![]));
    assert_eq!((space.outcomes.acked.marked, space.outcomes.acked.rtt), (0, None));
}

/// RFC 9002, section 6.1.1: the threshold may grow to the reordering that was observed.
#[test]
fn after_a_spurious_loss_the_packet_threshold_covers_what_was_reordered() {
    let mut space = Space::new();
    (0..12).for_each(|_| space.send_at(ms(1000)));
    assert_eq!(space.ack(ms(1100), &[(4, 4)]).1, [0, 1]);
    assert_eq!(space.ack(ms(1101), &[(4, 4), (0, 1)]), (vec![0, 1], vec![]), "0 was displaced by four packets");
    assert_eq!(space.ack(ms(1102), &[(6, 6), (4, 4), (0, 1)]).1, Vec::<u64>::new(), "2 is displaced by four too");
    assert_eq!(space.ack(ms(1103), &[(7, 7), (4, 4), (0, 1)]).1, [2], "and now by five");
}

#[test]
fn a_late_packet_counts_as_delivered() {
    let mut space = Space::new();
    (0..5).for_each(|_| space.send_at(ms(1000)));
    space.ack(ms(1100), &[(4, 4)]);
    space.ack(ms(1101), &[(4, 4), (0, 1)]);
    assert_eq!(space.sender.delivered(), 3);
}

use super::*;

/// An inner packet, which a mark can signal if its flow is ECN-capable.
#[derive(Clone, Debug)]
struct TestPacket {
    id: u32,
    bytes: u32,
    ect: bool,
}

impl Payload for TestPacket {
    fn len(&self) -> u32 {
        self.bytes
    }
    fn slice(&self, _: u32, _: u32) -> Self {
        self.clone()
    }
    fn signal_congestion(&mut self) -> bool {
        self.ect
    }
}

fn ms(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

fn ingress(max_bytes: u64) -> (IngressQueue<TestPacket>, EndpointCounters) {
    let (codel_target, codel_interval) = (Span::from_millis(5), Span::from_millis(100));
    let options = TunnelOptions { codel_target, codel_interval, memory_bytes: max_bytes, ..TunnelOptions::default() };
    (IngressQueue::new(&options), EndpointCounters::default())
}

#[test]
fn a_sparse_flow_goes_first_and_others_take_turns_by_bytes() {
    let (mut ingress, mut counters) = ingress(1 << 30);
    for id in 0..40 {
        let (stream, bytes) = if id % 2 == 0 { (1, 1514) } else { (2, 757) };
        ingress.push(ms(0), stream, TestPacket { id, bytes, ect: false }, &mut counters);
    }
    let mut order: Vec<u8> =
        (0..6).filter_map(|_| ingress.pop(ms(0), false, &mut counters)).map(|(stream, ..)| stream).collect();
    assert_eq!(order, [1, 2, 2, 1, 2, 2]);
    assert!(!ingress.next_is_sparse(1514), "both have a backlog");
    ingress.push(ms(0), 3, TestPacket { id: 99, bytes: 84, ect: false }, &mut counters);
    assert!(ingress.next_is_sparse(1514) && !ingress.next_is_sparse(83));
    order = (0..2).filter_map(|_| ingress.pop(ms(0), false, &mut counters)).map(|(stream, ..)| stream).collect();
    assert_eq!(order[0], 3);
}

/// A queue that is drained at 1 packet a millisecond and always holds 20: the first signal comes after an interval,
/// then more and more often (RFC 8289: an interval, 100 / sqrt(2), 100 / sqrt(3) ... later).
#[test]
fn a_standing_queue_is_marked_or_dropped_at_the_intervals_of_codel() {
    for ect in [true, false] {
        let (mut ingress, mut counters) = ingress(1 << 30);
        let mut times = Vec::new();
        let mut id = 0;
        for now_ms in 0..400 {
            while ingress.packet_count < 20 {
                id += 1;
                ingress.push(ms(now_ms), 7, TestPacket { id, bytes: 1514, ect }, &mut counters);
            }
            let signals_before = counters.ingress_marked_or_trimmed_packets + counters.ingress_dropped_packets;
            ingress.pop(ms(now_ms), false, &mut counters);
            if counters.ingress_marked_or_trimmed_packets + counters.ingress_dropped_packets > signals_before {
                times.push(now_ms);
            }
        }
        // The sojourn passes 5 ms at 5 ms; the first signal is an interval later.
        let expected = [105.0, 205.0, 275.7, 333.4, 383.4];
        assert_eq!(times.len(), expected.len(), "{times:?}");
        for (time, expected) in times.iter().zip(expected) {
            assert!((*time as f64 - expected).abs() <= 2.0, "{times:?}");
        }
        assert_eq!(counters.ingress_marked_or_trimmed_packets > 0, ect);
        assert_eq!(counters.ingress_dropped_packets > 0, !ect);
    }
}

#[test]
fn a_full_ingress_drops_from_the_longest_queue() {
    let (mut ingress, mut counters) = ingress(10_000);
    (0..9).for_each(|id| ingress.push(ms(0), 1, TestPacket { id, bytes: 1000, ect: true }, &mut counters));
    (0..4).for_each(|id| ingress.push(ms(0), 2, TestPacket { id, bytes: 1000, ect: true }, &mut counters));
    assert_eq!((ingress.bytes, counters.ingress_dropped_packets), (10_000, 3));
    let first = std::iter::from_fn(|| ingress.pop(ms(0), false, &mut counters)).find(|(stream, ..)| *stream == 1);
    assert_eq!(first.expect("some are left").2.id, 3, "the oldest went");
}

/// A pure acknowledgement: its connection, and its number.
#[derive(Clone, Copy, Debug, PartialEq)]
struct TestAck(u8, u32);

impl Payload for TestAck {
    fn len(&self) -> u32 {
        52
    }
    fn slice(&self, _: u32, _: u32) -> Self {
        *self
    }
    fn relation(&self, earlier: &Self) -> QueueRelation {
        match (self.0 == earlier.0, self.1.cmp(&earlier.1)) {
            (false, _) => QueueRelation::Unrelated,
            (true, std::cmp::Ordering::Greater) => QueueRelation::Supersedes,
            (true, std::cmp::Ordering::Equal) => QueueRelation::Duplicate,
            (true, std::cmp::Ordering::Less) => QueueRelation::SameFlow,
        }
    }
}

/// What is left of acknowledgements that were pushed into one stream, with or without a backlog.
fn left_of(ack_filter: bool, acks: &[(bool, TestAck)]) -> (Vec<TestAck>, u64) {
    let options = TunnelOptions { ack_filter, ..TunnelOptions::default() };
    let (mut ingress, mut counters) = (IngressQueue::new(&options), EndpointCounters::default());
    for (has_backlog, ack) in acks {
        ingress.has_backlog = *has_backlog;
        ingress.push(ms(0), 1, *ack, &mut counters);
        ingress.check();
    }
    let left = std::iter::from_fn(|| ingress.pop(ms(0), false, &mut counters)).map(|(_, _, ack)| ack).collect();
    (left, counters.thinned_acks)
}

#[test]
fn an_acknowledgement_takes_the_place_of_an_earlier_one_of_its_connection_in_a_backlog_alone() {
    let pushed = [(false, 0, 1), (false, 0, 2), (true, 7, 5), (true, 0, 3), (true, 7, 6), (true, 0, 4)];
    let pushed = pushed.map(|(has_backlog, connection, number)| (has_backlog, TestAck(connection, number)));
    assert_eq!(left_of(true, &pushed), (vec![TestAck(0, 1), TestAck(0, 4), TestAck(7, 6)], 3));
    assert_eq!(left_of(false, &pushed), (pushed.map(|(_, ack)| ack).to_vec(), 0), "switched off");
}

#[test]
fn duplicate_acknowledgements_and_the_one_that_they_repeat_stay() {
    let pushed = [5, 5, 5, 6, 7].map(|number| (true, TestAck(0, number)));
    let left = [5, 5, 5, 7].map(|number| TestAck(0, number)).to_vec();
    assert_eq!(left_of(true, &pushed), (left, 1));
}

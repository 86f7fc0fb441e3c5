//! Flow queues: FQ-CoDel and CAKE.

use super::*;

/// Transmission time of a full packet at 10 Mbit/s.
const FULL_PACKET_TIME: u64 = 1200 * US;

/// FQ-CoDel and CAKE that drop nothing before they are full. So many flow queues that none is shared by chance.
fn without_early_drops() -> [QueueDiscipline; 2] {
    let codel = CoDelConfig { target: Span::MAX, ..CoDelConfig::default() };
    [
        QueueDiscipline::FqCodel(FqCodelConfig { flows: 16_384, quantum: 1514, codel }),
        QueueDiscipline::Cake(CakeConfig { rtt: Span::from_secs(3600) }),
    ]
}

/// 10 Mbit/s, no delay.
fn fair_pipe(discipline: QueueDiscipline, packets: u64) -> Pipe<TestPacket> {
    let queue = QueueConfig { limit: QueueLimit::Packets(packets), discipline, ecn: false };
    pipe(&PipeConfig { rate: Some(Rate::from_mbit(10)), delay: Span::ZERO, queue, ..link() })
}

/// Offers numbered packets of `flow` at `now`.
fn enqueue(pipe: &mut Pipe<TestPacket>, now: u64, flow: u16, bytes: u32, numbers: std::ops::Range<u64>) {
    for number in numbers {
        pipe.enqueue(Instant(now), TestPacket { flow, ..packet(number, bytes) });
    }
}

/// RFC 8290, section 1: a flow that builds no queue waits for the packet in transmission, whatever the others have.
#[test]
fn a_sparse_flow_has_priority_over_backlogged_flows() {
    for discipline in without_early_drops() {
        let mut pipe = fair_pipe(discipline, 100_000);
        (1..=8).for_each(|flow| enqueue(&mut pipe, 0, flow, 1500, 0..200));
        // One packet each 50 ms: in a round of eight packets its flow queue is empty and leaves the lists.
        for k in 0..30 {
            let now = (k + 1) * 50 * MS;
            arrivals(&mut pipe, now);
            enqueue(&mut pipe, now, 0, 200, k..k + 1);
            let wait =
                arrivals(&mut pipe, now + 10 * FULL_PACKET_TIME).into_iter().find(|(_, packet)| packet.flow == 0);
            let wait = wait.expect("it has arrived").0 - now;
            assert!(wait <= FULL_PACKET_TIME + 160 * US, "{discipline:?}, packet {k}: {wait} ns");
        }
    }
}

/// A packet of a new flow may also wait for the quanta of the other new flows.
#[test]
fn new_flows_wait_for_each_other_only() {
    for discipline in without_early_drops() {
        let mut pipe = fair_pipe(discipline, 100_000);
        (100..=104).for_each(|flow| enqueue(&mut pipe, 0, flow, 1500, 0..200));
        arrivals(&mut pipe, 100 * MS);
        (0..20).for_each(|flow| enqueue(&mut pipe, 100 * MS, flow, 200, 0..1));
        let order: Vec<u16> = arrivals(&mut pipe, 200 * MS).iter().map(|(_, packet)| packet.flow).collect();
        assert!(order[1..=20].iter().copied().eq(0..20), "{order:?}");
    }
}

/// The turns of two flow queues differ by one at most, and a deficit is never more than a packet below zero: two flows
/// are never further apart than a quantum and a packet (section 4.2).
#[test]
fn backlogged_flows_share_within_a_quantum_and_a_packet() {
    for discipline in without_early_drops() {
        let mut pipe = fair_pipe(discipline, 100_000);
        let sizes = [1500, 1000, 700, 64, 333];
        (0..5).for_each(|flow| enqueue(&mut pipe, 0, flow, sizes[usize::from(flow)], 0..3000));
        let mut sent = [0u64; 5];
        // The smallest have 192 kB each to send, and are done when all have sent that: after 768 ms.
        for (_, packet) in arrivals(&mut pipe, 700 * MS) {
            sent[usize::from(packet.flow)] += u64::from(packet.bytes);
            let (min, max) = (sent.iter().min().expect("five"), sent.iter().max().expect("five"));
            assert!(max - min < 1514 + 1500, "{discipline:?}: {sent:?}");
        }
        assert!(sent.iter().sum::<u64>() > 850_000);
    }
}

/// RFC 8290, section 4.1: half the bytes of the longest flow queue are dropped from its head, but 64 packets at most;
/// CAKE drops one.
#[test]
fn a_full_queue_drops_from_the_head_of_the_longest_flow_queue() {
    for (discipline, packets, expected) in [
        (without_early_drops()[0], 100, 50),
        (without_early_drops()[0], 1000, 64),
        (without_early_drops()[1], 100, 1),
        (without_early_drops()[1], 1000, 1),
    ] {
        let mut pipe = fair_pipe(discipline, packets + 30);
        enqueue(&mut pipe, 0, 1, 1500, 0..packets + 1);
        enqueue(&mut pipe, 0, 2, 1500, 0..30);
        assert_eq!(pipe.counters().dropped, 0, "full, but not too full");
        assert_eq!(pipe.enqueue(Instant(0), TestPacket { flow: 2, ..packet(30, 1500) }), Verdict::Accepted);
        let mut dropped: Vec<_> =
            std::iter::from_fn(|| pipe.take_discarded()).map(|(packet, _)| (packet.flow, packet.number)).collect();
        dropped.sort_unstable();
        assert!(dropped.iter().copied().eq((1..=expected).map(|number| (1, number))), "{discipline:?}: {dropped:?}");
        assert!(is_conserved(&pipe));
    }
}

#[test]
fn the_only_packet_of_the_longest_flow_queue_is_dropped() {
    for discipline in without_early_drops() {
        let queue = QueueConfig { limit: QueueLimit::Bytes(1000), discipline, ecn: false };
        let mut pipe = pipe(&PipeConfig { queue, ..link() });
        assert_eq!(burst(&mut pipe, 0, 2), [Verdict::Accepted, Verdict::Dropped], "the first one found the link free");
        assert_eq!((pipe.counters().dropped, pipe.queued_packets(Instant(0))), (1, 0));
    }
}

/// A flow queue that is empty when it is served leaves the lists, and its flow is new again. One that is not served
/// while it is empty keeps its turn and its deficit.
#[test]
fn an_idle_flow_is_new_again_and_others_keep_their_turn() {
    for discipline in without_early_drops() {
        let mut pipe = fair_pipe(discipline, 100_000);
        enqueue(&mut pipe, 0, 1, 1500, 0..10);
        arrivals(&mut pipe, 100 * MS);
        // The transmitter asked at 12 ms, and found nothing.
        enqueue(&mut pipe, 100 * MS, 2, 1500, 0..10);
        arrivals(&mut pipe, 110 * MS);
        enqueue(&mut pipe, 110 * MS, 1, 1500, 10..11);
        let order: Vec<u16> = arrivals(&mut pipe, 200 * MS).iter().map(|(_, packet)| packet.flow).collect();
        assert_eq!(order[..3], [2, 1, 2], "{discipline:?}: after the packet in transmission");
        // Flow 1 has its last packet in transmission: its flow queue is empty, and was not served since.
        enqueue(&mut pipe, 300 * MS, 1, 1500, 11..13);
        arrivals(&mut pipe, 300 * MS + FULL_PACKET_TIME);
        enqueue(&mut pipe, 300 * MS + FULL_PACKET_TIME, 2, 1500, 10..13);
        enqueue(&mut pipe, 300 * MS + FULL_PACKET_TIME, 1, 1500, 13..15);
        let order: Vec<u16> = arrivals(&mut pipe, 400 * MS).iter().map(|(_, packet)| packet.flow).collect();
        // Flow 2 is new, and its quantum lets two packets go (14 bytes are left after the first). Were flow 1 new as
        // well, its next two would follow each other.
        assert_eq!(order, [1, 2, 2, 1, 2, 1], "{discipline:?}");
    }
}

/// BLUE drops at random what an unresponsive flow sends beyond the link's rate, so that the queue no longer overflows.
#[test]
fn blue_drops_the_excess_of_an_unresponsive_flow() {
    let mut pipe = fair_pipe(QueueDiscipline::Cake(CakeConfig { rtt: Span::from_millis(100) }), 100);
    // Three packets in the time of two: a third must go, 85 steps of BLUE, no more than one each 5 ms.
    let mut full_arrivals = 0;
    for k in 0..20_000u64 {
        let now = k * 800 * US;
        arrivals(&mut pipe, now);
        enqueue(&mut pipe, now, 1, 1500, k..k + 1);
        full_arrivals += u64::from(k >= 15_000 && pipe.queued_packets(Instant(now)) == 100);
    }
    let share = pipe.counters().dropped as f64 / 20_000.0;
    assert!((share - 1.0 / 3.0).abs() < 0.01, "{share}");
    assert!(full_arrivals < 2_500, "full at {full_arrivals} of 5000 arrivals");
    assert!(is_conserved(&pipe));
}

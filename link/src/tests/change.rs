//! Links that change while packets are in them.

use super::closed_form::codel_without_drops;
use super::*;

/// The same link with a queue that decides on arrival and one that decides at departure.
fn both_kinds() -> [Pipe<TestPacket>; 2] {
    [QueueDiscipline::DropTail, codel_without_drops()].map(|discipline| {
        let queue = QueueConfig { discipline, ..link().queue };
        pipe(&PipeConfig { queue, ..link() })
    })
}

#[test]
fn a_new_rate_applies_to_packets_not_in_transmission() {
    for mut pipe in both_kinds() {
        burst(&mut pipe, 0, 10);
        pipe.set_rate(Instant(300 * US), Rate::from_mbit(10));
        assert_eq!(pipe.queue_delay(Instant(300 * US)), Span(60 * US + 7 * 1200 * US));
        // Two are on the wire, the third is in transmission until 360 us, seven follow at 1200 us each.
        let expected = (1..=3).map(|k| k * 120).chain((1..=7).map(|k| 360 + k * 1200));
        let expected: Vec<u64> = expected.map(|us| 10 * MS + us * US).collect();
        assert_eq!(arrival_times(&mut pipe), expected);
        let waits = [0, 120, 240].into_iter().chain((0..7).map(|k| 360 + k * 1200)).sum::<u64>();
        assert_eq!(pipe.counters().queue_delay_total_ns, waits * US);
        assert_eq!(pipe.busy_time(Instant(20 * MS)), Span(360 * US + 7 * 1200 * US));
    }
}

#[test]
fn a_faster_link_sends_the_queue_sooner_and_has_a_new_limit() {
    for discipline in [QueueDiscipline::DropTail, codel_without_drops()] {
        let queue = QueueConfig { limit: QueueLimit::Time(Span::from_millis(12)), discipline, ecn: false };
        let mut pipe = pipe(&PipeConfig { rate: Some(Rate::from_mbit(10)), queue, ..link() });
        assert_eq!(burst(&mut pipe, 0, 20).iter().filter(|verdict| **verdict == Verdict::Accepted).count(), 11);
        pipe.set_rate(Instant(0), Rate::from_mbit(100));
        assert_eq!(burst(&mut pipe, 0, 200).iter().filter(|verdict| **verdict == Verdict::Accepted).count(), 90);
        let expected: Vec<u64> = (0..101).map(|k| 11_200 * US + k * 120 * US).collect();
        assert_eq!(arrival_times(&mut pipe), expected);
    }
}

#[test]
fn a_rate_of_zero_holds_the_queue_until_there_is_a_rate_again() {
    for mut pipe in both_kinds() {
        burst(&mut pipe, 0, 5);
        pipe.pause(Instant(300 * US), Instant(20 * MS));
        burst(&mut pipe, 5 * MS, 1);
        assert_eq!(pipe.queued_packets(Instant(6 * MS)), 3);
        assert_eq!(pipe.bytes_between(Instant(5 * MS), Instant(15 * MS)), Some(0));
        // The third leaves; three wait for the end of the outage.
        let arrived: Vec<u64> = arrivals(&mut pipe, 19 * MS).iter().map(|(time, _)| *time).collect();
        assert_eq!(arrived, [10_120 * US, 10_240 * US, 10_360 * US]);
        pipe.set_rate(Instant(20 * MS), Rate::from_mbit(10));
        assert_eq!(arrival_times(&mut pipe), [31_200 * US, 32_400 * US, 33_600 * US]);
        let waits = 120 + 240 + 20_000 + 21_200 + (15_000 + 2400);
        assert_eq!(pipe.counters().queue_delay_total_ns, waits * US);
        assert_eq!(pipe.busy_time(Instant(40 * MS)), Span(3 * 120 * US + 3 * 1200 * US));
        assert!(is_conserved(&pipe));
    }
}

#[test]
fn a_rate_of_zero_outlasts_an_interruption_and_ends_before_its_time_with_a_new_rate() {
    for mut pipe in both_kinds() {
        pipe.pause(Instant(0), Instant(20 * MS));
        burst(&mut pipe, MS, 2);
        pipe.set_up(Instant(2 * MS), false);
        pipe.set_up(Instant(3 * MS), true);
        assert_eq!(pipe.busy_time(Instant(3 * MS)), Span::ZERO);
        burst(&mut pipe, 4 * MS, 1);
        assert_eq!(pipe.queue_delay(Instant(4 * MS)), Span(16 * MS + 1 + 120 * US));
        pipe.set_rate(Instant(10 * MS), Rate::from_mbit(100));
        assert_eq!(arrival_times(&mut pipe), [20_120 * US]);
        assert!(is_conserved(&pipe));
    }
}

#[test]
fn an_unlimited_link_can_get_a_rate() {
    let mut pipe = pipe(&PipeConfig { rate: None, ..link() });
    burst(&mut pipe, 0, 2);
    pipe.set_rate(Instant(MS), Rate::from_mbit(100));
    burst(&mut pipe, MS, 2);
    assert_eq!(arrival_times(&mut pipe), [10 * MS, 10 * MS, 11 * MS + 120 * US, 11 * MS + 240 * US]);
}

#[test]
fn a_shorter_delay_does_not_reorder_packets() {
    for mut pipe in both_kinds() {
        burst(&mut pipe, 0, 3);
        pipe.set_delay(Instant(130 * US), Span::from_millis(1));
        assert_eq!(
            arrival_times(&mut pipe),
            [10 * MS + 120 * US; 3],
            "they wait behind the first, which is on the old wire"
        );
    }
}

#[test]
fn a_longer_delay_applies_to_packets_not_sent() {
    for mut pipe in both_kinds() {
        burst(&mut pipe, 0, 3);
        pipe.set_delay(Instant(130 * US), Span::from_millis(20));
        assert_eq!(arrival_times(&mut pipe), [10_120 * US, 20_240 * US, 20_360 * US]);
    }
}

#[test]
fn a_link_that_goes_down_loses_everything_and_starts_empty() {
    for mut pipe in both_kinds() {
        burst(&mut pipe, 0, 10);
        assert_eq!(arrivals(&mut pipe, 10_130 * US).len(), 1);
        burst(&mut pipe, 10_130 * US, 5);
        pipe.set_up(Instant(10_140 * US), false);
        assert_eq!((pipe.counters().delivered, pipe.counters().lost, pipe.packets_inside()), (1, 14, 0));
        assert_eq!((pipe.next_event_at(), pipe.queued_packets(Instant(10_140 * US))), (Instant::NEVER, 0));
        assert_eq!(pipe.busy_time(Instant(20 * MS)), Span(1210 * US), "ten packets, and 10 us of the next");
        // The first ten waited 0, 120, ... 1080 us, the last four 10 us each until they were lost.
        assert_eq!(pipe.counters().queue_delay_total_ns, 120 * US * 45 + 40 * US);
        assert_eq!(burst(&mut pipe, 11 * MS, 1), [Verdict::Lost]);
        pipe.set_up(Instant(12 * MS), true);
        burst(&mut pipe, 12 * MS, 1);
        assert_eq!(arrival_times(&mut pipe), [22_120 * US]);
        assert!(is_conserved(&pipe));
    }
}

#[test]
fn a_trace_link_that_comes_back_uses_the_opportunities_of_lost_packets() {
    let trace = Some(RateTrace { opportunities: [1].into(), period_ms: 1 });
    let mut pipe = pipe(&PipeConfig { rate: None, trace, ..link() });
    burst(&mut pipe, 0, 50);
    pipe.set_up(Instant(3 * MS), false);
    pipe.set_up(Instant(5 * MS), true);
    burst(&mut pipe, 5 * MS, 2);
    assert_eq!(arrival_times(&mut pipe), [16 * MS, 17 * MS]);
}

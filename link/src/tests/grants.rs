//! Grants of a cellular uplink in a whole pipe.

use super::*;

/// 12 Mbit/s in grants of 7500 bytes each 5 ms, 8 ms after a request; no other delay.
fn uplink(discipline: QueueDiscipline) -> PipeConfig {
    let grants = Some(GrantConfig { period: Span::from_millis(5), request: Span::from_millis(8) });
    let queue = QueueConfig { limit: QueueLimit::Packets(u64::MAX), discipline, ecn: false };
    PipeConfig { rate: Some(Rate::from_mbit(12)), grants, delay: Span::ZERO, queue, ..link() }
}

/// Queues of every kind that drop nothing here: deciding on arrival, at departure, and with a queue for each flow.
fn disciplines() -> [QueueDiscipline; 3] {
    let codel = CoDelConfig { target: Span::MAX, ..CoDelConfig::default() };
    let fair = FqCodelConfig { flows: 16, quantum: 1500, codel };
    [QueueDiscipline::DropTail, QueueDiscipline::CoDel(codel), QueueDiscipline::FqCodel(fair)]
}

#[test]
fn packets_leave_in_batches_and_a_backlog_needs_one_request() {
    for discipline in disciplines() {
        let mut pipe = pipe(&uplink(discipline));
        for number in 0..12 {
            pipe.enqueue(Instant(MS), TestPacket { flow: (number % 3) as u16, ..packet(number, 1500) });
        }
        // While two wait for the third grant, another flow's packet comes: it goes with them.
        let mut times: Vec<u64> = arrivals(&mut pipe, 16 * MS).iter().map(|(time, _)| time / MS).collect();
        pipe.enqueue(Instant(16 * MS), TestPacket { flow: 7, ..packet(12, 1500) });
        times.extend(arrival_times(&mut pipe).iter().map(|time| time / MS));
        assert_eq!(times, [[10; 5].as_slice(), &[15; 5], &[20; 3]].concat(), "{discipline:?}");
        // The device is idle again: requested at 21 ms, granted at 30 ms.
        burst(&mut pipe, 21 * MS, 1);
        assert_eq!(arrival_times(&mut pipe), [30 * MS]);
        assert_eq!(pipe.busy_time(Instant(40 * MS)), Span::from_millis(14), "14 ms at 12 Mbit/s");
    }
}

/// A packet of an idle device waits for its request, and then for a time that is uniform in the period: 8 + 2.5 ms on
/// average, which evenly spaced arrivals give exactly.
#[test]
fn a_lone_packet_waits_for_the_request_and_half_a_period() {
    let mut pipe = pipe(&uplink(QueueDiscipline::DropTail));
    let waits: Vec<u64> = (0..500)
        .map(|number| {
            // 0.01, 0.02, ... 5 ms after a grant.
            let now = number * 100 * MS + (number + 1) * 10 * US;
            pipe.enqueue(Instant(now), packet(number, 100));
            arrival_times(&mut pipe)[0] - now
        })
        .collect();
    assert!(waits.iter().all(|wait| (8 * MS..13 * MS).contains(wait)));
    assert_eq!(waits.iter().sum::<u64>(), 500 * (8 * MS + 5 * MS / 2) - 500 * 5 * US);
}

#[test]
fn a_backlogged_uplink_carries_its_rate() {
    for discipline in disciplines() {
        let mut pipe = pipe(&uplink(discipline));
        for step in 0..1000 {
            burst(&mut pipe, step * MS * 10, 12);
            arrivals(&mut pipe, (step + 1) * MS * 10 - 1);
        }
        // From the first grant at 10 ms until 9.995 s: 1998 grants.
        assert_eq!(pipe.counters().bytes_delivered, 1998 * 7500);
    }
}

#[test]
fn a_link_that_comes_back_requests_anew() {
    for discipline in disciplines() {
        let mut pipe = pipe(&uplink(discipline));
        burst(&mut pipe, MS, 50);
        pipe.set_up(Instant(11 * MS), false);
        pipe.set_up(Instant(12 * MS), true);
        burst(&mut pipe, 13 * MS, 1);
        arrivals(&mut pipe, 24 * MS);
        assert_eq!(arrival_times(&mut pipe), [25 * MS], "{discipline:?}");
        assert!(is_conserved(&pipe));
    }
}

/// A sender that waits for room gets the time of the next grant, and not of an immediate retry.
#[test]
fn a_full_queue_has_room_at_the_next_grant() {
    for discipline in disciplines() {
        let mut pipe = pipe(&uplink(discipline));
        burst(&mut pipe, MS, 7);
        assert_eq!(pipe.queue_room_at(Instant(9 * MS), 1000), Instant(9 * MS));
        assert_eq!(pipe.queue_room_at(Instant(9 * MS), 6), Instant(10 * MS), "{discipline:?}");
        arrivals(&mut pipe, 12 * MS);
        assert_eq!(pipe.queue_room_at(Instant(12 * MS), 2), Instant(15 * MS), "{discipline:?}");
    }
}

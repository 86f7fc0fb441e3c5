//! Drop-tail pipes, wires and trace links against what can be computed by hand.

use super::*;

#[test]
fn packet_k_of_a_burst_arrives_after_k_plus_one_transmissions_and_the_delay() {
    let mut pipe = pipe(&PipeConfig { overhead: 38, ..link() });
    burst(&mut pipe, 5 * MS, 20);
    let expected: Vec<u64> = (0..20).map(|k| 15 * MS + (k + 1) * 1538 * 80).collect();
    assert_eq!(arrival_times(&mut pipe), expected);
    assert_eq!(pipe.next_event_at(), Instant::NEVER);
}

#[test]
fn a_link_without_rate_only_delays() {
    let mut pipe = pipe(&PipeConfig { rate: None, ..link() });
    burst(&mut pipe, 3, 4);
    assert_eq!(pipe.queued_packets(Instant(3)), 0);
    assert_eq!(arrival_times(&mut pipe), [10 * MS + 3; 4]);
}

#[test]
fn queueing_delay_is_queue_over_rate() {
    let mut pipe = pipe(&link());
    burst(&mut pipe, 0, 11);
    assert_eq!(pipe.queued_packets(Instant(0)), 10, "the one in transmission does not wait");
    assert_eq!(pipe.queued_bytes(Instant(0)), 15_000);
    assert_eq!(pipe.queue_delay(Instant(0)), Span(11 * 120 * US));
    assert_eq!(pipe.queued_packets(Instant(360 * US - 1)), 8);
    assert_eq!(pipe.queued_packets(Instant(360 * US)), 7);
    assert_eq!(pipe.queue_delay(Instant(360 * US)), Span(8 * 120 * US));
    assert_eq!(pipe.counters().queue_delay_total_ns, 120 * US * (0..11).sum::<u64>());
}

#[test]
fn a_full_queue_drops_exactly_the_rest() {
    let overflow = |limit, overhead| {
        let queue = QueueConfig { limit, ..link().queue };
        let mut pipe = pipe(&PipeConfig { queue, overhead, ..link() });
        let verdicts = burst(&mut pipe, 0, 100);
        let accepted = verdicts.iter().take_while(|verdict| **verdict == Verdict::Accepted).count();
        assert!(verdicts[accepted..].iter().all(|verdict| *verdict == Verdict::Dropped));
        assert_eq!(pipe.counters().dropped, 100 - accepted as u64);
        accepted
    };
    assert_eq!(overflow(QueueLimit::Packets(10), 0), 11);
    assert_eq!(overflow(QueueLimit::Bytes(15_380), 38), 11);
    assert_eq!(overflow(QueueLimit::Bytes(15_379), 38), 10);
    assert_eq!(overflow(QueueLimit::Time(Span(10 * 120 * US)), 0), 11);
    assert_eq!(overflow(QueueLimit::Packets(0), 0), 1, "a free transmitter needs no queue");
}

/// What a driver relies on that looks at the next event only after the first packet in flight.
#[test]
fn the_first_packet_in_flight_alone_changes_the_next_event() {
    let queue = QueueConfig { limit: QueueLimit::Packets(2), ..link().queue };
    let mut pipe = pipe(&PipeConfig { queue, ..link() });
    let mut enqueue = |number| {
        let enqueued = pipe.enqueue_plain(Instant(0), packet(number, 1500));
        (enqueued, pipe.next_event_at())
    };
    let arrival = Instant(10 * MS + 120 * US);
    let full = Err(packet(3, 1500));
    let expected = [(Ok(true), arrival), (Ok(false), arrival), (Ok(false), arrival), (full, arrival)];
    assert_eq!([0, 1, 2, 3].map(&mut enqueue), expected);
    assert!(!pipe.has_discarded() && pipe.counters().offered == 3, "a packet that is returned was not offered");
}

#[test]
fn twice_the_rate_loses_every_other_packet_once_the_queue_is_full() {
    let queue = QueueConfig { limit: QueueLimit::Packets(10), ..link().queue };
    let mut pipe = pipe(&PipeConfig { queue, ..link() });
    let accepted = (0..1000).filter(|k| pipe.enqueue(Instant(k * 60 * US), packet(*k, 1500)) == Verdict::Accepted);
    // Packets begin transmission at 0, 120, ... 59 880 us: 500 of them; ten more wait at the end.
    assert_eq!(accepted.count(), 510);
    assert_eq!(pipe.busy_time(Instant(60_000 * US)), Span(60_000 * US));
}

/// Of a burst the newest stay. At twice the rate each packet moves forward by one place every 60 us: half of them leave
/// after ten places, 600 us, where a drop-tail queue would keep them for 1200 us; the other half are dropped at the
/// head.
#[test]
fn a_queue_that_drops_its_head_keeps_the_newest_and_half_of_the_delay() {
    let queue = QueueConfig { limit: QueueLimit::Packets(10), ..QueueConfig::new(QueueDiscipline::DropHead) };
    let config = PipeConfig { queue, ..link() };
    let mut bursty = pipe(&config);
    assert!(burst(&mut bursty, 0, 100).iter().all(|verdict| *verdict == Verdict::Accepted));
    let numbers: Vec<u64> = arrivals(&mut bursty, 100 * MS).iter().map(|(_, packet)| packet.number).collect();
    assert_eq!(numbers, [0].into_iter().chain(90..100).collect::<Vec<_>>());
    assert_eq!(bursty.counters().dropped, 89);

    let mut steady = pipe(&config);
    for number in 0..1000 {
        steady.enqueue(Instant(number * 60 * US), packet(number, 1500));
    }
    let arrived = arrivals(&mut steady, 100 * MS);
    for (time, packet) in arrived.iter().filter(|(_, packet)| (100..990).contains(&packet.number)) {
        assert_eq!((packet.number % 2, time - packet.number * 60 * US), (0, (600 + 120) * US + 10 * MS));
    }
    // 0, 120, ... 59 880 us, and the ten that wait at the end.
    assert_eq!((arrived.len(), steady.counters().dropped), (510, 490));
}

#[test]
fn a_queue_that_drops_its_head_is_not_emptied_for_a_packet_that_never_fits() {
    let queue = QueueConfig { limit: QueueLimit::Bytes(3000), ..QueueConfig::new(QueueDiscipline::DropHead) };
    let mut pipe = pipe(&PipeConfig { queue, ..link() });
    burst(&mut pipe, 0, 3);
    assert_eq!(pipe.enqueue(Instant(0), packet(3, 3001)), Verdict::Dropped);
    assert_eq!(pipe.enqueue(Instant(0), packet(4, 3000)), Verdict::Accepted);
    let numbers: Vec<u64> = arrivals(&mut pipe, 100 * MS).iter().map(|(_, packet)| packet.number).collect();
    assert_eq!((numbers, pipe.counters().dropped), (vec![0, 4], 3));
}

/// The policer counts the link's overhead, and its drops do not reach the queue.
#[test]
fn a_policed_link_passes_burst_plus_rate_times_time_and_queues_none_of_the_rest() {
    let policer = Some(PolicerConfig { rate: Rate::from_mbit(10), burst: 15_380 });
    let mut pipe = pipe(&PipeConfig { policer, overhead: 38, ..link() });
    let verdicts = burst(&mut pipe, 0, 30);
    assert_eq!(verdicts, [[Verdict::Accepted; 10].as_slice(), &[Verdict::Dropped; 20]].concat());
    assert_eq!((pipe.queued_packets(Instant(0)), pipe.counters().dropped), (9, 20));
    // 1538 bytes take 1230.4 us at 10 Mbit/s: in a second 812 more.
    let passed = (1..=10_000).filter(|k| pipe.enqueue(Instant(k * 100 * US), packet(*k, 1500)) == Verdict::Accepted);
    assert_eq!(passed.count(), 812);
}

#[test]
fn busy_time_is_transmission_time() {
    let mut pipe = pipe(&link());
    burst(&mut pipe, 0, 5);
    assert_eq!(pipe.busy_time(Instant(200 * US)), Span(200 * US));
    assert_eq!(pipe.busy_time(Instant(MS)), Span(600 * US));
    pipe.enqueue(Instant(MS), packet(5, 750));
    assert_eq!(pipe.busy_time(Instant(2 * MS)), Span(660 * US));
}

#[test]
fn a_lost_packet_is_transmitted() {
    let mut pipe = pipe(&PipeConfig { loss: LossModel::Random(1.0), ..link() });
    assert_eq!(burst(&mut pipe, 0, 3), [Verdict::Lost; 3]);
    assert_eq!(pipe.queued_packets(Instant(0)), 2);
    pipe.set_loss(Instant(0), LossModel::None);
    burst(&mut pipe, 0, 1);
    assert_eq!(arrival_times(&mut pipe), [10 * MS + 480 * US]);
    assert_eq!((pipe.counters().lost, pipe.counters().busy_ns), (3, 480 * US));
}

/// Packets each millisecond with a delay of 10 ms, 8 ms more or less: each arrives when its own delay is over.
#[test]
fn jitter_that_reorders_delays_each_packet_for_itself() {
    let jitter = Jitter {
        span: Span::from_millis(8),
        distribution: JitterDistribution::Uniform,
        reorders: true,
        ..Jitter::default()
    };
    let mut pipe = pipe(&PipeConfig { rate: None, jitter, ..link() });
    let mut arrived = Vec::new();
    for k in 0..20_000 {
        pipe.enqueue(Instant(k * MS), packet(k, 1500));
        arrived.extend(arrivals(&mut pipe, (k + 1) * MS - 1));
    }
    arrived.extend(arrivals(&mut pipe, u64::MAX - 1));
    assert_eq!(arrived.len(), 20_000);
    let delays: Vec<f64> = arrived.iter().map(|(time, packet)| (time - packet.number * MS) as f64 / 1e6).collect();
    assert!(delays.iter().all(|delay| (2.0..=18.0).contains(delay)));
    // Uniform: the mean and the variance of the delays, each within five standard errors.
    let n = delays.len() as f64;
    let mean = delays.iter().sum::<f64>() / n;
    let variance = delays.iter().map(|delay| (delay - mean) * (delay - mean)).sum::<f64>() / n;
    assert!((mean - 10.0).abs() < 5.0 * (256.0 / 12.0 / n).sqrt(), "{mean}");
    assert!((variance - 256.0 / 12.0).abs() < 5.0 * 256.0 / (180.0 * n).sqrt(), "{variance}");
    // The next packet overtakes where its draw is more than 1/16 of the range below: (1 - 1/16)^2 / 2 of them.
    let mut delay_of: Vec<f64> = vec![0.0; arrived.len()];
    arrived.iter().zip(&delays).for_each(|((_, packet), delay)| delay_of[packet.number as usize] = *delay);
    let overtaken = delay_of.windows(2).filter(|pair| pair[1] + 1.0 < pair[0]).count() as f64 / n;
    let expected = 15.0 * 15.0 / (16.0 * 16.0) / 2.0;
    assert!((overtaken - expected).abs() < 5.0 * (0.25 / n).sqrt(), "{overtaken} for {expected}");
}

#[test]
fn jitter_is_uniform_and_never_reorders() {
    let jitter = Span::from_millis(4);
    let config = PipeConfig { rate: None, jitter: jitter.into(), ..link() };
    let mut spaced_pipe = pipe(&config);
    let extra_delays: Vec<f64> = (0..100_000)
        .map(|k| {
            spaced_pipe.enqueue(Instant(k * 20 * MS), packet(k, 1500));
            (arrival_times(&mut spaced_pipe)[0] - k * 20 * MS) as f64 - 10e6
        })
        .collect();
    let mean = extra_delays.iter().sum::<f64>() / extra_delays.len() as f64;
    let error = 4e6 / (12.0 * extra_delays.len() as f64).sqrt();
    assert!((mean - 2e6).abs() < 5.0 * error, "{mean}");
    assert!(extra_delays.iter().all(|extra| (0.0..=4e6).contains(extra)));

    let mut burst_pipe = pipe(&config);
    (0..10_000).for_each(|k| assert_eq!(burst_pipe.enqueue(Instant(k * US), packet(k, 1500)), Verdict::Accepted));
    let arrived = arrivals(&mut burst_pipe, 100 * MS);
    assert!(arrived.is_sorted_by_key(|(time, _)| *time) && arrived.is_sorted_by_key(|(_, packet)| packet.number));
    assert!(arrived.iter().all(|(time, packet)| (10 * MS..=14 * MS).contains(&(time - packet.number * US))));
}

#[test]
fn the_delay_stage_drops_what_exceeds_its_limit() {
    let mut unlimited = pipe(&PipeConfig { rate: None, wire_limit: Some(3), ..link() });
    assert_eq!(burst(&mut unlimited, 0, 5).iter().filter(|verdict| **verdict == Verdict::Accepted).count(), 3);
    assert_eq!(unlimited.counters().dropped, 2);
    assert_eq!(burst(&mut unlimited, 10 * MS - 1, 1), [Verdict::Dropped]);
    assert_eq!(burst(&mut unlimited, 10 * MS, 1), [Verdict::Accepted]);

    // 10 ms at 100 Mbit/s hold 83 packets and a third: a limit of 84 never strikes, whatever waits in the queue.
    let mut sufficient = pipe(&PipeConfig { wire_limit: Some(84), ..link() });
    assert!(burst(&mut sufficient, 0, 1000).iter().all(|verdict| *verdict == Verdict::Accepted));
    let mut insufficient = pipe(&PipeConfig { wire_limit: Some(83), ..link() });
    assert_eq!(burst(&mut insufficient, 0, 1000).iter().position(|verdict| *verdict == Verdict::Dropped), Some(83));
}

#[test]
fn a_trace_of_twelve_opportunities_a_millisecond_carries_144_mbit() {
    let trace = Some(RateTrace { opportunities: [1; 12].into(), period_ms: 1 });
    for discipline in [QueueDiscipline::DropTail, codel_without_drops()] {
        let queue = QueueConfig { limit: QueueLimit::Packets(1000), discipline, ecn: false };
        let mut pipe = pipe(&PipeConfig { rate: None, trace: trace.clone(), delay: Span::ZERO, queue, ..link() });
        for k in 0..10_000u64 {
            burst(&mut pipe, k * MS, 13);
            arrivals(&mut pipe, (k + 1) * MS);
        }
        assert_eq!(pipe.counters().bytes_delivered, 10 * 144_000_000 / 8);
        assert_eq!(pipe.busy_time(Instant(10_000 * MS)).as_millis(), 10_000);
    }
}

/// The period is far longer than the time that is looked at, and nearly all of its opportunities come later.
#[test]
fn the_utilisation_of_a_trace_is_of_what_it_could_carry_until_then() {
    let opportunities: Vec<u64> = (1..=12).map(|k| k * 10).chain([99_000; 5000]).collect();
    let trace = RateTrace { opportunities: opportunities.into(), period_ms: 100_000 };
    for discipline in [QueueDiscipline::DropTail, codel_without_drops()] {
        let queue = QueueConfig { discipline, ..link().queue };
        let mut pipe = pipe(&PipeConfig {
            rate: None,
            trace: Some(trace.clone()),
            overhead: 0,
            delay: Span::ZERO,
            queue,
            ..link()
        });
        burst(&mut pipe, 0, 6);
        arrivals(&mut pipe, 1000 * MS);
        let utilisation: Vec<f64> = [60, 120, 500].map(|ms| pipe.utilisation(Instant(ms * MS))).into();
        let expected = [1.0, 0.5, 0.5];
        assert!(utilisation.iter().zip(expected).all(|(is, must)| (is - must).abs() < 1e-6), "{utilisation:?}");
        // Half of the time until now was used; a rate instead of the trace keeps that, and the same time idle halves it.
        pipe.set_rate(Instant(500 * MS), Rate::from_mbit(1));
        let utilisation = pipe.utilisation(Instant(1000 * MS));
        assert!((utilisation - 0.25).abs() < 1e-6, "{utilisation}");
    }
    let sustained = PipeConfig { rate: None, trace: Some(trace), ..link() }.sustained_rate(Span::from_millis(120));
    assert_eq!(sustained, Some(Rate::of(12 * 1500, Span::from_millis(120))));
}

#[test]
fn packets_of_a_trace_link_leave_at_opportunities() {
    let trace = Some(RateTrace { opportunities: [2, 3, 7].into(), period_ms: 10 });
    for discipline in [QueueDiscipline::DropTail, codel_without_drops()] {
        let queue = QueueConfig { discipline, ..link().queue };
        let mut pipe = pipe(&PipeConfig { rate: None, trace: trace.clone(), delay: Span(MS), queue, ..link() });
        (0..3).for_each(|k| assert_eq!(pipe.enqueue(Instant(0), packet(k, 750)), Verdict::Accepted));
        assert_eq!(pipe.queued_packets(Instant(2 * MS)), 1);
        assert_eq!(arrivals(&mut pipe, 5 * MS).iter().map(|(time, _)| time / MS).collect::<Vec<_>>(), [3, 3, 4]);
        burst(&mut pipe, 7 * MS, 1);
        assert_eq!(arrival_times(&mut pipe), [13 * MS]);
    }
}

/// CoDel that never finds a delay too long.
pub(super) fn codel_without_drops() -> QueueDiscipline {
    QueueDiscipline::CoDel(CoDelConfig { target: Span::MAX, ..CoDelConfig::default() })
}

/// Exponential gaps of this mean, ns.
fn poisson(rng: &mut RngStream, mean: f64) -> u64 {
    (-libm::log(1.0 - rng.unit()) * mean) as u64
}

#[test]
fn littles_law_holds_exactly_for_a_random_load() {
    // All instants are whole steps, so that samples between the steps add up to the integral of the queue's length.
    const STEP: u64 = 10 * US;
    for discipline in [QueueDiscipline::DropTail, codel_without_drops()] {
        let queue = QueueConfig { limit: QueueLimit::Packets(12), discipline, ecn: false };
        let (mut pipe, mut rng) = (pipe(&PipeConfig { queue, ..link() }), RngStream::named(2, "load"));
        let (mut next_offer, mut integral) = (0, 0);
        for step in 0..200_000u64 {
            while next_offer <= step {
                pipe.enqueue(Instant(step * STEP), packet(step, 1500));
                next_offer += poisson(&mut rng, 11.0);
            }
            integral += pipe.queued_packets(Instant(step * STEP + STEP / 2)) * STEP;
            arrivals(&mut pipe, step * STEP);
        }
        // What still waits will do so for the time it takes to send what is ahead of it.
        let waiting = pipe.queued_packets(Instant(200_000 * STEP));
        assert!(pipe.counters().dropped > 100 && waiting <= 12 && is_conserved(&pipe));
        for instant in (200_000..200_000 + 12 * 13).map(|step| step * STEP + STEP / 2) {
            integral += pipe.queued_packets(Instant(instant)) * STEP;
        }
        assert_eq!(integral, pipe.counters().queue_delay_total_ns);
    }
}

#[test]
fn the_mean_wait_of_poisson_arrivals_is_pollaczek_khinchines() {
    // M/D/1 at load 0.8: W = load x service / (2 (1 - load)) = 240 us.
    let (mut pipe, mut rng) = (pipe(&link()), RngStream::named(4, "load"));
    let (mut now, mut prior_total) = (0, 0);
    let batches: Vec<f64> = (0..100)
        .map(|_| {
            for number in 0..20_000 {
                now += poisson(&mut rng, 150_000.0);
                pipe.enqueue(Instant(now), packet(number, 1500));
                arrivals(&mut pipe, now);
            }
            let total = pipe.counters().queue_delay_total_ns;
            (total - std::mem::replace(&mut prior_total, total)) as f64 / 20_000.0
        })
        .collect();
    let mean = batches.iter().sum::<f64>() / 100.0;
    let variance = batches.iter().map(|batch| (batch - mean) * (batch - mean)).sum::<f64>() / 99.0;
    assert!((mean - 240_000.0).abs() < 5.0 * (variance / 100.0).sqrt(), "{mean} ns");
}

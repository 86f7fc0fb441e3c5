//! CoDel, RED and PIE in a whole pipe; their algorithms are tested in their own files.

use super::*;

fn pipe_with(discipline: QueueDiscipline, ecn: bool) -> Pipe<TestPacket> {
    let queue = QueueConfig { limit: QueueLimit::Packets(u64::MAX), discipline, ecn };
    // A packet takes 1.2 ms.
    pipe(&PipeConfig { rate: Some(Rate::from_mbit(10)), queue, ..link() })
}

fn codel() -> QueueDiscipline {
    QueueDiscipline::CoDel(CoDelConfig::default())
}

fn fq_codel() -> QueueDiscipline {
    QueueDiscipline::FqCodel(FqCodelConfig { flows: 1024, quantum: 1514, codel: CoDelConfig::default() })
}

fn pie() -> QueueDiscipline {
    let target = Span::from_millis(15);
    QueueDiscipline::Pie(PieConfig { target, tupdate: target, alpha: 0.125, beta: 1.25 })
}

fn red() -> QueueDiscipline {
    QueueDiscipline::Red(RedConfig { min: 15_000, max: 60_000, probability: 0.1, weight: 0.002, hard_drop: true })
}

fn ecn_field(is_capable: bool) -> EcnField {
    if is_capable { EcnField::Ect0 } else { EcnField::NotEct }
}

/// One packet every 0.8 ms, 1.5 times what the link carries, for `ms`; `observe` is called at every departure.
fn overload(pipe: &mut Pipe<TestPacket>, ms: u64, ecn: bool, mut observe: impl FnMut(u64, &mut Pipe<TestPacket>)) {
    for step in 0..ms * 10 / 4 {
        let now = step * 400 * US;
        if step.is_multiple_of(3) {
            observe(now, pipe);
        }
        if step.is_multiple_of(2) {
            pipe.enqueue(Instant(now), TestPacket { ecn: ecn_field(ecn), ..packet(step / 2, 1500) });
        }
        arrivals(pipe, now);
    }
}

/// Times at which CoDel is to signal under [`overload`], us. Packet j leaves at 1.2 j ms, as long as nothing is dropped
/// after 0.4 j ms of waiting; that is 5 ms for the first time at 15.6 ms. The first signal is at the first departure
/// 100 ms later, the others follow the control law.
fn signals(end_us: u64) -> Vec<u64> {
    let departure = |us: f64| (us / 1200.0).ceil() as u64 * 1200;
    let mut due = departure(115_600.0) as f64;
    let mut signals = vec![due as u64];
    for count in 1.. {
        due += 100_000.0 / f64::from(count).sqrt();
        if departure(due) >= end_us {
            break;
        }
        signals.push(departure(due));
    }
    signals
}

#[test]
fn codel_drops_follow_the_control_law_also_in_a_flow_queue() {
    for discipline in [codel(), fq_codel()] {
        let (mut pipe, mut signalled_at) = (pipe_with(discipline, false), Vec::new());
        overload(&mut pipe, 3000, false, |now, pipe| {
            pipe.queued_packets(Instant(now));
            signalled_at.resize(pipe.counters().dropped as usize, now / US);
        });
        assert_eq!(signalled_at, signals(3_000_000));
        assert!(signalled_at.len() > 100 && is_conserved(&pipe));
    }
}

#[test]
fn codel_marks_at_the_same_instants_instead() {
    let (mut pipe, mut signalled_at) = (pipe_with(codel(), true), Vec::new());
    overload(&mut pipe, 3000, true, |now, pipe| {
        pipe.queued_packets(Instant(now));
        signalled_at.resize(pipe.counters().marked as usize, now / US);
    });
    assert_eq!(signalled_at, signals(3_000_000));
    assert_eq!(pipe.counters().dropped, 0);
    let marked = arrivals(&mut pipe, u64::MAX - 1).iter().filter(|(_, packet)| packet.ecn == EcnField::Ce).count();
    assert!(marked > 0, "the mark travels with the packet");
}

/// Packet j waits for 0.4 j ms: the first one above 2 ms is number 6. CoDel itself drops nothing here.
#[test]
fn packets_above_the_marking_threshold_are_marked() {
    let codel = CoDelConfig { target: Span::MAX, ce_threshold: Some(Span::from_millis(2)), ..CoDelConfig::default() };
    for discipline in
        [QueueDiscipline::CoDel(codel), QueueDiscipline::FqCodel(FqCodelConfig { flows: 1024, quantum: 1514, codel })]
    {
        for ecn in [false, true] {
            let mut pipe = pipe_with(discipline, false);
            overload(&mut pipe, 100, ecn, |_, _| {});
            let arrived = arrivals(&mut pipe, u64::MAX - 1);
            assert_eq!(pipe.counters().marked, if ecn { pipe.counters().delivered - 6 } else { 0 });
            assert!(
                arrived.iter().all(|(_, packet)| (packet.ecn == EcnField::Ce) == ecn),
                "the last ones wait longest"
            );
        }
    }
}

#[test]
fn codel_does_not_drop_below_the_links_rate() {
    let mut pipe = pipe_with(codel(), false);
    for k in 0..10_000 {
        pipe.enqueue(Instant(k * 1200 * US), packet(k, 1500));
        arrivals(&mut pipe, k * 1200 * US);
    }
    assert_eq!((pipe.counters().dropped, pipe.counters().queue_delay_total_ns), (0, 0));
}

#[test]
fn red_drops_non_ect_packets_early_and_marks_the_others() {
    for ecn in [false, true] {
        let mut pipe = pipe_with(red(), true);
        // The queue grows by a packet every 2.4 ms: after 120 ms it is at 75 kB, its average far below `max`.
        overload(&mut pipe, 120, ecn, |_, _| {});
        let (dropped, marked) = (pipe.counters().dropped, pipe.counters().marked);
        assert_eq!((dropped, marked), if ecn { (0, dropped + marked) } else { (dropped + marked, 0) });
        assert!(is_conserved(&pipe));
    }
}

#[test]
fn red_holds_an_unresponsive_overload_at_its_upper_threshold() {
    // A third of the packets must go, more than the early drops take (2 p_b at most): the average stays at `max`.
    let mut pipe = pipe_with(red(), false);
    let (mut sum, mut samples) = (0, 0);
    overload(&mut pipe, 60_000, false, |now, pipe| {
        if now > 20_000 * MS {
            (sum, samples) = (sum + pipe.queued_bytes(Instant(now)), samples + 1);
        }
    });
    let mean = sum as f64 / f64::from(samples);
    assert!((mean - 60_000.0).abs() < 1500.0, "{mean} bytes: more than one packet from the threshold");
    let share = pipe.counters().dropped as f64 / pipe.counters().offered as f64;
    assert!((share - 1.0 / 3.0).abs() < 0.01, "{share}");
}

/// A third of the packets must go. The controller is an integral one: over `n` updates its probability changes by
/// `alpha` times the sum of the distances from the target (and `beta` times the delay's change), so that the mean of
/// the delays is the target, but for the deviation of the probability divided by `alpha n`.
#[test]
fn pie_holds_an_unresponsive_overload_at_its_target() {
    let mut pipe = pipe_with(pie(), false);
    let (mut sum, mut samples, mut prior_counts) = (0.0, 0.0, (0, 0));
    overload(&mut pipe, 100_000, false, |now, pipe| {
        if now == 20_400 * MS {
            prior_counts = (pipe.counters().offered, pipe.counters().dropped);
        }
        if now >= 20_400 * MS && now.is_multiple_of(15 * MS) {
            (sum, samples) = (sum + pipe.queue_delay(Instant(now)).as_millis_f64(), samples + 1.0);
        }
    });
    let (mean, counters) = (sum / samples, *pipe.counters());
    // It needs p = 1/2 (two packets add up to 0.85: the gap is 1 and a geometric number of mean 2), give or take 0.1.
    let deviation = 1e3 * 0.1 / (0.125 * samples);
    println!("{mean} ms over {samples} updates, give or take {deviation}");
    assert!((mean - 15.0).abs() < deviation + 1.2, "{mean} ms: a packet's 1.2 ms from the target, and {deviation}");
    let share = (counters.dropped - prior_counts.1) as f64 / (counters.offered - prior_counts.0) as f64;
    assert!((share - 1.0 / 3.0).abs() < 0.001, "{share}");
    assert!(is_conserved(&pipe));
}

#[test]
fn pie_marks_up_to_ten_percent() {
    // 10.0 of 10.5 Mbit/s: one in 21 must go; marks do not help against an unresponsive flow, so that the probability
    // passes 10 % and drops begin.
    let mut pipe = pipe_with(pie(), true);
    let mut signalled_at = Vec::new();
    for k in 0..20_000u64 {
        let now = k * 1_142_857;
        arrivals(&mut pipe, now);
        pipe.enqueue(Instant(now), TestPacket { ecn: EcnField::Ect0, ..packet(k, 1500) });
        signalled_at.push((pipe.counters().marked, pipe.counters().dropped));
    }
    let first_drop = signalled_at.iter().position(|(_, dropped)| *dropped > 0).expect("at last");
    assert!(signalled_at[first_drop].0 > 10, "{:?}", signalled_at[first_drop]);
    let share = pipe.counters().dropped as f64 / (20_000 - first_drop) as f64;
    assert!((share - 1.0 / 21.0).abs() < 0.01, "{share}: what is dropped is what the link does not carry");
}

//! CoDel and RED in a whole pipe; their laws are tested in their own files.

use super::*;

fn managed(discipline: Discipline, ecn: bool) -> Pipe<Numbered> {
    let queue = Queue { limit: Limit::Packets(u64::MAX), discipline, ecn };
    // A packet takes 1.2 ms.
    pipe(&model::Pipe { rate: Some(Rate::from_mbit(10)), queue, ..link() })
}

fn codel() -> Discipline {
    Discipline::CoDel { target: Span::from_millis(5), interval: Span::from_millis(100) }
}

fn red() -> Discipline {
    Discipline::Red { least: 15_000, most: 60_000, probability: 0.1, weight: 0.002 }
}

/// One packet every 0.8 ms, 1.5 times what the link carries, for `ms`; `look` sees every instant at which one leaves.
fn overload(pipe: &mut Pipe<Numbered>, ms: u64, ecn: bool, mut look: impl FnMut(u64, &mut Pipe<Numbered>)) {
    for step in 0..ms * 10 / 4 {
        let now = step * 400 * US;
        if step.is_multiple_of(3) {
            look(now, pipe);
        }
        if step.is_multiple_of(2) {
            pipe.offer(Instant(now), Numbered { ecn, ..packet(step / 2, 1500) });
        }
        arrivals(pipe, now);
    }
}

/// When CoDel is to signal under [`overload`], us. Packet j leaves at 1.2 j ms, as long as nothing is dropped after
/// 0.4 j ms of waiting; that is 5 ms for the first time at 15.6 ms. The first signal is at the first departure 100 ms
/// later, the others follow the control law.
fn signals(until_us: u64) -> Vec<u64> {
    let departure = |us: f64| (us / 1200.0).ceil() as u64 * 1200;
    let mut due = departure(115_600.0) as f64;
    let mut signals = vec![due as u64];
    for count in 1.. {
        due += 100_000.0 / f64::from(count).sqrt();
        if departure(due) >= until_us {
            break;
        }
        signals.push(departure(due));
    }
    signals
}

#[test]
fn codel_drops_follow_the_control_law() {
    let (mut pipe, mut seen) = (managed(codel(), false), Vec::new());
    overload(&mut pipe, 3000, false, |now, pipe| {
        pipe.queued_packets(Instant(now));
        seen.resize(pipe.counters().dropped as usize, now / US);
    });
    assert_eq!(seen, signals(3_000_000));
    assert!(seen.len() > 100 && balanced(&pipe));
}

#[test]
fn codel_marks_at_the_same_instants_instead() {
    let (mut pipe, mut seen) = (managed(codel(), true), Vec::new());
    overload(&mut pipe, 3000, true, |now, pipe| {
        pipe.queued_packets(Instant(now));
        seen.resize(pipe.counters().marked as usize, now / US);
    });
    assert_eq!(seen, signals(3_000_000));
    assert_eq!(pipe.counters().dropped, 0);
    let marked = arrivals(&mut pipe, u64::MAX - 1).iter().filter(|(_, packet)| packet.marked).count();
    assert!(marked > 0, "the mark travels with the packet");
}

#[test]
fn codel_lets_a_link_below_its_rate_alone() {
    let mut pipe = managed(codel(), false);
    for k in 0..10_000 {
        pipe.offer(Instant(k * 1200 * US), packet(k, 1500));
        arrivals(&mut pipe, k * 1200 * US);
    }
    assert_eq!((pipe.counters().dropped, pipe.counters().queue_delay_total_ns), (0, 0));
}

#[test]
fn red_drops_early_what_cannot_be_marked_and_marks_the_rest() {
    for ecn in [false, true] {
        let mut pipe = managed(red(), true);
        // The queue grows by a packet every 2.4 ms: after 120 ms it is at 75 kB, its average far below `most`.
        overload(&mut pipe, 120, ecn, |_, _| {});
        let (dropped, marked) = (pipe.counters().dropped, pipe.counters().marked);
        assert_eq!((dropped, marked), if ecn { (0, dropped + marked) } else { (dropped + marked, 0) });
        assert!(balanced(&pipe));
    }
}

#[test]
fn red_holds_an_unresponsive_overload_at_its_upper_threshold() {
    // A third of the packets must go, more than the early drops take (2 p_b at most): the average sticks to `most`.
    let mut pipe = managed(red(), false);
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

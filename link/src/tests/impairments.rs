//! Duplication, corruption and reordering on the wire.

use super::*;

const PACKETS: u64 = 100_000;

/// `PACKETS` packets, one each 100 us, through a link without rate; what arrives, with its time.
fn arrivals_through(config: &PipeConfig) -> (Vec<(u64, TestPacket)>, Pipe<TestPacket>) {
    let mut pipe = pipe(&PipeConfig { rate: None, ..config.clone() });
    let mut arrived = Vec::new();
    for number in 0..PACKETS {
        arrived.extend(arrivals(&mut pipe, number * 100 * US));
        pipe.enqueue(Instant(number * 100 * US), packet(number, 1500));
    }
    arrived.extend(arrivals(&mut pipe, u64::MAX - 1));
    (arrived, pipe)
}

/// Whether `count` of `trials` is within five standard errors of `probability`.
fn is_share(count: usize, trials: usize, probability: f64) -> bool {
    let (count, trials) = (count as f64, trials as f64);
    (count - probability * trials).abs() < 5.0 * (trials * probability * (1.0 - probability)).sqrt()
}

#[test]
fn a_duplicate_arrives_with_its_packet_and_only_packets_that_arrive_have_one() {
    let (arrived, pipe) = arrivals_through(&PipeConfig { duplicate: 0.1, loss: LossModel::Random(0.2), ..link() });
    let counters = *pipe.counters();
    let packets = PACKETS - counters.lost;
    assert!(is_share(counters.duplicated as usize, packets as usize, 0.1), "{counters:?}");
    assert_eq!((arrived.len() as u64, counters.delivered), (packets + counters.duplicated, arrived.len() as u64));
    assert!(arrived.iter().all(|(time, packet)| *time == packet.number * 100 * US + 10 * MS));
    assert!(arrived.windows(2).all(|pair| !pair[0].1.copy || pair[0].1.number == pair[1].1.number));
}

#[test]
fn packets_and_their_copies_are_corrupted_independently() {
    let (arrived, pipe) = arrivals_through(&PipeConfig { duplicate: 1.0, corrupt: 0.3, ..link() });
    let corrupted = |copy| arrived.iter().filter(|(_, packet)| packet.copy == copy && packet.corrupted).count();
    assert!(is_share(corrupted(false), PACKETS as usize, 0.3) && is_share(corrupted(true), PACKETS as usize, 0.3));
    let both = arrived.windows(2).filter(|pair| pair[0].1.copy && pair[0].1.corrupted && pair[1].1.corrupted).count();
    assert!(is_share(both, PACKETS as usize, 0.09), "{both}");
    assert_eq!(pipe.counters().corrupted, (corrupted(false) + corrupted(true)) as u64);
}

/// One packet each 100 us, a delay of 10.05 ms: a packet that is not delayed overtakes the 100 before it, but for those
/// among them that are not delayed either.
#[test]
fn a_packet_without_delay_overtakes_a_delay_of_packets() {
    let delay = Span::from_micros(10_050);
    let (arrived, _) = arrivals_through(&PipeConfig { reorder: 0.25.into(), delay, ..link() });
    assert_eq!(arrived.len() as u64, PACKETS);
    let delays: Vec<u64> = arrived.iter().map(|(time, packet)| time - packet.number * 100 * US).collect();
    assert!(delays.iter().all(|extra| [0, delay.0].contains(extra)));
    assert!(is_share(delays.iter().filter(|extra| **extra == 0).count(), PACKETS as usize, 0.25));
    let mut place = vec![0; PACKETS as usize];
    arrived.iter().enumerate().for_each(|(at, (_, packet))| place[packet.number as usize] = at);
    let undelayed: Vec<bool> = (0..PACKETS as usize).map(|k| arrived[place[k]].0 == k as u64 * 100 * US).collect();
    for k in (200..PACKETS as usize - 200).filter(|k| undelayed[*k]) {
        assert_eq!(place[k], k - undelayed[k - 100..k].iter().filter(|skipped| !**skipped).count(), "packet {k}");
    }
}

/// Packet k would arrive at 10 ms + (k + 1) x 120 us; without delay it does when its transmission ends, also where the
/// queue decides at departure and other packets are on the wire.
#[test]
fn a_packet_without_delay_arrives_at_the_end_of_its_transmission() {
    for discipline in [QueueDiscipline::DropTail, super::closed_form::codel_without_drops()] {
        let queue = QueueConfig { discipline, ..link().queue };
        let mut pipe = pipe(&PipeConfig { reorder: 0.5.into(), queue, ..link() });
        burst(&mut pipe, 0, 50);
        let arrived = arrivals(&mut pipe, u64::MAX - 1);
        let late = |number: u64, time: u64| time - (number + 1) * 120 * US;
        assert!(arrived.iter().all(|(time, packet)| [0, 10 * MS].contains(&late(packet.number, *time))), "{arrived:?}");
        assert!(arrived.iter().any(|(time, packet)| late(packet.number, *time) == 0) && arrived.len() == 50);
    }
}

/// One packet each 100 us. With a gap of 5 each fifth may skip the delay, which a share of 100 % makes it do. Correlated draws
/// are the stationary process x' = (x + u)/2 of netem, drawn here again.
#[test]
fn a_gap_and_correlated_draws_let_fewer_packets_skip_the_delay() {
    let skipped = |reorder: Reordering| -> Vec<u64> {
        let (arrived, _) = arrivals_through(&PipeConfig { reorder, ..link() });
        let undelayed = arrived.iter().filter(|(time, packet)| *time == packet.number * 100 * US);
        undelayed.map(|(_, packet)| packet.number).collect()
    };
    let gap = Reordering { gap: 5, ..Reordering::from(1.0) };
    assert!(skipped(gap).into_iter().eq((4..PACKETS).step_by(5)));
    let below = |share: f64| {
        let (mut x, mut rng, mut count) = (0.5, RngStream::named(9, "reference"), 0);
        for _ in 0..1_000_000 {
            x = (x + rng.unit()) / 2.0;
            count += u32::from(x < share);
        }
        f64::from(count) / 1e6
    };
    let share = skipped(Reordering { correlation: 0.5, ..Reordering::from(0.25) }).len() as f64 / PACKETS as f64;
    assert!((share - below(0.25)).abs() < 0.01, "{share}");
}

/// One packet each 100 us, slots of 3 packets 1 to 2 ms apart: between slots 10 to 20 packets come, so that all slots but the
/// first are full at once, and the time from one to the next is uniform.
#[test]
fn a_slot_carries_so_many_packets_and_the_next_one_opens_later() {
    let slot = SlotConfig { min: Span(MS), max: Span(2 * MS), packets: Some(3), bytes: None };
    let (arrived, _) = arrivals_through(&PipeConfig { slot: Some(slot), ..link() });
    assert!(arrived.iter().map(|(_, packet)| packet.number).eq(0..PACKETS));
    let slots: Vec<u64> = arrived[3..].chunks(3).map(|slot| slot[0].0).collect();
    assert!(arrived[3..].chunks(3).all(|slot| slot.iter().all(|(time, _)| *time == slot[0].0)));
    let apart: Vec<u64> = slots.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(apart.iter().all(|time| (MS..=2 * MS).contains(time)));
    let mean = apart.iter().sum::<u64>() as f64 / apart.len() as f64;
    // The standard deviation of a uniform time is its width over the square root of twelve.
    let error = MS as f64 / (12.0 * apart.len() as f64).sqrt();
    assert!((mean - 1.5 * MS as f64).abs() < 5.0 * error, "{mean}");
    let bytes = SlotConfig { packets: None, bytes: Some(3001), ..slot };
    let (arrived, _) = arrivals_through(&PipeConfig { slot: Some(bytes), ..link() });
    assert!(
        arrived[3..].chunks(3).all(|slot| slot.iter().all(|(time, _)| *time == slot[0].0)),
        "two full packets are 3000"
    );
}

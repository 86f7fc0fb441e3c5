//! DualPI2 in a whole pipe, against what RFC 9332 says of it.

use super::*;

/// 10 Mbit/s, so that a packet takes 1.2 ms.
fn dual(config: DualPi2Config) -> Pipe<TestPacket> {
    let queue =
        QueueConfig { limit: QueueLimit::Packets(u64::MAX), ..QueueConfig::new(QueueDiscipline::DualPi2(config)) };
    pipe(&PipeConfig { rate: Some(Rate::from_mbit(10)), queue, ..link() })
}

/// Offers packets of these ECN fields in turn, one every `gap` us, for `seconds`; returns those that arrived after
/// `warm_up` seconds, and how many of each field were offered since.
fn offer(pipe: &mut Pipe<TestPacket>, fields: &[EcnField], gap: u64, seconds: u64, warm_up: u64) -> Offered {
    let mut offered = Offered::default();
    for number in 0..seconds * 1_000_000 / gap {
        let now = number * gap * US;
        let counts = now >= warm_up * 1000 * MS;
        let index = number as usize % fields.len();
        offered.arrived.extend(arrivals(pipe, now).into_iter().filter(|_| counts));
        pipe.enqueue(Instant(now), TestPacket { ecn: fields[index], flow: index as u16, ..packet(number, 1500) });
        offered.packets += u64::from(counts);
    }
    offered
}

#[derive(Default)]
struct Offered {
    arrived: Vec<(u64, TestPacket)>,
    /// Packets offered after the warm-up, of all fields.
    packets: u64,
}

impl Offered {
    fn of_flow(&self, flow: u16) -> impl Iterator<Item = &TestPacket> {
        self.arrived.iter().map(|(_, packet)| packet).filter(move |packet| packet.flow == flow)
    }

    /// The queueing delays, in ms, of packets offered every `gap` us: without 1.2 ms of transmission and 10 ms on the wire.
    fn delays(&self, gap: u64) -> Vec<f64> {
        let delay = |(at, packet): &(u64, TestPacket)| (at - packet.number * gap * US) as f64 / 1e6 - 11.2;
        self.arrived.iter().map(delay).collect()
    }

    fn marked(&self, flow: u16) -> f64 {
        let marked = self.of_flow(flow).filter(|packet| packet.ecn == EcnField::Ce).count();
        marked as f64 / self.of_flow(flow).count() as f64
    }
}

/// An unresponsive load, of which the L4S share is small enough never to queue: what the Classic queue must lose is
/// known, and twice the square root of that is marked of the L4S packets.
#[test]
fn the_classic_signal_is_the_square_of_half_the_coupled_one() {
    let mut fields = [EcnField::NotEct; 12];
    fields[5] = EcnField::Ect1;
    // Twelve packets in 14, 13 and 12.5 ms, of which 11.67, 10.83 and 10.42 can leave; eleven are Classic.
    for (us, lost) in [(14_000.0, 12.0 - 14.0 / 1.2), (13_000.0, 12.0 - 13.0 / 1.2), (12_500.0, 12.0 - 12.5 / 1.2)] {
        let mut pipe = dual(DualPi2Config { step_thresh: Span::from_secs(1), ..DualPi2Config::default() });
        let offered = offer(&mut pipe, &fields, (us / 12.0) as u64, 200, 100);
        let (coupled, expected) = (offered.marked(5), lost / 11.0);
        let dropped = (1.0 - offered.arrived.len() as f64 / offered.packets as f64) * 12.0 / 11.0;
        assert!((dropped - expected).abs() < 0.003, "{dropped} for {expected}");
        let law = (coupled / 2.0) * (coupled / 2.0);
        println!("p_CL {coupled:.4}, p_C {dropped:.4} for {law:.4}");
        // Of some 7000 L4S packets a third or more is marked: five standard errors of the square are 15 %.
        assert!((dropped / law - 1.0).abs() < 0.15, "p_C {dropped}, p_CL {coupled}: {law}");
    }
}

/// Marks do not slow this load, so that the probability rises until ECT(0) packets are dropped: at a quarter, which is
/// where all L4S packets are marked.
#[test]
fn ect0_packets_are_marked_up_to_a_quarter_and_dropped_beyond() {
    let mut fields = [EcnField::Ect0; 12];
    fields[5] = EcnField::Ect1;
    let mut pipe = dual(DualPi2Config { step_thresh: Span::from_secs(1), ..DualPi2Config::default() });
    let offered = offer(&mut pipe, &fields, 14_000 / 12, 200, 100);
    assert!(offered.marked(5) > 0.9, "{}", offered.marked(5));
    assert!((0.2..=0.25).contains(&offered.marked(0)), "{}", offered.marked(0));
    assert!(offered.arrived.len() < offered.packets as usize * 99 / 100, "a queue without drops never ends");
}

/// An integral controller leaves no error: the mean delay is the target.
#[test]
fn the_classic_queue_stands_at_its_target() {
    let mut pipe = dual(DualPi2Config::default());
    let delays = offer(&mut pipe, &[EcnField::NotEct], 1_100, 120, 60).delays(1_100);
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    assert!((mean - 15.0).abs() < 1.2, "{mean} ms: within a packet's 1.2 ms of 15 ms");
}

/// Ten packets at once wait for 0, 1.2, ... 10.8 ms. Above 3 ms are seven, of which the last leaves nothing behind.
#[test]
fn l4s_packets_above_the_step_are_marked_unless_they_are_the_last() {
    let mut pipe = dual(DualPi2Config { step_thresh: Span::from_millis(3), ..DualPi2Config::default() });
    for number in 0..10 {
        pipe.enqueue(Instant::ZERO, TestPacket { ecn: EcnField::Ect1, ..packet(number, 1514) });
    }
    let arrived = arrivals(&mut pipe, u64::MAX - 1);
    let marked: Vec<u64> = arrived.iter().filter(|(_, p)| p.ecn == EcnField::Ce).map(|(_, p)| p.number).collect();
    assert_eq!(marked, [3, 4, 5, 6, 7, 8]);
}

/// Both queues are full: nine L4S packets for each Classic one, and CE counts as L4S, ECT(0) as Classic.
#[test]
fn a_full_l4s_queue_leaves_the_classic_queue_its_share() {
    let mut pipe = dual(DualPi2Config { target: Span::from_secs(100), ..DualPi2Config::default() });
    for number in 0..4000 {
        let fields = [EcnField::NotEct, EcnField::Ect1, EcnField::Ect0, EcnField::Ce];
        let ecn = fields[number as usize % 4];
        pipe.enqueue(Instant::ZERO, TestPacket { ecn, flow: (number % 2) as u16, ..packet(number, 1500) });
    }
    let first = arrivals(&mut pipe, 1_200 * MS);
    let classic = first.iter().filter(|(_, packet)| packet.flow == 0).count();
    assert!(first.len() > 900 && (classic * 10).abs_diff(first.len()) <= 20, "{classic} of {}", first.len());
}

/// Twice the rate of ECT(1) packets that nobody slows: beyond `k p' = 1` they are dropped too, or the queue would grow
/// without end.
#[test]
fn an_overload_of_l4s_packets_is_dropped() {
    let mut pipe = dual(DualPi2Config::default());
    let offered = offer(&mut pipe, &[EcnField::Ect1], 600, 60, 30);
    let share = offered.arrived.len() as f64 / offered.packets as f64;
    assert!((share - 0.5).abs() < 0.01, "{share}");
    assert!(offered.marked(0) > 0.99);
    let longest = offered.delays(600).into_iter().fold(0.0, f64::max);
    assert!(longest < 100.0, "{longest} ms");
}

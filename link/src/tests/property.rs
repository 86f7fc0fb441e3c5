//! Random operations on pipes of every kind.

use super::closed_form::codel_without_drops;
use super::*;
use crate::{Forwarded, LinkCounters};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Offer(u32),
    Wait(u64),
    Rate(u64),
    Delay(u64),
    Loss(LossModel),
    Up(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => prop_oneof![Just(1500), Just(52), 1..9000u32].prop_map(Step::Offer),
        6 => (0..3 * MS).prop_map(Step::Wait),
        1 => prop_oneof![Just(100), Just(10), Just(1), Just(40)].prop_map(Step::Rate),
        1 => (0..20 * MS).prop_map(Step::Delay),
        1 => prop_oneof![Just(LossModel::None), Just(LossModel::Random(0.3))].prop_map(Step::Loss),
        1 => any::<bool>().prop_map(Step::Up),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec(step(), 0..300)
}

fn limit() -> impl Strategy<Value = QueueLimit> {
    prop_oneof![
        (0..30u64).prop_map(QueueLimit::Packets),
        (0..50_000u64).prop_map(QueueLimit::Bytes),
        (0..5 * MS).prop_map(|ns| QueueLimit::Time(Span(ns))),
    ]
}

fn discipline() -> impl Strategy<Value = QueueDiscipline> {
    prop_oneof![
        Just(QueueDiscipline::DropTail),
        Just(QueueDiscipline::DropHead),
        Just(QueueDiscipline::CoDel(SHORT_CODEL)),
        Just(QueueDiscipline::Red(RedConfig {
            min: 3_000,
            max: 20_000,
            probability: 0.2,
            weight: 0.1,
            hard_drop: true
        })),
        Just(QueueDiscipline::Pie(PieConfig { target: Span(MS), tupdate: Span(MS), alpha: 2.0, beta: 2.0 })),
        Just(QueueDiscipline::DualPi2(DualPi2Config {
            target: Span(MS),
            tupdate: Span(MS),
            ..DualPi2Config::default()
        })),
        Just(QueueDiscipline::FqCodel(FqCodelConfig { flows: 2, quantum: 300, codel: SHORT_CODEL })),
        Just(QueueDiscipline::Cake(CakeConfig { rtt: Span(5 * MS) })),
    ]
}

/// The ECN fields of the packets of each flow.
const FIELDS: [EcnField; 3] = [EcnField::NotEct, EcnField::Ect0, EcnField::Ect1];

/// CoDel with an interval of a few milliseconds.
const SHORT_CODEL: CoDelConfig =
    CoDelConfig { target: Span(MS), interval: Span(5 * MS), ce_threshold: Some(Span(3 * MS)) };

/// Whether packets of different flows may be reordered.
fn is_fair(config: &PipeConfig) -> bool {
    matches!(
        config.queue.discipline,
        QueueDiscipline::DualPi2(_) | QueueDiscipline::FqCodel(_) | QueueDiscipline::Cake(_)
    )
}

fn config() -> impl Strategy<Value = PipeConfig> {
    let trace = RateTrace { opportunities: [0, 1, 1, 4, 9].into(), period_ms: 9 };
    let wire = (0..20 * MS, (prop_oneof![Just(0), 0..5 * MS], any::<bool>()), proptest::option::of(1..40u32), 0..40u32);
    let loss = LossModel::GilbertElliott { to_bad: 0.1, to_good: 0.3, loss_bad: 0.5, loss_good: 0.01 };
    let loss = prop_oneof![Just(LossModel::None), Just(loss)];
    let share = || prop_oneof![3 => Just(0.0), 1 => Just(0.2)];
    let reorder = prop_oneof![
        3 => Just(Reordering::default()),
        1 => Just(Reordering::from(0.2)),
        1 => Just(Reordering { share: 0.4, correlation: 0.5, gap: 3 }),
    ];
    let slot = SlotConfig { min: Span(MS), max: Span(2 * MS), packets: Some(3), bytes: Some(4000) };
    let slot = prop_oneof![3 => Just(None), 1 => Just(Some(slot))];
    let impairments = (share(), share(), reorder, slot);
    let policer = proptest::option::of((1..100u64, 0..20_000u64));
    let rate_or_trace = prop_oneof![
        3 => Just((Some(Rate::from_mbit(50)), None, None)),
        1 => Just((Some(Rate::from_mbit(50)), None, Some(GrantConfig { period: Span(2 * MS), request: Span(3 * MS) }))),
        1 => Just((None, None, None)),
        1 => Just((None, Some(trace), None)),
    ];
    (rate_or_trace, wire, (loss, impairments), policer, limit(), discipline(), any::<bool>()).prop_map(
        |(rate_or_trace, wire, (loss, (duplicate, corrupt, reorder, slot)), policer, limit, discipline, ecn)| {
            let (delay, jitter, wire_limit, overhead) = wire;
            let queue = QueueConfig { limit, discipline, ecn };
            let (span, reorders) = (Span(jitter.0), jitter.1);
            let (delay, jitter) = (Span(delay), Jitter { span, reorders, ..Jitter::default() });
            PipeConfig {
                rate: rate_or_trace.0,
                trace: rate_or_trace.1,
                grants: rate_or_trace.2,
                delay,
                jitter,
                loss,
                duplicate,
                corrupt,
                reorder,
                overhead,
                policer: policer.map(|(mbit, burst)| PolicerConfig { rate: Rate::from_mbit(mbit), burst }),
                queue,
                wire_limit,
                slot,
                ..link()
            }
        },
    )
}

/// A pipe with a clock, run step by step.
struct Run {
    pipe: Pipe<TestPacket>,
    now: u64,
    offered: u64,
    arrived: Vec<(u64, TestPacket)>,
    discarded: Vec<u64>,
}

impl Run {
    fn new(config: &PipeConfig) -> Self {
        Self { pipe: pipe(config), now: 0, offered: 0, arrived: Vec::new(), discarded: Vec::new() }
    }

    fn step(&mut self, step: &Step) {
        let now = Instant(self.now);
        match *step {
            Step::Offer(bytes) => {
                let flow = (bytes % 3) as u16;
                let ecn = FIELDS[usize::from(flow)];
                self.pipe.enqueue(now, TestPacket { ecn, flow, ..packet(self.offered, bytes) });
                self.offered += 1;
            }
            Step::Wait(ns) => {
                self.arrived.extend(arrivals(&mut self.pipe, self.now + ns));
                self.now += ns;
            }
            Step::Rate(mbit) => self.pipe.set_rate(now, Rate::from_mbit(mbit)),
            Step::Delay(ns) => self.pipe.set_delay(now, Span(ns)),
            Step::Loss(loss) => self.pipe.set_loss(now, loss),
            Step::Up(up) => self.pipe.set_up(now, up),
        }
        self.collect_discarded();
    }

    /// As [`step`](Self::step), but packets that arrive by `until` are forwarded.
    fn forward_step(&mut self, step: &Step, until: u64) {
        let (now, horizon) = (Instant(self.now), Instant(until.saturating_add(1)));
        match *step {
            Step::Offer(bytes) => {
                let flow = (bytes % 3) as u16;
                let ecn = FIELDS[usize::from(flow)];
                let packet = TestPacket { ecn, flow, ..packet(self.offered, bytes) };
                let forwarded = match self.pipe.forward_plain(now, bytes, horizon) {
                    Some(arrival) => Forwarded::Arrives(packet, arrival),
                    None => self.pipe.forward(now, packet, horizon),
                };
                if let Forwarded::Arrives(packet, arrival) = forwarded {
                    self.arrived.push((arrival.0, packet));
                }
                self.offered += 1;
                self.collect_discarded();
            }
            Step::Wait(ns) => self.now += ns,
            _ => {
                self.step(step);
                let first = || self.pipe.forward_first(horizon);
                self.arrived.extend(std::iter::from_fn(first).map(|(packet, arrival)| (arrival.0, packet)));
            }
        }
    }

    fn collect_discarded(&mut self) {
        self.discarded.extend(std::iter::from_fn(|| self.pipe.take_discarded()).map(|(packet, _)| packet.number));
    }

    fn drain(&mut self) {
        self.arrived.extend(arrivals(&mut self.pipe, u64::MAX - 1));
        self.collect_discarded();
    }

    /// State in which a queue that decides on arrival and one that decides at departure must agree.
    fn state(&mut self) -> (u64, u64, Span, Span, u64, u64, u64, u64) {
        let now = Instant(self.now);
        let queue = (self.pipe.queued_packets(now), self.pipe.queued_bytes(now), self.pipe.queue_delay(now));
        let LinkCounters { delivered, dropped, lost, .. } = *self.pipe.counters();
        (queue.0, queue.1, queue.2, self.pipe.busy_time(now), delivered, dropped, lost, self.pipe.packets_inside())
    }
}

/// The time to the next change of the link after the first step.
fn time_to_change(steps: &[Step]) -> u64 {
    let mut time = 0;
    for (index, step) in steps.iter().enumerate() {
        match step {
            Step::Wait(ns) => time += ns,
            Step::Offer(_) => {}
            _ if index > 0 => return time,
            _ => {}
        }
    }
    u64::MAX / 2
}

proptest! {
    #[test]
    fn every_packet_comes_out_once_but_for_copies_and_in_order_unless_it_may_overtake(config in config(), steps in steps()) {
        let mut run = Run::new(&config);
        for step in &steps {
            run.step(step);
            prop_assert!(is_conserved(&run.pipe), "{:?}", run.pipe.counters());
            prop_assert!(run.pipe.next_event_at() >= Instant(run.now));
            prop_assert!(run.pipe.busy_time(Instant(run.now)) <= Span(run.now) || config.trace.is_some() || config.grants.is_some());
        }
        run.drain();
        prop_assert_eq!(run.pipe.packets_inside(), 0);
        prop_assert!(is_conserved(&run.pipe));
        prop_assert_eq!(run.pipe.counters().delivered, run.arrived.len() as u64);
        prop_assert!(run.arrived.is_sorted_by_key(|(time, _)| *time));
        for flow in 0..3 {
            let of_flow = |packet: &TestPacket| packet.flow == flow || !is_fair(&config);
            if config.reorder.share > 0.0 || config.jitter.reorders {
                continue;
            }
            let numbers = run.arrived.iter().map(|(_, packet)| packet).filter(|packet| of_flow(packet)).map(|p| p.number);
            prop_assert!(numbers.is_sorted());
        }
        let (copies, packets): (Vec<&TestPacket>, Vec<&TestPacket>) = run.arrived.iter().map(|(_, packet)| packet).partition(|packet| packet.copy);
        prop_assert_eq!(run.pipe.counters().duplicated, copies.len() as u64);
        let corrupted = run.arrived.iter().filter(|(_, packet)| packet.corrupted).count();
        prop_assert_eq!(run.pipe.counters().corrupted, corrupted as u64);
        let mut numbers: Vec<u64> = packets.iter().map(|packet| packet.number).chain(run.discarded).collect();
        numbers.sort_unstable();
        prop_assert!(numbers.into_iter().eq(0..run.offered));
    }

    #[test]
    fn the_same_random_stream_gives_the_same_run(config in config(), steps in steps()) {
        let [first, second] = [0, 1].map(|_| {
            let mut run = Run::new(&config);
            steps.iter().for_each(|step| run.step(step));
            run.drain();
            (run.arrived, *run.pipe.counters())
        });
        prop_assert_eq!(first, second);
    }

    #[test]
    fn forwarded_packets_arrive_when_enqueued_ones_do(config in config(), steps in steps()) {
        let config = PipeConfig { duplicate: 0.0, corrupt: 0.0, reorder: Reordering::default(), slot: None, jitter: config.jitter.span.into(), ..config };
        prop_assume!(pipe(&config).forwards());
        let mut run = Run::new(&config);
        steps.iter().for_each(|step| run.step(step));
        run.drain();
        let mut forwarded = Run::new(&config);
        for (index, step) in steps.iter().enumerate() {
            forwarded.forward_step(step, forwarded.now + time_to_change(&steps[index..]));
        }
        forwarded.drain();
        prop_assert_eq!(run.arrived, forwarded.arrived);
        prop_assert_eq!(run.discarded, forwarded.discarded);
        prop_assert_eq!(run.pipe.counters(), forwarded.pipe.counters());
    }

    /// A policer to which everything conforms changes nothing but the way through the code.
    #[test]
    fn packets_of_a_plain_pipe_fare_as_those_of_any_other(delay in 0..20 * MS, limit in limit(), steps in steps()) {
        let queue = QueueConfig { limit, ..QueueConfig::default() };
        let plain = PipeConfig { delay: Span(delay), queue, ..link() };
        let policer = Some(PolicerConfig { rate: Rate::from_mbit(1_000_000), burst: 1 << 40 });
        let [plain, other] = [plain.clone(), PipeConfig { policer, ..plain }].map(|config| {
            let (mut enqueued, mut forwarded) = (Run::new(&config), Run::new(&config));
            for (index, step) in steps.iter().enumerate() {
                enqueued.step(step);
                forwarded.forward_step(step, forwarded.now + time_to_change(&steps[index..]));
            }
            [enqueued, forwarded].map(|mut run| {
                run.drain();
                (run.arrived, run.discarded, *run.pipe.counters())
            })
        });
        prop_assert_eq!(plain, other);
    }

    /// CoDel that never drops is drop-tail.
    #[test]
    fn deciding_on_arrival_or_at_departure_is_the_same_without_early_drops(config in config(), steps in steps()) {
        same_as_drop_tail(&config, &steps, QueueConfig { discipline: codel_without_drops(), ..config.queue })?;
    }

    /// FQ-CoDel with one flow queue that does not overflow is drop-tail.
    #[test]
    fn a_single_flow_queue_is_drop_tail(config in config(), steps in steps()) {
        let codel = CoDelConfig { target: Span::MAX, ..CoDelConfig::default() };
        let discipline = QueueDiscipline::FqCodel(FqCodelConfig { flows: 1, quantum: 1514, codel });
        same_as_drop_tail(&config, &steps, QueueConfig { discipline, limit: QueueLimit::Packets(u64::MAX), ecn: false })?;
    }
}

/// Runs `steps` through `queue` and through a drop-tail queue of the same limit.
fn same_as_drop_tail(config: &PipeConfig, steps: &[Step], queue: QueueConfig) -> Result<(), TestCaseError> {
    let run_with = |queue| {
        // A new rate redraws jitter, but not loss and the drops of the delay stage, of an enqueue-managed queue.
        let (loss, jitter, wire_limit, duplicate, corrupt, reorder) =
            (LossModel::None, Jitter::default(), None, 0.0, 0.0, Reordering::default());
        Run::new(&PipeConfig { queue, loss, jitter, wire_limit, duplicate, corrupt, reorder, ..config.clone() })
    };
    let (mut enqueue_aqm, mut dequeue_aqm) =
        (run_with(QueueConfig { discipline: QueueDiscipline::DropTail, ..queue }), run_with(queue));
    for step in steps.iter().filter(|step| !matches!(step, Step::Loss(_))) {
        enqueue_aqm.step(step);
        dequeue_aqm.step(step);
        if config.trace.is_none() && config.grants.is_none() {
            prop_assert_eq!(enqueue_aqm.state(), dequeue_aqm.state());
        }
    }
    enqueue_aqm.drain();
    dequeue_aqm.drain();
    prop_assert_eq!(enqueue_aqm.arrived, dequeue_aqm.arrived);
    prop_assert_eq!(enqueue_aqm.pipe.counters(), dequeue_aqm.pipe.counters());
    Ok(())
}

//! Whole worlds, against closed forms.

use crate::{Arrival, Endpoint, Hosts, LossCause, Outbox, Outgoing, Packet, PacketDescriptor, Step, Tap, Topology};
use link::{EcnField, PipeConfig, QueueConfig, QueueDiscipline, QueueLimit, RedConfig};
use std::sync::{Arc, Mutex};
use units::{Instant, Rate, RngStream, Span};

/// Sends one packet at each of some times, and keeps what arrives.
#[derive(Default)]
struct Host {
    /// Times of sending, the next one last.
    schedule: Vec<Instant>,
    ecn: EcnField,
    arrivals: Vec<(Instant, Arrival<u64>)>,
}

impl Endpoint for Host {
    type Content = u64;

    fn deadline(&self, _now: Instant) -> Instant {
        self.schedule.last().copied().unwrap_or(Instant::NEVER)
    }

    fn on_timeout(&mut self, outbox: &mut Outbox<'_, u64>) {
        self.schedule.pop();
        let number = self.schedule.len() as u64;
        outbox.send(Outgoing { ecn: self.ecn, ..Outgoing::new(0, 1000, number) });
    }

    fn receive(&mut self, arrival: Arrival<u64>, outbox: &mut Outbox<'_, u64>) {
        self.arrivals.push((outbox.now(), arrival));
    }
}

/// Keeps the steps of packets.
#[derive(Clone, Debug, Default)]
struct Steps(Arc<Mutex<Vec<(Instant, u64, Step)>>>);

impl Tap<u64> for Steps {
    fn on_step(&mut self, at: Instant, packet: &Packet<u64>, _: PacketDescriptor, step: Step) {
        self.0.lock().expect("one thread").push((at, packet.content, step));
    }
}

fn us(us: u64) -> Instant {
    Instant::ZERO + Span::from_micros(us)
}

/// A link of 8 Mbit/s, on which a packet of 1000 bytes takes 1 ms, and then 10 ms.
fn link() -> PipeConfig {
    PipeConfig { rate: Some(Rate::from_mbit(8)), delay: Span::from_millis(10), ..PipeConfig::default() }
}

/// Two hosts, the first of which sends packets at these times, with a path of these links from it.
fn hosts(links: &[PipeConfig], times: &[u64], ecn: EcnField) -> Hosts<Host> {
    let mut topology = Topology::default();
    let mut add = |config: &PipeConfig, name: &str| topology.add_pipe(config, RngStream::named(1, name));
    let forward = links.iter().enumerate().map(|(index, link)| add(link, &format!("link {index}"))).collect();
    let reverse = vec![add(&PipeConfig::default(), "reverse")];
    topology.add_path([forward, reverse]);
    let sender = Host { schedule: times.iter().rev().map(|time| us(*time)).collect(), ecn, ..Host::default() };
    Hosts::new(topology, vec![[0, 1]], vec![sender, Host::default()])
}

fn arrival_times(hosts: &Hosts<Host>) -> Vec<Instant> {
    hosts.hosts[1].arrivals.iter().map(|(time, _)| *time).collect()
}

#[test]
fn packets_cross_a_chain_in_its_delay_with_a_tap_and_without() {
    for tapped in [false, true] {
        let mut hosts = hosts(&[link(), link(), link()], &[0, 100, 50_000], EcnField::NotEct);
        if tapped {
            hosts.set_tap(Steps::default());
        }
        for step in 1..200 {
            hosts.run_until(us(500 * step));
        }
        // Three times 1 ms and 10 ms; the second waits for the first at the first link.
        assert_eq!(arrival_times(&hosts), [us(33_000), us(34_000), us(83_000)], "{tapped}");
        hosts.assert_conserved();
        // Without a tap, a packet that is sent and arrives within one step needs fewer events than links.
        assert_eq!(hosts.world().work.packet_hops, 9);
    }
}

#[test]
fn a_change_of_a_link_applies_to_what_enters_it_later() {
    let mut hosts = hosts(&[link(), link()], &[0, 20_000], EcnField::NotEct);
    hosts.run_until(us(15_000));
    hosts.world().change(0, |pipe, now| pipe.set_rate(now, Rate::from_mbit(4)));
    hosts.run_until(us(100_000));
    assert_eq!(arrival_times(&hosts), [us(22_000), us(43_000)]);
}

#[test]
fn a_link_that_is_down_loses_packets_and_the_tap_is_told_why() {
    let mut hosts = hosts(&[link()], &[0, 20_000], EcnField::NotEct);
    let steps = Steps::default();
    hosts.set_tap(steps.clone());
    hosts.run_until(us(15_000));
    hosts.world().change(0, |pipe, now| pipe.set_up(now, false));
    hosts.run_until(us(100_000));
    hosts.assert_conserved();
    let lost = Step::Lost { pipe: Some(0), cause: LossCause::Link };
    assert_eq!(
        *steps.0.lock().expect("one thread"),
        [
            (us(0), 1, Step::Sent),
            (us(0), 1, Step::Enters { pipe: 0 }),
            (us(11_000), 1, Step::Leaves { pipe: 0, is_copy: false }),
            (us(11_000), 1, Step::Delivered),
            (us(20_000), 0, Step::Sent),
            (us(20_000), 0, Step::Enters { pipe: 0 }),
            (us(20_000), 0, lost),
        ]
    );
}

#[test]
fn copies_arrive_and_packets_with_flipped_bits_do_not() {
    let twice = PipeConfig { duplicate: 1.0, ..link() };
    let mut all = hosts(&[twice], &[0], EcnField::NotEct);
    all.run_until(us(100_000));
    assert_eq!(arrival_times(&all), [us(11_000), us(11_000)]);
    all.assert_conserved();
    let mut none = hosts(&[PipeConfig { corrupt: 1.0, ..link() }], &[0], EcnField::NotEct);
    let steps = Steps::default();
    none.set_tap(steps.clone());
    none.run_until(us(100_000));
    none.assert_conserved();
    assert_eq!(arrival_times(&none), []);
    let last = steps.0.lock().expect("one thread").pop();
    assert_eq!(last, Some((us(11_000), 0, Step::Lost { pipe: None, cause: LossCause::Checksum })));
}

#[test]
fn the_tap_sees_a_mark_where_it_was_set() {
    // RED marks every packet that comes while the average queue, here the present one, is above the maximum.
    let red = RedConfig { min: 1000, max: 2000, probability: 1.0, weight: 1.0, hard_drop: false };
    let limit = QueueLimit::Packets(1000);
    let queue = QueueConfig { limit, ecn: true, discipline: QueueDiscipline::Red(red) };
    let marking = PipeConfig { queue, ..link() };
    let mut hosts = hosts(&[marking, link()], &[0; 50], EcnField::Ect0);
    let steps = Steps::default();
    hosts.set_tap(steps.clone());
    hosts.run_until(us(1_000_000));
    let marked = hosts.hosts[1].arrivals.iter().filter(|(_, arrival)| arrival.ecn == EcnField::Ce).count();
    let steps = steps.0.lock().expect("one thread");
    let seen: Vec<Step> = steps.iter().map(|step| step.2).filter(|step| matches!(step, Step::Marked { .. })).collect();
    assert!(marked > 0);
    assert_eq!(seen, vec![Step::Marked { pipe: 0 }; marked], "once for each, by the first link");
}

#[test]
fn what_is_posted_arrives_by_its_delay_in_the_order_of_sending() {
    let mut hosts = hosts(&[link()], &[], EcnField::NotEct);
    let arrival = |content| Arrival { path: 0, flow: 0, bytes: 100, ecn: EcnField::NotEct, content };
    hosts.call(0, |_, outbox| {
        for (delay, content) in [(7, 1), (5, 2), (5, 3)] {
            outbox.post(1, Span::from_micros(delay), arrival(content));
        }
    });
    hosts.run_until(us(10));
    assert_eq!(hosts.hosts[1].arrivals, [(us(5), arrival(2)), (us(5), arrival(3)), (us(7), arrival(1))]);
}

#[test]
#[should_panic(expected = "time does not advance")]
fn an_endpoint_that_stays_due_is_found() {
    struct Stuck;
    impl Endpoint for Stuck {
        type Content = ();
        fn deadline(&self, _now: Instant) -> Instant {
            Instant::ZERO
        }
        fn on_timeout(&mut self, _outbox: &mut Outbox<'_, ()>) {}
        fn receive(&mut self, _arrival: Arrival<()>, _outbox: &mut Outbox<'_, ()>) {}
    }
    Hosts::new(Topology::default(), Vec::new(), vec![Stuck]).run_until(us(1));
}

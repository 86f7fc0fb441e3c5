//! The windows, with the calls that noq makes in each round trip.

use crate::controller::Adapter;
use crate::{Error, Factory, Params};
use noq_proto::congestion::{Controller, ControllerFactory};
use std::sync::Arc;
use std::time::{Duration, Instant};

const MTU: u16 = 1200;
const RTT: Duration = Duration::from_millis(20);

fn factory(name: &str) -> Factory {
    Factory::new(name, &Params::new()).expect("it serves noq").with_seed(1)
}

/// A path with the number of its next packet.
struct Path {
    controller: Adapter,
    next: u64,
}

impl Path {
    fn new(factory: &Factory, now: Instant) -> Self {
        Self { controller: factory.controller(now, MTU), next: 0 }
    }

    fn window(&self) -> u64 {
        self.controller.window() / u64::from(MTU)
    }

    /// A full window is sent, and each packet is acknowledged for itself. If the first packet is lost, the third
    /// acknowledgement tells.
    fn round(&mut self, sent: Instant, loses: bool) {
        let (first, packets) = (self.next, self.window());
        self.next += packets;
        (first..self.next).for_each(|number| self.controller.on_packet_sent(sent, MTU, number));
        let now = sent + RTT;
        for index in u64::from(loses)..packets {
            let is_lost_packet_in_flight = loses && index < 4;
            let in_flight = packets - index - 1 + u64::from(is_lost_packet_in_flight);
            self.controller.on_acked(now, sent, first + index, false);
            self.controller.on_end_acks(now, in_flight * u64::from(MTU), false, None);
            if loses && index == 3 {
                self.controller.on_packet_lost(MTU, first, now);
                self.controller.on_congestion_event(now, sent, false, false, MTU.into(), first);
            }
        }
    }
}

/// The windows before each of eight rounds, packets; the fourth loses a packet.
fn windows(name: &str) -> Vec<u64> {
    let start = Instant::now();
    let mut path = Path::new(&factory(name), start);
    let mut windows = Vec::new();
    for index in 0..8 {
        windows.push(path.window());
        path.round(start + RTT * index, index == 3);
    }
    windows
}

#[test]
fn reno_doubles_its_window_and_halves_it_after_a_loss() {
    // The two packets that were acknowledged before the loss was found had raised the window to 82.
    assert_eq!(windows("reno"), [10, 20, 40, 80, 41, 42, 43, 44]);
}

#[test]
fn every_algorithm_that_needs_no_number_of_marks_serves_noq() {
    let names: Vec<_> = control::registry::REGISTRY.iter().map(|entry| entry.name).collect();
    let served: Vec<_> = names.iter().filter(|name| Factory::new(name, &Params::new()).is_ok()).collect();
    assert_eq!(served.len(), names.len() - 2);
    for name in served {
        let windows = windows(name);
        assert!(windows.iter().all(|window| *window > 0), "{name}: {windows:?}");
    }
}

/// RFC 6356, section 3: with two equal windows `w`, alpha is 1/2, and each acknowledgement adds 1/4w to its path. That is half
/// a packet per round trip for both together. Alone, each adds a packet.
#[test]
fn paths_of_one_factory_are_coupled_and_those_of_two_are_not() {
    for (is_one_connection, expected) in [(true, 20 / 2), (false, 20 * 2)] {
        let (first, start) = (factory("lia"), Instant::now());
        let second = first.another();
        let factories = [&first, if is_one_connection { &first } else { &second }];
        let mut paths = factories.map(|factory| Path::new(factory, start));
        let mut at = start;
        let mut sum = |paths: &mut [Path; 2], rounds: u32, loses: bool| {
            for _ in 0..rounds {
                paths.iter_mut().for_each(|path| path.round(at, loses));
                at += RTT;
            }
            paths.iter().map(Path::window).sum::<u64>()
        };
        sum(&mut paths, 3, false);
        sum(&mut paths, 1, true);
        let before = sum(&mut paths, 1, false);
        let growth = sum(&mut paths, 20, false) - before;
        assert_eq!(growth, expected, "packets in twenty rounds");
    }
}

#[test]
fn a_spurious_loss_is_undone() {
    let start = Instant::now();
    let mut path = Path::new(&factory("reno"), start);
    path.round(start, true);
    assert!(path.controller.metrics().ssthresh.is_some());
    path.controller.on_spurious_congestion_event();
    assert_eq!(path.controller.metrics().ssthresh, None);
}

#[test]
fn a_rate_based_algorithm_has_a_pacing_rate() {
    let start = Instant::now();
    let mut path = Path::new(&factory("bbr3"), start);
    (0..5).for_each(|index| path.round(start + RTT * index, false));
    assert!(path.controller.metrics().pacing_rate > Some(10 * 1200 * 50), "more than the initial window per RTT");
    assert_eq!(Path::new(&factory("reno"), start).controller.metrics().pacing_rate, None);
}

#[test]
fn a_factory_of_an_endpoint_refuses_coupled_algorithms() {
    let error = Factory::for_endpoint("lia", &Params::new()).expect_err("it couples");
    let sentence = "`lia` couples the paths of a connection, so that each needs a `Factory::new`";
    assert_eq!(error, Error::Unsupported(sentence.to_owned()));
    let factory = Arc::new(Factory::for_endpoint("bbr3", &Params::new()).expect("it serves noq"));
    let mut config = noq_proto::TransportConfig::default();
    config.congestion_controller_factory(factory.clone());
    let mut controller = factory.build(Instant::now(), MTU);
    controller.on_mtu_update(1400);
    assert_eq!((controller.window(), controller.clone_box().initial_window()), (14_000, 14_000));
}

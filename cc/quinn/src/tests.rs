//! The windows, with the calls that quinn makes in each round trip.

use crate::controller::Adapter;
use crate::{Factory, Params};
use quinn_proto::congestion::{Controller, ControllerFactory};
use std::sync::Arc;
use std::time::{Duration, Instant};

const MTU: u16 = 1200;
const RTT: Duration = Duration::from_millis(20);

/// The window in packets.
fn packets(controller: &dyn Controller) -> u64 {
    (controller.window() - 1) / u64::from(MTU)
}

/// A full window is sent in transmissions of up to ten packets, and each packet is acknowledged for itself. If the first
/// packet is lost, the third acknowledgement tells.
fn round(controller: &mut Adapter, now: &mut Instant, loses: bool) {
    let window = packets(controller);
    let mut rest = window;
    while rest > 0 {
        let transmission = rest.min(10);
        controller.on_sent(*now, transmission * u64::from(MTU), 0);
        rest -= transmission;
    }
    controller.on_sent(*now, 40, 0); // an acknowledgement
    let sent = *now;
    *now += RTT;
    for number in u64::from(loses)..window {
        controller.on_acked(*now, sent, false);
        let is_lost_packet_in_flight = loses && number < 4;
        let in_flight = window - number - 1 + u64::from(is_lost_packet_in_flight);
        controller.on_end_acks(*now, in_flight * u64::from(MTU), false, None);
        if loses && number == 3 {
            controller.on_congestion_event(*now, sent, false, MTU.into());
        }
    }
}

/// The windows before each of eight rounds, packets; the fourth loses a packet.
fn windows(name: &str) -> Vec<u64> {
    let (factory, mut now) =
        (Factory::new(name, &Params::new()).expect("it serves quinn").with_seed(1), Instant::now());
    let mut controller = factory.controller(now, MTU);
    let mut windows = Vec::new();
    for number in 0..8 {
        windows.push(packets(&controller));
        round(&mut controller, &mut now, number == 3);
    }
    windows
}

#[test]
fn reno_doubles_its_window_and_halves_it_after_a_loss() {
    // The two packets that were acknowledged before the loss was found had raised the window to 82.
    assert_eq!(windows("reno"), [10, 20, 40, 80, 41, 42, 43, 44]);
}

#[test]
fn every_algorithm_that_needs_no_rate_and_no_marks_serves_quinn() {
    let names: Vec<_> = control::registry::REGISTRY.iter().map(|entry| entry.name).collect();
    let served: Vec<_> = names.iter().filter(|name| Factory::new(name, &Params::new()).is_ok()).collect();
    assert_eq!(served.len(), names.len() - 8);
    for name in served {
        let windows = windows(name);
        assert!(windows.iter().all(|window| *window > 0), "{name}: {windows:?}");
    }
}

#[test]
fn a_mark_reduces_the_window_once_a_round_trip() {
    let (factory, start) = (Factory::new("reno", &Params::new()).expect("it serves quinn"), Instant::now());
    let mut controller = factory.controller(start, MTU);
    controller.on_sent(start, 12_000, 9);
    for number in 0..10 {
        controller.on_acked(start + RTT, start, false);
        controller.on_end_acks(start + RTT, (9 - number) * 1200, false, None);
        controller.on_congestion_event(start + RTT, start, false, 0);
    }
    assert_eq!(controller.metrics().ssthresh, Some(5 * 1200));
}

#[test]
fn a_factory_builds_the_controllers_of_a_configuration() {
    let factory = Arc::new(Factory::new("lia", &Params::new()).expect("it serves quinn"));
    let mut config = quinn_proto::TransportConfig::default();
    config.congestion_controller_factory(factory.clone());
    let mut controller = factory.build(Instant::now(), MTU);
    assert_eq!((controller.window(), controller.clone_box().initial_window()), (12_001, 12_000));
    controller.on_mtu_update(1400);
    assert_eq!((controller.window(), controller.clone_box().window()), (14_001, 14_001), "the same path");
}

//! The adapter's windows, with the calls that quinn makes in each round trip.

use quinn_proto::congestion::Controller;
use ropewalk_quinn_example::{Adapter, Algorithm};
use std::time::{Duration, Instant};

const MTU: u16 = 1200;
const RTT: Duration = Duration::from_millis(20);

/// A full window is sent, and each packet is acknowledged for itself. If the first packet is lost, the third
/// acknowledgement tells.
fn round(controller: &mut Adapter, now: &mut Instant, loses: bool) {
    let packets = controller.window() / u64::from(MTU);
    (0..packets).for_each(|number| controller.on_sent(*now, MTU.into(), number));
    let sent = *now;
    *now += RTT;
    for number in u64::from(loses)..packets {
        controller.delivered(*now, sent);
        let is_lost_packet_in_flight = loses && number < 4;
        let in_flight = packets - number - 1 + u64::from(is_lost_packet_in_flight);
        controller.on_end_acks(*now, in_flight * u64::from(MTU), false, None);
        if loses && number == 3 {
            controller.on_congestion_event(*now, sent, false, MTU.into());
        }
    }
}

/// The windows before each of eight rounds, packets; the fourth loses a packet.
fn windows(name: &str) -> Vec<u64> {
    let start = Instant::now();
    let (mut controller, mut now) = (Algorithm::find(name).expect("built in").controller(start, MTU), start);
    let mut windows = Vec::new();
    for number in 0..8 {
        windows.push(controller.window() / u64::from(MTU));
        round(&mut controller, &mut now, number == 3);
    }
    windows
}

#[test]
fn reno_doubles_its_window_and_halves_it_after_a_loss() {
    // The three packets that were acknowledged before the loss was found had raised the window to 83.
    assert_eq!(windows("reno"), [10, 20, 40, 80, 41, 42, 43, 44]);
}

#[test]
fn every_algorithm_without_a_file_serves_quinn() {
    let names: Vec<_> = control::registry::names().filter(|name| Algorithm::find(name).is_some()).collect();
    assert!(names.len() >= 36, "{names:?}");
    for name in names {
        let windows = windows(name);
        assert!(windows.iter().all(|window| *window > 0), "{name}: {windows:?}");
    }
}

#[test]
fn a_factory_builds_the_controllers_of_a_configuration() {
    let mut config = quinn_proto::TransportConfig::default();
    let algorithm = std::sync::Arc::new(Algorithm::find("bbr3").expect("built in"));
    config.congestion_controller_factory(algorithm.clone());
    let controller = quinn_proto::congestion::ControllerFactory::build(algorithm, Instant::now(), MTU);
    assert_eq!(controller.window(), 12_000);
    assert_eq!(controller.clone_box().initial_window(), 12_000);
}

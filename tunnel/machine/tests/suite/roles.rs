//! What secondary paths, backups and paths for one class carry.

use crate::simulation::{Simulation, offer, simulation};
use ropewalk_machine::{PathClasses, PathConfig, RealtimeOptions, TunnelOptions};
use testnet::{LinkConfig, PATH_CONFIG, ms, options};
use units::{PathId, Span};

const BULK: u8 = 3;
const CALL: u8 = 9;
const SECONDARY: PathConfig = PathConfig { secondary: true, ..PATH_CONFIG };
const METERED: PathConfig = PathConfig { metered: true, ..PATH_CONFIG };

/// Two links of 20 Mbit/s, the second one with the shorter delay, whose use only the first host configures.
fn two_links(seed: u64, second: PathConfig, options: &TunnelOptions) -> Simulation {
    let links = vec![[LinkConfig::clean(20, 20); 2], [LinkConfig::clean(20, 5); 2]];
    let mut simulation = simulation(seed, links, options, Span::ZERO);
    simulation.with_host(0, |host, _| host.endpoint.set_path(PathId(1), second));
    simulation.run_until(ms(500));
    simulation
}

/// A stream of packets of 1250 bytes from a host: so many in each 5 ms.
fn send_bulk(simulation: &mut Simulation, host: usize, packets: u64, milliseconds: u64) {
    for round in 0..milliseconds / 5 {
        (0..packets).for_each(|n| offer(simulation, host, BULK, round * packets + n, 1250));
        simulation.run_for(Span::from_millis(5));
    }
}

/// Datagrams with data that a host has sent on each path.
fn sent(simulation: &Simulation, host: usize) -> [u64; 2] {
    let status = simulation.hosts[host].endpoint.status();
    [0, 1].map(|path| status.paths[path].sent_packets)
}

#[test]
fn a_secondary_path_carries_nothing_until_the_regular_one_is_full_in_either_direction() {
    for scheduler in ["overflow", "minrtt", "round-robin", "ecf"] {
        let mut simulation = two_links(1, SECONDARY, &options("bbr-path", scheduler));
        for host in [0, 1] {
            // 10 Mbit/s of 20. While the congestion window still grows, less is full.
            send_bulk(&mut simulation, host, 5, 1000);
            let before = sent(&simulation, host);
            send_bulk(&mut simulation, host, 5, 3000);
            let after = sent(&simulation, host);
            let [regular, secondary] = [0, 1].map(|path| after[path] - before[path]);
            assert!(regular >= 2900 && secondary == 0, "{scheduler}, host {host}: {regular} and {secondary}");
        }
        for host in [0, 1] {
            let before = sent(&simulation, host);
            // 30 Mbit/s of 20.
            send_bulk(&mut simulation, host, 15, 3000);
            let after = sent(&simulation, host);
            let [regular, secondary] = [0, 1].map(|path| after[path] - before[path]);
            // The regular path has 20 Mbit/s: of 6000 packets, its headers and pauses for measurement leave 4500.
            assert!(regular > 4500 && secondary > 2000, "{scheduler}, host {host}: {regular} and {secondary}");
        }
    }
}

#[test]
fn a_secondary_path_carries_everything_once_no_regular_one_works() {
    let dark = LinkConfig::clean(20, 20).with_outage(ms(2000), ms(60_000));
    let links = vec![[dark; 2], [LinkConfig::clean(20, 5); 2]];
    let mut simulation = simulation(2, links, &options("bbr-path", "overflow"), Span::ZERO);
    simulation.with_host(0, |host, _| host.endpoint.set_path(PathId(1), SECONDARY));
    simulation.run_until(ms(1000));
    send_bulk(&mut simulation, 0, 5, 4000);
    simulation.run_for(Span::from_secs(1));
    let ids = simulation.hosts[1].ids(BULK);
    assert!(ids.len() > 3800 && ids.windows(2).all(|pair| pair[0] < pair[1]), "{} of 4000", ids.len());
}

/// A metered path is what a path over its quota becomes.
#[test]
fn a_path_that_becomes_metered_carries_no_more_data_in_either_direction_and_few_probes() {
    let mut simulation = two_links(3, PATH_CONFIG, &options("bbr-path", "overflow"));
    [0, 1].into_iter().for_each(|host| send_bulk(&mut simulation, host, 5, 1000));
    assert!([0, 1].iter().all(|host| sent(&simulation, *host)[1] > 0), "the faster one is used");
    simulation.with_host(0, |host, _| host.endpoint.set_path(PathId(1), METERED));
    simulation.run_for(Span::from_secs(1));
    let before = [0, 1].map(|host| sent(&simulation, host)[1]);
    let numbers = |simulation: &Simulation| [0, 1].map(|host| simulation.hosts[host].received_count(PathId(1)));
    let received = numbers(&simulation);
    // 30 Mbit/s of 20: what the regular path cannot carry waits, and is dropped.
    [0, 1].into_iter().for_each(|host| send_bulk(&mut simulation, host, 15, 10_000));
    assert_eq!([0, 1].map(|host| sent(&simulation, host)[1]), before);
    let probes: Vec<usize> = numbers(&simulation).iter().zip(received).map(|(now, before)| now - before).collect();
    // A ping and its answer each 10 s from either end, and one more for the change of the path; 20 s have passed.
    assert!(probes.iter().all(|count| *count <= 8), "{probes:?}");
    for host in [0, 1] {
        let status = simulation.hosts[host].endpoint.status();
        assert!(status.paths[1].backup && !status.paths[0].backup, "host {host}");
    }
    simulation.with_host(0, |host, _| host.endpoint.set_path(PathId(1), PATH_CONFIG));
    simulation.run_for(Span::from_secs(1));
    [0, 1].into_iter().for_each(|host| send_bulk(&mut simulation, host, 5, 1000));
    assert!([0, 1].iter().all(|host| sent(&simulation, *host)[1] > before[*host]), "it is regular again");
}

fn with_classes(classes: PathClasses) -> Simulation {
    let realtime = TunnelOptions { realtime: Some(RealtimeOptions::default()), ..options("bbr-path", "overflow") };
    two_links(4, PathConfig { classes, ..PATH_CONFIG }, &realtime)
}

/// A call of 50 packets a second beside bulk of 30 Mbit/s.
fn call_and_bulk(simulation: &mut Simulation, seconds: u64) {
    for round in 0..seconds * 50 {
        offer(simulation, 0, CALL, round, 172);
        (0..60).for_each(|n| offer(simulation, 0, BULK, round * 60 + n, 1250));
        simulation.run_for(Span::from_millis(20));
    }
}

#[test]
fn a_path_for_the_real_time_class_carries_nothing_else_even_if_it_alone_works() {
    let mut simulation = with_classes(PathClasses::Realtime);
    call_and_bulk(&mut simulation, 3);
    let status = simulation.hosts[0].endpoint.status();
    let realtime = status.counters.realtime.packets + status.counters.copied_fragments;
    let [_, second] = sent(&simulation, 0);
    assert!((100..=realtime).contains(&second), "{second} of {realtime} packets of the class and their copies");
    simulation.with_host(0, |host, now| host.endpoint.remove_path(now, PathId(0)));
    let delivered = simulation.hosts[1].ids(BULK).len();
    call_and_bulk(&mut simulation, 1);
    assert!(simulation.hosts[1].ids(BULK).len() <= delivered + 50, "what was on its way");
    assert!(simulation.hosts[1].ids(CALL).len() >= 195, "{}", simulation.hosts[1].ids(CALL).len());
    assert!(simulation.hosts[0].endpoint.has_room(), "bulk does not close the device to calls");
}

#[test]
fn a_path_without_the_real_time_class_carries_calls_only_if_no_other_works() {
    let mut simulation = with_classes(PathClasses::Bulk);
    send_calls(&mut simulation, 100);
    assert_eq!(sent(&simulation, 0)[1], 0, "although it is the fastest");
    call_and_bulk(&mut simulation, 1);
    assert!(sent(&simulation, 0)[1] > 500, "bulk uses it");
    simulation.with_host(0, |host, now| host.endpoint.remove_path(now, PathId(0)));
    let delivered = simulation.hosts[1].ids(CALL).len();
    send_calls(&mut simulation, 50);
    assert!(simulation.hosts[1].ids(CALL).len() >= delivered + 48);
}

fn send_calls(simulation: &mut Simulation, packets: u64) {
    for id in 0..packets {
        offer(simulation, 0, CALL, 1000 + id, 172);
        simulation.run_for(Span::from_millis(20));
    }
}

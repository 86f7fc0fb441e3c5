//! Two endpoints of the tunnel, over paths of every kind.

#![expect(clippy::print_stdout, reason = "measurements, shown by --nocapture")]

mod any_network;
mod realtime;
mod roles;
mod simulation;

use ropewalk_machine::{Arrival, EndpointEvent, Fragment, PathConfig, TransmitBody};
use simulation::{Bytes, TestHost, offer, simulation};
use testnet::{LinkConfig, PATH_CONFIG, ms, options};
use units::{Instant, PathId, Rate, Span};
use wire::frame::{Ack, AckRanges, Frame, PathState};

#[test]
fn packets_are_delivered_whole_and_in_order_over_two_different_paths() {
    let links = vec![[LinkConfig::clean(100, 8); 2], [LinkConfig::clean(30, 40); 2]];
    let mut simulation = simulation(1, links, &options("bbr", "minrtt"), Span::ZERO);
    simulation.run_until(ms(500));
    for id in 0..200 {
        offer(&mut simulation, 0, 3, id, 60_000);
        simulation.run_until(ms(500 + 5 * (id + 1)));
    }
    simulation.run_until(ms(4000));
    println!("{:?}", simulation.hosts[0].endpoint.status());
    println!("{:?}", simulation.hosts[1].endpoint.status().counters);
    println!("last at {:?}", simulation.hosts[1].delivered.last());
    assert!(simulation.hosts[1].ids(3).iter().copied().eq(0..200), "whole and in order");
}

#[test]
fn a_failed_path_is_replaced_within_half_a_second_and_used_again_soon() {
    let failing = LinkConfig::clean(50, 10).with_outage(ms(1000), ms(3000));
    let links = vec![[failing; 2], [LinkConfig::clean(50, 20); 2]];
    let mut simulation = simulation(2, links, &options("bbr", "minrtt"), Span::ZERO);
    simulation.run_until(ms(300));
    for id in 0..1000 {
        offer(&mut simulation, 0, 7, id, 10_000);
        simulation.run_until(ms(300 + 4 * (id + 1)));
    }
    simulation.run_until(ms(6000));
    let delivered = &simulation.hosts[1].delivered;
    let longest_gap = delivered.windows(2).map(|pair| pair[1].2.since(pair[0].2)).max().expect("many");
    let events: Vec<_> = simulation.hosts[0]
        .events
        .iter()
        .filter(|(_, event)| !matches!(event, EndpointEvent::MaxDatagramSize(..)))
        .collect();
    println!("{longest_gap:?} {events:?} {:?}", simulation.hosts[0].endpoint.status());
    assert!(simulation.hosts[1].ids(7).iter().copied().eq(0..1000), "whole and in order");
    assert!(longest_gap < Span::from_millis(400), "{longest_gap}");
    let path_up = events.iter().find(|(time, event)| *time > ms(3000) && *event == EndpointEvent::PathUp(PathId(0)));
    assert!(path_up.expect("the path comes up").0 < ms(3500), "{path_up:?}");
}

#[test]
fn the_difference_of_delays_is_measured_wherever_the_clocks_wrap() {
    let delays = [8, 40].map(|delay| [LinkConfig::clean(50, delay); 2]);
    // Receive timestamps are modulo 2^32 us; at half of it the difference of two becomes negative.
    for clock_offset in [0, 1 << 31, 1 << 32].map(|us| Span::from_micros(us).saturating_sub(Span::from_millis(20))) {
        let mut simulation = simulation(6, delays.to_vec(), &options("bbr", "roundrobin"), clock_offset);
        for id in 0..300 {
            offer(&mut simulation, 0, 1, id, 10_000);
            simulation.run_for(Span::from_millis(5));
        }
        let excess = simulation.hosts[0].endpoint.status().paths[1].excess_one_way_delay;
        assert!((30..36).contains(&excess.as_millis()), "{clock_offset}: {excess}");
    }
}

#[test]
fn a_path_sends_at_most_its_configured_rate() {
    let mut simulation = simulation(3, vec![[LinkConfig::clean(100, 10); 2]], &options("off", "minrtt"), Span::ZERO);
    let config = PathConfig { max_rate: Some(Rate::from_mbit(20)), ..PATH_CONFIG };
    simulation.hosts[0].endpoint.set_path(PathId(0), config);
    simulation.run_until(ms(500));
    (0..1000).for_each(|id| offer(&mut simulation, 0, 1, id, 10_000));
    simulation.run_until(ms(1500));
    // A second of 20 Mbit/s: 2.5 MB, of which headers take 62 in 1500.
    let bytes = simulation.hosts[0].endpoint.status().paths[0].sent_bytes as f64;
    assert!((bytes / 2.5e6 * 1500.0 / 1438.0 - 1.0).abs() < 0.01, "{bytes}");
}

/// The frames that an endpoint sends now, datagram by datagram, none of which may be larger than every path carries:
/// 1200 bytes (RFC 9000, section 14), of which the seal takes 28.
fn sent_frames(host: &mut TestHost, now: Instant) -> Vec<(PathId, Frame)> {
    let mut frames = Vec::new();
    while let Some(transmit) = host.endpoint.poll_transmit(now) {
        assert_eq!(transmit.body, TransmitBody::Control { pad_to: 0 });
        assert!(host.endpoint.control_frames().iter().map(Frame::len).sum::<usize>() <= 1200 - 28);
        frames.extend(host.endpoint.control_frames().iter().map(|frame| (transmit.path, frame.clone())));
    }
    frames
}

#[test]
fn each_ping_tells_this_ends_own_use_of_the_path() {
    let mut host = TestHost::new(&options("bbr", "minrtt"), 7, 1);
    let backup = PathConfig { backup: true, ..PATH_CONFIG };
    let announced = |host: &mut TestHost, now| {
        let frames = sent_frames(host, now).into_iter().map(|(_, frame)| frame);
        frames.filter(|frame| matches!(frame, Frame::Path { .. })).collect::<Vec<_>>()
    };
    let state = |state| Frame::Path { path: 0, state };
    assert_eq!(announced(&mut host, ms(1)), [state(PathState::Regular)]);
    // The peer's use is not repeated to it: neither end could become regular again.
    let arrival = Arrival { path: PathId(0), packet_number: 0, ce: false };
    host.endpoint.receive_control(ms(2), arrival, &[state(PathState::Backup)]);
    host.endpoint.set_path(PathId(0), PATH_CONFIG);
    assert_eq!(announced(&mut host, ms(2)), [state(PathState::Regular)]);
    host.endpoint.set_path(PathId(0), backup);
    assert_eq!(announced(&mut host, ms(3)), [state(PathState::Backup)]);
    assert_eq!(announced(&mut host, ms(60_000)), [state(PathState::Backup)], "again, as frames may be lost");
}

#[test]
fn four_pings_of_a_datagram_are_answered_on_its_path_and_256_pongs_wait_at_most() {
    let mut host = TestHost::new(&options("bbr", "minrtt"), 4, 2);
    sent_frames(&mut host, ms(1));
    for number in 0..100 {
        // Four are answered of each datagram, and of all those that wait, 256.
        let pings: Vec<Frame> = (0..130).map(|n| Frame::Ping { token: 1000 * number + n }).collect();
        host.endpoint.receive_control(ms(2), Arrival { path: PathId(1), packet_number: number, ce: false }, &pings);
    }
    let pongs = sent_frames(&mut host, ms(2));
    let tokens = (0..64).flat_map(|number| (0..4).map(move |n| (PathId(1), Frame::Pong { token: 1000 * number + n })));
    assert!(pongs.into_iter().eq(tokens), "each of these is answered");
    assert_eq!(host.endpoint.status().counters.malformed_frames, 100 * 126);
}

/// A fifth of all packets is lost in both directions: 36 % of the pings have no answer, 5 % of three in a row. In five
/// minutes the path is validated at least 120 times.
#[test]
fn a_path_whose_data_is_acknowledged_does_not_fail_because_it_loses_many_pings() {
    let lossy = LinkConfig { loss: 0.2, ..LinkConfig::clean(100, 10) };
    let mut simulation = simulation(8, vec![[lossy; 2]], &options("off", "minrtt"), Span::ZERO);
    simulation.run_until(ms(1000));
    for id in 0..60_000 {
        offer(&mut simulation, 0, 1, id, 1000);
        simulation.run_for(Span::from_millis(5));
    }
    assert_eq!(simulation.hosts[0].endpoint.status().paths[0].failures, 0);
}

/// RFC 9000, section 13.1: an acknowledgement of a packet that was never sent is an error.
#[test]
fn acknowledgements_of_packets_never_sent_and_second_ones_of_a_path_are_counted_and_ignored() {
    let mut simulation = simulation(7, vec![[LinkConfig::clean(100, 10); 2]], &options("bbr", "minrtt"), Span::ZERO);
    simulation.run_until(ms(500));
    let host = &mut simulation.hosts[0];
    host.endpoint.offer(ms(500), 1, Bytes { id: 1, start: 0, end: 1000, length: 1000 });
    let mut transmits = std::iter::from_fn(|| host.endpoint.poll_transmit(ms(500)));
    let data = transmits.find(|transmit| matches!(transmit.body, TransmitBody::Data(_)));
    let data = data.expect("the packet is sent").packet_number as u32;
    let mut ranges = AckRanges::default();
    ranges.push(0, u32::MAX);
    let ack = |largest| {
        let ranges = ranges.clone();
        Frame::Ack(Ack { path: 0, largest, ack_delay_us: 0, receive_timestamp_us: 0, ce_count: 0, ranges })
    };
    let mut receive = |number, frames: &[Frame]| {
        let arrival = Arrival { path: PathId(0), packet_number: number, ce: false };
        host.endpoint.receive_control(ms(501), arrival, frames);
        let status = host.endpoint.status();
        (status.fragments_in_flight, status.counters.malformed_frames)
    };
    assert_eq!(receive(1000, &[ack(data + 1)]), (1, 1));
    assert_eq!(receive(1001, &[ack(data + 1), ack(data)]), (1, 3), "one of a path");
    assert_eq!(receive(1002, &[ack(data)]), (0, 3));
}

#[test]
fn acknowledgements_of_many_lossy_paths_fit_several_datagrams() {
    let mut host = TestHost::new(&options("bbr", "minrtt"), 5, 16);
    sent_frames(&mut host, ms(1));
    for path in (0..16).map(PathId) {
        for number in (0..40).map(|n| 1000 * n) {
            let payload = Bytes { id: 1, start: 0, end: 1000, length: 1000 };
            let (stream, sequence) = (path.0 as u8, number as u32);
            let fragment = Fragment { stream, sequence, first: true, last: true, retransmission: false, payload };
            host.endpoint.receive_data(ms(2), Arrival { path, packet_number: number, ce: false }, fragment);
        }
    }
    let frames = sent_frames(&mut host, ms(2));
    let paths = frames.iter().filter_map(|(_, frame)| if let Frame::Ack(ack) = frame { Some(ack.path) } else { None });
    assert!(paths.eq(0..16), "each path once: {frames:?}");
}

/// Datagrams with data that 16 packets take which are offered at once, and packets in bundles; the forward link of the only
/// path is dark for 5 ms if `is_dark`.
fn datagrams_of_sixteen_packets(seed: u64, is_dark: bool) -> (u64, u64) {
    let link = LinkConfig::clean(100, 5);
    let forward = if is_dark { link.with_outage(ms(500), ms(505)) } else { link };
    let mut simulation = simulation(seed, vec![[forward, link]], &options("bbr", "minrtt"), Span::ZERO);
    simulation.run_until(ms(501));
    simulation.with_host(0, |host, now| {
        (0..16).for_each(|id| {
            let packet = Bytes { id, start: 0, end: 60, length: 60 };
            host.endpoint.offer(now, (id % 2) as u8, packet);
        });
    });
    simulation.run_for(Span::from_secs(1));
    for stream in 0..2 {
        assert!(
            simulation.hosts[1].ids(stream).into_iter().eq((u64::from(stream)..16).step_by(2)),
            "once and in order"
        );
    }
    let status = simulation.hosts[0].endpoint.status();
    (status.paths[0].sent_packets, status.counters.bundled_packets)
}

#[test]
fn packets_that_wait_leave_in_one_datagram_if_the_peer_takes_bundles() {
    assert_eq!(datagrams_of_sixteen_packets(2, false), (1, 16));
    assert_eq!(datagrams_of_sixteen_packets(1, false), (16, 0), "a peer of an earlier version");
}

#[test]
fn the_packets_of_a_lost_bundle_are_retransmitted_in_bundles() {
    let (datagrams, bundled) = datagrams_of_sixteen_packets(2, true);
    assert!((2..=4).contains(&datagrams) && bundled >= 32, "{datagrams} datagrams, {bundled} packets in bundles");
}

/// Packets of both directions, one per millisecond, go by the first path, and acknowledgements with them. The second path has
/// acknowledgements of its own, and each end's ping every 200 ms.
#[test]
fn acknowledgements_go_by_each_path_every_25_ms_although_data_carries_them() {
    let links = [5, 20].map(|delay| [LinkConfig::clean(100, delay); 2]);
    let mut simulation = simulation(2, links.to_vec(), &options("bbr", "minrtt"), Span::ZERO);
    simulation.run_until(ms(500));
    let count = |simulation: &simulation::Simulation| simulation.hosts[0].received_count(PathId(1));
    let before = count(&simulation);
    for id in 0..1000 {
        (0..2).for_each(|host| offer(&mut simulation, host, 1, id, 60));
        simulation.run_for(Span::from_millis(1));
    }
    let second_path = count(&simulation) - before;
    assert!((1000 / 27..=1000 / 25 + 2 * 1000 / 200).contains(&second_path), "{second_path} datagrams");
}

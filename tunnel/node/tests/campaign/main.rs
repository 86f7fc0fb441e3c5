//! The deterministic campaign: nodes with real ciphers and encodings, on networks drawn by seed. No packet is delivered
//! twice or altered, nothing unauthenticated is accepted, streams keep their order, and once a path works, both hosts
//! reach each other within a stated time. All of it holds beside a hostile peer with a session, too. A failure names its
//! seed.

mod hostile;
mod simulation;

use hostile::{add_hostile_peers, attack};
use machine::TunnelOptions;
use ropewalk_node::{Malformed, NodeEvent};
use simulation::{
    Simulation, add_path, offer, process_after_restart, rebind, remove_path, restart, set_preshared_key, simulation,
};
use testnet::{LinkConfig, ms};
use units::{Instant, PathId, RngStream, Span};

/// Time limit for packets to be delivered after the network has recovered.
const RECOVERY_TIME: Span = Span::from_secs(8);

/// The options of most hosts here.
fn options() -> TunnelOptions {
    testnet::options("bbr", "minrtt")
}

#[test]
fn a_client_with_two_paths_connects_to_a_server_without_configured_paths() {
    let links = vec![[LinkConfig::clean(100, 5); 2], [LinkConfig::clean(50, 20); 2]];
    let mut simulation = simulation(1, links, &options());
    simulation.run_until(ms(300));
    for id in 0..100 {
        offer(&mut simulation, (id % 2) as usize, 1, id, 20_000);
        simulation.run_until(ms(300 + 3 * id));
    }
    simulation.run_until(ms(3000));
    assert!([0, 1].iter().all(|path| simulation.hosts[0].is_up(*path) && simulation.hosts[1].is_up(*path)));
    for host in 0..2u64 {
        let ids: Vec<u64> = simulation.hosts[1 - host as usize].delivered.iter().map(|(_, id)| *id).collect();
        assert!(ids.iter().copied().eq((0..100).filter(|id| id % 2 == host)), "{ids:?}");
    }
}

#[test]
fn a_first_path_that_does_not_work_does_not_stop_the_start() {
    let down = LinkConfig::clean(100, 5).with_outage(Instant::ZERO, Instant::NEVER);
    let mut simulation = simulation(2, vec![[down; 2], [LinkConfig::clean(50, 20); 2]], &options());
    simulation.run_until(ms(1000));
    assert!(simulation.hosts[0].is_up(1) && !simulation.hosts[0].is_up(0));
}

#[test]
fn keys_change_every_two_minutes_and_no_packet_is_lost() {
    let mut simulation = simulation(3, vec![[LinkConfig::clean(20, 10); 2]], &options());
    simulation.run_until(ms(300));
    for id in 0..3000 {
        offer(&mut simulation, 0, 1, id, 500);
        simulation.run_for(Span::from_millis(100));
    }
    simulation.run_for(Span::from_secs(1));
    let established = |host: usize| {
        simulation.hosts[host].events.iter().filter(|event| matches!(event, NodeEvent::Established { .. })).count()
    };
    assert!(established(0) >= 3 && established(1) >= 3, "300 s: {} and {}", established(0), established(1));
    assert!(simulation.hosts[1].delivered.iter().map(|(_, id)| *id).eq(0..3000));
}

#[test]
fn datagrams_go_to_the_new_address_of_a_client() {
    let mut simulation = simulation(4, vec![[LinkConfig::clean(20, 10); 2]], &options());
    simulation.run_until(ms(300));
    rebind(&mut simulation, 0);
    for id in 0..50 {
        offer(&mut simulation, 0, 1, id, 2000);
        offer(&mut simulation, 1, 1, 1000 + id, 2000);
        simulation.run_for(Span::from_millis(10));
    }
    simulation.run_for(Span::from_secs(2));
    assert!(simulation.hosts[1].events.contains(&NodeEvent::PathMigrated(PathId(0))));
    assert_eq!((simulation.hosts[0].delivered.len(), simulation.hosts[1].delivered.len()), (50, 50));
}

#[test]
fn the_addresses_of_working_paths_are_known_to_the_sessions() {
    let mut simulation = simulation(12, vec![[LinkConfig::clean(20, 10); 2]; 2], &options());
    simulation.run_until(ms(300));
    rebind(&mut simulation, 1);
    let known = |simulation: &Simulation, path| simulation.hosts[1].knows_address_of(&simulation.hosts[0], path);
    assert!(!known(&simulation, 1));
    simulation.run_for(Span::from_secs(20));
    assert!(known(&simulation, 0) && known(&simulation, 1));
}

#[test]
fn a_restarted_server_gets_a_new_session() {
    let mut simulation =
        simulation(5, vec![[LinkConfig::clean(20, 10); 2], [LinkConfig::clean(20, 10); 2]], &options());
    simulation.run_until(ms(300));
    for id in 0..20 {
        offer(&mut simulation, 0, 1, id, 2000);
    }
    simulation.run_until(ms(600));
    restart(&mut simulation, 1);
    let restart_time = simulation.now;
    let mut id = 100;
    while simulation.hosts[1].delivered.is_empty() {
        offer(&mut simulation, 0, 1, id, 2000);
        id += 1;
        simulation.run_for(Span::from_millis(50));
        assert!(simulation.now.since(restart_time) < RECOVERY_TIME, "{}", simulation.now.since(restart_time));
    }
}

#[test]
fn a_removed_path_is_removed_at_both_ends_and_no_packet_is_lost() {
    let mut simulation =
        simulation(10, vec![[LinkConfig::clean(20, 10); 2], [LinkConfig::clean(20, 40); 2]], &options());
    simulation.run_until(ms(500));
    for id in 0..200 {
        if id == 100 {
            assert!(simulation.hosts[0].status().fragments_in_flight > 0, "fragments are in flight");
            remove_path(&mut simulation, 1);
        }
        offer(&mut simulation, 0, 1, id, 8000);
        offer(&mut simulation, 1, 1, 1000 + id, 8000);
        simulation.run_for(Span::from_millis(3));
    }
    simulation.run_for(Span::from_secs(3));
    assert_eq!(
        [simulation.hosts[0].paths(), simulation.hosts[1].paths()],
        [[0], [0]],
        "late datagrams do not open the path again"
    );
    assert_eq!((simulation.hosts[0].delivered.len(), simulation.hosts[1].delivered.len()), (200, 200));
    // The path id is used again.
    add_path(&mut simulation, 1, 1);
    simulation.run_for(Span::from_secs(1));
    assert!(simulation.hosts[0].is_up(1) && simulation.hosts[1].is_up(1));
    for id in 2000..2100 {
        offer(&mut simulation, 0, 1, id, 8000);
        simulation.run_for(Span::from_millis(3));
    }
    simulation.run_for(Span::from_secs(2));
    assert_eq!(simulation.hosts[1].delivered.len(), 300);
}

#[test]
fn a_lost_removal_is_announced_again_and_a_silent_path_is_removed_after_a_minute() {
    let mut simulation =
        simulation(11, vec![[LinkConfig::clean(20, 10); 2], [LinkConfig::clean(20, 10); 2]], &options());
    simulation.run_until(ms(500));
    // No datagram of the client arrives while it removes the path.
    let links = simulation.network.links.clone();
    simulation
        .network
        .links
        .iter_mut()
        .for_each(|directions| directions[0].outage = Some((simulation.now, Instant::NEVER)));
    remove_path(&mut simulation, 1);
    simulation.run_for(Span::from_millis(50));
    assert_eq!(simulation.hosts[1].paths(), [0, 1]);
    simulation.network.links.clone_from(&links);
    offer(&mut simulation, 1, 1, 1, 100);
    simulation.run_for(Span::from_secs(3));
    assert_eq!(simulation.hosts[1].paths(), [0], "the removal is announced again");
    // A path that becomes silent and is not removed.
    add_path(&mut simulation, 2, 1);
    simulation.run_for(Span::from_secs(1));
    assert_eq!(simulation.hosts[1].paths(), [0, 2]);
    simulation.network.links[1].iter_mut().for_each(|link| link.outage = Some((simulation.now, Instant::NEVER)));
    simulation.run_for(Span::from_secs(59));
    assert_eq!(simulation.hosts[1].paths(), [0, 2]);
    simulation.run_for(Span::from_secs(30));
    assert_eq!(
        [simulation.hosts[0].paths(), simulation.hosts[1].paths()],
        [vec![0, 2], vec![0]],
        "the client keeps its configured path"
    );
}

#[test]
fn a_preshared_key_that_both_ends_change_makes_a_new_session_and_no_packet_is_lost() {
    let mut simulation = simulation(12, vec![[LinkConfig::clean(20, 10); 2]], &options());
    simulation.run_until(ms(500));
    let established = |simulation: &Simulation| {
        simulation
            .hosts
            .each_ref()
            .map(|host| host.events.iter().filter(|event| matches!(event, NodeEvent::Established { .. })).count())
    };
    assert_eq!(established(&simulation), [1, 1]);
    for id in 0..200 {
        match id {
            20 => set_preshared_key(&mut simulation, 0, 7),
            100 => set_preshared_key(&mut simulation, 1, 7),
            _ => {}
        }
        if id == 99 {
            assert_eq!(established(&simulation), [1, 1], "not with the key at one end only");
        }
        offer(&mut simulation, 0, 1, id, 2000);
        offer(&mut simulation, 1, 1, 1000 + id, 2000);
        simulation.run_for(Span::from_millis(60));
    }
    simulation.run_for(Span::from_secs(2));
    assert_eq!(established(&simulation), [2, 2]);
    assert_eq!((simulation.hosts[0].delivered.len(), simulation.hosts[1].delivered.len()), (200, 200));
}

#[test]
fn a_link_that_goes_down_fails_its_paths_at_once() {
    let mut simulation =
        simulation(7, vec![[LinkConfig::clean(20, 10); 2], [LinkConfig::clean(20, 10); 2]], &options());
    simulation.run_until(ms(500));
    simulation.with_host(0, |client, now| client.node.on_link_down(now, 1));
    assert!(simulation.hosts[0].is_up(0) && !simulation.hosts[0].is_up(1));
}

#[test]
fn a_peer_that_closes_the_tunnel_gets_a_new_handshake() {
    let mut simulation = simulation(8, vec![[LinkConfig::clean(20, 10); 2]], &options());
    simulation.run_until(ms(500));
    simulation.with_host(1, |server, _| server.node.close());
    simulation.run_until(ms(3000));
    let new_sessions = |host: usize| {
        simulation.hosts[host]
            .events
            .iter()
            .filter(|event| **event == NodeEvent::Established { numbers_reset: true })
            .count()
    };
    assert_eq!([new_sessions(0), new_sessions(1)], [2, 2], "one at the start, one after the close");
    assert!(simulation.hosts[0].is_up(0) && simulation.hosts[1].is_up(0));
}

#[test]
fn datagrams_opened_before_a_restart_and_processed_after_it_are_dropped() {
    let mut simulation = simulation(9, vec![[LinkConfig::clean(20, 10); 2]], &options());
    simulation.run_until(ms(500));
    assert_eq!(process_after_restart(&mut simulation), Err(Malformed));
}

/// Counts of rare situations, each of which the campaign has to reach.
#[derive(Debug, Default)]
struct Situations {
    restarts: u64,
    migrated: u64,
    corrupted: u64,
    refused: u64,
    replayed: u64,
    retransmitted: u64,
    failures: u64,
    rekeyed: u64,
    clock_jumps: u64,
    hostile_datagrams: u64,
    hostile_packets: u64,
}

fn run(seed: u64, situations: &mut Situations) {
    let mut rng = RngStream::named(seed, "campaign");
    let links = testnet::random_paths(&mut rng, 3);
    let options = testnet::random_options(&mut rng);
    let paths = links.len() as u64;
    let mut simulation = simulation(seed, links, &options);
    let has_long_pauses = rng.chance(0.05);
    let mut hostile_rng = RngStream::named(seed, "attacks");
    if hostile_rng.chance(0.5) {
        add_hostile_peers(&mut simulation);
    }
    for id in 0..100 + rng.below(150) {
        let (host, stream) = (usize::from(rng.chance(0.4)), (id % 4) as u8);
        offer(&mut simulation, host, stream, id, 16 + rng.below(12_000) as usize);
        let pause = if has_long_pauses { rng.below(4_000_000) } else { rng.below(40_000) };
        simulation.run_for(Span::from_micros(pause));
        match rng.below(200) {
            0 => {
                restart(&mut simulation, usize::from(rng.chance(0.5)));
                situations.restarts += 1;
            }
            1 => rebind(&mut simulation, rng.below(paths) as usize),
            2..20 => simulation.replay(),
            20 => {
                simulation.hosts[usize::from(rng.chance(0.5))].wall_clock += 1 << rng.below(50);
                situations.clock_jumps += 1;
            }
            _ => {}
        }
        if hostile_rng.chance(0.3) {
            attack(&mut simulation, usize::from(hostile_rng.chance(0.5)));
        }
        simulation.assert_memory(testnet::MEMORY_BYTES);
        if options.in_order {
            for host in &simulation.hosts {
                (0..4).for_each(|stream| {
                    let ids = host
                        .delivered
                        .iter()
                        .filter(|(delivered_stream, _)| *delivered_stream == stream)
                        .map(|(_, id)| *id);
                    assert!(ids.is_sorted(), "seed {seed}: stream {stream} keeps its order");
                });
            }
        }
    }
    recover(seed, &mut simulation);
    for host in &simulation.hosts {
        let status = host.node.endpoint(host.peer).expect("the peer was added").status();
        situations.refused += host.refused;
        situations.hostile_datagrams += host.hostile.as_ref().map_or(0, |hostile| hostile.opened);
        situations.hostile_packets += host.hostile.as_ref().map_or(0, |hostile| hostile.delivered);
        situations.retransmitted += status.counters.retransmitted_fragments;
        situations.failures += status.paths.iter().map(|path| path.failures).sum::<u64>();
        situations.migrated +=
            host.events.iter().filter(|event| matches!(event, NodeEvent::PathMigrated(_))).count() as u64;
        situations.rekeyed +=
            host.events.iter().filter(|event| **event == NodeEvent::Established { numbers_reset: false }).count()
                as u64;
    }
    situations.corrupted += simulation.corrupted;
    situations.replayed += simulation.replayed;
}

/// Removes all impairments; both hosts have to reach each other in time.
fn recover(seed: u64, simulation: &mut Simulation) {
    for links in &mut simulation.network.links {
        *links = [LinkConfig::clean(50, 10); 2];
    }
    for host in &mut simulation.hosts {
        host.events.retain(|event| !matches!(event, NodeEvent::Tunnel(_)));
    }
    let recovery_start = simulation.now;
    let first_ids = [1 << 40, 1 << 41];
    let mut count = 0;
    while !(0..2).all(|host| {
        simulation.hosts[1 - host].all_delivered.range(first_ids[host]..first_ids[host] + (1 << 40)).next().is_some()
    }) {
        assert!(
            simulation.now.since(recovery_start) < RECOVERY_TIME,
            "seed {seed}: no impairment since {recovery_start:?}, and no packet is delivered"
        );
        for (host, first_id) in first_ids.iter().enumerate() {
            offer(simulation, host, 9, first_id + count, 100);
        }
        count += 1;
        simulation.run_for(Span::from_millis(100));
    }
    simulation.assert_drained_within(Span::from_secs(60));
}

#[test]
fn the_guarantees_hold_on_any_network_and_over_restarts() {
    let mut situations = Situations::default();
    let seeds = testing::campaign(200);
    seeds.range().for_each(|seed| run(seed, &mut situations));
    let Situations { restarts, migrated, corrupted, refused, replayed, retransmitted, failures, rekeyed, .. } =
        situations;
    let Situations { clock_jumps, hostile_datagrams, hostile_packets, .. } = situations;
    let counts = [restarts, migrated, corrupted, refused, replayed, retransmitted, failures, rekeyed];
    let mut all = counts.into_iter().chain([clock_jumps, hostile_datagrams, hostile_packets]);
    let reached = all.all(|count| count > 0);
    assert!(reached || !seeds.reach_every_situation(), "the campaign has to reach all of these: {situations:?}");
}

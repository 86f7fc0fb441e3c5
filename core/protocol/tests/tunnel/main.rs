//! The tunnel's endpoint, two of them, over paths of every kind.

#![expect(clippy::print_stdout, reason = "figures for whoever runs with --nocapture")]

mod any_world;
mod world;

use ropewalk_protocol::tunnel::{Event, PathSetup};
use units::{PathId, Rate, Span};
use world::{offer, world};
use worlds::{Kind, PATH, Wire, ms};

#[test]
fn parcels_come_up_whole_and_in_order_over_two_unlike_paths() {
    let wires = vec![[Wire::plain(100, 8); 2], [Wire::plain(30, 40); 2]];
    let mut world = world(1, wires, Kind::new("bbr", "minrtt"));
    world.run(ms(500));
    for id in 0..200 {
        offer(&mut world, 0, 3, id, 60_000);
        world.run(ms(500 + 5 * (id + 1)));
    }
    world.run(ms(4000));
    println!("{:?}", world.ends[0].endpoint.status());
    println!("{:?}", world.ends[1].endpoint.status().counters);
    println!("last at {:?}", world.ends[1].up.last());
    assert!(world.ends[1].ids(3).iter().copied().eq(0..200), "whole and in order");
}

#[test]
fn a_path_that_dies_is_left_within_half_a_second_and_used_again_soon() {
    let dead = Wire { down: Some((ms(1000), ms(3000))), ..Wire::plain(50, 10) };
    let wires = vec![[dead; 2], [Wire::plain(50, 20); 2]];
    let mut world = world(2, wires, Kind::new("bbr", "minrtt"));
    world.run(ms(300));
    for id in 0..1000 {
        offer(&mut world, 0, 7, id, 10_000);
        world.run(ms(300 + 4 * (id + 1)));
    }
    world.run(ms(6000));
    let up = &world.ends[1].up;
    let longest = up.windows(2).map(|pair| pair[1].2.since(pair[0].2)).max().expect("many");
    let events: Vec<_> =
        world.ends[0].events.iter().filter(|(_, event)| !matches!(event, Event::LargestFound(..))).collect();
    println!("{longest:?} {events:?} {:?}", world.ends[0].endpoint.status());
    assert!(world.ends[1].ids(7).iter().copied().eq(0..1000), "whole and in order");
    assert!(longest < Span::from_millis(400), "{longest}");
    let back = events.iter().find(|(at, event)| *at > ms(3000) && *event == Event::PathUp(PathId(0)));
    assert!(back.expect("it comes back").0 < ms(3500), "{back:?}");
}

#[test]
fn a_path_sends_no_more_than_it_is_allowed_to() {
    let mut world = world(3, vec![[Wire::plain(100, 10); 2]], Kind::new("off", "minrtt"));
    let allowed = PathSetup { most: Some(Rate::from_mbit(20)), ..PATH };
    world.ends[0].endpoint.set_path(PathId(0), allowed);
    world.run(ms(500));
    (0..1000).for_each(|id| offer(&mut world, 0, 1, id, 10_000));
    world.run(ms(1500));
    // A second of 20 Mbit/s: 2.5 MB, of which headers take 62 in 1500.
    let bytes = world.ends[0].endpoint.status().paths[0].sent_bytes as f64;
    assert!((bytes / 2.5e6 * 1500.0 / 1438.0 - 1.0).abs() < 0.01, "{bytes}");
}

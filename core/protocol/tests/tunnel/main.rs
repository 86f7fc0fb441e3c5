//! The tunnel's endpoint, two of them, over paths of every kind.

#![expect(clippy::print_stdout, reason = "figures for whoever runs with --nocapture")]

mod any_world;
mod world;

use ropewalk_protocol::tunnel::Event;
use units::{Instant, PathId, Span};
use world::{Wire, World, setup};

fn ms(n: u64) -> Instant {
    Instant::ZERO + Span::from_millis(n)
}

#[test]
fn parcels_come_up_whole_and_in_order_over_two_unlike_paths() {
    let wires = vec![[Wire::plain(100, 8); 2], [Wire::plain(30, 40); 2]];
    let mut world = World::new(1, wires, |seed| setup("bbr", "minrtt", true, true, seed));
    world.run(ms(500));
    for id in 0..200 {
        world.offer(0, 3, id, 60_000);
        world.run(ms(500 + 5 * (id + 1)));
    }
    world.run(ms(4000));
    println!("{:?}", world.ends[0].endpoint.status());
    println!("{:?}", world.ends[1].endpoint.status().counters);
    println!("last at {:?}, {} dropped, {} lost", world.ends[1].up.last(), world.dropped_by_queue, world.lost);
    assert!(world.ends[1].ids(3).iter().copied().eq(0..200), "whole and in order");
}

#[test]
fn a_path_that_dies_is_left_within_half_a_second_and_used_again_soon() {
    let dead = Wire { down: Some((ms(1000), ms(3000))), ..Wire::plain(50, 10) };
    let wires = vec![[dead; 2], [Wire::plain(50, 20); 2]];
    let mut world = World::new(2, wires, |seed| setup("bbr", "minrtt", true, true, seed));
    world.run(ms(300));
    for id in 0..1000 {
        world.offer(0, 7, id, 10_000);
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

//! The steady state does not allocate: a run of twice the length asks the allocator for no more.

mod common;

use common::{links, multipath, one_link, pipe};
use scenario::model::Experiment;
use units::{Rate, Span};

#[global_allocator]
static COUNTING: testing::CountingAllocator = testing::CountingAllocator;

fn allocations(experiment: &Experiment) -> u64 {
    let prior_count = testing::allocations();
    ropewalk_sim::run(experiment, 1).expect("registered");
    testing::allocations() - prior_count
}

#[test]
fn twice_the_length_allocates_no_more() {
    for entry in control::registry::REGISTRY {
        let link = pipe(Rate::from_mbit(20), Span::from_millis(10), 33);
        let run = |seconds| allocations(&one_link(entry.name, link.clone(), seconds));
        let (short, long) = (run(20), run(40));
        // Sixteen: buffers that double once more when a rare burst is deeper than all before it.
        assert!(long <= short + 16, "{}: {short} allocations in 20 s, {long} in 40 s", entry.name);
    }
}

#[test]
fn twice_the_length_over_several_paths_allocates_no_more_with_any_scheduler() {
    for entry in schedule::REGISTRY {
        let pipes = [10, 30].map(|ms| pipe(Rate::from_mbit(10), Span::from_millis(ms), 33));
        let run = |seconds| {
            let mut experiment = links("lia", &pipes, seconds);
            multipath(&mut experiment.flows[0]).scheduler.name = entry.name.to_owned();
            allocations(&experiment)
        };
        let (short, long) = (run(20), run(40));
        assert!(long <= short + 16, "{}: {short} allocations in 20 s, {long} in 40 s", entry.name);
    }
}

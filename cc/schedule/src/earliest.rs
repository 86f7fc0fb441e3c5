//! Earliest arrival: each packet goes to the path that would deliver it first.
//!
//! ```text
//! arrival = (bytes that wait at the path + this packet) / rate + srtt / 2
//! ```
//!
//! Packets wait at the paths. The queue of the fast path grows until a packet would arrive as soon over a slower one,
//! so that packets arrive nearly in order. If the send buffer of the best path is full, data wait for it. Otherwise an
//! endless source would fill the buffers of the slow paths too.
//!
//! Source: minimum completion time, the oldest rule of list scheduling. The terms are our own choice: half the smoothed
//! RTT stands for the one-way delay, and the pacing rate for the path's rate. A path without a rate comes last.

use crate::{Constructor, Fill, Needs, PathView, Pick, Scheduler, SchedulerEntry, SchedulerView};
use units::Span;

pub(crate) const ENTRY: SchedulerEntry = SchedulerEntry {
    name: "earliest",
    aliases: &["earliest-arrival"],
    title: "the path where the packet arrives first: queue over rate, plus one-way delay",
    source: "own rule (minimal completion time)",
    code_version: None,
    needs: Needs::Measurements,
    fill: Fill::SendBuffer,
    parameters: &[],
    constructor: Constructor::Function(|_| Box::new(Earliest)),
};

/// The scheduler, which has no state.
#[derive(Clone, Copy, Debug)]
pub struct Earliest;

fn arrival(path: &PathView, bytes: u32) -> Span {
    path.pacing_rate.time_for((u64::from(path.queued) + 1) * u64::from(bytes)) + path.srtt / 2
}

impl Scheduler for Earliest {
    fn pick(&mut self, view: &SchedulerView<'_>) -> Option<Pick> {
        let usable = view.usable_paths().filter(|_| view.sendable_packets() > 0);
        let (path, path_view) = usable.min_by_key(|(_, path)| arrival(path, view.packet_bytes))?;
        path_view.has_room.then(|| Pick::next(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tests::{path, pick};
    use units::Rate;

    #[test]
    fn the_fast_paths_queue_grows_to_the_difference_of_the_delays() {
        // 1448 bytes at 11.584 Mbit/s: 1 ms. One-way delays 10 and 50 ms: the queue is worth 40 packets.
        let rate = Rate(11_584_000);
        let mut paths = [path(100, 10, 0), path(20, 10, 0)].map(|path| PathView { pacing_rate: rate, ..path });
        let order = (0..50).map(|_| {
            let chosen = pick(&mut Earliest, &paths).expect("has room").path.index();
            paths[chosen].queued += 1;
            chosen
        });
        let order: Vec<_> = order.collect();
        assert_eq!(order.iter().position(|chosen| *chosen == 0), Some(40), "a tie goes to the lower index");
        assert_eq!(order[41..], [1, 0, 1, 0, 1, 0, 1, 0, 1], "then both at equal rates");
    }

    #[test]
    fn data_wait_for_a_full_path_that_delivers_first_until_it_dies() {
        let full_path = PathView { has_room: false, queued: 20, ..path(20, 10, 0) };
        let slow_path = path(200, 10, 0);
        // 10 ms and what 21 packets take at ten in 20 ms, against 100 ms and more.
        assert_eq!(pick(&mut Earliest, &[full_path, slow_path]), None);
        assert_eq!(
            pick(&mut Earliest, &[PathView { active: false, ..full_path }, slow_path]),
            Some(Pick::next(units::PathId(1)))
        );
    }
}

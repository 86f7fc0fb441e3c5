//! A tunnel without measurements.

use super::instance;
use crate::Violation;
use schedule::{PathView, SchedulerEntry, SchedulerView};
use std::collections::BTreeSet;
use units::Instant;

/// Checks that thirty packets use all of three paths with room, with weights and without.
pub(super) fn check(entry: &SchedulerEntry) -> Result<(), Violation> {
    let violation = |message| {
        Err(Violation { rule: "it uses every path of a tunnel without measurements", message, steps: Vec::new() })
    };
    for weights in [[1, 1, 1].as_slice(), &[]] {
        let mut scheduler = instance(entry, weights)?;
        let paths = [PathView::without_measurements(); 3];
        let view = SchedulerView {
            now: Instant::ZERO,
            packet_bytes: 1500,
            fragment_bytes: 1500,
            paths: &paths,
            snd_nxt: 0,
            snd_una: 0,
            unsent_packets: 1,
            rwnd_left_packets: u64::MAX,
            rwnd_stalls: 0,
        };
        let picks: Vec<_> = (0..30).map(|_| scheduler.pick(&view).map(|pick| pick.path)).collect();
        if picks.contains(&None) {
            return violation(format!("{} waits with weights {weights:?}, although every path has room", entry.name));
        }
        let used: BTreeSet<_> = picks.into_iter().flatten().collect();
        if used.len() != paths.len() {
            return violation(format!("{} uses {used:?} of three paths with weights {weights:?}", entry.name));
        }
    }
    Ok(())
}

//! Assignment of packets to paths.

use schedule::{PathView, Scheduler, SchedulerView};
use units::{Instant, PathId};

/// Assigns to each packet a path and a sequence number from the one space of all paths (draft-lencse-tsvwg-mpt, section
/// 3).
#[derive(Debug)]
pub struct PathAssigner {
    scheduler: Box<dyn Scheduler>,
    paths: Vec<PathView>,
    next_sequence: u64,
}

impl PathAssigner {
    /// An assigner for `paths` paths, all of which are usable.
    #[must_use]
    pub fn new(scheduler: Box<dyn Scheduler>, paths: usize) -> Self {
        Self { scheduler, paths: vec![PathView::without_measurements(); paths], next_sequence: 0 }
    }

    /// Sets whether a path can be used.
    pub fn set_usable(&mut self, path: PathId, is_usable: bool) {
        let path = &mut self.paths[path.index()];
        (path.has_room, path.active) = (is_usable, is_usable);
    }

    /// The sequence number and the path of the next packet, of `bytes`. `None` if no path is usable; then no sequence
    /// number is used up.
    pub fn assign(&mut self, now: Instant, bytes: u32) -> Option<(u64, PathId)> {
        let sequence = self.next_sequence;
        let view = SchedulerView {
            now,
            packet_bytes: bytes,
            fragment_bytes: bytes,
            paths: &self.paths,
            snd_nxt: sequence,
            snd_una: sequence,
            unsent_packets: 1,
            rwnd_left_packets: u64::MAX,
            rwnd_stalls: 0,
        };
        let choice = self.scheduler.pick(&view)?;
        self.next_sequence += 1;
        Some((sequence, choice.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn numbers_are_common_to_all_paths_and_none_is_used_while_no_path_is_usable() {
        let entry = schedule::find("packet-round-robin").expect("registered");
        let scheduler = entry.scheduler(&[2, 1], 0, &BTreeMap::new()).expect("no parameters");
        let mut path_assigner = PathAssigner::new(scheduler, 2);
        let mut assign = |is_usable: bool| {
            [PathId(0), PathId(1)].into_iter().for_each(|path| path_assigner.set_usable(path, is_usable));
            path_assigner.assign(Instant::ZERO, 1500).map(|(sequence, path)| (sequence, path.0))
        };
        assert_eq!(
            [assign(true), assign(false), assign(true), assign(true)],
            [Some((0, 0)), None, Some((1, 0)), Some((2, 1))]
        );
    }
}

//! The sending end: numbers packets and says which path each one takes.

use schedule::{PathView, Scheduler, SchedulerView};
use units::{Instant, PathId};

/// One counter over all paths (draft-lencse-tsvwg-mpt section 3), and the scheduler that spreads the packets.
#[derive(Debug)]
pub struct Striper {
    scheduler: Box<dyn Scheduler>,
    paths: Vec<PathView>,
    next: u64,
}

impl Striper {
    /// Nothing sent yet over so many paths.
    #[must_use]
    pub fn new(scheduler: Box<dyn Scheduler>, paths: usize) -> Self {
        Self { scheduler, paths: vec![PathView::unmeasured(); paths], next: 0 }
    }

    /// A path can be used from now on, or no more.
    pub fn set_usable(&mut self, path: PathId, usable: bool) {
        let path = &mut self.paths[path.index()];
        (path.open, path.active) = (usable, usable);
    }

    /// The number and the path of the next packet of `bytes`; `None`, and no number is used up, if no path is usable.
    pub fn assign(&mut self, now: Instant, bytes: u32) -> Option<(u64, PathId)> {
        let seq = self.next;
        let view = SchedulerView {
            now,
            bytes,
            paths: &self.paths,
            snd_nxt: seq,
            snd_una: seq,
            unsent: 1,
            rwnd_left: u64::MAX,
            window_stalls: 0,
        };
        let pick = self.scheduler.pick(&view)?;
        self.next += 1;
        Some((seq, pick.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn numbers_run_over_all_paths_and_none_is_lost_while_nothing_is_usable() {
        let entry = schedule::find("packet-round-robin").expect("registered");
        let scheduler = entry.scheduler(&[2, 1], 0, &BTreeMap::new()).expect("no parameters");
        let mut striper = Striper::new(scheduler, 2);
        let mut assign = |usable: bool| {
            [PathId(0), PathId(1)].into_iter().for_each(|path| striper.set_usable(path, usable));
            striper.assign(Instant::ZERO, 1500).map(|(seq, path)| (seq, path.0))
        };
        assert_eq!(
            [assign(true), assign(false), assign(true), assign(true)],
            [Some((0, 0)), None, Some((1, 0)), Some((2, 1))]
        );
    }
}

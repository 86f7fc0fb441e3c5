//! The sending end: numbers packets and says which path each one takes.

use schedule::Scheduler;
use units::PathId;

/// One counter over all paths (draft-lencse-tsvwg-mpt section 3), and the scheduler that spreads the packets.
#[derive(Debug)]
pub struct Striper {
    scheduler: Box<dyn Scheduler>,
    next: u64,
}

impl Striper {
    /// Nothing sent yet.
    #[must_use]
    pub fn new(scheduler: Box<dyn Scheduler>) -> Self {
        Self { scheduler, next: 0 }
    }

    /// The number and the path of the next packet of `bytes`; `None`, and no number is used up, if no path is usable.
    pub fn assign(&mut self, bytes: u32, usable: &dyn Fn(PathId) -> bool) -> Option<(u64, PathId)> {
        let path = self.scheduler.pick(bytes, usable)?;
        let seq = self.next;
        self.next += 1;
        Some((seq, path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_run_over_all_paths_and_none_is_lost_while_nothing_is_usable() {
        let entry = schedule::find("packet-round-robin").expect("registered");
        let mut striper = Striper::new((entry.make)(&[2, 1], 0));
        let mut assign = |usable: bool| striper.assign(1500, &|_| usable).map(|(seq, path)| (seq, path.0));
        assert_eq!(
            [assign(true), assign(false), assign(true), assign(true)],
            [Some((0, 0)), None, Some((1, 0)), Some((2, 1))]
        );
    }
}

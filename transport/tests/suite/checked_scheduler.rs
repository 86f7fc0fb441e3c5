//! A scheduler whose picks are checked against the rules of [`Scheduler::pick`].

use schedule::{Fill, PacketChoice, Pick, Scheduler, SchedulerEntry, SchedulerView};
use std::collections::BTreeMap;

/// Two instances of a scheduler, which must pick the same.
#[derive(Debug)]
pub(crate) struct CheckedScheduler {
    entry: &'static SchedulerEntry,
    instances: [Box<dyn Scheduler>; 2],
    /// The latest answer was to wait: the sender has since changed the view.
    waited: bool,
}

impl CheckedScheduler {
    pub(crate) fn new(entry: &'static SchedulerEntry) -> Self {
        let instance = || entry.scheduler(&[], 0, &BTreeMap::new()).expect("no parameters");
        Self { entry, instances: [instance(), instance()], waited: true }
    }
}

impl Scheduler for CheckedScheduler {
    fn pick(&mut self, view: &SchedulerView<'_>) -> Option<Pick> {
        let name = self.entry.name;
        let [pick, same] = self.instances.each_mut().map(|scheduler| scheduler.pick(view));
        assert_eq!(pick, same, "{name} picks by more than what it sees");
        let first = std::mem::replace(&mut self.waited, pick.is_none());
        let Some(chosen) = pick else {
            let idle = view.usable_paths().all(|(_, path)| path.buffered_packets() == 0);
            let may_send = view.paths_with_room().next().is_some() && view.sendable_packets() > 0;
            assert!(!(first && idle && may_send), "{name} waits, and nothing is in flight that could end it: {view:?}");
            return None;
        };
        let (_, path) = view.paths_with_room().find(|(id, _)| *id == chosen.path).expect("a path with room");
        let is_new_data = chosen.packet != PacketChoice::OldestUnacked;
        assert!(view.sendable_packets() > 0 || !is_new_data, "{name} picks new data where there are none");
        assert!(self.entry.fill == Fill::SendBuffer || path.cwnd_space() > 0, "{name} overfills a window");
        pick
    }
}

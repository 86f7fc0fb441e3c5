//! A scheduler whose picks are checked against the rules of [`Scheduler::pick`].

use schedule::{Fill, PacketChoice, Pick, Scheduler, SchedulerEntry, SchedulerView};
use std::collections::BTreeMap;

/// Two instances of a scheduler, which must pick the same.
#[derive(Debug)]
pub(crate) struct CheckedScheduler {
    entry: &'static SchedulerEntry,
    instances: [Box<dyn Scheduler>; 2],
    /// Whether the latest pick was to wait: the sender has changed the view since.
    has_waited: bool,
}

impl CheckedScheduler {
    pub(crate) fn new(entry: &'static SchedulerEntry) -> Self {
        let instance = || entry.scheduler(&[], 0, &BTreeMap::new()).expect("no parameters");
        Self { entry, instances: [instance(), instance()], has_waited: true }
    }
}

impl Scheduler for CheckedScheduler {
    fn pick(&mut self, view: &SchedulerView<'_>) -> Option<Pick> {
        let name = self.entry.name;
        let [pick, other_pick] = self.instances.each_mut().map(|scheduler| scheduler.pick(view));
        assert_eq!(pick, other_pick, "{name} picks by more than its view");
        let had_waited = std::mem::replace(&mut self.has_waited, pick.is_none());
        let Some(choice) = pick else {
            let is_idle = view.usable_paths().all(|(_, path)| path.buffered_packets() == 0);
            let may_send = view.paths_with_room().next().is_some() && view.sendable_packets() > 0;
            assert!(
                !(had_waited && is_idle && may_send),
                "{name} waits, and nothing is in flight that could end it: {view:?}"
            );
            return None;
        };
        let (_, path) = view.paths_with_room().find(|(id, _)| *id == choice.path).expect("a path with room");
        let is_new_data = choice.packet != PacketChoice::OldestUnacked;
        assert!(view.sendable_packets() > 0 || !is_new_data, "{name} picks new data where there are none");
        assert!(self.entry.fill == Fill::SendBuffer || path.cwnd_space() > 0, "{name} overfills a window");
        pick
    }
}

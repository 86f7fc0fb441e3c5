//! A scheduler whose picks are checked against the rules of [`Scheduler::pick`].

use crate::Violation;
use schedule::{Fill, PacketChoice, Pick, Scheduler, SchedulerEntry, SchedulerView};

/// Two instances of a scheduler, which must pick the same.
#[derive(Debug)]
pub struct CheckedScheduler {
    name: &'static str,
    fill: Fill,
    instances: [Box<dyn Scheduler>; 2],
    /// Whether the latest pick was to wait. The sender has changed the view since then.
    has_waited: bool,
    /// Called with a violation; it ends the run.
    on_violation: fn(Violation) -> !,
}

impl CheckedScheduler {
    /// Two instances with default parameters.
    ///
    /// # Errors
    /// A default value is not allowed.
    pub fn new(entry: &SchedulerEntry, on_violation: fn(Violation) -> !) -> Result<Self, Violation> {
        let instances = [super::instance(entry, &[])?, super::instance(entry, &[])?];
        Ok(Self { name: entry.name, fill: entry.fill, instances, has_waited: true, on_violation })
    }

    fn expect(&self, holds: bool, rule: &'static str, pick: Option<Pick>, view: &SchedulerView<'_>) {
        if !holds {
            let picked = pick.map_or("waits".to_owned(), |pick| format!("picks {pick:?}"));
            let paths: Vec<_> = (0..).zip(view.paths).map(|(id, path)| format!("path {id}: {path:?}")).collect();
            let (unsent, allowed) = (view.unsent_packets, view.rwnd_left_packets);
            let data = format!("{unsent} unsent packets, {allowed} allowed by the receive window");
            let message = format!("{} {picked} at {:?} with {data}; {}", self.name, view.now, paths.join("; "));
            (self.on_violation)(Violation { rule, message, steps: Vec::new() });
        }
    }
}

impl Scheduler for CheckedScheduler {
    fn pick(&mut self, view: &SchedulerView<'_>) -> Option<Pick> {
        let [pick, other] = self.instances.each_mut().map(|scheduler| scheduler.pick(view));
        self.expect(pick == other, "the same views give the same picks", other, view);
        let had_waited = std::mem::replace(&mut self.has_waited, pick.is_none());
        let Some(choice) = pick else {
            let is_idle = view.usable_paths().all(|(_, path)| path.buffered_packets() == 0);
            let may_send = view.paths_with_room().next().is_some() && view.sendable_packets() > 0;
            let waits_for_nothing = had_waited && is_idle && may_send;
            self.expect(!waits_for_nothing, "it does not wait while nothing is in flight", pick, view);
            return None;
        };
        let path = view.paths_with_room().find(|(id, _)| *id == choice.path).map(|(_, path)| path);
        self.expect(path.is_some(), "it picks a usable path with room", pick, view);
        let is_new_data = choice.packet != PacketChoice::OldestUnacked;
        let has_data = view.sendable_packets() > 0 || !is_new_data;
        self.expect(has_data, "it picks new data only if there is any to send", pick, view);
        let fits = self.fill == Fill::SendBuffer || path.is_none_or(|path| path.cwnd_space() > 0);
        self.expect(fits, "it does not overfill a window", pick, view);
        pick
    }
}

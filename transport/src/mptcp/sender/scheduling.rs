//! Assignment of data by the scheduler to subflows with room.

use super::Sender;
use crate::path::{Limit, SendLimit};
use schedule::{PacketChoice, Pick, SchedulerView};
use units::Instant;

impl Sender {
    /// Assigns as much as possible now: reinjections first, then the scheduler's picks.
    pub(super) fn fill(&mut self, now: Instant) {
        self.refresh_views();
        self.reinject(now);
        self.fill_send_buffer(now);
        let limit = self.data_limit();
        while self.views.iter().any(|view| view.has_room)
            && let Some(pick) = self.pick(now, limit)
        {
            match self.picked_data(&pick, limit) {
                Some(data) => {
                    let fragment_end = self.fragment_end().min(limit);
                    let copy = self.assign(now, pick.path.index(), data);
                    self.counters.copies += u64::from(copy);
                    let mut end = data + 1;
                    if pick.packet == PacketChoice::Next {
                        end = self.assign_fragment(now, pick.path.index(), fragment_end).unwrap_or(end);
                    }
                    self.choices.set_data(data..end);
                }
                // The subflow has no such data: it counts as full until the next input.
                None => {
                    self.views[pick.path.index()].has_room = false;
                    self.closed_subflows |= 1 << pick.path.index();
                }
            }
        }
        self.account_send_limit(now, limit);
        if self.retransmit_timer == Instant::NEVER {
            self.restart_timer(now);
        }
    }

    #[inline]
    pub(super) fn refresh_views(&mut self) {
        let changed = std::mem::take(&mut self.changed_subflows) | std::mem::take(&mut self.closed_subflows);
        let mut outdated = changed | std::mem::take(&mut self.polled_subflows);
        while outdated != 0 {
            let index = outdated.trailing_zeros() as usize;
            outdated &= outdated - 1;
            let (subflow, view) = (&self.subflows[index], &mut self.views[index]);
            match changed & (1 << index) {
                0 => subflow.update_view_after_sending(view, self.fill),
                _ => subflow.update_view(view, self.fill),
            }
        }
    }

    /// The end of the data that the receive window and the send buffer allow.
    fn data_limit(&self) -> u64 {
        self.snd_wnd_end.min(self.send_buffer.end())
    }

    fn pick(&mut self, now: Instant, limit: u64) -> Option<Pick> {
        let view = SchedulerView {
            now,
            packet_bytes: self.config.tcp.mss,
            fragment_bytes: self.fragment_bytes(),
            paths: &self.views,
            snd_nxt: self.queue.snd_nxt(),
            snd_una: self.queue.snd_una(),
            unsent_packets: self.queue.unsent(),
            rwnd_left_packets: limit.saturating_sub(self.queue.snd_nxt()),
            rwnd_stalls: self.counters.opportunistic_retransmissions,
        };
        self.choices.ask(&mut *self.scheduler, &view)
    }

    /// The picked data, if there is such data.
    fn picked_data(&mut self, pick: &Pick, limit: u64) -> Option<u64> {
        match pick.packet {
            PacketChoice::Next => self.queue.unsent_after(0, limit),
            PacketChoice::SkipAhead(skip) => self.queue.unsent_after(skip, limit),
            PacketChoice::OldestUnacked => {
                let subflow = &mut self.subflows[pick.path.index()];
                let data = self
                    .queue
                    .oldest_not_assigned_to(pick.path.index(), subflow.cursor, |_| true)
                    .filter(|data| *data < limit)?;
                subflow.cursor = data;
                Some(data)
            }
        }
    }

    /// Assigns a segment of data to a subflow. Returns whether it was assigned to another one before.
    pub(super) fn assign(&mut self, now: Instant, index: usize, data: u64) -> bool {
        let copy = self.queue.assign(now, data, index) != 0;
        self.queue.sent_data(data).state.remove(index);
        let subflow = &mut self.subflows[index];
        subflow.assign(data, copy);
        self.subflows_to_poll |= 1 << index;
        let view = &mut self.views[index];
        view.queued += 1;
        view.buffered_memory = Some(subflow.sender.queued_bytes());
        view.has_room = subflow.has_room(view, self.fill);
        copy
    }

    /// Assigns the rest of a fragment to the subflow that has its beginning, as long as the send buffer has room for
    /// another buffer. Returns the number after the last segment, if there is one.
    fn assign_fragment(&mut self, now: Instant, index: usize, end: u64) -> Option<u64> {
        let mut assigned_end = None;
        while self.queue.snd_nxt() < end && (self.views[index].has_room || !self.subflows[index].sender.begins_buffer())
        {
            let data = self.queue.snd_nxt();
            self.assign(now, index, data);
            assigned_end = Some(data + 1);
        }
        assigned_end
    }

    /// Called when nothing more can be assigned below `limit`. Records the reason, and retransmits opportunistically if
    /// a slow subflow blocks the rest.
    fn account_send_limit(&mut self, now: Instant, limit: u64) {
        let send_limit = if !self.views.iter().any(|view| view.active) {
            None
        } else if self.queue.unsent() == 0 {
            self.mark_app_limited();
            None
        } else if self.queue.snd_nxt() >= self.snd_wnd_end {
            Some(SendLimit::ReceiveWindow)
        } else if self.queue.snd_nxt() >= limit {
            Some(SendLimit::SendBuffer)
        } else {
            None
        };
        if send_limit.is_some() {
            self.retransmit_opportunistically(now);
        }
        self.set_persist_timer(now, send_limit);
        self.limits.buffers.set(now, send_limit.map_or(Limit::Window, Limit::from));
    }

    /// The application has no data: delivery-rate samples of subflows whose windows are not full are
    /// application-limited.
    fn mark_app_limited(&mut self) {
        self.subflows.iter_mut().filter(|subflow| subflow.is_active()).for_each(|subflow| {
            if subflow.sender.unsent() == 0 {
                subflow.sender.mark_app_limited();
            }
        });
    }
}

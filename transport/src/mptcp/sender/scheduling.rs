//! The scheduler's work: data is given to subflows as they have room.

use super::{MptcpStack, Sender, SubflowState};
use crate::tcp::receiver::receive_window::TRUE_SIZE;
use schedule::{Packet, Pick, SchedulerView};
use units::Instant;

/// What holds the connection back, other than its subflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    ReceiveWindow,
    SendBuffer,
}

impl Sender {
    /// Gives out all that can be given out now: first what must go again, then what the scheduler picks.
    pub(super) fn fill(&mut self, now: Instant) {
        self.refresh_views();
        self.give_again(now);
        let limit = self.limit();
        while let Some(pick) = self.pick(now, limit) {
            match self.picked(&pick, limit) {
                Some(data) => {
                    let copy = self.give(now, pick.path.index(), data);
                    self.counters.copies += u64::from(copy);
                }
                // It has nothing of the kind: another path's turn, until the next input.
                None => self.views[pick.path.index()].open = false,
            }
        }
        self.note_hold(now);
        if self.retransmission == Instant::NEVER {
            self.restart_timer(now);
        }
    }

    pub(super) fn refresh_views(&mut self) {
        for (index, subflow) in self.subflows.iter_mut().enumerate() {
            if self.touched & (1 << index) != 0 {
                self.views[index] = subflow.view(self.fill);
            } else {
                self.views[index].open = subflow.takes_more(&self.views[index], self.fill);
            }
        }
        self.touched = 0;
    }

    /// The end of what the receive window and the send buffer let out.
    fn limit(&self) -> u64 {
        self.window_end.min(self.queue.una() + self.buffer())
    }

    /// Segments that the connection's send buffer holds. Upstream Linux lets it grow to what the subflows' own buffers are
    /// together (`__mptcp_sync_sndbuf`), so that a slow subflow's share of it holds up the others.
    fn buffer(&self) -> u64 {
        let most = self.config.tcp.send_buffer;
        if self.config.stack == MptcpStack::OutOfTree {
            return most;
        }
        let up = self.subflows.iter().filter(|subflow| subflow.state == SubflowState::Up);
        let together: u64 = up.map(|subflow| u64::from(subflow.buffer())).sum();
        // A subflow's buffer counts packets with what the kernel adds to each, the connection's payload alone.
        (together * TRUE_SIZE / u64::from(self.config.tcp.mss)).clamp(1, most)
    }

    fn pick(&mut self, now: Instant, limit: u64) -> Option<Pick> {
        let view = SchedulerView {
            now,
            bytes: self.config.tcp.mss,
            paths: &self.views,
            snd_nxt: self.queue.next(),
            snd_una: self.queue.una(),
            unsent: self.queue.unsent(),
            rwnd_left: limit.saturating_sub(self.queue.next()),
            window_stalls: self.counters.blocked,
        };
        self.scheduler.pick(&view)
    }

    /// The data that was picked, if there is any of the kind.
    fn picked(&mut self, pick: &Pick, limit: u64) -> Option<u64> {
        match pick.packet {
            Packet::Next => self.queue.unsent_after(0, limit),
            Packet::Ahead(skip) => self.queue.unsent_after(skip, limit),
            Packet::OldestUnacked => {
                let subflow = &mut self.subflows[pick.path.index()];
                let data = self.queue.oldest_without(pick.path.index(), subflow.cursor).filter(|data| *data < limit)?;
                subflow.cursor = data;
                Some(data)
            }
        }
    }

    /// Gives a subflow a segment of data. True if another one was given it before.
    pub(super) fn give(&mut self, now: Instant, index: usize, data: u64) -> bool {
        let copy = self.queue.give(now, data, index);
        let subflow = &mut self.subflows[index];
        subflow.assign(data, copy);
        self.restless |= 1 << index;
        self.touched |= 1 << index;
        let view = &mut self.views[index];
        view.queued += 1;
        view.open = subflow.takes_more(view, self.fill);
        copy
    }

    /// Nothing more can be given out now: says why, and does something about it where a slow subflow holds up the rest.
    fn note_hold(&mut self, now: Instant) {
        let hold = if !self.views.iter().any(|view| view.active) {
            None
        } else if self.queue.unsent() == 0 {
            self.starve();
            None
        } else if self.queue.next() >= self.window_end {
            Some(Hold::ReceiveWindow)
        } else if self.queue.next() >= self.limit() {
            Some(Hold::SendBuffer)
        } else {
            None
        };
        if hold.is_some() {
            self.unblock(now);
        }
        self.watch_window(now, hold);
        if let Some((held, since)) = self.held {
            let span = now.since(since);
            match held {
                Hold::ReceiveWindow => self.counters.receive_window_limited += span,
                Hold::SendBuffer => self.counters.send_buffer_limited += span,
            }
        }
        self.held = hold.map(|hold| (hold, now));
    }

    /// The application has nothing: the delivery rates of subflows whose windows are not full say little.
    fn starve(&mut self) {
        self.subflows.iter_mut().filter(|subflow| subflow.is_active()).for_each(|subflow| {
            if subflow.sender.unsent() == 0 {
                subflow.sender.starve();
            }
        });
    }
}

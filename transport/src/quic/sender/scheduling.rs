//! Assignment of chunks to paths: lost data first, then the scheduler's picks.

use super::path::Waiting;
use super::send_queue::Assignment;
use super::{Content, Packet, PathState, Sender};
use crate::path::Limit;
use schedule::{PacketChoice, Pick, SchedulerView};
use units::Instant;

impl Sender {
    /// Assigns as much as possible now.
    pub(super) fn fill(&mut self, now: Instant) {
        self.views.clear();
        self.views.extend(self.paths.iter().map(super::Path::view));
        while let Some(pick) = self.pick(now) {
            match self.picked_chunk(&pick) {
                Some(chunk) => {
                    self.choices.set_data(chunk..chunk + 1);
                    self.assign(now, pick.path.index(), chunk);
                }
                // The path has no such chunk: it counts as full until the next input.
                None => self.views[pick.path.index()].has_room = false,
            }
        }
        self.account_limit(now);
    }

    fn pick(&mut self, now: Instant) -> Option<Pick> {
        let (lost, next) = (self.queue.lost(), self.queue.data.snd_nxt());
        let view = SchedulerView {
            now,
            packet_bytes: self.config.chunk_bytes,
            fragment_bytes: self.config.chunk_bytes,
            paths: &self.views,
            snd_nxt: next,
            snd_una: self.queue.data.snd_una(),
            unsent_packets: self.queue.data.unsent().saturating_add(lost),
            // Lost data is already within the window.
            rwnd_left_packets: self.max_data.saturating_sub(next) + lost,
            rwnd_stalls: 0,
        };
        self.choices.ask(&mut *self.scheduler, &view)
    }

    /// The picked chunk, if there is one. Lost chunks, oldest first, take precedence over new data.
    fn picked_chunk(&mut self, pick: &Pick) -> Option<u64> {
        let limit = self.max_data;
        match pick.packet {
            PacketChoice::Next => self.queue.oldest_lost().or_else(|| self.queue.data.unsent_after(0, limit)),
            PacketChoice::SkipAhead(skip) => {
                self.queue.oldest_lost().or_else(|| self.queue.data.unsent_after(skip, limit))
            }
            PacketChoice::OldestUnacked => {
                let path = &mut self.paths[pick.path.index()];
                let lost = self.queue.oldest_lost();
                let chunk = self.queue.oldest_not_assigned_to(pick.path.index(), path.cursor);
                match (lost, chunk.filter(|chunk| *chunk < limit)) {
                    (Some(lost), other) if other.is_none_or(|other| lost < other) => Some(lost),
                    (_, chunk) => {
                        path.cursor = chunk?;
                        chunk
                    }
                }
            }
        }
    }

    fn assign(&mut self, now: Instant, index: usize, chunk: u64) {
        let assignment = self.queue.assign(now, chunk, index);
        self.counters.copies += u64::from(assignment == Assignment::Copy);
        self.counters.reinjected += u64::from(assignment == Assignment::Reinjection);
        let is_again = matches!(assignment, Assignment::Retransmission | Assignment::Reinjection);
        self.paths[index].waiting.push_back(Waiting { chunk, is_again });
        let view = &mut self.views[index];
        view.queued += 1;
        view.has_room = view.active && view.cwnd_space() > 0;
    }

    /// The next assigned chunk that the window and the pacer allow.
    pub(super) fn next_data(&mut self, now: Instant) -> Option<Packet> {
        for index in 0..self.paths.len() {
            while self.paths[index].may_send(now)
                && let Some(Waiting { chunk, is_again }) = self.paths[index].waiting.pop_front()
            {
                if !self.queue.is_acked(chunk) {
                    return Some(self.send_chunk(now, index, chunk, is_again));
                }
            }
        }
        None
    }

    fn send_chunk(&mut self, now: Instant, index: usize, chunk: u64, is_again: bool) -> Packet {
        let copy = self.queue.has_copies(chunk);
        let number = self.paths[index].send(now, Some(chunk), is_again, &mut self.controller);
        self.sent_on |= 1 << index;
        self.packet(now, index, number, Content::Stream { chunk, copy, is_again })
    }

    /// A probe that is due (RFC 9002, section 6.2.4), whatever the window. It carries the oldest data that must be sent
    /// again, or else the oldest data in flight on the path (in the reverse order on a silent path), or else a PING.
    pub(super) fn next_probe(&mut self, now: Instant) -> Option<Packet> {
        let index = self.paths.iter().position(|path| path.probes_due > 0 && path.state == PathState::Up)?;
        let path = &mut self.paths[index];
        path.probes_due -= 1;
        // The second probe carries the next chunk.
        let skip = usize::from(path.probes_due == 0);
        let in_flight = path.sent.chunks_in_flight().filter(|chunk| !self.queue.is_acked(*chunk)).nth(skip);
        let lost = self.queue.oldest_lost();
        let Some(chunk) = (if path.is_suspect { in_flight.or(lost) } else { lost.or(in_flight) }) else {
            path.probes_due = 0;
            let number = path.send(now, None, false, &mut self.controller);
            self.sent_on |= 1 << index;
            return Some(self.packet(now, index, number, Content::Ping));
        };
        // Data of a silent path must still be sent on another one.
        if !path.is_suspect {
            let assignment = self.queue.assign(now, chunk, index);
            self.counters.reinjected += u64::from(assignment == Assignment::Reinjection);
        }
        Some(self.send_chunk(now, index, chunk, true))
    }

    /// Called when nothing more can be sent: validates the windows, and returns the deadline of the next poll.
    pub(super) fn finish_transmit(&mut self, now: Instant) -> Instant {
        let sent_on = std::mem::take(&mut self.sent_on);
        for (_, path) in self.paths.iter_mut().enumerate().filter(|(index, _)| sent_on & (1 << index) != 0) {
            let outstanding = path.sent.outstanding();
            path.sender.validate_cwnd(now, &outstanding, None, &mut self.controller);
            if path.waiting.is_empty() {
                path.sender.end_burst();
            }
        }
        self.account_limits(now);
        self.deadline(now)
    }

    /// Called when nothing more can be assigned. Records whether flow control is the reason. If there is no data, marks
    /// the paths that could carry more as application-limited. (Flow control is not such a limit, as in Linux: a
    /// start-up that flow control ends has used all that it may.)
    fn account_limit(&mut self, now: Instant) {
        let has_unsent = self.queue.data.unsent() > 0;
        let is_blocked = has_unsent && self.queue.data.snd_nxt() >= self.max_data;
        self.limits.flow_control.set(now, if is_blocked { Limit::ReceiveWindow } else { Limit::Window });
        if self.queue.lost() == 0 && !has_unsent {
            for path in self.paths.iter_mut().filter(|path| path.is_active() && path.waiting.is_empty()) {
                let in_flight = path.sent.in_flight();
                if path.sender.has_room(in_flight) {
                    path.sender.mark_app_limited(in_flight);
                }
            }
        }
    }
}

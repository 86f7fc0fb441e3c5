//! The next fragment to send and its path: retransmissions first, then sparse flows, then as the scheduler picks.

use super::feedback::REORDER_TIMEOUT_INTERVAL;
use super::{Endpoint, PartlySentPacket};
use crate::fragments::FragmentsInFlight;
use crate::packet::{Destination, Fragment, Payload, Transmit, TransmitBody};
use crate::path::{DatagramData, PathRole, TunnelPath};
use crate::secondary::SecondaryUse;
use schedule::{PacketChoice, Pick, SchedulerView};
use units::{Instant, PathId, Span};

/// Maximum time between two calls of the scheduler while packets wait: it may watch the backlog (as `overflow` does),
/// so it is called even if no path can send.
const MAX_PICK_INTERVAL: Span = Span::from_millis(1);

/// Memory that fragments in flight may keep in use, as a multiple of the ingress queue's: buffers may be nearly empty.
const IN_FLIGHT_MEMORY: u64 = 3;

impl<P: Payload> Endpoint<P> {
    /// Retransmits a lost fragment on the path on which it will arrive first. The fragment waits for a fast path even
    /// if a slower one can send at once: the stream waits for the fragment, and would lose the difference of the
    /// delays.
    pub(super) fn poll_retransmission(&mut self, now: Instant) -> Option<Transmit<P>> {
        loop {
            let (bytes, is_realtime) = self.fragments.next_retransmission()?;
            let paths = (0..).map(PathId).zip(&self.paths).filter_map(|(id, path)| Some((id, path.as_ref()?)));
            let may_carry = |path: &TunnelPath| self.may_carry(path, is_realtime);
            let mut fitting = paths.filter(|(_, path)| may_carry(path) && path.fragment_size() >= bytes).peekable();
            if fitting.peek().is_none() {
                let is_hopeless = |path: &TunnelPath| !path.may_carry(bytes);
                if !self.paths.iter().flatten().any(may_carry) || !self.paths.iter().flatten().all(is_hopeless) {
                    return None;
                }
                self.fragments.give_up_retransmission();
                self.counters.abandoned_fragments += 1;
                continue;
            }
            let arrival = |path: &TunnelPath| path.next_transmission_delay(now) + path.excess_one_way_delay;
            let order = |path: &TunnelPath| (path.is_backup(), path.is_unresponsive(), path.role(), arrival(path));
            let (path, earliest) = fitting.min_by_key(|(_, path)| order(path))?;
            if !earliest.can_send(now) {
                return None;
            }
            let Some((number, fragment)) = self.fragments.pop_retransmission() else { continue };
            self.counters.retransmitted_fragments += 1;
            return self.retransmit_with_others(now, path, number, fragment);
        }
    }

    pub(super) fn send_fragment(
        &mut self,
        now: Instant,
        path: PathId,
        number: u64,
        fragment: Fragment<P>,
    ) -> Option<Transmit<P>> {
        let packet_number = self.send_data(now, path, &DatagramData::single(number, fragment.payload.len()))?;
        Some(Transmit { path, destination: Destination::Present, packet_number, body: TransmitBody::Data(fragment) })
    }

    /// Counts a datagram with data as sent, and returns its packet number.
    pub(super) fn send_data(&mut self, now: Instant, path: PathId, data: &DatagramData) -> Option<u64> {
        data.fragments.clone().for_each(|number| self.fragments.on_sent(number, path));
        let packet_number = self.paths[path.index()].as_mut()?.send(now, data, &mut self.controller);
        self.had_input = true;
        self.control_deadline = self.control_deadline.min(self.reorder_timeout_computed + REORDER_TIMEOUT_INTERVAL);
        Some(packet_number)
    }

    pub(super) fn poll_unsent(&mut self, now: Instant) -> Option<Transmit<P>> {
        if !self.has_unsent() {
            self.load.on_empty();
            return None;
        }
        if self.exceeds_memory() {
            return None;
        }
        let size = self.fragment_size()?;
        if self.partly_sent.is_none() && self.ingress.next_is_sparse(size) {
            // A sparse flow does not wait for the congestion window either.
            let fastest = self.fastest_path()?;
            return self.send_next(now, fastest, size);
        }
        if let Some((path, remaining)) = self.burst.filter(|(_, remaining)| *remaining > 0)
            && self.path(path).is_some_and(|path| path.can_send(now) && self.may_carry(path, self.next_is_realtime()))
        {
            self.burst = Some((path, remaining - 1));
            return self.send_next(now, path, size);
        }
        self.send_scheduled(now, size)
    }

    /// Whether no more fragments may be in flight.
    pub(super) fn exceeds_memory(&self) -> bool {
        let FragmentsInFlight { bytes, memory, .. } = self.fragments;
        bytes > self.options.memory_bytes || memory > self.options.memory_bytes * IN_FLIGHT_MEMORY
    }

    /// Takes the sequence number of a stream's next fragment.
    pub(super) fn next_sequence(&mut self, stream: u8) -> u32 {
        let sequence = &mut self.next_sequences[usize::from(stream)];
        std::mem::replace(sequence, sequence.wrapping_add(1))
    }

    pub(super) fn has_unsent(&self) -> bool {
        self.partly_sent.is_some() || self.ingress.packet_count > 0
    }

    /// Payload of a fragment that fits every working path, bytes; `None` if no path works.
    #[must_use]
    pub fn fragment_size(&self) -> Option<u32> {
        self.paths.iter().flatten().filter(|path| path.is_up()).map(TunnelPath::fragment_size).min()
    }

    pub(super) fn fastest_path(&self) -> Option<PathId> {
        let paths = (0..).map(PathId).zip(&self.paths).filter_map(|(id, path)| Some((id, path.as_ref()?)));
        let up_paths = paths.filter(|(_, path)| path.carries(false));
        up_paths.min_by_key(|(_, path)| (path.role(), path.srtt())).map(|(id, _)| id)
    }

    /// Whether the next packet to be sent is of the real-time class.
    fn next_is_realtime(&self) -> bool {
        self.partly_sent.as_ref().map_or_else(|| self.ingress.next_is_realtime(), |packet| packet.is_realtime)
    }

    /// Whether a path works and may carry packets of the class. The real-time class may use any path if none of its own
    /// works.
    fn may_carry(&self, path: &TunnelPath, is_realtime: bool) -> bool {
        let has_own = || self.paths.iter().flatten().any(|path| path.carries(true));
        path.carries(is_realtime) || is_realtime && path.is_up() && !has_own()
    }

    pub(super) fn send_scheduled(&mut self, now: Instant, size: u32) -> Option<Transmit<P>> {
        self.burst = None;
        let is_in_use = |path: &TunnelPath| self.load.is_open() || path.role() != PathRole::Secondary;
        let can_send = self.paths.iter().flatten().any(|path| path.can_send(now) && is_in_use(path));
        if !can_send && now.since(self.last_pick) < MAX_PICK_INTERVAL {
            return None;
        }
        self.last_pick = now;
        let mut views = std::mem::take(&mut self.views);
        views.clear();
        let absent_path =
            schedule::PathView { has_room: false, active: false, ..schedule::PathView::without_measurements() };
        let is_realtime = self.next_is_realtime();
        let view = |path: &Option<TunnelPath>| {
            let path = path.as_ref().filter(|path| self.may_carry(path, is_realtime));
            path.map_or(absent_path, |path| path.view(now))
        };
        views.extend(self.paths.iter().map(view));
        self.views = views;
        self.set_symmetric_srtts();
        let unsent_packets = self.unsent_bytes().div_ceil(u64::from(size));
        let secondary = self.split_secondary(now, unsent_packets);
        let view = SchedulerView {
            now,
            packet_bytes: size,
            fragment_bytes: size,
            paths: &self.views,
            snd_nxt: self.fragments.next_number(),
            snd_una: self.fragments.base,
            unsent_packets,
            rwnd_left_packets: u64::MAX,
            rwnd_stalls: 0,
        };
        let picked = match secondary {
            Some((_, SecondaryUse::First)) => None,
            _ => self.choices.ask(&mut *self.scheduler, &view),
        };
        let choice = picked.or(secondary.map(|(path, _)| Pick::next(path)))?;
        let path = self.path(choice.path).filter(|path| path.can_send(now))?;
        if choice.packet == PacketChoice::OldestUnacked {
            return self.send_redundant(now, choice.path).or_else(|| self.send_next(now, choice.path, size));
        }
        self.burst = Some((choice.path, path.burst().saturating_sub(1)));
        let first = self.fragments.next_number();
        let sent = self.send_next(now, choice.path, size);
        if picked.is_some() {
            self.choices.set_data(first..self.fragments.next_number());
        }
        sent
    }

    /// Hides secondary paths from the scheduler if a regular path works. Returns the fastest of them that has room, and
    /// its use, if the regular ones are full.
    fn split_secondary(&mut self, now: Instant, unsent_packets: u64) -> Option<(PathId, SecondaryUse)> {
        let Self { paths, views, load, .. } = self;
        let role = |index: usize| paths[index].as_ref().map_or(PathRole::Backup, TunnelPath::role);
        let of_role = |wanted| (0..views.len()).filter(move |index| role(*index) == wanted);
        let regular = of_role(PathRole::Regular).filter(|index| views[*index].active).map(|index| &views[index]);
        if regular.clone().next().is_none() {
            load.on_no_regular();
            return None;
        }
        let secondary: Vec<usize> = of_role(PathRole::Secondary).filter(|index| views[*index].active).collect();
        let srtt = secondary.iter().map(|index| views[*index].srtt).min()?;
        let secondary_use = load.update(now, unsent_packets, regular, srtt);
        let with_room = secondary.iter().filter(|index| views[**index].has_room);
        let fastest = with_room.min_by_key(|index| views[**index].srtt).copied();
        for index in secondary {
            (views[index].active, views[index].has_room) = (false, false);
        }
        let fastest = fastest.filter(|_| secondary_use != SecondaryUse::Never)?;
        Some((PathId(fastest as u16), secondary_use))
    }

    /// Sets the RTTs that schedulers see as if acknowledgements returned by the same path: the minimum, plus twice each
    /// path's excess delay. (They return by the fastest path, so that measured RTTs understate the difference.)
    fn set_symmetric_srtts(&mut self) {
        let up_paths = self.paths.iter().flatten().filter(|path| path.is_up());
        let min_srtt = up_paths.map(TunnelPath::srtt).min().unwrap_or(Span::ZERO);
        for index in 0..self.views.len() {
            if let Some(path) = self.paths[index].as_ref().filter(|path| path.is_up()) {
                self.views[index].srtt = min_srtt + path.excess_one_way_delay * 2;
            }
        }
    }

    /// Sends the oldest fragment in flight that this path has not carried, for redundant schedulers.
    pub(super) fn send_redundant(&mut self, now: Instant, id: PathId) -> Option<Transmit<P>> {
        let path = self.paths[id.index()].as_mut()?;
        let carries = |is_realtime| path.carries(is_realtime);
        let (number, fragment) = self.fragments.oldest_not_sent_on(id, path.redundant_up_to, carries)?;
        path.redundant_up_to = number + 1;
        if path.fragment_size() < fragment.payload.len() {
            return None;
        }
        self.counters.redundant_fragments += 1;
        self.send_fragment(now, id, number, fragment)
    }

    /// Sends the next fragment of the partly sent inner packet, or the first one of the next inner packet.
    pub(super) fn send_next(&mut self, now: Instant, path: PathId, size: u32) -> Option<Transmit<P>> {
        let packet = match self.partly_sent.take() {
            Some(packet) => packet,
            None => {
                let only_realtime = !self.path(path)?.carries(false);
                let (stream, is_realtime, packet) = self.ingress.pop(now, only_realtime, &mut self.counters)?;
                let length = packet.len();
                let fragment_size = equal_size(length, size);
                PartlySentPacket { stream, is_realtime, packet, offset: 0, length, fragment_size }
            }
        };
        let is_realtime = packet.is_realtime;
        let end = packet.length.min(packet.offset + size.min(packet.fragment_size));
        // The memory that the packet keeps in use is charged to all of its fragments together.
        let share = u64::from(end - packet.offset) * packet.packet.memory_bytes();
        let memory = share.div_ceil(u64::from(packet.length.max(1)));
        let fragment = Fragment {
            stream: packet.stream,
            sequence: self.next_sequence(packet.stream),
            first: packet.offset == 0,
            last: end == packet.length,
            retransmission: false,
            payload: packet.packet.slice(packet.offset, end),
        };
        if end < packet.length {
            self.partly_sent = Some(PartlySentPacket { offset: end, ..packet });
        }
        self.counters.new_fragments += 1;
        let number = self.fragments.push(now, &fragment, memory, is_realtime);
        self.send_with_others(now, path, number, fragment, size)
    }

    pub(super) fn validate_cwnd(&mut self, now: Instant) {
        let has_unsent = self.has_unsent();
        for path in self.paths.iter_mut().flatten() {
            // The waiting packets may be waiting for another path.
            let app_limited = !has_unsent || path.can_send(now);
            path.validate_cwnd(now, app_limited, &mut self.controller);
        }
    }
}

/// The size of the fragments when `length` bytes are cut into as few equal fragments of at most `max` bytes as
/// possible.
pub(super) fn equal_size(length: u32, max: u32) -> u32 {
    length.div_ceil(length.div_ceil(max).max(1))
}

#[cfg(test)]
mod tests {
    use super::equal_size;

    #[test]
    fn fragments_are_as_few_as_possible_and_equal() {
        assert_eq!(equal_size(65_222, 1438), 1418, "46 of them, the last one of 1412 bytes");
        assert_eq!(equal_size(1500, 1438), 750);
        assert_eq!([equal_size(1438, 1438), equal_size(40, 1438), equal_size(0, 1438)], [1438, 40, 0]);
    }
}

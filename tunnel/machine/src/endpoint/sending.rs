//! Which piece leaves next, and on which path: lost ones first, then little ones, then as the scheduler says.

use super::{Cut, Endpoint};
use crate::path::{Path, Pilot};
use crate::vocabulary::{Content, Data, Payload, Transmit};
use schedule::{Packet, View};
use units::{Instant, PathId, Span};

impl<P: Payload> Endpoint<P> {
    /// A lost piece goes first, by the fastest path that has room and carries its size.
    pub(super) fn poll_again(&mut self, now: Instant) -> Option<Transmit<P>> {
        loop {
            let (_, bytes) = self.pieces.first_again()?;
            let up = (0..).map(PathId).zip(&self.paths).filter_map(|(id, path)| Some((id, path.as_ref()?)));
            let mut fitting = up.filter(|(_, path)| path.is_up() && path.piece() >= bytes).peekable();
            if fitting.peek().is_none() {
                if !self.paths.iter().flatten().any(Path::is_up) {
                    return None;
                }
                self.pieces.give_up_again();
                self.counters.given_up += 1;
                continue;
            }
            let open = fitting.filter(|(_, path)| path.is_open(now));
            let (path, _) = open.min_by_key(|(_, path)| (path.is_backup(), path.srtt()))?;
            let Some((number, data)) = self.pieces.take_again() else { continue };
            self.counters.repaired += 1;
            return self.data_leaves(now, path, number, data);
        }
    }

    pub(super) fn data_leaves(
        &mut self,
        now: Instant,
        path: PathId,
        number: u64,
        data: Data<P>,
    ) -> Option<Transmit<P>> {
        self.pieces.on_sent(number, path);
        let mut pilot = Pilot { controller: self.controller.as_deref_mut(), random: &mut self.random };
        let state = self.paths[path.index()].as_mut()?;
        let number = state.send(now, number, data.payload.len(), &mut pilot);
        self.stirred = true;
        Some(Transmit { path, number, content: Content::Data(data) })
    }

    pub(super) fn poll_new(&mut self, now: Instant) -> Option<Transmit<P>> {
        if !self.has_new() {
            return None;
        }
        let piece = self.piece()?;
        if self.cut.is_none() && self.entrance.next_is_sparse(piece) {
            // It is little, and may wait behind nothing: not even for a window.
            let fastest = self.fastest_regular()?;
            return self.send_next(now, fastest, piece);
        }
        if self.pieces.bytes() > self.memory {
            return None;
        }
        if let Some((path, left)) = self.burst.filter(|(_, left)| *left > 0)
            && self.path(path).is_some_and(|path| path.is_open(now))
        {
            self.burst = Some((path, left - 1));
            return self.send_next(now, path, piece);
        }
        self.pick(now, piece)
    }

    pub(super) fn has_new(&self) -> bool {
        self.cut.is_some() || self.entrance.parcels() > 0
    }

    /// Payload of a piece that every path in use carries.
    pub(super) fn piece(&self) -> Option<u32> {
        self.paths.iter().flatten().filter(|path| path.is_up()).map(Path::piece).min()
    }

    pub(super) fn fastest_regular(&self) -> Option<PathId> {
        let up = (0..).map(PathId).zip(&self.paths).filter_map(|(id, path)| Some((id, path.as_ref()?)));
        let up = up.filter(|(_, path)| path.is_up());
        up.min_by_key(|(_, path)| (path.is_backup(), path.srtt())).map(|(id, _)| id)
    }

    pub(super) fn pick(&mut self, now: Instant, piece: u32) -> Option<Transmit<P>> {
        self.burst = None;
        self.views.clear();
        let absent = schedule::Path { open: false, active: false, ..schedule::Path::unmeasured() };
        self.views.extend(self.paths.iter().map(|path| path.as_ref().map_or(absent, |path| path.view(now))));
        self.level_round_trips();
        let rest = self.cut.as_ref().map_or(0, |cut| cut.length - cut.from);
        let view = View {
            now,
            bytes: piece,
            paths: &self.views,
            next: self.pieces.next(),
            acknowledged: self.pieces.base(),
            unsent: (self.entrance.bytes() + u64::from(rest)).div_ceil(u64::from(piece)),
            room: u64::MAX,
            blocked: 0,
        };
        let pick = self.scheduler.pick(&view)?;
        let path = self.path(pick.path).filter(|path| path.is_open(now))?;
        if pick.packet == Packet::Oldest {
            return self.send_copy(now, pick.path).or_else(|| self.send_next(now, pick.path, piece));
        }
        self.burst = Some((pick.path, path.burst().saturating_sub(1)));
        self.send_next(now, pick.path, piece)
    }

    /// Round trips as if the answers came back by the same path: the fastest one's, and twice what a path is slower one way.
    /// (They come back by the fastest, so that what was measured understates the difference.)
    fn level_round_trips(&mut self) {
        let up = self.paths.iter().flatten().filter(|path| path.is_up());
        let least = up.map(Path::srtt).min().unwrap_or(Span::ZERO);
        for index in 0..self.views.len() {
            if let Some(path) = self.paths[index].as_ref().filter(|path| path.is_up()) {
                self.views[index].srtt = least + self.lateness(path) * 2;
            }
        }
    }

    /// The oldest piece on its way that this path has not carried.
    pub(super) fn send_copy(&mut self, now: Instant, id: PathId) -> Option<Transmit<P>> {
        let path = self.paths[id.index()].as_mut()?;
        let (number, data) = self.pieces.oldest_not_carried(id, path.copied_up_to)?;
        path.copied_up_to = number + 1;
        if path.piece() < data.payload.len() {
            return None;
        }
        self.counters.copies += 1;
        self.data_leaves(now, id, number, data)
    }

    /// The next piece of the parcel under the knife, or the first one of the next parcel.
    pub(super) fn send_next(&mut self, now: Instant, path: PathId, piece: u32) -> Option<Transmit<P>> {
        let cut = match self.cut.take() {
            Some(cut) => cut,
            None => {
                let (stream, parcel) = self.entrance.pop(now, &mut self.counters)?;
                let length = parcel.len();
                Cut { stream, from: 0, length, piece: even(length, piece), parcel }
            }
        };
        let to = cut.length.min(cut.from + piece.min(cut.piece));
        let sequence = &mut self.sequences[usize::from(cut.stream)];
        let data = Data {
            stream: cut.stream,
            sequence: *sequence,
            first: cut.from == 0,
            last: to == cut.length,
            again: false,
            payload: cut.parcel.slice(cut.from, to),
        };
        *sequence = sequence.wrapping_add(1);
        if to < cut.length {
            self.cut = Some(Cut { from: to, ..cut });
        }
        self.counters.pieces += 1;
        let number = self.pieces.push(now, &data);
        self.data_leaves(now, path, number, data)
    }

    pub(super) fn end_round(&mut self, now: Instant) {
        let starved = !self.has_new();
        let mut pilot = Pilot { controller: self.controller.as_deref_mut(), random: &mut self.random };
        self.paths.iter_mut().flatten().for_each(|path| path.end_round(now, starved, &mut pilot));
    }
}

/// The size of as many pieces as `length` needs, of at most `most` each, if they are to be equal.
fn even(length: u32, most: u32) -> u32 {
    length.div_ceil(length.div_ceil(most).max(1))
}

#[cfg(test)]
mod tests {
    use super::even;

    #[test]
    fn pieces_are_as_few_as_can_be_and_equal() {
        assert_eq!(even(65_222, 1438), 1418, "46 of them, the last one of 1412 bytes");
        assert_eq!(even(1500, 1438), 750);
        assert_eq!([even(1438, 1438), even(40, 1438), even(0, 1438)], [1438, 40, 0]);
    }
}

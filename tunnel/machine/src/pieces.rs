//! The pieces on their way: kept until the peer has them, so that what a path loses can be sent again on any path.

use super::vocabulary::{Data, Payload};
use std::collections::VecDeque;
use units::{Instant, PathId};

/// A piece that has been sent.
#[derive(Clone, Debug)]
pub(super) struct Piece<P> {
    pub stream: u8,
    pub sequence: u32,
    pub first: bool,
    pub last: bool,
    /// `None` once it has arrived or was given up.
    payload: Option<P>,
    bytes: u32,
    /// The paths that have carried it, one bit each.
    carried: u64,
    /// Transmissions whose fate is open.
    out: u32,
    born: Instant,
    /// It is in the queue of those to be sent again.
    queued: bool,
}

impl<P: Payload> Piece<P> {
    fn data(&self, again: bool) -> Option<Data<P>> {
        let payload = self.payload.clone()?;
        Some(Data { stream: self.stream, sequence: self.sequence, first: self.first, last: self.last, again, payload })
    }
}

/// All pieces on their way, numbered over all streams in the order of their first sending.
#[derive(Clone, Debug)]
pub(super) struct Pieces<P> {
    base: u64,
    pieces: VecDeque<Piece<P>>,
    bytes: u64,
    /// Those to be sent again, oldest loss first.
    again: VecDeque<u64>,
}

impl<P> Default for Pieces<P> {
    fn default() -> Self {
        Self { base: 0, pieces: VecDeque::new(), bytes: 0, again: VecDeque::new() }
    }
}

impl<P: Payload> Pieces<P> {
    /// Number of the oldest that has not arrived.
    pub(super) fn base(&self) -> u64 {
        self.base
    }

    /// Number of the next one.
    pub(super) fn next(&self) -> u64 {
        self.base + self.pieces.len() as u64
    }

    /// Payload on its way, bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A new piece; its number.
    pub(super) fn push(&mut self, now: Instant, data: &Data<P>) -> u64 {
        let number = self.next();
        let bytes = data.payload.len();
        self.bytes += u64::from(bytes);
        self.pieces.push_back(Piece {
            stream: data.stream,
            sequence: data.sequence,
            first: data.first,
            last: data.last,
            payload: Some(data.payload.clone()),
            bytes,
            carried: 0,
            out: 0,
            born: now,
            queued: false,
        });
        number
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut Piece<P>> {
        let index = number.checked_sub(self.base)?;
        self.pieces.get_mut(index as usize)
    }

    /// It leaves on `path`.
    pub(super) fn on_sent(&mut self, number: u64, path: PathId) {
        if let Some(piece) = self.get_mut(number) {
            piece.carried |= 1 << path.0;
            piece.out += 1;
        }
    }

    /// It arrived.
    pub(super) fn on_acked(&mut self, number: u64) {
        let Some(piece) = self.get_mut(number) else { return };
        piece.out = piece.out.saturating_sub(1);
        self.settle(number);
    }

    /// It needs no more care.
    fn settle(&mut self, number: u64) {
        let Some(piece) = self.get_mut(number) else { return };
        if piece.payload.take().is_some() {
            self.bytes -= u64::from(self.pieces[(number - self.base) as usize].bytes);
        }
        while self.pieces.front().is_some_and(|piece| piece.payload.is_none()) {
            self.pieces.pop_front();
            self.base += 1;
        }
    }

    /// A transmission was lost. The piece is sent again if `repair` says so of its birth; false if it is given up.
    pub(super) fn on_lost(&mut self, number: u64, repair: impl Fn(Instant) -> bool) -> bool {
        let Some(piece) = self.get_mut(number) else { return true };
        piece.out = piece.out.saturating_sub(1);
        if piece.payload.is_none() || piece.out > 0 || piece.queued {
            return true;
        }
        if !repair(piece.born) {
            self.settle(number);
            return false;
        }
        piece.queued = true;
        self.again.push_back(number);
        true
    }

    /// Those that were sent on `path` and have not arrived would be sent again now, whatever becomes of them there: the
    /// tail of a burst shows no gap.
    pub(super) fn on_doubt(&mut self, number: u64) {
        let Some(piece) = self.get_mut(number) else { return };
        if piece.payload.is_some() && !piece.queued {
            piece.queued = true;
            self.again.push_back(number);
        }
    }

    /// Some may have to be sent again.
    pub(super) fn has_again(&self) -> bool {
        !self.again.is_empty()
    }

    /// The next one to be sent again, and its bytes; it stays in the queue.
    pub(super) fn first_again(&mut self) -> Option<(u64, u32)> {
        loop {
            let number = *self.again.front()?;
            match self.get_mut(number) {
                Some(piece) if piece.payload.is_some() => return Some((number, piece.bytes)),
                _ => self.again.pop_front(),
            };
        }
    }

    /// Takes the first one out of the queue, to be sent.
    pub(super) fn take_again(&mut self) -> Option<(u64, Data<P>)> {
        let number = self.again.pop_front()?;
        let piece = self.get_mut(number)?;
        piece.queued = false;
        Some((number, piece.data(true)?))
    }

    /// The first one of the queue fits no path any more.
    pub(super) fn give_up_again(&mut self) {
        if let Some(number) = self.again.pop_front() {
            self.settle(number);
        }
    }

    /// The oldest from number `from` on that has not arrived and was not carried by `path`.
    pub(super) fn oldest_not_carried(&self, path: PathId, from: u64) -> Option<(u64, Data<P>)> {
        let skip = from.saturating_sub(self.base) as usize;
        let mut rest = self.pieces.iter().enumerate().skip(skip);
        let (index, piece) = rest.find(|(_, piece)| piece.payload.is_some() && piece.carried & (1 << path.0) == 0)?;
        Some((self.base + index as u64, piece.data(true)?))
    }
}

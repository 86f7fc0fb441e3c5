//! MPTCP connections of a capture (RFC 8684): which subflows belong together, and the numbers of their data.

use super::numbers::{Ranges, Segments, nearest};
use super::options::Number;
use crate::options::hashed;
use std::collections::HashMap;

/// The MPTCP connections. A side is 0, who opened the connection, or 1.
#[derive(Debug, Default)]
pub(super) struct Multipath {
    connections: Vec<Multi>,
    /// The connection with a side that has this token.
    of_token: HashMap<u32, (usize, usize)>,
}

#[derive(Debug)]
struct Multi {
    /// The name of the first subflow.
    name: String,
    subflows: u64,
    /// What each side sends.
    data: [Data; 2],
}

#[derive(Debug, Default)]
struct Data {
    /// The number of the first byte; none before the side's key is known.
    first: Option<u64>,
    segments: Segments,
    seen: Ranges,
}

/// A subflow of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subflow {
    pub(super) connection: usize,
    /// Its number in the connection, from 0.
    pub(super) number: u64,
    /// The side that opened it.
    pub(super) opener: usize,
}

impl Multipath {
    /// Notes the keys in a packet of a connection's first subflow, `name`, that a side has sent: its own, and the other side's.
    /// Returns the subflow.
    pub(super) fn on_keys(
        &mut self,
        known: Option<Subflow>,
        name: &str,
        side: usize,
        keys: &[[u8; 8]],
    ) -> Option<Subflow> {
        if keys.is_empty() {
            return known;
        }
        let subflow = known.unwrap_or_else(|| {
            self.connections.push(Multi { name: name.to_owned(), subflows: 1, data: Default::default() });
            Subflow { connection: self.connections.len() - 1, number: 0, opener: 0 }
        });
        for (key, side) in keys.iter().zip([side, 1 - side]) {
            let (token, number) = hashed(*key);
            self.of_token.insert(token, (subflow.connection, side));
            self.connections[subflow.connection].data[side].first = Some(number.wrapping_add(1));
        }
        Some(subflow)
    }

    /// The subflow that a SYN with this token opens: the other side has the token.
    pub(super) fn on_join(&mut self, token: u32) -> Option<Subflow> {
        let (connection, side) = *self.of_token.get(&token)?;
        let number = self.connections[connection].subflows;
        self.connections[connection].subflows += 1;
        Some(Subflow { connection, number, opener: 1 - side })
    }

    /// The name of a subflow's connection.
    pub(super) fn name(&self, subflow: Subflow) -> &str {
        &self.connections[subflow.connection].name
    }

    /// The byte with this number among those that a side sends, from 0.
    pub(super) fn byte(&self, subflow: Subflow, side: usize, number: Number) -> Option<u64> {
        let data = &self.connections[subflow.connection].data[side];
        let first = data.first?;
        match number {
            Number::Long(number) => Some(number.wrapping_sub(first)).filter(|byte| *byte <= u64::MAX >> 1),
            Number::Short(number) => nearest(number.wrapping_sub(first as u32), data.segments.end()),
        }
    }

    /// Notes bytes that a side sends, in segments of `piece` bytes. Returns whether any of them was seen before.
    pub(super) fn on_data(&mut self, subflow: Subflow, side: usize, [start, len, piece]: [u64; 3]) -> bool {
        let data = &mut self.connections[subflow.connection].data[side];
        let is_seen = data.seen.has_any(start, start + len);
        data.seen.add(start, start + len);
        data.segments.add(start, len, piece);
        is_seen
    }

    /// The number of the segment with a byte that a side sends.
    pub(super) fn number(&self, subflow: Subflow, side: usize, byte: u64) -> Option<u64> {
        self.connections[subflow.connection].data[side].segments.number(byte)
    }

    /// The number of the segment that an acknowledgement asks for.
    pub(super) fn acknowledged(&self, subflow: Subflow, side: usize, byte: u64) -> Option<u64> {
        self.connections[subflow.connection].data[side].segments.acknowledged(byte)
    }
}

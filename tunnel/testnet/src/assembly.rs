//! Parcels from the pieces that go up.

use machine::Delivery;
use std::collections::BTreeMap;

/// The parcels of an end that have begun, by stream.
#[derive(Debug)]
pub struct Assembly<P> {
    begun: BTreeMap<u8, Vec<P>>,
}

impl<P> Default for Assembly<P> {
    fn default() -> Self {
        Self { begun: BTreeMap::new() }
    }
}

impl<P> Assembly<P> {
    /// Takes a piece; returns all pieces of its parcel when it is the last. `follows` tells whether a piece continues the one
    /// before it.
    ///
    /// # Panics
    /// If it does not.
    pub fn push(&mut self, delivery: Delivery<P>, follows: impl Fn(&P, &P) -> bool) -> Option<Vec<P>> {
        let Delivery { stream, payload, first, last, gap, .. } = delivery;
        if first && last {
            return Some(vec![payload]); // it may come between another's, if it is not held to the order
        }
        let mut pieces = self.begun.remove(&stream).filter(|_| !first && !gap).unwrap_or_default();
        if !first && pieces.is_empty() {
            return None; // its beginning was given up
        }
        assert!(
            pieces.last().is_none_or(|before| follows(before, &payload)),
            "the pieces of a parcel follow each other"
        );
        pieces.push(payload);
        if last {
            return Some(pieces);
        }
        self.begun.insert(stream, pieces);
        None
    }
}

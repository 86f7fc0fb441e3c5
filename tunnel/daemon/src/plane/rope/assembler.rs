//! Parcels from their pieces. A parcel that misses a piece is dropped; one of a single piece is not copied.

use super::parcel::Parcel;
use machine::Delivery;

/// The longest parcel: an IP packet with its virtio-net header, and padding.
const LONGEST: usize = 65_535 + wire::offload::Offload::LEN + 64;
const STREAMS: usize = 256;

/// What has come of one stream's parcel.
#[derive(Debug, Default)]
struct Begun {
    bytes: Vec<u8>,
    /// A parcel has begun, and nothing of it is missing.
    is_whole: bool,
    marked: bool,
}

/// A parcel with all its pieces.
#[derive(Debug)]
pub(super) struct Whole<'a> {
    pub(super) bytes: &'a mut [u8],
    pub(super) offload: bool,
    /// A piece of it was marked on its way.
    pub(super) marked: bool,
}

/// Puts parcels together.
#[derive(Debug)]
pub(super) struct Assembler {
    streams: Vec<Begun>,
    /// Where a parcel of one piece is changed.
    single: Vec<u8>,
    /// Parcels that stayed incomplete.
    pub(super) broken: u64,
}

impl Assembler {
    pub(super) fn new() -> Self {
        let streams = (0..STREAMS).map(|_| Begun::default()).collect();
        Self { streams, single: Vec::new(), broken: 0 }
    }

    /// The parcel that this piece completes, if it does.
    pub(super) fn add(&mut self, delivery: &Delivery<Parcel>) -> Option<Whole<'_>> {
        let Delivery { stream, payload, first, last, gap, ce: marked } = delivery;
        let offload = payload.offload;
        if *first && *last {
            // It may come between the pieces of another.
            self.single.clear();
            self.single.extend_from_slice(&payload.bytes);
            return Some(Whole { bytes: &mut self.single, offload, marked: *marked });
        }
        let begun = &mut self.streams[usize::from(*stream)];
        let was_whole = begun.is_whole;
        if *first {
            begun.bytes.clear();
            (begun.is_whole, begun.marked) = (true, false);
        } else {
            begun.is_whole &= !gap && begun.bytes.len() + payload.bytes.len() <= LONGEST;
        }
        self.broken += u64::from(was_whole && (*first || !begun.is_whole));
        if !begun.is_whole {
            return None;
        }
        begun.bytes.extend_from_slice(&payload.bytes);
        begun.marked |= marked;
        begun.is_whole = !last;
        last.then_some(Whole { marked: begun.marked, bytes: &mut begun.bytes, offload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plane::buffer::{Class, Pool};

    /// Feeds pieces as (text, first, last, gap); what comes whole.
    fn feed(assembler: &mut Assembler, pieces: &[(&str, bool, bool, bool)]) -> Vec<(String, bool)> {
        let mut pool = Pool::new(8, 0);
        let mut whole = Vec::new();
        for (text, first, last, gap) in pieces {
            let mut fresh = pool.take(Class::Small).expect("enough buffers");
            fresh[..text.len()].copy_from_slice(text.as_bytes());
            let payload = Parcel { bytes: fresh.freeze(text.len()), offload: false, tos: 0 };
            let marked = *text == "marked";
            let delivery = Delivery { stream: 7, payload, first: *first, last: *last, gap: *gap, ce: marked };
            let text = assembler.add(&delivery).map(|it| (String::from_utf8_lossy(it.bytes).into_owned(), it.marked));
            whole.extend(text);
        }
        whole
    }

    #[test]
    fn pieces_make_a_parcel_and_a_single_one_may_come_between() {
        let mut assembler = Assembler::new();
        let pieces = [
            ("rope", true, false, false),
            ("one", true, true, false),
            ("marked", false, false, false),
            ("walk", false, true, false),
        ];
        let expected = [("one".to_owned(), false), ("ropemarkedwalk".to_owned(), true)];
        assert_eq!(feed(&mut assembler, &pieces), expected);
        assert_eq!(assembler.broken, 0);
    }

    #[test]
    fn a_parcel_with_a_gap_is_dropped_and_the_next_one_is_not() {
        let mut assembler = Assembler::new();
        let pieces = [
            ("a", true, false, false),
            ("c", false, false, true),
            ("d", false, true, false),
            ("e", true, false, false),
            ("f", false, true, false),
        ];
        assert_eq!(feed(&mut assembler, &pieces), [("ef".to_owned(), false)]);
        assert_eq!(assembler.broken, 1);
        assert_eq!(feed(&mut assembler, &[("g", false, true, false)]), []);
    }
}

//! The packets of one link, each with what became of it there.

use crate::headers::{Encoded, Encoder};
use crate::place::LinkEnd;
use link::{EcnField, PipeConfig, QueueDiscipline};
use scenario::model::Link;
use sim::{Crossing, CrossingStep, Direction, LossCause};
use std::collections::BTreeMap;
use units::Instant;

/// A packet for the capture.
pub(crate) struct Crossed {
    pub(crate) at: Instant,
    pub(crate) direction: Direction,
    pub(crate) encoded: Encoded,
}

/// The packets that are in the link.
///
/// At its beginning a packet is written when it is known what becomes of it, and all packets that entered before it are
/// written: the capture is in order, and memory is that of the link's packets.
#[derive(Debug)]
pub(crate) struct Crossings {
    end: LinkEnd,
    /// The policer or the queue, by direction.
    droppers: [&'static str; 2],
    /// By their numbers.
    inside: BTreeMap<u64, Inside>,
}

#[derive(Debug)]
struct Inside {
    at: Instant,
    direction: Direction,
    /// The ECN field with which it entered.
    ecn: EcnField,
    /// Its bytes, if packets are captured as they enter.
    encoded: Option<Encoded>,
    has_fate: bool,
}

impl Crossings {
    pub(crate) fn new(link: &Link, end: LinkEnd) -> Self {
        Self { end, droppers: [dropper(&link.forward), dropper(&link.reverse)], inside: BTreeMap::new() }
    }

    /// Takes a step of a packet. Returns the packets that can be written now.
    pub(crate) fn step(&mut self, at: Instant, crossing: &Crossing, encoder: &mut Encoder) -> Vec<Crossed> {
        let Crossing { packet, direction, entry, step, .. } = crossing;
        if *step == CrossingStep::Enters {
            let encoded = if self.end == LinkEnd::In { encoder.encode_crossing(at, crossing) } else { None };
            let inside = Inside { at, direction: *direction, ecn: packet.ecn, encoded, has_fate: false };
            self.inside.insert(*entry, inside);
            return Vec::new();
        }
        let Some(inside) = self.inside.get_mut(entry) else { return Vec::new() };
        let is_copy = *step == CrossingStep::Leaves { is_copy: true };
        let comments = [
            (inside.ecn != packet.ecn).then_some("marked CE on this link"),
            is_copy.then_some("a copy that the link has made"),
            match step {
                CrossingStep::Lost(LossCause::Link) => Some("lost here: on the wire, or because the link is down"),
                CrossingStep::Lost(_) => Some(self.droppers[*direction as usize]),
                _ => None,
            },
            crossing.is_corrupted.then_some("has a wrong bit: its receiver will discard it"),
        ];
        let comments = comments.into_iter().flatten();
        if self.end == LinkEnd::In {
            inside
                .encoded
                .iter_mut()
                .filter(|_| !is_copy)
                .for_each(|encoded| encoded.comments.extend(comments.clone()));
            inside.has_fate |= !is_copy;
            return self.take_first(|inside| inside.has_fate);
        }
        let encoded = match step {
            CrossingStep::Leaves { .. } => encoder.encode_crossing(at, crossing),
            _ => None,
        };
        if !is_copy {
            self.inside.remove(entry);
        }
        let with_comments = |mut encoded: Encoded| {
            encoded.comments.extend(comments);
            Crossed { at, direction: *direction, encoded }
        };
        encoded.map(with_comments).into_iter().collect()
    }

    /// The packets that are still in the link at the end of the run.
    pub(crate) fn finish(&mut self) -> Vec<Crossed> {
        self.take_first(|_| true)
    }

    /// Takes packets in the order in which they entered, up to the first that does not satisfy `is_taken`.
    fn take_first(&mut self, is_taken: impl Fn(&Inside) -> bool) -> Vec<Crossed> {
        let mut taken = Vec::new();
        while let Some(first) = self.inside.first_entry().filter(|first| is_taken(first.get())) {
            let Inside { at, direction, encoded, .. } = first.remove();
            taken.extend(encoded.map(|encoded| Crossed { at, direction, encoded }));
        }
        taken
    }
}

/// What drops packets before the wire.
fn dropper(pipe: &PipeConfig) -> &'static str {
    match (pipe.policer, pipe.queue.discipline) {
        (Some(_), _) => "dropped here: by the policer or the queue",
        (None, QueueDiscipline::DropTail | QueueDiscipline::DropHead) => "dropped here: the queue is full",
        (None, _) => "dropped here: by the queue",
    }
}

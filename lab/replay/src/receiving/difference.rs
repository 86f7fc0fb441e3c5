//! The first difference of two recordings of the same script.

use super::recording::{Recording, SentAck};
use super::script::{Kind, Script};
use crate::difference::{Difference, Place, Tolerance};

/// The first difference of two recordings: our machine's and the kernel's. Its `ack` is the number of events before it.
#[must_use]
pub fn first_difference(
    script: &Script,
    ours: &Recording,
    kernel: &Recording,
    tolerance: Tolerance,
) -> Option<Difference> {
    let mut seen = Seen::default();
    (0..=script.events.len()).find_map(|index| {
        let last = index.checked_sub(1).map(|last| script.events[last].kind);
        let event = last.map_or("the handshake", |kind| seen.add(&kind));
        let pair = |recording| within(recording, script.interval(index));
        let (what, ours, kernel) = difference_of(&pair(ours), &pair(kernel), script.interval(index)[1], tolerance)?;
        let reading = if script.setup.reads_at_once { "" } else { ", not read" };
        let name = format!("{event}{reading}");
        Some(Difference {
            ack: index,
            sent: 0,
            what,
            place: Place::Sent,
            ca_states: [name.clone(), name],
            ours,
            kernel,
        })
    })
}

fn within(recording: &Recording, [start, end]: [u64; 2]) -> Vec<&SentAck> {
    recording.acks.iter().filter(|ack| start <= ack.at_us && ack.at_us < end).collect()
}

/// The field that differs, and its value on both sides.
fn difference_of(
    ours: &[&SentAck],
    kernel: &[&SentAck],
    end: u64,
    tolerance: Tolerance,
) -> Option<(String, String, String)> {
    let describe = |ack: Option<&&SentAck>| ack.map_or_else(|| "nothing".to_owned(), ToString::to_string);
    (0..ours.len().max(kernel.len())).find_map(|index| {
        let pair = (ours.get(index), kernel.get(index));
        let what = match pair {
            (Some(ours), Some(kernel)) => field(ours, kernel, tolerance)?,
            // One that is sent just before the end on one side may be sent just after it on the other.
            (Some(only), None) | (None, Some(only)) if only.at_us + tolerance.time_us >= end => return None,
            (ours, _) if ours.is_none() => "lacking",
            _ => "superfluous",
        };
        Some((what.to_owned(), describe(pair.0), describe(pair.1)))
    })
}

fn field(ours: &SentAck, kernel: &SentAck, tolerance: Tolerance) -> Option<&'static str> {
    let differences = [
        (ours.at_us.abs_diff(kernel.at_us) > tolerance.time_us, "time"),
        (ours.ack != kernel.ack, "number"),
        (ours.sack != kernel.sack, "sack"),
        (ours.ece != kernel.ece, "ece"),
        (ours.window != kernel.window, "window"),
    ];
    differences.into_iter().find_map(|(differs, name)| differs.then_some(name))
}

/// The segments so far, which tell what kind a next one is.
#[derive(Default)]
struct Seen {
    arrived: std::collections::BTreeSet<u64>,
    next: u64,
}

impl Seen {
    fn add(&mut self, kind: &Kind) -> &'static str {
        let arrival = match kind {
            Kind::Probe(_) => return "a probe",
            Kind::Read(_) => return "a read",
            Kind::Data(arrival) => arrival,
        };
        let is_new = self.arrived.insert(arrival.seq);
        let has_holes = self.arrived.len() as u64 > self.next + 1;
        while self.arrived.contains(&self.next) {
            self.next += 1;
        }
        match () {
            () if !is_new => "a duplicate",
            () if arrival.seq >= self.next => "a segment out of order",
            () if has_holes => "a filled hole",
            () if arrival.psh => "a pushed segment",
            () => "a segment in order",
        }
    }
}

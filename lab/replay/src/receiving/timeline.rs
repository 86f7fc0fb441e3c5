//! A script and two recordings of it in words, around their first difference.

use super::recording::Recording;
use super::script::{Arrival, Event, Kind, Script};
use crate::difference::Difference;
use std::fmt::Write as _;

/// Events that are shown before the one at which the recordings differ.
const BEFORE: usize = 8;

/// The events up to the first difference, one per line.
#[must_use]
pub fn timeline(script: &Script, ours: &Recording, kernel: &Recording, difference: &Difference) -> String {
    let setup = &script.setup;
    let has = |flag: bool, name: &str| if flag { name.to_owned() } else { format!("no {name}") };
    let mut text = format!(
        "receiver, {}, {}, {}, receive buffer {} to {} KiB, {}, first RTT {:.1} ms\n",
        has(setup.sack, "SACK"),
        has(setup.timestamps, "timestamps"),
        has(setup.ecn, "ECN"),
        setup.buffer[0] >> 10,
        setup.buffer[1] >> 10,
        if setup.reads_at_once { "reads at once" } else { "reads as written" },
        (setup.established_us - setup.syn_us) as f64 / 1000.0
    );
    for index in difference.ack.saturating_sub(BEFORE)..=difference.ack {
        if let Some(event) = index.checked_sub(1).and_then(|event| script.events.get(event)) {
            let _ = writeln!(text, "  {:9.1} ms  {}", event.at_us as f64 / 1000.0, words(event));
        }
        let interval = script.interval(index);
        let _ = writeln!(text, "      ours acknowledges   {}", acks(ours, interval));
        let _ = writeln!(text, "      kernel acknowledges {}", acks(kernel, interval));
    }
    let Difference { ack, what, ours, kernel, .. } = difference;
    let _ = writeln!(text, "first difference: after event {ack}: {what}: {ours} in ours and {kernel} in the kernel");
    text
}

fn acks(recording: &Recording, [start, end]: [u64; 2]) -> String {
    let acks = recording.acks.iter().filter(|ack| start <= ack.at_us && ack.at_us < end);
    let words: Vec<_> = acks.map(ToString::to_string).collect();
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}

fn words(event: &Event) -> String {
    let (name, arrival) = match &event.kind {
        Kind::Read(segments) => return format!("read of {segments} segments"),
        Kind::Data(arrival) => ("segment", arrival),
        Kind::Probe(arrival) => ("probe at", arrival),
    };
    let Arrival { seq, psh, is_marked, cwr, tsval, tsecr } = *arrival;
    let mut text = format!("{name} {seq}");
    for (has, word) in [(psh, " PSH"), (is_marked, " CE"), (cwr, " CWR")] {
        text += if has { word } else { "" };
    }
    if tsval > 0 {
        let _ = write!(text, " TS {tsval} {tsecr}");
    }
    text
}

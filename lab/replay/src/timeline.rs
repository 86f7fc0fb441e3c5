//! A script and two recordings of it in words, around their first difference.

use crate::difference::Difference;
use crate::recording::{Recording, State};
use crate::script::{PeerAck, Script};
use std::fmt::Write as _;

/// Acknowledgements that are shown before the one at which the recordings differ.
const BEFORE: usize = 4;

/// The events up to the first difference, one per line.
#[must_use]
pub fn timeline(script: &Script, ours: &Recording, kernel: &Recording, difference: &Difference) -> String {
    let setup = &script.setup;
    let has = |flag: bool, name: &str| if flag { name.to_owned() } else { format!("no {name}") };
    let mut text = format!(
        "{}, MSS {}, {}, {}, {}, {}, send buffer {} KiB, first RTT {:.1} ms\n",
        setup.congestion,
        setup.mss,
        has(setup.sack, "SACK"),
        has(setup.timestamps, "timestamps"),
        has(setup.ecn, "ECN"),
        has(setup.tso, "TSO"),
        setup.send_buffer >> 10,
        (setup.established_us - setup.connect_us) as f64 / 1000.0
    );
    for index in difference.ack.saturating_sub(BEFORE)..=difference.ack {
        let start = index.checked_sub(1).map_or(0, |before| script.acks[before].at_us);
        let end = script.acks.get(index).map_or(script.end_us, |ack| ack.at_us);
        for write in script.writes.iter().filter(|write| start <= write.at_us && write.at_us < end) {
            let _ = writeln!(text, "  {:9.1} ms  write of {} bytes", ms(write.at_us), write.bytes);
        }
        let _ = writeln!(text, "      ours sends   {}", sent(ours, start, end));
        let _ = writeln!(text, "      kernel sends {}", sent(kernel, start, end));
        let Some(ack) = script.acks.get(index) else { continue };
        let _ = writeln!(text, "  {:9.1} ms  {}", ms(ack.at_us), acknowledgement(ack));
        for (name, recording) in [("ours  ", ours), ("kernel", kernel)] {
            if let Some([before, after]) = recording.states.get(index) {
                let _ = writeln!(text, "      {name} {} -> {}", state(before), state(after));
            }
        }
    }
    let _ = writeln!(text, "first difference: {difference}");
    text
}

fn ms(us: u64) -> f64 {
    us as f64 / 1000.0
}

fn sent(recording: &Recording, start: u64, end: u64) -> String {
    let sent = recording.sent.iter().filter(|sent| start <= sent.at_us && sent.at_us < end);
    let words: Vec<_> = sent
        .map(|sent| {
            let kind = match sent.kind {
                crate::SentKind::New => "",
                crate::SentKind::Retransmission => "r",
                crate::SentKind::Probe => "p",
            };
            format!("{}{kind}@{:.1}", sent.seq, ms(sent.at_us))
        })
        .collect();
    if words.is_empty() { "nothing".to_owned() } else { words.join(" ") }
}

fn acknowledgement(ack: &PeerAck) -> String {
    let mut text = format!("ack {} window {}", ack.ack, ack.window);
    for (start, end) in &ack.sack {
        let _ = write!(text, " sack {start}-{end}");
    }
    if ack.ece {
        text += " ECE";
    }
    if ack.tsval > 0 {
        let _ = write!(text, " TS {} {}", ack.tsval, ack.tsecr);
    }
    text
}

fn state(state: &State) -> String {
    let ssthresh = if state.ssthresh >= 1 << 30 { "inf".to_owned() } else { state.ssthresh.to_string() };
    format!(
        "{} cwnd {} ssthresh {ssthresh} out {} sacked {} lost {} retrans {} reordering {}",
        state.ca_name(),
        state.cwnd,
        state.unacked,
        state.sacked,
        state.lost,
        state.retrans,
        state.reordering
    )
}

//! Shorter scripts to try. Those that still differ in the same way are shrunk further.

use crate::difference::Difference;
use crate::script::Script;

/// Scripts with a part removed: everything after the difference, sequences of acknowledgements (from half of them down to
/// single ones), and the ends of writes. The shortest come first.
#[must_use]
pub fn candidates(script: &Script, difference: &Difference) -> Vec<Script> {
    let last = (difference.ack + 1).min(script.acks.len());
    if last < script.acks.len() {
        return vec![cut(script, last)];
    }
    let mut scripts = Vec::new();
    let mut length = last / 2;
    while length > 0 {
        let starts = (0..last.saturating_sub(1)).step_by(length);
        scripts.extend(starts.map(|start| without(script, start, (start + length).min(last - 1))));
        length /= 2;
    }
    scripts.extend(simpler_settings(script));
    scripts
}

fn cut(script: &Script, count: usize) -> Script {
    let mut shorter = script.clone();
    // Some time is left for timers that expire after the last acknowledgement.
    let rest = script.end_us - script.acks.last().map_or(0, |ack| ack.at_us);
    shorter.acks.truncate(count);
    shorter.end_us = (shorter.acks.last().map_or(script.end_us, |ack| ack.at_us) + rest).min(script.end_us);
    shorter
}

fn without(script: &Script, start: usize, end: usize) -> Script {
    let mut shorter = script.clone();
    shorter.acks.drain(start..end);
    shorter
}

/// The same script without parts that may not matter.
fn simpler_settings(script: &Script) -> Vec<Script> {
    let setup = &script.setup;
    let changed = [
        setup.ecn.then(|| crate::Setup { ecn: false, ..setup.clone() }),
        (setup.send_buffer < 4 << 20).then(|| crate::Setup { send_buffer: 4 << 20, ..setup.clone() }),
        (!setup.tso).then(|| crate::Setup { tso: true, ..setup.clone() }),
    ];
    changed.into_iter().flatten().map(|setup| Script { setup, ..script.clone() }).collect()
}

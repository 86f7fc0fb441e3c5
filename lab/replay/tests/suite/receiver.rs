//! What a real kernel's receiver did with scripts, and what our machine does: no kernel is needed here.
//!
//! `cargo xtask kernel-drill --side receiver --keep FOLDER` writes such records; a difference that was mended stays as one.

use crate::records_in;
use ropewalk_replay::Tolerance;
use ropewalk_replay::receiving::{Golden, first_difference, play, timeline};
use std::path::PathBuf;

fn records() -> Vec<(PathBuf, Golden)> {
    records_in("golden-receiver")
}

#[test]
fn our_receiver_acknowledges_as_the_kernel_did() {
    let records = records();
    assert!(records.len() > 10, "the records are there");
    for (file, Golden { kernel, script, recording }) in records {
        let ours = play(&script);
        if let Some(difference) = first_difference(&script, &ours, &recording, Tolerance::VIRTUAL) {
            panic!("{} on {kernel}:\n{}", file.display(), timeline(&script, &ours, &recording, &difference));
        }
    }
}

/// A comparison that takes anything for the same would pass the test above.
#[test]
fn a_changed_acknowledgement_differs() {
    for (file, Golden { script, recording, .. }) in records() {
        let ours = play(&script);
        let last = recording.acks.len() - 1;
        let mut changed = [recording.clone(), recording.clone(), recording.clone(), recording];
        changed[0].acks[last].window += 128;
        changed[1].acks[last].at_us += 200;
        changed[2].acks[last].sack.insert(0, (0, 1));
        changed[3].acks.remove(last);
        for changed in changed {
            assert!(first_difference(&script, &ours, &changed, Tolerance::VIRTUAL).is_some(), "{}", file.display());
        }
    }
}

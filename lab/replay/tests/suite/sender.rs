//! What real kernels did with scripts, and what our machine does: no kernel is needed here.
//!
//! `cargo xtask kernel-drill --keep FOLDER` writes such records; a difference that was mended stays as one.

use crate::records_in;
use ropewalk_replay::{Golden, Tolerance, first_difference, play, timeline};
use std::path::PathBuf;

fn records() -> Vec<(PathBuf, Golden)> {
    records_in("golden")
}

#[test]
fn our_machine_does_what_the_kernel_did() {
    let records = records();
    assert!(records.len() > 10, "the records are there");
    for (file, Golden { kernel, script, recording }) in records {
        let ours = play(&script).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        if let Some(difference) = first_difference(&script, &ours, &recording, Tolerance::of(&recording)) {
            panic!("{} on {kernel}:\n{}", file.display(), timeline(&script, &ours, &recording, &difference));
        }
    }
}

/// A comparison that takes anything for the same would pass the test above.
#[test]
fn a_changed_record_differs() {
    for (file, Golden { script, recording, .. }) in records() {
        let (ours, tolerance) = (play(&script).unwrap(), Tolerance::of(&recording));
        let mut changed = recording.clone();
        changed.states.last_mut().expect("there are acknowledgements")[1].cwnd += 1;
        assert!(first_difference(&script, &ours, &changed, tolerance).is_some(), "{}", file.display());
        let mut changed = recording;
        changed.sent[0].at_us += 1000 + tolerance.time_us;
        assert!(first_difference(&script, &ours, &changed, tolerance).is_some(), "{}", file.display());
    }
}

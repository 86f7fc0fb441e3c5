//! What real kernels did with scripts, and what our machine does: no kernel is needed here.
//!
//! `cargo xtask kernel-drill --keep FOLDER` writes such records; a difference that was mended stays as one.

use ropewalk_replay::{Golden, Tolerance, first_difference, play, timeline};
use std::fs;
use std::path::{Path, PathBuf};

/// In virtual time our machine and a kernel send at the same microseconds, but for those that a kernel's clock counts while it
/// computes.
const TOLERANCE: Tolerance = Tolerance { time_us: 100 };

fn records() -> Vec<(PathBuf, Golden)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = files.map(|entry| entry.expect("a folder is read").path()).collect();
    files.sort();
    let read = |file: PathBuf| {
        let text = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let golden = serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        (file, golden)
    };
    files.into_iter().map(read).collect()
}

#[test]
fn our_machine_does_what_the_kernel_did() {
    let records = records();
    assert!(records.len() > 10, "the records are there");
    for (file, Golden { kernel, script, recording }) in records {
        let ours = play(&script).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        if let Some(difference) = first_difference(&script, &ours, &recording, TOLERANCE) {
            panic!("{} on {kernel}:\n{}", file.display(), timeline(&script, &ours, &recording, &difference));
        }
    }
}

/// A comparison that takes anything for the same would pass the test above.
#[test]
fn a_changed_record_differs() {
    for (file, Golden { script, recording, .. }) in records() {
        let ours = play(&script).unwrap();
        let mut changed = recording.clone();
        changed.states.last_mut().expect("there are acknowledgements")[1].cwnd += 1;
        assert!(first_difference(&script, &ours, &changed, TOLERANCE).is_some(), "{}", file.display());
        let mut changed = recording;
        changed.sent[0].at_us += 1000;
        assert!(first_difference(&script, &ours, &changed, TOLERANCE).is_some(), "{}", file.display());
    }
}

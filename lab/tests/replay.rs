//! The kernel that plays scripts does what our machine does, and what it did before.
//!
//! A fixed sample: the records of `lab/replay/tests/golden` and `golden-receiver`, played again by User-Mode Linux in virtual
//! time.

use lab::{BackendChoice, Error, Judge};
use replay::{Golden, Script, Tolerance, first_difference, play, receiving, timeline};
use ropewalk_lab as lab;
use serde::de::DeserializeOwned;
use std::fs;
use std::path::Path;
use testing::{Reason, skip};

/// The algorithms for which the kernel draws random numbers, others at each boot: it does not do the same again.
const DRAWS: [&str; 2] = ["bbr", "cdg"];

/// The judge, if there is one whose time is virtual.
fn judge() -> Option<Judge> {
    match Judge::find(BackendChoice::Uml, env!("CARGO_BIN_EXE_ropewalk-lab-agent"), "lab-agent") {
        Ok(judge) if judge.is_virtual() => return Some(judge),
        Ok(_) => {
            skip(Reason::Kernel, "the kernel's time is real; `cargo xtask kernel` builds one whose time is virtual");
        }
        Err(Error::NoKernel(reason)) => skip(Reason::Missing, &reason),
        Err(Error::Processor(reason)) => skip(Reason::Processor, &reason),
        Err(error) => panic!("{error}"),
    }
    None
}

fn records<G: DeserializeOwned>(folder: &str) -> Vec<G> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("replay/tests").join(folder);
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| serde_json::from_slice(&fs::read(file).unwrap()).unwrap()).collect()
}

#[test]
fn a_kernel_does_again_what_our_machine_does() {
    let Some(judge) = judge() else { return };
    let is_repeatable = |golden: &Golden| !DRAWS.contains(&golden.script.setup.congestion.as_str());
    let is_of_judge = |golden: &Golden| golden.kernel == judge.describe();
    let records: Vec<Golden> = records("golden").into_iter().filter(is_of_judge).filter(is_repeatable).collect();
    if records.is_empty() {
        return skip(Reason::Kernel, &format!("no record is of {}", judge.describe()));
    }
    let scripts: Vec<Script> = records.iter().map(|golden| golden.script.clone()).collect();
    for (golden, recording) in records.iter().zip(judge.play(&scripts).unwrap()) {
        assert_eq!(recording.states, golden.recording.states, "the kernel itself changed");
        let ours = play(&golden.script).unwrap();
        if let Some(difference) = first_difference(&golden.script, &ours, &recording, Tolerance::VIRTUAL) {
            panic!("{}", timeline(&golden.script, &ours, &recording, &difference));
        }
    }
}

#[test]
fn a_kernel_acknowledges_again_as_our_receiver_does() {
    let Some(judge) = judge() else { return };
    let records = records::<receiving::Golden>("golden-receiver").into_iter();
    let records: Vec<_> = records.filter(|golden| golden.kernel == judge.describe()).collect();
    if records.is_empty() {
        return skip(Reason::Kernel, &format!("no record is of {}", judge.describe()));
    }
    let scripts: Vec<receiving::Script> = records.iter().map(|golden| golden.script.clone()).collect();
    for (golden, recording) in records.iter().zip(judge.play_receivers(&scripts).unwrap()) {
        let ours = receiving::play(&golden.script);
        if let Some(difference) = receiving::first_difference(&golden.script, &ours, &recording, Tolerance::VIRTUAL) {
            panic!("{}", receiving::timeline(&golden.script, &ours, &recording, &difference));
        }
    }
}

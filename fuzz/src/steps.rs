//! Runs every check over the saved inputs of fuzzing and mutations of them, the same for each seed: the part of fuzzing that
//! a stable compiler can do.

use crate::{Check, TARGETS, mutate};
use std::fs;
use std::path::Path;
use units::RngStream;

/// Bytes of mutated inputs per check and seed, except for those that are slower.
const BYTES: usize = 1_000_000;
/// Seeds of mutations that everyone runs.
const SEEDS: u64 = 4;
/// Targets whose checks do much work per input, and the factor by which they get fewer bytes.
const SLOWER: [(&str, usize); 5] =
    [("handshake", 80), ("session", 4), ("reassembler", 20), ("node", 20), ("connections", 2)];

pub(crate) fn saved_inputs(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let mut paths: Vec<_> = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

fn check_mutations(seed: u64, target: &str, check: Check) {
    let inputs = saved_inputs(target);
    let slowness = SLOWER.iter().find(|(slower, _)| *slower == target).map_or(1, |(_, slowness)| *slowness);
    let mut random = RngStream::named(seed, target);
    let mut bytes = 0;

    while bytes < BYTES / slowness {
        let input = mutate(&inputs, &mut random);
        bytes += input.len() + 16;
        if std::panic::catch_unwind(|| check(&input)).is_err() {
            let path = std::env::temp_dir().join(format!("ropewalk-{target}-{}", std::process::id()));
            fs::write(&path, &input).unwrap();
            panic!("cargo run -p ropewalk-fuzz --bin {target} {}", path.display());
        }
    }
}

#[test]
pub(crate) fn saved_inputs_pass_every_check() {
    for (target, check) in TARGETS {
        saved_inputs(target).iter().for_each(|input| check(input));
    }
}

#[test]
fn mutations_of_saved_inputs_pass_every_check() {
    for seed in testing::campaign(SEEDS).range() {
        TARGETS.into_iter().for_each(|(target, check)| check_mutations(seed, target, check));
    }
}

#[test]
fn every_target_has_a_folder_of_inputs_and_a_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let names = |folder: &str| {
        let files = fs::read_dir(root.join(folder)).unwrap().map(|file| file.unwrap().path());
        let mut names: Vec<_> = files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    let mut targets = TARGETS.map(|(target, _)| target.to_owned());
    targets.sort();
    assert_eq!((names("corpus"), names("fuzz_targets")), (targets.to_vec(), targets.to_vec()));
}

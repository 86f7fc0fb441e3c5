//! What real kernels did with scripts, compared with our machines.

mod receiver;
mod sender;

use ropewalk_replay::Golden;
use serde::de::DeserializeOwned;
use std::fs;
use std::path::{Path, PathBuf};

/// The records in a folder next to the tests, by name.
fn records_in<S: DeserializeOwned, R: DeserializeOwned>(folder: &str) -> Vec<(PathBuf, Golden<S, R>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
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

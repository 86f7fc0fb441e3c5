//! The saved inputs of fuzzing.

use std::fs;
use std::path::Path;

/// The inputs saved in `fuzz/corpus` for a target.
///
/// # Panics
/// If the folder cannot be read, or has fewer than three inputs.
#[must_use]
pub fn saved_inputs(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let inputs = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let inputs: Vec<_> = inputs.map(|input| fs::read(input.expect("a folder").path()).expect("a file")).collect();
    assert!(inputs.len() >= 3, "{} has few inputs", folder.display());
    inputs
}

//! Fuzz targets: with cargo-fuzz the fuzzer calls them; otherwise they are programs that check the files on the command
//! line, so that a stable compiler builds them and repeats what a fuzzer found.

use units::RngStream;

mod sender;
#[cfg(test)] // of the library, since those of a folder `tests` would build a program for each target
mod steps;

pub use sender::sender;

/// A check, which panics if a property does not hold.
pub type Check = fn(&[u8]);

/// The checks by the names of their targets, which are those of their folders in `corpus/`.
pub const TARGETS: [(&str, Check); 15] = [
    ("gre", wire::check::gre),
    ("frames", wire::check::frames),
    ("relay", wire::check::relay),
    ("inner", wire::check::inner),
    ("segment", wire::check::segment),
    ("coalesce", wire::check::coalesce),
    ("delivery", wire::check::delivery),
    ("handshake", seal::check::handshake),
    ("session", seal::check::session),
    ("key", seal::check::key),
    ("endpoint", machine::check::endpoint),
    ("reassembler", machine::check::reassembler),
    ("connections", relay::check::relay),
    ("node", node::check::node),
    ("sender", sender),
];

/// Maximum length of a mutated input, bytes.
const MAX_INPUT_BYTES: usize = 4096;

/// A mutation of one of `inputs`: some bytes are changed, inserted, removed or repeated, or follow from another input.
#[must_use]
pub fn mutate(inputs: &[Vec<u8>], random: &mut RngStream) -> Vec<u8> {
    let below = |random: &mut RngStream, end: usize| random.below(end as u64) as usize;
    let mut input = inputs[below(random, inputs.len())].clone();
    for _ in 0..=random.below(6) {
        let start = below(random, input.len() + 1);
        let end = start + below(random, (input.len() - start).min(32) + 1);
        match random.below(6) {
            0 => drop(input.drain(start..end)),
            1 => input[start..end].fill_with(|| random.bits() as u8),
            2 => {
                let bytes: Vec<_> = (0..=random.below(8)).map(|_| random.bits() as u8).collect();
                input.splice(start..start, bytes);
            }
            3 => {
                let bytes = input[start..end].repeat(1 + below(random, 8));
                input.splice(start..start, bytes);
            }
            4 => {
                let other = &inputs[below(random, inputs.len())];
                let other_start = below(random, other.len() + 1);
                input.splice(start.., other[other_start..].iter().copied());
            }
            _ => input.iter_mut().skip(start).take(1).for_each(|byte| *byte = [0, 1, 0x7f, 0xff][below(random, 4)]),
        }
        input.truncate(MAX_INPUT_BYTES);
    }
    input
}

/// Makes a fuzz target of a check, a function of bytes.
#[macro_export]
macro_rules! target {
    ($check:path) => {
        #[cfg(fuzzing)]
        libfuzzer_sys::fuzz_target!(|data: &[u8]| $check(data));

        #[cfg(not(fuzzing))]
        fn main() {
            $crate::check_files($check);
        }
    };
}

/// Checks the files that the command line names.
///
/// # Panics
/// If one cannot be read, or does not pass.
pub fn check_files(check: fn(&[u8])) {
    for file in std::env::args_os().skip(1) {
        check(&std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display())));
    }
}

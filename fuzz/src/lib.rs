//! Fuzz targets: with cargo-fuzz the fuzzer calls them; otherwise they are programs that check the files on the command
//! line, so that a stable compiler builds them and repeats what a fuzzer found.

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

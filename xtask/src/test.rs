//! `cargo xtask test`: everything that is checked before a change goes in.

use crate::{bpf, kernel, setup, shell, tidy};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

mod package;

/// The file in which the tests note what they skip; `testing::SKIPS` has the same name.
const SKIPS: &str = "ROPEWALK_SKIPS";
/// Environment variable with the lab's kernel for the tests; set if it is built.
const KERNEL: &str = "ROPEWALK_LINUX";
/// Environment variable that every service for continuous integration sets.
const CI: &str = "CI";
/// Categories of skips that continuous integration accepts, because neither packages nor root would prevent them.
const ACCEPTED: &[&str] = &["kernel", "processor", "toolchain", "disturbed"];

/// Stops at the first check that fails. The tests come last, so that their summary is what one sees at the end.
pub(crate) fn run() -> Result<(), String> {
    setup::run()?;
    shell::run("cargo fmt --all --check")?;
    tidy::run(false)?;
    bpf::check()?;
    shell::run("cargo clippy --quiet --workspace --all-targets --all-features --locked -- -D warnings")?;
    shell::run_with(
        &[("RUSTDOCFLAGS", "-D warnings")],
        "cargo doc --quiet --workspace --no-deps --all-features --locked",
    )?;
    tests()
}

/// `cargo xtask test python`: the tests of the Python package alone.
pub(crate) fn python() -> Result<(), String> {
    let environment = package::environment()?;
    shell::run("cargo build --package ropewalk --all-features --locked")?;
    conclude(|variables, total| package::run(&environment, variables, total))
}

/// Every test, also after one has failed; in the end all of their binaries together, and pytest.
fn tests() -> Result<(), String> {
    conclude(|variables, total| {
        let kernel = shell::root().join(kernel::KERNEL);
        let mut variables = variables.to_vec();
        if kernel.is_file() && std::env::var_os(KERNEL).is_none() {
            variables.push((KERNEL, kernel.as_path()));
        }
        let line = "cargo test --workspace --all-features --tests --no-fail-fast --locked";
        let tests = shell::run_watched(&variables, line, |line| total.add(line));
        total.end_binary();
        let package_tests = match package::environment() {
            Ok(environment) => package::run(&environment, &variables, total),
            // Without a network there is none.
            Err(error) => {
                total.skipped.insert("pytest".to_owned(), format!("missing: {error}"));
                Ok(())
            }
        };
        tests.and(package_tests)
    })
}

/// Runs `tests`, which are given the variable with the file for notes of skipped ones, and prints the summary.
fn conclude(tests: impl FnOnce(&[(&str, &Path)], &mut TestTotals) -> Result<(), String>) -> Result<(), String> {
    let skip_notes = shell::target().join("skips");
    let io_error = |error: std::io::Error| format!("{}: {error}", skip_notes.display());
    fs::create_dir_all(shell::target()).and_then(|()| fs::write(&skip_notes, "")).map_err(io_error)?;
    let mut total = TestTotals::default();
    let tests = tests(&[(SKIPS, skip_notes.as_path())], &mut total);
    total.skip(&fs::read_to_string(&skip_notes).map_err(io_error)?);
    shell::print(&total.summary())?;
    let unaccepted = if std::env::var_os(CI).is_some() { total.unaccepted() } else { 0 };
    if unaccepted > 0 {
        return Err(format!("{unaccepted} tests were skipped that continuous integration has to run"));
    }
    tests
}

/// The results of all test binaries, read from the output of cargo and of the binaries.
#[derive(Debug, Default, PartialEq, Eq)]
struct TestTotals {
    passed: u64,
    failed: Vec<String>,
    /// The reason, by the name of the test.
    skipped: BTreeMap<String, String>,
    /// The test binary that is running.
    binary: Option<String>,
}

impl TestTotals {
    fn add(&mut self, line: &str) {
        let tokens: Vec<&str> = line.split_whitespace().collect();
        match tokens[..] {
            ["Running", .., file] if file.starts_with('(') => self.begin_binary(binary_name(file)),
            ["Doc-tests", package] => self.begin_binary(package.to_owned()),
            ["test", name, "...", "FAILED"] => self.failed.push(self.name(name)),
            ["test", name, "...", "ignored,", ..] | ["test", name, "...", "ignored"] => {
                let reason = line.split_once("ignored,").map_or("", |(_, reason)| reason.trim());
                self.skipped.insert(self.name(name), format!("ignored {reason}"));
            }
            ["test", "result:", _, passed, "passed;", ..] => {
                self.passed += passed.parse::<u64>().unwrap_or(0);
                self.binary = None;
            }
            _ => {}
        }
    }

    /// A line of pytest: in its summary the failed tests, at last the numbers, between `=`.
    fn add_pytest(&mut self, line: &str) {
        let tokens: Vec<&str> = line.split_whitespace().collect();
        if let ["FAILED" | "ERROR", test, ..] = tokens[..] {
            self.failed.push(self.name(test));
        }
        if !line.starts_with('=') || !tokens.contains(&"in") {
            return;
        }
        for pair in tokens.windows(2) {
            // A skipped test makes a note, as one of cargo's, which counts as passed.
            if ["passed", "skipped"].contains(&pair[1].trim_end_matches(',')) {
                self.passed += pair[0].parse::<u64>().unwrap_or(0);
            }
        }
        self.binary = None;
    }

    fn name(&self, test: &str) -> String {
        format!("{}::{test}", self.binary.as_deref().unwrap_or("?"))
    }

    fn begin_binary(&mut self, binary: String) {
        self.end_binary();
        self.binary = Some(binary);
    }

    /// A binary that ends without a result has crashed.
    fn end_binary(&mut self) {
        self.failed.extend(self.binary.take().map(|binary| format!("{binary}: ended without a result")));
    }

    /// Adds the notes of the tests, a line each: `CATEGORY PROGRAM::TEST: REASON`. Cargo counts such a test as passed.
    fn skip(&mut self, skip_notes: &str) {
        let prior_count = self.skipped.len();
        for (category, test_and_reason) in skip_notes.lines().filter_map(|line| line.split_once(' ')) {
            let (test, reason) = test_and_reason.split_once(": ").unwrap_or((test_and_reason, ""));
            self.skipped.entry(test.to_owned()).or_insert_with(|| format!("{category}: {reason}"));
        }
        self.passed = self.passed.saturating_sub((self.skipped.len() - prior_count) as u64);
    }

    /// The number of skips of a category that is not accepted.
    fn unaccepted(&self) -> usize {
        let accepted = |reason: &&String| ACCEPTED.iter().any(|category| reason.split(':').next() == Some(category));
        self.skipped.values().filter(|reason| !accepted(reason)).count()
    }

    fn summary(&self) -> String {
        let skipped = self.skipped.iter().map(|(test, reason)| format!("skipped: {test}: {reason}\n"));
        let failed = self.failed.iter().map(|test| format!("FAILED: {test}\n"));
        let lines: String = skipped.chain(failed).collect();
        let (failed, skipped) = (self.failed.len(), self.skipped.len());
        format!("\n{lines}\n{} passed, {failed} failed, {skipped} skipped\n", self.passed)
    }
}

/// `(target/debug/deps/lab-0123456789abcdef)` is `lab`.
fn binary_name(file: &str) -> String {
    let path = Path::new(file.trim_matches(['(', ')']));
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    stem.rsplit_once('-').map_or(stem.as_ref(), |(name, _hash)| name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
     Running unittests src/lib.rs (target/debug/deps/units-0123456789abcdef)
test a_test_called_9_passed ... ok
test another ... FAILED
test result: FAILED. 7 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.03s
     Running tests/lab/main.rs (target/debug/deps/lab-0123456789abcdef)
test netns::one ... ok
test netns::two ... ignored, it takes an hour
test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 1.50s
     Running tests/crash.rs (target/debug/deps/crash-0123456789abcdef)
   Doc-tests ropewalk_units
test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    fn total(skip_notes: &str) -> TestTotals {
        let mut total = TestTotals::default();
        OUTPUT.lines().for_each(|line| total.add(line));
        total.end_binary();
        total.skip(skip_notes);
        total
    }

    #[test]
    fn summaries_add_up_and_end_with_one_line() {
        let total = total("disturbed lab::netns::one: the CPU was busy\ndisturbed lab::netns::one: again\n");
        let expected = "\n\
            skipped: lab::netns::one: disturbed: the CPU was busy\n\
            skipped: lab::netns::two: ignored it takes an hour\n\
            FAILED: units::another\n\
            FAILED: crash: ended without a result\n\n\
            8 passed, 2 failed, 2 skipped\n";
        assert_eq!(total.summary(), expected);
    }

    #[test]
    fn the_numbers_of_pytest_are_added() {
        let mut total = TestTotals { passed: 2, ..TestTotals::default() };
        total.begin_binary("pytest".to_owned());
        let lines = [
            "python/tests/test_run.py ..s.F        [100%]",
            "=========== short test summary info ===========",
            "FAILED python/tests/test_run.py::test_in_5_passed - assert 3 passed in 4",
            "====== 1 failed, 3 passed, 1 skipped in 2.48s ======",
        ];
        lines.iter().for_each(|line| total.add_pytest(line));
        total.end_binary();
        total.skip("missing pytest::test_b: no program\n");
        let expected = "\n\
            skipped: pytest::test_b: missing: no program\n\
            FAILED: pytest::python/tests/test_run.py::test_in_5_passed\n\n\
            5 passed, 1 failed, 1 skipped\n";
        assert_eq!(total.summary(), expected);
    }

    #[test]
    fn skips_for_missing_packages_or_root_are_not_accepted() {
        assert_eq!(total("kernel lab::netns::one: no MPTCP\n").unaccepted(), 1, "an ignored test has no listed reason");
        assert_eq!(total("missing lab::netns::one: no root\n").unaccepted(), 2);
    }
}

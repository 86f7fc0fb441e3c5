//! The results of all tests, read from the output of the test programs, cargo's doc tests and pytest.

use std::collections::BTreeMap;

/// Categories of skips that continuous integration accepts, because neither packages nor root would prevent them.
const ACCEPTED: &[&str] = &["kernel", "processor", "toolchain", "disturbed"];
/// Number of the slowest tests that are listed.
const SLOWEST: usize = 20;

/// The results of all tests.
#[derive(Debug, Default, PartialEq)]
pub(super) struct TestTotals {
    pub(super) passed: u64,
    pub(super) failed: Vec<String>,
    /// Tests that failed next to others and passed alone.
    pub(super) unsteady: Vec<String>,
    /// The reason, by the name of the test.
    pub(super) skipped: BTreeMap<String, String>,
    /// Wall seconds of each test that reports them, and its name.
    times: Vec<(f64, String)>,
    /// The test program that is running.
    binary: Option<String>,
}

impl TestTotals {
    /// A line of a test program, or of cargo's doc tests.
    pub(super) fn add(&mut self, line: &str) {
        let tokens: Vec<&str> = line.split_whitespace().collect();
        match tokens[..] {
            ["Doc-tests", package] => self.begin_binary(package.to_owned()),
            ["test", name, "...", result, ..] => self.add_test(name, result, line),
            ["test", "result:", _, passed, "passed;", ..] => {
                self.passed += passed.parse::<u64>().unwrap_or(0);
                self.binary = None;
            }
            _ => {}
        }
        if let ["test", name, .., time] = tokens[..] {
            let seconds = time.strip_prefix('<').and_then(|time| time.strip_suffix("s>"));
            self.times.extend(seconds.and_then(|seconds| Some((seconds.parse().ok()?, self.name(name)))));
        }
    }

    fn add_test(&mut self, test: &str, result: &str, line: &str) {
        match result.trim_end_matches(',') {
            "FAILED" => self.failed.push(self.name(test)),
            "ignored" => {
                let reason = line.split_once("ignored,").map_or("", |(_, reason)| reason.trim());
                self.skipped.insert(self.name(test), format!("ignored {reason}"));
            }
            _ => {}
        }
    }

    /// A line of pytest: the failed tests in its summary, the numbers between `=` at the end, and the slowest tests before
    /// it.
    pub(super) fn add_pytest(&mut self, line: &str) {
        let tokens: Vec<&str> = line.split_whitespace().collect();
        match tokens[..] {
            ["FAILED" | "ERROR", test, ..] => self.failed.push(self.name(test)),
            [seconds, "call", test] => {
                let seconds = seconds.strip_suffix('s').and_then(|seconds| seconds.parse().ok());
                self.times.extend(seconds.map(|seconds| (seconds, self.name(test))));
            }
            _ => {}
        }
        if !line.starts_with('=') || !tokens.contains(&"in") {
            return;
        }
        for pair in tokens.windows(2) {
            // A skipped test makes a note, as tests of cargo do; it counts as passed.
            if ["passed", "skipped"].contains(&pair[1].trim_end_matches(',')) {
                self.passed += pair[0].parse::<u64>().unwrap_or(0);
            }
        }
        self.binary = None;
    }

    /// A line of `frameworks.py`: `PART: as expected (...)`, `PART: skipped, ...` or `PART: FAILED`, and the last one.
    pub(super) fn add_part(&mut self, line: &str) {
        let Some((part, result)) = line.split_once(": ") else { return };
        match result.split_once([',', ' ']).map_or(result, |(first, _)| first) {
            "as" => self.passed += 1,
            "skipped" => {
                let reason = result.trim_start_matches("skipped, ");
                self.skipped.insert(self.name(part), format!("missing: {reason}"));
            }
            "FAILED" => self.failed.push(self.name(part)),
            "tried" => self.binary = None,
            _ => {}
        }
    }

    /// Adds the results of another thread.
    pub(super) fn merge(&mut self, other: Self) {
        let Self { passed, failed, unsteady, skipped, times, binary } = other;
        self.passed += passed;
        self.failed.extend(failed);
        self.unsteady.extend(unsteady);
        self.skipped.extend(skipped);
        self.times.extend(times);
        debug_assert_eq!(binary, None, "it has ended");
    }

    fn name(&self, test: &str) -> String {
        format!("{}::{test}", self.binary.as_deref().unwrap_or("?"))
    }

    pub(super) fn begin_binary(&mut self, binary: String) {
        self.end_binary();
        self.binary = Some(binary);
    }

    /// A program that ends without a result has crashed.
    pub(super) fn end_binary(&mut self) {
        self.failed.extend(self.binary.take().map(|binary| format!("{binary}: ended without a result")));
    }

    /// Adds the notes of the tests, one per line: `CATEGORY PROGRAM::TEST: REASON`. Their programs count such a test as
    /// passed.
    pub(super) fn skip(&mut self, skip_notes: &str) {
        let prior_count = self.skipped.len();
        for (category, test_and_reason) in skip_notes.lines().filter_map(|line| line.split_once(' ')) {
            let (test, reason) = test_and_reason.split_once(": ").unwrap_or((test_and_reason, ""));
            self.skipped.entry(test.to_owned()).or_insert_with(|| format!("{category}: {reason}"));
        }
        self.passed = self.passed.saturating_sub((self.skipped.len() - prior_count) as u64);
    }

    /// The number of skips of a category that is not accepted.
    pub(super) fn unaccepted(&self) -> usize {
        let accepted = |reason: &&String| ACCEPTED.iter().any(|category| reason.split(':').next() == Some(category));
        self.skipped.values().filter(|reason| !accepted(reason)).count()
    }

    /// The slowest tests, the slowest first.
    pub(super) fn slowest(&self) -> String {
        let mut times: Vec<_> = self.times.iter().collect();
        times.sort_by(|a, b| b.0.total_cmp(&a.0));
        let lines = times.iter().take(SLOWEST).map(|(seconds, name)| format!("  {seconds:7.2} s  {name}\n"));
        format!("\n  the slowest tests, wall time\n{}", lines.collect::<String>())
    }

    /// An error if a test has failed.
    pub(super) fn result(&self) -> Result<(), String> {
        if self.failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", self.failed.join(", "))) }
    }

    /// The skipped, the unsteady and the failed tests, and last the numbers.
    pub(super) fn summary(&self) -> String {
        let skipped = self.skipped.iter().map(|(test, reason)| format!("skipped: {test}: {reason}\n"));
        let unsteady =
            self.unsteady.iter().map(|test| format!("UNSTEADY, failed next to others, passed alone: {test}\n"));
        let failed = self.failed.iter().map(|test| format!("FAILED: {test}\n"));
        let lines: String = skipped.chain(unsteady).chain(failed).collect();
        let (failed, skipped) = (self.failed.len(), self.skipped.len());
        format!("\n{lines}\n{} passed, {failed} failed, {skipped} skipped\n", self.passed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
test a_test_called_9_passed ... ok <0.021s>
test another ... FAILED <1.500s>
test result: FAILED. 7 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.03s
";
    const LAB: &str = "\
test netns::one ... ok <0.400s>
test netns::two ... ignored, it takes an hour
test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 1.50s
";
    const DOC_TESTS: &str = "\
   Doc-tests ropewalk_units
test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    fn total(skip_notes: &str) -> TestTotals {
        let mut total = TestTotals::default();
        for (binary, output) in [("units", OUTPUT), ("lab", LAB), ("crash", "")] {
            total.begin_binary(binary.to_owned());
            output.lines().for_each(|line| total.add(line));
            total.end_binary();
        }
        DOC_TESTS.lines().for_each(|line| total.add(line));
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
    fn an_unsteady_test_is_named_and_no_error() {
        let mut total = TestTotals { passed: 9, unsteady: vec!["lab::one".to_owned()], ..TestTotals::default() };
        let expected = "\nUNSTEADY, failed next to others, passed alone: lab::one\n\n9 passed, 0 failed, 0 skipped\n";
        assert_eq!((total.summary().as_str(), total.result()), (expected, Ok(())));
        total.failed.push("lab::two".to_owned());
        assert_eq!(total.result(), Err("failed: lab::two".to_owned()));
    }

    #[test]
    fn the_slowest_test_comes_first() {
        let expected = "\n  the slowest tests, wall time\n     \
            1.50 s  units::another\n     \
            0.40 s  lab::netns::one\n     \
            0.02 s  units::a_test_called_9_passed\n";
        assert_eq!(total("").slowest(), expected);
    }

    #[test]
    fn the_numbers_of_pytest_are_added() {
        let mut total = TestTotals { passed: 2, ..TestTotals::default() };
        total.begin_binary("pytest".to_owned());
        let lines = [
            "python/tests/test_run.py ..s.F        [100%]",
            "============ slowest 20 durations =============",
            "1.25s call     python/tests/test_run.py::test_a",
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
        assert_eq!(total.times, [(1.25, "pytest::python/tests/test_run.py::test_a".to_owned())]);
    }

    #[test]
    fn the_parts_of_frameworks_are_counted() {
        let mut total = TestTotals::default();
        total.begin_binary("frameworks".to_owned());
        let lines = [
            "torch_rl: as expected (torchrl 0.14.1, pettingzoo 1.27.0)",
            "rllib: skipped, ray is missing",
            "ValueError: no such thing",
            "recording: FAILED",
            "parts: tried 3",
        ];
        lines.iter().for_each(|line| total.add_part(line));
        total.end_binary();
        let expected = "\n\
            skipped: frameworks::rllib: missing: ray is missing\n\
            FAILED: frameworks::recording\n\n\
            1 passed, 1 failed, 1 skipped\n";
        assert_eq!(total.summary(), expected);
    }

    #[test]
    fn skips_for_missing_packages_or_root_are_not_accepted() {
        assert_eq!(total("kernel lab::netns::one: no MPTCP\n").unaccepted(), 1, "an ignored test has no listed reason");
        assert_eq!(total("missing lab::netns::one: no root\n").unaccepted(), 2);
    }
}

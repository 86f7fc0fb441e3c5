//! `cargo xtask test`: everything that is checked before a change goes in.

use crate::{setup, shell, tidy};

/// Stops at the first failure. The tests come last, so that their summary is what one sees at the end.
pub(crate) fn run() -> Result<(), String> {
    setup::run()?;
    shell::run("cargo fmt --all --check")?;
    shell::run("cargo clippy --quiet --workspace --all-targets -- -D warnings")?;
    tidy::run(false)?;
    let mut total = Total::default();
    let tests = shell::run_watched("cargo test --workspace", |line| total.add(line));
    // Cargo closes with its last test binary, often one without tests: say what all of them came to.
    shell::say(&format!("\n{} passed, {} failed, {} skipped\n", total.passed, total.failed, total.ignored))?;
    tests
}

/// The sums of cargo's own summary lines.
#[derive(Debug, Default, PartialEq, Eq)]
struct Total {
    passed: i64,
    failed: i64,
    ignored: i64,
}

impl Total {
    fn add(&mut self, line: &str) {
        // A test that lacks something outside says so and passes.
        if line.starts_with("skipped: ") {
            self.ignored += 1;
            self.passed -= 1;
        }
        let Some(counts) = line.strip_prefix("test result: ") else { return };
        for part in counts.split(['.', ';']) {
            let mut words = part.split_whitespace();
            let (Some(Ok(count)), Some(what)) = (words.next().map(str::parse::<i64>), words.next()) else { continue };
            match what {
                "passed" => self.passed += count,
                "failed" => self.failed += count,
                "ignored" => self.ignored += count,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_add_up() {
        let mut total = Total::default();
        total.add("test result: ok. 7 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.03s");
        total.add("test a_test_called_9_passed ... ok");
        total.add("test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.50s");
        total.add("skipped: there is no kernel here");
        assert_eq!(total, Total { passed: 8, failed: 3, ignored: 2 });
    }
}

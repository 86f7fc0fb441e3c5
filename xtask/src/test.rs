//! The tests, in two tiers: `cargo xtask test` for everyone who has just cloned the tree, `cargo xtask test --full` for
//! everything that is checked before a change goes in. Both end with a summary.

use crate::{bpf, kernel, reference, setup, shell, site, tidy, wheel};
use binaries::Binary;
use std::fs;
use std::path::Path;
use std::thread;
use timing::Timing;
use totals::TestTotals;

pub(crate) mod binaries;
mod package;
mod published;
mod quick;
mod timing;
mod totals;

/// The file in which the tests note what they skip; `testing::SKIPS` has the same name.
const SKIPS: &str = "ROPEWALK_SKIPS";
/// Environment variable with the lab's kernel for the tests; set if it is built.
const KERNEL: &str = "ROPEWALK_LINUX";
/// Environment variable that every service for continuous integration sets.
const CI: &str = "CI";

/// The line of cargo's that builds the tests of the full tier.
const BUILD: &str = "cargo test --workspace --all-features --tests --locked";

/// A part of the full tier's tests.
struct Part {
    name: &'static str,
    /// Whether its tests spend most of their time waiting for timers, daemons and guests. Such parts run at the same time as
    /// those that compute.
    waits: bool,
    /// The prefixes of the names of its programs.
    programs: &'static [&'static str],
}

/// The most failed tests that are run again.
const MOST_AGAIN: usize = 3;

/// A program belongs to the first part that matches.
const PARTS: [Part; 6] = [
    Part { name: "Debian with systemd", waits: true, programs: &["ropewalk::boot"] },
    Part { name: "tunnel in namespaces", waits: true, programs: &["ropewalk::tunnel", "ropewalk-daemon"] },
    Part { name: "lab", waits: true, programs: &["ropewalk::lab", "ropewalk-lab"] },
    Part {
        name: "kernel programs",
        waits: true,
        programs: &["ropewalk::kernel", "ropewalk-kernel", "ropewalk-stress"],
    },
    Part { name: "artefacts", waits: false, programs: &["xtask::"] },
    Part { name: "simulator and pure crates", waits: false, programs: &[""] },
];

/// Options of test programs. The tests of the tunnel wait for daemons for most of their time.
const OPTIONS: [(&str, &[&str]); 1] = [("ropewalk::tunnel", &["--test-threads=4"])];

/// `cargo xtask test`: a check within minutes that the tree works here.
pub(crate) fn quick() -> Result<(), String> {
    quick_of(setup::install_quick, &quick::build_line())
}

/// `cargo xtask test --all-features`: the same tests, built as the full tier builds them, which then need not build them
/// again.
pub(crate) fn quick_all_features() -> Result<(), String> {
    quick_of(setup::run, BUILD)
}

fn quick_of(packages: impl FnOnce() -> Result<(), String>, build_line: &str) -> Result<(), String> {
    let mut timing = Timing::start();
    timing.part("packages", packages)?;
    let binaries = timing.part("build", || binaries::build(build_line))?;
    timing.part("generated files", check_generated)?;
    let result = conclude(&mut timing, |timing, variables, total| {
        let variables = quick::variables(variables);
        timing.part("tests", || {
            run_all(quick::selected(&binaries), &variables, total);
            run_again(&binaries, &variables, total);
        });
        total.result()
    });
    shell::print("The rest (lints, documentation, Python, lab, kernels, artefacts): cargo xtask test --full\n")?;
    result
}

/// `cargo xtask test --full`: everything. It stops at the first check that fails. The tests come last, so that their summary
/// is the last output.
pub(crate) fn full() -> Result<(), String> {
    let mut timing = Timing::start();
    timing.part("packages", setup::run)?;
    timing.part("formatting, house rules", || shell::run("cargo fmt --all --check").and_then(|()| tidy::run(false)))?;
    timing.part("eBPF objects", bpf::check)?;
    timing.part("lints", || lints("--workspace --all-targets --all-features"))?;
    timing.part("lints of the quick tier", || lints(&format!("--tests {}", quick::selection())))?;
    let documentation = "cargo doc --quiet --workspace --no-deps --all-features --locked";
    timing.part("documentation", || shell::run_with(&[("RUSTDOCFLAGS", "-D warnings")], documentation))?;
    timing.part("published packages", published::check)?;
    let binaries = timing.part("build of the tests", || binaries::build(BUILD))?;
    timing.part("generated files", check_generated)?;
    conclude(&mut timing, |timing, variables, total| {
        let kernel = shell::root().join(kernel::KERNEL);
        let mut variables = variables.to_vec();
        if kernel.is_file() && std::env::var_os(KERNEL).is_none() {
            variables.push((KERNEL, kernel.as_path()));
        }
        let mut results = vec![timing.part("doc tests", || doc_tests(total))];
        let (binaries, variables) = (&*binaries, &*variables);
        let lanes = thread::scope(|scope| {
            let lanes = [false, true].map(|waits| scope.spawn(move || Lane::run(waits, binaries, variables)));
            lanes.map(|lane| lane.join().expect("it does not panic"))
        });
        for lane in lanes {
            timing.add(lane.timing);
            total.merge(lane.total);
            results.extend(lane.results);
        }
        timing.part("failed tests again", || run_again(binaries, variables, total));
        results.push(total.result());
        results.into_iter().collect()
    })
}

/// Whether what is generated from the program is current.
fn check_generated() -> Result<(), String> {
    let program = shell::target().join("debug/ropewalk");
    reference::check(&program)?;
    wheel::check_types(&program)
}

fn lints(selection: &str) -> Result<(), String> {
    shell::run(&format!("cargo clippy --quiet --locked {selection} -- -D warnings"))
}

/// `cargo xtask test python`: the tests of the Python package alone.
pub(crate) fn python() -> Result<(), String> {
    let environment = package::environment()?;
    shell::run("cargo build --package ropewalk --all-features --locked")?;
    conclude(&mut Timing::start(), |timing, variables, total| {
        timing.part("Python", || package::run(&environment, variables, total))
    })
}

/// `cargo xtask test frameworks`: the tests of the Python package, and what tries the environments with frameworks that
/// need PyTorch.
pub(crate) fn frameworks() -> Result<(), String> {
    let mut timing = Timing::start();
    let environment = timing.part("packages", package::frameworks_environment)?;
    timing.part("build", || shell::run("cargo build --package ropewalk --all-features --locked"))?;
    conclude(&mut timing, |timing, variables, total| {
        timing.part("Python and frameworks", || package::run_frameworks(&environment, variables, total))
    })
}

/// The parts that compute, among them Python's, or those that wait: one after another, next to the other lane.
struct Lane {
    timing: Timing,
    total: TestTotals,
    /// Of the parts that are no test programs of cargo's.
    results: Vec<Result<(), String>>,
}

impl Lane {
    fn run(waits: bool, binaries: &[Binary], variables: &[(&str, &Path)]) -> Self {
        let (mut timing, mut total) = (Timing::start(), TestTotals::default());
        for part in PARTS.iter().rev().filter(|part| part.waits == waits) {
            let of_part = binaries.iter().filter(|binary| part_of(&binary.name) == part.name);
            let with_options = of_part.map(|binary| (binary, options_of(&binary.name)));
            timing.part(part.name, || run_all(with_options, variables, &mut total));
        }
        let mut results = Vec::new();
        if !waits {
            results.push(timing.part("Python", || python_tests(variables, &mut total)));
            results.push(timing.part("site", || site_tests(&mut total)));
        }
        Self { timing, total, results }
    }
}

fn part_of(binary: &str) -> &'static str {
    let part = PARTS.iter().find(|part| part.programs.iter().any(|beginning| binary.starts_with(beginning)));
    part.map_or("", |part| part.name)
}

fn options_of(binary: &str) -> &'static [&'static str] {
    OPTIONS.iter().find(|(name, _)| *name == binary).map_or(&[], |(_, options)| options)
}

/// Runs the programs one after another, each with its filters, even after one has failed.
fn run_all<'b, 'f>(
    binaries: impl Iterator<Item = (&'b Binary, &'f [&'f str])>,
    variables: &[(&str, &Path)],
    total: &mut TestTotals,
) {
    binaries.for_each(|(binary, filters)| binary.run(filters, variables, total));
}

/// Runs each failed test once more, alone. One that passes then depends on its neighbours or on the machine: the summary
/// names it, and it is a fault of the test to be mended. More than [`MOST_AGAIN`] are no chance.
fn run_again(binaries: &[Binary], variables: &[(&str, &Path)], total: &mut TestTotals) {
    let find = |name: &String| binaries.iter().find_map(|binary| Some((binary, binary.test_of(name)?.to_owned())));
    let found: Vec<_> = total.failed.iter().filter_map(|name| Some((name.clone(), find(name)?))).collect();
    if found.len() > MOST_AGAIN {
        return;
    }
    for (name, (binary, test)) in found {
        total.failed.retain(|failed| *failed != name);
        binary.run(&[&test, "--exact"], variables, total);
        if !total.failed.contains(&name) {
            total.unsteady.push(name);
        }
    }
}

fn doc_tests(total: &mut TestTotals) -> Result<(), String> {
    let line = "cargo test --workspace --all-features --doc --no-fail-fast --locked";
    let tests = shell::run_watched("doc tests", &[], line, |line| total.add(line));
    total.end_binary();
    tests
}

fn python_tests(variables: &[(&str, &Path)], total: &mut TestTotals) -> Result<(), String> {
    match package::environment() {
        Ok(environment) => package::run(&environment, variables, total),
        // Without a network there is no environment.
        Err(error) => {
            total.skipped.insert("pytest".to_owned(), format!("missing: {error}"));
            Ok(())
        }
    }
}

fn site_tests(total: &mut TestTotals) -> Result<(), String> {
    match site::tools() {
        Ok(_) => site::check(),
        // Without a network there are no environments.
        Err(error) => {
            total.skipped.insert("site".to_owned(), format!("missing: {error}"));
            Ok(())
        }
    }
}

/// Runs `tests`, which get the variable with the file for notes of skipped ones. Prints the cost of each part, the slowest
/// tests, and the summary.
fn conclude(
    timing: &mut Timing,
    tests: impl FnOnce(&mut Timing, &[(&str, &Path)], &mut TestTotals) -> Result<(), String>,
) -> Result<(), String> {
    let skip_notes = shell::target().join("skips");
    let io_error = |error: std::io::Error| format!("{}: {error}", skip_notes.display());
    fs::create_dir_all(shell::target()).and_then(|()| fs::write(&skip_notes, "")).map_err(io_error)?;
    let mut total = TestTotals::default();
    let tests = tests(timing, &[(SKIPS, skip_notes.as_path())], &mut total);
    total.skip(&fs::read_to_string(&skip_notes).map_err(io_error)?);
    shell::print(&(timing.table() + &total.slowest() + &total.summary()))?;
    let unaccepted = if std::env::var_os(CI).is_some() { total.unaccepted() } else { 0 };
    if unaccepted > 0 {
        return Err(format!("{unaccepted} tests were skipped that continuous integration has to run"));
    }
    tests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_belongs_to_a_part() {
        assert_eq!(part_of("xtask::artefacts"), "artefacts");
        assert_eq!(part_of("ropewalk::boot"), "Debian with systemd");
        assert_eq!(part_of("ropewalk::tunnel"), "tunnel in namespaces");
        assert_eq!(part_of("ropewalk-kernel::parity"), "kernel programs");
        assert_eq!(part_of("ropewalk-sim::suite"), "simulator and pure crates");
        assert_eq!(part_of("xtask"), "simulator and pure crates");
    }
}

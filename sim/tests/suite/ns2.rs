//! Comparison with another simulator: ns-2.35 with its TCP-Linux agents, on the long path of the study of fourteen
//! algorithms.
//!
//! The scenario has ns-2's measurements as references; our hosts with the profile "ns-2" have to come close to it, and
//! where ns-2 is installed, it has to give the same again. Its algorithms are those of Linux around 2.6.22: where ours,
//! of 6.1, differ, a parameter or a named reason says so. Each reason was tried: with ns-2's rule in our code, 120
//! seconds come within 7 % of ns-2 for Illinois, Vegas and Westwood+.
//!
//! Prints simulated against ns-2: `cargo test -p ropewalk-sim --test suite ns2 -- --nocapture`.

use crate::common::{column, mean};
use record::Run;
use scenario::{Overrides, Scenario};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use testing::{Reason, skip};

/// The case's arguments for `ns2.tcl`: rate and delay of the edges, delay of the middle, background.
const CASES: [(&str, [&str; 4]); 4] = [
    ("wrfl-1", ["1024Mb", "200ms", "250ms", "0"]),
    ("wrfl-2", ["1024Mb", "200ms", "250ms", "1"]),
    ("wrfl-1a", ["100Mb", "250ms", "350ms", "0"]),
    ("wrfl-2a", ["100Mb", "250ms", "350ms", "1"]),
];

/// Seconds since the start over which throughput is taken.
const WINDOWS: [f64; 3] = [10.0, 15.0, 120.0];

/// Our algorithms with ns-2's constants, where that is all that differs.
const CONSTANTS: [(&str, &str); 2] =
    [("cubic", "{ name = \"cubic\", beta = 0.8 }"), ("scalable", "{ name = \"scalable\", period = 50 }")];

/// Why an algorithm need not come within the tolerance once losses have been answered: after the first ten seconds.
const REASONS: [(&str, &str); 5] = [
    ("compound", "ns-2's knows delays only from timestamps; without them it is Reno (see below)"),
    ("hybla", "a storm: most of what it retransmits never leaves the sender's queue of 50 packets"),
    ("illinois", "ns-2's keeps beta of the window where it should give it up, as in Linux then"),
    ("vegas", "ns-2's grows every second round trip, as in Linux then"),
    ("westwood", "ns-2's agent does not tell it that a reduction is over, so its estimate is not used"),
];

/// The throughput of ns-2's Compound with timestamps, Mbit/s over the windows, in the order of the cases.
const COMPOUND_WITH_TIMESTAMPS: [[f64; 4]; 3] =
    [[0.415, 0.250, 0.293, 0.182], [0.475, 0.269, 0.333, 0.197], [3.222, 0.736, 1.568, 0.584]];

/// Throughput in Mbit/s over each window, in each case.
type Measured = [[f64; 4]; 3];

fn scenario(sets: &[String]) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/papers/ahmad-ngadi.toml");
    let sets = sets.iter().cloned().chain(["host.profile=ns-2".to_owned()]).collect();
    scenario::load(&path, &Overrides { sets, quick: false }).unwrap_or_else(|error| panic!("{error}"))
}

/// The algorithms and what ns-2 made of them, from the references of the first three tables.
fn references() -> BTreeMap<String, Measured> {
    let tables = report::layout(&scenario(&[])).expect("it is shipped").tables;
    let mut references = BTreeMap::<String, Measured>::new();
    for (window, table) in tables.iter().take(WINDOWS.len()).enumerate() {
        let [reference] = &table.references[..] else { panic!("one reference: ns-2") };
        assert_eq!(reference.columns, CASES.map(|(case, _)| case));
        for (algorithm, values) in &reference.rows {
            let values = values.iter().map(|value| value.expect("no holes in this reference"));
            let row = &mut references.entry(algorithm.clone()).or_default()[window];
            values.zip(row).for_each(|(value, cell)| *cell = value);
        }
    }
    references
}

/// The throughput in the simulator.
fn simulated(algorithm: &str, sets: &[&str]) -> Measured {
    let constants = CONSTANTS.iter().find(|(name, _)| *name == algorithm).map_or(algorithm, |(_, value)| value);
    let mut sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    sets.push(format!("flow.ftp.congestion={constants}"));
    let cells = scenario(&sets).cells;
    assert_eq!(cells.len(), CASES.len());
    let mut measured = Measured::default();
    for (case, cell) in cells.iter().enumerate() {
        assert_eq!(cell.parameters[0].1, CASES[case].0);
        let run = ropewalk_sim::run(&cell.experiment, 1).expect("registered");
        for (window, end_s) in WINDOWS.iter().enumerate() {
            measured[window][case] = throughput(&run, *end_s);
        }
    }
    measured
}

/// Mean throughput until `end_s`.
fn throughput(run: &Run, end_s: f64) -> f64 {
    let samples = run.series[0].time_s.iter().filter(|time| **time < end_s + 1e-6).count();
    mean(&column(run, "flow ftp", "throughput_mbps")[..samples])
}

/// Prints a row for each window and the ratios of the means.
fn compare(algorithm: &str, ours: &Measured, theirs: &Measured) -> [f64; 3] {
    let ratio = |window: usize| mean(&ours[window]) / mean(&theirs[window]);
    for (window, end_s) in WINDOWS.iter().enumerate() {
        let cells: String = ours[window]
            .iter()
            .zip(theirs[window])
            .map(|(ours, theirs)| format!("{ours:>9.3} /{theirs:>6.3}"))
            .collect();
        println!("{algorithm:<11}{end_s:>5} s{cells}{:>8.3}", ratio(window));
    }
    [0, 1, 2].map(ratio)
}

/// Over the four flows: the first ten seconds within 10 %, Hybla's within 20 % (its storm begins after 1.3 s); the
/// whole run within 20 %, but for the named reasons.
#[test]
fn fourteen_algorithms_carry_what_they_carry_in_ns_2() {
    println!(
        "Mbit/s, simulated / ns-2{:>10}{:>16}{:>16}{:>16}{:>12}",
        "WrFl-1", "WrFl-2", "WrFl-1a", "WrFl-2a", "mean"
    );
    let references = references();
    assert_eq!(references.len(), 14);
    for (algorithm, theirs) in &references {
        let ratios = compare(algorithm, &simulated(algorithm, &[]), theirs);
        let tolerance = if algorithm == "hybla" { 0.2 } else { 0.1 };
        assert!((ratios[0] - 1.0).abs() < tolerance, "{algorithm}: {ratios:?}");
        match REASONS.iter().find(|(name, _)| name == algorithm) {
            Some((_, why)) => println!("{:<11}{why}", ""),
            None => assert!((ratios[2] - 1.0).abs() < 0.2, "{algorithm}: {ratios:?}"),
        }
    }
    let compound = compare("compound", &simulated("compound", &["host.timestamps=true"]), &COMPOUND_WITH_TIMESTAMPS);
    println!("{:<11}with timestamps", "");
    assert!((compound[0] - 1.0).abs() < 0.1 && (compound[2] - 1.0).abs() < 0.2, "{compound:?}");
}

/// The paper's surprise: six algorithms have the same throughput in the first ten seconds. It is the slow start that
/// all six have in common, and one halving.
#[test]
fn the_six_way_tie_of_the_first_ten_seconds_comes_out_and_hybla_is_above_all() {
    let throughputs: BTreeMap<String, f64> =
        references().keys().map(|name| (name.clone(), mean(&simulated(name, &[])[0]))).collect();
    let tied = ["compound", "highspeed", "lp", "reno", "vegas", "westwood"].map(|name| throughputs[name]);
    let (min, max) = tied.iter().fold((f64::MAX, 0.0f64), |(min, max), mbps| (min.min(*mbps), max.max(*mbps)));
    assert!((max - min) / mean(&tied) < 0.05, "{tied:?}");
    assert!(
        throughputs.iter().all(|(name, value)| name == "hybla" || *value < throughputs["hybla"] / 1.5),
        "{throughputs:?}"
    );
}

/// ns-2, where it is installed, gives the references again, within one of the last digit that was written down.
#[test]
fn ns_2_gives_the_references_again() {
    if !installed() {
        return skip(Reason::Missing, "ns2 is not installed");
    }
    for (algorithm, stored) in &references() {
        assert_same(algorithm, &ns2(algorithm, false), stored);
    }
    assert_same("compound with timestamps", &ns2("compound", true), &COMPOUND_WITH_TIMESTAMPS);
}

fn assert_same(what: &str, measured: &Measured, stored: &Measured) {
    let mut pairs = measured.as_flattened().iter().zip(stored.as_flattened());
    let is_same = pairs.all(|(measured, stored)| (measured - stored).abs() < 0.001);
    assert!(is_same, "{what}: {measured:?} for {stored:?}");
}

fn installed() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join("ns").is_file())
}

fn ns2(algorithm: &str, timestamps: bool) -> Measured {
    let mut measured = Measured::default();
    for (case, (name, arguments)) in CASES.iter().enumerate() {
        let trace = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("ns2-{algorithm}-{timestamps}-{name}"));
        let status = Command::new("ns")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ns2.tcl"))
            .arg(algorithm)
            .args(arguments)
            .arg(timestamps.to_string())
            .arg(&trace)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(status.is_ok_and(|status| status.success()), "ns {algorithm} {arguments:?}");
        let lines = std::fs::read_to_string(&trace).expect("ns-2 wrote its trace");
        std::fs::remove_file(&trace).expect("it is ours");
        WINDOWS.iter().enumerate().for_each(|(window, end_s)| measured[window][case] = received(&lines, *end_s));
    }
    measured
}

/// Mbit/s of data that reached n3 until `end_s`; the SYN has 40 bytes.
fn received(trace: &str, end_s: f64) -> f64 {
    let data = |line: &str| {
        let mut words = line.split(' ');
        let (event, time) = (words.next()?, words.next()?.parse::<f64>().ok()?);
        let bytes = words.nth(3)?.parse::<u64>().ok()?;
        (event == "r" && time <= end_s && bytes > 100).then_some(bytes)
    };
    trace.lines().filter_map(data).sum::<u64>() as f64 * 8.0 / end_s / 1e6
}

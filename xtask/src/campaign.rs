//! `cargo xtask campaign`: tests that draw a situation from each seed, over any number of seeds, in pieces. The pieces that
//! have passed are recorded, so that an interrupted campaign continues where it stopped.

use crate::shell;
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Environment variable with the seeds; `testing::SEEDS` has the same name.
const SEEDS: &str = "ROPEWALK_SEEDS";

/// Tests that draw a situation from each seed.
struct Campaign {
    name: &'static str,
    package: &'static str,
    /// The test program; empty for the library's unit tests.
    program: &'static str,
    /// Part of the tests' names.
    tests: &'static str,
    /// The file of these tests, in which they call `testing::campaign`.
    file: &'static str,
    /// Number of seeds per piece: a few minutes at most.
    piece: u64,
}

const CAMPAIGNS: &[Campaign] = &[
    Campaign {
        name: "fuzz",
        package: "ropewalk-fuzz",
        program: "",
        tests: "mutations_of_saved_inputs_pass_every_check",
        file: "fuzz/src/steps.rs",
        piece: 20,
    },
    Campaign {
        name: "captures",
        package: "ropewalk-trace",
        program: "suite",
        tests: "damage::no_change_of_a_capture_is_a_panic",
        file: "study/trace/tests/suite/damage.rs",
        piece: 1000,
    },
    Campaign {
        name: "tcp",
        package: "ropewalk-transport",
        program: "suite",
        tests: "any_network::",
        file: "transport/tests/suite/any_network.rs",
        piece: 3000,
    },
    Campaign {
        name: "mptcp",
        package: "ropewalk-transport",
        program: "suite",
        tests: "any_paths::",
        file: "transport/tests/suite/any_paths.rs",
        piece: 3000,
    },
    Campaign {
        name: "quic",
        package: "ropewalk-transport",
        program: "suite",
        tests: "quic::",
        file: "transport/tests/suite/quic.rs",
        piece: 3000,
    },
    Campaign {
        name: "experiments",
        package: "ropewalk-sim",
        program: "suite",
        tests: "random_experiments",
        file: "sim/tests/suite/random_experiments.rs",
        piece: 1000,
    },
    Campaign {
        name: "clean-path",
        package: "ropewalk-sim",
        program: "suite",
        tests: "clean_path::",
        file: "sim/tests/suite/clean_path.rs",
        piece: 10,
    },
    Campaign {
        name: "worlds",
        package: "ropewalk-worlds",
        program: "worlds",
        tests: "drawing::a_world_that_is_printed",
        file: "study/worlds/tests/worlds/drawing.rs",
        piece: 500,
    },
    Campaign {
        name: "shipped",
        package: "ropewalk-sim",
        program: "suite",
        tests: "shipped::",
        file: "sim/tests/suite/shipped.rs",
        piece: 500,
    },
    Campaign {
        name: "relay",
        package: "ropewalk-relay",
        program: "suite",
        tests: "transfer::both_byte_streams",
        file: "tunnel/relay/tests/suite/transfer.rs",
        piece: 1000,
    },
    Campaign {
        name: "relay-hostile",
        package: "ropewalk-relay",
        program: "suite",
        tests: "hostile::memory",
        file: "tunnel/relay/tests/suite/hostile.rs",
        piece: 1000,
    },
    Campaign {
        name: "tunnel",
        package: "ropewalk-machine",
        program: "suite",
        tests: "any_network::",
        file: "tunnel/machine/tests/suite/any_network.rs",
        piece: 1000,
    },
    Campaign {
        name: "sessions",
        package: "ropewalk-seal",
        program: "suite",
        tests: "campaign::",
        file: "tunnel/seal/tests/suite/campaign.rs",
        piece: 500,
    },
    Campaign {
        name: "hosts",
        package: "ropewalk-node",
        program: "campaign",
        tests: "the_guarantees_hold",
        file: "tunnel/node/tests/campaign/main.rs",
        piece: 500,
    },
];

/// `campaign [NAME [--seeds FROM..TO]]`: without a name, the list.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let (name, seeds) = match options {
        [] => return list(),
        [name] => (*name, 0..10_000),
        [name, "--seeds", seeds] => (*name, parse_seeds(seeds)?),
        _ => return Err("usage: cargo xtask campaign [NAME [--seeds FROM..TO]]".to_owned()),
    };
    let campaign = CAMPAIGNS.iter().find(|campaign| campaign.name == name);
    let names = || CAMPAIGNS.iter().map(|campaign| campaign.name).collect::<Vec<_>>().join(", ");
    campaign.ok_or_else(|| format!("no campaign `{name}`; there are {}", names()))?.run(&seeds)
}

fn list() -> Result<(), String> {
    let line = |campaign: &Campaign| format!("  {:14} {}\n", campaign.name, campaign.file);
    shell::print(&CAMPAIGNS.iter().map(line).collect::<String>())
}

fn parse_seeds(text: &str) -> Result<Range<u64>, String> {
    let bounds = text.split_once("..").and_then(|(start, end)| Some(start.parse().ok()?..end.parse().ok()?));
    bounds
        .filter(|seeds| !seeds.is_empty())
        .ok_or_else(|| format!("--seeds {text}: expected FROM..TO, such as 0..10000"))
}

impl Campaign {
    /// Runs the pieces that have not passed yet, up to the first that fails.
    fn run(&self, seeds: &Range<u64>) -> Result<(), String> {
        let ledger = Ledger::open(&shell::target().join("campaigns"), self.name)?;
        let pieces: Vec<_> = pieces(seeds, self.piece).into_iter().filter(|piece| !ledger.has(piece)).collect();
        let Self { package, tests, .. } = self;
        let program = if self.program.is_empty() { "--lib".to_owned() } else { format!("--test {}", self.program) };
        let line = format!("cargo test --locked -p {package} {program} -- {tests}");
        for (index, piece) in pieces.iter().enumerate() {
            let seeds = format!("{}..{}", piece.start, piece.end);
            shell::print(&format!("campaign {}: seeds {seeds}, piece {} of {}\n", self.name, index + 1, pieces.len()))?;
            shell::run_with(&[(SEEDS, &seeds)], &line)
                .map_err(|error| format!("seeds {seeds} of {}: {error}; again: {SEEDS}={seeds} {line}", self.name))?;
            ledger.add(piece)?;
        }
        shell::print(&format!("campaign {}: seeds {} to {} have passed\n", self.name, seeds.start, seeds.end - 1))
    }
}

/// The pieces of a range, which begin at multiples of their length, so that another range has the same.
fn pieces(seeds: &Range<u64>, length: u64) -> Vec<Range<u64>> {
    let first = seeds.start / length * length;
    let starts = (first..seeds.end).step_by(length as usize);
    starts.map(|start| start.max(seeds.start)..(start + length).min(seeds.end)).collect()
}

/// The pieces that have passed with the committed sources, one per line.
struct Ledger {
    file: PathBuf,
    passed: BTreeSet<String>,
}

impl Ledger {
    fn open(folder: &Path, name: &str) -> Result<Self, String> {
        // A pass with other sources proves nothing about these.
        let commit = shell::output("git rev-parse --short HEAD")?;
        let file = folder.join(format!("{name}-{}", commit.trim()));
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let passed = fs::read_to_string(&file).unwrap_or_default().lines().map(str::to_owned).collect();
        Ok(Self { file, passed })
    }

    fn has(&self, piece: &Range<u64>) -> bool {
        self.passed.contains(&format!("{}..{}", piece.start, piece.end))
    }

    fn add(&self, piece: &Range<u64>) -> Result<(), String> {
        let file = OpenOptions::new().create(true).append(true).open(&self.file);
        let written = file.and_then(|mut file| writeln!(file, "{}..{}", piece.start, piece.end));
        written.map_err(|error| format!("{}: {error}", self.file.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_the_seeds_once() {
        assert_eq!(pieces(&(250..900), 300), [250..300, 300..600, 600..900]);
        assert_eq!(pieces(&(50..310), 300), [50..300, 300..310]);
        assert!(parse_seeds("5..5").is_err() && parse_seeds("5").is_err());
    }

    #[test]
    fn what_has_passed_is_not_run_again() {
        let folder = std::env::temp_dir().join(format!("rw-campaign-{}", std::process::id()));
        Ledger::open(&folder, "a").unwrap().add(&(0..300)).unwrap();
        let [a, b] = ["a", "b"].map(|name| Ledger::open(&folder, name).unwrap());
        assert!(a.has(&(0..300)) && !a.has(&(300..600)) && !b.has(&(0..300)));
        fs::remove_dir_all(folder).unwrap();
    }

    /// A campaign that is not in the table could not be resumed.
    #[test]
    fn every_file_that_calls_a_campaign_is_in_the_table() {
        let files = shell::output("git grep -l testing::campaign( -- *.rs").unwrap();
        let expected: BTreeSet<&str> = CAMPAIGNS.iter().map(|campaign| campaign.file).collect();
        let called: BTreeSet<&str> = files.lines().filter(|file| !file.starts_with("xtask/")).collect();
        assert_eq!(called, expected);
    }
}

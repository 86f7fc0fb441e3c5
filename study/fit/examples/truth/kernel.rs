//! Hidden links of the lab, on Linux in virtual time: what the kernel measures over them is fitted, and what the simulator predicts over
//! the fitted links is compared with what the kernel carries. Candidates are what a kernel has: its algorithms, over each path alone
//! and by MPTCP. For each pair there is also advice, and what its gain over CUBIC by MPTCP was promised and measured to be.
//!
//! It needs `cargo xtask kernel` and a release build of `ropewalk` with the feature `lab`; start it in the folder of the workspace.

use crate::judge::{Hidden, PATHS, Score, THREADS, Truth, seeds};
use crate::{HEADING, line, summary};
use fit::{Advice, AdviseOptions, Candidate, Fit, Goal, Interval, Links, Mode, advise, candidates, median};
use lab::{BackendChoice, Lab, doctor};
use record::Run;
use runner::{Checked, Driver, Job};
use scenario::Scenario;
use scenario::model::FlowKind;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use units::RngStream;

/// The algorithms of the candidates.
const ALGORITHMS: [&str; 4] = ["cubic", "reno", "bbr", "vegas"];
/// The program, and its command that is the lab's agent.
const PROGRAM: &str = "target/release/ropewalk";
const AGENT: &str = "lab-agent";
const MEMBERS: usize = 8;
const EVALUATIONS: usize = 960;

/// The lab as a driver.
#[derive(Debug)]
struct Kernel(Lab);

impl Driver for Kernel {
    fn describe(&self, scenario: &Scenario) -> String {
        self.0.describe(scenario.cells.iter().map(|cell| &cell.experiment))
    }

    fn check(&self, scenario: &Scenario, _: bool) -> Result<Checked, runner::Error> {
        Ok(Checked { cells: (0..scenario.cells.len()).collect(), notes: Vec::new() })
    }

    fn jobs(&self, _: &Scenario) -> usize {
        THREADS
    }

    fn run(&self, job: &Job<'_>) -> Result<Option<Run>, String> {
        let mut experiment = job.experiment.clone();
        for flow in &mut experiment.flows {
            if let FlowKind::Tcp { host, .. } = &mut flow.kind {
                host.handshake = true; // a kernel always has one
            }
        }
        self.0.run(&experiment, job.seed, None).map(Some).map_err(|error| error.to_string())
    }

    fn setup(&self, _: &Scenario) -> Option<String> {
        None
    }
}

/// Prints a line per pair, and the summary.
pub(crate) fn print(seeds: Range<u64>) -> Result<(), Box<dyn std::error::Error>> {
    let program = Path::new(PROGRAM).canonicalize()?;
    let program = program.to_string_lossy();
    let kernel = Kernel(Lab::find(BackendChoice::Uml, &program, AGENT)?);
    let backends = doctor(&program, AGENT).backends;
    let algorithms: Vec<String> =
        backends.into_iter().filter(|backend| backend.name == "uml").flat_map(|backend| backend.congestion).collect();
    let truth = Truth {
        draw,
        driver: &kernel,
        repetitions: 3,
        runs: [2, 1],
        // No kernel of the lab sends both ways at once.
        without: vec!["call".to_owned()],
        // The first of its answers waits for the handshake.
        hold: vec!["idle.rtt p95".to_owned()],
        hosts: vec!["host.profile=linux-6.1".to_owned()],
        delay: |outcome| outcome.rtt_p95_ms,
    };
    let candidates = of_kernel();
    let (mut scores, mut verdicts) = (Vec::new(), Vec::new());
    println!("{HEADING}");
    for seed in seeds {
        let score = Score::of(&truth, seed, MEMBERS, EVALUATIONS, &candidates)?;
        println!("{}", line(&score, seed, &candidates));
        let verdict = Verdict::of(&truth, seed, &score.fit, &algorithms)?;
        println!("      {verdict}");
        scores.push(score);
        verdicts.push(verdict);
    }
    print!("{}{}", summary(&scores), of_verdicts(&verdicts));
    Ok(())
}

/// Each algorithm over each path alone, and by MPTCP.
fn of_kernel() -> Vec<Candidate> {
    let names = ALGORITHMS.map(str::to_owned);
    candidates(&PATHS.map(str::to_owned), Some(&names), false)
}

/// What was advised for a pair, promised and measured.
struct Verdict {
    advised: Candidate,
    /// Goodput of what was advised, and of the default, Mbit/s.
    promised: [Interval; 2],
    measured: [f64; 2],
}

impl Verdict {
    /// `algorithms` are those that the kernel has.
    fn of(truth: &Truth<'_>, seed: u64, fit: &Fit, algorithms: &[String]) -> Result<Self, fit::Error> {
        let links: Vec<Links> = fit.members.iter().map(|member| member.links.clone()).collect();
        let paths = PATHS.map(str::to_owned);
        let default = Candidate::default_of_linux();
        let options = AdviseOptions {
            goal: Goal::Throughput,
            default: default.clone(),
            threads: THREADS,
            error: fit.model_error,
        };
        let all = candidates(&paths, Some(algorithms), false);
        let Advice { ranked, default: as_it_is, .. } = advise(&links, &paths, &all, &options, &mut |_| true)?;
        let advised = ranked[0].candidate.clone();
        let hidden = (truth.draw)(seed).links;
        let measured = truth.outcomes(&hidden, &[advised.clone(), default], &seeds(seed, 3, 2))?;
        Ok(Self {
            advised,
            promised: [ranked[0].goodput_mbps, as_it_is.map_or(Interval::default(), |of| of.goodput_mbps)],
            measured: [measured[0].goodput_mbps, measured[1].goodput_mbps],
        })
    }

    fn came_true(&self, which: usize) -> bool {
        (self.promised[which].low..=self.promised[which].high).contains(&self.measured[which])
    }

    /// The gain over the default: promised and measured.
    fn gains(&self) -> [f64; 2] {
        [self.promised[0].median / self.promised[1].median, self.measured[0] / self.measured[1]]
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [advised, default] = [0, 1].map(|which| {
            let Interval { median, low, high } = self.promised[which];
            format!("promised {median:.1} ({low:.1} to {high:.1}), measured {:.1} Mbit/s", self.measured[which])
        });
        let mptcp = if self.advised.mode == Mode::Mptcp { " by MPTCP" } else { "" };
        write!(f, "advised {}{mptcp}: {advised}; default: {default}", self.advised)
    }
}

fn of_verdicts(verdicts: &[Verdict]) -> String {
    let came_true = [0, 1].map(|which| verdicts.iter().filter(|verdict| verdict.came_true(which)).count());
    let gains: Vec<[f64; 2]> = verdicts.iter().map(Verdict::gains).collect();
    let [promised, measured] = [0, 1].map(|which| median(&gains.iter().map(|gain| gain[which]).collect::<Vec<_>>()));
    let mut text = String::new();
    let _ = writeln!(
        text,
        "advice: came true in {} of {}, the default in {}; gain over the default: promised {promised:.2}, measured {measured:.2} in the \
         median; measured below 1 in {}",
        came_true[0],
        verdicts.len(),
        came_true[1],
        gains.iter().filter(|gain| gain[1] < 1.0).count(),
    );
    text
}

/// The hidden links of a seed: what netem and the queues of Linux do, web traffic on one path in two of three pairs, and in one of
/// three a rate that moves each second.
fn draw(seed: u64) -> Hidden {
    let mut rng = RngStream::named(seed, "hidden links of the lab");
    let mut log = |low: f64, high: f64| low * (high / low).powf(rng.unit());
    let mut text = "name = \"hidden\"\nduration = \"10s\"\n".to_owned();
    let (mut values, mut beyond_model) = (BTreeMap::new(), Vec::new());
    for name in PATHS {
        let (rate, delay, jitter) = (1e3 * log(4.0, 16.0), 1e3 * log(4.0, 40.0), 1e3 * log(0.1, 5.0));
        let (queue, to_bad, burst) = (log(25.0, 300.0), log(0.02, 0.6), log(1.2, 8.0));
        let (width, deviation) = (log(1.2, 2.0), log(0.05, 0.3));
        let bad_percent = 100.0 * to_bad / (to_bad + 100.0 / burst);
        let known = [
            ("rate", 1e3 * rate),
            ("delay", delay / 1e6),
            ("queue.limit", queue),
            ("loss.share", 0.6 * bad_percent),
            ("loss.burst", burst),
        ];
        values.extend(known.map(|(key, value)| (format!("path.{name}.{key}"), value)));
        let mut walk = String::new();
        if name == "p1" && seed.is_multiple_of(3) {
            beyond_model.push(name);
            let _ = writeln!(
                walk,
                "rate_walk = {{ min = \"{:.0}kbit\", max = \"{:.0}kbit\", deviation = \"{:.0}kbit\", interval = \"1s\" }}",
                rate / width,
                rate * width,
                rate * deviation
            );
        }
        let _ = write!(
            text,
            "[[path]]\nname = \"{name}\"\nrate = \"{rate:.0}kbit\"\n{walk}delay = \"{delay:.0}us\"\njitter = \"{jitter:.0}us\"\n\
             loss = {{ to_bad = \"{to_bad:.4}%\", to_good = \"{:.3}%\", bad = \"60%\" }}\nqueue = {{ limit = \"{queue:.0}p\" }}\n\
             reverse = {{ rate = \"5mbit\", loss = \"0%\" }}\n",
            100.0 / burst
        );
    }
    if seed % 3 != 1 {
        beyond_model.push("p2");
        text += "[[flow]]\nname = \"web\"\npath = \"p2\"\ncongestion = \"cubic\"\nrequests = { size = { mean = \"150kB\", distribution = \
                 \"pareto\", shape = 1.4 }, think = { mean = \"800ms\", distribution = \"exponential\" } }\n";
    }
    let links = Links { text, sets: Vec::new(), folder: PathBuf::new(), origin: "hidden".to_owned() };
    Hidden { links, values, beyond_model }
}

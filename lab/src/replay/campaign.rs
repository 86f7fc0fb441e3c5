//! A campaign: situations of many seeds, on our machine and on a kernel. An interrupted campaign continues where it stopped.

use super::Outcome;
use super::judge::Judge;
use super::shrinking::{Case, shrink};
use super::verdicts::{Verdict, Verdicts, to_json};
use crate::BackendChoice;
use replay::{Coverage, Golden, Recording, Script, Situation, Tolerance, first_difference, script_of, timeline};
use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Number of situations per batch: per boot of User-Mode Linux, or per set of devices.
const BATCH: usize = 120;
/// Number of attempts of a situation that differs or is late, in real time.
const ATTEMPTS: usize = 3;
/// The greatest lateness of an event in real time, microseconds: events keep a quarter of a tick away from ticks.
const MAX_LATE_US: u64 = 800;
/// Tolerance of times in virtual and in real time.
const VIRTUAL: Tolerance = Tolerance { time_us: 100 };
const REAL: Tolerance = Tolerance { time_us: 2500 };

/// The options of a campaign.
struct Options {
    choice: BackendChoice,
    congestion: Vec<String>,
    seeds: Range<u64>,
    folder: PathBuf,
    /// Whether seeds that differed are played again.
    again: bool,
    /// Whether the first script of each class of differences is shrunk.
    shrink: bool,
    /// The folder in which the kernel's recordings of all scripts that do not differ are kept.
    keep: Option<PathBuf>,
}

/// `agent kernel-drill --on uml|netns [--congestion NAME,...] [--seeds FROM..TO] [--folder FOLDER] [--again] [--shrink]
/// [--keep FOLDER]`.
pub(crate) fn main(arguments: &[&str]) -> Outcome<()> {
    let options = parse(arguments)?;
    let program = std::env::current_exe()?;
    let judge = Judge::find(options.choice, &program.display().to_string(), "lab-agent")?;
    println!("{}, a tick of {} us", judge.describe(), judge.tick_us());
    let all = judge.congestion_controls().to_vec();
    let names = if options.congestion.is_empty() { &all } else { &options.congestion };
    names.iter().try_for_each(|name| Campaign { judge: &judge, options: &options, congestion: name }.run())
}

fn parse(arguments: &[&str]) -> Outcome<Options> {
    let mut options = Options {
        choice: BackendChoice::Uml,
        congestion: Vec::new(),
        seeds: 0..100,
        folder: "target/kernel-drill".into(),
        again: false,
        shrink: false,
        keep: None,
    };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match *word {
            "--on" => options.choice = parse_choice(value()?)?,
            "--congestion" => options.congestion = value()?.split(',').map(str::to_owned).collect(),
            "--seeds" => options.seeds = parse_seeds(value()?)?,
            "--folder" => options.folder = value()?.into(),
            "--keep" => options.keep = Some(value()?.into()),
            "--again" => options.again = true,
            "--shrink" => options.shrink = true,
            other => return Err(format!("kernel-drill has no option {other}").into()),
        }
    }
    Ok(options)
}

fn parse_choice(text: &str) -> Result<BackendChoice, String> {
    match text {
        "uml" => Ok(BackendChoice::Uml),
        "netns" => Ok(BackendChoice::Netns),
        other => Err(format!("--on {other}: expected uml or netns")),
    }
}

fn parse_seeds(text: &str) -> Result<Range<u64>, String> {
    let bounds = text.split_once("..").and_then(|(start, end)| Some(start.parse().ok()?..end.parse().ok()?));
    let error = || format!("--seeds {text}: expected FROM..TO, such as 0..1000");
    bounds.filter(|seeds| !seeds.is_empty()).ok_or_else(error)
}

struct Campaign<'a> {
    judge: &'a Judge,
    options: &'a Options,
    congestion: &'a str,
}

impl Campaign<'_> {
    fn run(&self) -> Outcome<()> {
        let Options { folder, seeds, again, .. } = self.options;
        let mut verdicts = Verdicts::open(folder, self.judge.release(), self.congestion)?;
        let is_due = |seed: &u64| {
            let prior = verdicts.of.get(seed);
            prior.is_none_or(|verdict| *again && (verdict.is_late || verdict.difference.is_some()))
        };
        let due: Vec<u64> = seeds.clone().filter(is_due).collect();
        let (mut coverage, mut shrunk) = (Coverage::default(), BTreeSet::new());
        for batch in due.chunks(BATCH) {
            verdicts.add(self.play(batch, &mut coverage, &mut shrunk)?)?;
            println!("{}", verdicts.summary().lines().next().unwrap_or_default());
        }
        print!("{}", verdicts.summary());
        println!("  {} transitions of the congestion state on the kernel:\n{coverage}", coverage.len());
        Ok(())
    }

    fn tolerance(&self) -> Tolerance {
        if self.judge.is_virtual() { VIRTUAL } else { REAL }
    }

    fn play(&self, seeds: &[u64], coverage: &mut Coverage, shrunk: &mut BTreeSet<String>) -> Outcome<Vec<Verdict>> {
        let script = |seed: &u64| script_of(&Situation::drawn(*seed, self.congestion, self.judge.tick_us()));
        let mut left: Vec<(u64, Script)> =
            seeds.iter().map(|seed| Ok((*seed, script(seed)?))).collect::<Result<_, String>>()?;
        let mut verdicts = Vec::new();
        let attempts = if self.judge.is_virtual() { 1 } else { ATTEMPTS };
        for attempt in 1..=attempts {
            let scripts: Vec<Script> = left.iter().map(|(_, script)| script.clone()).collect();
            let mut again = Vec::new();
            for ((seed, script), kernel) in left.into_iter().zip(self.judge.play(&scripts)?) {
                let verdict = self.judge_script(seed, &script, &kernel)?;
                if attempt < attempts && (verdict.is_late || verdict.difference.is_some()) {
                    again.push((seed, script));
                    continue;
                }
                coverage.add(&script, &kernel);
                self.keep(&verdict, script, kernel, shrunk)?;
                verdicts.push(verdict);
            }
            left = again;
        }
        Ok(verdicts)
    }

    fn judge_script(&self, seed: u64, script: &Script, kernel: &Recording) -> Outcome<Verdict> {
        let tolerance = self.tolerance();
        let mut difference = first_difference(script, &replay::play(script)?, kernel, tolerance);
        let is_late = !self.judge.is_virtual() && kernel.late_us > MAX_LATE_US;
        let mut explanation = None;
        if difference.is_some() && !is_late {
            explanation = replay::explanation(script, kernel, tolerance);
            // What is left of it without what is explained.
            let left = first_difference(script, &replay::closest(script, kernel, tolerance)?, kernel, tolerance);
            difference = left.or(difference);
        }
        Ok(Verdict { seed, acks: script.acks.len(), difference, explanation, is_late })
    }

    /// Keeps a script that differs, with its timeline, and a script that does not differ if that is asked for.
    fn keep(&self, verdict: &Verdict, script: Script, kernel: Recording, shrunk: &mut BTreeSet<String>) -> Outcome<()> {
        let name = format!("{}-{}-{}", self.judge.release(), self.congestion, verdict.seed);
        match (&verdict.difference, &self.options.keep) {
            (None, Some(folder)) => self.write(folder, &name, script, kernel),
            (Some(difference), _) if !verdict.is_late => {
                let ours = replay::closest(&script, &kernel, self.tolerance())?;
                let mut case = Case { script, ours, kernel, difference: difference.clone() };
                if self.options.shrink && shrunk.insert(difference.class()) {
                    case = shrink(self.judge, case, self.tolerance())?;
                }
                let folder = self.options.folder.join("differences");
                let text = timeline(&case.script, &case.ours, &case.kernel, &case.difference);
                self.write(&folder, &name, case.script, case.kernel)?;
                Ok(fs::write(folder.join(format!("{name}.txt")), text)?)
            }
            _ => Ok(()),
        }
    }

    fn write(&self, folder: &Path, name: &str, script: Script, recording: Recording) -> Outcome<()> {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let golden = Golden { kernel: self.judge.describe(), script, recording };
        Ok(fs::write(folder.join(format!("{name}.json")), to_json(&golden)?)?)
    }
}

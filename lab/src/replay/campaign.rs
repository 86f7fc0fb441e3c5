//! A campaign: situations of many seeds, on our machine and on a kernel. An interrupted campaign continues where it stopped.

use super::Outcome;
use super::judge::Judge;
use super::shrinking::{Case, shrink};
use super::side::{Receivers, Senders, Side};
use super::verdicts::{Verdict, Verdicts, to_json};
use crate::BackendChoice;
use replay::{Coverage, Golden, Tolerance};
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

/// The options of a campaign.
struct Options {
    choice: BackendChoice,
    /// Whether the receiver is compared, instead of the sender.
    is_receiver: bool,
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

/// `agent kernel-drill [--side sender|receiver] [--on uml|netns] [--congestion NAME,...] [--seeds FROM..TO] [--folder FOLDER]
/// [--again] [--shrink] [--keep FOLDER]`.
pub(crate) fn main(arguments: &[&str]) -> Outcome<()> {
    let options = parse(arguments)?;
    let program = std::env::current_exe()?;
    let judge = Judge::find(options.choice, &program.display().to_string(), "lab-agent")?;
    println!("{}, a tick of {} us", judge.describe(), judge.tick_us());
    if options.is_receiver {
        return Campaign { judge: &judge, options: &options, side: Receivers }.run();
    }
    let all = judge.congestion_controls().to_vec();
    let names = if options.congestion.is_empty() { &all } else { &options.congestion };
    let campaign = |congestion| Campaign { judge: &judge, options: &options, side: Senders { congestion } };
    names.iter().try_for_each(|name| campaign(name).run())
}

fn parse(arguments: &[&str]) -> Outcome<Options> {
    let mut options = Options {
        choice: BackendChoice::Uml,
        is_receiver: false,
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
            "--side" => options.is_receiver = parse_side(value()?)?,
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

fn parse_side(text: &str) -> Result<bool, String> {
    match text {
        "sender" => Ok(false),
        "receiver" => Ok(true),
        other => Err(format!("--side {other}: expected sender or receiver")),
    }
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

struct Campaign<'a, S: Side> {
    judge: &'a Judge,
    options: &'a Options,
    side: S,
}

impl<S: Side> Campaign<'_, S> {
    fn run(&self) -> Outcome<()> {
        let Options { folder, seeds, again, .. } = self.options;
        let mut verdicts = Verdicts::open(folder, self.judge.release(), self.side.name())?;
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
        if !coverage.is_empty() {
            println!("  {} transitions of the congestion state on the kernel:\n{coverage}", coverage.len());
        }
        Ok(())
    }

    fn tolerance(&self) -> Tolerance {
        if self.judge.is_virtual() { Tolerance::VIRTUAL } else { Tolerance::REAL_TIME }
    }

    fn play(&self, seeds: &[u64], coverage: &mut Coverage, shrunk: &mut BTreeSet<String>) -> Outcome<Vec<Verdict>> {
        let script = |seed: &u64| self.side.script(*seed, self.judge);
        let mut left: Vec<(u64, S::Script)> =
            seeds.iter().map(|seed| Ok((*seed, script(seed)?))).collect::<Result<_, String>>()?;
        let mut verdicts = Vec::new();
        let attempts = if self.judge.is_virtual() { 1 } else { ATTEMPTS };
        for attempt in 1..=attempts {
            let scripts: Vec<S::Script> = left.iter().map(|(_, script)| script.clone()).collect();
            let mut again = Vec::new();
            for ((seed, script), kernel) in left.into_iter().zip(S::play(self.judge, &scripts)?) {
                let played = S::as_played(&script, &kernel);
                let verdict = self.judge_script(seed, &played, &kernel)?;
                if attempt < attempts && (verdict.is_late || verdict.difference.is_some()) {
                    again.push((seed, script));
                    continue;
                }
                S::cover(coverage, &played, &kernel);
                self.keep(&verdict, played, kernel, shrunk)?;
                verdicts.push(verdict);
            }
            left = again;
        }
        Ok(verdicts)
    }

    fn judge_script(&self, seed: u64, script: &S::Script, kernel: &S::Recording) -> Outcome<Verdict> {
        let tolerance = self.tolerance();
        let mut difference = S::difference(script, &S::ours(script)?, kernel, tolerance);
        let is_late = !self.judge.is_virtual() && S::late_us(kernel) > MAX_LATE_US;
        let mut explanation = None;
        if difference.is_some() && !is_late {
            explanation = S::explanation(script, kernel, tolerance);
            // What is left of it without what is explained.
            let left = S::difference(script, &S::closest(script, kernel, tolerance)?, kernel, tolerance);
            difference = left.or(difference);
        }
        Ok(Verdict { seed, acks: S::len(script), difference, explanation, is_late })
    }

    /// Keeps a script that differs, with its timeline, and a script that does not differ if that is asked for.
    fn keep(
        &self,
        verdict: &Verdict,
        script: S::Script,
        kernel: S::Recording,
        shrunk: &mut BTreeSet<String>,
    ) -> Outcome<()> {
        let name = format!("{}-{}-{}", self.judge.release(), self.side.name(), verdict.seed);
        match (&verdict.difference, &self.options.keep) {
            (None, Some(folder)) => self.write(folder, &name, script, kernel),
            (Some(difference), _) if !verdict.is_late => {
                let ours = S::closest(&script, &kernel, self.tolerance())?;
                let mut case = Case::<S> { script, ours, kernel, difference: difference.clone() };
                if self.options.shrink && shrunk.insert(difference.class()) {
                    case = shrink(self.judge, case, self.tolerance())?;
                }
                let folder = self.options.folder.join("differences");
                let text = case.timeline();
                self.write(&folder, &name, case.script, case.kernel)?;
                Ok(fs::write(folder.join(format!("{name}.txt")), text)?)
            }
            _ => Ok(()),
        }
    }

    fn write(&self, folder: &Path, name: &str, script: S::Script, recording: S::Recording) -> Outcome<()> {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let golden = Golden { kernel: self.judge.describe(), script, recording };
        Ok(fs::write(folder.join(format!("{name}.json")), to_json(&golden)?)?)
    }
}

//! Booting a guest for a run, watching it, and collecting what it found.

use crate::kernel::Kernel;
use crate::plan::{Observed, Plan, Traffic};
use crate::script::script;
use crate::{Error, layout, summary, support};
use record::Run;
use scenario::model::{Experiment, Flow, Limit};
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use units::{Instant, Span, Stream};

/// What [`init`](../init.sh) leaves to be filled in.
const INIT: &str = include_str!("init.sh");
/// In real time an agent that wakes up this late has had no CPU: the kernel under test had none either.
const LATEST: Span = Span::from_millis(50);
/// So often a run that was disturbed is made again.
const ATTEMPTS: usize = 3;
/// Time series where the experiment asks for none: only the RTT is taken from them.
const SAMPLE: Span = Span::from_millis(100);

/// A kernel, and the program that can be its agent.
#[derive(Clone, Debug)]
pub struct Lab {
    kernel: Kernel,
    agent: Vec<String>,
}

impl Lab {
    /// The lab of this machine. `agent` is a command that calls [`crate::agent`] with the words that follow.
    ///
    /// # Errors
    /// There is no User-Mode Linux.
    pub fn find(agent: &[&str]) -> Result<Self, Error> {
        Ok(Self { kernel: Kernel::find()?, agent: agent.iter().map(|word| (*word).to_owned()).collect() })
    }

    /// The kernel in words, for a record of what was run.
    #[must_use]
    pub fn describe(&self) -> String {
        let clock = if self.kernel.is_virtual { "virtual" } else { "real" };
        format!("Linux {} (User-Mode Linux, {clock} time)", self.kernel.version)
    }

    /// Guests may run side by side without disturbing each other: their time is virtual.
    #[must_use]
    pub fn is_virtual(&self) -> bool {
        self.kernel.is_virtual
    }

    /// Room in the path's token bucket, packets. A timer that fires late costs capacity that only a deeper bucket gives
    /// back; in virtual time none does.
    fn burst(&self) -> u32 {
        if self.kernel.is_virtual { 1 } else { 2 }
    }

    /// How the cells of a study are set up in the guest: the commands, in order. What only some cells have is preceded
    /// by their numbers, what an event does by its instant.
    #[must_use]
    pub fn script<'a>(&self, cells: impl IntoIterator<Item = &'a Experiment>) -> String {
        let lines = |experiment: &Experiment| {
            let (setup, events) = layout::commands(experiment, self.burst());
            let events = events.into_iter().map(|(at, line)| format!("at {} s: {line}", at.as_secs_f64()));
            setup.into_iter().chain(events).collect()
        };
        let cells: Vec<Vec<String>> = cells.into_iter().map(lines).collect();
        format!("# {}\n{}", self.describe(), script(&cells))
    }

    /// Runs `experiment`. A kernel draws its own luck: `seed` only numbers the run.
    ///
    /// # Errors
    /// The lab cannot do what the experiment asks for, or the guest failed.
    pub fn run(&self, experiment: &Experiment, seed: u64) -> Result<Run, Error> {
        support::check(experiment)?;
        let starts: Vec<Instant> = experiment.flows.iter().map(|flow| start(flow, seed)).collect();
        let mut latest = Span::ZERO;
        for _ in 0..ATTEMPTS {
            let observed = self.observe(experiment, &starts)?;
            if self.kernel.is_virtual || observed.late < LATEST {
                return summary::summarise(experiment, seed, &starts, &observed);
            }
            latest = observed.late;
        }
        let late = latest.as_millis();
        Err(Error::guest(format!(
            "the guest lacked CPU ({late} ms behind its clock): run fewer side by side (--jobs 1)"
        )))
    }

    fn observe(&self, experiment: &Experiment, starts: &[Instant]) -> Result<Observed, Error> {
        let dir = tempfile::Builder::new().prefix("ropewalk-lab-").tempdir().map_err(Error::guest)?;
        self.prepare(dir.path(), experiment, starts).map_err(Error::guest)?;
        let outcome = self.boot(dir.path(), self.patience(experiment.duration));
        let answer = fs::read(dir.path().join("observed.json")).map_err(|_| "the guest left no answer".to_owned());
        let read = |bytes: Vec<u8>| serde_json::from_slice(&bytes).map_err(|why| format!("a damaged answer: {why}"));
        outcome.and(answer).and_then(read).map_err(|why| Error::Guest { why, said: last_words(&dir) })
    }

    fn prepare(&self, dir: &Path, experiment: &Experiment, starts: &[Instant]) -> io::Result<()> {
        let (setup, events) = layout::commands(experiment, self.burst());
        let span = |at: Instant| at.since(Instant::ZERO);
        let traffic = |(flow, start): (&Flow, &Instant)| Traffic { start: span(*start), stop: flow.stop.map(span) };
        let plan = Plan {
            duration: experiment.duration,
            sample: experiment.sample.unwrap_or(SAMPLE),
            flows: experiment.flows.iter().zip(starts).map(traffic).collect(),
            events,
            counters: layout::counters(experiment),
            silence: layout::silence(experiment),
            drain: drain(experiment),
            totals: layout::totals(experiment),
        };
        let agent: Vec<String> = self.agent.iter().map(|word| quoted(word)).collect();
        let init = INIT.replace("DIR", &dir.display().to_string()).replace("AGENT", &agent.join(" "));
        fs::write(dir.join("setup.sh"), format!("set -x\n{}\n", setup.join("\n")))?;
        fs::write(dir.join("plan.json"), serde_json::to_vec(&plan)?)?;
        fs::write(dir.join("init"), init)?;
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(dir.join("init"), fs::Permissions::from_mode(0o755))
    }

    /// Far more than a run takes, so that only one that hangs is ended.
    fn patience(&self, duration: Span) -> Duration {
        Duration::from_secs(60)
            + Duration::from_nanos(duration.as_nanos()) * if self.kernel.is_virtual { 30 } else { 2 }
    }

    /// Boots a guest and waits until it has switched itself off.
    fn boot(&self, dir: &Path, patience: Duration) -> Result<(), String> {
        let console = fs::File::create(dir.join("console")).map_err(|why| why.to_string())?;
        let again = console.try_clone().map_err(|why| why.to_string())?;
        let mut command = self.command();
        command.args(["mem=256M", "rootfstype=hostfs", "root=/dev/root", "ro", "quiet", "con=null", "con0=null,fd:1"]);
        command.arg(format!("init={}", dir.join("init").display()));
        if self.kernel.is_virtual {
            command.arg("time-travel=inf-cpu");
        }
        command.env("TMPDIR", dir).stdin(Stdio::null()).stdout(console).stderr(again);
        let program = self.kernel.program.display();
        let mut child = command.spawn().map_err(|why| format!("cannot run {program}: {why}"))?;
        wait(&mut child, patience)
    }

    /// In real time, with precedence where that is allowed.
    fn command(&self) -> Command {
        if self.kernel.is_virtual {
            return Command::new(&self.kernel.program);
        }
        let mut command = Command::new("nice");
        command.args(["-n", "-10"]).arg(&self.kernel.program);
        command
    }
}

/// When a flow begins: drawn as the simulator draws it.
fn start(flow: &Flow, seed: u64) -> Instant {
    flow.start + Span(Stream::named(seed, &format!("flow {} start", flow.name)).below(flow.start_within.0 + 1))
}

/// Time for what is under way when the run ends to arrive, before what never did is counted.
fn drain(experiment: &Experiment) -> Span {
    let forward = &experiment.links[0].forward;
    let bytes = match forward.queue.limit {
        Limit::Packets(packets) => packets * u64::from(1500 + forward.overhead),
        Limit::Bytes(bytes) => bytes,
        Limit::Time(_) => 0,
    };
    forward.delay + forward.rate.map_or(Span::ZERO, |rate| rate.time_for(bytes)) + Span::from_millis(200)
}

fn wait(child: &mut Child, patience: Duration) -> Result<(), String> {
    let end = std::time::Instant::now() + patience;
    loop {
        match child.try_wait().map_err(|why| why.to_string())? {
            Some(_) => return Ok(()), // the answer says whether it went well
            None if std::time::Instant::now() < end => std::thread::sleep(Duration::from_millis(20)),
            None => {
                let _ = child.kill().and_then(|()| child.wait());
                return Err(format!("the guest was still running after {} s", patience.as_secs()));
            }
        }
    }
}

/// The end of what the guest's commands said, or else its console.
fn last_words(dir: &TempDir) -> String {
    let said = ["messages", "console"].map(|name| fs::read_to_string(dir.path().join(name)).unwrap_or_default());
    let said = said.into_iter().find(|text| !text.trim().is_empty()).unwrap_or_default();
    let lines: Vec<&str> = said.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}

/// A word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

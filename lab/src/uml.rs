//! A guest of User-Mode Linux: its folder, its boot, its time limit and its results.

use crate::Error;
use crate::host_kernel::log_tail;
use crate::processes;
use crate::protocol::{Plan, RunResults};
use crate::shell::quoted;
use crate::uml_kernel::UmlKernel;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use units::Span;

/// The guest's init script, in which `DIR` and `AGENT` are replaced.
const INIT: &str = include_str!("init.sh");

/// A guest to be booted.
#[derive(Debug)]
pub(crate) struct Guest<'a> {
    kernel: &'a UmlKernel,
    /// The run's folder, the only one that the guest can write to.
    dir: &'a Path,
}

impl<'a> Guest<'a> {
    pub(crate) fn new(kernel: &'a UmlKernel, dir: &'a Path) -> Self {
        Self { kernel, dir }
    }

    /// Boots, lets the commands of `setup` lay out the network and `agent` carry out `plan`.
    pub(crate) fn run(self, agent: &[String], setup: &[String], plan: &Plan) -> Result<RunResults, Error> {
        self.prepare(agent, setup, plan).map_err(Error::failed)?;
        let outcome = self.boot(self.time_limit(plan.duration + plan.drain));
        let results = fs::read(self.dir.join("results.json")).map_err(|_| "the guest left no results".to_owned());
        let read = |bytes: Vec<u8>| serde_json::from_slice(&bytes).map_err(|error| format!("damaged results: {error}"));
        outcome.and(results).and_then(read).map_err(|error| Error::Failed { reason: error, output: self.log_tail() })
    }

    fn prepare(&self, agent: &[String], setup: &[String], plan: &Plan) -> io::Result<()> {
        let dir = self.dir;
        let agent: Vec<String> = agent.iter().map(|word| quoted(word)).collect();
        let init = INIT.replace("DIR", &dir.display().to_string()).replace("AGENT", &agent.join(" "));
        fs::write(dir.join("setup.sh"), format!("set -x\n{}\n", setup.join("\n")))?;
        fs::write(dir.join("plan.json"), serde_json::to_vec(plan)?)?;
        fs::write(dir.join("init"), init)?;
        fs::set_permissions(dir.join("init"), fs::Permissions::from_mode(0o755))
    }

    /// A time limit far above what a run takes, so that only one that hangs is ended.
    fn time_limit(&self, duration: Span) -> Duration {
        let factor = if self.kernel.is_virtual { 30 } else { 2 };
        Duration::from_secs(60) + Duration::from_nanos(duration.as_nanos()) * factor
    }

    /// Boots the guest and waits until it has powered itself off.
    fn boot(&self, time_limit: Duration) -> Result<(), String> {
        let path = self.dir;
        let console = fs::File::create(path.join("console")).map_err(|error| error.to_string())?;
        let errors = console.try_clone().map_err(|error| error.to_string())?;
        let dir = path.display();
        let mut command = self.command();
        command
            .args(["mem=384M", "rootfstype=hostfs", "root=/dev/root", "ro", "quiet", "con=null", "con0=null,fd:1"])
            .args([format!("init={dir}/init"), format!("uml_dir={dir}/")])
            .args(self.kernel.is_virtual.then_some("time-travel=inf-cpu"))
            .env("TMPDIR", path)
            .env(processes::RUN_VARIABLE, path)
            .stdin(Stdio::null())
            .stdout(console)
            .stderr(errors);
        let program = self.kernel.program.display();
        let mut child = command.spawn().map_err(|error| format!("cannot run {program}: {error}"))?;
        match processes::wait(&mut child, time_limit).map_err(|error| error.to_string())? {
            Some(_) => Ok(()), // the results say whether it succeeded
            None => {
                processes::end_all(path);
                let _ = child.wait();
                Err(format!("the guest was still running after {} s", time_limit.as_secs()))
            }
        }
    }

    /// The kernel as a command; in real time with a higher priority where that is allowed.
    fn command(&self) -> Command {
        if self.kernel.is_virtual {
            return Command::new(&self.kernel.program);
        }
        let mut command = Command::new("nice");
        command.args(["-n", "-10"]).arg(&self.kernel.program);
        command
    }

    /// The end of the messages, or else of the console.
    fn log_tail(&self) -> String {
        let output = ["messages", "console"].map(|name| log_tail(&self.dir.join(name)));
        output.into_iter().find(|text| !text.trim().is_empty()).unwrap_or_default()
    }
}

//! One guest: its folder, its boot, a watch on it, and the answer it leaves.

use crate::Error;
use crate::host::last_words;
use crate::kernel::Kernel;
use crate::lab::quoted;
use crate::plan::{Observed, Plan};
use crate::processes;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use units::Span;

/// The guest's first process, with `DIR` and `AGENT` to be filled in.
const INIT: &str = include_str!("init.sh");

/// A guest that is yet to be booted.
#[derive(Debug)]
pub(crate) struct Guest<'a> {
    kernel: &'a Kernel,
    /// The only place that the guest can write to.
    dir: &'a Path,
}

impl<'a> Guest<'a> {
    pub(crate) fn new(kernel: &'a Kernel, dir: &'a Path) -> Self {
        Self { kernel, dir }
    }

    /// Boots, lets the commands of `setup` lay out the network and `agent` carry out `plan`.
    pub(crate) fn run(self, agent: &[String], setup: &[String], plan: &Plan) -> Result<Observed, Error> {
        self.prepare(agent, setup, plan).map_err(Error::guest)?;
        let outcome = self.boot(self.patience(plan.duration + plan.drain));
        let answer = fs::read(self.dir.join("observed.json")).map_err(|_| "the guest left no answer".to_owned());
        let read = |bytes: Vec<u8>| serde_json::from_slice(&bytes).map_err(|why| format!("a damaged answer: {why}"));
        outcome.and(answer).and_then(read).map_err(|why| Error::Guest { why, said: self.last_words() })
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

    /// Far more than a run takes, so that only one that hangs is ended.
    fn patience(&self, duration: Span) -> Duration {
        let factor = if self.kernel.is_virtual { 30 } else { 2 };
        Duration::from_secs(60) + Duration::from_nanos(duration.as_nanos()) * factor
    }

    /// Boots, and waits until the guest has switched itself off.
    fn boot(&self, patience: Duration) -> Result<(), String> {
        let path = self.dir;
        let console = fs::File::create(path.join("console")).map_err(|why| why.to_string())?;
        let errors = console.try_clone().map_err(|why| why.to_string())?;
        let dir = path.display();
        let mut command = self.command();
        command
            .args(["mem=384M", "rootfstype=hostfs", "root=/dev/root", "ro", "quiet", "con=null", "con0=null,fd:1"])
            .args([format!("init={dir}/init"), format!("uml_dir={dir}/")])
            .args(self.kernel.is_virtual.then_some("time-travel=inf-cpu"))
            .env("TMPDIR", path)
            .env(processes::MARK, path)
            .stdin(Stdio::null())
            .stdout(console)
            .stderr(errors);
        let program = self.kernel.program.display();
        let mut child = command.spawn().map_err(|why| format!("cannot run {program}: {why}"))?;
        match processes::wait(&mut child, patience).map_err(|why| why.to_string())? {
            Some(_) => Ok(()), // the answer says whether it went well
            None => {
                processes::end_all(path);
                let _ = child.wait();
                Err(format!("the guest was still running after {} s", patience.as_secs()))
            }
        }
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

    /// The end of what the guest's commands said, or else its console.
    fn last_words(&self) -> String {
        let said = ["messages", "console"].map(|name| last_words(&self.dir.join(name)));
        said.into_iter().find(|text| !text.trim().is_empty()).unwrap_or_default()
    }
}

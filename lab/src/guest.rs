//! A guest, of User-Mode Linux or in a virtual machine: its folder, its boot, its time limit and its results.

use crate::Error;
use crate::guest_kernel::GuestKernel;
use crate::host_kernel::log_tail;
use crate::kernel_image;
use crate::processes;
use crate::protocol::{Plan, RunResults};
use strings::shell_quoted;

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use units::Span;

/// The guest's init script, in which `MOUNT`, `DIR` and `AGENT` are replaced.
const INIT: &str = include_str!("init.sh");
/// The commands that mount the run's folder in User-Mode Linux, and in a virtual machine. A virtual machine has devices of
/// its own, and loads the program in advance.
const MOUNT_UML: &str = "mount -t hostfs -o DIR none /run/lab";
const MOUNT_IMAGE: &str = "mount -t devtmpfs devtmpfs /dev && mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 run /run/lab && AGENT preload";

/// A guest to be booted.
#[derive(Debug)]
pub(crate) struct Guest<'a> {
    kernel: &'a GuestKernel,
    /// The run's folder, the only one that the guest can write to.
    dir: &'a Path,
}

impl<'a> Guest<'a> {
    pub(crate) fn new(kernel: &'a GuestKernel, dir: &'a Path) -> Self {
        Self { kernel, dir }
    }

    /// Boots the guest, runs the commands of `setup`, which build the network, and lets `agent` carry out `plan`.
    pub(crate) fn run(self, agent: &[String], setup: &[String], plan: &Plan) -> Result<RunResults, Error> {
        self.prepare(agent, setup, plan).map_err(Error::failed)?;
        let outcome = self.boot(self.time_limit(plan.duration + plan.drain));
        let results = fs::read(self.dir.join("results.json")).map_err(|_| "the guest left no results".to_owned());
        let read = |bytes: Vec<u8>| serde_json::from_slice(&bytes).map_err(|error| format!("damaged results: {error}"));
        outcome.and(results).and_then(read).map_err(|error| Error::Failed { reason: error, output: self.log_tail() })
    }

    fn prepare(&self, agent: &[String], setup: &[String], plan: &Plan) -> io::Result<()> {
        let dir = self.dir;
        let agent: Vec<String> = agent.iter().map(|word| shell_quoted(word)).collect();
        let mount = if self.kernel.is_image { MOUNT_IMAGE } else { MOUNT_UML };
        let init = INIT.replace("MOUNT", mount).replace("DIR", &dir.display().to_string());
        let init = init.replace("AGENT", &agent.join(" "));
        fs::write(dir.join("setup.sh"), format!("set -x\n{}\n", setup.join("\n")))?;
        fs::write(dir.join("plan.json"), serde_json::to_vec(plan)?)?;
        fs::write(dir.join("init"), init)?;
        fs::set_permissions(dir.join("init"), fs::Permissions::from_mode(0o755))
    }

    /// A time limit far above the duration of any run, so that it ends only a run that hangs.
    fn time_limit(&self, duration: Span) -> Duration {
        let factor = if self.kernel.is_virtual { 30 } else { 2 };
        Duration::from_secs(60) + Duration::from_nanos(duration.as_nanos()) * factor
    }

    /// Boots the guest and waits until it has powered itself off.
    fn boot(&self, time_limit: Duration) -> Result<(), String> {
        let path = self.dir;
        let mut command = self.command().map_err(|error| error.to_string())?;
        command.env("TMPDIR", path).env(processes::RUN_VARIABLE, path).stdin(Stdio::null());
        let program = self.kernel.program.display();
        let mut child = command.spawn().map_err(|error| format!("cannot run {program}: {error}"))?;
        match processes::wait(&mut child, time_limit).map_err(|error| error.to_string())? {
            Some(_) => Ok(()), // the results show whether it succeeded
            None => {
                processes::end_all(path);
                let _ = child.wait();
                Err(format!("the guest was still running after {} s", time_limit.as_secs()))
            }
        }
    }

    /// The command that boots the kernel and ends with it; its output is in the file `console`.
    fn command(&self) -> io::Result<Command> {
        let console = fs::File::create(self.dir.join("console"))?;
        let errors = console.try_clone()?;
        let mut command = match self.kernel {
            GuestKernel { is_image: true, program, .. } => kernel_image::command(program, self.dir),
            GuestKernel { is_virtual: true, program, .. } => Command::new(program),
            // In real time it gets a higher priority if that is allowed.
            GuestKernel { program, .. } => {
                let mut command = Command::new("nice");
                command.args(["-n", "-10"]).arg(program);
                command
            }
        };
        if !self.kernel.is_image {
            let dir = self.dir.display();
            command
                .args(["mem=384M", "rootfstype=hostfs", "root=/dev/root", "ro", "quiet", "con=null", "con0=null,fd:1"])
                .args([format!("init={dir}/init"), format!("uml_dir={dir}/")])
                .args(self.kernel.is_virtual.then_some("time-travel=inf-cpu"));
        }
        command.stdout(console).stderr(errors);
        Ok(command)
    }

    /// The end of the messages, or else of the console.
    fn log_tail(&self) -> String {
        let output = ["messages", "console"].map(|name| log_tail(&self.dir.join(name)));
        output.into_iter().find(|text| !text.trim().is_empty()).unwrap_or_default()
    }
}

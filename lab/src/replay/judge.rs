//! A kernel that plays scripts.

use super::{clock, max_header};
use crate::backend::{Backend, BackendChoice};
use crate::guest::Guest;
use crate::guest_kernel::GuestKernel;
use crate::host_kernel::{HostKernel, log_tail};
use crate::processes::{self, RUN_VARIABLE};
use crate::protocol::Plan;
use crate::{Error, testbed};
use replay::{Kernel, Recording, Script, receiving};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use strings::shell_quoted;
use units::Span;

/// The agent's command for the player, and the names of its files.
const WORD: &str = "replay";
const SCRIPTS: &str = "scripts.json";
const RECORDINGS: &str = "recordings.json";
/// The run's folder in a guest.
const GUEST: &str = "/run/lab";
/// Memory for the headers of a packet in the guest's kernel, bytes.
const GUEST_MAX_HEADER: u32 = 256;
/// Time limit of a player in real time, on top of the time of its scripts.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A kernel that plays scripts, and the program that is the lab's agent.
#[derive(Debug)]
pub struct Judge {
    backend: Backend,
    agent: [String; 2],
    tick_us: u64,
    max_header: u32,
}

impl Judge {
    /// User-Mode Linux, or the machine's own kernel. `program` with the command `agent` is the lab's [`crate::agent`].
    ///
    /// # Errors
    /// The kernel is not available; the error gives the reason.
    pub fn find(choice: BackendChoice, program: &str, agent: &str) -> Result<Self, Error> {
        let backend = match choice {
            BackendChoice::Netns => Backend::Netns(HostKernel::find()?),
            BackendChoice::Uml | BackendChoice::Any => Backend::Guest(GuestKernel::find()?),
        };
        let tick_us = match backend.capabilities().jiffy {
            Some(jiffy) => jiffy.as_nanos() / 1000,
            None => clock::tick_us().map_err(Error::failed)?,
        };
        let max_header = match &backend {
            Backend::Guest(_) => GUEST_MAX_HEADER,
            Backend::Netns(_) => max_header::measure().map_err(Error::failed)?,
        };
        Ok(Self { backend, agent: [program, agent].map(str::to_owned), tick_us, max_header })
    }

    /// The kernel in words.
    #[must_use]
    pub fn describe(&self) -> String {
        self.backend.describe()
    }

    /// Its release.
    #[must_use]
    pub fn release(&self) -> &str {
        match &self.backend {
            Backend::Guest(kernel) => &kernel.version,
            Backend::Netns(host) => &host.version,
        }
    }

    /// What its scripts depend on.
    #[must_use]
    pub fn kernel(&self) -> Kernel {
        Kernel { release: replay::series_of(self.release()), tick_us: self.tick_us, max_header: self.max_header }
    }

    /// The tick of its timers, microseconds.
    #[must_use]
    pub fn tick_us(&self) -> u64 {
        self.tick_us
    }

    /// Whether its time is virtual, so that no script's event is late.
    #[must_use]
    pub fn is_virtual(&self) -> bool {
        self.backend.is_virtual()
    }

    /// Its congestion controls.
    #[must_use]
    pub fn congestion_controls(&self) -> &[String] {
        &self.backend.capabilities().congestion_controls
    }

    /// Plays scripts of a sender. The recordings are in the same order.
    ///
    /// # Errors
    /// The run failed; the error gives the reason, with the run's messages.
    pub fn play(&self, scripts: &[Script]) -> Result<Vec<Recording>, Error> {
        let total_us = scripts.iter().map(|script| script.end_us).sum();
        let mut recordings: Vec<Recording> = self.play_side("sender", scripts, total_us)?;
        if self.is_virtual() {
            recordings.iter_mut().for_each(|recording| recording.played = None); // as the scripts say
        }
        Ok(recordings)
    }

    /// Plays scripts of a receiver, as [`play`](Self::play) does.
    ///
    /// # Errors
    /// As those of [`play`](Self::play).
    pub fn play_receivers(&self, scripts: &[receiving::Script]) -> Result<Vec<receiving::Recording>, Error> {
        self.play_side("receiver", scripts, scripts.iter().map(|script| script.end_us).sum())
    }

    /// Plays scripts of a side, which would take `total_us` one after the other.
    fn play_side<S: Serialize, R: DeserializeOwned>(
        &self,
        side: &str,
        scripts: &[S],
        total_us: u64,
    ) -> Result<Vec<R>, Error> {
        let folder = tempfile::Builder::new().prefix("ropewalk-replay-").tempdir().map_err(Error::failed)?;
        let json = serde_json::to_vec(scripts).map_err(Error::failed)?;
        fs::write(folder.path().join(SCRIPTS), json).map_err(Error::failed)?;
        match &self.backend {
            Backend::Guest(kernel) => self.play_in_guest(kernel, folder.path(), side, total_us)?,
            Backend::Netns(_) => self.play_here(folder.path(), side, total_us)?,
        }
        let recordings = fs::read(folder.path().join(RECORDINGS)).map_err(Error::failed)?;
        let recordings: Vec<R> = serde_json::from_slice(&recordings).map_err(Error::failed)?;
        match recordings.len() == scripts.len() {
            true => Ok(recordings),
            false => Err(Error::failed(format!("{} recordings of {} scripts", recordings.len(), scripts.len()))),
        }
    }

    fn play_in_guest(&self, kernel: &GuestKernel, folder: &Path, side: &str, total_us: u64) -> Result<(), Error> {
        let agent: Vec<String> = self.agent.iter().map(|word| shell_quoted(word)).collect();
        let command = format!("{} {WORD} {side} {GUEST}/{SCRIPTS} {GUEST}/{RECORDINGS}", agent.join(" "));
        // The agent has nothing else to do. The guest's time limit is thirty times the time for which it waits.
        let plan = Plan { drain: Span(total_us * 1000 / 30), ..Plan::default() };
        Guest::new(kernel, folder).run(&self.agent, &[command], &plan).map(drop)
    }

    fn play_here(&self, folder: &Path, side: &str, total_us: u64) -> Result<(), Error> {
        let namespace = testbed::name();
        let _namespace = Namespace::add(&namespace).map_err(Error::failed)?;
        let messages = folder.join("messages");
        let log = fs::File::create(&messages).map_err(Error::failed)?;
        let files = [SCRIPTS, RECORDINGS].map(|name| folder.join(name));
        // At a higher priority, if that is allowed: otherwise the events of the script are late.
        let mut command = Command::new("chrt");
        command.args(["--fifo", "1"]).args(&self.agent).args([WORD, side]).args(files).arg(&namespace);
        command.env(RUN_VARIABLE, folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let mut child = command.spawn().map_err(Error::failed)?;
        let time_limit = TIME_LIMIT + Duration::from_micros(total_us);
        match processes::wait(&mut child, time_limit).map_err(Error::failed)? {
            Some(status) if status.success() => Ok(()),
            outcome => {
                processes::end_all(folder);
                let reason = outcome.map_or("the player was still running".to_owned(), |status| format!("{status}"));
                Err(Error::Failed { reason, output: log_tail(&messages) })
            }
        }
    }
}

/// A network namespace, which is removed when this value is dropped.
struct Namespace<'a>(&'a str);

impl<'a> Namespace<'a> {
    fn add(name: &'a str) -> Result<Self, String> {
        let output = Command::new("ip").args(["netns", "add", name]).output().map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(Self(name)),
            false => Err(format!("no namespace {name}: {}", String::from_utf8_lossy(&output.stderr).trim())),
        }
    }
}

impl Drop for Namespace<'_> {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", self.0]).status();
    }
}

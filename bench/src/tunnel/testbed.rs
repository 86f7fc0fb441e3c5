//! Two hosts joined by links: the lab's agent makes them, and removes them when this process ends.

use super::programs::Programs;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Index of the client's host.
pub(super) const CLIENT: usize = 0;
/// Index of the server's host.
pub(super) const SERVER: usize = 1;

/// A running testbed.
#[derive(Debug)]
pub(super) struct Testbed {
    agent: Child,
    /// The agent's input and output, which carry changes.
    control: Mutex<Option<(ChildStdin, BufReader<ChildStdout>)>>,
    description: Value,
    shapes: Vec<String>,
}

impl Testbed {
    /// Makes one link per shape; an empty shape is a link without limits.
    pub(super) fn make(programs: &Programs, shapes: &[&str]) -> Result<Self, String> {
        let line = format!("{} {}", programs.wrapper, programs.agent.display());
        let mut words = line.split_whitespace();
        let mut agent = Command::new(words.next().expect("the agent's own name"));
        agent.args(words).arg("testbed").args(shapes).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut agent = agent.spawn().map_err(|error| format!("cannot run {}: {error}", programs.agent.display()))?;
        let input = agent.stdin.take().expect("it is piped");
        let mut output = BufReader::new(agent.stdout.take().expect("it is piped"));
        let mut line = String::new();
        output.read_line(&mut line).map_err(|error| error.to_string())?;
        let description = serde_json::from_str(&line).map_err(|_| "the lab's agent made no testbed".to_owned())?;
        Ok(Self {
            agent,
            control: Mutex::new(Some((input, output))),
            description,
            shapes: shapes.iter().map(ToString::to_string).collect(),
        })
    }

    pub(super) fn links(&self) -> usize {
        self.description["links"].as_array().map_or(0, Vec::len)
    }

    pub(super) fn address(&self, link: usize, host: usize) -> Ipv4Addr {
        let text = self.description["links"][link]["v4"][host].as_str().unwrap_or_default();
        text.parse().expect("the agent prints addresses")
    }

    /// The initial rate of a link in the sending direction of a host, Mbit/s; 0 if it has none.
    pub(super) fn rate_mbps(&self, link: usize, host: usize) -> f64 {
        let shape = &self.shapes[link];
        let shape = shape.split('/').nth(host).unwrap_or(shape);
        let rate =
            shape.split_whitespace().find_map(|word| word.strip_prefix("rate=").or(word.strip_prefix("police=")));
        rate.and_then(|rate| rate.split("mbit").next()?.parse().ok()).unwrap_or_default()
    }

    pub(super) fn device(&self, link: usize) -> &str {
        self.description["links"][link]["device"].as_str().unwrap_or_default()
    }

    pub(super) fn namespace(&self, host: usize) -> &str {
        self.description["hosts"][host].as_str().unwrap_or_default()
    }

    /// Changes a link that has a delay: `forward`, `reverse` or `both`, then `up`, `down`, `rate=` or `delay=`.
    pub(super) fn change(&self, link: usize, words: &str) {
        let mut control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((input, output)) = control.as_mut() else { return };
        let mut answer = String::new();
        let changed = writeln!(input, "{link} {words}").and_then(|()| output.read_line(&mut answer));
        if changed.is_err() || answer.trim() != "done" {
            eprintln!("  link {link} does not change, {words}: {}", answer.trim());
        }
    }

    /// A command line, split at blanks, to run in a host.
    pub(super) fn command(&self, host: usize, line: &str) -> Command {
        // With the host's own view of /sys, which the daemon writes to.
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.namespace(host)]).args(line.split_whitespace());
        command
    }

    /// Runs a command line in a host to its end.
    pub(super) fn run(&self, host: usize, line: &str) -> Result<String, String> {
        let output = self.command(host, line).output().map_err(|error| format!("`{line}`: {error}"))?;
        let message = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(format!("`{line}`: {}", message.trim()))
        }
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        // The end of its input ends it.
        *self.control.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
        let _ = self.agent.wait();
    }
}

//! Two hosts joined by links: the lab's agent makes them, and removes them when this process ends.

use super::programs::Programs;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};

/// Index of the client's host.
pub(super) const CLIENT: usize = 0;
/// Index of the server's host.
pub(super) const SERVER: usize = 1;

/// A running testbed.
#[derive(Debug)]
pub(super) struct Testbed {
    agent: Child,
    description: Value,
}

impl Testbed {
    /// Makes a link for each shape; an empty shape is a link without limits.
    pub(super) fn make(programs: &Programs, shapes: &[&str]) -> Result<Self, String> {
        let mut agent = Command::new(&programs.agent);
        agent.arg("testbed").args(shapes).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut agent = agent.spawn().map_err(|error| format!("cannot run {}: {error}", programs.agent.display()))?;
        let mut line = String::new();
        let out = agent.stdout.as_mut().expect("it is piped");
        BufReader::new(out).read_line(&mut line).map_err(|error| error.to_string())?;
        let description = serde_json::from_str(&line).map_err(|_| "the lab's agent made no testbed".to_owned())?;
        Ok(Self { agent, description })
    }

    pub(super) fn links(&self) -> usize {
        self.description["links"].as_array().map_or(0, Vec::len)
    }

    pub(super) fn address(&self, link: usize, host: usize) -> Ipv4Addr {
        let text = self.description["links"][link]["v4"][host].as_str().unwrap_or_default();
        text.parse().expect("the agent prints addresses")
    }

    pub(super) fn device(&self, link: usize) -> &str {
        self.description["links"][link]["device"].as_str().unwrap_or_default()
    }

    pub(super) fn namespace(&self, host: usize) -> &str {
        self.description["hosts"][host].as_str().unwrap_or_default()
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
        drop(self.agent.stdin.take());
        let _ = self.agent.wait();
    }
}

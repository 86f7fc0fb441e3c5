//! The commands that make a testbed.

use super::Error;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::Command;

pub(super) fn device(link: usize) -> String {
    format!("p{link}")
}

pub(super) fn v4(link: usize, end: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 88, link as u8, end as u8 + 1)
}

pub(super) fn v6(link: usize, end: usize) -> Ipv6Addr {
    Ipv6Addr::new(0xfd88, link as u16, 0, 0, 0, 0, 0, end as u16 + 1)
}

/// Makes a host: a namespace with loopback, whose TCP caches no metrics of earlier connections.
pub(super) fn host(name: &str) -> Result<(), Error> {
    run(&format!("ip netns add {name}"))?;
    run(&format!("ip -n {name} link set lo up"))?;
    let line = "sysctl -qw net.ipv4.tcp_no_metrics_save=1";
    finish(in_namespace(name, "sysctl").args(line.split(' ').skip(1)), line).map(drop)
}

/// Sets the addresses of both ends of a link.
pub(super) fn addresses(link: usize, hosts: [&str; 2]) -> Result<(), Error> {
    let device = device(link);
    for (end, host) in hosts.into_iter().enumerate() {
        run(&format!("ip -n {host} address add {}/24 dev {device}", v4(link, end)))?;
        run(&format!("ip -n {host} address add {}/64 dev {device} nodad", v6(link, end)))?;
        run(&format!("ip -n {host} link set {device} up"))?;
    }
    Ok(())
}

/// A command that runs `program` in a namespace.
pub(super) fn in_namespace(namespace: &str, program: &str) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/run/netns/{namespace}")).arg(program);
    command
}

/// Runs a command line, split at blanks, and returns its output.
pub(super) fn run(line: &str) -> Result<String, Error> {
    let mut tokens = line.split_whitespace();
    finish(Command::new(tokens.next().unwrap_or_default()).args(tokens), line)
}

/// Runs a command to its end and returns its output; `line` names it in errors.
pub(super) fn finish(command: &mut Command, line: &str) -> Result<String, Error> {
    let output = command.output().map_err(|error| Error::command(line, error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let message =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).trim().to_owned()).join(" ");
    Err(Error::command(line, if message.trim().is_empty() { output.status.to_string() } else { message }))
}

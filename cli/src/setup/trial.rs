//! Traffic that a setup takes over a remote login is given back automatically, unless it is confirmed in time: the login's
//! own answers would go through the tunnel, and nobody could undo the setup remotely.
//!
//! While the trial lasts, the configuration file has the inner networks alone, and only the running daemon has the others: a
//! restart ends the trial too.

use super::environment;
use super::keep;
use super::plan::{Plan, Step, replace_text};
use super::record::{Record, TrialRecord};
use super::service::{own_program, wait};
use super::{SetupClient, host};
use crate::tunnel::runtime_directory;
use crate::{Failure, output};
use daemon::control_plane::Client;
use ipnet::IpNet;
use std::fs;
use std::io::BufRead;
use std::net::IpAddr;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// The time for a confirmation if a login is remote, seconds.
pub(super) const TIME_S: u32 = 180;

/// The address that this login comes from by SSH.
pub(super) fn remote_login() -> Option<IpAddr> {
    of_connection(client_address)
}

/// The TCP port of this host that this login uses by SSH.
pub(super) fn login_port() -> Option<u16> {
    of_connection(server_port)
}

/// What `read` finds in `SSH_CONNECTION` of this process, or, as `sudo` removes it, of one of those that started it.
fn of_connection<T>(read: fn(&str) -> Option<T>) -> Option<T> {
    let mut process = std::process::id();
    while process > 1 {
        let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0).filter_map(|line| std::str::from_utf8(line).ok());
        if let Some(login) = variables.find_map(|line| read(line.strip_prefix("SSH_CONNECTION=")?)) {
            return Some(login);
        }
        process = parent(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)?;
    }
    None
}

/// The client's address in `CLIENT PORT SERVER PORT` (sshd(8)).
fn client_address(value: &str) -> Option<IpAddr> {
    value.split(' ').next()?.split('%').next()?.parse().ok()
}

/// The server's port in the same text.
fn server_port(value: &str) -> Option<u16> {
    value.split(' ').nth(3)?.parse().ok()
}

/// The parent in a line of `/proc/PID/stat`, after the name in parentheses and the state (proc(5)).
fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Whether answers to `login` will go through the tunnel: no device of this host has its network.
pub(super) fn is_affected(login: IpAddr, networks: &[IpNet]) -> bool {
    let is_neighbour = || host::addresses().iter().any(|address| address.network.contains(&login));
    networks.iter().any(|network| network.contains(&login)) && !login.is_loopback() && !is_neighbour()
}

/// The note of a plan about a remote login.
pub(super) fn note(login: IpAddr, arguments: &SetupClient) -> String {
    let start = format!("this login comes from {login} (SSH), whose answers will go through the tunnel");
    match arguments.confirm_within.or((!arguments.yes).then_some(TIME_S)) {
        Some(seconds) => {
            format!("{start}: everything goes as before again, unless that is confirmed within {seconds} s")
        }
        None => format!(
            "{start}. --yes assumes that this machine can be reached in another way; --confirm-within SECONDS takes the traffic \
             for that time, unless `ropewalk setup confirm` follows"
        ),
    }
}

/// Makes the steps from number `first` on, which take the traffic, for `time_s` seconds if that is given. The traffic is on
/// trial until the record says otherwise.
pub(super) fn take(plan: &Plan, first: usize, record: &mut Record, time_s: Option<u32>) -> Result<(), Failure> {
    let traffic = plan.steps.iter().find_map(|step| match step {
        Step::Traffic(traffic) => Some(traffic),
        _ => None,
    });
    let Some(traffic) = traffic else { return Ok(()) };
    let (config, after) = (traffic.config.clone(), traffic.after.clone());
    record.trial = Some(TrialRecord { process: std::process::id(), undo_from: record.undo.len(), config, after });
    record.write().map_err(environment)?;
    if let Some(seconds) = time_s {
        start_timer(&record.interface, seconds)?;
    }
    plan.carry_out(first.., record).map_err(environment)?;
    if time_s.is_some() {
        replace_text(&traffic.config, &traffic.before).map_err(environment)?;
    }
    Ok(())
}

/// Starts the process that ends the trial: it outlives the login.
fn start_timer(name: &str, seconds: u32) -> Result<(), Failure> {
    let process = std::process::id().to_string();
    let mut command = Command::new(own_program());
    command.args(["setup", "end-trial", name, &process, &seconds.to_string()]);
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    spawned.map(drop).map_err(|error| environment(error.to_string()))
}

/// Ends the trial that the setup `process` began, unless it was confirmed.
pub(super) fn end(name: &str, process: u32, seconds: u32) -> Result<(), Failure> {
    // The end of the login sends a signal to the processes of its session.
    let _ = nix::unistd::setsid();
    std::thread::sleep(Duration::from_secs(seconds.into()));
    match Record::read(name).map_err(environment)? {
        Some(mut record) if record.trial.as_ref().is_some_and(|trial| trial.process == process) => {
            give_back(&mut record).map_err(environment)
        }
        _ => Ok(()),
    }
}

/// Undoes the steps that took the traffic. A confirmation can take it again.
pub(super) fn give_back(record: &mut Record) -> Result<(), String> {
    let Some(trial) = record.trial.as_mut() else { return Ok(()) };
    let taken = record.undo.split_off(trial.undo_from.min(record.undo.len()));
    trial.process = 0;
    record.write()?;
    Record { undo: taken, is_complete: true, ..record.clone() }
        .undo()
        .first()
        .map_or(Ok(()), |error| Err(error.clone()))
}

/// `setup confirm`: traffic taken on trial stays, and is taken again if it was given back.
pub(super) fn confirm(name: &str) -> Result<(), Failure> {
    let mut record = Record::read(name)
        .map_err(environment)?
        .ok_or_else(|| environment(format!("no tunnel {name} was set up here")))?;
    let Some(trial) = record.trial.take() else {
        return output::print(&format!("{name}: there is nothing to confirm\n"));
    };
    replace_text(&trial.config, &trial.after).map_err(environment)?;
    (record.is_complete, record.client) = (true, None);
    record.write().map_err(environment)?;
    let reloaded = Client::new(&runtime_directory(), name).request("POST", "/v1/reload", "");
    reloaded.map_err(|error| environment(format!("{name}: confirmed, but not reloaded: {error}")))?;
    keep::look(name);
    output::print(&format!("{name}: confirmed\n"))
}

/// Asks on the terminal whether the login still works.
pub(super) fn ask(name: &str, login: Option<IpAddr>, seconds: u32, is_script: bool) -> Result<(), Failure> {
    if is_script {
        return output::print(&format!("`ropewalk setup confirm --name {name}` within {seconds} s keeps it.\n"));
    }
    let from = login.map_or_else(String::new, |login| format!(" from {login}"));
    output::print(&format!(
        "\nDoes this login{from} still work? Enter within {seconds} s keeps it, otherwise all goes as before again.\n"
    ))?;
    let (sender, answer) = mpsc::channel();
    std::thread::spawn(move || {
        let read = std::io::stdin().lock().read_line(&mut String::new());
        let _ = sender.send(read.is_ok_and(|bytes| bytes > 0));
    });
    if answer.recv_timeout(Duration::from_secs(seconds.into())) == Ok(true) {
        return confirm(name);
    }
    let is_over =
        || Record::read(name).ok().flatten().is_none_or(|record| record.trial.is_none_or(|trial| trial.process == 0));
    wait(is_over);
    Err(environment(format!(
        "not confirmed: the traffic of this machine goes as before, and {name} carries its inner networks alone; `ropewalk setup \
         confirm --name {name}` takes it again, `ropewalk setup remove` undoes the rest"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_login_and_the_parent_of_a_process_are_read() {
        let addresses = ["203.0.113.9 50022 192.0.2.1 22", "fe80::1%eth0 1 fe80::2%eth0 22"].map(client_address);
        assert_eq!(addresses, [Some("203.0.113.9".parse().unwrap()), Some("fe80::1".parse().unwrap())]);
        assert_eq!(client_address("nonsense"), None);
        assert_eq!([server_port("203.0.113.9 50022 192.0.2.1 2222"), server_port("203.0.113.9 1")], [Some(2222), None]);
        assert_eq!(parent("4711 (a (b) c) S 42 4711 4711 0 -1"), Some(42));
    }
}

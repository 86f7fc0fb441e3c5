//! `ropewalk kernel run`.

use super::program::folder;
use super::{Process, command, free, kernel_group, turn, with};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use testing::{Reason, eventually, skip};

/// Prints the congestion controls of a listener, of who connects to it, and of who is accepted, then the protocol.
const SOCKETS: &str = "
import socket, sys
family, address = (socket.AF_INET6, '::1') if sys.argv[1] == '6' else (socket.AF_INET, '127.0.0.1')
listener = socket.socket(family); listener.bind((address, 0)); listener.listen()
client = socket.socket(family); client.connect(listener.getsockname())
server, _ = listener.accept()
for each in listener, client, server:
    print(each.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b'\\0').decode(), end=' ')
print(client.getsockopt(socket.SOL_SOCKET, 38))";
/// As [`SOCKETS`], of who connects alone.
const STATIC: &str = "
#include <stdio.h>
#include <arpa/inet.h>
#include <netinet/tcp.h>
int main(void)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t size = sizeof to, name_size = 16;
    char name[17] = \"\";
    int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    bind(listener, (void *)&to, size), listen(listener, 1), getsockname(listener, (void *)&to, &size);
    connect(client, (void *)&to, size);
    getsockopt(client, IPPROTO_TCP, TCP_CONGESTION, name, &name_size);
    return puts(name) < 0;
}";

/// The turn of a test that may make control groups, and a program that nobody has loaded.
fn turn_with_program() -> Option<(fs::File, &'static str)> {
    let turn = turn()?;
    if let Err(error) = kernel_group() {
        skip(Reason::Kernel, &format!("no control group can be made: {error}"));
        return None;
    }
    // People who try programs by hand take the first ones.
    free().last().map(|name| (turn, *name))
}

fn run(name: &str, options: &[&str], words: &[&str]) -> Output {
    command(&[&["kernel", "run", name], options, &["--"], words].concat()).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn a_program_and_its_children_have_the_congestion_control_and_nobody_else() {
    let Some((_turn, name)) = turn_with_program() else { return };
    for version in ["4", "6"] {
        let output = run(name, &[], &["sh", "-c", "python3 -c \"$0\" $1; exit 7", SOCKETS, version]);
        let expected = format!("{name} {name} {name} 6\n");
        assert_eq!((text(&output.stdout), output.status.code()), (&*expected, Some(7)), "{output:?}");
        let says = text(&output.stderr).starts_with(&format!("{name} is loaded, id "));
        assert_eq!(says, version == "4", "it is loaded by the first: {output:?}");
    }
    let mptcp = run(name, &["--mptcp"], &["python3", "-c", SOCKETS, "4"]);
    let other = Command::new("python3").args(["-c", SOCKETS, "4"]).output().unwrap();
    let default = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
    assert_eq!(with("unload", &[name]).code, Some(0));
    if text(&mptcp.stderr).contains("apt-get install mptcpize") {
        skip(Reason::Missing, "mptcpize: apt-get install mptcpize");
    } else {
        assert_eq!(text(&mptcp.stdout), format!("{name} {name} {name} 262\n"), "{mptcp:?}");
    }
    let default = default.trim();
    assert_eq!(text(&other.stdout), format!("{default} {default} {default} 6\n"));
}

#[test]
fn a_static_program_has_it_too() {
    let Some((_turn, name)) = turn_with_program() else { return };
    let folder = folder("kernel-run-static");
    let (source, program) = (folder.join("sockets.c"), folder.join("sockets"));
    fs::write(&source, STATIC).unwrap();
    let compiled = Command::new("cc").args(["-static", "-o"]).args([&program, &source]).output();
    if !compiled.is_ok_and(|output| output.status.success()) {
        return skip(Reason::Missing, "cc -static: apt-get install gcc libc6-dev");
    }
    let output = run(name, &[], &[program.to_str().unwrap()]);
    assert_eq!(with("unload", &[name]).code, Some(0));
    assert_eq!(text(&output.stdout), format!("{name}\n"), "{output:?}");
}

#[test]
fn it_is_the_callers_and_the_signal_is_its_own() {
    let Some((_turn, name)) = turn_with_program() else { return };
    let mut command = command(&["kernel", "run", name, "--", "sh", "-c", "id -u; echo $HOME; kill -TERM $$"]);
    let output = command.env("SUDO_UID", "65534").output().unwrap();
    assert_eq!(with("unload", &[name]).code, Some(0));
    assert_eq!((text(&output.stdout), output.status.signal()), ("65534\n/nonexistent\n", Some(15)), "{output:?}");
}

#[test]
fn a_program_that_is_killed_leaves_no_group_and_no_process() {
    let Some((_turn, name)) = turn_with_program() else { return };
    let script = "grep ^0:: /proc/self/cgroup; exec sleep 1000";
    let mut command = command(&["kernel", "run", name, "--", "sh", "-c", script]);
    let mut program = Process(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(program.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let group = kernel_group().unwrap().join(format!("ropewalk-run-{}", program.0.id()));
    assert!(line.trim().ends_with(&format!("ropewalk-run-{}", program.0.id())), "it is this process: {line}");
    assert!(group.is_dir() && is_kept(&group));
    program.0.kill().unwrap();
    program.0.wait().unwrap();
    assert!(eventually(|| !group.exists() && !is_kept(&group)));
    assert_eq!(with("unload", &[name]).code, Some(0));
}

/// Whether a process has the group's folder among its arguments.
fn is_kept(group: &Path) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.any(|line| line.split('\0').any(|word| Path::new(word) == group))
}

#[test]
fn what_cannot_be_run_is_named() {
    let Some((_turn, name)) = turn_with_program() else { return };
    let missing = run(name, &[], &["no-such-program"]);
    let user = run(name, &["--user", "no-such-user"], &["true"]);
    assert_eq!(with("unload", &[name]).code, Some(0));
    assert_eq!(missing.status.code(), Some(4));
    assert!(text(&missing.stderr).ends_with("error: no-such-program: No such file or directory (os error 2)\n"));
    assert_eq!(
        (user.status.code(), text(&user.stderr).lines().next()),
        (Some(2), Some("error: no user `no-such-user`"))
    );
}

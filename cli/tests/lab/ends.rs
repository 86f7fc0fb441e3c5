//! Runs in the machine's own kernel: what they leave on the machine, and their errors.

use crate::program::{command, folder, ropewalk, write};
use crate::{cpu_lock, namespaces};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::MutexGuard;
use testing::{Reason, eventually, skip};

/// Two paths, one of which is emulated where the kernel has no `netem`.
const PATHS: &str = "[[path]]\nname = \"a\"\nrate = \"20mbit\"\nqueue = { limit = \"60p\" }\n\
                     [[path]]\nname = \"b\"\nrate = \"10mbit\"\ndelay = \"5ms\"\nqueue = { limit = \"60p\" }\n";
const TUNNEL: &str = "[tunnel]\nkind = \"mpt-gre\"\nresequence = { window = \"1600p\", timeout = \"300ms\" }\n\
                      [[flow]]\nname = \"tcp\"\n";
const MPTCP: &str = "[[flow]]\nname = \"tcp\"\nkind = \"mptcp\"\n";

/// A folder with the scenario `x.toml`, unless there is nothing to run it on.
fn scenario(name: &str, duration: &str, rest: &str) -> Option<(PathBuf, MutexGuard<'static, ()>)> {
    lab::testbed::possible().map_err(|reason| skip(Reason::Missing, &reason)).ok()?;
    let cpu_lock = cpu_lock();
    let dir = folder(name);
    write(&dir, "x.toml", &format!("name = \"{name}\"\nduration = \"{duration}\"\n{PATHS}{rest}"));
    Some((dir, cpu_lock))
}

/// The arguments of `ropewalk run` for the scenario in `dir`, with the results in its folder `out`.
fn run_arguments(dir: &Path, out: &str) -> Vec<String> {
    let file = |name: &str| dir.join(name).display().to_string();
    ["run", &file("x.toml"), "--on", "netns", "--quiet", "--out", &file(out)].map(str::to_owned).to_vec()
}

fn run(dir: &Path, out: &str) -> Command {
    let arguments = run_arguments(dir, out);
    let mut command = command(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// [`run`] with SIGINT's default action: a shell that runs the tests in the background has them ignore the signal, and
/// children inherit that.
fn interruptible_run(dir: &Path, out: &str) -> Command {
    let run = run(dir, out);
    let mut command = Command::new("env");
    command.arg("--default-signal=INT").arg(run.get_program()).args(run.get_args());
    command
}

/// Processes that belong to a run below this folder, and files there.
fn leftovers(temporary: &Path) -> Vec<String> {
    let mark = format!("ROPEWALK_LAB={}", temporary.display());
    let environ = |pid: &String| fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let names = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut leftovers: Vec<String> =
        names(Path::new("/proc")).map(|name| name.to_string_lossy().into_owned()).collect();
    leftovers.retain(|pid| environ(pid).windows(mark.len()).any(|part| part == mark.as_bytes()));
    leftovers.extend(names(temporary).map(|name| name.to_string_lossy().into_owned()));
    leftovers
}

#[test]
fn nothing_is_left_of_a_run_that_is_interrupted() {
    let Some((dir, _cpu_lock)) = scenario("interrupted", "600s", TUNNEL) else { return };
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGKILL] {
        let temporary = dir.join(signal.as_str());
        fs::create_dir(&temporary).unwrap();
        let mut run = interruptible_run(&dir, &format!("out-{signal}"))
            .env("TMPDIR", &temporary)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Both daemons, an emulator or two, the agent.
        let under_way = || leftovers(&temporary).len() > 4 && namespaces(run.id()).len() > 3;
        assert!(eventually(under_way), "{:?}", leftovers(&temporary));
        kill(Pid::from_raw(run.id().cast_signed()), signal).unwrap();
        let mut status = None;
        assert!(eventually(|| (status = run.try_wait().unwrap(), status.is_some()).1), "{signal}: the run goes on");
        assert!(!status.is_some_and(|status| status.success()));
        let all_gone = || leftovers(&temporary).is_empty() && namespaces(run.id()).is_empty();
        assert!(eventually(all_gone), "{signal}: {:?}, {:?}", leftovers(&temporary), namespaces(run.id()));
    }
}

#[test]
fn two_studies_at_once_do_not_disturb_each_other() {
    let Some((dir, _cpu_lock)) = scenario("at-once", "1s", MPTCP) else { return };
    let runs = ["one", "two"].map(|out| run(&dir, out).spawn().unwrap());
    for run in runs {
        let output = run.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_set_up_that_fails_names_the_command() {
    let Some((dir, _cpu_lock)) = scenario("failing", "1s", MPTCP) else { return };
    let programs = dir.join("programs");
    fs::create_dir(&programs).unwrap();
    write(&programs, "ethtool", "#!/bin/sh\necho no such feature >&2\nexit 3\n");
    fs::set_permissions(programs.join("ethtool"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let output = run(&dir, "out").env("PATH", path).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("the setup failed (exit status: 3), at `ip netns exec rw-"), "{stderr}");
    assert!(stderr.contains("ethtool -K p0 tso off") && stderr.contains("no such feature"), "{stderr}");
}

#[test]
fn a_subflow_that_does_not_join_is_an_error_and_no_silent_single_path() {
    let down = "start = \"3s\"\n[[event]]\nat = \"100ms\"\npath = \"b\"\nup = false\n";
    let Some((dir, _cpu_lock)) = scenario("joining", "6s", &format!("{MPTCP}{down}")) else { return };
    let output = run(&dir, "out").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("flow tcp: 0 of 1 further subflows joined; nothing over b"), "{stderr}");
}

#[test]
fn a_capture_without_a_recorder_is_refused_before_anything_runs() {
    let Some((dir, _cpu_lock)) = scenario("capture", "1s", MPTCP) else { return };
    let programs = dir.join("programs");
    fs::create_dir(&programs).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    for program in ["ip", "sh", "tc"] {
        let file = std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.exists());
        symlink(file.unwrap(), programs.join(program)).unwrap();
    }
    let output = run(&dir, "out").arg("--capture").env("PATH", &programs).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{stderr}");
    assert!(stderr.contains("apt-get install wireshark-common") && !dir.join("out").exists(), "{stderr}");
    let file = dir.join("x.toml").display().to_string();
    let simulated = ropewalk(&["run", &file, "--capture"]);
    assert_eq!(simulated.code, Some(2), "{}", simulated.stderr);
}

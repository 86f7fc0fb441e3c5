//! `ropewalk kernel` on the running kernel. Names of programs are the kernel's, not this process's: the tests take
//! turns with each other and with the lab's runs, and leave alone what somebody else has loaded.

mod access;
mod alone;
mod generations;
mod metrics;
#[path = "../program/mod.rs"]
mod program;
mod run;

use program::{Outcome, command, ropewalk};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use testing::{Reason, skip};

/// A user without privileges.
const NOBODY: u32 = 65534;

/// The folder of the lock under which the lab loads and unloads (`lab/src/programs/hold.rs`).
const LOCK_FOLDER: &str = "/run/ropewalk-lab";

/// The turn of a test: a lock, which ends with its process; none where programs cannot be loaded, which is noted.
fn turn() -> Option<File> {
    let obstacles = kernel::check().into_iter().filter(kernel::Condition::is_obstacle);
    let obstacles: Vec<&str> = obstacles.map(|condition| condition.name).collect();
    match obstacles[..] {
        [] => {
            fs::create_dir_all(LOCK_FOLDER).unwrap();
            let file = format!("{LOCK_FOLDER}/lock");
            let lock = File::options().write(true).create(true).truncate(false).open(file).unwrap();
            lock.lock().unwrap();
            Some(lock)
        }
        ["capabilities"] => {
            skip(Reason::Missing, "needs root");
            None
        }
        _ => {
            skip(Reason::Kernel, &format!("the kernel lacks what programs need: {}", obstacles.join(", ")));
            None
        }
    }
}

/// The control group of this process, in which others can be made.
fn kernel_group() -> std::io::Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"));
    let point = mount.and_then(|line| line.split(' ').nth(1)).ok_or_else(|| std::io::Error::other("no cgroup2"))?;
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let group = PathBuf::from(point).join(path);
    let trial = group.join(format!("ropewalk-trial-{}", std::process::id()));
    fs::create_dir(&trial).and_then(|()| fs::remove_dir(&trial)).map(|()| group)
}

/// The programs that nobody has loaded. Of the others it is noted that they were left out.
fn free() -> Vec<&'static str> {
    let (loaded, free): (Vec<&str>, Vec<&str>) = kernel::PROGRAMS
        .iter()
        .map(|program| program.kernel_name)
        .partition(|name| kernel::registered().contains(*name));
    if !loaded.is_empty() {
        skip(Reason::Kernel, &format!("loaded by somebody else, and left out: {}", loaded.join(", ")));
    }
    free
}

/// What a verb did with these names; without the warning that `load` prints of some kernels.
fn with(verb: &str, names: &[&str]) -> Outcome {
    let outcome = ropewalk(&[&["kernel", verb], names].concat());
    Outcome { stderr: without_warning(&outcome.stderr), ..outcome }
}

fn without_warning(text: &str) -> String {
    let lines = text.split_inclusive('\n');
    lines.filter(|line| !line.starts_with("warning: this kernel leaves programs out")).collect()
}

fn json(arguments: &[&str]) -> Value {
    let outcome = ropewalk(arguments);
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome:?}"))
}

/// The names that `list` says are loaded.
fn listed() -> BTreeSet<String> {
    let list = json(&["kernel", "list", "--json"]);
    let loaded = list.as_array().unwrap().iter().filter(|entry| entry["loaded"] == true);
    loaded.map(|entry| entry["kernel_name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_program_is_loaded_and_unloaded_once() {
    let Some(_turn) = turn() else { return };
    for name in free() {
        let loaded = with("load", &[name]);
        assert_eq!((loaded.code, loaded.stderr.as_str()), (Some(0), ""), "{name}");
        assert!(loaded.stdout.starts_with(&format!("{name} is loaded, id ")), "{loaded:?}");
        assert!(listed().contains(name) && kernel::loaded().iter().any(|loaded| loaded.program.kernel_name == name));
        let again = with("load", &[name]);
        assert_eq!((again.code, again.stderr), (Some(4), format!("error: {name} is already loaded\n")));
        let unloaded = with("unload", &[name]);
        assert_eq!((unloaded.code, unloaded.stdout), (Some(0), format!("{name} is unloaded\n")), "{}", unloaded.stderr);
        assert!(!listed().contains(name));
        let again = with("unload", &[name]);
        assert_eq!((again.code, again.stderr), (Some(4), format!("error: {name} is not loaded\n")));
    }
}

#[test]
fn of_several_programs_one_that_fails_does_not_keep_the_others() {
    let Some(_turn) = turn() else { return };
    let [first, second, ..] = free()[..] else { return };
    assert_eq!(with("load", &[first]).code, Some(0));
    let both = with("load", &[first, second]);
    assert_eq!((both.code, both.stderr), (Some(4), format!("error: {first} is already loaded\n")));
    assert!(both.stdout.starts_with(&format!("{second} is loaded")), "{}", both.stdout);
    // The second name does not exist: nothing is touched.
    assert_eq!(with("unload", &[first, "rw_none"]).code, Some(2));
    assert!(listed().contains(first));
    assert_eq!(with("unload", &[first, second]).code, Some(0));
}

#[test]
fn a_wrong_name_is_answered_with_the_names_that_there_are() {
    let outcome = with("load", &["cubic"]);
    assert_eq!(outcome.code, Some(2));
    let names: Vec<&str> = kernel::PROGRAMS.iter().map(|program| program.name).collect();
    let message = format!("error: no program `cubic`\n  help: there are {}\n", names.join(", "));
    assert_eq!(outcome.stderr, message);
}

#[test]
fn all_are_those_that_are_still_to_be_loaded() {
    let Some(_turn) = turn() else { return };
    let [first, ..] = free()[..] else { return };
    if !listed().is_empty() {
        return; // `unload --all` would end what somebody else has loaded
    }
    assert_eq!(with("load", &[first]).code, Some(0));
    let rest = with("load", &["--all"]);
    assert_eq!((rest.code, rest.stdout.lines().count()), (Some(0), kernel::PROGRAMS.len() - 1), "{}", rest.stderr);
    assert_eq!(with("load", &["--all"]).stdout, "all are loaded\n");
    let unloaded = with("unload", &["--all"]);
    assert_eq!((unloaded.code, unloaded.stdout.lines().count()), (Some(0), kernel::PROGRAMS.len()));
    let again = with("unload", &["--all"]);
    assert_eq!((again.code, again.stdout.as_str()), (Some(0), "none is loaded\n"));
}

#[test]
fn of_loaders_at_once_one_loads_and_the_others_say_that_it_is_loaded() {
    let Some(_turn) = turn() else { return };
    let Some(name) = free().first().copied() else { return };
    let start = || command(&["kernel", "load", name]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let loaders: Vec<Child> = (0..4).map(|_| start()).collect();
    let outputs = loaders.into_iter().map(|loader| loader.wait_with_output().unwrap());
    let (loaded, refused): (Vec<_>, Vec<_>) = outputs.partition(|output| output.status.success());
    assert_eq!(with("unload", &[name]).code, Some(0));
    assert_eq!((loaded.len(), refused.len()), (1, 3));
    for output in refused {
        let said = without_warning(&String::from_utf8_lossy(&output.stderr));
        assert_eq!(said, format!("error: {name} is already loaded\n"));
    }
}

/// The program where every user may run it.
fn copy() -> PathBuf {
    let copy = std::env::temp_dir().join(format!("rw-kernel-test-{}", std::process::id()));
    fs::copy(env!("CARGO_BIN_EXE_ropewalk"), &copy).unwrap();
    copy
}

#[test]
fn without_privileges_the_reason_and_the_remedy_are_named() {
    let Some(_turn) = turn() else { return };
    let copy = copy();
    let run = |arguments: &[&str]| {
        Command::new(&copy)
            .args(arguments)
            .current_dir("/")
            .uid(NOBODY)
            .gid(NOBODY)
            .output()
            .expect("the program starts")
    };
    let [check, load] = [run(&["kernel", "check"]), run(&["kernel", "load", "lia"])];
    fs::remove_file(&copy).unwrap();
    let remedy = "help: as root, or with CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON";
    assert_eq!((check.status.code(), load.status.code()), (Some(4), Some(4)));
    assert!(String::from_utf8_lossy(&check.stdout).contains(remedy));
    assert!(String::from_utf8_lossy(&load.stderr).contains(remedy), "{load:?}");
}

/// The capabilities that the systemd unit gives to the program that loads.
fn unit_capabilities() -> String {
    let unit = include_str!("../../../packaging/ropewalk-kernel.service");
    let line = unit.lines().find_map(|line| line.strip_prefix("AmbientCapabilities=")).expect("the unit has some");
    line.split(' ').map(|name| format!(",+{}", name.trim_start_matches("CAP_").to_lowercase())).collect()
}

#[test]
fn the_units_capabilities_are_enough_to_load_but_not_to_unload() {
    let Some(_turn) = turn() else { return };
    let Some(name) = free().first().copied() else { return };
    let (copy, capabilities) = (copy(), unit_capabilities());
    let run = |verb: &str| {
        let options =
            ["bounding-set", "inh-caps", "ambient-caps"].map(|option| format!("--{option}=-all{capabilities}"));
        let mut command = Command::new("setpriv");
        command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups", "--no-new-privs"]).args(options);
        command.arg(&copy).args(["kernel", verb, name]).current_dir("/").output().expect("setpriv starts")
    };
    let [load, unload] = ["load", "unload"].map(run);
    fs::remove_file(&copy).unwrap();
    let said = without_warning(&String::from_utf8_lossy(&load.stderr));
    assert_eq!((load.status.code(), said.as_str()), (Some(0), ""));
    assert!(String::from_utf8_lossy(&unload.stderr).contains("no CAP_SYS_ADMIN\n  help: as root"), "{unload:?}");
    assert_eq!(with("unload", &[name]).code, Some(0));
}

#[test]
fn check_examines_what_loading_needs() {
    let conditions = json(&["kernel", "check", "--json"]);
    let names: Vec<&str> =
        conditions.as_array().unwrap().iter().map(|condition| condition["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["kernel", "types (BTF)", "programs", "BPF JIT", "lockdown", "capabilities", "MPTCP", "tools", "attempt"]
    );
}

/// Root of a user namespace has all capabilities there, and none that loads a program.
#[test]
fn in_a_user_namespace_check_says_that_nothing_can_be_loaded() {
    let Some(_turn) = turn() else { return };
    let inside = |arguments: &[&str]| {
        let program = env!("CARGO_BIN_EXE_ropewalk");
        Command::new("unshare").args(["--user", "--map-root-user", program, "kernel"]).args(arguments).output().unwrap()
    };
    let [check, load] = [inside(&["check"]), inside(&["load", "lia"])];
    if String::from_utf8_lossy(&check.stderr).starts_with("unshare: ") {
        return skip(Reason::Kernel, "user namespaces are forbidden");
    }
    assert_eq!((check.status.code(), load.status.code()), (Some(4), Some(4)));
    assert!(String::from_utf8_lossy(&check.stdout).contains("NO   capabilities  those of a user namespace\n"));
    if free().contains(&"rw_lia") {
        assert!(String::from_utf8_lossy(&load.stderr).contains("help: outside this user namespace"), "{load:?}");
    }
}

/// A connection over the loopback of a namespace of its own: MPTCP from Linux's number 262, with this congestion control.
const CONNECTION: &str = "
import socket, sys
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
listener.bind(('127.0.0.1', 0)); listener.listen()
sender = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[1].encode())
sender.connect(listener.getsockname())
receiver, _ = listener.accept()
sender.sendall(bytes(100000)); received = 0
while received < 100000: received += len(receiver.recv(65536))
print('ready', flush=True); sys.stdin.read()";

/// A process that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_connection_is_shown_with_its_program_and_keeps_it_when_that_is_unloaded() {
    let Some(_turn) = turn() else { return };
    if !free().contains(&"rw_lia") {
        return;
    }
    let namespace = format!("rw-{}-status", std::process::id());
    let ip = |arguments: &str| Command::new("ip").args(arguments.split_whitespace()).status().unwrap().success();
    assert!(ip(&format!("netns add {namespace}")) && ip(&format!("-n {namespace} link set lo up")));
    let inside = |arguments: &[&str]| {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &namespace]).args(arguments);
        command
    };
    assert_eq!(with("load", &["lia"]).code, Some(0));
    let python = inside(&["python3", "-c", CONNECTION, "rw_lia"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut python = Process(python.expect("ip starts"));
    let mut line = String::new();
    BufReader::new(python.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();

    let program = env!("CARGO_BIN_EXE_ropewalk");
    let output = inside(&[program, "kernel", "status", "--json", "lia"]).output().unwrap();
    let default = inside(&["sysctl", "-w", "net.ipv4.tcp_congestion_control=rw_lia"]).output().unwrap();
    let unloaded = inside(&[program, "kernel", "unload", "lia"]).output().unwrap();
    drop(python);
    assert!(ip(&format!("netns del {namespace}")));

    assert_eq!(line, "ready\n");
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(status["programs"][0]["name"], "rw_lia");
    let [connection] = &status["connections"].as_array().unwrap()[..] else { panic!("{status:#}") };
    let [subflow] = &connection["subflows"].as_array().unwrap()[..] else { panic!("{status:#}") };
    assert!(connection["token"].is_u64() && subflow["congestion"] == "rw_lia", "{status:#}");
    // 100 kB by TCP, and a byte that TCP counts for the SYN.
    assert_eq!((subflow["acked_bytes"].as_u64(), subflow["share"].as_f64()), (Some(100_001), Some(1.0)));
    let text = String::from_utf8_lossy(&unloaded.stdout).into_owned();
    let kept =
        "  sockets of this namespace that keep it until they close: 1\n  it is still the default of this namespace, ";
    assert!(default.status.success() && text.starts_with(&format!("rw_lia is unloaded\n{kept}")), "{text}");
}

#[test]
fn a_loader_that_is_killed_leaves_a_program_loaded_or_not_at_all() {
    let Some(_turn) = turn() else { return };
    let Some(name) = free().first().copied() else { return };
    for _ in 0..20 {
        let mut loader = command(&["kernel", "load", name]).stdout(Stdio::null()).spawn().unwrap();
        let _ = loader.kill();
        let _ = loader.wait();
        let is_loaded = listed().contains(name);
        assert_eq!(with("unload", &[name]).code, Some(if is_loaded { 0 } else { 4 }));
    }
}

//! Who may choose a program, and that no packet claims to be ECN-capable on a connection that is not.

use super::{free, listed, turn, with};
use serde_json::Value;
use std::process::Command;

/// A network namespace with its loopback up; it goes when it is dropped.
pub(super) struct Namespace(String);

impl Namespace {
    pub(super) fn new(purpose: &str) -> Self {
        let namespace = Self(format!("rw-{}-{purpose}", std::process::id()));
        assert!(ip(&format!("netns add {}", namespace.0)) && ip(&format!("-n {} link set lo up", namespace.0)));
        namespace
    }

    pub(super) fn name(&self) -> &str {
        &self.0
    }

    /// What a script of Python prints, as JSON.
    fn python(&self, script: &str, arguments: &[&str]) -> Value {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0]).args(["python3", "-c", script]).args(arguments);
        let output = command.output().expect("ip starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        ip(&format!("netns del {}", self.0));
    }
}

pub(super) fn ip(arguments: &str) -> bool {
    Command::new("ip").args(arguments.split_whitespace()).status().is_ok_and(|status| status.success())
}

/// For each name: what became of choosing it for a TCP socket; with `--nobody` as user 65534, which takes all capabilities.
const CHOOSE: &str = "
import json, os, socket, sys
if sys.argv[1] == '--nobody':
    del sys.argv[1]
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
def choose(name):
    try:
        socket.socket().setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        return 'chosen'
    except OSError as error:
        return type(error).__name__
print(json.dumps({name: choose(name) for name in sys.argv[1:]}))";

/// The names that user 65534 without capabilities may choose in a namespace that is not the first.
fn chosen_by_nobody(namespace: &Namespace, names: &[&str]) -> Vec<String> {
    let outcome = namespace.python(CHOOSE, &[&["--nobody"], names].concat());
    let outcome = outcome.as_object().unwrap();
    assert!(outcome.values().all(|result| result == "chosen" || result == "PermissionError"), "{outcome:?}");
    outcome.iter().filter(|(_, result)| *result == "chosen").map(|(name, _)| name.clone()).collect()
}

#[test]
fn a_process_without_privileges_may_choose_what_is_as_gentle_as_reno_and_the_rest_when_it_is_opened() {
    let Some(_turn) = turn() else { return };
    let (namespace, free) = (Namespace::new("access"), free());
    assert_eq!(with("load", &free).code, Some(0));
    let of_default = chosen_by_nobody(&namespace, &free);
    let by_root = namespace.python(CHOOSE, &free);
    assert_eq!(with("unload", &free).code, Some(0));
    assert_eq!(with("load", &[&["--for-everybody"], &free[..]].concat()).code, Some(0));
    let of_opened = chosen_by_nobody(&namespace, &free);
    assert_eq!(with("unload", &free).code, Some(0));

    let mut gentle: Vec<&str> = kernel::PROGRAMS
        .iter()
        .filter(|program| !program.restricted && free.contains(&program.kernel_name))
        .map(|program| program.kernel_name)
        .collect();
    gentle.sort_unstable();
    assert_eq!(of_default, gentle);
    assert!(by_root.as_object().unwrap().values().all(|result| result == "chosen"), "{by_root}");
    assert_eq!(of_opened.len(), free.len());
}

/// What is restricted is at least what Linux restricts of the same name, or more aggressive by design.
#[test]
fn coupled_programs_are_open_and_aggressive_ones_are_not() {
    let restricted = |name: &str| kernel::program(name).unwrap().restricted;
    assert!(kernel::PROGRAMS.iter().all(|program| !(program.coupled && program.restricted)));
    assert!(["dctcp", "scalable", "highspeed", "htcp", "hybla", "illinois", "bic", "bbr"].into_iter().all(restricted));
    assert!(!["vegas", "lp"].into_iter().any(restricted));
}

/// For each name, with TCP and MPTCP, of the end that connects and of the end that listens, whose peer has the first argument: the
/// algorithm that it has after it has sent, and the ECN fields of its packets with data.
const SEND: &str = "
import json, socket, sys
def run(name, protocol, listens):
    sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x800))
    sniffer.bind(('lo', 0x800)); sniffer.setblocking(False)
    listener, client = (socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol) for _ in range(2))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, (name if listens else sys.argv[1]).encode())
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, (sys.argv[1] if listens else name).encode())
    listener.bind(('127.0.0.1', 0)); listener.listen(); client.connect(listener.getsockname())
    accepted, _ = listener.accept()
    sender, receiver = (accepted, client) if listens else (client, accepted)
    sender.sendall(bytes(100000)); received = 0
    while received < 100000: received += len(receiver.recv(65536))
    fields = set()
    while True:
        try: packet = sniffer.recv(100)
        except BlockingIOError: break
        if packet[9] == 6 and int.from_bytes(packet[2:4], 'big') > 200: fields.add(packet[1] & 3)
    name = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).split(b'\\0')[0].decode()
    return [name, sorted(fields)]
print(json.dumps({name: [run(name, protocol, listens) for protocol in (0, 262) for listens in (False, True)]
                  for name in sys.argv[2:]}))";

#[test]
fn a_connection_without_ecn_sends_no_packet_that_claims_it() {
    let Some(_turn) = turn() else { return };
    let (namespace, free) = (Namespace::new("ecn"), free());
    if !free.contains(&"rw_dctcp") {
        return;
    }
    let set_ecn = |value: &str| ip(&format!("netns exec {} sysctl -qw net.ipv4.tcp_ecn={value}", namespace.0));
    assert_eq!(with("load", &free).code, Some(0));
    assert!(set_ecn("0"));
    let refused = namespace.python(SEND, &[&["reno"], &free[..]].concat());
    // A listener without DCTCP refuses it: its SYN is ECT.
    let agreed = namespace.python(SEND, &["rw_dctcp", "rw_dctcp"]);
    assert_eq!(with("unload", &free).code, Some(0));
    assert!(!listed().contains("rw_dctcp"));

    for (name, runs) in refused.as_object().unwrap() {
        let fields: Vec<&Value> = runs.as_array().unwrap().iter().map(|run| &run[1]).collect();
        assert!(fields.iter().all(|fields| **fields == serde_json::json!([0])), "{name}: {runs}");
    }
    // TCP: DCTCP with ECN, its packets ECT(0); Linux's Reno without.
    let (reno, dctcp) = (serde_json::json!(["reno", [0]]), serde_json::json!(["rw_dctcp", [2]]));
    assert!(refused["rw_dctcp"].as_array().unwrap()[..2].iter().all(|run| *run == reno), "{refused}");
    assert!(agreed["rw_dctcp"].as_array().unwrap()[..2].iter().all(|run| *run == dctcp), "{agreed}");
}

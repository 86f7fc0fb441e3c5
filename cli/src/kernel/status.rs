//! `ropewalk kernel status`: the sockets that use programs, and the subflows of MPTCP connections, in all network
//! namespaces.

use super::{alone, namespaces};
use crate::{Failure, output};
use kernel::Loaded;
use serde::Serialize;
use sock_diag::{SockDiag, SocketInfo};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Linux `TCP_TIME_WAIT`: the state of a socket that no longer has a congestion control.
const TIME_WAIT: u8 = 6;
/// The sender's congestion states, by Linux's `tcp_ca_state`.
const CA_STATES: [&str; 5] = ["open", "disorder", "cwr", "recovery", "loss"];
/// Width of the terminal from which on a subflow takes one line, columns.
const WIDE: usize = 120;

/// The document that `--json` prints.
#[derive(Debug, PartialEq, Serialize)]
struct Status {
    programs: Vec<Usage>,
    connections: Vec<Connection>,
}

/// A program that is loaded.
#[derive(Debug, PartialEq, Serialize)]
struct Usage {
    name: &'static str,
    /// Sockets of all namespaces that use it.
    sockets: usize,
    /// Id of its registration; none if it is unloaded, or if the user is not root.
    id: Option<u32>,
    /// Whether the loaded program is that of this version of Ropewalk.
    this_version: Option<bool>,
    /// Ids of earlier registrations, which sockets or the defaults of namespaces keep.
    kept_ids: Vec<u32>,
}

/// An MPTCP connection, or a TCP connection that uses a program.
#[derive(Debug, PartialEq, Serialize)]
struct Connection {
    /// The local MPTCP token; none for plain TCP, and none for a user without CAP_NET_ADMIN.
    token: Option<u32>,
    /// What leads to its network namespace; none of the caller's own.
    namespace: Option<String>,
    /// Of MPTCP: whether all subflows have the same algorithm, as coupling needs.
    same_algorithm: bool,
    subflows: Vec<Subflow>,
}

/// A socket, with what leads to its network namespace.
#[derive(Debug)]
struct Found {
    namespace: Option<String>,
    socket: SocketInfo,
}

/// A subflow.
#[derive(Debug, PartialEq, Serialize)]
struct Subflow {
    local: SocketAddr,
    remote: SocketAddr,
    congestion: String,
    congestion_state: &'static str,
    cwnd_packets: u32,
    ssthresh_packets: u32,
    srtt_ms: f64,
    /// Delivery rate: the kernel's latest sample, or the mean since the previous view.
    rate_mbps: f64,
    /// Payload that was acknowledged, bytes.
    acked_bytes: u64,
    /// Share of the acknowledged payload of all subflows, since the connection began or since the previous view.
    share: f64,
}

/// Acknowledged bytes of the sockets of a view, and the time of the view.
struct View {
    at: Instant,
    acked_bytes: HashMap<Ends, u64>,
}

/// The namespace, this end and the other end of a socket.
type Ends = (Option<String>, SocketAddr, SocketAddr);

/// Prints the status once, or every second until interrupted.
pub(super) fn status(names: &[&str], watch: bool, json: bool) -> Result<(), Failure> {
    let mut before = None;
    let generations = Generations::find();
    loop {
        let (sockets, at) = (sockets_of_all()?, Instant::now());
        let status = assess(&sockets, names, &generations, before.as_ref().map(|view: &View| (view, at - view.at)));
        if json {
            return output::json(&status);
        }
        let text = text(&status, output::width());
        if !watch {
            return output::print(&text);
        }
        output::print_on_clear(&first_lines(&text, output::height()))?;
        let acked_bytes = sockets.iter().map(|found| (ends(found), found.socket.info.bytes_acked)).collect();
        before = Some(View { at, acked_bytes });
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn refused(error: &std::io::Error) -> Failure {
    Failure::Environment(format!("the kernel does not list its sockets: {error}"))
}

/// The sockets of this namespace that use a program.
pub(super) fn users(program: &kernel::Program) -> Result<usize, Failure> {
    let sockets = sockets(&mut SockDiag::new().map_err(|error| refused(&error))?)?;
    Ok(sockets.iter().filter(|socket| socket.congestion == program.kernel_name).count())
}

fn sockets(client: &mut SockDiag) -> Result<Vec<SocketInfo>, Failure> {
    let mut sockets = client.dump(false).map_err(|error| refused(&error))?;
    sockets.extend(client.dump(true).map_err(|error| refused(&error))?);
    sockets.retain(|socket| socket.info.state != TIME_WAIT);
    Ok(sockets)
}

/// The sockets of all namespaces. Sockets that close during the listing are missing.
fn sockets_of_all() -> Result<Vec<Found>, Failure> {
    let mut all = Vec::new();
    for namespace in namespaces::all() {
        let dump = || sockets(&mut SockDiag::new().map_err(|error| refused(&error))?);
        match namespace.within(dump).map_err(|error| refused(&error)).flatten() {
            Ok(sockets) => {
                let name = namespace.name;
                all.extend(sockets.into_iter().map(|socket| Found { namespace: name.clone(), socket }));
            }
            Err(error) if namespace.name.is_none() => return Err(error),
            Err(_) => {}
        }
    }
    Ok(all)
}

fn ends(Found { namespace, socket }: &Found) -> Ends {
    (namespace.clone(), socket.local, socket.remote)
}

/// The registrations of our programs.
#[derive(Debug, Default)]
struct Generations {
    loaded: Vec<(Loaded, Option<bool>)>,
    kept: Vec<Loaded>,
}

impl Generations {
    fn find() -> Self {
        let with_version = |loaded: Loaded| (loaded, loaded.is_of_this_version());
        Self { loaded: kernel::loaded().into_iter().map(with_version).collect(), kept: kernel::kept() }
    }

    fn usage(&self, name: &'static str, sockets: usize) -> Usage {
        let present = self.loaded.iter().find(|(loaded, _)| loaded.program.kernel_name == name);
        let kept = self.kept.iter().filter(|kept| kept.program.kernel_name == name);
        Usage {
            name,
            sockets,
            id: present.map(|(loaded, _)| loaded.id),
            this_version: present.and_then(|(_, version)| *version),
            kept_ids: kept.map(|kept| kept.id).collect(),
        }
    }
}

/// The status from all sockets; `before` is the previous view and the time since then.
fn assess(sockets: &[Found], names: &[&str], generations: &Generations, before: Option<(&View, Duration)>) -> Status {
    let registered = kernel::registered();
    let uses = |name: &str| sockets.iter().filter(|found| found.socket.congestion == name).count();
    let programs =
        kernel::PROGRAMS.iter().map(|program| generations.usage(program.kernel_name, uses(program.kernel_name)));
    let is_wanted = |usage: &Usage| names.is_empty() || names.contains(&usage.name);
    // A program that was unloaded while sockets used it is no longer registered.
    let programs =
        programs.filter(|usage| is_wanted(usage) && (registered.contains(usage.name) || usage.sockets > 0)).collect();
    Status { programs, connections: connections(sockets, names, before) }
}

fn connections(sockets: &[Found], names: &[&str], before: Option<(&View, Duration)>) -> Vec<Connection> {
    let mut multipath: BTreeMap<(Option<&str>, u32), Vec<&Found>> = BTreeMap::new();
    let mut single = Vec::new();
    for found in sockets {
        match found.socket.token {
            Some(token) => multipath.entry((found.namespace.as_deref(), token)).or_default().push(found),
            None if kernel::program(&found.socket.congestion).is_some() => single.push((None, vec![found])),
            None => {}
        }
    }
    let groups = multipath.into_iter().map(|((_, token), sockets)| (Some(token), sockets)).chain(single);
    let is_wanted = |sockets: &[&Found]| {
        names.is_empty() || sockets.iter().any(|found| names.contains(&found.socket.congestion.as_str()))
    };
    groups
        .filter(|(_, sockets)| is_wanted(sockets))
        .map(|(token, sockets)| Connection {
            token,
            namespace: sockets[0].namespace.clone(),
            same_algorithm: sockets.iter().all(|found| found.socket.congestion == sockets[0].socket.congestion),
            subflows: subflows(&sockets, before),
        })
        .collect()
}

fn subflows(sockets: &[&Found], before: Option<(&View, Duration)>) -> Vec<Subflow> {
    let acked = |found: &Found| {
        let earlier = before.and_then(|(view, _)| view.acked_bytes.get(&ends(found)));
        found.socket.info.bytes_acked.saturating_sub(earlier.copied().unwrap_or(0))
    };
    let total: u64 = sockets.iter().map(|socket| acked(socket)).sum();
    let subflow = |found: &&Found| {
        let (socket, info, acked) = (&found.socket, &found.socket.info, acked(found));
        let rate = before.map_or(info.delivery_rate as f64, |(_, span)| acked as f64 / span.as_secs_f64());
        Subflow {
            local: socket.local,
            remote: socket.remote,
            congestion: socket.congestion.clone(),
            congestion_state: CA_STATES.get(usize::from(info.ca_state)).copied().unwrap_or("unknown"),
            cwnd_packets: info.snd_cwnd,
            ssthresh_packets: info.snd_ssthresh,
            srtt_ms: f64::from(info.rtt) / 1e3,
            rate_mbps: rate * 8.0 / 1e6,
            acked_bytes: info.bytes_acked,
            share: if total == 0 { 0.0 } else { acked as f64 / total as f64 },
        }
    };
    sockets.iter().map(subflow).collect()
}

fn text(status: &Status, width: usize) -> String {
    let mut text = String::new();
    let (used, unused): (Vec<&Usage>, Vec<&Usage>) = status.programs.iter().partition(|usage| usage.sockets > 0);
    for usage in &used {
        let _ = writeln!(text, "{:16} {}", usage.name, count(usage.sockets, "socket"));
    }
    status.programs.iter().for_each(|usage| generations(&mut text, usage));
    let unused: Vec<&str> = unused.into_iter().map(|usage| usage.name).collect();
    if status.programs.is_empty() {
        let _ = writeln!(text, "none is loaded: {} load NAME", alone::words());
    } else if !unused.is_empty() {
        text.push_str(&wrapped("loaded, not used here:", &unused, width));
    }
    if status.connections.is_empty() {
        text.push_str("no connection\n");
    }
    for connection in &status.connections {
        let rate: f64 = connection.subflows.iter().map(|subflow| subflow.rate_mbps).sum();
        let title = connection.token.map_or_else(|| "TCP".to_owned(), |token| format!("MPTCP {token:08x}"));
        let subflows =
            connection.token.map_or_else(String::new, |_| format!("{}, ", count(connection.subflows.len(), "subflow")));
        let place = connection.namespace.as_ref().map_or_else(String::new, |name| format!(", in {name}"));
        let _ = writeln!(text, "\n{title}: {subflows}{rate:.1} Mbit/s{place}");
        if !connection.same_algorithm {
            text.push_str("  not all subflows are coupled: they have different algorithms\n");
        }
        connection.subflows.iter().for_each(|subflow| line(&mut text, subflow, width));
    }
    text
}

/// Notes on a program's registrations: one of another version, and earlier ones that are still in use.
fn generations(text: &mut String, usage: &Usage) {
    if usage.this_version == Some(false) {
        let _ = writeln!(
            text,
            "{:16} loaded, of another version of Ropewalk: ropewalk kernel load --replace {0}",
            usage.name
        );
    }
    if usage.kept_ids.is_empty() {
        return;
    }
    let ids = |ids: &[u32]| ids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let now = usage.id.map_or_else(|| "not loaded now".to_owned(), |id| format!("new sockets get id {id}"));
    let _ = writeln!(
        text,
        "{:16} sockets or defaults keep id {}; {now}; they do not couple",
        usage.name,
        ids(&usage.kept_ids)
    );
}

/// The words after the title, in lines of at most this width.
fn wrapped(title: &str, words: &[&str], width: usize) -> String {
    let mut lines = vec![title.to_owned()];
    for word in words {
        if lines[lines.len() - 1].len() + 1 + word.len() > width {
            lines.push(" ".to_owned());
        }
        let last = lines.len() - 1;
        lines[last].push_str(&format!(" {word}"));
    }
    lines.join("\n") + "\n"
}

/// A subflow in one line, or in two if the terminal is narrow.
fn line(text: &mut String, subflow: &Subflow, width: usize) {
    let addresses = format!("{} > {}", subflow.local, subflow.remote);
    let Subflow { congestion, congestion_state: state, cwnd_packets: cwnd, srtt_ms, rate_mbps, share, .. } = subflow;
    let share = share * 100.0;
    let _ = if width < WIDE {
        let values = format!("{congestion} {state}, cwnd {cwnd}, {srtt_ms:.1} ms, {rate_mbps:.1} Mbit/s, {share:.0} %");
        writeln!(text, "  {addresses}\n    {values}")
    } else {
        let values = format!("cwnd {cwnd:<5} {srtt_ms:6.1} ms {rate_mbps:7.1} Mbit/s {share:3.0} %");
        writeln!(text, "  {addresses:45} {congestion:14} {state:8} {values}")
    };
}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// As many lines as a terminal shows; the last says how many are left out.
fn first_lines(text: &str, height: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() < height {
        return text.to_owned();
    }
    let shown = height.saturating_sub(2);
    format!("{}\n... {} more lines\n", lines[..shown].join("\n"), lines.len() - shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(sockets: usize) -> Status {
        let subflow = Subflow {
            local: "10.0.0.1:5000".parse().unwrap(),
            remote: "[2001:db8::1]:443".parse().unwrap(),
            congestion: "rw_lia".to_owned(),
            congestion_state: "open",
            cwnd_packets: 12,
            ssthresh_packets: 8,
            srtt_ms: 20.5,
            rate_mbps: 4.5,
            acked_bytes: 1000,
            share: 0.6,
        };
        let usage =
            |name, sockets| Usage { name, sockets, id: Some(7), this_version: Some(true), kept_ids: Vec::new() };
        let subflows = vec![subflow];
        let connection = Connection { token: Some(0xab), namespace: None, same_algorithm: true, subflows };
        Status { programs: vec![usage("rw_lia", sockets), usage("rw_olia", 0)], connections: vec![connection] }
    }

    #[test]
    fn a_subflow_takes_one_line_where_there_is_room_and_two_where_there_is_not() {
        let (narrow, wide) = (text(&status(2), 60), text(&status(2), WIDE));
        assert_eq!((narrow.lines().count(), wide.lines().count()), (6, 5), "{narrow}{wide}");
        assert!(narrow.lines().all(|line| line.len() <= 60), "{narrow}");
        assert!(wide.lines().all(|line| line.len() <= WIDE), "{wide}");
        assert!(narrow.contains("MPTCP 000000ab: 1 subflow, 4.5 Mbit/s\n"), "{narrow}");
        assert!(narrow.ends_with("    rw_lia open, cwnd 12, 20.5 ms, 4.5 Mbit/s, 60 %\n"), "{narrow}");
    }

    #[test]
    fn what_does_not_couple_is_said() {
        let mut status = status(2);
        (status.programs[0].this_version, status.programs[0].kept_ids) = (Some(false), vec![3, 5]);
        let connection = &mut status.connections[0];
        (connection.same_algorithm, connection.namespace) = (false, Some("/run/netns/x".to_owned()));
        let text = text(&status, WIDE);
        let another =
            "rw_lia           loaded, of another version of Ropewalk: ropewalk kernel load --replace rw_lia\n";
        let kept = "rw_lia           sockets or defaults keep id 3, 5; new sockets get id 7; they do not couple\n";
        assert!(text.contains(another) && text.contains(kept), "{text}");
        assert!(text.contains("4.5 Mbit/s, in /run/netns/x\n  not all subflows are coupled: "), "{text}");
    }

    #[test]
    fn programs_that_nobody_uses_share_lines_of_the_terminals_width() {
        assert!(text(&status(2), 60).starts_with("rw_lia           2 sockets\nloaded, not used here: rw_olia\n"));
        assert_eq!(wrapped("loaded:", &["rw_lia", "rw_olia"], 22), "loaded: rw_lia rw_olia\n");
        assert_eq!(wrapped("loaded:", &["rw_lia", "rw_olia"], 21), "loaded: rw_lia\n  rw_olia\n");
    }

    #[test]
    fn a_terminal_that_is_too_low_says_how_much_it_leaves_out() {
        assert_eq!(first_lines("a\nb\nc\n", 4), "a\nb\nc\n");
        assert_eq!(first_lines("a\nb\nc\nd\n", 4), "a\nb\n... 2 more lines\n");
    }
}

//! `ropewalk kernel status`: the sockets that use programs, and the subflows of MPTCP connections, in the network
//! namespace of the caller.

use super::alone;
use crate::{Failure, output};
use serde::Serialize;
use sock_diag::{SockDiag, SocketInfo};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Linux `TCP_TIME_WAIT`: the state of a socket that has no congestion control any more.
const TIME_WAIT: u8 = 6;
/// The sender's congestion states, by Linux's `tcp_ca_state`.
const CA_STATES: [&str; 5] = ["open", "disorder", "cwr", "recovery", "loss"];
/// From this width on, columns, a subflow takes one line.
const WIDE: usize = 120;

/// What `--json` prints.
#[derive(Debug, PartialEq, Serialize)]
struct Status {
    programs: Vec<Usage>,
    connections: Vec<Connection>,
}

/// A program that is loaded.
#[derive(Debug, PartialEq, Serialize)]
struct Usage {
    name: &'static str,
    /// Sockets of this namespace that use it.
    sockets: usize,
}

/// An MPTCP connection, or a TCP connection that uses a program.
#[derive(Debug, PartialEq, Serialize)]
struct Connection {
    /// The local MPTCP token; none of plain TCP, and none that a user without CAP_NET_ADMIN is told.
    token: Option<u32>,
    subflows: Vec<Subflow>,
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
    /// Delivery rate: the kernel's latest sample, or since the view before.
    rate_mbps: f64,
    /// Payload that was acknowledged, bytes.
    acked_bytes: u64,
    /// Share of the payload of all subflows that was acknowledged, since the connection began or since the view before.
    share: f64,
}

/// Bytes acknowledged by the sockets of a view, and when that was.
struct View {
    at: Instant,
    acked_bytes: HashMap<(SocketAddr, SocketAddr), u64>,
}

/// Prints the status once, or every second until interrupted.
pub(super) fn status(names: &[&str], watch: bool, json: bool) -> Result<(), Failure> {
    let mut client = SockDiag::new().map_err(|error| refused(&error))?;
    let mut before = None;
    loop {
        let (sockets, at) = (sockets(&mut client)?, Instant::now());
        let status = assess(&sockets, names, before.as_ref().map(|view: &View| (view, at - view.at)));
        if json {
            return output::json(&status);
        }
        let text = text(&status, output::width());
        if !watch {
            return output::print(&text);
        }
        output::print_on_clear(&first_lines(&text, output::height()))?;
        let acked_bytes = sockets.iter().map(|socket| (ends(socket), socket.info.bytes_acked)).collect();
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

fn ends(socket: &SocketInfo) -> (SocketAddr, SocketAddr) {
    (socket.local, socket.remote)
}

/// The status from all sockets; `before` is the view before and the time since.
fn assess(sockets: &[SocketInfo], names: &[&str], before: Option<(&View, Duration)>) -> Status {
    let registered = kernel::registered();
    let uses = |name: &str| sockets.iter().filter(|socket| socket.congestion == name).count();
    let programs =
        kernel::PROGRAMS.iter().map(|program| Usage { name: program.kernel_name, sockets: uses(program.kernel_name) });
    let is_wanted = |usage: &Usage| names.is_empty() || names.contains(&usage.name);
    // One that was unloaded while sockets used it is no longer registered.
    let programs =
        programs.filter(|usage| is_wanted(usage) && (registered.contains(usage.name) || usage.sockets > 0)).collect();
    Status { programs, connections: connections(sockets, names, before) }
}

fn connections(sockets: &[SocketInfo], names: &[&str], before: Option<(&View, Duration)>) -> Vec<Connection> {
    let mut multipath: BTreeMap<u32, Vec<&SocketInfo>> = BTreeMap::new();
    let mut single = Vec::new();
    for socket in sockets {
        match socket.token {
            Some(token) => multipath.entry(token).or_default().push(socket),
            None if kernel::program(&socket.congestion).is_some() => single.push((None, vec![socket])),
            None => {}
        }
    }
    let groups = multipath.into_iter().map(|(token, sockets)| (Some(token), sockets)).chain(single);
    let is_wanted = |sockets: &[&SocketInfo]| {
        names.is_empty() || sockets.iter().any(|socket| names.contains(&socket.congestion.as_str()))
    };
    groups
        .filter(|(_, sockets)| is_wanted(sockets))
        .map(|(token, sockets)| Connection { token, subflows: subflows(&sockets, before) })
        .collect()
}

fn subflows(sockets: &[&SocketInfo], before: Option<(&View, Duration)>) -> Vec<Subflow> {
    let acked = |socket: &SocketInfo| {
        let earlier = before.and_then(|(view, _)| view.acked_bytes.get(&ends(socket)));
        socket.info.bytes_acked.saturating_sub(earlier.copied().unwrap_or(0))
    };
    let total: u64 = sockets.iter().map(|socket| acked(socket)).sum();
    let subflow = |socket: &&SocketInfo| {
        let (info, acked) = (&socket.info, acked(socket));
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
    for Usage { name, sockets } in used {
        let _ = writeln!(text, "{name:16} {}", count(*sockets, "socket"));
    }
    let unused: Vec<&str> = unused.into_iter().map(|usage| usage.name).collect();
    if status.programs.is_empty() {
        let _ = writeln!(text, "none is loaded: {} load NAME", alone::words());
    } else if !unused.is_empty() {
        text.push_str(&wrapped("loaded, not used here:", &unused, width));
    }
    if status.connections.is_empty() {
        let verb = format!("{} status", alone::words());
        let _ = writeln!(text, "no connection in this network namespace; another: ip netns exec NAME {verb}");
    }
    for connection in &status.connections {
        let rate: f64 = connection.subflows.iter().map(|subflow| subflow.rate_mbps).sum();
        let title = connection.token.map_or_else(|| "TCP".to_owned(), |token| format!("MPTCP {token:08x}"));
        let subflows =
            connection.token.map_or_else(String::new, |_| format!("{}, ", count(connection.subflows.len(), "subflow")));
        let _ = writeln!(text, "\n{title}: {subflows}{rate:.1} Mbit/s");
        connection.subflows.iter().for_each(|subflow| line(&mut text, subflow, width));
    }
    text
}

/// The words after the title, in lines that are no wider.
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

/// A subflow in one line, or in two where the terminal is narrow.
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
        let programs = vec![Usage { name: "rw_lia", sockets }, Usage { name: "rw_olia", sockets: 0 }];
        Status { programs, connections: vec![Connection { token: Some(0xab), subflows: vec![subflow] }] }
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

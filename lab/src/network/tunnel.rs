//! The tunnel of an experiment: `ropewalk up` at both ends.

use super::host::{route_options, single_segments};
use super::{Network, Subnet, host, uplink};
use params::ParamValue;
use scenario::model::{AlgorithmChoice, Flow, Ropewalk, Route, Tunnel, TunnelOptions};
use std::fmt::Write;
use strings::shell_quoted;

/// The ends at the source and at the sink, in names of files and devices.
pub(crate) const ENDS: [&str; 2] = ["near", "far"];
/// Time limit for all paths of an end to come up, seconds.
const STARTUP_TIMEOUT: u32 = 30;

/// The name of an end's tunnel device.
pub(crate) fn device(end: &str) -> String {
    format!("rw{end}")
}

impl Network<'_> {
    /// The commands that write keys and configurations, start the daemons and wait until every path is up.
    pub(super) fn daemons(&self) -> Vec<String> {
        let Some(tunnel) = &self.experiment.tunnel else { return Vec::new() };
        let Some(pair) = self.tunnel_pair() else { return Vec::new() };
        let mut lines = Vec::new();
        if tunnel.ropewalk.is_some() {
            lines.extend(ENDS.map(|end| {
                let [key, public] =
                    ["key", "public"].map(|extension| self.environment.file(&format!("{end}.{extension}")));
                let program = &self.environment.program;
                format!("(umask 77; {program} genkey >{key}); {program} pubkey <{key} >{public}")
            }));
        }
        for (end_index, end) in ENDS.iter().enumerate() {
            lines.push(self.configuration(tunnel, pair, end_index));
            let (netns, file) =
                (self.host(end_index == 0, pair), self.environment.file(&format!("{}.toml", device(end))));
            let (pid, log) =
                (self.environment.file(&format!("{end}.pid")), self.environment.file(&format!("{end}.log")));
            let run =
                format!("ROPEWALK_RUN={} ip netns exec {netns} {}", self.environment.sockets, self.environment.program);
            lines.push(format!("{run} up {file} >{log} 2>&1 & echo $! >{pid}"));
        }
        for end in ENDS {
            let (status, paths) = (self.status(end), tunnel.paths.len());
            let all_paths_up = format!("[ $({status} | grep -c '\"state\": *\"up\"') -ge {paths} ]");
            lines.push(format!(
                "timeout {STARTUP_TIMEOUT} sh -c {}",
                shell_quoted(&format!("until {all_paths_up}; do sleep 0.1; done"))
            ));
        }
        // TCP in the tunnel takes its options from the route to the other end, which the daemon has added.
        let tcp_host = host(&self.experiment.flows[self.pairs[pair].flow]);
        let near = device(ENDS[0]);
        lines.extend(tcp_host.and_then(|host| single_segments(host, &self.host(true, pair), &near)));
        if let Some(options) = tcp_host.map(route_options) {
            lines.extend([0, 1].map(|end_index| {
                let (netns, peer) = (self.host(end_index == 0, pair), self.family.inner(2 - end_index as u8));
                format!("ip -n {netns} route replace {peer} dev {}{options}", device(ENDS[end_index]))
            }));
        }
        if let Some(device) = tunnel.device {
            let ring = |(end_index, end): (usize, &str)| {
                let netns = self.host(end_index == 0, pair);
                format!("ip -n {netns} link set dev {} txqueuelen {}", self::device(end), device.ring)
            };
            lines.extend(ENDS.into_iter().enumerate().map(ring));
        }
        lines
    }

    /// Commands that print the status of the tunnel's ends.
    pub(crate) fn tunnel_statuses(&self) -> Vec<String> {
        match self.tunnel_pair() {
            Some(_) => ENDS.map(|end| self.status(end)).to_vec(),
            None => Vec::new(),
        }
    }

    /// A command that prints the status of an end as JSON.
    fn status(&self, end: &str) -> String {
        format!("ROPEWALK_RUN={} {} show {} --json", self.environment.sockets, self.environment.program, device(end))
    }

    /// The pair whose hosts are the tunnel's ends.
    pub(super) fn tunnel_pair(&self) -> Option<usize> {
        self.experiment.flows.iter().position(|flow: &Flow| flow.route == Route::Tunnel).map(|k| self.pair_of[k])
    }

    /// A command that writes the configuration of an end.
    fn configuration(&self, tunnel: &Tunnel, pair: usize, end_index: usize) -> String {
        let (address, peer_address) = (self.family.inner(end_index as u8 + 1), self.family.inner(2 - end_index as u8));
        let mut text = format!("[interface]\naddress = \"{address}/{}\"\nmtu = {}\n", self.family.prefix(), tunnel.mtu);
        let _ = match &tunnel.ropewalk {
            None => self.write_mpt(&mut text, tunnel, &peer_address.to_string()),
            Some(ropewalk) => self.write_ropewalk(&mut text, ropewalk, end_index),
        };
        for (path_index, &p) in tunnel.paths.iter().enumerate() {
            let addresses =
                [Subnet::source(pair, p), Subnet::sink(pair, p)].map(|subnet| subnet.address(self.family, 1));
            let (source, remote) = (addresses[end_index], addresses[1 - end_index]);
            let name = &self.experiment.paths[p].name;
            let _ =
                writeln!(text, "\n[[path]]\nname = \"{name}\"\ninterface = \"{}\"\nsource = \"{source}\"", uplink(p));
            // In `ropewalk` mode one end initiates.
            if tunnel.ropewalk.is_none() || end_index == 0 {
                let _ = writeln!(
                    text,
                    "endpoint = \"{remote}\"\nweight = {}",
                    tunnel.weights.get(path_index).unwrap_or(&1)
                );
            }
            let is_in = |list: &[usize]| end_index == 0 && list.contains(&path_index);
            if let Some(ropewalk) = &tunnel.ropewalk {
                let roles = [&ropewalk.backup, &ropewalk.metered, &ropewalk.secondary].map(|list| is_in(list));
                let _ = write!(text, "backup = {}\nmetered = {}\nsecondary = {}\n", roles[0], roles[1], roles[2]);
            }
        }
        format!("cat >{} <<END\n{text}END", self.environment.file(&format!("{}.toml", device(ENDS[end_index]))))
    }

    fn write_mpt(&self, text: &mut String, tunnel: &Tunnel, peer_address: &str) -> std::fmt::Result {
        writeln!(text, "mode = \"mpt\"\nlisten-port = 4754")?;
        writeln!(
            text,
            "\n[[peer]]\naddress = \"{peer_address}\"\nallowed-ips = \"{peer_address}/{}\"",
            if peer_address.contains(':') { 128 } else { 32 }
        )?;
        writeln!(text, "\n[tunnel]\nscheduler = {}", table(&tunnel.mpt_scheduler))?;
        if let Some(resequence) = tunnel.resequence {
            let late = if resequence.deliver_late { "deliver" } else { "drop" };
            writeln!(text, "max-reorder-timeout = \"{}us\"\nlate = \"{late}\"", resequence.timeout.as_nanos() / 1000)?;
        }
        let window = tunnel.resequence.map_or(0, |resequence| resequence.window);
        writeln!(text, "\n[mpt]\nreorder-window = {window}\noffload = {}", tunnel.device.is_none())
    }

    fn write_ropewalk(&self, text: &mut String, ropewalk: &Ropewalk, end_index: usize) -> std::fmt::Result {
        let [end, peer_end] = [ENDS[end_index], ENDS[1 - end_index]];
        let inner = self.family.inner(2 - end_index as u8);
        writeln!(text, "private-key-file = \"{}\"", self.environment.file(&format!("{end}.key")))?;
        let bits = if inner.is_ipv6() { 128 } else { 32 };
        // The shell expands it when it writes the file.
        writeln!(
            text,
            "\n[[peer]]\npublic-key = \"$(cat {})\"\nallowed-ips = \"{inner}/{bits}\"",
            self.environment.file(&format!("{peer_end}.public"))
        )?;
        writeln!(text, "\n[tunnel]")?;
        // Options with the daemon's default values are left out.
        let (options, default) = (&ropewalk.options, TunnelOptions::default());
        for (key, algorithm, default) in [
            ("congestion", &options.congestion, &default.congestion),
            ("scheduler", &options.scheduler, &default.scheduler),
        ] {
            if algorithm != default {
                writeln!(text, "{key} = {}", table(algorithm))?;
            }
        }
        let flags = [
            ("retransmit", options.retransmit, default.retransmit),
            ("ack-filter", options.ack_filter, default.ack_filter),
            ("in-order", options.in_order, default.in_order),
        ];
        for (key, flag, _) in flags.into_iter().filter(|(_, flag, default)| flag != default) {
            writeln!(text, "{key} = {flag}")?;
        }
        if options.deliver_late != default.deliver_late {
            writeln!(text, "late = \"{}\"", if options.deliver_late { "deliver" } else { "drop" })?;
        }
        if options.max_reorder_timeout != default.max_reorder_timeout {
            writeln!(text, "max-reorder-timeout = \"{}us\"", options.max_reorder_timeout.as_nanos() / 1000)?;
        }
        if ropewalk.relay.is_some() {
            writeln!(text, "relay = \"tcp\"")?;
        }
        Ok(())
    }
}

/// A TOML string, inside a text that the shell expands.
fn toml_string(text: &str) -> String {
    let toml = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", toml.replace('\\', "\\\\").replace('$', "\\$").replace('`', "\\`"))
}

/// An algorithm in the daemon's configuration.
fn table(algorithm: &AlgorithmChoice) -> String {
    let mut text = format!("{{ name = \"{}\"", algorithm.name);
    for (key, value) in &algorithm.parameters {
        let _ = match value {
            ParamValue::Number(number) => write!(text, ", {key} = {number}"),
            ParamValue::Choice(word) => write!(text, ", {key} = \"{word}\""),
            // A guest has the files of this machine under the same names.
            ParamValue::File { path, .. } => {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                write!(text, ", {key} = {}", toml_string(&path.display().to_string()))
            }
        };
    }
    text + " }"
}

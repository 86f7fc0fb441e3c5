//! The tunnel of an experiment: `ropewalk up` at both ends.

use super::host::route;
use super::{Network, Subnet, host, uplink};
use crate::shell::quoted;
use params::ParamValue;
use scenario::model::{AlgorithmChoice, Flow, Ropewalk, Route, Tunnel, TunnelOptions};
use std::fmt::Write;

/// Source and sink in the names of files and devices.
pub(crate) const ENDS: [&str; 2] = ["near", "far"];
/// Time limit for all paths of an end to come up, seconds.
const TIMEOUT: u32 = 30;

/// The device of the tunnel's end.
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
                let [key, public] = ["key", "public"].map(|what| self.environment.file(&format!("{end}.{what}")));
                let program = &self.environment.program;
                format!("(umask 77; {program} genkey >{key}); {program} pubkey <{key} >{public}")
            }));
        }
        for (at, end) in ENDS.iter().enumerate() {
            lines.push(self.configuration(tunnel, pair, at));
            let (netns, file) = (self.host(at == 0, pair), self.environment.file(&format!("{}.toml", device(end))));
            let (pid, log) =
                (self.environment.file(&format!("{end}.pid")), self.environment.file(&format!("{end}.log")));
            let run =
                format!("ROPEWALK_RUN={} ip netns exec {netns} {}", self.environment.sockets, self.environment.program);
            lines.push(format!("{run} up {file} >{log} 2>&1 & echo $! >{pid}"));
        }
        for end in ENDS {
            let (status, paths) = (self.status(end), tunnel.paths.len());
            let up = format!("[ $({status} | grep -c '\"state\": *\"up\"') -ge {paths} ]");
            lines.push(format!("timeout {TIMEOUT} sh -c {}", quoted(&format!("until {up}; do sleep 0.1; done"))));
        }
        // TCP inside asks the route to the other end, which is the daemon's.
        if let Some(options) = host(&self.experiment.flows[self.pairs[pair].flow]).map(route) {
            lines.extend([0, 1].map(|at| {
                let (netns, other) = (self.host(at == 0, pair), self.family.inner(2 - at as u8));
                format!("ip -n {netns} route replace {other} dev {}{options}", device(ENDS[at]))
            }));
        }
        if let Some(device) = tunnel.device {
            let ring = |(at, end): (usize, &str)| {
                let netns = self.host(at == 0, pair);
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

    fn status(&self, end: &str) -> String {
        format!("ROPEWALK_RUN={} {} show {} --json", self.environment.sockets, self.environment.program, device(end))
    }

    /// The pair whose hosts are the tunnel's ends.
    fn tunnel_pair(&self) -> Option<usize> {
        self.experiment.flows.iter().position(|flow: &Flow| flow.route == Route::Tunnel).map(|k| self.pair_of[k])
    }

    /// A command that writes the configuration of an end.
    fn configuration(&self, tunnel: &Tunnel, pair: usize, at: usize) -> String {
        let (own, other) = (self.family.inner(at as u8 + 1), self.family.inner(2 - at as u8));
        let mut text = format!("[interface]\naddress = \"{own}/{}\"\nmtu = {}\n", self.family.prefix(), tunnel.mtu);
        let _ = match &tunnel.ropewalk {
            None => self.as_mpt(&mut text, tunnel, &other.to_string()),
            Some(ropewalk) => self.as_ropewalk(&mut text, ropewalk, at),
        };
        for (position, &p) in tunnel.paths.iter().enumerate() {
            let interfaces =
                [Subnet::source(pair, p), Subnet::sink(pair, p)].map(|subnet| subnet.address(self.family, 1));
            let (source, remote) = (interfaces[at], interfaces[1 - at]);
            let name = &self.experiment.paths[p].name;
            let _ =
                writeln!(text, "\n[[path]]\nname = \"{name}\"\ninterface = \"{}\"\nsource = \"{source}\"", uplink(p));
            // In `ropewalk` mode one end initiates.
            if tunnel.ropewalk.is_none() || at == 0 {
                let _ =
                    writeln!(text, "endpoint = \"{remote}\"\nweight = {}", tunnel.weights.get(position).unwrap_or(&1));
            }
            let is_in = |list: &[usize]| at == 0 && list.contains(&position);
            if let Some(ropewalk) = &tunnel.ropewalk {
                let _ = write!(text, "backup = {}\nmetered = {}\n", is_in(&ropewalk.backup), is_in(&ropewalk.metered));
            }
        }
        format!("cat >{} <<END\n{text}END", self.environment.file(&format!("{}.toml", device(ENDS[at]))))
    }

    fn as_mpt(&self, text: &mut String, tunnel: &Tunnel, other: &str) -> std::fmt::Result {
        writeln!(text, "mode = \"mpt\"\nlisten-port = 4754")?;
        writeln!(
            text,
            "\n[[peer]]\naddress = \"{other}\"\nallowed-ips = \"{other}/{}\"",
            if other.contains(':') { 128 } else { 32 }
        )?;
        writeln!(text, "\n[tunnel]\nscheduler = {}", table(&tunnel.mpt_scheduler))?;
        if let Some(order) = tunnel.resequence {
            let late = if order.deliver_late { "deliver" } else { "drop" };
            writeln!(text, "max-reorder-timeout = \"{}us\"\nlate = \"{late}\"", order.timeout.as_nanos() / 1000)?;
        }
        let window = tunnel.resequence.map_or(0, |order| order.window);
        writeln!(text, "\n[mpt]\nreorder-window = {window}\noffload = {}", tunnel.device.is_none())
    }

    fn as_ropewalk(&self, text: &mut String, ropewalk: &Ropewalk, at: usize) -> std::fmt::Result {
        let [own, other] = [ENDS[at], ENDS[1 - at]];
        let inner = self.family.inner(2 - at as u8);
        writeln!(text, "private-key-file = \"{}\"", self.environment.file(&format!("{own}.key")))?;
        let bits = if inner.is_ipv6() { 128 } else { 32 };
        // The shell fills it in when it writes the file.
        writeln!(
            text,
            "\n[[peer]]\npublic-key = \"$(cat {})\"\nallowed-ips = \"{inner}/{bits}\"",
            self.environment.file(&format!("{other}.public"))
        )?;
        writeln!(text, "\n[tunnel]")?;
        // What is the daemon's own default stays out, as a person would leave it out.
        let (options, default) = (&ropewalk.options, TunnelOptions::default());
        for (key, chosen, default) in [
            ("congestion", &options.congestion, &default.congestion),
            ("scheduler", &options.scheduler, &default.scheduler),
        ] {
            if chosen != default {
                writeln!(text, "{key} = {}", table(chosen))?;
            }
        }
        let flags =
            [("retransmit", options.retransmit, default.retransmit), ("in-order", options.in_order, default.in_order)];
        for (key, flag, _) in flags.into_iter().filter(|(_, flag, default)| flag != default) {
            writeln!(text, "{key} = {flag}")?;
        }
        if options.deliver_late != default.deliver_late {
            writeln!(text, "late = \"{}\"", if options.deliver_late { "deliver" } else { "drop" })?;
        }
        if options.max_reorder_timeout != default.max_reorder_timeout {
            writeln!(text, "max-reorder-timeout = \"{}us\"", options.max_reorder_timeout.as_nanos() / 1000)?;
        }
        Ok(())
    }
}

/// An algorithm in the daemon's configuration.
fn table(algorithm: &AlgorithmChoice) -> String {
    let mut text = format!("{{ name = \"{}\"", algorithm.name);
    for (key, value) in &algorithm.parameters {
        let _ = match value {
            ParamValue::Number(number) => write!(text, ", {key} = {number}"),
            ParamValue::Choice(word) => write!(text, ", {key} = \"{word}\""),
        };
    }
    text + " }"
}

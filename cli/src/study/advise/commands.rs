//! The commands and keys that put advice into effect.

use ::fit::{Advice, Candidate, Mode};

/// The congestion controls that Linux has itself; the others are programs of `ropewalk kernel`.
const LINUX: [&str; 16] = [
    "reno",
    "cubic",
    "bbr",
    "bic",
    "cdg",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "nv",
    "scalable",
    "vegas",
    "veno",
    "westwood",
];
/// The congestion control of a connection's data is that of the host that sends it.
const BOTH: &str = "# at both ends: downloads are sent by the other one";
/// The scheduler that upstream Linux has.
const KERNEL_SCHEDULER: &str = "linger";

/// What to do for the first of the advice's candidates.
pub(super) fn text(advice: &Advice, paths: &[String], sources: &[Option<String>]) -> String {
    let Some(first) = advice.ranked.first() else { return String::new() };
    let lines = lines(&first.candidate, paths, sources);
    let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
    format!("\nTo put it into effect:\n{lines}")
}

fn lines(candidate: &Candidate, paths: &[String], sources: &[Option<String>]) -> Vec<String> {
    let Candidate { mode, congestion, scheduler } = candidate;
    match mode {
        Mode::Single(path) => {
            [vec![BOTH.to_owned()], congestion_lines(congestion), vec![format!("# use the path {path} alone")]].concat()
        }
        Mode::Mptcp => {
            let mut lines = vec![BOTH.to_owned(), "sudo sysctl -w net.mptcp.enabled=1".to_owned()];
            let others = paths.len().saturating_sub(1).max(1);
            lines.push(format!("sudo ip mptcp limits set subflows {others} add_addr_accepted {others}"));
            lines.extend(congestion_lines(congestion));
            lines.push("# here, which has the paths".to_owned());
            lines.extend(paths.iter().zip(sources).map(|(path, source)| endpoint(path, source.as_deref())));
            let scheduler = scheduler.as_deref().unwrap_or(KERNEL_SCHEDULER);
            if scheduler != KERNEL_SCHEDULER {
                lines.push(format!(
                    "# the scheduler {scheduler} is not in Linux, which has {KERNEL_SCHEDULER}: --kernel advises on what it has"
                ));
            }
            lines
        }
        Mode::Tunnel | Mode::Relay => {
            let mut lines = vec![
                "# in the tunnel's file, at both ends, which then need a restart; --tunnel NAME --apply writes it"
                    .to_owned(),
            ];
            lines.push("[tunnel]".to_owned());
            lines.extend(keys(candidate).into_iter().map(|(key, value)| format!("{key} = \"{value}\"")));
            lines
        }
    }
}

/// The keys of a tunnel's table `[tunnel]` for a candidate.
pub(super) fn keys(candidate: &Candidate) -> Vec<(&'static str, String)> {
    let mut keys = vec![("congestion", candidate.congestion.clone())];
    keys.extend(candidate.scheduler.clone().map(|scheduler| ("scheduler", scheduler)));
    keys.push(("relay", if candidate.mode == Mode::Relay { "tcp" } else { "off" }.to_owned()));
    keys
}

fn endpoint(path: &str, source: Option<&str>) -> String {
    let is_address = |source: &&str| source.parse::<std::net::IpAddr>().is_ok();
    match source {
        Some(address) if is_address(&address) => format!("sudo ip mptcp endpoint add {address} subflow"),
        Some(device) => format!("sudo ip mptcp endpoint add ADDRESS-OF-{path} dev {device} subflow"),
        None => format!("sudo ip mptcp endpoint add ADDRESS-OF-{path} subflow"),
    }
}

fn congestion_lines(name: &str) -> Vec<String> {
    if LINUX.contains(&name) {
        return vec![
            format!("sudo modprobe -a tcp_{name}"),
            format!("sudo sysctl -w net.ipv4.tcp_congestion_control={name}"),
        ]
        .into_iter()
        .skip(usize::from(["reno", "cubic"].contains(&name)))
        .collect();
    }
    let program = name.replace('-', "_");
    vec![
        format!("sudo ropewalk kernel load {name}"),
        format!("sudo sysctl -w net.ipv4.tcp_congestion_control=rw_{program}"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(mode: Mode, congestion: &str, scheduler: &str) -> Candidate {
        Candidate { mode, congestion: congestion.to_owned(), scheduler: Some(scheduler.to_owned()) }
    }

    #[test]
    fn mptcp_has_an_endpoint_per_path_and_an_algorithm() {
        let paths = ["lte", "dsl"].map(str::to_owned);
        let sources = [Some("192.0.2.1".to_owned()), None];
        let lines = lines(&candidate(Mode::Mptcp, "coupled-bbr", "linger"), &paths, &sources);
        assert!(lines.contains(&"sudo ip mptcp endpoint add 192.0.2.1 subflow".to_owned()), "{lines:?}");
        assert!(lines.contains(&"sudo ip mptcp endpoint add ADDRESS-OF-dsl subflow".to_owned()), "{lines:?}");
        assert!(lines.contains(&"sudo ropewalk kernel load coupled-bbr".to_owned()), "{lines:?}");
        assert!(
            lines.contains(&"sudo sysctl -w net.ipv4.tcp_congestion_control=rw_coupled_bbr".to_owned()),
            "{lines:?}"
        );
        assert!(!lines.iter().any(|line| line.contains("not in Linux")), "{lines:?}");
    }

    #[test]
    fn a_tunnel_has_keys() {
        let found = keys(&candidate(Mode::Relay, "bbr", "minrtt"));
        assert_eq!(found, [("congestion", "bbr".into()), ("scheduler", "minrtt".into()), ("relay", "tcp".into())]);
    }
}

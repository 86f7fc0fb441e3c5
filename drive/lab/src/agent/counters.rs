//! A host's own counters: `TcpExt` in `/proc/net/netstat`.

use super::Outcome;
use crate::plan::Episodes;

/// The counters of the namespace that this thread is in.
pub(super) fn episodes() -> Outcome<Episodes> {
    Ok(read(&std::fs::read_to_string("/proc/thread-self/net/netstat")?))
}

/// A line of names is followed by a line of values.
fn read(netstat: &str) -> Episodes {
    let mut lines = netstat.lines().filter(|line| line.starts_with("TcpExt:")).map(str::split_whitespace);
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return Episodes::default() };
    let all: Vec<(&str, u64)> = names.zip(values).map(|(name, value)| (name, value.parse().unwrap_or(0))).collect();
    let sum = |wanted: &[&str]| all.iter().filter(|(name, _)| wanted.contains(name)).map(|(_, value)| value).sum();
    Episodes {
        recoveries: sum(&["TCPSackRecovery", "TCPRenoRecovery"]),
        undone: sum(&["TCPFullUndo", "TCPPartialUndo", "TCPDSACKUndo", "TCPLossUndo"]),
        timeouts: sum(&["TCPTimeouts"]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_their_names() {
        let text = "TcpExt: SyncookiesSent TCPSackRecovery TCPTimeouts TCPDSACKUndo TCPLossUndo\n\
                    TcpExt: 9 4 1 2 3\nIpExt: InNoRoutes TCPTimeouts\nIpExt: 7 7\n";
        assert_eq!(read(text), Episodes { recoveries: 4, undone: 5, timeouts: 1 });
    }
}

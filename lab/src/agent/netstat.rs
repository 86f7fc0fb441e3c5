//! A namespace's counters: `TcpExt` and `MPTcpExt` in `/proc/net/netstat`.

use super::Outcome;
use crate::protocol::{MptcpExtCounters, TcpExtCounters};
use std::collections::BTreeMap;

/// A table of `/proc/net/netstat`.
struct Table(BTreeMap<String, u64>);

/// The TCP counters of this thread's namespace.
pub(super) fn tcp_ext() -> Outcome<TcpExtCounters> {
    let tcp = Table::read("TcpExt:", &netstat()?);
    Ok(TcpExtCounters {
        recoveries: tcp.sum(&["TCPSackRecovery", "TCPRenoRecovery"]),
        undone: tcp.sum(&["TCPFullUndo", "TCPPartialUndo", "TCPDSACKUndo", "TCPLossUndo"]),
        timeouts: tcp.sum(&["TCPTimeouts"]),
    })
}

/// The MPTCP counters of this thread's namespace.
pub(super) fn mptcp_ext() -> Outcome<MptcpExtCounters> {
    let mptcp = Table::read("MPTcpExt:", &netstat()?);
    Ok(MptcpExtCounters {
        connections: mptcp.sum(&["MPCapableSYNACKRX"]),
        fallbacks: mptcp.sum(&[
            "MPCapableFallbackACK",
            "MPCapableFallbackSYNACK",
            "MPFallbackTokenInit",
            "InfiniteMapTx",
        ]),
        joined: mptcp.sum(&["MPJoinSynAckRx"]),
        refused: mptcp.sum(&[
            "MPJoinSynAckHMacFailure",
            "MPJoinSynTxCreatSkErr",
            "MPJoinSynTxBindErr",
            "MPJoinSynTxConnectErr",
        ]),
        reinjected: mptcp.sum(&["MPTCPRetrans"]),
        duplicates: mptcp.sum(&["DuplicateData"]),
        stale: mptcp.sum(&["SubflowStale"]),
    })
}

fn netstat() -> std::io::Result<String> {
    std::fs::read_to_string("/proc/thread-self/net/netstat")
}

impl Table {
    /// Reads the table `name`: a line of names, then a line of values. Empty if there is none.
    fn read(name: &str, netstat: &str) -> Self {
        let mut lines = netstat.lines().filter_map(|line| line.strip_prefix(name)).map(str::split_whitespace);
        let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return Self(BTreeMap::new()) };
        let pairs = names.zip(values).map(|(name, value)| (name.to_owned(), value.parse().unwrap_or(0)));
        Self(pairs.collect())
    }

    /// The sum of these counters; one that the kernel does not have is zero.
    fn sum(&self, names: &[&str]) -> u64 {
        names.iter().filter_map(|name| self.0.get(*name)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_their_names() {
        let text = "TcpExt: SyncookiesSent TCPSackRecovery TCPTimeouts TCPDSACKUndo TCPLossUndo\n\
                    TcpExt: 9 4 1 2 3\nIpExt: InNoRoutes TCPTimeouts\nIpExt: 7 7\n\
                    MPTcpExt: MPCapableSYNACKRX MPJoinSynAckRx\nMPTcpExt: 1 3\n";
        let tcp = Table::read("TcpExt:", text);
        assert_eq!(
            [tcp.sum(&["TCPDSACKUndo", "TCPLossUndo"]), tcp.sum(&["TCPTimeouts"]), tcp.sum(&["Else"])],
            [5, 1, 0]
        );
        assert_eq!(Table::read("MPTcpExt:", text).sum(&["MPJoinSynAckRx"]), 3);
    }
}

//! The table of events of captures, one of them of a real kernel, next to what tshark reads in the same files.

use crate::events::{captured, experiments};
use ropewalk_trace::{Place, capture_events};
use std::path::{Path, PathBuf};
use std::process::Command;
use store::EventRow;

/// Linux 6.18 sends 300 kB by MPTCP over two paths that drop packets at random, with segmentation offload; dumpcap at the sender, which
/// kept 94 bytes of each packet.
const LINUX: &str = "tests/captures/linux-6.18-mptcp.pcapng";

const FIELDS: [&str; 12] = [
    "tcp.stream",
    "ip.len",
    "ipv6.plen",
    "tcp.len",
    "tcp.window_size",
    "tcp.options.sack.count",
    "tcp.analysis.retransmission",
    "tcp.analysis.spurious_retransmission",
    "tcp.analysis.out_of_order",
    "ip.dsfield.ecn",
    "ipv6.tclass.ecn",
    "frame.interface_name",
];

/// A packet as tshark reads it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    bytes: u64,
    has_data: bool,
    /// Of an acknowledgement without data.
    receive_window: Option<u64>,
    sack_blocks: usize,
    is_again: bool,
    ecn: u64,
    interface: String,
}

/// The packets of TCP in a capture by tshark; none if it is not installed.
fn by_tshark(pcap: &Path) -> Option<Vec<Read>> {
    let fields = FIELDS.iter().flat_map(|field| ["-e", *field]);
    let output = Command::new("tshark").arg("-r").arg(pcap).args(["-Y", "tcp", "-T", "fields"]).args(fields).output();
    let Ok(output) = output else {
        testing::skip(testing::Reason::Missing, "tshark");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    Some(text.lines().map(|line| packet(&line.split('\t').collect::<Vec<_>>())).collect())
}

fn packet(fields: &[&str]) -> Read {
    let field = |name: &str| fields[FIELDS.iter().position(|field| *field == name).expect("a field")];
    let number = |name: &str| field(name).parse::<u64>().ok();
    let has_data = number("tcp.len").expect("a length") > 0;
    Read {
        bytes: number("ip.len").or_else(|| Some(40 + number("ipv6.plen")?)).expect("a length"),
        has_data,
        receive_window: number("tcp.window_size").filter(|_| !has_data),
        sack_blocks: field("tcp.options.sack.count").split(',').filter_map(|count| count.parse::<usize>().ok()).sum(),
        is_again: FIELDS[6..9].iter().any(|name| !field(name).is_empty()),
        ecn: number("ip.dsfield.ecn").or(number("ipv6.tclass.ecn")).expect("a field"),
        interface: field("frame.interface_name").to_owned(),
    }
}

/// The same of the table of events. A packet is sent again if its number was sent on the subflow before.
fn by_us(rows: &[EventRow]) -> Vec<Read> {
    let mut sent = std::collections::BTreeSet::new();
    let packets = rows.iter().filter(|row| matches!(row.event, "sent" | "delivered"));
    let read = packets.map(|row| {
        let has_data = matches!(row.packet, Some("data" | "retransmission" | "copy"));
        Read {
            bytes: row.bytes.expect("a size"),
            has_data,
            receive_window: row.receive_window_bytes.filter(|_| !has_data),
            sack_blocks: row.sack.as_deref().map_or(0, |sack| sack.split(' ').count()),
            is_again: has_data && !sent.insert((row.flow.clone(), row.connection, row.direction, row.seq)),
            ecn: ["not-ect", "ect1", "ect0", "ce"].iter().position(|name| Some(*name) == row.ecn).expect("a field")
                as u64,
            interface: row.path.clone().expect("a name"),
        }
    });
    read.collect()
}

#[test]
fn a_capture_has_the_packets_that_tshark_reads() {
    let folder = tempfile::tempdir().expect("a folder");
    let simulated = [0, 1, 6].into_iter().map(|index| {
        captured(folder.path(), &experiments()[index], Place::Near);
        folder.path().join("capture.pcapng")
    });
    let (mut again, mut sack_blocks) = (0, 0);
    for pcap in std::iter::once(PathBuf::from(LINUX)).chain(simulated) {
        let Some(truth) = by_tshark(&pcap) else { return };
        let read = by_us(&capture_events(&pcap, None).expect("events"));
        assert_eq!(read.len(), truth.len());
        for (number, (read, mut truth)) in (1..).zip(read.into_iter().zip(truth)) {
            let window = read.receive_window;
            truth.receive_window = truth.receive_window.filter(|_| window.is_some());
            (again, sack_blocks) = (again + u64::from(truth.is_again), sack_blocks + truth.sack_blocks);
            assert_eq!(read, truth, "packet {number} of {}", pcap.display());
        }
    }
    assert!(again > 100 && sack_blocks > 1000, "{again} again, {sack_blocks} SACK blocks");
}

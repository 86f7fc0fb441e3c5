//! Captures that are damaged: an error with the file and the packet, never a panic.

use crate::events::{captured, experiments};
use ropewalk_trace::{CaptureOutputs, Place, capture_events, read_capture};
use std::fs;
use units::RngStream;

/// Seeds of the changes.
const SAMPLE: u64 = 200;

/// Each damage has an error that names the file and, if it is one packet's, the packet; and nothing is written.
#[test]
fn a_damaged_capture_is_named_with_its_packet() {
    let folder = tempfile::tempdir().expect("a folder");
    let [pcap, table] = ["capture.pcapng", "events.parquet"].map(|name| folder.path().join(name));
    captured(folder.path(), &experiments()[0], Place::Near);
    let whole = fs::read(&pcap).expect("a capture");
    let number = |at: usize| u32::from_le_bytes(whole[at..at + 4].try_into().expect("four bytes")) as usize;
    let after = |at: &usize| Some(at + number(at + 4)).filter(|at| *at < whole.len());
    // The section, the interfaces of the tunnel and of two paths, and the packets.
    let blocks: Vec<usize> = std::iter::successors(Some(0), after).collect();
    let third = blocks[6];
    let with = |at: usize, bytes: &[u8]| [&whole[..at], bytes, &whole[at + bytes.len()..]].concat();
    fs::write(&table, "of before").expect("a file");
    for (bytes, expected) in [
        (vec![], ": is empty; a capture is a file in the format pcap or pcapng"),
        (b"garbage, which is longer than the headers of both formats are".to_vec(), ": is no capture in the format"),
        (whole[..third + 20].to_vec(), ": ends in the middle of packet 3; `editcap "),
        (with(third + 8, &[9]), ": packet 3: its interface is not described before it"),
        (
            with(third + 4, &[1, 0, 0, 0]),
            ": packet 3: is damaged; `editcap` writes the packets before it to another file",
        ),
        (with(third + 4, &[0, 0, 0, 0x40]), ": packet 3: is damaged; "),
        (with(third + 20, &[40, 0, 0, 0]), ": packet 3: only its first 40 bytes are kept"),
        (with(blocks[2] + 8, &[105, 0]), ": packet 1: the link type 105 cannot be read; capture on an Ethernet"),
        (whole[..blocks[4]].to_vec(), ": has no packet of TCP or UDP"),
    ] {
        fs::write(&pcap, bytes).expect("a file");
        let outputs = CaptureOutputs { events: Some(&table), page: None };
        let error = read_capture(&pcap, None, &outputs).expect_err(expected).to_string();
        assert!(error.starts_with(&format!("{}{expected}", pcap.display())), "{error}: {expected}");
        assert_eq!(fs::read(&table).expect("a file"), b"of before", "{expected}");
    }
}

/// Whatever bytes change, a capture has events or an error.
#[test]
fn no_change_of_a_capture_is_a_panic() {
    let folder = tempfile::tempdir().expect("a folder");
    let pcap = folder.path().join("capture.pcapng");
    for experiment in [&experiments()[0], &experiments()[6]] {
        captured(folder.path(), experiment, Place::Near);
        let mut whole = fs::read(&pcap).expect("a capture");
        whole.truncate(40_000);
        for seed in testing::campaign(SAMPLE).range() {
            let mut random = RngStream::named(seed, "capture");
            let mut bytes = whole.clone();
            for _ in 0..1 + random.below(20) {
                let at = random.below(bytes.len() as u64) as usize;
                match random.below(3) {
                    0 => bytes[at] = random.bits() as u8,
                    1 => bytes.truncate(at.max(1)),
                    _ => drop(bytes.splice(at..at, [0xff; 3])),
                }
            }
            fs::write(&pcap, bytes).expect("a file");
            let _ = capture_events(&pcap, None);
        }
    }
}

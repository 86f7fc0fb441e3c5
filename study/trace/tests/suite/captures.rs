//! Two captures are compared packet by packet: the simulator's, and ones made by hand.

use crate::experiment;
use etherparse::{PacketBuilder, TcpOptionElement};
use ropewalk_trace::{Outputs, compare, trace};
use scenario::model::Experiment;
use std::fs;
use std::path::{Path, PathBuf};
use units::Span;

const WITHIN: Span = Span::from_millis(1);

/// A flow over Wi-Fi, which loses packets at random, with more lines in the scenario.
fn over_wifi(more: &str) -> Experiment {
    experiment(&format!("[[flow]]\nname = \"f\"\npath = \"wifi\"\n{more}"))
}

/// The capture of a run at the near end.
fn capture(folder: &Path, name: &str, more: &str) -> PathBuf {
    let pcap = folder.join(name);
    trace(&over_wifi(more), 1, &Outputs { pcap: Some(&pcap), ..Outputs::default() }).expect("a run");
    pcap
}

#[test]
fn the_first_packet_that_an_event_changes_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let plain = capture(folder.path(), "plain.pcapng", "");
    assert!(compare(&[&plain, &plain], Span::ZERO).unwrap().contains("\nthe same: "));
    let event = "[[event]]\nat = \"1s\"\npath = \"wifi\"\ndelay = \"15ms\"\n";
    let text = compare(&[&plain, &capture(folder.path(), "changed.pcapng", event)], WITHIN).unwrap();
    let differing: Vec<&str> = text.lines().filter(|line| line.starts_with('*')).collect();
    let time = |line: &str| line.split_whitespace().nth(2).unwrap().parse::<f64>().unwrap();
    // What is sent before the change is delivered and acknowledged as before: no difference in the first 1.01 s.
    assert!(differing.len() == 2 && differing.iter().all(|line| (1.01..1.06).contains(&time(line))), "{text}");
}

/// A segment: whether the opener sends it, microseconds, number, acknowledgement, payload in bytes.
type Made = (bool, u32, u32, u32, usize);

/// A capture in the older format, with microseconds. The opener's SYN has `first`, and announces an MSS of 1460.
fn pcap(folder: &Path, name: &str, first: u32, segments: &[Made]) -> PathBuf {
    let mut file = Vec::new();
    [0xa1b2_c3d4, 0x0004_0002, 0, 0, 96, 1].iter().for_each(|word: &u32| file.extend(word.to_le_bytes()));
    let mut add = |(of_opener, at_us, seq, ack, len): Made, is_syn: bool| {
        let [from, to] = if of_opener { [1, 2] } else { [2, 1] };
        let seq = if of_opener { seq.wrapping_add(first) } else { seq };
        let ack = if of_opener { ack } else { ack.wrapping_add(first) };
        let packet = PacketBuilder::ethernet2([0; 6], [0; 6]).ipv4([10, 0, 0, from], [10, 0, 0, to], 64);
        let packet = packet.tcp(u16::from(from), u16::from(to), seq, 1000);
        let packet = if is_syn { packet.syn() } else { packet };
        let packet = if is_syn && of_opener { packet } else { packet.ack(ack) };
        let options: &[_] = if is_syn { &[TcpOptionElement::MaximumSegmentSize(1460)] } else { &[] };
        let packet = packet.options(options).unwrap();
        let mut bytes = Vec::new();
        packet.write(&mut bytes, &vec![0; len]).unwrap();
        let shown = bytes.len().min(96); // a snapshot, as tcpdump takes it
        [5, at_us, shown as u32, bytes.len() as u32].iter().for_each(|word| file.extend(word.to_le_bytes()));
        file.extend(&bytes[..shown]);
    };
    add((true, 0, 0, 0, 0), true);
    add((false, 20, 0, 1, 0), true);
    segments.iter().for_each(|segment| add(*segment, false));
    let path = folder.join(name);
    fs::write(&path, file).unwrap();
    path
}

#[test]
fn super_segments_and_first_numbers_make_no_difference() {
    let folder = tempfile::tempdir().unwrap();
    let whole = [(true, 30, 1, 1, 4380), (false, 60, 1, 2921, 0), (true, 70, 4381, 1, 100)];
    let parts = [
        (true, 30, 1, 1, 1460),
        (true, 30, 1461, 1, 1460),
        (true, 31, 2921, 1, 1460),
        (false, 60, 1, 2921, 0),
        (true, 70, 4381, 1, 100),
    ];
    // The numbers pass zero in the second capture.
    let whole = pcap(folder.path(), "whole.pcap", 7, &whole);
    let text = compare(&[whole, pcap(folder.path(), "parts.pcap", u32::MAX - 1000, &parts)], WITHIN).unwrap();
    assert!(text.contains("the same: 7 packets"), "{text}");
}

#[test]
fn numbers_times_and_missing_packets_are_differences() {
    let folder = tempfile::tempdir().unwrap();
    let made = |name: &str, segments: &[Made]| pcap(folder.path(), name, 0, segments);
    let first = made("a.pcap", &[(true, 30, 1, 1, 100), (false, 60, 1, 101, 0)]);
    for (name, other, expected) in [
        ("b.pcap", &[(true, 30, 1, 1, 90), (false, 60, 1, 101, 0)][..], "until packet 2 of the opener"),
        ("c.pcap", &[(true, 30, 1, 1, 100), (false, 2000, 1, 101, 0)], "until packet 2 of the other end"),
        ("d.pcap", &[(true, 30, 1, 1, 100)], "until packet 2 of the other end"),
    ] {
        let text = compare(&[&first, &made(name, other)], WITHIN).unwrap();
        assert!(text.contains(expected), "{name}: {text}");
    }
    assert!(compare(&[&first, &made("d.pcap", &[])], WITHIN).unwrap().contains("* B   no packet"));
}

/// Nothing half-written stays, and what was there is not lost. A pipe or device is written at once.
#[test]
fn a_trace_that_fails_leaves_the_files_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let [pcap, missing] = ["p.pcapng", "missing/e.parquet"].map(|name| folder.path().join(name));
    let experiment = over_wifi("");
    let trace = |outputs: &Outputs<'_>| trace(&experiment, 1, outputs);
    let nowhere = folder.path().join("missing/p.pcapng");
    let error = trace(&Outputs { pcap: Some(&nowhere), ..Outputs::default() }).unwrap_err().to_string();
    assert!(error.ends_with("missing/p.pcapng: No such file or directory (os error 2)"), "{error}");
    fs::write(&pcap, "of before").unwrap();
    assert!(trace(&Outputs { pcap: Some(&pcap), events: Some(&missing), ..Outputs::default() }).is_err());
    assert_eq!(fs::read(&pcap).unwrap(), b"of before");
    let full = Path::new("/dev/full");
    let error = trace(&Outputs { pcap: Some(full), ..Outputs::default() }).unwrap_err().to_string();
    assert!(error.starts_with("cannot write /dev/full: "), "{error}");
    trace(&Outputs { pcap: Some(&pcap), ..Outputs::default() }).expect("a run");
    assert!(fs::read(&pcap).unwrap().starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no other file stays");
}

#[test]
fn what_is_no_capture_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let [empty, text, cut] = ["empty.pcap", "text.pcap", "cut.pcap"].map(|name| folder.path().join(name));
    fs::write(&empty, "").unwrap();
    fs::write(&text, "no capture at all, but long enough for a header of any of the two formats").unwrap();
    let whole = pcap(folder.path(), "whole.pcap", 0, &[(true, 30, 1, 1, 100)]);
    let bytes = fs::read(&whole).unwrap();
    fs::write(&cut, &bytes[..bytes.len() - 10]).unwrap();
    for path in [&empty, &text, &folder.path().join("missing.pcap")] {
        let error = compare(&[path, path], WITHIN).unwrap_err();
        assert!(error.starts_with(&path.display().to_string()), "{error}");
    }
    assert!(compare(&[&cut, &cut], WITHIN).unwrap().contains("the same: 2 packets"), "what is whole is compared");
}

/// The record counts every segment; the capture sees the same segments leave and come.
#[test]
fn a_capture_at_the_sender_measures_what_the_record_has() {
    let folder = tempfile::tempdir().unwrap();
    let pcap = folder.path().join("wifi.pcapng");
    let run = trace(&over_wifi(""), 1, &Outputs { pcap: Some(&pcap), ..Outputs::default() }).expect("a run");
    let flow = &run.flows[0];
    let measured = ropewalk_trace::measure_capture(&pcap).unwrap();
    let [path] = &measured.paths[..] else { panic!("one path") };
    let [tcp] = &path.tcp[..] else { panic!("one flow") };
    assert_eq!((path.name.as_str(), tcp.direction), ("wifi", measured::Direction::Up));
    assert_eq!(
        (tcp.sent_segments, tcp.retransmitted_segments),
        (Some(flow.sent_packets), Some(flow.retransmitted_packets))
    );
    assert!(flow.retransmitted_packets > 0, "the link loses");
    assert!(tcp.rtt_ms.unwrap().min.unwrap() >= 20.0, "10 ms each way");
    // What the sender knows to be delivered is delivered.
    let bytes = tcp.bytes.unwrap();
    assert!(bytes > 0 && bytes <= flow.delivered_bytes, "{bytes} of {}", flow.delivered_bytes);
    let counted: f64 = tcp.goodput_intervals_mbps.iter().map(|rate| rate * 0.1 * 1e6 / 8.0).sum();
    assert!(counted <= bytes as f64 + 1.0 && counted >= bytes as f64 - 0.1 * 30e6 / 8.0, "{counted} of {bytes}");
}

#[test]
fn a_capture_at_the_receiver_tells_neither_rtts_nor_retransmissions() {
    let folder = tempfile::tempdir().unwrap();
    let pcap = folder.path().join("far.pcapng");
    let outputs = Outputs { pcap: Some(&pcap), place: ropewalk_trace::Place::Far, ..Outputs::default() };
    trace(&over_wifi(""), 1, &outputs).expect("a run");
    let measured = ropewalk_trace::measure_capture(&pcap).unwrap();
    let tcp = &measured.paths[0].tcp[0];
    assert_eq!(tcp.direction, measured::Direction::Down);
    assert_eq!((tcp.sent_segments, tcp.retransmitted_segments, tcp.rtt_ms), (None, None, None));
    assert!(measured.not_measured.iter().any(|line| line.contains("RTTs and retransmissions")));
}

//! A traced run is the run without a trace, and what a capture and the events say is what its record says.

mod browser;
mod captures;
mod choices;
mod damage;
mod events;
mod kernel;
mod links;
mod page;
mod qlog;

use etherparse::{NetHeaders, PacketHeaders, TransportHeader};
use ropewalk_trace::{Outputs, Place, trace};
use scenario::Overrides;
use scenario::model::Experiment;
use sim::{Simulation, Traced, TracedContent};
use std::fs;
use std::path::Path;
use transport::path::Limit;
use transport::tcp::SegmentKind;

pub(crate) const TWO_PATHS: &str = r#"
name = "traced"
duration = "4s"
[[path]]
name = "wifi"
rate = "20mbit"
delay = "10ms"
loss = "0.5%"
[[path]]
name = "lte"
rate = "10mbit"
delay = "30ms"
queue = { limit = "30p" }
"#;

fn experiment(flows: &str) -> Experiment {
    let text = format!("{TWO_PATHS}{flows}");
    let scenario = scenario::parse("test", &text, Path::new(""), &Overrides::default()).expect("a scenario");
    scenario.cells[0].experiment.clone()
}

/// Flows of each kind, alone and in tunnels.
const FLOWS: [&str; 7] = [
    "[[flow]]\nname = \"f\"\npath = \"wifi\"\n",
    "[[flow]]\nname = \"f\"\nkind = \"mptcp\"\n",
    "[[flow]]\nname = \"f\"\nkind = \"mpquic\"\n",
    "[[flow]]\nname = \"f\"\nkind = \"udp\"\nrate = \"30mbit\"\npacket = \"1000b\"\npath = \"wifi\"\n",
    "[[flow]]\nname = \"f\"\npath = \"lte\"\nrequests = { size = \"50kB\", think = \"20ms\", connection = \"new\" }\n",
    "[[flow]]\nname = \"f\"\n[tunnel]\nmode = \"ropewalk\"\npaths = [\"wifi\", \"lte\"]\n",
    "[[flow]]\nname = \"f\"\n[tunnel]\nmode = \"mpt\"\npaths = [\"wifi\", \"lte\"]\n",
];

/// Each packet that a host sends is delivered, lost or on its way. Without a tunnel the counts of sent, retransmitted and lost data
/// packets are the record's.
#[test]
fn a_trace_changes_nothing_and_counts_as_the_record_does() {
    for flows in FLOWS {
        let experiment = experiment(flows);
        let plain = sim::run(&experiment, 7).expect("a run");
        let mut simulation = Simulation::new(&experiment, 7).expect("a run");
        simulation.trace();
        simulation.run_until(simulation.end());
        let events = simulation.take_trace();
        assert_eq!(simulation.finish().digest, plain.digest, "{flows}");
        assert!(events.is_sorted_by_key(|event| event.at), "{flows}");
        let count =
            |is_counted: &dyn Fn(&Traced) -> bool| events.iter().filter(|event| is_counted(&event.what)).count();
        for is_datagram in [false, true] {
            let is_kind = |packet: &sim::TracedPacket| (packet.content == TracedContent::Tunnel) == is_datagram;
            let sent = count(&|what| matches!(what, Traced::Sent(packet) if is_kind(packet)));
            let arrived = count(&|what| matches!(what, Traced::Delivered(packet) if is_kind(packet)));
            let lost = count(&|what| matches!(what, Traced::Lost { packet, .. } if is_kind(packet)));
            let counts = format!("{flows}: {sent} sent, {arrived} arrived, {lost} lost");
            assert!(arrived + lost <= sent && sent < arrived + lost + 2000, "{counts}");
        }
        if experiment.tunnel.is_none() && !flows.contains("udp") {
            let data = count(&|what| matches!(what, Traced::Sent(packet) if is_data(&packet.content)));
            assert_eq!(data as u64, plain.flows[0].sent_packets, "{flows}");
            let dropped = count(&|what| matches!(what, Traced::Lost { packet, .. } if is_data(&packet.content)));
            assert_eq!(dropped as u64, plain.flows[0].dropped_packets, "{flows}");
        }
    }
}

fn is_data(content: &TracedContent) -> bool {
    match content {
        TracedContent::Tcp { first, .. } => first.kind == SegmentKind::Data,
        TracedContent::Mptcp(segment) => segment.tcp.kind == SegmentKind::Data,
        TracedContent::Quic(packet) => packet.has_data(),
        _ => false,
    }
}

/// What a capture has.
#[derive(Debug, Default)]
struct Captured {
    packets: usize,
    /// Data that goes again: packets whose bytes begin below what their connection has sent.
    repeated: u64,
    comments: u64,
}

/// Reads a capture back, and checks lengths and checksums.
fn read(path: &Path) -> Captured {
    let (bytes, mut captured, mut offset) = (fs::read(path).expect("a capture"), Captured::default(), 0);
    let mut sent = std::collections::BTreeMap::new();
    while offset < bytes.len() {
        let number =
            |at: usize| u32::from_le_bytes(bytes[offset + at..offset + at + 4].try_into().expect("four bytes"));
        let (kind, length) = (number(0), number(4) as usize);
        assert_eq!(number(length - 4) as usize, length, "a block ends with its length");
        if kind == 6 {
            let (kept, whole) = (number(20) as usize, number(24) as usize);
            assert_eq!(kept, whole, "with its payload");
            let packet = &bytes[offset + 28..offset + 28 + kept];
            let headers = PacketHeaders::from_ethernet_slice(packet).expect("headers");
            let (Some(NetHeaders::Ipv4(ip, _)), Some(TransportHeader::Tcp(tcp))) = (headers.net, headers.transport)
            else {
                panic!("IPv4 and TCP")
            };
            let payload = headers.payload.slice();
            assert_eq!(ip.header_checksum, ip.calc_header_checksum());
            assert_eq!(tcp.checksum, tcp.calc_checksum_ipv4(&ip, payload).expect("short enough"));
            captured.packets += 1;
            captured.comments += u64::from(length > 28 + kept.next_multiple_of(4) + 4);
            let end = tcp.sequence_number.wrapping_add(payload.len() as u32);
            let highest = sent.entry((ip.source, tcp.source_port)).or_insert(0);
            captured.repeated += u64::from(!payload.is_empty() && tcp.sequence_number < *highest);
            *highest = end.max(*highest);
        }
        offset += length;
    }
    captured
}

#[test]
fn retransmissions_in_a_capture_are_those_of_the_record() {
    let folder = tempfile::tempdir().expect("a folder");
    for flows in &FLOWS[..2] {
        for place in [Place::Near, Place::Far] {
            let path = folder.path().join("capture.pcapng");
            let outputs = Outputs { pcap: Some(&path), place, has_payload: true, ..Outputs::default() };
            let run = trace(&experiment(flows), 7, &outputs).expect("a trace");
            let captured = read(&path);
            assert!(captured.packets > 5000, "{captured:?}");
            if place == Place::Near {
                assert_eq!(captured.repeated, run.flows[0].retransmitted_packets, "{flows}");
                assert!(captured.comments >= captured.repeated && captured.repeated > 5, "{captured:?}");
            }
        }
    }
}

/// Each sender begins in its handshake, a limit is another one than before, and its times are the record's.
#[test]
fn the_events_of_limits_have_the_times_of_the_record() {
    for (flows, subflows) in [(FLOWS[0], 0), (FLOWS[1], 2), (FLOWS[2], 2)] {
        let experiment = experiment(flows);
        let mut simulation = Simulation::new(&experiment, 7).expect("a run");
        simulation.trace();
        simulation.run_until(simulation.end());
        let (events, end) = (simulation.take_trace(), simulation.end());
        let run = simulation.finish();
        for subject in [None].into_iter().chain((0..subflows).map(Some)) {
            let limits: Vec<(units::Instant, Limit)> = events
                .iter()
                .filter_map(|event| match event.what {
                    Traced::Limit { subflow, limit, .. } if subflow == subject => Some((event.at, limit)),
                    _ => None,
                })
                .collect();
            assert_eq!(limits[0], (units::Instant::ZERO, Limit::Handshake), "{flows}");
            let ends = limits.iter().skip(1).map(|(at, _)| *at).chain([end]);
            let window = limits.iter().zip(ends).filter(|((_, limit), _)| *limit == Limit::Window);
            let window: f64 = window.map(|((since, _), until)| until.since(*since).as_secs_f64()).sum();
            let recorded = match subject {
                None => run.flows[0].limited_s,
                Some(subflow) => run.subflows[usize::from(subflow)].limited_s,
            };
            let recorded = recorded.expect("measured").window;
            assert!(
                recorded > 1.0 && (window - recorded).abs() < 1e-6,
                "{subject:?}: {window} and {recorded} s, {flows}"
            );
        }
    }
}

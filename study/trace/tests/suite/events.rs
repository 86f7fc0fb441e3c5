//! The table of events of a capture: the simulator's own captures, read back, have the events of the run.

use crate::TWO_PATHS;
use crate::links::TWO_PATHS as MARKING;
use ropewalk_trace::{CaptureEnd, CaptureOutputs, Outputs, Place, capture_events, events, read_capture, trace};
use scenario::Overrides;
use scenario::model::Experiment;
use sim::Simulation;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use store::EventRow;

const REORDER: &str = "reorder = { share = \"2%\", gap = 4 }\n";
const TCP: &str = "[[flow]]\nname = \"f\"\npath = \"wifi\"\n";
const MPTCP: &str = "[[flow]]\nname = \"f\"\nkind = \"mptcp\"\n";
const END: &str = "[[event]]\nat = \"1s\"\npath = \"wifi\"\nloss = \"100%\"\n[[event]]\nat = \"3s\"\npath = \"wifi\"\nloss = \"0%\"\n";

/// Runs with losses, marks, reordering, super-segments, a small receive window, copies and a failed path.
pub(crate) fn experiments() -> Vec<Experiment> {
    let texts = [
        format!("{MARKING}{TCP}host = {{ ecn = true, ip = 6 }}\n"),
        format!("{TWO_PATHS}{REORDER}[[flow]]\nname = \"f\"\npath = \"lte\"\n"),
        format!("{TWO_PATHS}{TCP}host = {{ gro = 8, receive_buffer = [\"4kB\", \"40kB\", \"40kB\"] }}\n"),
        format!("{TWO_PATHS}{TCP}host = {{ timestamps = false }}\n"),
        format!("{TWO_PATHS}{TCP}host = {{ sack = false }}\n{END}"),
        format!("{TWO_PATHS}{MPTCP}{END}"),
        format!("{TWO_PATHS}{REORDER}{MPTCP}scheduler = \"redundant\"\n"),
        format!(
            "{TWO_PATHS}{MPTCP}mptcp = {{ stack = \"out-of-tree\" }}\nhost = {{ receive_buffer = [\"4kB\", \"80kB\", \"80kB\"] }}\n"
        ),
        format!("{TWO_PATHS}{TCP}[[flow]]\nname = \"g\"\nkind = \"mptcp\"\n"),
    ];
    texts.iter().map(|text| experiment_of(text)).collect()
}

fn experiment_of(text: &str) -> Experiment {
    let scenario = scenario::parse("test", text, Path::new(""), &Overrides::default());
    scenario.unwrap_or_else(|error| panic!("{error}")).cells[0].experiment.clone()
}

/// The events of the capture of a run at one end.
pub(crate) fn captured(folder: &Path, experiment: &Experiment, place: Place) -> Vec<EventRow> {
    let pcap = folder.join("capture.pcapng");
    trace(experiment, 7, &Outputs { pcap: Some(&pcap), place, ..Outputs::default() }).expect("a trace");
    capture_events(&pcap, None).expect("events")
}

fn is_packet(row: &EventRow) -> bool {
    matches!(row.event, "sent" | "delivered")
}

/// Whether a row of a run is a packet that the hosts at an end send or receive.
fn is_at(row: &EventRow, place: Place) -> bool {
    let sends = if place == Place::Near { "forward" } else { "reverse" };
    is_packet(row) && (row.event == "sent") == (row.direction == Some(sends))
}

fn is_data(row: &EventRow) -> bool {
    matches!(row.packet, Some("data" | "retransmission" | "copy"))
}

fn nanoseconds(row: &EventRow) -> u64 {
    (row.time_s * 1e9).round() as u64
}

/// What a capture at one end shows of the events of a run: packets that the hosts there send and receive, since the first one.
/// What an encoded packet has not, or has in another form than the simulator, is as the encoder has it.
fn shown(rows: &[EventRow], experiment: &Experiment, place: Place) -> Vec<EventRow> {
    let mut shown: Vec<EventRow> = rows.iter().filter(|row| is_at(row, place)).cloned().collect();
    let simulation = Simulation::new(experiment, 7).expect("a run");
    let start = nanoseconds(&shown[0]);
    for row in &mut shown {
        let flow = experiment.flows.iter().position(|flow| Some(&flow.name) == row.flow.as_ref()).expect("a flow");
        let sizes = simulation.header_sizes(flow).expect("TCP");
        row.time_s = (nanoseconds(row) - start) as f64 / 1e9;
        let scale = (0..15).find(|scale| sizes.max_receive_buffer >> scale <= 65535).expect("a scale");
        let is_syn = row.packet == Some("syn-ack");
        row.receive_window_bytes =
            row.receive_window_bytes.map(|window| if is_syn { window.min(65535) } else { window >> scale << scale });
        // The SYN has no DATA_ACK. SACK blocks have the room that other options leave.
        row.data_seq = row.data_seq.filter(|_| !is_syn);
        let others = if row.data_seq.is_some() { 8 } else { 0 } + (sizes.tcp - sizes.ip - 20);
        let blocks = ((40 - others - 4) / 8) as usize;
        row.sack = row.sack.take().map(|sack| sack.split(' ').take(blocks).collect::<Vec<_>>().join(" "));
        row.bytes = row.bytes.filter(|_| is_data(row));
    }
    shown
}

/// The kinds of packets with data that follow from their numbers. Of a packet that arrives late nobody can say whether it was
/// sent before; and whether another subflow has been assigned its data, only once that has sent it.
fn with_kinds_of_numbers(mut rows: Vec<EventRow>) -> Vec<EventRow> {
    let (mut seen, mut data, mut copies) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for row in rows.iter_mut().filter(|row| is_data(row)) {
        let key = (row.flow.clone(), row.connection, row.seq);
        let is_again = !seen.insert(key.clone());
        let has_data = row.data_seq.is_some() && !data.insert((row.flow.clone(), row.data_seq));
        if has_data && !is_again {
            copies.insert(key.clone());
        }
        row.packet = Some(match is_again {
            _ if copies.contains(&key) => "copy",
            true => "retransmission",
            false => "data",
        });
    }
    rows
}

/// Names the flows as the run does, and leaves out what differs in size.
fn as_in_the_run(rows: &[EventRow], truth: &[EventRow]) -> Vec<EventRow> {
    let packets = rows.iter().filter(|row| is_packet(row));
    let mut names = BTreeMap::new();
    let named = packets.zip(truth).map(|(row, truth)| {
        let name = names.entry(row.flow.clone()).or_insert_with(|| truth.flow.clone());
        EventRow { flow: name.clone(), bytes: row.bytes.filter(|_| is_data(row)), ..row.clone() }
    });
    named.collect()
}

/// Every packet of the run, with every column that the wire shows; times to the nanosecond, which is the file's resolution.
#[test]
fn a_capture_of_the_simulator_has_the_packets_of_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut kinds = BTreeMap::new();
    for experiment in experiments() {
        let (_, rows) = events(&experiment, 7).expect("a run");
        for place in [Place::Near, Place::Far] {
            let plain = shown(&rows, &experiment, place);
            let truth = with_kinds_of_numbers(plain.clone());
            let read = captured(folder.path(), &experiment, place);
            assert_eq!(read.iter().filter(|row| is_packet(row)).count(), truth.len());
            let read = as_in_the_run(&read, &truth);
            for (number, (read, truth)) in (1..).zip(read.iter().zip(&truth)) {
                assert_eq!(read, truth, "packet {number} at {place:?}");
                let marks = [(read.sack.is_some(), "SACK"), (read.ecn == Some("ce"), "CE")];
                let marks = marks.iter().filter(|(is_there, _)| *is_there).map(|(_, mark)| *mark);
                marks.chain(read.packet).for_each(|kind| *kinds.entry(kind).or_insert(0) += 1);
            }
            // At the sender of one flow the kinds are those of the run.
            if place == Place::Near && experiment.flows.len() == 1 && truth.iter().all(|row| row.data_seq.is_none()) {
                assert_eq!(read, plain);
            }
        }
    }
    for kind in ["data", "retransmission", "copy", "ack", "syn", "syn-ack", "handshake-ack", "SACK", "CE"] {
        assert!(kinds.get(kind).is_some_and(|count| *count > 0), "{kind}: {kinds:?}");
    }
}

/// The time, path and connection of the RTT samples of a run, and the samples.
type Samples = BTreeMap<(u64, Option<u64>), f64>;

/// The RTT samples are the run's, without those by timestamps, which are whole milliseconds: they are all that is known of
/// an acknowledgement of retransmitted packets.
#[test]
fn rtt_samples_are_those_of_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    for experiment in experiments().iter().filter(|experiment| experiment.flows.len() == 1) {
        let (_, rows) = events(experiment, 7).expect("a run");
        let start = nanoseconds(rows.iter().find(|row| row.event == "sent").expect("a packet"));
        let samples = |rows: &[EventRow], start: u64| -> Samples {
            let rtts = rows.iter().filter_map(|row| Some(((nanoseconds(row) - start, row.connection), row.rtt_ms?)));
            rtts.collect()
        };
        let (truth, read) = (samples(&rows, start), samples(&captured(folder.path(), experiment, Place::Near), 0));
        let others = truth.iter().filter(|(at, rtt)| read.get(at) != Some(rtt));
        let (missing, others): (Vec<_>, Vec<_>) = others.partition(|(at, _)| !read.contains_key(at));
        assert_eq!((others, read.len() + missing.len()), (vec![], truth.len()));
        assert!(missing.iter().all(|(_, rtt)| rtt.fract() == 0.0) && read.len() > 20 * missing.len(), "{missing:?}");
    }
}

/// While nothing is lost, what is in flight by the numbers is what the sender has in flight: what the latest acknowledgement
/// left, and what was sent since.
#[test]
fn packets_in_flight_are_those_of_the_sender() {
    let folder = tempfile::tempdir().expect("a folder");
    for experiment in experiments().iter().filter(|experiment| experiment.flows.len() == 1) {
        let (_, rows) = events(experiment, 7).expect("a run");
        let sizes = Simulation::new(experiment, 7).expect("a run").header_sizes(0).expect("TCP");
        let mut read = captured(folder.path(), experiment, Place::Near).into_iter().peekable();
        let (mut in_flight, mut sent, mut compared) = (BTreeMap::new(), BTreeSet::new(), 0);
        for truth in &rows {
            let subflow: &mut u64 = in_flight.entry(truth.connection).or_default();
            if is_at(truth, Place::Near) {
                let packet = read.next().expect("a packet");
                let is_new = packet.event == "sent" && is_data(&packet) && sent.insert((packet.connection, packet.seq));
                let payload = packet.bytes.expect("a size").saturating_sub(u64::from(sizes.tcp + sizes.data_option));
                *subflow += u64::from(is_new) * payload.div_ceil(u64::from(sizes.payload));
                while let Some(row) = read.next_if(|row| !is_packet(row)) {
                    *subflow = row.in_flight_packets.unwrap_or(*subflow);
                }
            }
            if truth.event == "state" && matches!(truth.congestion_state, Some("open" | "cwr")) {
                assert_eq!(Some(*subflow), truth.in_flight_packets, "{truth:?}");
                compared += 1;
            }
        }
        assert!(compared > 200, "{compared}");
    }
}

/// The host of a capture is told by its first handshake, and may be named.
#[test]
fn the_first_handshake_tells_where_a_capture_was_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let experiment = &experiments()[0];
    for (place, end) in [(Place::Near, CaptureEnd::Near), (Place::Far, CaptureEnd::Far)] {
        captured(folder.path(), experiment, place);
        let pcap = folder.path().join("capture.pcapng");
        let read = |end| read_capture(&pcap, end, &CaptureOutputs::default()).expect("a capture");
        assert_eq!((read(None).end, read(None).flows), (end, 1));
        assert_eq!(read(Some(CaptureEnd::Far)).end, CaptureEnd::Far);
        let first = |end| capture_events(&pcap, Some(end)).expect("events")[0].event;
        assert_eq!((first(CaptureEnd::Near), first(CaptureEnd::Far)), ("sent", "delivered"));
    }
}

//! The columns of a page are the run: their counts are those of the record.

use crate::{FLOWS, experiment};
use base64ct::{Base64, Encoding};
use record::Run;
use ropewalk_trace::{CaptureOutputs, Heading, Outputs, read_capture, trace};
use scenario::model::Experiment;
use serde_json::Value;
use std::io::Read;
use std::path::Path;

/// Bits of a packet's flags.
const KIND: i64 = 3;
const RETRANSMISSION: i64 = 1;
const ARRIVED: i64 = 4;
const LOST: i64 = 8;
const SPURIOUS: i64 = 16;

/// Writes the page of a run; returns its text and the record.
pub(crate) fn page(experiment: &Experiment, path: &Path) -> (String, Run) {
    let heading = Heading { title: "a <run>".to_owned(), facts: vec![("Seed".to_owned(), "7".to_owned())] };
    let outputs = Outputs { page: Some((path, &heading)), ..Outputs::default() };
    let run = trace(experiment, 7, &outputs).expect("a trace");
    (std::fs::read_to_string(path).expect("a page"), run)
}

fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("id=\"data\">").expect("data");
    serde_json::from_str(rest.split_once("</script>").expect("its end").0).expect("JSON")
}

/// The values of a column.
fn column(table: &Value, name: &str) -> Vec<i64> {
    let packed = Base64::decode_vec(table[name].as_str().expect("text")).expect("base64");
    let (mut bytes, mut last, mut values) = (Vec::new(), 0, Vec::new());
    flate2::read::ZlibDecoder::new(&packed[..]).read_to_end(&mut bytes).expect("DEFLATE");
    for number in bytes.split_inclusive(|byte| byte & 0x80 == 0) {
        let zigzag = number.iter().rev().fold(0, |value, byte| value << 7 | i64::from(byte & 0x7f));
        last += if zigzag % 2 == 0 { zigzag / 2 } else { -(zigzag + 1) / 2 };
        values.push(last);
    }
    assert_eq!(Some(values.len() as u64), table["length"].as_u64(), "{name}");
    values
}

fn strands(page: &str) -> Vec<Value> {
    data(page)["flows"][0]["strands"].as_array().expect("strands").clone()
}

fn count(strand: &Value, is_counted: impl Fn(i64) -> bool) -> u64 {
    column(&strand["packets"], "flags").into_iter().filter(|flags| is_counted(*flags)).count() as u64
}

#[test]
fn counts_of_a_page_are_those_of_the_record() {
    let folder = tempfile::tempdir().expect("a folder");
    for flows in &FLOWS[..5] {
        let (page, run) = page(&experiment(flows), &folder.path().join("page.html"));
        let (strands, flow) = (strands(&page), &run.flows[0]);
        assert_eq!(strands.len(), run.subflows.len().max(1), "{flows}");
        let total = |is_counted: fn(i64) -> bool| strands.iter().map(|strand| count(strand, is_counted)).sum::<u64>();
        let counts = [total(|_| true), total(|flags| flags & KIND == RETRANSMISSION), total(|flags| flags & LOST != 0)];
        assert_eq!(counts, [flow.sent_packets, flow.retransmitted_packets, flow.dropped_packets], "{flows}");
        assert_eq!(total(|flags| flags & ARRIVED != 0 && flags & LOST != 0), 0, "{flows}");
        for (strand, subflow) in strands.iter().zip(&run.subflows) {
            let counts = [
                count(strand, |_| true),
                count(strand, |flags| flags & KIND == RETRANSMISSION),
                count(strand, |flags| flags & LOST != 0),
            ];
            assert_eq!(
                counts,
                [subflow.sent_packets, subflow.retransmitted_packets.unwrap(), subflow.dropped_packets],
                "{flows}"
            );
            assert_eq!(strand["name"], *subflow.path);
            let last = |name| column(&strand["states"], name).last().copied();
            assert_eq!(last("timeouts"), subflow.timeouts.map(|timeouts| timeouts as i64), "{flows}");
            let row = format!(">f, {}</th><td>{}</td><td>{}</td>", subflow.path, counts[0], counts[1]);
            assert!(page.contains(&row), "{row}");
        }
        let losses = strands.iter().map(|strand| column(&strand["losses"], "link").len() as u64).sum::<u64>();
        assert_eq!(losses, flow.dropped_packets, "each loss has its link: {flows}");
    }
}

/// A flow that is alone loses as many packets to queues as the paths drop, and as many on links as they lose.
#[test]
fn the_causes_of_losses_are_those_of_the_path() {
    let folder = tempfile::tempdir().expect("a folder");
    let (page, run) = page(&experiment(FLOWS[1]), &folder.path().join("page.html"));
    for ((strand, path), link) in strands(&page).iter().zip(&run.paths).zip(0..) {
        let causes = column(&strand["losses"], "cause");
        let count = |cause| causes.iter().filter(|found| **found == cause).count() as u64;
        assert_eq!([count(0), count(1), count(2)], [path.dropped_packets, path.lost_packets, 0], "{}", path.name);
        assert!(column(&strand["losses"], "link").iter().all(|found| *found == 2 * link), "{}", path.name);
    }
    assert!(run.paths[0].lost_packets > 5 && run.paths[1].dropped_packets > 5, "{:?}", run.paths);
}

/// Packets overtake each other and none is lost: all that is sent again is spurious. Packets are lost, and none
/// overtakes another: of TCP with SACK nothing is.
#[test]
fn retransmissions_are_spurious_where_nothing_is_lost_and_only_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let reordering = "name = \"r\"\nduration = \"4s\"\n[[path]]\nname = \"p\"\nrate = \"20mbit\"\ndelay = \"20ms\"\n\
                      jitter = { span = \"15ms\" }\n[[flow]]\nname = \"f\"\npath = \"p\"\nsize = \"3MB\"\n";
    let scenario = scenario::parse("test", reordering, Path::new(""), &scenario::Overrides::default());
    let reordering = scenario.expect("a scenario").cells[0].experiment.clone();
    for (experiment, is_lossy) in [(reordering, false), (experiment(FLOWS[0]), true)] {
        let (page, run) = page(&experiment, &folder.path().join("page.html"));
        let spurious = count(&strands(&page)[0], |flags| flags & SPURIOUS != 0);
        assert!(run.flows[0].retransmitted_packets > 10 && (run.flows[0].dropped_packets > 10) == is_lossy);
        assert_eq!(spurious, if is_lossy { 0 } else { run.flows[0].retransmitted_packets });
    }
}

/// The times of each limit on the page are the record's, but for the rounding of each change to a microsecond.
#[test]
fn the_bands_of_limits_have_the_times_of_the_record() {
    let folder = tempfile::tempdir().expect("a folder");
    for flows in &FLOWS[..3] {
        let (page, run) = page(&experiment(flows), &folder.path().join("page.html"));
        let whole = data(&page);
        let names: Vec<&str> = whole["limits"].as_array().expect("names").iter().filter_map(Value::as_str).collect();
        let flow = &whole["flows"][0];
        let subflows = strands(&page);
        let subflows = subflows.iter().zip(&run.subflows).map(|(strand, subflow)| (strand.clone(), subflow.limited_s));
        for (banded, limited_s) in subflows.chain([(flow.clone(), run.flows[0].limited_s)]) {
            let (times, limits) = (column(&banded["limits"], "t"), column(&banded["limits"], "limit"));
            let ends = times.iter().skip(1).copied().chain([4_000_000]);
            let mut sums = vec![0.0; names.len()];
            for ((begin, end), limit) in times.iter().zip(ends).zip(&limits) {
                sums[*limit as usize] += (end - begin) as f64 / 1e6;
            }
            let recorded = limited_s.expect("limits").as_array();
            for (name, seconds) in record::LimitTimes::NAMES.iter().zip(recorded) {
                let place = names.iter().position(|other| *other == name.replace('_', "-")).expect("a limit");
                let rounding = 1e-6 * (times.len() + 1) as f64;
                assert!((sums[place] - seconds).abs() < rounding, "{flows}: {name} {} {seconds}", sums[place]);
            }
        }
    }
}

/// The page of a run's capture has the packets, kinds and last acknowledgements that the page of the run has. Only what packets
/// do not show is missing.
#[test]
fn the_page_of_a_capture_has_the_packets_of_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let [file, pcap] = ["page.html", "p.pcapng"].map(|name| folder.path().join(name));
    for flows in [0, 1] {
        let experiment = experiment(FLOWS[flows]);
        let truth = strands(&page(&experiment, &file).0);
        trace(&experiment, 7, &Outputs { pcap: Some(&pcap), ..Outputs::default() }).expect("a trace");
        read_capture(&pcap, None, &CaptureOutputs { page: Some(&file), events: None }).expect("a capture");
        let text = std::fs::read_to_string(&file).expect("a page");
        let read = strands(&text);
        assert_eq!(read.len(), truth.len());
        let mut rows = String::new();
        for (read, truth) in read.iter().zip(&truth) {
            assert_eq!(read["name"], truth["name"]);
            for name in ["t", "number", "data"] {
                assert_eq!(column(&read["packets"], name), column(&truth["packets"], name), "{name}");
            }
            let kinds = |strand: &Value| {
                column(&strand["packets"], "flags").iter().map(|flags| flags & KIND).collect::<Vec<_>>()
            };
            assert_eq!(kinds(read), kinds(truth));
            for name in ["number", "data"] {
                assert_eq!(column(&read["acks"], name).last(), column(&truth["acks"], name).last(), "{name}");
            }
            let [sent, again] = [count(read, |_| true), count(read, |flags| flags & KIND == RETRANSMISSION)];
            rows += &format!("<td>{sent}</td><td>{again}</td><td></td><td>0</td><td></td><td></td><td></td></tr>\n|");
        }
        assert!(rows.split_terminator('|').all(|row| text.contains(row)), "{rows}");
        assert!(!text.contains("<dt>Digest"));
    }
}

//! Made-up runs for looking at reports: sawtooth windows over two paths. Nothing here was simulated.

use record::{Flow, Path, Run, Series, Summary, Tunnel};
use ropewalk_report::{Claim, Column, Figure, Layout, Provenance, Reference, Scope, Study, Table, Test};
use std::collections::BTreeMap;

pub(crate) const ALGORITHMS: [&str; 8] =
    ["uncontrolled", "cubic", "highspeed", "illinois", "reno", "vegas", "veno", "bbr"];
pub(crate) const DELAYS: [u32; 6] = [10, 20, 30, 40, 50, 100];

/// Table 1 of Al-Imareen and Lencse (2024), some rows.
const PUBLISHED: [(&str, [f64; 6]); 9] = [
    ("uncontrolled", [180.0, 178.0, 179.0, 178.0, 169.0, 165.0]),
    ("cubic", [174.0, 178.0, 180.0, 179.0, 166.0, 170.0]),
    ("highspeed", [180.0, 180.0, 183.0, 183.0, 182.0, 182.0]),
    ("illinois", [180.0, 175.0, 183.0, 180.0, 182.0, 171.0]),
    ("reno", [176.0, 182.0, 183.0, 119.0, 124.0, 56.3]),
    ("vegas", [5.65, 3.13, 2.11, 1.64, 1.15, 0.609]),
    ("veno", [180.0, 152.0, 106.0, 158.0, 181.0, 112.0]),
    ("bbr", [28.6, 14.5, 21.2, 22.2, 4.96, 10.6]),
    ("westwood", [174.0, 134.0, 109.0, 130.0, 167.0, 45.0]),
];

/// Every algorithm with every delay, each with these seeds, `samples` samples a series.
pub(crate) fn runs(seeds: &[u64], samples: u32) -> Vec<Run> {
    let cells = ALGORITHMS.iter().flat_map(|algorithm| DELAYS.iter().map(move |delay| (*algorithm, *delay)));
    cells.flat_map(|(algorithm, delay)| seeds.iter().map(move |seed| run(algorithm, delay, *seed, samples))).collect()
}

/// A study of these runs, laid out like the paper's table.
pub(crate) fn study(runs: &[Run]) -> Study<'_> {
    let columns = DELAYS.map(|delay| format!("{delay}ms")).to_vec();
    let rows = PUBLISHED.map(|(name, values)| (name.to_owned(), values.map(Some).to_vec())).to_vec();
    Study {
        title: "Made-up numbers: one TCP flow over a tunnel that stripes packets over two paths",
        about: "A sample of what a report looks like, with runs that were made up and not simulated. One connection \
                crosses a GRE-in-UDP tunnel that deals its packets out to two equal paths in turn; the delay of the \
                second path is swept.",
        source: "laid out like Al-Imareen and Lencse (2024), table 1",
        scenario: "made-up",
        provenance: Provenance {
            file: "name = \"made-up\"\nduration = \"60s\"\n\n[[path]]\nname = \"eno1\"\nrate = \"100mbit\"\ndelay = \"10ms\"\n\n[[path]]\nname = \"eno2\"\nrate = \"100mbit\"\ndelay = \"10ms\"\n",
            ..Provenance::default()
        },
        digest: "0123456789abcdef",
        version: "0.1.0",
        commit: "0000000",
        driver: "simulator",
        layout: Layout { tables: vec![table(columns, rows)], ..Layout::default() },
        runs,
        baseline: None,
    }
}

fn table(columns: Vec<String>, rows: Vec<(String, Vec<Option<f64>>)>) -> Table {
    let reference = Reference {
        name: "published".to_owned(),
        source: "Al-Imareen and Lencse 2024, table 1".to_owned(),
        unit: "Mbit/s".to_owned(),
        columns,
        rows,
        note: "The paper gives one run a cell.".to_owned(),
    };
    Table {
        rows: vec!["flow.tcp.congestion".to_owned()],
        columns: Some("path.eno2.delay".to_owned()),
        values: vec![column("goodput_mbps")],
        references: vec![reference],
        ..Table::default()
    }
}

/// A column without a label.
pub(crate) fn column(value: &str) -> Column {
    Column { value: value.to_owned(), ..Column::default() }
}

/// A chart of windows for each delay, a line an algorithm.
pub(crate) fn figure() -> Figure {
    Figure {
        title: "Windows".to_owned(),
        lines: "flow.tcp.congestion".to_owned(),
        value: "cwnd_packets".to_owned(),
        ..Figure::default()
    }
}

/// A claim about goodput, over all delays.
pub(crate) fn claim(says: &str, test: Test) -> Claim {
    Claim {
        says: says.to_owned(),
        source: "Section 5".to_owned(),
        value: "goodput_mbps".to_owned(),
        of: "flow.tcp.congestion".to_owned(),
        each: None,
        unknown: None,
        scope: Scope::default(),
        test,
        within: 0.0,
        published: String::new(),
        note: String::new(),
        expected_failure: String::new(),
    }
}

/// A wobble in -1..1 that depends on nothing but its arguments.
fn wobble(a: u64, b: u64) -> f64 {
    let mixed = (a.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ b.wrapping_mul(0xd1b5_4a32_d192_ed03))
        .wrapping_mul(0x2545_f491_4f6c_dd1d);
    (mixed >> 40) as f64 / f64::from(1 << 23) - 1.0
}

fn run(algorithm: &str, delay: u32, seed: u64, samples: u32) -> Run {
    let row = PUBLISHED.iter().find(|(name, _)| *name == algorithm).map_or([100.0; 6], |row| row.1);
    let column = DELAYS.iter().position(|column| *column == delay).unwrap_or(0);
    let luck = wobble(seed + algorithm.len() as u64 * 77 + u64::from(algorithm.as_bytes()[0]), u64::from(delay));
    let goodput = (row[column] * (1.0 + 0.12 * luck)).min(183.4);
    let series = series(goodput, f64::from(delay), seed, samples);
    let rtt = 2.0 * f64::from(delay) + 12.0;
    let packets = (goodput * 60.0e6 / 8.0 / 1428.0) as u64;
    let path = |name: &str| Path {
        name: name.to_owned(),
        sent_packets: packets / 2,
        delivered_packets: packets / 2 - 40,
        dropped_packets: 40,
        utilisation: goodput / 190.0,
        queue_delay_ms: 3.0 + luck,
        ..Path::default()
    };
    let flow = Flow {
        name: "tcp".to_owned(),
        congestion_control: if algorithm == "uncontrolled" { String::new() } else { algorithm.to_owned() },
        goodput_mbps: goodput,
        delivered_bytes: packets * 1428,
        sent_packets: packets,
        retransmitted_packets: 80,
        recoveries: 9,
        spurious_recoveries: 2,
        timeouts: 0,
        rtt_ms: Summary { mean: rtt, p50: rtt, p95: rtt * 1.3, p99: rtt * 1.5, min: rtt * 0.8, max: rtt * 2.0 },
        ..Flow::default()
    };
    Run {
        parameters: BTreeMap::from([
            ("flow.tcp.congestion".to_owned(), algorithm.to_owned()),
            ("path.eno2.delay".to_owned(), format!("{delay}ms")),
        ]),
        seed,
        digest: format!("{:016x}", seed * 1000 + u64::from(delay)),
        duration_s: 60.0,
        flows: vec![flow],
        paths: vec![path("eno1"), path("eno2")],
        tunnel: Some(Tunnel { delivered_packets: packets, reorder_buffered_packets: packets / 2, ..Tunnel::default() }),
        series,
        ..Run::default()
    }
}

fn series(goodput: f64, delay: f64, seed: u64, samples: u32) -> Vec<Series> {
    let time_s: Vec<f64> = (0..samples).map(|step| f64::from(step) * 60.0 / f64::from(samples)).collect();
    let peak = goodput * 2.0 * delay / 12.0 + 40.0;
    let window = |time: f64| {
        let phase = (time / (3.0 + delay / 20.0)).fract();
        if time < 1.0 { peak * time.powi(3) } else { peak * (0.7 + 0.3 * (2.0 * phase - 1.0).powi(3) * 0.5 + 0.15) }
    };
    let of = |value: &dyn Fn(f64) -> f64| time_s.iter().map(|time| value(*time)).collect::<Vec<_>>();
    let share = |time: f64| (window(time) / peak).clamp(0.0, 1.0);
    let noise = |time: f64, salt: u64| 1.0 + 0.02 * wobble((time * 1000.0) as u64 + seed, salt);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let flow = Series {
        subject: "flow tcp".to_owned(),
        columns: names(&[
            "goodput_mbps",
            "cwnd_packets",
            "ssthresh_packets",
            "srtt_ms",
            "in_flight_packets",
            "retransmitted_packets",
        ]),
        values: vec![
            of(&|time| goodput * share(time).sqrt() * noise(time, 1)),
            of(&window),
            of(&|time| if time < 1.0 { f64::NAN } else { 0.7 * peak }),
            of(&|time| 2.0 * delay + 12.0 * share(time) * noise(time, 2)),
            of(&|time| window(time) * 0.97),
            of(&|time| if share(time) > 0.9 { 3.0 } else { 0.0 }),
        ],
        time_s: time_s.clone(),
    };
    let path = |name: &str, salt: u64| Series {
        subject: format!("path {name}"),
        columns: names(&["throughput_mbps", "queue_packets", "dropped_packets", "marked_packets"]),
        values: vec![
            of(&|time| goodput * 0.5 * share(time).sqrt() * noise(time, salt)),
            of(&|time| (60.0 * (share(time) - 0.6).max(0.0) * noise(time, salt + 9)).round()),
            of(&|time| if share(time) > 0.9 { 2.0 } else { 0.0 }),
            of(&|_| 0.0),
        ],
        time_s: time_s.clone(),
    };
    vec![flow, path("eno1", 3), path("eno2", 4)]
}

//! Runs made up from a number, with something in every field.

use record::{
    Cpu, DelayHistogram, Flow, Gaps, LimitTimes, Multipath, Path, Protocol, QuicLosses, Requests, Run, Series, Stack,
    Subflow, Summary, Tunnel, Video, Work,
};
use ropewalk_store::Manifest;
use std::collections::BTreeMap;

/// A manifest of a study of `cells` cells.
pub(crate) fn manifest(hash: &str, cells: usize, seeds: &[u64]) -> Manifest {
    Manifest {
        ropewalk_version: "0.1.0".to_owned(),
        commit: "abc".to_owned(),
        scenario: "sample".to_owned(),
        scenario_hash: hash.to_owned(),
        seeds: seeds.to_vec(),
        cells,
        ..Manifest::default()
    }
}

/// CPU time that depends on `x`.
fn cpu(name: &str, x: f64, interrupt_s: Option<f64>) -> Cpu {
    Cpu { name: name.to_owned(), user_s: x / 41.0, system_s: x / 43.0, interrupt_s }
}

fn subflow(srtt_ms: Summary, x: f64) -> Subflow {
    let (flow, path, limited_s) = ("one".to_owned(), "lte".to_owned(), Some(limits(x / 3.0)));
    Subflow { flow, path, srtt_ms, limited_s, ..Subflow::default() }
}

/// Times of limits that depend on `x`.
fn limits(x: f64) -> LimitTimes {
    LimitTimes::from_array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0].map(|time| x / time))
}

fn multipath(summary: Summary) -> Multipath {
    Multipath {
        protocol_delay_ms: summary,
        head_of_line_degree_ms: summary,
        head_of_line_delay_ms: summary,
        max_out_of_order_packets: 7,
        redundant_packets: 8,
        reinjected_packets: 9,
        redundant_first_packets: 11,
    }
}

/// The run of a cell and a seed: always the same, never the same as another.
pub(crate) fn run(cell: usize, seed: u64) -> Run {
    let x = cell as f64 + seed as f64 / 3.0;
    let summary = Summary { mean: x / 7.0, p50: 0.1 + x, p95: -0.0, p99: f64::MIN_POSITIVE, min: 1e-300, max: 1e300 };
    let flow = |name: &str, completion_s| Flow {
        name: name.to_owned(),
        protocol: Protocol::Mpquic,
        congestion_control: "cubic".to_owned(),
        goodput_mbps: x.sqrt(),
        delivered_bytes: u64::MAX,
        sent_packets: seed,
        throughput_mbps: 1.5 * x,
        retransmitted_packets: 3,
        dropped_packets: 2,
        recoveries: 4,
        spurious_recoveries: 5,
        timeouts: 6,
        receive_window_limited_s: x / 11.0,
        send_buffer_limited_s: x / 13.0,
        completion_s,
        share: completion_s,
        requests: completion_s.map(|_| Requests { requests: seed, response_time_ms: summary }),
        video: completion_s.map(|x| Video {
            startup_s: (x > 1.0).then_some(x),
            stalls: 12,
            stall_s: x / 23.0,
            frames: 13,
            late_frames: 14,
            frame_delay_ms: summary,
            video_mbps: x / 29.0,
            rate_switches: 15,
        }),
        rtt_ms: summary,
        one_way_delay_ms: completion_s.map(|_| summary),
        // A part whose values are those of an empty one is not the lack of the part.
        gaps: (seed > 1).then(Gaps::default),
        peak_mbps: completion_s.map(|x| x / 19.0),
        duplicate_bytes: completion_s.map(|_| 10),
        multipath: completion_s.map(|_| multipath(summary)),
        quic: completion_s.map(|_| QuicLosses { declared_lost_packets: 17, spurious_losses: 18 }),
        stack: completion_s.map(|_| Stack { stack: "noq".to_owned(), stack_error: "too, many\ngaps".to_owned() }),
        limited_s: completion_s.map(|_| limits(x)),
    };
    let path = Path { name: "upper \"1\"\n".to_owned(), dropped_packets: 7, utilisation: x.ln(), ..Path::default() };
    let tunnel = Tunnel { reorder_buffered_packets: 1 << 40, reorder_delay_ms: summary, ..Tunnel::default() };
    Run {
        parameters: parameters(cell),
        seed,
        digest: format!("{cell:08x}{seed:08x}"),
        duration_s: x,
        jain: Some(x / 17.0),
        convergence_s: (cell > 1).then_some(x),
        capacity_mbps: (cell > 2).then_some(x / 29.0),
        steal_s: (cell > 0).then_some(x / 31.0),
        controller_failures: 1,
        controller_failure: "the policy answered NaN".to_owned(),
        cpu: vec![cpu("machine", x, Some(x / 37.0)), cpu("traffic", x, None)],
        flows: vec![flow("one", None), flow("two", Some(x))],
        subflows: vec![subflow(summary, x); cell % 2],
        paths: vec![path; cell % 3],
        tunnel: cell.is_multiple_of(2).then_some(tunnel),
        histograms: histograms(cell, seed),
        series: series(cell, x),
        work: Work { data_packet_hops: 1, packet_hops: 2, delivered_data_packets: 3, events: u64::MAX - seed },
    }
}

fn parameters(cell: usize) -> BTreeMap<String, String> {
    let mut parameters = BTreeMap::from([("delay".to_owned(), format!("{cell}ms"))]);
    if cell % 2 == 1 {
        parameters.insert("only odd cells".to_owned(), String::new());
    }
    parameters
}

/// None of the first cell, as in a folder whose driver counts nothing.
fn histograms(cell: usize, seed: u64) -> Vec<DelayHistogram> {
    let buckets = vec![(1, 1), (seed as u32 % 90_000 + 2, 7), (1_000_000_000, u32::MAX)];
    let histogram = |subject: &str, column: &str| DelayHistogram {
        subject: subject.to_owned(),
        column: column.to_owned(),
        buckets: buckets.clone(),
    };
    let of =
        [("flow one", "rtt_ms"), ("flow one", "one_way_delay_ms"), ("subflow one/lte", "rtt_ms"), ("tunnel", "rtt_ms")];
    of[..cell.min(of.len())].iter().map(|(subject, column)| histogram(subject, column)).collect()
}

fn series(cell: usize, x: f64) -> Vec<Series> {
    let time_s: Vec<f64> = (0..50 * cell).map(|step| step as f64 * 0.1).collect();
    let curve: Vec<f64> = time_s.iter().map(|time| (time * x).sin()).collect();
    let edge = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0];
    vec![
        Series {
            subject: "flow one".to_owned(),
            columns: vec!["cwnd_packets".to_owned(), "srtt_ms".to_owned()],
            values: vec![curve.clone(), curve],
            time_s,
        },
        Series {
            subject: "path upper".to_owned(),
            columns: vec!["queue_packets".to_owned()],
            time_s: vec![0.0, 0.1, 0.2, 0.3],
            values: vec![edge.to_vec()],
        },
    ]
}

/// Both runs bit for bit: `==` would call a run with NaN in it different from itself.
pub(crate) fn identical(first: &Run, second: &Run) -> bool {
    let bits = |run: &Run| -> Vec<u64> {
        let vectors = run.series.iter().flat_map(|series| series.values.iter().flatten().chain(&series.time_s));
        vectors.map(|value| value.to_bits()).collect()
    };
    let names = |run: &Run| -> Vec<(String, Vec<String>)> {
        run.series.iter().map(|series| (series.subject.clone(), series.columns.clone())).collect()
    };
    let without_series = |run: &Run| Run { series: Vec::new(), ..run.clone() };
    without_series(first) == without_series(second) && bits(first) == bits(second) && names(first) == names(second)
}

//! The simulator against stored measurements of Linux 6.1 in the same experiments.
//!
//! Prints simulated against kernel, cell by cell: `cargo test -p ropewalk-sim --test suite kernel -- --nocapture`.

use crate::common::{column, mean};
use scenario::Scenario;
use serde::Deserialize;
use std::path::Path;

#[derive(Deserialize)]
struct Traces {
    interval_s: f64,
    runs: Vec<Trace>,
}

#[derive(Deserialize)]
struct Trace {
    congestion_control: String,
    goodput_per_second_mbps: Vec<f64>,
    window: Vec<f64>,
    threshold: Vec<f64>,
}

fn load(file: &str, sets: &[&str]) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios").join(file);
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    scenario::load(&path, &scenario::Overrides { sets, quick: false }).unwrap_or_else(|error| panic!("{error}"))
}

/// The window from the moment slow start ended, when both clocks can be aligned.
fn from_first_threshold<'a>(window: &'a [f64], threshold: &[f64]) -> &'a [f64] {
    &window[threshold.iter().position(|packets| *packets > 0.0).expect("slow start ends")..]
}

/// Root mean square of the difference over the kernel's mean.
fn trajectory_error(simulated: &[f64], kernel: &[f64]) -> f64 {
    let pairs = || simulated.iter().zip(kernel);
    let count = pairs().count() as f64;
    let mean_square = pairs().map(|(a, b)| (a - b).powi(2)).sum::<f64>() / count;
    mean_square.sqrt() / (pairs().map(|(_, b)| b).sum::<f64>() / count)
}

/// Goodput within 3 %; the window's course within 10 % for loss-based algorithms; thresholds, and the time between
/// reductions within a sample.
#[test]
fn single_path_windows_follow_the_kernels() {
    let traces: Traces =
        serde_json::from_str(include_str!("../data/kernel-6.1-windows.json")).expect("the file is ours");
    let scenario = load("validation/kernel-single-path.toml", &[]);
    println!("{:<10} {:>9} {:>9} {:>7} {:>11}", "algorithm", "simulated", "kernel", "ratio", "trajectory");
    for cell in &scenario.cells {
        let run = ropewalk_sim::run(&cell.experiment, 1).expect("registered");
        let name = &run.flows[0].congestion_control;
        let kernel = traces.runs.iter().find(|trace| &trace.congestion_control == name).expect("measured");
        let (goodput, window) = (column(&run, "flow tcp", "goodput_mbps"), column(&run, "flow tcp", "cwnd_packets"));
        let threshold = column(&run, "flow tcp", "ssthresh_packets");
        // Both from the first second on: the kernel's sampler starts some tenths before its flow.
        let per_second = (1.0 / traces.interval_s) as usize;
        let (ours, theirs) = (mean(&goodput[per_second..]), mean(&kernel.goodput_per_second_mbps[1..19]));
        let error = trajectory_error(
            from_first_threshold(window, threshold),
            from_first_threshold(&kernel.window, &kernel.threshold),
        );
        println!("{name:<10} {ours:>9.2} {theirs:>9.2} {:>7.3} {:>9.1} %", ours / theirs, error * 100.0);
        assert!((ours / theirs - 1.0).abs() < 0.03, "{name}: goodput {ours} for {theirs}");
        if ["reno", "cubic", "highspeed"].contains(&name.as_str()) {
            assert!(error < 0.10, "{name}: trajectory off by {error}");
        }
        let (ours, theirs) = (thresholds(threshold), thresholds(&kernel.threshold));
        // The end of the ACK train, by which CUBIC leaves slow start, is uncertain by a burst or two.
        let tolerance = if name == "cubic" { 5.0 } else { 1.0 };
        let near = ours.iter().zip(&theirs).all(|(ours, theirs)| (ours - theirs).abs() <= tolerance);
        assert!(near && ours.len() == theirs.len(), "{name}: thresholds {ours:?} for {theirs:?}");
        match name.as_str() {
            "vegas" => assert_eq!(window.last(), kernel.window.last(), "where Vegas settles"),
            // In each phase of the gain cycle, before it first probes for the RTT; a sample may fall between two phases.
            "bbr" => {
                let near =
                    |packets: &&f64| kernel.window[10..90].iter().any(|kernels| (*packets - kernels).abs() <= 2.0);
                assert!(window[10..90].iter().filter(near).count() >= 78, "{window:?}");
            }
            _ => {
                let (ours, theirs) = (period(window), period(&kernel.window));
                assert!(ours.abs_diff(theirs) <= 1, "{name}: from the first to the last reduction {ours}, {theirs}");
            }
        }
    }
}

/// The slow start thresholds in order.
fn thresholds(threshold: &[f64]) -> Vec<f64> {
    let mut thresholds: Vec<f64> = threshold.iter().copied().filter(|packets| *packets > 0.0).collect();
    thresholds.dedup();
    thresholds
}

/// Samples from the first to the last reduction after slow start.
fn period(window: &[f64]) -> usize {
    let peaks = || (10..window.len() - 1).filter(|i| window[i - 1] <= window[*i] && window[*i] > window[i + 1]);
    peaks().next_back().expect("there are reductions") - peaks().next().expect("there are reductions")
}

fn median_of_five(run: impl Fn(u64) -> f64) -> f64 {
    let mut values: Vec<f64> = (1..=5).map(run).collect();
    values.sort_by(f64::total_cmp);
    values[2]
}

/// Cells that the kernel itself does not repeat: the minimum and the maximum of its runs, which differ only in when the flow
/// starts. The median of five of ours must come within 20 % of that range.
const UNSTEADY: [(&str, &str, f64, f64); 5] = [
    ("vegas", "10ms", 5.38, 25.33),
    ("vegas", "50ms", 1.31, 2.40),
    ("bbr", "10ms", 15.37, 98.03),
    ("bbr", "50ms", 3.6, 81.61),
    ("bbr", "100ms", 2.18, 32.08),
];

/// Virtual time: the kernel's programs wake up at once, and its first packets take the paths that this gives.
const HELD_STILL: [&str; 3] = ["tunnel.nuisances={}", "tunnel.first=1", "tunnel.stray_packets=1"];

/// Table I and Figure 5 with MPT's resequencing: within 20 % in every steady cell, and the same algorithms collapse.
#[test]
fn delay_and_loss_on_one_path_come_out_as_on_the_kernel() {
    let scenario = load("papers/al-imareen-2024.toml", &[&["host.tick=10ms"][..], &HELD_STILL].concat());
    let layout = report::layout(&scenario).expect("it is shipped");
    let references = layout.tables.iter().flat_map(|table| &table.references);
    let kernel: Vec<_> = references.filter(|reference| reference.name == "kernel 6.1").collect();
    println!("{:<12} {:>6} {:>9} {:>9} {:>7}", "algorithm", "case", "simulated", "kernel", "ratio");
    let mut compared = 0;
    for cell in &scenario.cells {
        let (case, row) = (&cell.parameters[0].1, &cell.parameters[1].1);
        let value = |reference: &&report::Reference| {
            let index = reference.columns.iter().position(|column| column == case)?;
            reference.rows.iter().find(|(name, _)| name == row)?.1[index]
        };
        let Some(measured) = kernel.iter().find_map(value) else { continue };
        let run = |seed| ropewalk_sim::run(&cell.experiment, seed).expect("registered").flows[0].goodput_mbps;
        let simulated = run(1);
        println!("{row:<12} {case:>6} {simulated:>9.2} {measured:>9.2} {:>7.3}", simulated / measured);
        match UNSTEADY.iter().find(|(algorithm, unsteady_case, ..)| algorithm == row && unsteady_case == case) {
            Some((.., min, max)) => {
                let median = median_of_five(run);
                assert!((min * 0.8..=max * 1.2).contains(&median), "{row}, {case}: {median}");
            }
            None => assert!((simulated / measured - 1.0).abs() < 0.20, "{row}, {case}: {simulated} for {measured}"),
        }
        compared += 1;
    }
    assert_eq!(compared, 55, "eleven algorithms, three delays and two losses");
}

/// Without resequencing every algorithm collapses at 10 ms: two paths carry less than one would alone (91.7 Mbit/s).
#[test]
fn without_resequencing_every_algorithm_collapses() {
    let sets = [&["host.tick=10ms", "duration=20s", "case=10ms"][..], &HELD_STILL].concat();
    let scenario = load("papers/al-imareen-2024.toml", &sets);
    for cell in &scenario.cells {
        let mut experiment = cell.experiment.clone();
        let tunnel = experiment.tunnel.as_mut().expect("the scenario has a tunnel");
        (tunnel.resequence, tunnel.device) = (None, None);
        let runs = (1..=3).map(|seed| ropewalk_sim::run(&experiment, seed).expect("registered").flows[0].goodput_mbps);
        let (row, goodput) = (&cell.parameters[1].1, mean(&runs.collect::<Vec<_>>()));
        println!("{row:<12} {goodput:>9.2}");
        // The kernel: 8 to 25 Mbit/s, Westwood 62 (a known miss: some 85 here), BBR 68, with the tolerance of all cells.
        let max_goodput = if row == "westwood" { 91.7 } else { 68.0 * 1.2 };
        assert!(goodput < max_goodput, "{row}: {goodput}");
    }
}

/// How many packets fewer than the window a flow has in flight, as a share of samples every 7 ms from second 5 to second
/// 20: a rest smaller than a super-segment waits (TSO deferral), at 100 Mbit/s and 20 ms of nine segments. The kernel's
/// shares are of 2143 samples of Reno over `validation/kernel.toml` with these keys, `--on uml`.
#[test]
fn as_many_packets_wait_for_a_super_segment_as_in_the_kernel() {
    const KERNEL: [f64; 9] = [0.119, 0.107, 0.114, 0.108, 0.111, 0.110, 0.109, 0.111, 0.109];
    let sets =
        ["case=clean", "flow.tcp.congestion=reno", "sample=7ms", "path.wire.rate=100mbit", "path.wire.delay=10ms"];
    let run = ropewalk_sim::run(&load("validation/kernel.toml", &sets).cells[0].experiment, 1).expect("registered");
    let (window, in_flight) = (column(&run, "flow tcp", "cwnd_packets"), column(&run, "flow tcp", "in_flight_packets"));
    let waiting: Vec<usize> = window.iter().zip(in_flight).skip(714).map(|(a, b)| (a - b) as usize).collect();
    assert!(waiting.iter().all(|packets| *packets < KERNEL.len()), "{waiting:?}");
    for (packets, kernel) in KERNEL.iter().enumerate() {
        let share = waiting.iter().filter(|waiting| **waiting == packets).count() as f64 / waiting.len() as f64;
        // Three standard errors of the difference of two shares of a ninth.
        assert!((share - kernel).abs() < 0.029, "{packets} packets: {share} for {kernel}");
    }
}

/// The packets in flight of a flow whose bottleneck is its own host's queue, with room for 165 packets: small queues (TSQ) let
/// some 20 of them wait there, more with super-segments, and the window stops growing at twice of what is in flight. The
/// kernel's means are of `validation/kernel-single-path.toml`, `--on uml`, from second 5 on.
#[test]
fn small_queues_keep_as_many_packets_in_flight_as_in_the_kernel() {
    for (algorithm, tso, kernel) in
        [("reno", false, 181.1), ("cubic", false, 172.1), ("reno", true, 205.0), ("cubic", true, 183.0)]
    {
        let (congestion, tso_key) = (format!("flow.tcp.congestion={algorithm}"), format!("host.tso={tso}"));
        let sets = [&*congestion, &*tso_key, "host.small_queues=true"];
        let scenario = load("validation/kernel-single-path.toml", &sets);
        let run = ropewalk_sim::run(&scenario.cells[0].experiment, 1).expect("registered");
        let in_flight = mean(&column(&run, "flow tcp", "in_flight_packets")[50..]);
        println!("{algorithm}, tso {tso}: {in_flight:.1} / {kernel}");
        // The bucket of the kernel's `tbf` lets two packets go ahead, one more is in transmission, and one may be a sample's.
        assert!((in_flight - kernel).abs() < 4.0, "{algorithm}, tso {tso}: {in_flight} for {kernel}");
    }
}

/// Goodput, Mbit/s, and packets delivered in 21 s through Ropewalk's tunnel, without Vegas and BBR's bistable cells: the means
/// of the three runs kept in `validation/al-imareen-ropewalk-6.1`, whose daemon sent packets one by one.
const ROPEWALK: [(&str, &str, f64, f64); 8] = [
    ("cubic", "10ms", 180.8, 20_380.0),
    ("cubic", "50ms", 170.9, 11_372.0),
    ("cubic", "100ms", 155.7, 8_248.0),
    ("cubic", "1%", 183.8, 18_781.0),
    ("cubic", "5%", 183.8, 16_959.0),
    ("bbr", "10ms", 112.9, 5_652.0),
    ("bbr", "1%", 180.9, 11_013.0),
    ("bbr", "5%", 180.6, 10_094.0),
];

/// The path controller of the recordings' daemon, the default of its time.
const RECORDED_CONTROL: &str = "tunnel.congestion=bbr-path";

/// Packets one by one would be some 320 000 of CUBIC's and as many of BBR's with losses. Means of eight runs:
/// CUBIC at 50 ms has 10 500 to 15 500, by the seed.
#[test]
fn super_segments_in_the_tunnel_are_as_many_as_the_kernels() {
    for (congestion, case, goodput_mbps, packets) in ROPEWALK {
        let (congestion_set, case_set) = (format!("flow.tcp.congestion={congestion}"), format!("case={case}"));
        let sets =
            ["host.tick=10ms", "duration=21s", "tunnel.bundles=false", RECORDED_CONTROL, &congestion_set, &case_set];
        let scenario = load("tunnel/al-imareen-ropewalk.toml", &sets);
        let run = |seed| ropewalk_sim::run(&scenario.cells[0].experiment, seed).expect("registered");
        let runs = [1, 2, 3, 4, 5, 6, 7, 8].map(run);
        let goodput = mean(&runs.each_ref().map(|run| run.flows[0].goodput_mbps));
        let delivered = mean(&runs.map(|run| run.tunnel.map_or(0.0, |tunnel| tunnel.delivered_packets as f64)));
        println!("{congestion:<6} {case:>5} {goodput:>7.1} for {goodput_mbps:>6.1}, {delivered:>6} for {packets:>6}");
        assert!((goodput / goodput_mbps - 1.0).abs() < 0.05, "{congestion}, {case}: {goodput} for {goodput_mbps}");
        assert!((delivered / packets - 1.0).abs() < 0.25, "{congestion}, {case}: {delivered} for {packets}");
    }
}

/// Vegas takes what few super-segments in flight wait for, and what the daemon pauses, as a queue: the kernel's three runs with
/// 100 ms on the other path have 56 to 59 Mbit/s of the first one's 92. A known deviation: ours have 18 % less
/// (docs/evidence/validation/ropewalk-tunnel.md).
#[test]
fn vegas_leaves_a_third_of_the_fast_path_to_super_segments() {
    let host = ["host.tick=10ms", "duration=21s", "tunnel.bundles=false", RECORDED_CONTROL];
    let sets = [&["case=100ms", "flow.tcp.congestion=vegas"], &host[..]].concat();
    let scenario = load("tunnel/al-imareen-ropewalk.toml", &sets);
    let run = |seed| ropewalk_sim::run(&scenario.cells[0].experiment, seed).expect("registered").flows[0].goodput_mbps;
    let goodput = mean(&[1, 2, 3, 4, 5].map(run));
    assert!((goodput / 57.1 - 1.0).abs() < 0.2, "{goodput} Mbit/s");
}

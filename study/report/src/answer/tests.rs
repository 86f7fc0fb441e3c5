//! Answers from made records, which can be worked out by hand.

use super::*;
use crate::layout::Layout;
use record::{Flow, Run};

/// A run of an algorithm at a delay.
fn run(algorithm: &str, delay: &str, seed: u64, goodput_mbps: f64) -> Run {
    let rtt_ms = record::Summary { mean: 10.0 * goodput_mbps, ..record::Summary::default() };
    let flow = Flow { name: "tcp".to_owned(), goodput_mbps, rtt_ms, ..Flow::default() };
    Run {
        parameters: [("flow.tcp.congestion", algorithm), ("path.wan.delay", delay)]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        seed,
        flows: vec![flow],
        ..Run::default()
    }
}

/// The runs of algorithms at delays, with a value for each seed from 1 on.
fn runs(cells: &[(&str, &str, &[f64])]) -> Vec<Run> {
    let of_cell = |(algorithm, delay, values): &(&str, &str, &[f64])| {
        (1..).zip(*values).map(|(seed, value)| run(algorithm, delay, seed, *value)).collect::<Vec<_>>()
    };
    cells.iter().flat_map(of_cell).collect()
}

fn answer_in(value: &str, runs: &[Run]) -> String {
    let table = Table {
        rows: vec!["flow.tcp.congestion".to_owned()],
        columns: Some("path.wan.delay".to_owned()),
        values: vec![Column { value: value.to_owned(), ..Column::default() }],
        ..Table::default()
    };
    let layout = Layout { tables: vec![table], ..Layout::default() };
    sentences(&Study { runs, layout, ..Study::default() }).join(" ")
}

fn answer(runs: &[Run]) -> String {
    answer_in("goodput_mbps", runs)
}

#[test]
fn the_best_is_named_with_its_difference_to_the_next_paired_by_seed() {
    let runs = runs(&[
        ("reno", "20ms", &[10.0, 20.0, 30.0]),
        ("bbr", "20ms", &[15.0, 25.0, 35.0]),
        ("vegas", "20ms", &[1.0, 11.0, 21.0]),
    ]);
    // Each seed differs by 5, so that chance plays no part, though the means themselves are uncertain by 25.
    let expected = "Goodput is highest with bbr: 25 Mbit/s, 5 Mbit/s (25 %) more than with reno, the next of 3. It is \
                    lowest with vegas: 11 Mbit/s.";
    assert_eq!(answer(&runs), expected);
    let mut others = runs;
    for (index, run) in others.iter_mut().enumerate() {
        run.seed = index as u64;
    }
    // Welch's intervals are wider than 5.
    assert_eq!(answer(&others), "Goodput does not differ between bbr, reno and vegas: 11 to 25 Mbit/s.");
}

#[test]
fn of_delays_the_least_is_best() {
    let runs = runs(&[("reno", "20ms", &[3.0, 3.1]), ("bbr", "20ms", &[1.0, 1.1])]);
    assert_eq!(
        answer_in("rtt_ms.mean", &runs),
        "RTT mean is lowest with bbr: 10.5 ms, 20 ms (66 %) less than with reno."
    );
    let share = answer_in("cwnd_packets", &runs);
    assert_eq!(share, "", "nothing has this value");
}

#[test]
fn those_whose_interval_holds_zero_do_not_differ() {
    // Differences 1, -1, 1, -1 have a mean of zero; those to vegas are 40.
    let runs = runs(&[
        ("reno", "20ms", &[51.0, 49.0, 51.0, 49.0]),
        ("bbr", "20ms", &[50.5, 50.0, 50.0, 50.0]),
        ("vegas", "20ms", &[10.0, 10.0, 10.0, 10.0]),
    ]);
    let expected = "Goodput is highest with bbr and reno, which do not differ (50.1 and 50 Mbit/s). It is lowest with \
                    vegas: 10 Mbit/s.";
    assert_eq!(answer(&runs), expected);
    assert_eq!(answer(&runs[..8]), "Goodput does not differ between bbr and reno: 50.1 and 50 Mbit/s.");
    assert!(note(&sentences_of(&runs)).unwrap().contains("within 1 %"));
}

fn sentences_of(runs: &[Run]) -> Vec<String> {
    vec![answer(runs)]
}

#[test]
fn less_than_a_hundredth_is_no_difference_whatever_the_interval() {
    let tied = runs(&[("reno", "20ms", &[100.0, 100.1]), ("bbr", "20ms", &[100.9, 101.0])]);
    assert_eq!(answer(&tied), "Goodput does not differ between bbr and reno: 101 and 100 Mbit/s.");
    let one = runs(&[("reno", "20ms", &[100.0]), ("bbr", "20ms", &[102.0])]);
    let expected = "Goodput is highest with bbr: 102 Mbit/s, 2 Mbit/s (2 %) more than with reno (one run each).";
    assert_eq!(answer(&one), expected);
}

#[test]
fn the_next_may_have_equals_too() {
    let runs =
        runs(&[("bbr", "20ms", &[46.0, 46.0]), ("olia", "20ms", &[31.0, 30.0]), ("cubic", "20ms", &[30.0, 30.5])]);
    // Differences to olia 15 and 16: 15.5 ± 12.7062 x 0.5.
    let expected = "Goodput is highest with bbr: 46 Mbit/s, 15.5 ± 6.4 Mbit/s (51 %) more than with olia, the next of 3. It \
                    does not differ between olia and cubic.";
    assert_eq!(answer(&runs), expected);
}

#[test]
fn over_a_sweep_means_are_compared_and_the_settings_counted() {
    let runs = runs(&[
        ("bbr", "20ms", &[40.0]),
        ("bbr", "80ms", &[30.0]),
        ("bbr", "160ms", &[20.0]),
        ("reno", "20ms", &[44.0]),
        ("reno", "80ms", &[10.0]),
        ("reno", "160ms", &[6.0]),
        ("cubic", "20ms", &[9.0]),
    ]);
    // CUBIC has one setting, so that only this one is common to all.
    assert!(answer(&runs).starts_with("Goodput is highest with reno: 44 Mbit/s, 4 Mbit/s (10 %) more than with bbr"));
    let expected = "Averaged over 3 values of delay, goodput is highest with bbr: 30 Mbit/s, 10 Mbit/s (50 %) more than with \
                    reno (one run each). In 2 of the 3 no other is better.";
    assert_eq!(answer(&runs[..6]), expected);
}

#[test]
fn means_that_do_not_differ_may_differ_at_each_setting() {
    let runs = runs(&[
        ("bbr", "20ms", &[10.0]),
        ("bbr", "80ms", &[20.0]),
        ("reno", "20ms", &[20.0]),
        ("reno", "80ms", &[10.0]),
    ]);
    let expected = "Averaged over 2 values of delay, goodput does not differ between bbr and reno: 15 Mbit/s (one run each), \
                    but it does in 2 of these 2.";
    assert_eq!(answer(&runs), expected);
}

#[test]
fn one_group_has_its_value_and_a_swept_quantity_is_named_with_its_key() {
    let one = runs(&[("bbr", "20ms", &[9.0, 11.0])]);
    assert_eq!(answer(&one), "Goodput is 10 ± 13 Mbit/s (mean of 2 seeds).");
    assert_eq!(answer(&one[..1]), "Goodput is 9 Mbit/s (1 seed).");
    let same: Vec<Run> =
        one.iter().map(|run| Run { seed: run.seed, digest: "same".to_owned(), ..one[0].clone() }).collect();
    assert_eq!(answer(&same), "Goodput is 9 Mbit/s (2 seeds, identical runs).");
    let sweep = runs(&[("bbr", "20ms", &[9.0]), ("bbr", "80ms", &[6.0])]);
    let expected =
        "Goodput is highest with delay 20ms: 9 Mbit/s, 3 Mbit/s (50 %) more than with delay 80ms (one run each).";
    assert_eq!(answer(&sweep), expected);
    assert_eq!(answer(&[]), "");
}

#[test]
fn of_percents_the_difference_is_in_points_and_of_packets_there_are_several() {
    let mut dropping =
        runs(&[("bbr", "a", &[1.0]), ("reno", "a", &[1.0]), ("bbr", "b", &[1.0]), ("reno", "b", &[1.0])]);
    for (run, dropped_packets) in dropping.iter_mut().zip([40, 10, 20, 10]) {
        run.flows[0] = Flow { dropped_packets, sent_packets: 100, ..run.flows[0].clone() };
        let delay = run.parameters.remove("path.wan.delay").unwrap();
        run.parameters.insert(CASE.to_owned(), delay);
    }
    let expected = "Averaged over 2 cases, dropped packets are lowest with reno: 10 %, 20 percentage points less than with bbr \
                    (one run each). No other is better in any of the 2.";
    assert_eq!(answer_in("drop_percent", &dropping), expected);
}

#[test]
fn without_a_table_flows_are_compared_in_goodput() {
    let mut run = run("bbr", "20ms", 1, 9.0);
    assert_eq!(sentences(&Study { runs: &[run.clone()], ..Study::default() }), ["Goodput is 9 Mbit/s (1 seed)."]);
    run.flows.push(Flow { name: "other".to_owned(), goodput_mbps: 3.0, ..Flow::default() });
    let expected =
        "Goodput is highest for flow tcp: 9 Mbit/s, 6 Mbit/s (200 %) more than for flow other (one run each).";
    assert_eq!(sentences(&Study { runs: &[run], ..Study::default() }), [expected]);
}

#[test]
fn two_algorithmic_keys_have_a_sentence_each() {
    let mut both = Vec::new();
    for (scheduler, more) in [("minrtt", 0.0), ("blest", 0.1)] {
        for mut run in runs(&[("olia", "20ms", &[30.0 + more, 31.0]), ("bbr", "20ms", &[46.0, 46.0 + more])]) {
            run.parameters.insert("flow.tcp.scheduler".to_owned(), scheduler.to_owned());
            both.push(run);
        }
    }
    let expected = "Averaged over 2 values of scheduler, goodput is highest with bbr: 46.0 Mbit/s, 15.5 ± 5.7 Mbit/s (51 %) more \
                    than with olia. No other is better in any of the 2. Averaged over 2 values of congestion, goodput does not \
                    differ between blest and minrtt: 38.3 and 38.2 Mbit/s.";
    assert_eq!(answer(&both), expected);
}

//! Several flows: shares, Jain's index, convergence.

use crate::common::{add_path, application, bulk, one_link, pipe, run, set_size};
use scenario::model::{Application, Experiment, Route};
use units::{Instant, Rate, Span};

/// Two flows of an algorithm over one link of 20 Mbit/s with these one-way delays before it.
fn two_flows(algorithm: &str, delays: [u64; 2], seconds: u64) -> Experiment {
    let mut experiment = one_link(algorithm, pipe(Rate::from_mbit(20), Span::from_millis(10), 66), seconds);
    experiment.flows.push(bulk("second", algorithm));
    for (index, delay) in delays.into_iter().enumerate() {
        let mut access = pipe(Rate::from_mbit(1000), Span::from_millis(delay), 10_000);
        // Beats of two deterministic flows on one queue are no property of the algorithm (Floyd and Jacobson 1991).
        access.jitter = Span::from_micros(500).into();
        add_path(&mut experiment, [&format!("access {index}"); 2], access, &[0]);
        experiment.flows[index].route = Route::Path(index + 1);
    }
    experiment
}

#[test]
fn two_equal_reno_flows_converge_to_equal_shares() {
    let run = run(&two_flows("reno", [10, 10], 120));
    let jain = run.jain.expect("two flows compete");
    let shares: Vec<f64> = run.flows.iter().map(|flow| flow.share.expect("it competes")).collect();
    assert!(jain > 0.95, "{jain}");
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    assert!((jain - 1.0 / (2.0 * shares.iter().map(|share| share * share).sum::<f64>())).abs() < 1e-12);
    assert!(run.convergence_s.expect("they converge") < 60.0);
}

/// Reno's rate goes with 1 / RTT to 1 / RTT^2 where losses are synchronised (Lakshman and Madhow 1997). The RTTs are 40
/// and 160 ms and up to 40 ms of queue: 2.5 to 4 times.
#[test]
fn the_shorter_round_trip_gets_more_of_a_shared_queue_with_reno() {
    let run = run(&two_flows("reno", [10, 70], 200));
    let ratio = run.flows[0].goodput_mbps / run.flows[1].goodput_mbps;
    println!("{ratio:.2} times as much over a quarter of the round trip");
    assert!((2.5..=16.0).contains(&ratio), "{ratio}");
    assert_eq!(run.convergence_s, None);
}

/// Links of 10 and 30 Mbit/s for one flow each: shares of 1/4 and 3/4, and Jain's index is 0.8.
#[test]
fn shares_count_from_the_last_start_and_only_between_flows_that_always_have_data() {
    let mut experiment = one_link("cubic", pipe(Rate::from_mbit(10), Span::from_millis(10), 100), 30);
    add_path(&mut experiment, ["faster"; 2], pipe(Rate::from_mbit(30), Span::from_millis(10), 100), &[]);
    experiment.flows.extend(["second", "third"].map(|name| bulk(name, "cubic")));
    experiment.flows[1].route = Route::Path(1);
    experiment.flows[1].start = Instant::ZERO + Span::from_millis(14_500);
    experiment.flows[2].route = Route::Path(1);
    *application(&mut experiment.flows[2]) = Application::Steady { rate: Rate::from_bits(1000), write: None };
    let both = run(&experiment);
    let shares: Vec<_> = both.flows.iter().map(|flow| flow.share).collect();
    assert!((shares[0].unwrap() - 0.25).abs() < 0.01 && (shares[1].unwrap() - 0.75).abs() < 0.01, "{shares:?}");
    assert_eq!(shares[2], None);
    assert!((both.jain.unwrap() - 0.8).abs() < 0.01, "{:?}", both.jain);
    assert_eq!(both.convergence_s, None);
    // The second is done before a second has gone by.
    set_size(&mut experiment.flows[1], 100_000);
    let brief = run(&experiment);
    assert_eq!((brief.jain, brief.flows[0].share), (None, None));
    experiment.flows.truncate(1);
    assert_eq!(run(&experiment).jain, None, "no other flow competes");
}

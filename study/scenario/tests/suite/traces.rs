//! Traces of measured rates, where in them a run begins, and rates of zero.

use crate::good_inputs::experiment;
use ropewalk_scenario::model::Experiment;
use units::{Rate, Span};

/// The experiment of one path with these keys.
fn traced(keys: &str) -> Experiment {
    experiment(
        &format!("name = \"s\"\nduration = \"1s\"\n[[flow]]\nname = \"f\"\n[[path]]\nname = \"p\"\n{keys}\n"),
        &[],
    )
}

#[test]
fn traces_of_measured_rates_are_read_where_mahimahis_are() {
    let trace = |keys: &str| traced(keys).links[0].forward.trace.clone().unwrap();
    // 1.2 Mbit/s are 100 packets in the first second, 4.8 Mbit/s are 200 in the last half.
    let rates = trace("trace = \"rates.txt\"");
    assert_eq!((rates.opportunities.len(), rates.period_ms), (300, 2500));
    assert!(!rates.opportunities.iter().any(|at| (1001..=2000).contains(at)), "an outage of a second");
    assert_eq!(trace("trace = \"two-rates.csv#throughput_mbps\"").opportunities.len(), 100);
    assert_eq!(trace("trace = \"two-rates.csv\"").opportunities.len(), 200, "the download");
    let reverse = traced("trace = \"two-rates.csv\"\nreverse = { trace = \"two-rates.csv#throughput_mbps\" }");
    assert_eq!(reverse.links[0].reverse.trace.as_ref().unwrap().opportunities.len(), 100);
}

#[test]
fn a_run_begins_in_a_trace_where_the_file_or_the_seed_says() {
    let offsets = |experiment: &Experiment, seed| {
        let link = &experiment.with_seed(seed).links[0];
        [link.forward.trace_offset, link.reverse.trace_offset]
    };
    let fixed = traced("trace = \"rates.txt\"\ntrace_offset = \"700ms\"\nreverse = { rate = \"5mbit\" }");
    assert_eq!(offsets(&fixed, 1), [Span::from_millis(700), Span::ZERO]);
    let random = traced("trace = \"rates.txt\"\ntrace_offset = \"random\"");
    let drawn: Vec<[Span; 2]> = (1..=50).map(|seed| offsets(&random, seed)).collect();
    assert!(drawn.iter().all(|[forward, reverse]| forward == reverse && *forward < Span::from_millis(2500)));
    assert_eq!(drawn[0], offsets(&random, 1));
    // Uniform: 50 draws leave a half empty with probability 2^-49.
    let half = Span::from_millis(1250);
    assert!(drawn.iter().any(|[offset, _]| *offset < half) && drawn.iter().any(|[offset, _]| *offset >= half));
}

#[test]
fn an_event_may_set_a_rate_of_zero() {
    let event = "rate = \"1mbit\"\n[[event]]\nat = \"500ms\"\npath = \"p\"\nrate = ";
    for zero in ["\"0mbit\"", "\"0\"", "0"] {
        assert_eq!(traced(&format!("{event}{zero}")).events[0].rate, Some(Rate(0)), "{zero}");
    }
}

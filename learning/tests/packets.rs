//! A scheduler's decisions packet by packet: the same runs as with the schedulers that decide so.

use learning::{Batch, Config, Environment, MEASURES, Outputs};
use policy::{CONNECTION_FEATURES, PATH_FEATURES};
use record::Run;
use scenario::Overrides;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

/// Two paths, one of which is down for a while.
const TWO: &str = r#"
name = "two"
duration = "3s"

[[path]]
name = "wifi"
rate = "20mbit"
delay = "8ms"
loss = "0.5%"

[[path]]
name = "lte"
rate = "10mbit"
delay = "30ms"
jitter = "1ms"

[[flow]]
name = "download"
kind = "mptcp"

[[event]]
at = "1s"
path = "wifi"
up = false

[[event]]
at = "1500ms"
path = "wifi"
up = true
"#;

/// TWO, with the kinds of connections that have schedulers.
fn texts() -> [(&'static str, String); 3] {
    let flow = |keys: &str| TWO.replace("kind = \"mptcp\"", keys);
    [
        ("upstream", TWO.to_owned()),
        ("out of tree", flow("kind = \"mptcp\"\nmptcp = { stack = \"out-of-tree\" }")),
        ("quic", flow("kind = \"mpquic\"")),
    ]
}

fn config(text: &str) -> Config {
    let scenario = json!({"origin": "<text>", "text": text, "base": "", "sets": [], "quick": false});
    Config::parse(&json!({"scenario": scenario, "decides": "packet"}).to_string()).expect("a good configuration")
}

/// An episode of these choices: its record, its number of steps and the sum of its rewards.
fn episode(text: &str, seed: u64, choose: impl Fn(&[f32]) -> usize) -> (Run, usize, f64) {
    let config = Arc::new(config(text));
    let mut environment = Environment::with_record(Arc::clone(&config));
    let (mut observations, mut measures) = (vec![0.0; config.observation_len()], vec![0.0; MEASURES.len()]);
    environment.reset(seed, &mut observations, &mut measures);
    let (mut rewards, mut steps, mut sum, mut is_over) = ([0.0], 0, 0.0, false);
    while !is_over {
        let action = [choose(&observations) as f32];
        is_over = environment.step(&action, &mut observations, &mut rewards, &mut measures);
        (steps, sum) = (steps + 1, sum + rewards[0]);
    }
    (environment.take_simulation().expect("reset").finish(), steps, sum)
}

fn run(text: &str, scheduler: &str, seed: u64) -> Run {
    let sets = vec![format!("flow.download.scheduler={scheduler}")];
    let scenario = scenario::parse("<text>", text, Path::new(""), &Overrides { sets, quick: false });
    sim::run(&scenario.expect("a good scenario").cells[0].experiment, seed).expect("registered")
}

/// The features of a path by their places.
fn feature(name: &str) -> usize {
    PATH_FEATURES.iter().position(|feature| feature.name == name).expect("a feature")
}

/// `minrtt`, by the observation.
fn min_rtt(observation: &[f32]) -> usize {
    let paths = observation.chunks_exact(PATH_FEATURES.len()).enumerate();
    let open = paths.filter(|(_, path)| path[feature("usable")] * path[feature("has_room")] == 1.0);
    let fastest = open.min_by(|(_, a), (_, b)| a[feature("srtt_ms")].total_cmp(&b[feature("srtt_ms")]));
    fastest.expect("it is asked only if a path has room").0
}

#[test]
fn always_the_same_path_gives_the_run_with_that_path_fixed() {
    for (name, text) in texts() {
        for path in [0, 1] {
            let (chosen, steps, _) = episode(&text, 3, |_| path);
            assert_eq!(chosen, run(&text, &format!("{{ name = \"fixed\", path = {path} }}"), 3), "{name}, path {path}");
            let sent = chosen.subflows[path].throughput_mbps;
            assert!(steps > 100 && sent > 1.0, "{name}: {steps} choices, {sent} Mbit/s");
        }
    }
}

#[test]
fn minrtt_by_the_observation_gives_the_run_with_minrtt_and_the_rewards_of_its_baseline() {
    for (name, text) in texts() {
        let (chosen, _, sum) = episode(&text, 4, min_rtt);
        assert_eq!(chosen, run(&text, "minrtt", 4), "{name}");
        let baseline = Environment::baseline(&Arc::new(config(&text)), Some("minrtt"), 4).expect("registered");
        let expected: f64 = baseline.rewards.iter().sum();
        assert!((sum - expected).abs() <= 1e-9 * expected.abs(), "{name}: {sum}, {expected}");
    }
}

#[test]
fn a_choice_is_one_for_each_packet() {
    let text = TWO.replace("loss = \"0.5%\"", "loss = \"0%\"").replace("up = false", "up = true");
    let (chosen, steps, _) = episode(&text, 1, min_rtt);
    let sent: u64 = chosen.subflows.iter().map(|subflow| subflow.sent_packets).sum();
    let asked = steps as f64 / sent as f64;
    assert!((0.9..=1.0).contains(&asked), "{steps} choices for {sent} packets, the first of which had one path");
}

#[test]
fn worlds_step_alike_by_any_number_of_threads_and_end_when_they_are_dropped() {
    let episodes = |threads| {
        let mut batch = Batch::new(config(TWO), 3, threads);
        let numbers = batch.config().observation_len();
        let (mut observations, mut measures) = (vec![0.0; 3 * numbers], vec![0.0; 3 * MEASURES.len()]);
        let (mut rewards, mut truncated) = ([0.0; 3], [false; 3]);
        let mut seen = Vec::new();
        for step in 0..300 {
            let (observations, rewards) = (&mut observations[..], &mut rewards[..]);
            let mut out = Outputs { observations, rewards, truncated: &mut truncated, measures: &mut measures };
            match step {
                0 => batch.reset(&[Some(1), Some(2), Some(3)], &[true; 3], &mut out),
                _ => batch.step(&[0.0, 1.0, (step % 2) as f32], &mut out),
            }
            seen.push((out.observations.to_vec(), out.rewards.to_vec()));
        }
        (seen, batch.save())
    };
    let (alone, saved) = episodes(1);
    assert_eq!(episodes(3), (alone, saved.clone()));
    let mut copy = Batch::new(config(TWO), 3, 1);
    copy.restore(&saved).expect("a good configuration");
    assert_eq!(copy.save(), saved);
}

#[test]
fn an_observation_has_each_path_and_the_connection() {
    let config = config(TWO);
    assert_eq!(config.observation_len(), 2 * PATH_FEATURES.len() + CONNECTION_FEATURES.len());
    assert_eq!(config.observation_range().len(), config.observation_len());
    let refused = Config::parse(
        &json!({"paths": [{"rate_mbps": 1, "rtt_ms": 10}], "decides": "packet", "history": 2}).to_string(),
    );
    let problem = refused.expect_err("there is no history").to_string();
    assert_eq!(problem, "history: a scheduler of packets sees the paths as they are; see `packet_features`");
}

//! Policies of schedulers: a run with the file gives the record of the episode in which its network answers.

use learning::{Config, ConfigError, Environment, MEASURES};
use policy::{ModelPolicy, Policy, onnx::Model};
use record::Run;
use scenario::Overrides;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Requests over two paths, one of which is down for a while. Between requests there are packets without events.
const TWO: &str = r#"
name = "two"
duration = "4s"

[[path]]
name = "wifi"
rate = "12mbit"
delay = "8ms"
loss = "0.5%"

[[path]]
name = "lte"
rate = "9mbit"
delay = "20ms"
jitter = "1ms"

[[flow]]
name = "download"
kind = "mptcp"
start = "30ms"
requests = { size = "200kB", think = "70ms" }

[[event]]
at = "1s"
path = "wifi"
up = false

[[event]]
at = "1500ms"
path = "wifi"
up = true
"#;

const OBSERVED: &str = "loss_ratio,queue_delay_ms";

/// TWO, with the kinds of connections that have schedulers, some with sources that never end.
fn texts() -> [(&'static str, String); 4] {
    let requests = "requests = { size = \"200kB\", think = \"70ms\" }\n";
    let flow = |keys: &str| TWO.replace("kind = \"mptcp\"", keys);
    [
        ("upstream", TWO.to_owned()),
        ("out of tree", flow("kind = \"mptcp\"\nmptcp = { stack = \"out-of-tree\" }")),
        ("quic", flow("kind = \"mpquic\"\ncongestion = \"bbr\"").replace(requests, "")),
        ("endless", TWO.replace(requests, "congestion = \"lia\"\n")),
    ]
}

fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../cc/policy/tests/models").join(name)
}

fn config(text: &str, decides: &str, interval: &str) -> Result<Config, ConfigError> {
    let scenario = json!({"origin": "<text>", "text": text, "base": "", "sets": [], "quick": false});
    let mut keys = json!({"scenario": scenario, "decides": decides, "interval": interval});
    if decides != "packet" {
        keys["observation"] = OBSERVED.into();
    }
    Config::parse(&keys.to_string())
}

/// The record of an episode in which the network of a file answers, and its actions.
fn episode(text: &str, decides: &str, file: &str) -> (Run, Vec<f32>) {
    let config = Arc::new(config(text, decides, "50ms").expect("a good configuration"));
    let model = Model::read(&std::fs::read(model(file)).expect("a model")).expect("a good model");
    let mut policy = ModelPolicy::new(Arc::new(model)).expect("a good model");
    let mut environment = Environment::with_record(Arc::clone(&config));
    let (mut observations, mut measures) = (vec![0.0; config.observation_len()], vec![0.0; MEASURES.len()]);
    environment.reset(3, &mut observations, &mut measures);
    let (mut actions, mut answer, mut is_over) = (Vec::new(), [0.0; 2], false);
    while !is_over {
        policy.act(&observations, &mut answer).expect("it answers");
        let greatest = if answer[1] > answer[0] { 1.0 } else { 0.0 };
        let action = if decides == "weights" { answer.to_vec() } else { vec![greatest] };
        is_over = environment.step(&action, &mut observations, &mut [0.0], &mut measures);
        actions.extend(action);
    }
    (environment.take_simulation().expect("reset").finish(), actions)
}

/// The record of the run whose scheduler is the file.
fn run(text: &str, file: &str) -> Run {
    let sets = vec![format!("flow.download.scheduler={{ name = \"policy\", file = \"{}\" }}", model(file).display())];
    let scenario = scenario::parse("<text>", text, Path::new(""), &Overrides { sets, quick: false });
    sim::run(&scenario.expect("a good scenario").cells[0].experiment, 3).expect("registered")
}

#[test]
fn a_run_with_a_schedulers_policy_is_the_episode_in_which_its_network_answers() {
    for (name, text) in texts() {
        for (decides, file) in [("packet", "by-packet.onnx"), ("path", "by-path.onnx"), ("weights", "by-weights.onnx")]
        {
            let (episode, actions) = episode(&text, decides, file);
            let run = run(&text, file);
            assert_eq!(run.controller_failures, 0, "{}", run.controller_failure);
            assert_eq!(episode, run, "{name}, {decides}");
            assert!(actions.iter().any(|action| *action != actions[0]), "{name}, {decides}: always {}", actions[0]);
        }
    }
}

#[test]
fn a_schedulers_policy_that_fails_is_counted_and_minrtt_carries_on() {
    for file in ["nan-packet.onnx", "nan-path.onnx"] {
        let run = run(TWO, file);
        assert_eq!(
            (run.controller_failures, run.controller_failure.as_str()),
            (1, "scheduler: the policy answered NaN")
        );
        assert!(run.flows[0].delivered_bytes > 1_000_000, "{file}: {}", run.flows[0].delivered_bytes);
    }
}

#[test]
fn a_flow_whose_scheduler_decides_by_its_congestion_control_keeps_that() {
    let scheduler = format!("scheduler = {{ name = \"policy\", file = \"{}\" }}\n", model("by-path.onnx").display());
    let text = TWO.replace("kind = \"mptcp\"\n", &format!("kind = \"mptcp\"\n{scheduler}"));
    let error = config(&text, "subflows", "50ms").expect_err("its events would go elsewhere").to_string();
    assert!(
        error.starts_with("flow: `download` has a scheduler that decides by what its congestion control"),
        "{error}"
    );
    config(&text, "path", "50ms").expect("another scheduler takes its place");
    let baseline = Arc::new(config(&text, "weights", "50ms").expect("another scheduler takes its place"));
    let episode = Environment::baseline(&baseline, None, 3).expect("the flow's own scheduler");
    assert_eq!(episode.run, run(&text, "by-path.onnx"));
}

#[test]
fn the_meaning_of_an_environment_is_that_of_its_file() {
    let meaning = |decides| config(TWO, decides, "50ms").expect("a good configuration").meaning();
    let of = |observation: &str, action: &str, interval: &str| {
        let text = str::to_owned;
        (text(observation), 1, text(action), text(interval), 2)
    };
    assert_eq!(meaning("packet"), of("packet", "path", "packet"));
    assert_eq!(meaning("path"), of(OBSERVED, "path", "50ms"));
    assert_eq!(meaning("weights"), of(OBSERVED, "weights", "50ms"));
}

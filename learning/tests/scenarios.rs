//! Environments from scenarios: an episode is the run of the scenario, to the last bit.

use learning::{Batch, Config, ConfigError, Environment, MEASURES, Outputs, draw_unprepared, episode_seed};
use record::Run;
use scenario::Overrides;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

/// CoDel and ECN, jitter, loss, an outage, competing flows of all kinds.
const BUSY: &str = r#"
name = "busy"
duration = "4s"

[[path]]
name = "link"
rate = "12mbit"
delay = "15ms"
jitter = "2ms"
loss = "0.1%"
queue = { discipline = "codel", limit = "100p", ecn = true }

[host]
ecn = true

[[flow]]
name = "learner"

[[flow]]
name = "rival"
congestion = "bbr"
start = "500ms"

[[flow]]
name = "web"
requests = { size = { mean = "30kB", distribution = "pareto", shape = 1.5 }, think = { mean = "100ms", distribution = "exponential" } }

[[flow]]
name = "once"
requests = { size = "10kB", connection = "new", think = "300ms" }

[[flow]]
name = "film"
video = { kind = "live", rate = "1mbit" }

[[flow]]
name = "voice"
kind = "udp"
rate = "100kbit"
packet = "200b"

[[event]]
at = "2s"
path = "link"
up = false

[[event]]
at = "2300ms"
path = "link"
up = true
"#;

/// MPTCP over a fast path and a slow one with loss.
const MPTCP: &str = r#"
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

[[flow]]
name = "download"
kind = "mptcp"
congestion = "lia"
start_within = "50ms"
"#;

/// A TCP flow through a tunnel of two paths.
const TUNNEL: &str = r#"
name = "tunnel"
duration = "2s"

[[path]]
name = "a"
rate = "10mbit"
delay = "10ms"

[[path]]
name = "b"
rate = "5mbit"
delay = "20ms"

[tunnel]
mode = "ropewalk"

[[flow]]
name = "tcp"
"#;

fn config(text: &str, keys: serde_json::Value) -> Result<Config, ConfigError> {
    let mut file = keys;
    file["scenario"] = json!({"origin": "<text>", "text": text, "base": "", "sets": [], "quick": false});
    Config::parse(&file.to_string())
}

/// The record of an episode of these actions in every step.
fn episode(text: &str, keys: serde_json::Value, action: &[f32], seed: u64) -> Run {
    let config = Arc::new(config(text, keys).expect("a good configuration"));
    let mut environment = Environment::with_record(Arc::clone(&config));
    let (mut observations, mut measures) = (vec![0.0; config.observation_len()], vec![0.0; MEASURES.len()]);
    environment.reset(seed, &mut observations, &mut measures);
    while !environment.step(action, &mut observations, &mut [0.0], &mut measures) {}
    environment.take_simulation().expect("reset").finish()
}

/// The record of the run of the scenario with these `--set`.
fn run(text: &str, sets: &[&str], seed: u64) -> Run {
    let overrides = Overrides { sets: sets.iter().map(|set| (*set).to_owned()).collect(), quick: false };
    let scenario = scenario::parse("<text>", text, Path::new(""), &overrides).expect("a good scenario");
    sim::run(&scenario.cells[0].experiment, seed).expect("registered")
}

#[test]
fn cubic_that_is_steered_by_nothing_gives_the_run_with_cubic() {
    for (text, flow, sets) in [
        (BUSY, "learner", &[][..]),
        (BUSY, "web", &[]),
        (BUSY, "film", &[]),
        (MPTCP, "download", &["flow.download.congestion=cubic"]),
        (TUNNEL, "tcp", &[]),
    ] {
        for seed in [1, 2] {
            let keys = json!({"flow": [flow], "action": "cubic_steering", "interval": "20ms"});
            let paths = if text == MPTCP { 2 } else { 1 };
            assert_eq!(episode(text, keys, &[0.0; 2][..paths], seed), run(text, sets, seed), "{flow}, seed {seed}");
        }
    }
}

#[test]
fn a_path_that_is_chosen_always_gives_the_run_with_that_path_fixed() {
    for path in [0, 1] {
        let chosen = episode(MPTCP, json!({"decides": "path"}), &[path as f32], 3);
        let set = format!("flow.download.scheduler={{ name = \"fixed\", path = {path} }}");
        assert_eq!(chosen, run(MPTCP, &[&set], 3), "path {path}");
        let carries: Vec<bool> = chosen.subflows.iter().map(|subflow| subflow.throughput_mbps > 1.0).collect();
        assert_eq!(carries, [path == 0, path == 1]);
    }
}

#[test]
fn equal_weights_give_the_run_with_these_weights() {
    let sets = ["flow.download.scheduler={ name = \"weighted\", strict = 1 }", "flow.download.mptcp.weights=[10, 10]"];
    assert_eq!(episode(MPTCP, json!({"decides": "weights"}), &[0.0, 0.0], 1), run(MPTCP, &sets, 1));
}

#[test]
fn a_baseline_gives_the_run_with_that_algorithm() {
    let measured = |text, keys, name| {
        let config = Arc::new(config(text, keys).expect("a good configuration"));
        Environment::baseline(&config, name, 5).expect("registered")
    };
    let bbr = measured(BUSY, json!({"flow": ["learner"]}), Some("bbr"));
    assert_eq!(bbr.run, run(BUSY, &["flow.learner.congestion=bbr"], 5));
    assert_eq!(bbr.measures.len(), bbr.rewards.len() * MEASURES.len());
    let own = measured(MPTCP, json!({}), None);
    assert_eq!(own.run, run(MPTCP, &[], 5), "LIA, which is the flow's own");
    let redundant = measured(MPTCP, json!({"decides": "path"}), Some("redundant"));
    assert_eq!(redundant.run, run(MPTCP, &["flow.download.scheduler=redundant"], 5));
    // The flow delivers in its intervals what its record says, but for headers and the interval that is cut off by the end.
    let throughput = own.measures.chunks_exact(MEASURES.len()).map(|row| row[1]).sum::<f64>();
    assert!(throughput > 0.0 && own.rewards.iter().any(|reward| *reward > 0.0));
}

#[test]
fn a_name_of_a_baseline_that_does_not_exist_is_refused_with_the_nearest() {
    let config = |kind: &str| Arc::new(config(MPTCP, json!({"decides": kind})).expect("a good configuration"));
    let problem =
        |kind, name| Environment::baseline(&config(kind), Some(name), 1).expect_err("no such name").to_string();
    assert_eq!(
        problem("subflows", "cubik"),
        "baseline: no congestion control is called `cubik`; did you mean `cubic`?"
    );
    assert_eq!(problem("path", "minrt"), "baseline: no scheduler is called `minrt`; did you mean `minrtt`?");
}

#[test]
fn a_seed_draws_the_cell_and_an_episode_is_repeated_for_its_record() {
    let text = format!("{MPTCP}\n[sweep]\n\"path.lte.loss\" = [\"0%\", \"1%\", \"2%\"]\n");
    let config = config(&text, json!({"decides": "path"})).expect("a good configuration");
    let mut batch = Batch::new(config, 2, 1);
    assert!(batch.world(0).is_none() && batch.record(0).is_none(), "before the first episode");
    let numbers = batch.config().observation_len();
    let (mut observations, mut measures) = (vec![0.0; 2 * numbers], vec![0.0; 2 * MEASURES.len()]);
    let (mut rewards, mut truncated) = ([0.0; 2], [false; 2]);
    let mut cells = Vec::new();
    for seed in 0..8 {
        let mut out = Outputs {
            observations: &mut observations,
            rewards: &mut rewards,
            truncated: &mut truncated,
            measures: &mut measures,
        };
        batch.reset(&[Some(seed), Some(seed)], &[true; 2], &mut out);
        let world = batch.world(0).expect("it has begun");
        assert_eq!((world.seed, world.cell), (seed, batch.world(1).expect("it has begun").cell));
        cells.push(world.cell);
    }
    cells.sort_unstable();
    cells.dedup();
    assert_eq!(cells, [0, 1, 2]);
    while !truncated[0] {
        let mut out = Outputs {
            observations: &mut observations,
            rewards: &mut rewards,
            truncated: &mut truncated,
            measures: &mut measures,
        };
        batch.step(&[0.0, 1.0], &mut out);
    }
    let cell = batch.world(1).expect("it has begun").cell;
    let loss = format!("path.lte.loss={cell}%");
    let set = "flow.download.scheduler={ name = \"fixed\", path = 1 }";
    assert_eq!(batch.record(1), Some(run(MPTCP, &[&loss, set], 7)));
    assert!(episode_seed(7, 1) > 7, "the next episode has another seed");
}

#[test]
fn what_cannot_be_had_is_refused_with_its_key() {
    let problem = |text: &str, keys| config(text, keys).expect_err("it cannot be had").to_string();
    for (text, keys, expected) in [
        (BUSY, json!({}), "flow: is missing; several flows can learn: learner, rival, web, film"),
        (BUSY, json!({"flow": ["lerner"]}), "flow: no flow is called `lerner`; did you mean `learner`?"),
        (
            BUSY,
            json!({"flow": ["voice"]}),
            "flow: `voice` sends UDP at a constant rate; a policy steers flows of TCP, MPTCP and multipath QUIC",
        ),
        (
            BUSY,
            json!({"flow": ["once"]}),
            "flow: `once` opens a connection for each request, and a policy steers one; set its `requests.connection` to \
             \"persistent\"",
        ),
        (
            BUSY,
            json!({"flow": ["web"], "decides": "path"}),
            "decides: `path`, but `web` has one path, and no scheduler; `single` is right",
        ),
        (
            MPTCP,
            json!({"decides": "single"}),
            "decides: `single`, but `download` has several paths; `subflows`, `weights`, `path` or `packet` are right",
        ),
        (
            MPTCP,
            json!({"duration_s": 3}),
            "duration_s: the scenario says that; change the scenario, by `set` for example",
        ),
    ] {
        assert_eq!(problem(text, keys), expected);
    }
    let unlimited = MPTCP.replace("rate = \"20mbit\"\n", "").replace("rate = \"10mbit\"\n", "");
    assert!(problem(&unlimited, json!({"reward": "sage"})).starts_with("reward: `download`: divides by the capacity"));
    let wrong = problem(&MPTCP.replace("lia", "liar"), json!({}));
    assert!(wrong.starts_with("scenario: ") && wrong.contains("liar"), "{wrong}");
    let wrong = problem(&MPTCP.replace("duration", "duratoin"), json!({}));
    assert!(wrong.starts_with("scenario: ") && wrong.contains("duratoin"), "{wrong}");
    let worlds = Config::parse(r#"{"paths": [], "flow": ["x"]}"#).expect_err("no scenario").to_string();
    assert_eq!(worlds, "flow: there is no scenario, whose flow it would be");
}

#[test]
fn a_drawn_world_is_the_run_of_its_text() {
    let path = r#"{"rate_mbps": [2, 20], "rtt_ms": [10, 60], "loss": [0, 0.03], "queue_bdp": [0.5, 2]}"#;
    for (paths, kind) in [(1, "single"), (2, "subflows"), (2, "path")] {
        let (paths, rivals) = (vec![path; paths].join(", "), r#"{"count": [0, 3], "start_s": [0, 1]}"#);
        let keys = format!(r#"{{"paths": [{paths}], "rivals": {rivals}, "decides": "{kind}", "duration_s": 2}}"#);
        let config = Config::parse(&keys).expect("a good configuration");
        for seed in 0..5 {
            let world = draw_unprepared(&config, seed);
            let text = world.to_toml().expect("there are no traces");
            let scenario = scenario::parse("<text>", &text, Path::new(""), &Overrides::default());
            let scenario = scenario.unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(scenario.seeds, [seed]);
            assert_eq!(scenario.cells[0].experiment, world.experiment, "{text}");
        }
    }
    let traced = Config::parse(r#"{"paths": [{"rtt_ms": 10, "traces": [[1, 2, 3]]}]}"#).expect("a good configuration");
    assert_eq!(draw_unprepared(&traced, 1).to_toml(), None);
}

/// Two downloads over the same two paths, next to a film.
fn pair() -> String {
    let second = "\n[[flow]]\nname = \"second\"\nkind = \"mptcp\"\nstart = \"300ms\"\n";
    let film = "\n[[flow]]\nname = \"film\"\npath = \"lte\"\nvideo = { kind = \"live\", rate = \"1mbit\" }\n";
    format!("{MPTCP}{second}{film}")
}

#[test]
fn two_learners_that_do_nothing_give_the_run() {
    let flows = json!(["second", "download"]);
    let keys = json!({"flow": flows, "action": "cubic_steering", "interval": "rtt"});
    let config = Arc::new(config(&pair(), keys).expect("a good configuration"));
    let mut environment = Environment::with_record(Arc::clone(&config));
    let mut observations = vec![0.0; 2 * config.observation_len()];
    let (mut rewards, mut measures) = ([0.0; 2], vec![0.0; 2 * MEASURES.len()]);
    environment.reset(7, &mut observations, &mut measures);
    let mut decided = [0, 0];
    loop {
        (0..2).for_each(|learner| decided[learner] += usize::from(environment.awaits(learner)));
        if environment.step(&[0.0; 4], &mut observations, &mut rewards, &mut measures) {
            break;
        }
    }
    let cubic = ["flow.download.congestion=cubic", "flow.second.congestion=cubic"];
    let record = run(&pair(), &cubic, 7);
    // An interval is a round trip.
    let round_trips = |name: &str, seconds: f64| {
        let rtt_ms = record.flows.iter().find(|flow| flow.name == name).expect("a flow").rtt_ms;
        [rtt_ms.max, rtt_ms.min].map(|rtt| (1e3 * seconds / rtt) as usize)
    };
    let [least, most] = round_trips("second", 2.7);
    assert!((least..=most).contains(&decided[0]), "{decided:?}: {least} to {most}");
    let [least, most] = round_trips("download", 3.0);
    assert!((least..=most).contains(&decided[1]), "{decided:?}: {least} to {most}");
    assert!(decided[1] > decided[0], "the second one starts later: {decided:?}");
    assert_eq!(environment.take_simulation().expect("reset").finish(), record);
    assert_eq!([measures[7], measures[15]], [30.0; 2], "both have both paths");
}

#[test]
fn learners_together_are_alike_and_different() {
    let problem = |flows| config(&pair(), json!({"flow": flows})).expect_err("it cannot be had").to_string();
    let unlike = "flow: `download` has 2 paths and `film` 1; let flows alike learn together";
    assert_eq!(problem(json!(["download", "film"])), unlike);
    assert_eq!(problem(json!(["download", "download"])), "flow: `download` is given twice");
    assert_eq!(problem(json!([])), "agents: 0: 1 to 64 are allowed");
}

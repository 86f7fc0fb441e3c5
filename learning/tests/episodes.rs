//! Episodes: the same from outside and inside, for any number of threads, and in closed form.

use learning::{Batch, Config, Environment, MEASURES, Outputs, Worlds, draw, episode_seed};
use policy::{Policy, PolicyController, PolicyError};
use sim::Simulation;
use std::sync::{Arc, Mutex};
use units::Span;

/// A policy by hand: faster while the newest latency ratio is small, slower otherwise; a path alone.
fn hand_written(observation: &[f32], action: &mut [f32]) {
    let each = observation.len() / action.len();
    for (a, seen) in action.iter_mut().zip(observation.chunks_exact(each)) {
        *a = if seen[each - 2] < 1.2 { 4.0 + seen[each - 1] } else { -6.0 * seen[each - 2] };
    }
}

/// What a learner saw, decision by decision.
type Seen = Vec<Vec<f32>>;

/// Remembers what it saw.
#[derive(Debug, Default)]
struct HandWritten(Arc<Mutex<Seen>>);

impl Policy for HandWritten {
    fn act(&mut self, observation: &[f32], action: &mut [f32]) -> Result<(), PolicyError> {
        self.0.lock().expect("no panic").push(observation.to_vec());
        hand_written(observation, action);
        Ok(())
    }
}

fn config(keys: &str) -> Config {
    let path = r#"{"rate_mbps": [2, 20], "rtt_ms": [10, 60], "loss": [0, 0.01], "queue_bdp": [0.5, 2]}"#;
    let paths = if keys.contains("decides") { [path; 2].join(", ") } else { path.to_owned() };
    Config::parse(&format!(r#"{{"paths": [{paths}], {keys}}}"#)).expect("a good configuration")
}

/// Runs an episode to its end and gives the record of its world.
fn from_outside(config: &Config, seed: u64) -> (record::Run, Vec<Seen>) {
    let config = Arc::new(config.clone());
    let learners = config.learners;
    let mut environment = Environment::with_record(Arc::clone(&config));
    let mut observations = vec![0.0; learners * config.observation_len()];
    let mut actions = vec![0.0; learners * config.action_len()];
    let (mut rewards, mut measures) = (vec![0.0; learners], vec![0.0; learners * MEASURES.len()]);
    environment.reset(seed, &mut observations, &mut measures);
    let mut seen = vec![Seen::new(); learners];
    loop {
        let rows =
            observations.chunks_exact(config.observation_len()).zip(actions.chunks_exact_mut(config.action_len()));
        rows.for_each(|(observation, action)| hand_written(observation, action));
        for learner in (0..learners).filter(|learner| environment.awaits(*learner)) {
            seen[learner].push(observations[learner * config.observation_len()..][..config.observation_len()].to_vec());
        }
        if environment.step(&actions, &mut observations, &mut rewards, &mut measures) {
            let simulation = environment.take_simulation().expect("reset");
            return (simulation.finish(), seen);
        }
    }
}

/// Runs the same world with the policy inside.
fn from_inside(config: &Config, seed: u64) -> (record::Run, Vec<Seen>) {
    let world = draw(config, seed);
    let mut simulation = Simulation::new(&world.experiment, seed).expect("registered");
    let seen: Vec<Arc<Mutex<Seen>>> = (0..config.learners).map(|_| Arc::default()).collect();
    for (learner, seen) in seen.iter().enumerate() {
        let policy = Box::new(HandWritten(Arc::clone(seen)));
        *simulation.controller(learner).expect("TCP") =
            Box::new(PolicyController::new(config.settings.clone(), policy));
    }
    let run = simulation.finish();
    (run, seen.iter().map(|seen| std::mem::take(&mut *seen.lock().expect("no panic"))).collect())
}

#[test]
fn an_episode_is_the_run_with_the_same_policy_inside_to_the_last_bit() {
    // The durations are no multiples of the interval, so that nothing is decided at the very end.
    for keys in [
        r#""duration_s": 4.995"#,
        r#""duration_s": 4.995, "interval": "rtt""#,
        r#""duration_s": 4.995, "action": "window_change""#,
        r#""duration_s": 4.995, "action": "cubic_steering(0.1)", "interval": "20ms""#,
        r#""duration_s": 4.995, "decides": "subflows""#,
        r#""duration_s": 4.995, "decides": "subflows", "interval": "rtt""#,
        r#""duration_s": 4.995, "agents": 2, "rivals": {"count": [1, 3], "algorithms": ["cubic", "bbr"]}"#,
        r#""duration_s": 4.995, "agents": 2, "interval": "rtt""#,
    ] {
        for seed in 1..=3 {
            let config = config(keys);
            let ((outside, asked), (inside, answered)) = (from_outside(&config, seed), from_inside(&config, seed));
            for (asked, answered) in asked.iter().zip(&answered) {
                // Inside, the last decision is not taken if no event follows it before the end.
                assert!(asked.len() - answered.len() <= 1 && answered.len() > 20, "{keys}, seed {seed}");
                assert_eq!(asked[..answered.len()], answered[..], "{keys}, seed {seed}: observations");
            }
            assert_eq!(outside, inside, "{keys}, seed {seed}");
        }
    }
}

#[test]
fn a_record_without_distributions_has_the_same_digest() {
    let config = Arc::new(config(r#""duration_s": 1, "decides": "subflows", "rivals": {"count": [1, 1]}"#));
    let digest = |mut environment: Environment| {
        let (mut observations, mut measures) = (vec![0.0; config.observation_len()], vec![0.0; MEASURES.len()]);
        environment.reset(1, &mut observations, &mut measures);
        let run = environment.take_simulation().expect("reset").finish();
        (run.digest, run.flows[0].rtt_ms.mean > 0.0)
    };
    let (whole, part) =
        (digest(Environment::with_record(Arc::clone(&config))), digest(Environment::new(Arc::clone(&config))));
    assert_eq!((whole.0, whole.1, part.1), (part.0, true, false));
}

/// All that a batch gives in so many steps with actions that follow from the step's number.
fn outputs(config: &Config, threads: usize, steps: usize) -> (Vec<f32>, Vec<f64>, Vec<bool>) {
    const COUNT: usize = 5;
    let mut batch = Batch::new(config.clone(), COUNT, threads);
    let learners = config.learners;
    let mut observations = vec![0.0; COUNT * learners * config.observation_len()];
    let mut measures = vec![0.0; COUNT * learners * MEASURES.len()];
    let (mut rewards, mut truncated) = (vec![0.0; COUNT * learners], vec![false; COUNT]);
    let mut all = (Vec::new(), Vec::new(), Vec::new());
    let seeds: Vec<Option<u64>> = (10..10 + COUNT as u64).map(Some).collect();
    for step in 0..=steps {
        let mut out = Outputs {
            observations: &mut observations,
            rewards: &mut rewards,
            truncated: &mut truncated,
            measures: &mut measures,
        };
        if step == 0 {
            batch.reset(&seeds, &[true; COUNT], &mut out);
        } else {
            let actions = (0..COUNT * learners * config.action_len()).map(|index| ((index + step) % 7) as f32 - 3.0);
            batch.step(&actions.collect::<Vec<_>>(), &mut out);
        }
        all.0.extend_from_slice(&observations);
        all.1.extend_from_slice(&rewards);
        all.2.extend_from_slice(&truncated);
    }
    all
}

#[test]
fn any_number_of_threads_gives_the_same() {
    let config = config(r#""duration_s": 0.5, "decides": "subflows", "rivals": {"count": [0, 2]}"#);
    let alone = outputs(&config, 1, 120);
    for threads in [2, 3, 5, 9] {
        assert_eq!(outputs(&config, threads, 120), alone, "{threads} threads");
    }
}

#[test]
fn an_ended_episode_is_reset_by_the_next_step_whose_action_is_ignored() {
    let config = config(r#""duration_s": 0.5, "decides": "subflows""#);
    let (observations, rewards, truncated) = outputs(&config, 2, 120);
    let ends: Vec<usize> = (0..=120).filter(|step| truncated[step * 5]).collect();
    assert_eq!(ends.len(), 2, "{ends:?}");
    let len = config.observation_len();
    let row = |step: usize| &observations[step * 5 * len..][..len];
    let mut environment = Environment::new(Arc::new(config.clone()));
    for (number, end) in ends.iter().enumerate() {
        let (mut first, mut measures) = (vec![0.0; len], vec![0.0; MEASURES.len()]);
        environment.reset(episode_seed(10, number as u64 + 1), &mut first, &mut measures);
        assert_eq!(row(end + 1), first);
        assert_eq!((rewards[(end + 1) * 5], truncated[(end + 1) * 5]), (0.0, false));
    }
}

#[test]
fn on_an_empty_link_a_rate_is_delivered_and_the_latency_ratio_is_one() {
    let path = r#"{"rate_mbps": [100, 100], "rtt_ms": [20, 20]}"#;
    let keys = r#""action": "rate(1, 10)", "observation": "latency_ratio,throughput_mbps", "interval": "1000ms""#;
    let config = Config::parse(&format!(r#"{{"paths": [{path}], {keys}}}"#)).expect("a good configuration");
    let mut environment = Environment::new(Arc::new(config));
    let (mut seen, mut rewards, mut measures) = ([0.0; 2], [0.0], [0.0; MEASURES.len()]);
    environment.reset(1, &mut seen, &mut measures);
    // The pacer counts payload; an interval may cut off a packet at either end.
    for _ in 0..3 {
        environment.step(&[1.0], &mut seen, &mut rewards, &mut measures);
    }
    let packet = 1448.0 * 8.0 / 1e6;
    assert!((f64::from(seen[1]) - 10.0).abs() <= 2.0 * packet, "{} Mbit/s", seen[1]);
    assert!((seen[0] - 1.0).abs() < 0.01, "latency ratio {}", seen[0]);
}

#[test]
fn worlds_are_drawn_within_their_ranges_and_equal_bounds_are_met() {
    let path = r#"{"rate_mbps": [2, 20], "rtt_ms": [10, 60], "loss": [0, 0.01], "queue_bdp": [1, 1]}"#;
    let fixed = r#"{"rate_mbps": [7, 7], "rtt_ms": [33, 33]}"#;
    let keys =
        r#""decides": "subflows", "rivals": {"count": [1, 4], "algorithms": ["cubic", "bbr"], "start_s": [1, 2]}"#;
    let config = Config::parse(&format!(r#"{{"paths": [{path}, {fixed}], {keys}}}"#)).expect("a good configuration");
    let (mut least, mut greatest) = (f64::INFINITY, 0.0_f64);
    for seed in 0..500 {
        let experiment = draw(&config, seed).experiment;
        let [drawn, fixed] = [0, 1].map(|link: usize| &experiment.links[link].forward);
        let rate = drawn.rate.expect("no trace").as_mbps();
        (least, greatest) = (least.min(rate), greatest.max(rate));
        assert!((2.0..=20.0).contains(&rate), "{rate} Mbit/s");
        assert!((5.0..=30.0).contains(&drawn.delay.as_millis_f64()), "{:?}", drawn.delay);
        assert!((0.0..=0.01).contains(&drawn.loss.mean()), "{:?}", drawn.loss);
        assert_eq!((fixed.rate.expect("no trace").as_mbps(), fixed.delay.as_micros()), (7.0, 16_500));
        let rivals = &experiment.flows[1..];
        assert!((1..=4).contains(&rivals.len()));
        assert!(rivals.iter().all(|rival| (1.0..=2.0).contains(&rival.start.as_secs_f64())));
    }
    assert!(least < 2.2 && greatest > 18.0, "500 draws come near both ends: {least} to {greatest}");
}

#[test]
fn a_trace_is_the_rate() {
    // A packet of 1500 bytes each millisecond: 12 Mbit/s.
    let path = r#"{"rate_mbps": [1, 1], "rtt_ms": [20, 20], "traces": [[1, 2, 3, 4, 5]]}"#;
    let keys = r#""action": "rate(5, 6)", "observation": "throughput_mbps", "interval": "1000ms""#;
    let config = Config::parse(&format!(r#"{{"paths": [{path}], {keys}}}"#)).expect("a good configuration");
    assert_eq!(draw(&config, 1).shares[0].capacity, 12.0);
    let mut environment = Environment::new(Arc::new(config));
    let (mut seen, mut rewards, mut measures) = ([0.0], [0.0], [0.0; MEASURES.len()]);
    environment.reset(1, &mut seen, &mut measures);
    for _ in 0..3 {
        environment.step(&[1.0], &mut seen, &mut rewards, &mut measures);
    }
    let packet = 1448.0 * 8.0 / 1e6;
    assert!((f64::from(seen[0]) - 6.0).abs() <= 2.0 * packet, "{} Mbit/s", seen[0]);
}

/// A configuration of one path with these keys.
fn traced(keys: &str) -> Config {
    let path = format!(r#"{{"rtt_ms": [20, 20], {keys}}}"#);
    Config::parse(&format!(r#"{{"paths": [{path}]}}"#)).expect("a good configuration")
}

#[test]
fn traces_stand_for_the_rate_and_each_episode_begins_elsewhere_in_them() {
    let config = traced(r#""traces": [[1000, 1001, 1002, 4000.0]]"#);
    let offset = |config: &Config, seed| {
        let forward = &draw(config, seed).experiment.links[0].forward;
        assert_eq!(forward.rate, None);
        forward.trace_offset
    };
    let offsets: Vec<Span> = (0..50).map(|seed| offset(&config, seed)).collect();
    assert_eq!(offsets[7], offset(&config, 7));
    assert!(offsets.iter().all(|offset| *offset < Span::from_secs(4)));
    // Uniform: 50 draws leave a half empty with probability 2^-49.
    assert!((0..2).all(|half| offsets.iter().any(|offset| offset.as_secs_f64() as u64 / 2 == half)), "{offsets:?}");
    let pinned = traced(r#""traces": [[1000, 4000]], "trace_offset_s": [2.5, 2.5]"#);
    assert_eq!(offset(&pinned, 1), Span::from_millis(2500));
    // A run of 10 s from 2.5 s has the opportunities at 4, 5, 8, 9 and 12 s.
    assert_eq!(draw(&pinned, 1).shares[0].capacity, 5.0 * 1500.0 * 8.0 / 10.0 / 1e6);
}

#[test]
fn traces_are_read_from_files_of_every_format() {
    let folder = std::env::temp_dir().join(format!("ropewalk-learning-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str, text: &str| {
        std::fs::write(folder.join(name), text).unwrap();
        folder.join(name).display().to_string()
    };
    let (rates, csv) =
        (file("rates", "0 0\n2 1.2\n"), file("5g.csv", "time_s,DL_bitrate,UL_bitrate\n0,0,0\n2,600,1200\n"));
    let config = traced(&format!(r#""traces": ["{rates}", "{csv}", "{csv}#UL_bitrate", [1, 2]]"#));
    let Worlds::Drawn(ranges) = &config.worlds else { unreachable!("there is no scenario") };
    let counts: Vec<usize> = ranges.paths[0].traces.iter().map(|trace| trace.opportunities.len()).collect();
    assert_eq!(counts, [200, 100, 200, 2]);
    let bad = file("bad", "0 0\n2 fast\n");
    let error = Config::parse(&format!(r#"{{"paths": [{{"rtt_ms": [1, 1], "traces": [[1], "{bad}"]}}]}}"#));
    let error = error.expect_err("wrong").to_string();
    assert!(error.starts_with(&format!("paths[0].traces: trace 1: {bad}:2: this is not a rate")), "{error}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn weights_divide_the_packets() {
    let path = r#"{"rate_mbps": [20, 20], "rtt_ms": [20, 20], "queue_bdp": [2, 2]}"#;
    let keys = r#""decides": "weights", "observation": "throughput_mbps", "interval": "1000ms""#;
    let config = Config::parse(&format!(r#"{{"paths": [{path}, {path}], {keys}}}"#)).expect("a good configuration");
    let mut environment = Environment::new(Arc::new(config));
    let (mut seen, mut rewards, mut measures) = ([0.0; 2], [0.0], [0.0; MEASURES.len()]);
    environment.reset(1, &mut seen, &mut measures);
    for _ in 0..6 {
        environment.step(&[1.0 / 3.0, 0.0], &mut seen, &mut rewards, &mut measures);
    }
    // 8^(1/3) = 2 packets on the first path for each on the second.
    assert!((seen[0] / seen[1] - 2.0).abs() < 0.02, "{seen:?}");
}

#[test]
fn a_wrong_configuration_is_refused_with_its_key() {
    let path = r#"{"rate_mbps": [2, 20], "rtt_ms": [10, 60]}"#;
    for (text, expected) in [
        (r#"{"paths": []}"#.to_owned(), "paths: 0 paths; 1 to 32 are allowed"),
        (format!(r#"{{"paths": [{path}], "interval": "10"}}"#), "interval: `10` is not an interval"),
        (format!(r#"{{"paths": [{path}], "reward": "best"}}"#), "reward: `best` is neither a reward"),
        (format!(r#"{{"paths": [{path}], "colour": 1}}"#), "colour: no key is called `colour`; known: paths, rivals"),
        (
            format!(r#"{{"paths": [{path}], "duration_s": "long"}}"#),
            "duration_s: a number is expected, not the text \"long\"",
        ),
        (
            format!(r#"{{"paths": [{path}], "agents": -1}}"#),
            "agents: a whole number, 0 or more, is expected, not the number `-1`",
        ),
        (
            format!(r#"{{"paths": [{path}], "history": 1.5}}"#),
            "history: a whole number, 0 or more, is expected, not the number `1.5`",
        ),
        (format!(r#"{{"paths": [{path}], "reward": 3}}"#), "reward: a name is expected, or a table of terms"),
        (format!(r#"{{"paths": {path}}}"#), "paths: a list is expected, not a table"),
        (r#"{"paths": [[2, 20]]}"#.to_owned(), "paths[0]"),
        (
            format!(r#"{{"paths": [{path}], "decides": "both"}}"#),
            "decides: no value is called `both`; known: single, subflows, weights",
        ),
        (
            format!(r#"{{"paths": [{path}], "rivals": {{"count": "2"}}}}"#),
            "rivals.count: \"2\": a whole number is expected",
        ),
        (
            format!(r#"{{"paths": [{path}], "rivals": {{"algorithms": "bbr"}}}}"#),
            "rivals.algorithms: a list is expected, not the text \"bbr\"",
        ),
        (
            r#"{"paths": [{"rate_mbps": [2, 20], "rtt_ms": [20]}]}"#.to_owned(),
            "paths[0].rtt_ms: [20]: a number is expected, or a range [least",
        ),
        (
            format!(r#"{{"paths": [{path}], "rivals": {{"algorithms": ["cubik"]}}}}"#),
            "rivals.algorithms: no congestion control is called `cubik`",
        ),
    ] {
        let error = Config::parse(&text).expect_err("wrong").to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn a_queue_is_given_in_packets_or_ms_too() {
    let packets = |queue: &str| {
        let path = format!(r#"{{"rate_mbps": 12.304, "rtt_ms": 40, {queue}}}"#);
        let config = Config::parse(&format!(r#"{{"paths": [{path}]}}"#)).expect("a good configuration");
        let sizes = (0..50).map(|seed| match draw(&config, seed).experiment.links[0].forward.queue.limit {
            link::QueueLimit::Packets(packets) => packets,
            other => panic!("{other:?}"),
        });
        let sizes: Vec<u64> = sizes.collect();
        (*sizes.iter().min().expect("some"), *sizes.iter().max().expect("some"))
    };
    // A packet of 1538 bytes takes a millisecond.
    assert_eq!(packets(r#""queue_ms": 100"#), (100, 100));
    assert_eq!(packets(r#""queue_bdp": 2"#), (80, 80));
    assert_eq!(packets(r#""queue_packets": 7"#), (7, 7));
    assert_eq!(packets(r#""queue_packets": 1"#), (4, 4));
    let (least, greatest) = packets(r#""queue_packets": [10, 1000]"#);
    assert!((10..40).contains(&least) && (300..=1000).contains(&greatest), "{least}, {greatest}");
}

#[test]
fn a_wrong_path_is_refused_with_its_key() {
    for (text, expected) in [
        (r#"{"paths": [{"rate_mbps": [2, 20]}]}"#, "paths[0].rtt_ms: is missing"),
        (
            r#"{"paths": [{"rate_mbps": [2, 20], "rtt_ms": [2, 20], "trace_offset_s": [0, 1]}]}"#,
            "paths[0].trace_offset_s: the path has no `traces`",
        ),
        (r#"{"paths": [{"rtt_ms": [2, 20]}]}"#, "paths[0].rate_mbps: is missing: a path has `rate_mbps`, or"),
        (r#"{"paths": [{"rtt_ms": [2, 20], "traces": [1, 2]}]}"#, "paths[0].traces: trace 0: 1: the name of"),
        (r#"{"paths": [{"rtt_ms": [2, 20], "traces": "a"}]}"#, "paths[0].traces: \"a\": a list of traces is"),
        (r#"{"paths": [{"rtt_ms": [2, 20], "traces": [[2, 1]]}]}"#, "paths[0].traces: trace 0: milliseconds must"),
        (r#"{"paths": [{"rtt_ms": [2, 20], "traces": [[1.5]]}]}"#, "paths[0].traces: trace 0: 1.5: milliseconds"),
        (r#"{"paths": [{"rate_mbps": [20, 2], "rtt_ms": [1, 1]}]}"#, "paths[0].rate_mbps: [20, 2]: a range"),
    ] {
        let error = Config::parse(text).expect_err("wrong").to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

//! Files of policies: what their metadata has to say, and the algorithm `policy` of the registry.

use control::{Context, Controller, FILE, LinuxRelease, ParamValue, PathEvent, PathInfo, Reduction, registry};
use ropewalk_policy::{Interval, PolicyFile};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use units::{Instant, PathId, RngStream, Span};

fn bytes(name: &str) -> Arc<[u8]> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models").join(name)).unwrap().into()
}

fn parameters(name: &str) -> BTreeMap<String, ParamValue> {
    BTreeMap::from([(FILE.to_owned(), ParamValue::File { path: name.into(), bytes: bytes(name) })])
}

#[test]
fn the_metadata_says_what_a_policy_sees_and_decides() {
    let file = PolicyFile::read(&bytes("group.onnx")).unwrap();
    let settings = file.settings();
    assert_eq!((settings.paths, settings.interval), (2, Interval::RoundTrip));
    assert_eq!((settings.observation_len(), settings.action_len()), (4, 2));
    assert_eq!(settings.observation.to_string(), "loss_ratio,queue_delay_ms");
}

#[test]
fn wrong_metadata_is_refused_with_its_key() {
    for (name, phrase) in [
        ("no-metadata.onnx", "metadata `ropewalk.version`: is missing"),
        ("wrong-version.onnx", "metadata `ropewalk.version`: `2` is not supported; this program reads version 1"),
        ("wrong-observation.onnx", "metadata `ropewalk.observation`: `queue` is neither a feature nor a preset"),
        ("wrong-action.onnx", "metadata `ropewalk.action`: `steer` is not an action"),
        (
            "wrong-interval.onnx",
            "metadata `ropewalk.interval`: `10us` is not an interval; intervals are `rtt`, and times",
        ),
        ("wrong-size.onnx", "input of 3 numbers, the observation has 2"),
        ("wrong-state.onnx", "metadata `ropewalk.state`: `2` is not a number from 1 to 1"),
    ] {
        let message = PolicyFile::read(&bytes(name)).unwrap_err().to_string();
        assert!(message.contains(phrase), "{name}: {message}");
    }
}

#[test]
fn a_recurrent_policy_carries_its_state_from_decision_to_decision() {
    let file = PolicyFile::read(&bytes("counting.onnx")).unwrap();
    let (mut policy, mut other, mut action) = (file.policy(), file.policy(), [0.0]);
    for decision in 1..=5 {
        policy.act(&[0.0, 0.0], &mut action).unwrap();
        assert_eq!(action, [decision as f32]);
    }
    other.act(&[10.0, 20.0], &mut action).unwrap();
    assert_eq!(action, [4.0], "the state of another connection is 0 at first");
    let failure = other.act(&[f32::INFINITY, 0.0], &mut action).unwrap_err();
    assert_eq!(failure.0, "the policy's state is inf");
}

#[test]
fn one_reading_serves_all_connections() {
    let bytes = bytes("steady.onnx");
    let [first, second] = [(); 2].map(|()| PolicyFile::shared(&bytes).unwrap());
    assert!(Arc::ptr_eq(&first, &second));
    let equal: Arc<[u8]> = bytes.to_vec().into();
    assert!(!Arc::ptr_eq(&first, &PolicyFile::shared(&equal).unwrap()), "other bytes are read");
}

#[test]
fn the_registry_refuses_a_missing_file_and_a_bad_one() {
    ropewalk_policy::register();
    ropewalk_policy::register();
    let entry = registry::find("policy").unwrap();
    let missing = entry.controller(&BTreeMap::new()).unwrap_err();
    assert_eq!((missing.key.as_str(), missing.to_string().contains("`file` is missing")), ("file", true));
    let error = entry.controller(&parameters("nan.onnx")).unwrap_err();
    assert_eq!(error.to_string(), "`file`: tensor `w` contains NaN or infinity");
    assert_eq!(entry.notes(&parameters("rounded.onnx")), ["the model's 64-bit floats were rounded to 32 bits"]);
    assert!(entry.notes(&parameters("steady.onnx")).is_empty() && entry.notes(&BTreeMap::new()).is_empty());
}

/// Brings a path up and lets two intervals pass.
fn start(controller: &mut dyn Controller, path: u16) {
    let mut rng = RngStream::named(1, "test");
    let info = PathInfo {
        mss: 1000,
        initial_window: 10,
        rtt: None,
        tick: Span::from_millis(4),
        cwnd_clamp: 1000,
        reduction: Reduction::default(),
        release: LinuxRelease::default(),
    };
    let mut event = |ms, event: &PathEvent| {
        controller.on_event(
            PathId(path),
            event,
            &mut Context { now: Instant::ZERO + Span::from_millis(ms), rng: &mut rng },
        );
    };
    event(0, &PathEvent::PathUp(info));
    event(100, &PathEvent::MssChanged { mss: 1000 });
    event(200, &PathEvent::MssChanged { mss: 1000 });
}

#[test]
fn a_policy_that_answers_nan_is_replaced_by_cubic_and_says_so() {
    ropewalk_policy::register();
    let entry = registry::find("policy").unwrap();
    let mut steady = entry.controller(&parameters("steady.onnx")).unwrap();
    start(&mut *steady, 0);
    assert_eq!((steady.failure(), steady.decision(PathId(0)).cwnd), (None, 10));
    let mut failing = entry.controller(&parameters("nan-answer.onnx")).unwrap();
    start(&mut *failing, 0);
    assert_eq!(failing.failure(), Some("the policy answered NaN"));
    assert_eq!(failing.decision(PathId(0)).cwnd, 10, "CUBIC goes on from the present window");
}

#[test]
fn a_policy_for_two_paths_fails_when_there_is_a_third() {
    ropewalk_policy::register();
    let mut group = registry::find("policy").unwrap().controller(&parameters("group.onnx")).unwrap();
    start(&mut *group, 0);
    start(&mut *group, 1);
    assert_eq!(group.failure(), None);
    start(&mut *group, 2);
    assert_eq!(group.failure(), Some("the policy decides for 2 paths, but there are more"));
    assert!((0..3).all(|path| group.decision(PathId(path)).cwnd == 10));
}

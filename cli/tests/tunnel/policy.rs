//! A learned policy controls the paths of the real daemon.

use crate::traffic::Transfer;
use crate::tunnel_pair::{DEVICE, IPV4, TunnelPair};
use lab::testbed::{LEFT, RIGHT};
use std::path::Path;
use testing::eventually;

const LINKS: [&str; 2] = ["rate=10mbit delay=10ms", "rate=10mbit delay=20ms"];

/// A pair of hosts whose left one runs a policy of `cc/policy/tests/models`, which lies in the folder of its configuration.
fn pair(model: &str) -> Option<TunnelPair> {
    pair_with("congestion", model)
}

/// As [`pair`], with the policy as the value of this key.
fn pair_with(key: &str, model: &str) -> Option<TunnelPair> {
    let mut pair = TunnelPair::configured(IPV4, &LINKS)?;
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cc/policy/tests/models");
    std::fs::copy(models.join(model), pair.folder(LEFT).join("model.onnx")).unwrap();
    pair.edit(LEFT, |text| text + &format!("\n[tunnel]\n{key} = {{ name = \"policy\", file = \"model.onnx\" }}\n"));
    [RIGHT, LEFT].into_iter().for_each(|host| pair.start(host));
    [RIGHT, LEFT].into_iter().for_each(|host| pair.wait_until_up(host));
    Some(pair)
}

/// What `ropewalk show` prints.
fn show(pair: &TunnelPair) -> String {
    let output = pair.command(LEFT).args(["show", DEVICE]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_daemon_carries_traffic_under_a_policy_for_each_path_and_under_one_for_both() {
    for model in ["steady.onnx", "group.onnx"] {
        let Some(pair) = pair(model) else { return };
        let transfer = Transfer::endless(&pair, LEFT);
        transfer.wait_for(4 << 20);
        // Both policies leave the initial window of ten packets as it is, which fills neither path.
        for path in &pair.status(LEFT).peers[0].paths {
            let cwnd = path.cwnd_bytes.unwrap();
            assert!((10 * 1000..10 * 1500).contains(&cwnd), "{model}: {cwnd} bytes on {}", path.name);
        }
        assert!(!show(&pair).contains("a classical algorithm"), "{}", show(&pair));
        assert_eq!(pair.status(LEFT).peers[0].controller_failure, None);
        assert!(transfer.stop() > 0);
    }
}

#[test]
fn the_daemon_schedules_packets_by_a_policy_and_minrtt_takes_the_place_of_one_that_fails() {
    for (model, failure) in [
        ("by-packet.onnx", None),
        ("by-path.onnx", None),
        ("by-weights.onnx", None),
        ("nan-packet.onnx", Some("scheduler: the policy answered NaN")),
        ("nan-path.onnx", Some("scheduler: the policy answered NaN")),
    ] {
        let Some(pair) = pair_with("scheduler", model) else { return };
        let transfer = Transfer::endless(&pair, LEFT);
        transfer.wait_for(4 << 20);
        let has_failed = || pair.status(LEFT).peers[0].controller_failure.clone();
        assert!(failure.is_none() || eventually(|| has_failed().is_some()), "{model}");
        assert_eq!(has_failed().as_deref(), failure, "{model}");
        assert!(transfer.stop() > 0);
    }
}

#[test]
fn cubic_takes_the_place_of_a_policy_that_answers_nan_and_the_daemon_says_so() {
    let Some(pair) = pair("nan-answer.onnx") else { return };
    let transfer = Transfer::endless(&pair, LEFT);
    transfer.wait_for(4 << 20);
    assert!(eventually(|| pair.status(LEFT).peers[0].controller_failure.is_some()));
    let line = "policy: failed, a classical algorithm is in its place: the policy answered NaN";
    assert!(show(&pair).contains(line), "{}", show(&pair));
    transfer.wait_for(4 << 20);
    assert!(transfer.stop() > 0);
}

#[test]
fn a_configuration_with_a_bad_model_is_refused_by_check() {
    let Some(pair) = TunnelPair::configured(IPV4, &LINKS) else { return };
    let check = |file: &str, key: &str| {
        pair.edit(LEFT, |text| {
            let kept = text.split("\n[tunnel]").next().unwrap_or_default().to_owned();
            kept + &format!("\n[tunnel]\ncongestion = {{ name = \"policy\"{key} }}\n")
        });
        let output = pair.command(LEFT).arg("check").arg(pair.folder(LEFT).join(file)).output().unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    let config = format!("{DEVICE}.toml");
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cc/policy/tests/models");
    for (name, phrase) in [
        ("missing.onnx", "No such file"),
        ("nan.onnx", "contains NaN"),
        ("wrong-action.onnx", "`steer` is not an action"),
    ] {
        let (accepted, message) = check(&config, &format!(", file = \"{}\"", models.join(name).display()));
        assert!(!accepted && message.contains(phrase) && message.contains("rw0.toml:"), "{name}: {message}");
    }
    let (accepted, message) = check(&config, "");
    assert!(!accepted && message.contains("`file` is missing"), "{message}");
    let (accepted, message) = check(&config, &format!(", file = \"{}\"", models.join("steady.onnx").display()));
    assert!(accepted, "{message}");
}

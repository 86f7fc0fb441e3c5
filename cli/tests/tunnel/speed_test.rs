//! `ropewalk test` over links of known rates.

use crate::tunnel_pair::{DEVICE, IPV4, TunnelPair};
use daemon::status::TunnelStatus;
use lab::testbed::LEFT;
use serde_json::Value;
use std::collections::BTreeSet;
use testing::eventually;

/// Bit/s of the links, headers included: little, so that a busy machine can fill them.
const RATES: [f64; 2] = [4e6, 2e6];
const LINKS: [&str; 2] = ["rate=4mbit delay=5ms", "rate=2mbit delay=10ms"];
/// Measurements of everything, of which one has to show it.
const ATTEMPTS: usize = 6;

fn test(pair: &TunnelPair, options: &[&str]) -> Result<String, String> {
    let output = pair.command(LEFT).args(["test", DEVICE]).args(options).output().unwrap();
    let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    if output.status.success() { Ok(stdout) } else { Err(stderr) }
}

fn rate(result: &Value, path: Option<&str>, direction: &str) -> f64 {
    let found = result["measurements"].as_array().unwrap().iter();
    let mut found = found.filter(|found| found["path"].as_str() == path && found["direction"] == direction);
    found.next().unwrap_or_else(|| panic!("{result:#}"))["rate_bps"].as_f64().unwrap()
}

#[test]
fn no_path_is_measured_above_its_link_and_both_together_are_faster_than_either() {
    let Some(pair) = TunnelPair::up(IPV4, &LINKS) else { return };
    let names = [0, 1].map(|link| pair.testbed.device(link));
    let page = pair.folder(LEFT).join("test.html");
    // On a busy machine an end that gets no CPU for a while counts what has waited meanwhile, so that one may be too fast.
    let is_bonded = |_| {
        let text = test(&pair, &["--seconds", "3", "--json", "--out", page.to_str().unwrap()]).unwrap();
        let result: Value = serde_json::from_str(&text).unwrap();
        let places = result["measurements"].as_array().unwrap().iter().map(|found| found["order"].as_u64().unwrap());
        assert_eq!(places.collect::<BTreeSet<_>>(), (1..=6).collect(), "six measurements, one after the other");
        ["down", "up"].iter().all(|direction| {
            let alone = [0, 1].map(|link| rate(&result, Some(&names[link]), direction));
            let both = rate(&result, None, direction);
            let within = alone.iter().zip(RATES).all(|(rate, limit)| *rate > 0.0 && *rate <= limit);
            within && both <= RATES.iter().sum() && both > alone[0].max(alone[1])
        })
    };
    // Nor is the bond compared with paths of which one was slower alone.
    let read = || std::fs::read_to_string(&page).unwrap();
    assert!((0..ATTEMPTS).any(|attempt| is_bonded(attempt) && read().contains("of the sum)")), "{}", read());
    assert!(read().contains("all together"), "{}", read());
    let is_backup = |status: TunnelStatus| status.paths().any(|(_, path)| path.backup);
    assert!(eventually(|| !is_backup(pair.status(LEFT))), "all paths carry data again");
}

#[test]
fn a_tunnel_is_advised_on_by_what_its_test_measured() {
    let Some(pair) = TunnelPair::up(IPV4, &LINKS) else { return };
    let place = pair.file(LEFT).with_extension("measured.json");
    let advise = || {
        let output = pair.command(LEFT).arg("advise").arg(pair.file(LEFT)).args(["--budget", "6s"]).output().unwrap();
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned())
    };
    let [_, error] = advise();
    let command = format!("`ropewalk test {DEVICE} --measurements {}`", place.display());
    assert!(error.contains(&format!("nothing was measured of {DEVICE} yet")) && error.contains(&command), "{error}");

    test(&pair, &["--seconds", "2", "--measurements", place.to_str().unwrap()]).unwrap();
    let measured = measured::read(&place).unwrap();
    for name in [0, 1].map(|link| pair.testbed.device(link)) {
        let path = measured.paths.iter().find(|path| path.name == name).unwrap_or_else(|| panic!("no path {name}"));
        for direction in measured::Direction::ALL {
            let mut flows = path.tcp.iter().filter(|flow| flow.direction == direction);
            let goodput = flows.next().and_then(|flow| flow.goodput_mbps);
            assert!(goodput > Some(0.0), "{name}: {goodput:?}");
        }
    }

    let [advice, error] = advise();
    assert!(advice.contains("For throughput: "), "{advice}{error}");
}

#[test]
fn an_end_that_answers_no_tests_is_named_with_what_would_help() {
    let Some(mut pair) = TunnelPair::configured(IPV4, &LINKS) else { return };
    let other = 1 - LEFT;
    pair.edit(other, |text| text.replacen("[interface]\n", "[interface]\nspeed-test = false\n", 1));
    [other, LEFT].into_iter().for_each(|host| pair.start(host));
    [other, LEFT].into_iter().for_each(|host| pair.wait_until_up(host));
    let error = test(&pair, &[]).unwrap_err();
    let address = pair.families.inner_address(other);
    assert!(error.contains(&format!("{address}: ")) && error.contains("--address IP"), "{error}");
}

#[test]
fn a_path_alone_is_alone_for_the_real_time_class_too() {
    // The first link has an RTT of 10 ms, the second one of 120 ms: no answer on it is faster.
    let Some(mut pair) = TunnelPair::configured(IPV4, &["rate=4mbit delay=5ms", "rate=4mbit delay=60ms"]) else {
        return;
    };
    for host in [LEFT, 1 - LEFT] {
        pair.edit(host, |text| format!("{text}\n[class.realtime]\n"));
        pair.start(host);
    }
    [LEFT, 1 - LEFT].into_iter().for_each(|host| pair.wait_until_up(host));
    let slow = pair.testbed.device(1);
    // On a busy machine a path may not answer for so long that the class leaves it, for five seconds at least.
    let is_alone = |_| {
        let text = test(&pair, &["--seconds", "3", "--json"]).unwrap();
        let result: Value = serde_json::from_str(&text).unwrap();
        let mut found = result["measurements"].as_array().unwrap().iter().filter(|found| found["path"] == slow);
        found.all(|found| found["rtt"]["median_ms"].as_f64() >= Some(120.0)).then_some(result)
    };
    let result = (0..ATTEMPTS).find_map(is_alone).expect("no measurement in which the slow path was alone");
    assert!(result["unix_ms"].as_u64() > Some(1_700_000_000_000), "{result:#}");
    for end in result["ends"].as_array().unwrap() {
        assert!(end["version"].is_string() && end["host"].is_string(), "{result:#}");
    }
}

#[test]
fn other_traffic_is_seen_and_said() {
    let Some(pair) = TunnelPair::up(IPV4, &LINKS) else { return };
    let transfer = crate::traffic::Transfer::endless(&pair, LEFT);
    transfer.wait_for(1 << 20);
    let text = test(&pair, &["--seconds", "2", "--json"]).unwrap();
    let result: Value = serde_json::from_str(&text).unwrap();
    assert!(result["other_traffic"]["up_bps"].as_f64() > Some(1e6), "{result:#}");
    let verdict = result["verdict"].as_str().unwrap();
    assert!(verdict.contains("not comparable") && verdict.contains("of other traffic"), "{verdict}");
    assert!(transfer.stop() > 0);
}

//! LIA's increase beside RFC 6356's formula, over the whole range of windows and RTTs.

use crate::harness::Native;
use proptest::prelude::*;

/// Windows in packets and RTTs in microseconds, each by its logarithm: small and extreme ones are equally likely.
fn group() -> impl Strategy<Value = Vec<(u32, u32)>> {
    let logarithmic = |bits: u32| (0..=bits, any::<u32>()).prop_map(|(bits, any)| 1 << bits | any & ((1 << bits) - 1));
    let subflow = (logarithmic(19), logarithmic(26).prop_map(|rtt: u32| rtt.min(120_000_000)));
    prop::collection::vec(subflow, 2..=8)
}

/// The increase of the first subflow for a packet acknowledged, in packets: the window's and the fraction's.
fn increase(native: &Native, group: &[(u32, u32)]) -> Result<f64, String> {
    let mut lines: Vec<String> = group
        .iter()
        .enumerate()
        .map(|(path, (cwnd, rtt))| {
            format!("up {path} snd_cwnd {cwnd} snd_ssthresh 1 srtt_eighths {}", u64::from(*rtt) * 8)
        })
        .collect();
    lines.push("ack 0 acked 1 may_raise 1 cwnd_limited 1".to_owned());
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let answer = *native.run(&lines)?.last().expect("there is one");
    Ok(f64::from(answer.cwnd) - f64::from(group[0].0) + answer.state[1] as f64 / (1u64 << 40) as f64)
}

/// RFC 6356, section 3: min(alpha / cwnd_total, 1 / cwnd_i) with its alpha.
fn rfc(group: &[(u32, u32)]) -> f64 {
    let paths = || group.iter().map(|&(cwnd, rtt)| (f64::from(cwnd), f64::from(rtt)));
    let cwnd_total: f64 = paths().map(|(cwnd, _)| cwnd).sum();
    let best = paths().map(|(cwnd, rtt)| cwnd / rtt.powi(2)).fold(0.0, f64::max);
    let alpha = cwnd_total * best / paths().map(|(cwnd, rtt)| cwnd / rtt).sum::<f64>().powi(2);
    (alpha / cwnd_total).min(1.0 / f64::from(group[0].0))
}

#[test]
fn lias_increase_is_the_rfcs_within_the_stated_rounding() {
    let Some(native) = Native::of("lia") else { return };
    let result = proptest::test_runner::TestRunner::default().run(&group(), |group| {
        let (increase, rfc) = (increase(&native, &group).map_err(TestCaseError::fail)?, rfc(&group));
        // shares.bpf.h: 2^-12 in relation to it, and 2^-28 packets.
        let rounding = rfc / 4096.0 + 1.0 / f64::from(1 << 28);
        prop_assert!((increase - rfc).abs() <= rounding, "{group:?}: {increase}, not {rfc}");
        Ok(())
    });
    assert!(result.is_ok(), "{}", result.unwrap_err());
}

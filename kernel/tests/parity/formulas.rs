//! The increases of LIA, OLIA and BALIA beside their formulas in doubles, and any numbers at all, over the whole range of
//! windows and RTTs.

use crate::harness::{Answer, Native};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

pub(crate) fn runner(cases: u32) -> TestRunner {
    TestRunner::new(Config { cases, source_file: Some(file!()), ..Config::default() })
}

/// A subflow that has packets out.
pub(crate) const SENDING: &str = "data_segs_out 9 packets_out 2";

/// A subflow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subflow {
    /// Packets.
    pub(crate) cwnd: u32,
    pub(crate) rtt_us: u32,
    /// Packets delivered, none lost yet: OLIA's l.
    pub(crate) delivered: u32,
}

impl Subflow {
    fn rate(&self) -> f64 {
        f64::from(self.cwnd) / f64::from(self.rtt_us)
    }

    /// (w / rtt^2) / (sum(w / rtt))^2.
    fn coupled_increase(&self, group: &[Self]) -> f64 {
        self.rate() / f64::from(self.rtt_us) / group.iter().map(Self::rate).sum::<f64>().powi(2)
    }
}

/// Numbers below 2^`bits` by their logarithms: small and extreme ones are equally likely.
fn logarithmic(bits: u32) -> impl Strategy<Value = u32> {
    (0..bits, any::<u32>()).prop_map(|(bits, any)| 1 << bits | any & ((1 << bits) - 1))
}

/// Windows to 2^20 packets and RTTs of a microsecond to two minutes; or such that several are the best or the largest.
fn group() -> impl Strategy<Value = Vec<Subflow>> {
    let rtt = logarithmic(27).prop_map(|rtt| rtt.min(120_000_000));
    let extreme = (logarithmic(20), rtt, logarithmic(32));
    let equal = (10..13u32, prop_oneof![Just(20_000u32), Just(60_000)], prop_oneof![Just(100u32), Just(900)]);
    let subflow = |(cwnd, rtt_us, delivered)| Subflow { cwnd, rtt_us, delivered };
    prop_oneof![
        prop::collection::vec(extreme.prop_map(subflow), 2..=8),
        prop::collection::vec(equal.prop_map(subflow), 2..=8),
    ]
}

/// After `event` of the first subflow, in recovery-free congestion avoidance.
fn answer(native: &Native, group: &[Subflow], event: &str) -> Result<Answer, TestCaseError> {
    let up = group.iter().enumerate().map(|(path, Subflow { cwnd, rtt_us, .. })| {
        format!("up {path} snd_cwnd {cwnd} snd_ssthresh 1 srtt_eighths {} {SENDING}", u64::from(*rtt_us) * 8)
    });
    let deliver = group.iter().enumerate().map(|(path, subflow)| format!("ack {path} delivered {}", subflow.delivered));
    let lines: Vec<String> = up.chain(deliver).chain([event.to_owned()]).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    Ok(*native.run(&lines).map_err(TestCaseError::fail)?.last().expect("there is one"))
}

/// The increase of the first subflow's window for a packet acknowledged, its fraction included.
fn increase(native: &Native, group: &[Subflow]) -> Result<f64, TestCaseError> {
    let answer = answer(native, group, "ack 0 acked 1 may_raise 1 cwnd_limited 1")?;
    Ok(f64::from(answer.cwnd) - f64::from(group[0].cwnd) + answer.state[1] as f64 / (1u64 << 40) as f64)
}

/// Checks increases. The rounding that the programs state: 2^-12 of `coupled`, and 2^-28 packets.
fn check_increases(program: &str, formula: impl Fn(&[Subflow]) -> (f64, f64)) {
    let Some(native) = Native::of(program) else { return };
    let result = runner(256).run(&group(), |group| {
        let (increase, (coupled, rest)) = (increase(&native, &group)?, formula(&group));
        let (expected, rounding) = (coupled + rest, coupled / 4096.0 + 1.0 / f64::from(1 << 28));
        prop_assert!((increase - expected).abs() <= rounding, "{group:?}: {increase}, not {expected}");
        Ok(())
    });
    assert!(result.is_ok(), "{}", result.unwrap_err());
}

/// The increase of RFC 6356, section 3: min(alpha / cwnd_total, 1 / cwnd_i) with its alpha.
pub(crate) fn rfc_6356(group: &[Subflow]) -> f64 {
    let paths = || group.iter().map(|path| (f64::from(path.cwnd), f64::from(path.rtt_us)));
    let cwnd_total: f64 = paths().map(|(cwnd, _)| cwnd).sum();
    let best = paths().map(|(cwnd, rtt)| cwnd / rtt.powi(2)).fold(0.0, f64::max);
    let alpha = cwnd_total * best / paths().map(|(cwnd, rtt)| cwnd / rtt).sum::<f64>().powi(2);
    (alpha / cwnd_total).min(1.0 / f64::from(group[0].cwnd))
}

#[test]
fn lias_increase_is_the_rfcs_within_the_stated_rounding() {
    check_increases("lia", |group| (rfc_6356(group), 0.0));
}

#[test]
fn a_window_above_2_20_packets_counts_as_one_of_these() {
    let Some(native) = Native::of("lia") else { return };
    let subflow = Subflow { cwnd: 1 << 30, rtt_us: 1, delivered: 0 };
    let increase = increase(&native, &[subflow; 8]).expect("runs");
    assert_eq!(increase, 1.0 / 64.0 / f64::from(1 << 20));
}

/// The term alpha of OLIA's first subflow.
fn olias_alpha(group: &[Subflow]) -> f64 {
    let is_worse = |a: &Subflow, b: &Subflow| {
        let product = |l: &Subflow, rtt: &Subflow| u128::from(l.delivered) * u128::from(rtt.rtt_us).pow(2);
        product(a, b) < product(b, a)
    };
    let is_best = |path: &&Subflow| !group.iter().any(|other| is_worse(path, other));
    let is_largest = |path: &&Subflow| group.iter().all(|other| other.cwnd <= path.cwnd);
    let collected = |path: &&Subflow| is_best(path) && !is_largest(path);
    let count = |matches: &dyn Fn(&&Subflow) -> bool| group.iter().filter(|path| matches(path)).count() as f64;
    match &group[0] {
        _ if count(&collected) == 0.0 => 0.0,
        own if collected(&own) => 1.0 / group.len() as f64 / count(&collected),
        own if is_largest(&own) => -1.0 / group.len() as f64 / count(&is_largest),
        _ => 0.0,
    }
}

#[test]
fn olias_increase_is_the_papers_within_the_stated_rounding() {
    check_increases("olia", |group| {
        let alpha = olias_alpha(group) / f64::from(group[0].cwnd);
        (group[0].coupled_increase(group), if group[0].cwnd > 2 { alpha } else { alpha.max(-1.0) })
    });
}

#[test]
fn balias_increase_is_the_papers_within_the_stated_rounding() {
    check_increases("balia", |group| {
        let alpha = balias_alpha(group);
        (group[0].coupled_increase(group) * (1.0 + alpha) / 2.0 * (4.0 + alpha) / 5.0, 0.0)
    });
}

fn balias_alpha(group: &[Subflow]) -> f64 {
    group.iter().map(Subflow::rate).fold(0.0, f64::max) / group[0].rate()
}

#[test]
fn balias_threshold_is_the_papers_within_a_packet() {
    let Some(native) = Native::of("balia") else { return };
    let result = runner(256).run(&group(), |group| {
        let ssthresh = answer(&native, &group, "congestion 0 new_state 3")?.ssthresh;
        let cwnd = f64::from(group[0].cwnd);
        let expected = (cwnd - cwnd / 2.0 * balias_alpha(&group).min(1.5)).max(2.0);
        // The formula itself is rounded here, in five operations.
        let tolerance = 1.0 + 5.0 * f64::EPSILON * cwnd;
        prop_assert!((f64::from(ssthresh) - expected).abs() <= tolerance, "{group:?}: {ssthresh}, not {expected}");
        Ok(())
    });
    assert!(result.is_ok(), "{}", result.unwrap_err());
}

/// Members of a socket, of any value.
fn any_line(path: usize) -> impl Strategy<Value = String> {
    let any = || prop_oneof![logarithmic(32), (0..4u32), Just(u32::MAX), Just(i32::MAX as u32)];
    let event = prop_oneof![
        4 => Just("ack"),
        1 => Just("congestion"),
        1 => Just("state"),
        1 => Just("undo"),
        1 => Just("recovered"),
        1 => Just("event"),
        1 => Just("down"),
        1 => Just("up"),
        1 => Just("set")
    ];
    let windows = (any(), any(), any());
    (event, windows, (any(), any(), -1..i32::MAX), (any(), any(), any()), (0..5u8, 0..4u8)).prop_map(
        move |(event, (cwnd, ssthresh, clamp), (srtt, acked, rtt), (delivered, una, nxt), (state, flags))| {
            // The kernel keeps windows from 1 to 2^31 - 1, and packets in flight below 2^24.
            let (cwnd, clamp, acked) = (cwnd.clamp(1, 1 << 30), clamp.clamp(1, 1 << 30), acked % (1 << 24));
            let ssthresh = ssthresh.max(2);
            format!(
                "{event} {path} snd_cwnd {cwnd} snd_ssthresh {ssthresh} snd_cwnd_clamp {clamp} srtt_eighths {srtt} \
                 acked {acked} pkts_acked {acked} rtt_us {rtt} delivered {delivered} snd_una {una} snd_nxt {nxt} \
                 new_state {state} new_event {state} may_raise {} cwnd_limited {} prior_cwnd {cwnd}",
                flags & 1,
                flags >> 1
            )
        },
    )
}

#[test]
fn no_numbers_are_undefined_behaviour_or_leave_no_window() {
    let lines = prop::collection::vec((0..10usize).prop_flat_map(any_line), 1..60);
    for program in crate::ALGORITHMS.iter().map(|algorithm| algorithm.program) {
        let Some(native) = Native::of(program) else { return };
        let result = runner(16).run(&lines, |lines| {
            let mut lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let up: Vec<String> = (0..10).map(|path| format!("up {path} {SENDING}")).collect();
            lines.splice(0..0, up.iter().map(String::as_str));
            // Undefined behaviour ends the program.
            let answers = native.run(&lines).map_err(|error| TestCaseError::fail(format!("{program}: {error}")))?;
            for (line, answer) in lines.iter().zip(answers) {
                let is_congestion = line.starts_with("congestion");
                prop_assert!(answer.cwnd > 0, "{program}: {line}: {answer:?}");
                prop_assert!(!is_congestion || answer.ssthresh >= 2, "{program}: {line}: {answer:?}");
            }
            Ok(())
        });
        assert!(result.is_ok(), "{}", result.unwrap_err());
    }
}

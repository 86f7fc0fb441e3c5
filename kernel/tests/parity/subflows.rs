//! Which subflows of a connection count (`subflows.bpf.h`), and what a group of equal ones does.

use crate::formulas::{SENDING, Subflow, rfc_6356, runner};
use crate::harness::{Answer, Native};
use proptest::prelude::*;

/// Subflow `path` of the groups here, in congestion avoidance.
fn subflow(path: u32) -> Subflow {
    Subflow { cwnd: 10 + path, rtt_us: 10_000 + 1_000 * path, delivered: 0 }
}

fn up(path: u32) -> String {
    let Subflow { cwnd, rtt_us, .. } = subflow(path);
    format!("up {path} snd_cwnd {cwnd} snd_ssthresh 1 srtt_eighths {} {SENDING}", rtt_us * 8)
}

/// Checks LIA's increase of subflow `own` for a packet after `lines`: that of the RFC for these subflows, the own one first;
/// `None` if it is Reno.
fn check(lines: &[String], own: u32, expected: Option<&[Subflow]>) {
    let Some(native) = Native::of("lia") else { return };
    let ack = format!("ack {own} acked 1 may_raise 1 cwnd_limited 1");
    let lines: Vec<&str> = lines.iter().map(String::as_str).chain([&*ack]).collect();
    let answer = *native.run(&lines).expect("runs").last().expect("an answer");
    let increase = answer.state[1] as f64 / (1u64 << 40) as f64;
    // Reno counts in snd_cwnd_cnt.
    let expected = expected.map_or(0.0, rfc_6356);
    assert!((increase - expected).abs() <= expected / 4096.0, "{increase}, not {expected}");
}

#[test]
fn of_more_than_eight_subflows_the_own_and_the_first_seven_others_count() {
    let lines: Vec<String> = (0..12).map(up).collect();
    let own_and_seven: Vec<Subflow> = [11, 0, 1, 2, 3, 4, 5, 6].map(subflow).to_vec();
    check(&lines, 11, Some(&own_and_seven));
    check(&lines, 0, Some(&[0, 1, 2, 3, 4, 5, 6, 7].map(subflow)));
}

#[test]
fn sockets_that_are_not_established_or_have_no_rtt_do_not_count_nor_hide_others() {
    let mut lines: Vec<String> = (0..24).map(up).collect();
    lines.extend((0..20).map(|path| format!("set {path} sk_state 7")));
    lines.extend((20..22).map(|path| format!("set {path} srtt_eighths 0")));
    check(&lines, 23, Some(&[23, 22].map(subflow)));
    lines.push("set 22 sk_state 8".to_owned());
    check(&lines, 23, None);
    check(&lines, 0, None);
}

/// A sibling with a round-trip time of 20 us, whose window would slow the own subflow down most.
#[test]
fn a_sibling_that_is_not_in_use_changes_nothing() {
    let sibling =
        |values: &str| format!("up 1 snd_cwnd 10 snd_ssthresh 1 srtt_eighths 160 time_ns 5000000000 {values}");
    let check_with = |values: &str, counts: bool| {
        let fast = Subflow { cwnd: 10, rtt_us: 20, delivered: 0 };
        check(&[up(0), sibling(values)], 0, counts.then_some(&[subflow(0), fast]));
    };
    check_with("", false);
    check_with("lsndtime 5000 rto 1000", false);
    let sent = "data_segs_out 9 rto 200";
    check_with(&format!("{sent} packets_out 1"), true);
    check_with(&format!("{sent} lsndtime 4801"), true);
    check_with(&format!("{sent} lsndtime 4800"), false);
    check_with(&format!("{sent} packets_out 1 retransmits 1"), false);
}

#[test]
fn of_a_sibling_in_a_reduction_the_threshold_counts_and_of_the_own_the_window() {
    let reduced = Subflow { cwnd: 5, ..subflow(1) };
    let lines = [up(0), up(1), "set 1 snd_ssthresh 5 ca_state 3".to_owned()];
    check(&lines, 0, Some(&[subflow(0), reduced]));
}

#[test]
fn a_context_that_leaves_the_list_ends_the_walk_over_it() {
    let mut lines: Vec<String> = (0..4).map(up).collect();
    lines.push("unlink 1".to_owned());
    check(&lines, 3, Some(&[3, 0].map(subflow)));
    check(&lines, 0, None);
}

/// LIA's increases of path 0, each for a packet, after lines that change what they follow from; `keeps_increase` as in the
/// kernel.
fn kept_increases(changes: &[&str]) -> Vec<f64> {
    let Some(native) = Native::of("lia") else { return Vec::new() };
    let ack = "ack 0 acked 1 may_raise 1 cwnd_limited 1";
    let mut lines = vec![up(0), up(1), "set 0 keeps_increase 1 mstamp_us 1000000".to_owned(), ack.to_owned()];
    for change in changes {
        lines.extend([(*change).to_owned(), ack.to_owned()]);
    }
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let answers = native.run(&lines).expect("runs");
    let acks = lines.iter().zip(&answers).filter(|(line, _)| line.starts_with("ack"));
    let fractions: Vec<i64> = acks.map(|(_, answer)| answer.state[1]).collect();
    let increases = [0].iter().chain(&fractions).zip(&fractions).map(|(before, after)| after - before);
    increases.map(|increase| increase as f64 / (1u64 << 40) as f64).collect()
}

/// RFC 6356, section 3: alpha is computed once a round trip, here of 10 ms, and when the own window changes.
#[test]
fn an_increase_is_kept_for_a_round_trip_or_until_the_own_window_changes() {
    let of = |own: u32, sibling: u32| {
        rfc_6356(&[Subflow { cwnd: own, ..subflow(0) }, Subflow { cwnd: sibling, ..subflow(1) }])
    };
    let increases = kept_increases(&[
        "set 1 snd_cwnd 20",
        "set 0 mstamp_us 1009999",
        "set 0 mstamp_us 1010000",
        "set 1 snd_cwnd 40",
        "set 0 snd_cwnd 12",
    ]);
    let expected = [of(10, 11), of(10, 11), of(10, 11), of(10, 20), of(10, 20), of(12, 40)];
    for (index, (increase, expected)) in increases.iter().zip(expected).enumerate() {
        assert!((increase - expected).abs() <= expected / 4096.0, "{index}: {increase}, not {expected}");
    }
}

/// Packets of Reno in a trial.
const PACKETS: usize = 400;

/// Windows of the first of `count` equal subflows, after each `every`th of its packets: packets are acknowledged one by
/// one, to each subflow in turn, and each subflow loses one in `interval`.
fn windows(native: &Native, count: usize, every: usize, interval: usize) -> Result<Vec<u32>, String> {
    let mut lines: Vec<String> =
        (0..count).map(|path| format!("up {path} srtt_eighths 800000 snd_ssthresh 2 {SENDING}")).collect();
    for packet in 1..=PACKETS * every {
        for path in 0..count {
            // OLIA's l stays zero: all subflows are equally good, whoever's acknowledgement came last.
            lines.push(format!("ack {path} acked 1 may_raise 1 cwnd_limited 1"));
            if packet % interval == 0 {
                lines.push(format!("congestion {path} new_state 3"));
                lines.push(format!("recovered {path} to_ssthresh 1 {SENDING}"));
                lines.push(format!("state {path} new_state 0"));
            }
        }
    }
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let answers = native.run(&lines)?;
    let of_first = |(line, answer): (&&str, &Answer)| line.starts_with("ack 0 ").then_some(answer.cwnd);
    Ok(lines.iter().zip(&answers).filter_map(of_first).skip(every - 1).step_by(every).collect())
}

/// The window of each of n equal subflows grows by 1 / (n^2 w) for a packet, so n^2 packets do to it what one does to
/// Reno's. By the square-root law, n such windows are one Reno's at the same loss. Losses coincide here, so that the
/// subflows stay equal but for the order of their acknowledgements: a packet.
#[test]
fn equal_subflows_are_together_one_reno() {
    for program in ["lia", "olia", "balia"] {
        let Some(native) = Native::of(program) else { return };
        let result = runner(16).run(&(2..=4usize, 20..150usize), |(count, interval)| {
            let every = count * count;
            let group = windows(&native, count, every, interval * every).map_err(TestCaseError::fail)?;
            let reno = windows(&native, 1, 1, interval).map_err(TestCaseError::fail)?;
            prop_assert_eq!(group.len(), PACKETS);
            for (packet, (window, reno)) in group.iter().zip(&reno).enumerate() {
                prop_assert!(window.abs_diff(*reno) <= 1, "{program}, packet {packet}: {window} and {reno}");
            }
            Ok(())
        });
        assert!(result.is_ok(), "{}", result.unwrap_err());
    }
}

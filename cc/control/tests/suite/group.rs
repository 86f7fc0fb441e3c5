//! Coupled algorithms: the windows of several paths, and of a single path.

use crate::flow::{Connection, LINK, Link};
use ropewalk_control::ParamValue;
use ropewalk_control::registry::find;
use std::collections::BTreeMap;
use units::{Instant, Span};

fn choices(set: &[(&str, &str)]) -> BTreeMap<String, ParamValue> {
    set.iter().map(|(key, choice)| ((*key).to_owned(), ParamValue::Choice((*choice).to_owned()))).collect()
}

#[test]
fn on_a_single_path_the_kernels_integers_are_renos() {
    let decisions = |name, given: &BTreeMap<_, _>, others_up| {
        let entry = find(name).expect("registered");
        conformance::controller::single_path_decisions(entry, given, others_up).expect("no violation")
    };
    let reno = decisions("reno", &BTreeMap::new(), true);
    for name in ["lia", "olia", "balia"] {
        assert_eq!(decisions(name, &choices(&[("steps", "linux")]), false), reno, "{name}");
    }
}

/// Packets delivered by each path in `seconds`, after as many seconds.
fn delivered(mut connection: Connection, seconds: u64) -> Vec<f64> {
    connection.run_until(Instant::ZERO + Span::from_secs(seconds));
    let prior_una: Vec<u64> = connection.paths.iter().map(|path| path.snd_una).collect();
    connection.run_until(Instant::ZERO + Span::from_secs(2 * seconds));
    connection.paths.iter().zip(prior_una).map(|(path, prior_una)| (path.snd_una - prior_una) as f64).collect()
}

/// 100 ms round trips without bottleneck, with every `mark_every`th packet marked.
fn marked_link(mark_every: u64) -> Link {
    Link { transmission: Span::ZERO, delay: Span::from_millis(100), mark_every, ..LINK }
}

fn packets_on(algorithm: &str, set: &[(&str, ParamValue)], links: &[Link]) -> Vec<f64> {
    delivered(Connection::new(algorithm, set, 10, links), 300)
}

fn total(algorithm: &str, links: &[Link]) -> f64 {
    packets_on(algorithm, &[], links).iter().sum()
}

/// Relative tolerance: with whole packets and periodic marks, the formula of Reno's window holds within 3 percent.
const TOLERANCE: f64 = 0.06;

fn assert_near(value: f64, expected: f64, what: &str) {
    assert!((value / expected - 1.0).abs() < TOLERANCE, "{what}: {value} instead of {expected}");
}

#[test]
fn with_equal_loss_the_total_is_one_reno() {
    let reno = total("reno", &[marked_link(5_000)]);
    for links in
        [vec![marked_link(5_000); 2], vec![marked_link(5_000); 3], vec![marked_link(5_000), marked_link(4_861)]]
    {
        for name in ["lia", "olia", "balia", "ewtcp", "fully-coupled"] {
            assert_near(total(name, &links) / reno, 1.0, &format!("{name} on {} paths", links.len()));
        }
        let n = links.len() as f64;
        assert_near(total("semicoupled", &links) / reno, n.sqrt(), "semicoupled");
        assert_near(total("reno", &links) / reno, n, "uncoupled");
    }
}

#[test]
fn with_twice_the_loss_on_one_path_windows_have_each_algorithms_ratio() {
    let links = [marked_link(10_000), marked_link(5_000)];
    let ratio = |name| {
        let packets = packets_on(name, &[], &links);
        packets[0] / packets[1]
    };
    // In the equilibrium, windows are proportional to the roots of the intervals, or to the intervals.
    assert_near(ratio("ewtcp"), 2.0f64.sqrt(), "ewtcp");
    assert_near(ratio("semicoupled"), 2.0, "semicoupled");
    let (lia, balia) = (ratio("lia"), ratio("balia"));
    assert_near(lia, 2.0, "lia");
    // OLIA and the fully coupled algorithm shift nearly all to the better path; BALIA is between.
    let (olia, fully_coupled) = (ratio("olia"), ratio("fully-coupled"));
    assert!(
        lia < balia && balia < fully_coupled && balia < olia,
        "lia {lia}, balia {balia}, fully coupled {fully_coupled}, olia {olia}"
    );
    // The total of those with this goal is that of Reno on the better path.
    let reno = total("reno", &links[..1]);
    for name in ["lia", "olia", "balia", "fully-coupled"] {
        assert_near(total(name, &links) / reno, 1.0, name);
    }
}

#[test]
fn wvegas_queues_at_most_total_alpha() {
    let mut connection = Connection::new("wvegas", &[], 10, &[LINK; 2]);
    for tenth in 20..300 {
        connection.run_until(Instant::ZERO + Span::from_millis(100 * tenth));
        let windows = connection.windows();
        assert!(windows.iter().sum::<u32>() <= 2 * 20 + 10, "{windows:?}");
    }
}

#[test]
fn wvegas_without_backoff_queues_by_the_share_of_the_rate() {
    // Alphas: 10 alone, 5 and 5, and 7 and 2 where the rates are as three to one. A window moves by one packet a round.
    let slow = Link { transmission: Span::from_millis(3), delay: Span::from_millis(57), ..LINK };
    let fast = Link { delay: Span::from_millis(59), ..LINK };
    let without_backoff = [("backoff", ParamValue::Choice("off".to_owned()))];
    assert_windows(&without_backoff, &[LINK], &[20 + 10]);
    assert_windows(&without_backoff, &[LINK; 2], &[20 + 5; 2]);
    assert_windows(&without_backoff, &[fast, slow], &[60 + 7, 20 + 2]);
}

/// wVegas' windows after half a minute, to the packet.
fn assert_windows(set: &[(&str, ParamValue)], links: &[Link], expected: &[u32]) {
    let mut connection = Connection::new("wvegas", set, 10, links);
    connection.run_until(Instant::ZERO + Span::from_secs(30));
    let windows = connection.windows();
    let near = windows.iter().zip(expected).all(|(window, expected)| window.abs_diff(*expected) <= 1);
    assert!(near, "{windows:?}, not {expected:?}");
}

/// 50 ms round trip, 500 packets at 100 us a packet: bursts are small in comparison.
fn long_link(transmission: Span) -> Link {
    Link { transmission, delay: Span::from_millis(50).saturating_sub(transmission), ..LINK }
}

/// Packets of each of two long paths, relative to BBR on the first.
fn shares(algorithm: &str, transmission: Span) -> [f64; 2] {
    seeded_shares(1, algorithm, transmission)
}

/// As [`shares`]; the seed draws the phases of the gain cycle.
fn seeded_shares(seed: u64, algorithm: &str, transmission: Span) -> [f64; 2] {
    let links = [long_link(Span::from_micros(100)), long_link(transmission)];
    let bbr = delivered(Connection::seeded(seed, "bbr", &[], 10, &links[..1]), 40)[0];
    let packets = delivered(Connection::seeded(seed, algorithm, &[], 10, &links), 40);
    [packets[0] / bbr, packets[1] / bbr]
}

#[test]
fn coupled_bbr_has_the_posters_shares() {
    // The poster's average rates. A probing phase lasts until the path holds a quarter more, which after cruising at
    // alpha takes longer than a round trip: up to 4 percent of the best rate more.
    for (micros, [first, second]) in [(100, [0.5, 0.5]), (200, [0.8, 0.2]), (333, [0.917, 0.083])] {
        // The mean of four seeds: one alone has 0.511 to 0.527 of two like paths.
        let seeds = [1, 2, 3, 4].map(|seed| seeded_shares(seed, "coupled-bbr", Span::from_micros(micros)));
        let [first_share, second_share] = [0, 1].map(|path| seeds.iter().map(|shares| shares[path]).sum::<f64>() / 4.0);
        // It begins when the pacing of the last burst of two packets ends, at alpha of the rate; a cycle is eight
        // rounds.
        let rate = 100.0 / micros as f64;
        let alpha = (4.0 * second / rate - 1.0) / 3.0;
        let wait = 1.25 * rate * (2.0 * micros as f64 / alpha) / (8.0 * 50_000.0);
        assert!((-wait..0.02).contains(&(second_share - second)), "{second_share} instead of {second}, or {wait} less");
        assert!((0.0..0.02).contains(&(first_share - first)), "{first_share} instead of {first}");
    }
}

#[test]
fn a_slow_path_of_coupled_bbr_cruises_with_four_packets() {
    // A fifth of the rate: alpha is below zero. Two phases of eight at 1.25 and 0.75, six with 4 of 100 packets.
    let [first_share, second_share] = shares("coupled-bbr", Span::from_micros(500));
    assert!((first_share - 0.9615).abs() < 0.02, "(2 + 6 * 0.9487) / 8, not {first_share}");
    assert!((second_share - 0.2 * (2.0 + 6.0 * 0.04) / 8.0).abs() < 0.02, "{second_share}");
}

#[test]
fn c_mpbbr_shares_between_paths_of_similar_bandwidth_only() {
    let [first_share, second_share] = shares("c-mpbbr", Span::from_micros(100));
    assert!(
        (0.0..0.02).contains(&(first_share - 0.625)) && (0.0..0.02).contains(&(second_share - 0.625)),
        "{first_share}, {second_share}"
    );
    let [first_share, second_share] = shares("c-mpbbr", Span::from_micros(200));
    assert!((first_share - 1.0).abs() < 0.01 && (second_share - 0.5).abs() < 0.01, "{first_share}, {second_share}");
}

const COUPLED: [&str; 4] = ["lia", "olia", "balia", "dmctcp"];

fn with_bbr() -> [(&'static str, ParamValue); 1] {
    [("path", ParamValue::Choice("bbr".to_owned()))]
}

#[test]
fn with_bbr_the_coupled_window_settles_where_bbrs_probe_fits() {
    for name in COUPLED {
        let mut connection = Connection::new(name, &with_bbr(), 10, &[LINK; 2]);
        let mut probes = 0;
        for tenth in 20..250 {
            connection.run_until(Instant::ZERO + Span::from_millis(100 * tenth));
            let decision = connection.decision();
            // 20 packets times 1.25, three bursts of two, and two more; it began at 20 and the bursts.
            assert!(decision.cwnd == 4 || (26..=34).contains(&decision.cwnd), "{name}: {decision:?}");
            assert!(decision.pacing_rate.is_some() && decision.ssthresh == 26, "{name}: {decision:?}");
            probes += u32::from(decision.cwnd == 4);
        }
        assert!(probes > 0, "{name} never probed for the RTT");
    }
}

#[test]
fn with_bbr_the_total_is_that_of_the_coupling() {
    // BBR alone ignores marks and would fill the path.
    let links = [marked_link(5_000); 2];
    for name in COUPLED {
        let (single_path, with_bbr_total) =
            (total(name, &links), packets_on(name, &with_bbr(), &links).iter().sum::<f64>());
        assert!(
            (0.9..1.0 + TOLERANCE).contains(&(with_bbr_total / single_path)),
            "{name}: {with_bbr_total} of {single_path}"
        );
    }
}

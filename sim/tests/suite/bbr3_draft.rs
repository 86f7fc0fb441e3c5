//! The test cases of draft-ietf-ccwg-bbr-06's appendix ("BBR Example Test Cases") that need a network. The others are
//! beside the algorithm, in `cc/control/src/single/bbr3/tests/draft.rs`. A sender does not report its mode and filters:
//! they are seen by window and goodput. Aggregation is there from the flow's start, also in the case that has it begin
//! while cruising.

use crate::common::{OVERHEAD, column, mean, one_link, pipe, run_sampled};
use link::{GrantConfig, PipeConfig, PolicerConfig};
use scenario::model::{Change, Experiment};
use units::{Instant, Rate, Span};

const ALGORITHM: &str = "bbr3-draft";
/// Bytes of a full packet on the wire.
const WIRE: u32 = 1500 + OVERHEAD;
/// Share of the bandwidth at which a flow paces while cruising (the draft's `PacingMarginPercent`).
const PACING_SHARE: f64 = 0.99;

/// Goodput of a full link, Mbit/s.
fn full_goodput(mbit: f64) -> f64 {
    mbit * 1448.0 / f64::from(WIRE)
}

/// Runs with a sample each 100 ms.
fn sampled(experiment: Experiment) -> record::Run {
    run_sampled(experiment, Span::from_millis(100))
}

/// The flow's column between these times.
fn samples<'a>(run: &'a record::Run, name: &str, from: Span, to: Span) -> &'a [f64] {
    let [from, to] = [from, to].map(|time| time.as_nanos().div_ceil(100_000_000) as usize);
    &column(run, "flow flow", name)[from..to]
}

fn goodput(run: &record::Run, from: Span, to: Span) -> f64 {
    mean(samples(run, "goodput_mbps", from, to))
}

const RTT: Span = Span::from_millis(40);

/// 20 Mbit/s and 40 ms; acknowledgements come together each `period`.
fn aggregated(period: Span) -> record::Run {
    let mut experiment = one_link(ALGORITHM, pipe(Rate::from_mbit(20), RTT / 2, 1000), 5);
    let grants = GrantConfig { period, request: Span::ZERO };
    experiment.links[0].reverse = PipeConfig { grants: Some(grants), ..pipe(Rate::from_mbit(100), RTT / 2, 1000) };
    sampled(experiment)
}

/// Up to a round trip's acknowledgements at once. (With those of two round trips, 20 ms and a period of 40 ms, STARTUP
/// ends at three quarters of the bandwidth, and the first probe finds the rest; with Linux's rules it finds all.)
const PERIODS: [Span; 3] = [Span::from_millis(10), Span::from_millis(20), RTT];

#[test]
fn achieving_expected_startup_bandwidth_on_a_link_with_aggregation() {
    for period in PERIODS {
        let run = aggregated(period);
        let bdp = 20e6 / 8.0 / f64::from(WIRE) * run.flows[0].rtt_ms.min / 1000.0;
        // The window doubles from the initial 10 packets, each time seen a round later; before that the handshake and
        // the first round.
        let doublings = (bdp / 10.0).log2().ceil() as u64;
        let end = (RTT + period) * (2 + 2 * doublings);
        let goodput = goodput(&run, end, end + Span::from_millis(300));
        assert!(goodput >= PACING_SHARE * full_goodput(20.0), "{period}: {goodput} Mbit/s after {end}");
        let cwnd =
            samples(&run, "cwnd_packets", Span::ZERO, Span::from_secs(1)).iter().fold(0.0, |a: f64, b| a.max(*b));
        assert!(cwnd > 2.0 * bdp, "{period}: {cwnd} packets, {bdp} fill the path");
    }
}

#[test]
fn achieving_expected_cruise_bandwidth_on_a_link_with_aggregation() {
    for period in PERIODS {
        // Until the first ProbeRTT.
        let goodput = goodput(&aggregated(period), Span::from_secs(2), Span::from_secs(5));
        assert!(goodput >= PACING_SHARE * full_goodput(20.0), "{period}: {goodput} Mbit/s");
    }
}

#[test]
fn correctly_managing_sub_packet_bdps() {
    // A packet takes 192 ms, the way there and back 2 ms.
    let mut experiment = one_link(ALGORITHM, pipe(Rate::from_bits(64_000), Span::from_millis(1), 100), 60);
    experiment.links[0].reverse = pipe(Rate::from_mbit(1), Span::from_millis(1), 100);
    let run = sampled(experiment);
    // The first packets take a hundred times the round trip of the handshake, which is a timeout (of Linux's Reno, too).
    assert_eq!(run.flows[0].timeouts, 1);
    let cwnds = samples(&run, "cwnd_packets", Span::from_secs(1), Span::from_secs(60));
    assert_eq!(cwnds.iter().fold(f64::MAX, |a, b| a.min(*b)), 4.0);
    let goodput = goodput(&run, Span::from_secs(10), Span::from_secs(60));
    assert!(goodput >= PACING_SHARE * full_goodput(0.064), "{goodput} Mbit/s");
}

#[test]
fn increasing_bandwidth_10x_and_ensuring_full_bandwidth_is_reached() {
    let at = Instant::ZERO + Span::from_secs(10);
    let faster = Change { at, rate: Some(Rate::from_mbit(100)), ..Change::default() };
    let slow = pipe(Rate::from_mbit(10), RTT / 2, 333);
    let run = sampled(Experiment { events: vec![faster], ..one_link(ALGORITHM, slow, 20) });
    let goodputs = samples(&run, "goodput_mbps", Span::from_secs(10), Span::from_secs(20));
    let reached = goodputs.iter().position(|goodput| *goodput >= PACING_SHARE * full_goodput(100.0));
    // At most 3 s until the probe and a round of refill; each growth by 1.25, less the pacing margin, is seen a round
    // later.
    let growths = (10f64.ln() / (1.25 * PACING_SHARE).ln()).ceil();
    let bound = 3.0 + (1.0 + 2.0 * growths) * RTT.as_secs_f64();
    assert!(reached.is_some_and(|samples| samples as f64 * 0.1 <= bound), "{reached:?}, {bound} s: {goodputs:?}");
}

#[test]
fn handling_token_bucket_policers() {
    let policer = PolicerConfig { rate: Rate::from_mbit(10), burst: 100_000 };
    let policed = PipeConfig { policer: Some(policer), ..pipe(Rate::from_mbit(100), RTT / 2, 333) };
    let run = sampled(one_link(ALGORITHM, policed, 30));
    let [from, to] = [10, 30].map(Span::from_secs);
    // ProbeBW paces at 0.90 of the bandwidth at least; tokens count packets without the link's overhead.
    let (goodput, full) = (goodput(&run, from, to), 10.0 * 1448.0 / 1500.0);
    assert!((0.90 * full..=full).contains(&goodput), "{goodput} of {full} Mbit/s");
    let retransmitted = samples(&run, "retransmitted_packets", from, to);
    let lossy = retransmitted.iter().filter(|packets| **packets > 0.0).count();
    assert!(2 * lossy < retransmitted.len(), "loss in {lossy} of {} intervals", retransmitted.len());
}

//! Over one clean path MPTCP and QUIC get what TCP gets, whatever its rate and round trip: where a constant of theirs fits
//! the default host or a usual link only, they differ.

use crate::common::{PrintOnPanic, host, mptcp, multipath, one_link, pipe, run, set_subflows};
use scenario::model::{Experiment, MptcpStack, MultipathTransport, Quic};
use units::{Rate, RngStream, Span};

/// Seeds of this many paths; those of further ones may have more data in flight.
const SAMPLE: u64 = 12;
/// Bandwidth-delay product, bytes: from the first to the second, in the sample to the third at most.
const BDP: [f64; 3] = [10e3, 1e9, 2e6];
/// Packets of a run, at least: enough to leave slow start.
const PACKETS: u64 = 20_000;
/// Round trips of a run, at least.
const ROUNDS: u64 = 40;
/// Duration of a run, at least: 25 ticks of the host's clock.
const DURATION: Span = Span::from_millis(100);

/// Rate and round trip: up to 100 Gbit/s, 0.1 ms to 1 s.
fn draw_path(seed: u64) -> (Rate, Span) {
    let mut rng = RngStream::named(seed, "clean path");
    let mut between = |low: f64, high: f64| low * (high / low).powf(rng.below(1 << 32) as f64 / f64::from(u32::MAX));
    let bdp = between(BDP[0], if seed < SAMPLE { BDP[2] } else { BDP[1] });
    let least_rtt = (bdp * 8.0 / 100e9).max(1e-4);
    let rtt = between(least_rtt, 1.0);
    (Rate::from_bits((bdp * 8.0 / rtt) as u64), Span((rtt * 1e9) as u64))
}

/// One CUBIC flow with buffers of eight bandwidth-delay products over a queue of one.
fn experiment(rate: Rate, rtt: Span) -> Experiment {
    let bdp = rate.bytes_in(rtt);
    let mut experiment = one_link("cubic", pipe(rate, rtt / 2, (bdp / 1500).max(20)), 0);
    experiment.duration = (rtt * ROUNDS).max(rate.time_for(PACKETS * 1500)).max(DURATION);
    let host = host(&mut experiment.flows[0]);
    let size = (8 * bdp).max(8_000_000);
    host.receive_buffer.max = size;
    host.send_buffer = size;
    experiment
}

fn with_mptcp(mut experiment: Experiment, stack: MptcpStack) -> Experiment {
    set_subflows(&mut experiment.flows[0], &[0]);
    mptcp(&mut experiment.flows[0]).stack = stack;
    if stack == MptcpStack::OutOfTree {
        multipath(&mut experiment.flows[0]).scheduler.name = "minrtt".to_owned();
    }
    experiment
}

fn with_quic(mut experiment: Experiment) -> Experiment {
    set_subflows(&mut experiment.flows[0], &[0]);
    let multipath = multipath(&mut experiment.flows[0]);
    multipath.scheduler.name = "minrtt".to_owned();
    multipath.transport = MultipathTransport::Quic(Quic::default());
    experiment
}

#[test]
fn mptcp_and_quic_get_within_5_percent_of_tcp_over_any_clean_path() {
    for seed in testing::campaign(SAMPLE).range() {
        let (rate, rtt) = draw_path(seed);
        let tcp = experiment(rate, rtt);
        let print_on_panic = PrintOnPanic(seed, &tcp);
        let expected = run(&tcp).flows[0].throughput_mbps;
        let others = [
            ("upstream MPTCP", with_mptcp(tcp.clone(), MptcpStack::Upstream)),
            ("out-of-tree MPTCP", with_mptcp(tcp.clone(), MptcpStack::OutOfTree)),
            ("QUIC", with_quic(tcp.clone())),
        ];
        for (name, other) in others {
            let ratio = run(&other).flows[0].throughput_mbps / expected;
            println!("seed {seed}: {} Mbit/s, {rtt}: {name} {ratio:.3} of {expected:.1}", rate.as_mbps());
            assert!((ratio - 1.0).abs() < 0.05, "seed {seed}: {name} gets {ratio:.3} of TCP");
        }
        drop(print_on_panic);
    }
}

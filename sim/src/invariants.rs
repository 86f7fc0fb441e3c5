//! Invariants of every run of every experiment. A build with debug assertions checks them at the end of each run, and so in
//! every test, campaign and random experiment; packets are conserved (`network`) in every build, and time advances (`world`).
//!
//! - A share is between 0 and 1: utilisations, Jain's index, and the shares of flows that compete, which sum to 1.
//! - The bytes that leave a link are at most what it could carry in the same interval, plus one packet per change of its
//!   rate.

use crate::packet::PacketDescriptor;
use link::{Pipe, PipeConfig};
use record::Run;
use scenario::model::{Change, Directions, Experiment};
use units::{Instant, Span};

/// The largest packet on a link: a super-segment.
const LARGEST_PACKET: u64 = 65_536;
/// Rounding of shares.
const EPSILON: f64 = 1e-9;

/// Checks the record of a run, and the pipes that it leaves: of link `n` the pipes `2 n` forward and `2 n + 1` back.
///
/// # Panics
/// If an invariant is violated: a mistake in the simulator.
pub(crate) fn check(experiment: &Experiment, pipes: &[Pipe<PacketDescriptor>], run: &Run) {
    check_shares(run);
    for (index, pipe) in pipes.iter().enumerate().take(2 * experiment.links.len()) {
        check_capacity(experiment, index, pipe);
    }
}

fn check_shares(run: &Run) {
    let of_flows = run.flows.iter().filter_map(|flow| flow.share);
    let shares = run.paths.iter().map(|path| path.utilisation).chain(run.jain).chain(of_flows.clone());
    shares.for_each(|share| assert!((0.0..=1.0 + EPSILON).contains(&share), "a share of {share}"));
    let sum: f64 = of_flows.clone().sum();
    assert!(of_flows.count() == 0 || (sum - 1.0).abs() < EPSILON, "shares sum to {sum}");
}

fn check_capacity(experiment: &Experiment, index: usize, pipe: &Pipe<PacketDescriptor>) {
    let link = &experiment.links[index / 2];
    let config = if index.is_multiple_of(2) { &link.forward } else { &link.reverse };
    let counters = pipe.counters();
    // Copies are made behind the transmitter, of packets of any size.
    if counters.duplicated > 0 {
        return;
    }
    let left = counters.bytes_delivered + u64::from(config.overhead) * counters.delivered;
    if let Some(capacity) = capacity(config, &changes(experiment, index), experiment.duration) {
        assert!(left <= capacity, "{left} bytes left pipe {index} of {}, it carries {capacity}", link.name);
    }
}

/// The number of changes of a pipe's rate.
fn changes(experiment: &Experiment, index: usize) -> Vec<&Change> {
    let unaffected = if index.is_multiple_of(2) { Directions::Reverse } else { Directions::Forward };
    let is_of_pipe =
        |event: &&Change| event.link == index / 2 && event.directions != unaffected && event.rate.is_some();
    experiment.events.iter().filter(is_of_pipe).collect()
}

/// Bytes, overhead included, that a pipe carries in the first `span` of a run; `None` without a limit.
fn capacity(config: &PipeConfig, changes: &[&Change], span: Span) -> Option<u64> {
    let end = Instant::ZERO + span;
    if let (Some(trace), []) = (&config.trace, changes) {
        return Some(trace.bytes_until(end) + LARGEST_PACKET);
    }
    let (mut bytes, mut since, mut rate) = (LARGEST_PACKET, Instant::ZERO, config.rate?);
    for change in changes.iter().filter(|change| change.at < end) {
        bytes += rate.bytes_in(change.at.since(since)) + LARGEST_PACKET;
        (since, rate) = (change.at, change.rate.unwrap_or(rate));
    }
    Some(bytes + rate.bytes_in(end.since(since)))
}

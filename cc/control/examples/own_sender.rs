//! A congestion control without a sender: events go in by hand, and decisions come out.
//!
//!     cargo run --package ropewalk-control --example own_sender -- cubic
//!
//! A sender of packets reports the same events by `ropewalk-sender`, which measures what they contain.

use ropewalk_control::{AckSample, CaState, Cause, Context, Controller, Decision, PathEvent, PathInfo, registry};
use std::collections::BTreeMap;
use units::{Instant, PathId, RngStream, Span};

const PATH: PathId = PathId(0);
const RTT: Span = Span::from_millis(50);

/// Reports an event, and returns the decision that follows.
fn report(controller: &mut dyn Controller, now: Instant, event: &PathEvent) -> Decision {
    let mut rng = RngStream::named(1, "example");
    controller.on_event(PATH, event, &mut Context { now, rng: &mut rng });
    controller.decision(PATH)
}

/// The acknowledgement of a full window of `packets` that end before packet `snd_nxt`.
fn ack(packets: u32, snd_nxt: u64) -> AckSample {
    AckSample {
        acked: packets,
        pkts_acked: packets,
        prior_in_flight: packets,
        rtt: Some(RTT),
        srtt: RTT,
        min_rtt: RTT,
        delivered: snd_nxt,
        snd_una: snd_nxt,
        snd_nxt,
        una_advanced: true,
        cwnd_limited: true,
        may_raise_cwnd: true,
        ..AckSample::default()
    }
}

/// The windows at the start and after each of three round trips, and after a timeout.
fn windows(name: &str) -> Option<Vec<u32>> {
    let mut controller = registry::find(name)?.controller(&BTreeMap::new()).ok()?;
    let mut now = Instant::ZERO;
    let mut decision = report(&mut *controller, now, &PathEvent::PathUp(PathInfo::DEFAULT));
    let (mut windows, mut snd_nxt) = (vec![decision.cwnd], 0);
    for _ in 0..3 {
        now += RTT;
        snd_nxt += u64::from(decision.cwnd);
        decision = report(&mut *controller, now, &PathEvent::Ack(ack(decision.cwnd, snd_nxt)));
        windows.push(decision.cwnd);
    }
    let cause = Cause::Timeout;
    let timeout = PathEvent::Congestion { cause, reduce_cwnd: true, in_flight: 0, by_timer: true };
    report(&mut *controller, now, &timeout);
    let sample = AckSample { prior_ca_state: CaState::Loss, ca_state: CaState::Open, ..ack(1, snd_nxt) };
    windows.push(report(&mut *controller, now + RTT, &PathEvent::Ack(sample)).ssthresh);
    Some(windows)
}

fn main() {
    let name = std::env::args().nth(1).unwrap_or_else(|| "reno".to_owned());
    match windows(&name) {
        Some(windows) => println!("{name}: windows {:?}, threshold after a timeout {}", &windows[..4], windows[4]),
        None => println!("no algorithm `{name}` without a file"),
    }
}

#[test]
fn reno_doubles_and_halves() {
    assert_eq!(windows("reno"), Some(vec![10, 20, 40, 80, 40]));
}

#[test]
fn a_name_that_is_not_registered_gives_nothing() {
    assert_eq!(windows("no-such"), None);
}

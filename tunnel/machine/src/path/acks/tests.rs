//! The events of a path's controller, and what an undo gives back.

use super::*;
use crate::path::{DatagramData, PathConfig};
use control::{Context, Controller, Decision, PathEvent, registry};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use units::{INFINITE_SSTHRESH, PathId, RngStream, Span};
use wire::frame::AckRanges;

/// Notes which signs of congestion, undos and ends of periods it sees.
#[derive(Clone, Debug, Default)]
struct Witness(Arc<Mutex<Vec<&'static str>>>);

impl Controller for Witness {
    fn on_event(&mut self, _: PathId, event: &PathEvent, _: &mut Context<'_>) {
        let name = match event {
            PathEvent::Congestion { cause: Cause::Loss, .. } => "loss",
            PathEvent::Congestion { cause: Cause::EcnMark, .. } => "mark",
            PathEvent::SpuriousLoss => "undo",
            PathEvent::Recovered { .. } => "end",
            _ => return,
        };
        self.0.lock().expect("no test panicked").push(name);
    }

    fn decision(&self, _: PathId) -> Decision {
        Decision { cwnd: 1000, ssthresh: INFINITE_SSTHRESH, pacing_rate: None }
    }
}

/// A path whose packets are sent a millisecond apart, and acknowledged after 40 ms.
struct Sender {
    path: TunnelPath,
    handle: ControllerHandle,
    outcomes: FragmentOutcomes,
    now: Instant,
    ce_count: u32,
}

impl Sender {
    fn new(controller: Box<dyn Controller>) -> Self {
        let mut sender = Self {
            path: TunnelPath::new(PathId(0), PathConfig::regular(1472, 28), 0),
            handle: ControllerHandle { controller: Some(controller), rng: RngStream::named(1, "test") },
            outcomes: FragmentOutcomes::default(),
            now: Instant::ZERO + Span::from_secs(1),
            ce_count: 0,
        };
        sender.path.on_validated(sender.now, Span::from_millis(40), &mut sender.handle);
        sender
    }

    fn witnessed() -> (Self, Witness) {
        let witness = Witness::default();
        (Self::new(Box::new(witness.clone())), witness)
    }

    fn send(&mut self, packets: u64) {
        for _ in 0..packets {
            let next = self.path.next_packet_number();
            self.path.send(self.now, &DatagramData::single(next, 1000), &mut self.handle);
            self.now += Span::from_millis(1);
        }
    }

    /// Acknowledges all packets but these, up to `largest`, in ranges of which some are empty.
    fn ack_without(&mut self, missing: &[u32], largest: u32) {
        let mut ranges = AckRanges::default();
        let mut end = largest + 1;
        for missing in missing.iter().rev() {
            ranges.push(1, end - missing - 1);
            end = *missing;
        }
        ranges.push(1, end);
        let ce_count = self.ce_count;
        let ack = Ack { path: 0, largest, ack_delay_us: 0, receive_timestamp_us: 0, ce_count, ranges };
        assert!(self.path.on_ack(self.now, &ack, &mut self.outcomes, &mut self.handle));
    }
}

fn seen(witness: &Witness) -> Vec<&'static str> {
    std::mem::take(&mut witness.0.lock().expect("no test panicked"))
}

#[test]
fn a_reduction_is_undone_when_the_last_of_its_losses_arrives() {
    let (mut sender, witness) = Sender::witnessed();
    sender.send(10);
    sender.ack_without(&[0, 1, 2], 9);
    assert_eq!(seen(&witness), ["loss"]);
    sender.ack_without(&[1], 9);
    assert_eq!(seen(&witness), ["end"], "nothing is in flight, and packet 1 is missing");
    sender.ack_without(&[], 9);
    assert_eq!(seen(&witness), ["undo"]);
    sender.ack_without(&[], 9);
    assert!(seen(&witness).is_empty());
}

#[test]
fn a_reduction_stays_when_one_loss_was_real_or_a_mark_came_too() {
    let (mut sender, witness) = Sender::witnessed();
    sender.send(10);
    sender.ack_without(&[0, 1, 2], 9);
    sender.ce_count = 1;
    sender.send(1);
    sender.ack_without(&[1], 10);
    sender.ack_without(&[], 10);
    assert_eq!(seen(&witness), ["loss", "end", "mark", "end"]);
}

/// RFC 9002, section 7.3.1: a period is over when a packet sent during it is acknowledged, and its losses are one sign.
#[test]
fn losses_of_packets_sent_before_the_reduction_are_the_same_period() {
    let (mut sender, witness) = Sender::witnessed();
    sender.send(20);
    sender.ack_without(&[0], 5);
    sender.ack_without(&[0, 6, 7], 12);
    sender.send(10);
    sender.ack_without(&[0, 6, 7], 19);
    assert_eq!(seen(&witness), ["loss", "end"]);
    sender.ack_without(&[0, 6, 7, 20], 29);
    assert_eq!(seen(&witness), ["loss"]);
}

#[test]
fn what_two_periods_lost_is_undone_for_the_later_one_only() {
    let (mut sender, witness) = Sender::witnessed();
    sender.send(10);
    sender.ack_without(&[0], 9);
    sender.send(10);
    sender.ack_without(&[0, 10], 19);
    assert_eq!(seen(&witness), ["loss", "end", "loss"]);
    sender.ack_without(&[10], 19);
    assert_eq!(seen(&witness), ["end"], "the window was reduced again since");
    sender.ack_without(&[], 19);
    assert_eq!(seen(&witness), ["undo"]);
}

#[test]
fn late_packets_cost_an_algorithm_that_answers_losses_nothing() {
    for name in ["reno", "cubic", "discern"] {
        let entry = registry::find(name).expect("registered");
        let mut sender = Sender::new(entry.controller(&BTreeMap::new()).expect("defaults are allowed"));
        sender.send(20);
        sender.ack_without(&[0], 3);
        sender.ack_without(&[0, 4, 5, 6, 7, 8], 19);
        let reduced = sender.path.sender.decision();
        sender.ack_without(&[], 19);
        let undone = sender.path.sender.decision();
        assert!(undone.cwnd >= 10 && undone.ssthresh == INFINITE_SSTHRESH, "{name}: {undone:?} after {reduced:?}");
    }
}

//! Careful Resume against the rules and examples of its RFC.

use super::*;
use crate::single::reno::Reno;
use crate::single::testing::{ack_sample, context_with, path};
use crate::{CaState, ParamValue, single};
use units::{INFINITE_SSTHRESH, RngStream};

const RTT: Span = Span::from_millis(100);

/// A sender over 100 ms that once had a window of 300 packets there, as in RFC 9959, appendix B.
struct Flow {
    controller: CarefulResume<Reno>,
    now: Instant,
    una: u64,
    delivered: u64,
    nxt: u64,
    lost: u64,
    ca_state: CaState,
}

impl Flow {
    fn new(saved_rtt: Span) -> Self {
        let controller = CarefulResume::new(Reno, 300, saved_rtt);
        let mut flow =
            Self { controller, now: Instant::ZERO, una: 0, delivered: 0, nxt: 10, lost: 0, ca_state: CaState::Open };
        flow.event(&PathEvent::PathUp(path(10, None)));
        flow
    }

    fn event(&mut self, event: &PathEvent) {
        self.controller.on_event(event, &mut context_with(self.now.as_millis(), &mut RngStream::named(1, "test")));
    }

    fn in_flight(&self) -> u32 {
        (self.nxt - self.delivered - self.lost) as u32
    }

    fn acks(&mut self, packets: u32) {
        self.ack_with(packets, |_| {});
    }

    /// One acknowledgement of so many packets.
    fn ack_with(&mut self, packets: u32, change: impl Fn(&mut AckSample)) {
        let prior_in_flight = self.in_flight();
        self.delivered += u64::from(packets);
        if self.lost == 0 {
            self.una = self.delivered;
        }
        let mut sample = AckSample {
            acked: packets,
            delivered: self.delivered,
            prior_in_flight,
            in_flight: self.in_flight(),
            rtt: Some(RTT),
            srtt: RTT,
            snd_una: self.una,
            snd_nxt: self.nxt,
            una_advanced: self.lost == 0,
            cwnd_limited: true,
            may_raise_cwnd: true,
            ca_state: self.ca_state,
            ..AckSample::default()
        };
        change(&mut sample);
        self.event(&PathEvent::Ack(sample));
    }

    /// Appendix B.1: 29 packets are in flight when the initial window is acknowledged.
    fn confirmed() -> Self {
        let mut flow = Self::new(RTT);
        flow.nxt = 39;
        flow.acks(10);
        assert_eq!((flow.cwnd(), flow.in_flight()), (150, 29), "half of the saved window");
        flow
    }

    /// A packet is lost, and found lost or marked.
    fn congestion(&mut self, cause: Cause) {
        let in_flight = self.in_flight();
        self.event(&PathEvent::Congestion { cause, reduce_cwnd: true, in_flight, by_timer: false });
        self.ca_state = match cause {
            Cause::Loss => CaState::Recovery,
            Cause::Timeout => CaState::Loss,
            _ => CaState::Cwr,
        };
    }

    /// The acknowledgement that ends recovery.
    fn recovered(&mut self) {
        (self.una, self.lost, self.ca_state) = (self.nxt, 0, CaState::Open);
        self.delivered = self.nxt - 1;
        self.event(&PathEvent::Recovered { to_ssthresh: true });
        self.ack_with(1, |sample| {
            let prior_delivered = sample.delivered - 1;
            sample.rate_sample = ack_sample(1, sample.delivered, prior_delivered, RTT).rate_sample;
        });
    }

    fn cwnd(&self) -> u32 {
        self.controller.decision().cwnd
    }

    fn ssthresh(&self) -> u32 {
        self.controller.decision().ssthresh
    }
}

#[test]
fn the_rfcs_example_without_loss() {
    let mut flow = Flow::confirmed();
    let pacing_rate = Rate::of(150 * 1448, RTT);
    assert_eq!(flow.controller.decision().pacing_rate, Some(pacing_rate), "paced over the present RTT");
    flow.nxt += 120;
    flow.acks(28);
    assert_eq!(flow.cwnd(), 150, "no increase while packets are unvalidated");
    flow.acks(1);
    assert!(matches!(flow.controller.phase, Phase::Unvalidated { .. }));
    flow.acks(1);
    let end = End { snd_nxt: 159, delivered: 40 };
    let validating = Phase::Validating { pipe: Pipe { flight_size: 29, acked: 30 }, end };
    assert_eq!(flow.controller.phase, validating, "packet 40, the first of the unvalidated ones");
    assert_eq!((flow.cwnd(), flow.controller.decision().pacing_rate), (119, None), "what is in flight");
    flow.acks(118);
    assert_eq!(flow.cwnd(), 119 + 118, "slow start");
    flow.acks(1);
    assert_eq!((flow.controller.phase, flow.cwnd(), flow.ssthresh()), (Phase::Normal, 238, INFINITE_SSTHRESH));
}

#[test]
fn a_full_window_in_flight_ends_the_unvalidated_phase() {
    let mut flow = Flow::confirmed();
    flow.nxt += 121;
    flow.acks(1);
    assert!(matches!(flow.controller.phase, Phase::Validating { end: End { snd_nxt: 160, .. }, .. }));
}

#[test]
fn an_rtt_ends_the_unvalidated_phase() {
    let mut flow = Flow::confirmed();
    flow.nxt += 60;
    for (ms, ended) in [(100, false), (101, true)] {
        flow.now = Instant::ZERO + Span::from_millis(ms);
        flow.acks(1);
        assert_eq!(matches!(flow.controller.phase, Phase::Validating { .. }), ended, "{ms} ms");
    }
}

/// Appendix B.2 sends 50 packets, and validates them; with no more than what has proved itself there is
/// nothing to validate.
#[test]
fn a_rate_limited_sender_keeps_the_window_that_it_used() {
    for (unvalidated, cwnd, is_normal) in [(50, 49, false), (32, 31, false), (31, 30, true), (5, 30, true)] {
        let mut flow = Flow::confirmed();
        flow.nxt += unvalidated;
        flow.acks(29);
        flow.acks(1);
        assert_eq!((flow.cwnd(), flow.controller.phase == Phase::Normal), (cwnd, is_normal), "{unvalidated}");
    }
}

#[test]
fn the_rfcs_example_of_a_loss() {
    for cause in [Cause::Loss, Cause::EcnMark] {
        let mut flow = Flow::confirmed();
        flow.nxt += 121;
        flow.acks(29 + 34);
        flow.lost = 1;
        flow.congestion(cause);
        assert_eq!(flow.cwnd(), 31, "half of 29 and 34 packets");
        flow.acks(50);
        flow.acks(36);
        assert_eq!(flow.cwnd(), 31, "no increase, and no proportional rate reduction");
        flow.recovered();
        assert_eq!((flow.cwnd(), flow.ssthresh()), (31, 149 / 2), "all but the one that was sent again");
        flow.nxt += 10;
        flow.acks(5);
        assert_eq!(flow.cwnd(), 36, "slow start to the threshold");
    }
}

#[test]
fn a_loss_before_the_jump_is_validated_is_half_of_what_was_in_flight() {
    let mut flow = Flow::confirmed();
    flow.nxt += 60;
    flow.lost = 1;
    flow.congestion(Cause::Loss);
    assert_eq!(flow.cwnd(), 29 / 2);
}

#[test]
fn an_rtt_of_half_the_saved_one_is_another_path() {
    let mut flow = Flow::confirmed();
    flow.nxt += 60;
    flow.ack_with(1, |sample| sample.rtt = Some(RTT / 2));
    assert!(matches!(flow.controller.phase, Phase::SafeRetreat { cwnd: 14, end: Some(End { snd_nxt: 99, .. }), .. }));
    flow.acks(88);
    assert_eq!((flow.controller.phase, flow.cwnd(), flow.ssthresh()), (Phase::Normal, 14, 89 / 2));
}

#[test]
fn a_timeout_ends_careful_resume() {
    let mut flow = Flow::confirmed();
    flow.nxt += 60;
    flow.congestion(Cause::Timeout);
    assert_eq!((flow.controller.phase, flow.ssthresh()), (Phase::Normal, 75), "Reno's");
}

#[test]
fn reconnaissance_refuses_other_paths_and_congestion() {
    let jumps = |saved_ms: u64, congestion: bool| {
        let mut flow = Flow::new(Span::from_millis(saved_ms));
        if congestion {
            flow.congestion(Cause::EcnMark);
            flow.event(&PathEvent::Recovered { to_ssthresh: true });
            flow.ca_state = CaState::Open;
        }
        flow.acks(10);
        flow.acks(0);
        flow.cwnd() == 150
    };
    assert_eq!([9, 10, 100, 199, 200].map(|ms| jumps(ms, false)), [false, true, true, true, false]);
    assert!(!jumps(100, true));
}

#[test]
fn reconnaissance_waits_for_the_initial_window_and_for_data() {
    let mut flow = Flow::new(RTT);
    flow.acks(9);
    assert_eq!(flow.cwnd(), 19);
    flow.ack_with(1, |sample| sample.cwnd_limited = false);
    assert_eq!(flow.cwnd(), 19);
    flow.nxt += 19;
    flow.acks(1);
    assert_eq!(flow.cwnd(), 150);
}

#[test]
fn saved_values_are_for_one_use() {
    let mut flow = Flow::confirmed();
    flow.event(&PathEvent::PathUp(path(10, None)));
    flow.acks(10);
    assert_eq!(flow.cwnd(), 20);
}

#[test]
fn a_saved_window_below_the_present_one_changes_nothing() {
    let mut flow = Flow::new(RTT);
    flow.controller.jump_cwnd = 20;
    flow.acks(10);
    assert_eq!((flow.cwnd(), flow.controller.phase), (20, Phase::Normal));
}

#[test]
fn both_values_or_none_are_given() {
    let checked = |given: &[(&str, f64)]| {
        let given = given.iter().map(|(name, value)| ((*name).to_owned(), ParamValue::Number(*value))).collect();
        let params = Params::new(single::cubic::ENTRY.parameters, &given).expect("within their ranges");
        check(&params).map_err(|error| error.key)
    };
    assert_eq!(checked(&[]), Ok(()));
    assert_eq!(checked(&[("saved_cwnd", 300.0), ("saved_rtt_ms", 100.0)]), Ok(()));
    assert_eq!(checked(&[("saved_cwnd", 300.0)]), Err("saved_cwnd".to_owned()));
    assert_eq!(checked(&[("saved_rtt_ms", 100.0)]), Err("saved_rtt_ms".to_owned()));
}

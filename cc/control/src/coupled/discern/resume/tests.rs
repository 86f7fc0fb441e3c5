//! Resuming against the rules of RFC 9959 and the numbers of its appendix B.

use super::*;
use crate::single::testing::path;

const RTT: f64 = 0.1;

/// A path over 100 ms that once had 300 packets in flight there (RFC 9959, appendix B).
struct Flow {
    resume: Resume,
    window: Window,
    now: Instant,
    una: u64,
    nxt: u64,
}

impl Flow {
    fn new(saved_cwnd: f64, saved_base: f64) -> Self {
        let saved = Saved { cwnd: saved_cwnd, base: saved_base, at: Instant::ZERO };
        let resume = Resume::new(Some(saved), Instant::ZERO);
        Self { resume, window: Window::new(&path(10, None), 1.0), now: Instant::ZERO, una: 0, nxt: 10 }
    }

    /// Acknowledges so many packets; returns the window.
    fn ack(&mut self, packets: u32) -> f64 {
        let prior_in_flight = (self.nxt - self.una) as u32;
        self.una += u64::from(packets);
        let sample = AckSample {
            acked: packets,
            prior_in_flight,
            in_flight: (self.nxt - self.una) as u32,
            snd_una: self.una,
            snd_nxt: self.nxt,
            cwnd_limited: true,
            ..AckSample::default()
        };
        self.resume.on_ack(&sample, RTT, RTT, &mut self.window, self.now);
        self.window.cwnd
    }

    /// The window is reduced, and an acknowledgement of one packet follows.
    fn congestion(&mut self) -> f64 {
        self.now += Span::from_millis(1);
        self.window.reduce(0.7, self.now);
        let window = self.ack(1);
        self.now += Span::from_millis(1);
        window
    }

    /// Appendix B.1: 29 packets are in flight when the initial window is acknowledged.
    fn jumped() -> Self {
        let mut flow = Self::new(300.0, RTT);
        flow.nxt = 39;
        assert_eq!(flow.ack(10), 150.0, "half of the saved window");
        assert!(flow.resume.is_unvalidated() && flow.resume.holds());
        flow
    }
}

#[test]
fn before_the_initial_window_is_acknowledged_slow_start_goes_on() {
    let mut flow = Flow::new(300.0, RTT);
    assert_eq!((flow.ack(9), flow.resume.holds()), (10.0, false));
    assert_eq!(flow.ack(1), 150.0);
}

#[test]
fn a_round_trip_of_half_or_of_more_than_ten_times_is_another_path() {
    let window = |saved_base| Flow::new(300.0, saved_base).ack(10);
    assert_eq!([RTT / 10.0, RTT / 10.1, RTT * 1.99, RTT * 2.0].map(window), [150.0, 10.0, 150.0, 10.0]);
}

#[test]
fn a_window_that_is_reached_already_is_not_resumed() {
    assert_eq!([20.0, 22.0].map(|saved| Flow::new(saved, RTT).ack(10)), [10.0, 11.0]);
}

#[test]
fn what_was_measured_five_minutes_ago_is_forgotten() {
    let saved = Saved { cwnd: 300.0, base: RTT, at: Instant::ZERO };
    let is_resumed = |seconds| Resume::new(Some(saved), Instant::ZERO + Span::from_secs(seconds)).unused().is_some();
    assert_eq!([299, 300].map(is_resumed), [true, false]);
}

#[test]
fn without_congestion_it_ends_when_the_unvalidated_packets_are_acknowledged() {
    let mut flow = Flow::jumped();
    flow.nxt = 160;
    assert_eq!(flow.ack(29), 121.0, "what is in flight");
    assert!(!flow.resume.holds(), "it validates");
    flow.ack(120);
    assert!(matches!(flow.resume.0, Phase::Validating { .. }));
    flow.ack(1);
    assert!(matches!(flow.resume.0, Phase::Normal));
}

#[test]
fn an_application_that_sends_no_more_goes_on_from_what_was_carried() {
    let mut flow = Flow::jumped();
    flow.now += Span::from_millis(100);
    assert_eq!(flow.ack(10), 29.0, "19 are in flight, 29 were");
    assert!(matches!(flow.resume.0, Phase::Normal));
}

/// RFC 9959, section 3.4: half of PipeSize, until all unvalidated packets are acknowledged.
#[test]
fn congestion_retreats_to_half_of_what_was_carried_and_stays_there() {
    let mut flow = Flow::jumped();
    flow.nxt = 160;
    flow.ack(29);
    flow.ack(20);
    assert_eq!(flow.congestion(), 25.0, "half of 29 + 20 + 1");
    assert_eq!((flow.window.threshold(), flow.window.w_max()), (25, 50.0));
    assert!(flow.resume.holds());
    flow.ack(99);
    assert!(flow.resume.holds(), "packet 159 is in flight");
    flow.ack(1);
    assert!(!flow.resume.holds());
}

#[test]
fn congestion_before_the_window_was_raised_leaves_all_to_the_algorithm() {
    let mut flow = Flow::new(300.0, RTT);
    assert_eq!(flow.congestion(), 7.0);
    assert_eq!(flow.ack(9), 7.0);
    assert!(flow.resume.unused().is_none());
}

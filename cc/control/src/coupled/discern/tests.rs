//! Paths of a connection under losses with and without delay.

use super::*;
use crate::single::testing::{context_with, path};
use crate::{AckSample, CaState, Cause};
use std::collections::BTreeMap;
use units::{RngStream, Span};

const BASE_MS: f64 = 40.0;

/// A connection whose paths are acknowledged packet by packet.
struct Connection {
    controller: Discern,
    rng: RngStream,
    now: Instant,
}

impl Connection {
    fn new(paths: u16) -> Self {
        let params = Params::new(ENTRY.parameters, &BTreeMap::new()).expect("defaults are allowed");
        let mut connection =
            Self { controller: Discern::new(&params), rng: RngStream::named(1, "test"), now: Instant::ZERO };
        (0..paths).for_each(|id| connection.event(id, &PathEvent::PathUp(path(10, None))));
        connection
    }

    /// Paths in congestion avoidance at a window of so many packets, with a base RTT of 40 ms and no queue.
    fn established(paths: u16, cwnd: f64) -> Self {
        let mut connection = Self::new(paths);
        for id in 0..paths {
            (0..8).for_each(|_| connection.ack(id, 1, 0, 0.0));
            let state = connection.controller.paths[usize::from(id)].as_mut().expect("it is up");
            (state.window.cwnd, state.window.ssthresh) = (cwnd, 2.0);
            connection.ack(id, 0, 0, 0.0);
        }
        connection
    }

    fn event(&mut self, id: u16, event: &PathEvent) {
        let millis = self.now.as_millis();
        self.controller.on_event(PathId(id), event, &mut context_with(millis, &mut self.rng));
    }

    /// An acknowledgement with a queueing delay in milliseconds, on a path whose window is full.
    fn ack(&mut self, id: u16, acked: u32, lost: u32, queueing_ms: f64) {
        let rtt = Span::from_secs_f64((BASE_MS + queueing_ms) / 1e3);
        let in_flight = self.controller.decision(PathId(id)).cwnd;
        self.event(
            id,
            &PathEvent::Ack(AckSample {
                acked,
                lost,
                in_flight,
                prior_in_flight: in_flight,
                rtt: Some(rtt),
                srtt: rtt,
                rto: Span::from_secs(1),
                last_sent: self.now,
                may_raise_cwnd: true,
                cwnd_limited: true,
                ..AckSample::default()
            }),
        );
    }

    fn wait(&mut self, millis: u64) {
        self.now += Span::from_millis(millis);
    }

    fn cwnd(&self, id: u16) -> u32 {
        self.controller.decision(PathId(id)).cwnd
    }

    fn loss_begins(&mut self, id: u16) {
        let in_flight = self.cwnd(id);
        let (cause, reduce_cwnd, by_timer) = (Cause::Loss, true, false);
        self.event(id, &PathEvent::Congestion { cause, reduce_cwnd, in_flight, by_timer });
    }

    /// A loss while the latest samples have a queueing delay.
    fn loss_with_delay(&mut self, id: u16) {
        (0..4).for_each(|_| self.ack(id, 0, 0, 20.0));
        self.loss_begins(id);
        self.ack(id, 0, 1, 20.0);
    }
}

#[test]
fn a_loss_with_delay_leaves_seven_tenths_once_a_round_trip() {
    let mut connection = Connection::established(1, 100.0);
    let mut after = |millis| {
        connection.wait(millis);
        connection.loss_with_delay(0);
        connection.cwnd(0)
    };
    assert_eq!([0, 30, 29, 10].map(&mut after), [70, 70, 70, 49], "a round trip is 60 ms");
}

#[test]
fn few_losses_without_delay_are_congestion() {
    let mut connection = Connection::established(1, 100.0);
    connection.ack(0, 0, 1, 0.0);
    assert_eq!(connection.cwnd(0), 70);
}

#[test]
fn a_spurious_loss_gives_back_window_and_threshold_and_is_forgotten() {
    let mut connection = Connection::established(1, 100.0);
    connection.loss_with_delay(0);
    let reduced = connection.controller.decision(PathId(0));
    assert_eq!((reduced.cwnd, reduced.ssthresh), (70, 70));
    connection.event(0, &PathEvent::SpuriousLoss);
    assert_eq!(connection.cwnd(0), 100);
}

#[test]
fn a_mark_leaves_0_85_and_is_not_undone() {
    let mut connection = Connection::established(1, 100.0);
    let (cause, reduce_cwnd, by_timer) = (Cause::EcnMark, true, false);
    connection.event(0, &PathEvent::Congestion { cause, reduce_cwnd, in_flight: 100, by_timer });
    assert_eq!(connection.cwnd(0), 85, "RFC 8511");
    connection.event(0, &PathEvent::SpuriousLoss);
    assert_eq!(connection.cwnd(0), 85);
}

#[test]
fn a_mark_counts_during_recovery_too() {
    let mut connection = Connection::established(1, 100.0);
    let mut mark = || {
        let rtt = Span::from_millis(40);
        let (srtt, ca_state) = (rtt, CaState::Recovery);
        let sample = AckSample { acked: 1, marked: 1, rtt: Some(rtt), srtt, ca_state, ..AckSample::default() };
        connection.event(0, &PathEvent::Ack(sample));
        connection.wait(1);
        connection.cwnd(0)
    };
    let windows: Vec<u32> = (0..100).map(|_| mark()).collect();
    assert_eq!([0, 80, 81, 99].map(|ack| windows[ack]), [85, 85, 72, 72], "the echo lasts for another round trip");
}

/// 0.08 * 100 + 2 sqrt(8) + 2 = 15.7 of a round's hundred packets.
#[test]
fn more_than_8_percent_and_its_deviation_is_congestion_whatever_the_delay() {
    let after = |lost| {
        let mut connection = Connection::new(1);
        (0..8).for_each(|_| connection.ack(0, 0, 0, 0.0));
        connection.controller.paths[0].as_mut().expect("it is up").window.cwnd = 100.0;
        connection.ack(0, 100 - lost, lost, 0.0);
        connection.controller.decision(PathId(0)).ssthresh < 200
    };
    assert_eq!([15, 16].map(after), [false, true]);
}

/// Whether two paths are coupled after 10 s of queueing delays that move together or do not.
fn are_coupled(is_together: bool) -> bool {
    let mut connection = Connection::established(2, 100.0);
    for tick in 0..200u32 {
        connection.wait(50);
        let first = tick * tick % 7;
        let queues = [first, if is_together { first } else { tick % 5 }];
        for (id, queue) in [0, 1].into_iter().zip(queues) {
            (0..4).for_each(|_| connection.ack(id, 1, 0, f64::from(queue)));
        }
    }
    connection.controller.sharing(0, connection.now).count() == 1
}

#[test]
fn paths_are_coupled_where_their_delays_move_together() {
    assert_eq!([true, false].map(are_coupled), [true, false]);
}

#[test]
fn a_loss_with_delay_on_one_path_of_a_bottleneck_reduces_the_other_once_it_sees_the_queue() {
    let after = |millis: u64, queueing_ms: f64| {
        let mut connection = Connection::established(2, 100.0);
        connection.wait(100);
        connection.loss_with_delay(0);
        connection.wait(millis);
        (0..4).for_each(|_| connection.ack(1, 0, 0, queueing_ms));
        [connection.cwnd(0), connection.cwnd(1)]
    };
    assert_eq!([after(0, 20.0), after(39, 20.0)], [[70, 70]; 2]);
    assert_eq!(after(0, 1.0), [70, 100], "its packets have met no queue");
    assert_eq!(after(61, 20.0), [70, 100], "a round trip ago");
}

/// The pacing rate once the RTT is 40 ms again, where the smoothed one still is 80 ms.
#[test]
fn pacing_follows_a_queue_that_drains_at_once() {
    let mut connection = Connection::established(1, 100.0);
    let [rtt, srtt] = [40, 80].map(Span::from_millis);
    connection.event(0, &PathEvent::Ack(AckSample { rtt: Some(rtt), srtt, ..AckSample::default() }));
    let bits = 1.2 * 100.0 * f64::from(path(10, None).mss) * 8.0;
    let rate = connection.controller.decision(PathId(0)).pacing_rate.expect("there is a round trip");
    assert_eq!(rate.as_bits(), (bits / 0.04) as u64);
}

/// A loss while the RTT has 20 ms of queue: of that, so much is on the way back.
#[test]
fn a_queue_on_the_way_of_acknowledgements_is_no_sign_of_congestion() {
    let after = |return_ms: u64| {
        let mut connection = Connection::established(1, 100.0);
        let (rtt, return_queueing) = (Span::from_millis(60), Span::from_millis(return_ms));
        let sample = AckSample { rtt: Some(rtt), srtt: rtt, return_queueing, ..AckSample::default() };
        (0..4).for_each(|_| connection.event(0, &PathEvent::Ack(sample)));
        connection.controller.paths[0].as_ref().expect("it is up").queueing()
    };
    assert_eq!([0, 15, 20].map(|ms| (after(ms) * 1e3).round()), [20.0, 5.0, 0.0]);
}

#[test]
fn a_path_that_is_down_is_no_sibling_and_one_that_comes_up_again_is_new() {
    let mut connection = Connection::established(2, 100.0);
    assert_eq!(connection.controller.sharing(0, connection.now).count(), 1);
    connection.event(1, &PathEvent::PathDown);
    assert_eq!(connection.controller.sharing(0, connection.now).count(), 0);
    connection.event(1, &PathEvent::PathUp(path(10, None)));
    assert_eq!(connection.cwnd(1), 10);
}

/// The window when ten packets of a path are acknowledged that has come up again, and the pacing rate in packets a round trip.
fn resumed(resume: &str, rtt_ms: f64) -> (u32, f64) {
    let given = BTreeMap::from([("resume".to_owned(), crate::ParamValue::Choice(resume.to_owned()))]);
    let mut connection = Connection::established(1, 100.0);
    connection.controller.config = Config::new(&Params::new(ENTRY.parameters, &given).expect("allowed"));
    connection.event(0, &PathEvent::PathDown);
    connection.event(0, &PathEvent::PathUp(path(10, None)));
    connection.ack(0, 10, 0, rtt_ms - BASE_MS);
    let decision = connection.controller.decision(PathId(0));
    let bytes = decision.pacing_rate.expect("there is a round trip").as_bits() as f64 / 8.0 * rtt_ms / 1e3;
    (decision.cwnd, (bytes / f64::from(path(10, None).mss)).round())
}

#[test]
fn a_path_that_comes_up_again_resumes_half_of_its_window_paced_over_a_round_trip() {
    assert_eq!(resumed("on", 40.0), (50, 50.0), "half of 100");
    assert_eq!(resumed("off", 40.0), (20, 40.0), "slow start, paced at twice the window");
    assert_eq!(resumed("on", 20.0), (20, 40.0), "another path");
}

#[test]
fn a_path_whose_window_was_not_used_resumes_what_was() {
    let mut connection = Connection::established(1, 100.0);
    connection.controller.paths[0].as_mut().expect("it is up").window.cwnd = 1000.0;
    connection.event(0, &PathEvent::PathDown);
    connection.event(0, &PathEvent::PathUp(path(10, None)));
    connection.ack(0, 10, 0, 0.0);
    assert_eq!(connection.cwnd(0), 50, "100 were in flight");
}

use super::*;
use crate::recovery::PendingRateSample;
use std::sync::{Arc, Mutex};

const INITIAL_CWND: u32 = 10;

fn millis(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

/// A path without a controller: its window stays what it was.
fn path() -> (PathSender, ControllerHandle) {
    let handle = ControllerHandle { controller: None, rng: RngStream::named(1, "path") };
    (PathSender::new(PathId(0), INITIAL_CWND, Span::from_secs(1)), handle)
}

fn outstanding(in_flight: u32, snd_una: u64, snd_nxt: u64) -> Outstanding {
    Outstanding { in_flight, packets_out: in_flight, sacked: 0, snd_una, snd_nxt }
}

#[test]
fn the_default_pacing_rate_is_linuxs_multiple_of_cwnd_over_srtt() {
    let (mut path, _) = path();
    assert_eq!(path.pacing_rate(1250, 0), Rate(0), "no RTT sample");
    path.update_rtt(Span::from_millis(100), 0, 1);
    // 10 packets of 10 000 bits in 100 ms are 1 Mbit/s: twice as fast in slow start.
    assert_eq!(path.pacing_rate(1250, 0), Rate::from_mbit(2));
    path.decision.ssthresh = INITIAL_CWND;
    assert_eq!(path.pacing_rate(1250, 0).as_bits(), 1_200_000);
    assert_eq!(path.pacing_rate(1250, 20).as_bits(), 2_400_000, "more is outstanding than the window allows");
}

#[test]
fn a_loss_in_cwr_continues_the_reduction() {
    let (mut path, mut handle) = path();
    path.enter_reduction(millis(1), Cause::EcnMark, false, CaState::Cwr, &outstanding(10, 0, 10), &mut handle);
    path.enter_reduction(millis(2), Cause::Loss, false, CaState::Recovery, &outstanding(10, 5, 15), &mut handle);
    assert_eq!((path.ca_state(), path.high_seq()), (CaState::Recovery, 10));
    path.leave_reduction(millis(3), true, &mut handle);
    assert_eq!(path.ca_state(), CaState::Open);
}

#[test]
fn a_full_window_is_cwnd_limited() {
    let (mut path, mut handle) = path();
    let mut round = |in_flight, snd_una, snd_nxt| {
        path.on_sent(millis(1), false, in_flight, 1);
        let cwnd_full = path.validate_cwnd(millis(1), &outstanding(in_flight, snd_una, snd_nxt), None, &mut handle);
        (cwnd_full, path.cwnd_validation.is_cwnd_limited(INITIAL_CWND, false))
    };
    assert_eq!(round(10, 0, 10), (true, true));
    assert_eq!(round(4, 6, 10), (false, true), "still the same window");
    assert_eq!(round(4, 10, 14), (false, false));
}

/// Notes the names of its events.
#[derive(Debug, Default)]
struct Noting(Arc<Mutex<Vec<&'static str>>>);

impl control::Controller for Noting {
    fn on_event(&mut self, _path: PathId, event: &PathEvent, _cx: &mut Context<'_>) {
        self.0.lock().expect("no panic").push(match event {
            PathEvent::WindowRestart { .. } => "window",
            PathEvent::IdleRestart { .. } => "first",
            _ => "other",
        });
    }

    fn decision(&self, _path: PathId) -> Decision {
        Decision { cwnd: INITIAL_CWND, ssthresh: INFINITE_SSTHRESH, pacing_rate: None }
    }
}

#[test]
fn a_window_restarts_at_the_write_or_else_before_the_first_packet() {
    let (mut path, mut handle) = path();
    let noting = Noting::default();
    let events = noting.0.clone();
    handle.controller = Some(Box::new(noting));
    let mut noted = |act: &mut dyn FnMut(&mut PathSender, &mut ControllerHandle)| {
        act(&mut path, &mut handle);
        std::mem::take(&mut *events.lock().expect("no panic"))
    };
    let rto = Span::from_millis(200);
    assert_eq!(noted(&mut |path, handle| path.restart_after_idle(millis(200), rto, handle)), [""; 0]);
    assert_eq!(noted(&mut |path, handle| path.restart_after_idle(millis(201), rto, handle)), ["window"]);
    assert_eq!(noted(&mut |path, handle| path.begin_sending(millis(1500), 0, false, handle)), ["first"]);
    assert_eq!(noted(&mut |path, handle| path.before_send(millis(1500), 0, false, handle)), ["window", "first"]);
    assert_eq!(noted(&mut |path, handle| path.before_send(millis(1500), 0, true, handle)), ["first"]);
    assert_eq!(noted(&mut |path, handle| path.before_send(millis(1500), 1, true, handle)), [""; 0]);
}

#[test]
fn an_acknowledgement_counts_what_was_delivered_since_it_began() {
    let (mut path, mut handle) = path();
    let snapshot = path.on_sent(millis(0), false, 1, 1);
    let prior = path.prior_state(1);
    let mut rate_sample = PendingRateSample::default();
    path.on_delivered(&mut rate_sample, 0, millis(0), 1, &snapshot);
    assert_eq!(path.delivered_since(&prior), 1);
    let acked = AckedPackets { rate_sample, pkts_acked: 1, ..AckedPackets::default() };
    let delivery = path.finish_ack(millis(20), &prior, &acked, &outstanding(0, 1, 1), &mut handle).expect("valid");
    assert_eq!((delivery.delivered, delivery.interval), (1, Span::from_millis(20)));
}

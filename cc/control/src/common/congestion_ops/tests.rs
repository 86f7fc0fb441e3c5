use super::*;
use crate::single::reno::Reno;
use units::{Instant, RngStream};

/// The state of Reno with this window after `events`, from the open state.
fn state_after(cwnd: u32, ssthresh: u32, events: &[PathEvent]) -> CwndState {
    let state = CwndState { cwnd, ssthresh, ..CwndState::default() };
    let mut flow = CwndController { state, ops: Reno };
    for event in events {
        flow.on_event(event, &mut Context { now: Instant::ZERO, rng: &mut RngStream::named(1, "test") });
    }
    flow.state
}

fn restart(idle: u64) -> PathEvent {
    PathEvent::WindowRestart { idle: Span::from_millis(idle), rto: Span::from_millis(250) }
}

fn congestion(cause: Cause, reduce_cwnd: bool, in_flight: u32) -> PathEvent {
    PathEvent::Congestion { cause, reduce_cwnd, in_flight, by_timer: false }
}

#[test]
fn the_window_is_halved_once_a_timeout_spent_idle_down_to_the_initial_window() {
    let cwnd = |idle| state_after(160, INFINITE_SSTHRESH, &[restart(idle)]).cwnd;
    assert_eq!([250, 251, 900, 1000, 2000].map(cwnd), [160, 80, 20, 20, 10]);
    assert_eq!(state_after(160, 50, &[restart(900)]).ssthresh, 120, "three quarters of the window");
}

#[test]
fn cwnd_cnt_is_zero_after_a_reduction() {
    let acked =
        || PathEvent::Ack(AckSample { acked: 30, may_raise_cwnd: true, cwnd_limited: true, ..AckSample::default() });
    let cwnd_cnt = |event: PathEvent| state_after(100, 50, &[acked(), event]).cwnd_cnt;
    assert_eq!(cwnd_cnt(acked()), 60);
    assert_eq!(cwnd_cnt(congestion(Cause::Loss, true, 90)), 0);
    assert_eq!(cwnd_cnt(congestion(Cause::Timeout, false, 90)), 0);
}

#[test]
fn an_unused_window_shrinks_half_way_to_what_was_used() {
    let cwnd = |cwnd_used| state_after(100, 50, &[PathEvent::ApplicationLimited { cwnd_used }]).cwnd;
    assert_eq!([20, 3, 100].map(cwnd), [60, 55, 100]);
}

#[test]
fn a_timeout_within_an_episode_keeps_the_threshold_and_what_undo_returns_to() {
    let events = [congestion(Cause::Loss, true, 90), congestion(Cause::Timeout, false, 7)];
    let state = state_after(100, INFINITE_SSTHRESH, &events);
    assert_eq!((state.cwnd, state.ssthresh, state.prior_cwnd), (8, 50, 100));
}

#[test]
fn a_loss_after_a_mark_continues_its_reduction_and_cannot_be_undone() {
    let events = [congestion(Cause::EcnMark, true, 90), congestion(Cause::Loss, true, 80)];
    assert_eq!(state_after(100, INFINITE_SSTHRESH, &events).ca_state, CaState::Recovery);
    let state = state_after(100, INFINITE_SSTHRESH, &[&events[..], &[PathEvent::SpuriousLoss]].concat());
    assert_eq!((state.cwnd, state.prior_cwnd, state.ssthresh), (100, 100, 50), "no undo");
}

/// Linux 6.1.176 and 6.18: the reordering timer finds one packet of 12 lost while two are SACKed, with a window of 10.
/// Then each of four more is SACKed, and every packet is sent that the window allows.
#[test]
fn a_loss_that_a_timer_finds_counts_one_packet_as_delivered() {
    let loss = PathEvent::Congestion { cause: Cause::Loss, reduce_cwnd: true, in_flight: 9, by_timer: true };
    let mut state = state_after(10, INFINITE_SSTHRESH, &[loss]);
    (state.ssthresh, state.ca_state) = (7, CaState::Recovery);
    let (mut in_flight, mut sent) = (state.cwnd, state.cwnd - 9);
    let cwnds = [(); 4].map(|()| {
        in_flight -= 1;
        state.reduce_cwnd(&AckSample { acked: 1, in_flight, sent, ..AckSample::default() });
        sent = state.cwnd - in_flight;
        in_flight += sent;
        state.cwnd
    });
    assert_eq!(cwnds, [10, 10, 9, 9]);
}

#[test]
fn one_acknowledgement_may_end_an_episode_and_begin_the_next() {
    let loss = || congestion(Cause::Loss, true, 90);
    let state = state_after(100, INFINITE_SSTHRESH, &[loss(), PathEvent::Recovered { to_ssthresh: true }, loss()]);
    assert_eq!((state.prior_cwnd, state.ssthresh), (50, 25));
    let state =
        state_after(100, INFINITE_SSTHRESH, &[congestion(Cause::Timeout, true, 0), PathEvent::SpuriousLoss, loss()]);
    assert_eq!((state.prior_cwnd, state.ssthresh), (100, 50));
}

#[test]
fn a_mark_in_recovery_forbids_its_undo_but_does_not_end_it() {
    let events = [congestion(Cause::Loss, true, 90), congestion(Cause::EcnMark, true, 80)];
    assert_eq!(state_after(100, INFINITE_SSTHRESH, &events).ca_state, CaState::Recovery);
    assert_eq!(state_after(100, INFINITE_SSTHRESH, &[&events[..], &[PathEvent::SpuriousLoss]].concat()).ssthresh, 50);
}

#[test]
fn a_probe_that_repaired_a_loss_costs_one_reduction_at_once() {
    let state = state_after(100, INFINITE_SSTHRESH, &[congestion(Cause::TlpRecovery, true, 1)]);
    assert_eq!((state.cwnd, state.ssthresh, state.ca_state), (50, 50, CaState::Open));
}

/// Asks for a reduction at every acknowledgement, and counts them.
#[derive(Debug, Default)]
struct Asking {
    acknowledgements: u32,
}

impl CongestionOps for Asking {
    fn cong_avoid(&mut self, state: &mut CwndState, _acked: u32, _sample: &AckSample, _cx: &mut Context<'_>) {
        state.request_reduction();
    }

    fn ssthresh(&mut self, state: &CwndState, _cx: &mut Context<'_>) -> u32 {
        state.cwnd / 2
    }

    fn pkts_acked(&mut self, _state: &mut CwndState, _progress: &AckProgress, _cx: &mut Context<'_>) {
        self.acknowledgements += 1;
    }
}

fn notify(flow: &mut CwndController<Asking>, event: &PathEvent) {
    flow.on_event(event, &mut Context { now: Instant::ZERO, rng: &mut RngStream::named(1, "test") });
}

#[test]
fn a_reduction_that_an_algorithm_asks_for_is_that_of_cwr_and_asked_for_once() {
    let mut flow = CwndController::new(Asking::default());
    let sample = AckSample { acked: 1, may_raise_cwnd: true, cwnd_limited: true, ..AckSample::default() };
    notify(&mut flow, &PathEvent::Ack(sample));
    assert!(flow.requests_reduction());
    notify(&mut flow, &congestion(Cause::Requested, true, 9));
    assert_eq!((flow.state.ca_state, flow.state.ssthresh, flow.state.prior_ssthresh), (CaState::Cwr, 5, 0));
    notify(&mut flow, &PathEvent::Ack(AckSample { ca_state: CaState::Cwr, ..sample }));
    assert!(!flow.requests_reduction());
}

#[test]
fn an_acknowledgement_after_one_with_nothing_outstanding_is_counted() {
    let mut flow = CwndController::new(Asking::default());
    let sample = AckSample { acked: 1, snd_una: 6, snd_nxt: 7, ..AckSample::default() };
    // A window update, and a report of a duplicate.
    for (acked, acknowledgements) in [(0, 1), (1, 2)] {
        let progress = AckProgress { acked, snd_una: 5, snd_nxt: 5, ..AckProgress::default() };
        notify(&mut flow, &PathEvent::AckProgress(progress));
        notify(&mut flow, &PathEvent::Ack(sample));
        assert_eq!(flow.ops.acknowledgements, acknowledgements);
    }
    notify(&mut flow, &PathEvent::AckProgress(sample.progress()));
    notify(&mut flow, &PathEvent::Ack(sample));
    assert_eq!(flow.ops.acknowledgements, 3, "once each");
}

/// Records the states that the sender reports.
#[derive(Debug, Default)]
struct States(Vec<CaState>);

impl CongestionOps for States {
    fn cong_avoid(&mut self, _state: &mut CwndState, _acked: u32, _sample: &AckSample, _cx: &mut Context<'_>) {}

    fn ssthresh(&mut self, state: &CwndState, _cx: &mut Context<'_>) -> u32 {
        state.cwnd / 2
    }

    fn set_state(&mut self, _state: &mut CwndState, next: CaState, _cx: &mut Context<'_>) {
        self.0.push(next);
    }
}

#[test]
fn a_state_that_outlasts_its_episode_is_not_entered_again() {
    let states = |ca_state| {
        let mut flow = CwndController::new(States::default());
        let sample = AckSample { acked: 1, snd_nxt: 7, ca_state, ..AckSample::default() };
        for event in [congestion(Cause::Loss, true, 9), PathEvent::SpuriousLoss, PathEvent::Ack(sample)] {
            flow.on_event(&event, &mut Context { now: Instant::ZERO, rng: &mut RngStream::named(1, "test") });
        }
        (flow.ops.0, flow.state.ca_state)
    };
    assert_eq!(states(CaState::Recovery), (vec![CaState::Recovery], CaState::Recovery));
    assert_eq!(states(CaState::Open), (vec![CaState::Recovery, CaState::Open], CaState::Open));
    let disorder = vec![CaState::Recovery, CaState::Disorder];
    assert_eq!(states(CaState::Disorder), (disorder, CaState::Disorder));
}

#[test]
fn a_window_that_is_not_filled_does_not_grow() {
    let sample = |cwnd_limited| {
        PathEvent::Ack(AckSample { acked: 100, may_raise_cwnd: true, cwnd_limited, ..AckSample::default() })
    };
    let cwnd = |cwnd_limited| state_after(100, 50, &[sample(cwnd_limited)]).cwnd;
    assert_eq!((cwnd(false), cwnd(true)), (100, 101));
}

use super::*;
use crate::single::testing::{congestion_avoidance, context, defaults, slow_start};

fn cubic() -> Cubic {
    Cubic::new(&defaults(&ENTRY))
}

/// Whether the root is near that of Linux, which approximates it to 0.2 %.
fn is_close_to_linux(ours: u64, linux: u64) -> bool {
    ours.abs_diff(linux) * 500 <= linux
}

#[test]
fn the_constants_are_the_kernels() {
    let function = cubic().cubic;
    assert_eq!((function.beta, function.c, function.beta_scale), (717, 410, 15));
    assert_eq!((1u64 << 40) / function.c, 2_681_735_677);
}

#[test]
fn cube_roots() {
    assert_eq!([27, 125, 1_000_000].map(cube_root), [3, 5, 100]);
    assert_eq!([0, 1, 7, 8, u64::MAX].map(cube_root), [0, 1, 1, 2, 2_642_245]);
    assert!(is_close_to_linux(cube_root(1_000_000_000_000), 9999));
}

#[test]
fn k_is_the_time_to_come_back() {
    let function = cubic().cubic;
    // RFC 9438: cbrt(30 / 0.4) = 4.2172 s and cbrt(300 / 0.4) = 9.0856 s.
    assert_eq!(function.k(30), 4316);
    assert!(is_close_to_linux(function.k(300), 9294), "{}", function.k(300));
    assert!((function.k(300) as f64 / 1024.0 - 9.0856).abs() < 0.005);
}

#[test]
fn the_curve_is_the_rfcs() {
    let function = cubic().cubic;
    let epoch = function.new_epoch(70, 100, 1, 0);
    for (second, packets) in [(0, 70.0), (1, 86.68), (2, 95.64), (5, 100.19), (6, 102.27)] {
        let target = function.target(&epoch, second * 1024) as f64;
        assert!((target - packets).abs() <= 1.0, "{second} s: {target} for {packets}, beyond truncation");
    }
}

#[test]
fn a_loss_keeps_seven_tenths() {
    assert_eq!(cubic().ssthresh(&congestion_avoidance(100), &mut context(0)), 70);
    assert_eq!(cubic().ssthresh(&congestion_avoidance(2), &mut context(0)), 2);
}

#[test]
fn fast_convergence_lowers_the_aim_after_a_loss_below_the_last_maximum() {
    let mut cubic = cubic();
    cubic.ssthresh(&congestion_avoidance(100), &mut context(0));
    assert_eq!(cubic.ca.last_max_cwnd, 100);
    cubic.ssthresh(&congestion_avoidance(80), &mut context(0));
    assert_eq!(cubic.ca.last_max_cwnd, 68);
}

#[test]
fn the_reno_estimate_takes_187_packets_a_step_at_a_window_of_100() {
    let function = cubic().cubic;
    let mut epoch = function.new_epoch(100, 100, 187, 0);
    function.tcp_friendliness_cnt(&mut epoch, 100);
    assert_eq!(epoch.tcp_cwnd, 100, "the step is due with the packet after the 187th");
    epoch.ack_cnt += 1;
    function.tcp_friendliness_cnt(&mut epoch, 100);
    assert_eq!((epoch.tcp_cwnd, epoch.ack_cnt), (101, 1));
    epoch.ack_cnt += 187;
    assert_eq!(function.tcp_friendliness_cnt(&mut epoch, 100), 50, "two packets ahead: one packet per 50 acked");
}

#[test]
fn before_the_first_loss_growth_is_a_twentieth_a_round_and_never_more_than_half() {
    let mut cubic = cubic();
    cubic.update(&congestion_avoidance(100), 1, 0);
    assert_eq!(cubic.ca.cnt, 20);
    assert_eq!(cnt_towards(400, 100), 0);
    assert_eq!(cnt_towards(100, 100), 10_000);
}

#[test]
fn the_target_is_a_min_rtt_ahead_and_growth_half_a_window_a_round_at_most() {
    let period = |min_rtt_us| {
        let mut cubic = cubic();
        (cubic.ca.last_max_cwnd, cubic.ca.delay_min_us) = (100, min_rtt_us);
        cubic.update(&congestion_avoidance(70), 1, 0);
        cubic.ca.cnt
    };
    assert_eq!(period(1_000_000), 70 / (87 - 70), "87 packets after a second");
    assert_eq!(period(10_000_000), 2, "177 packets after ten seconds");
}

#[test]
fn a_timeout_resets_the_state() {
    let mut cubic = cubic();
    cubic.ssthresh(&congestion_avoidance(100), &mut context(0));
    cubic.ca.delay_min_us = 7;
    cubic.set_state(&mut congestion_avoidance(100), CaState::Loss, &mut context(0));
    assert_eq!((cubic.ca.last_max_cwnd, cubic.ca.delay_min_us), (0, 0));
}

#[test]
fn idle_time_is_not_time_on_the_curve() {
    let mut cubic = cubic();
    cubic.update(&congestion_avoidance(100), 1, 1000);
    let start = |cubic: &Cubic| cubic.ca.epoch.map(|epoch| epoch.epoch_start);
    cubic.on_tx_start(&mut congestion_avoidance(100), Span::from_millis(300), &mut context(2000));
    assert_eq!(start(&cubic), Some(1300));
    cubic.on_tx_start(&mut congestion_avoidance(100), Span::from_secs(9), &mut context(2000));
    assert_eq!(start(&cubic), Some(2000), "never ahead of the clock");
}

/// The window and threshold after so many rounds of ten acknowledgements, the first of 100 ms, the others of 150.
fn after_rounds_with(hystart: &str, ssthresh: u32, rounds: u64) -> (u32, u32) {
    let params = [("hystart".to_owned(), crate::ParamValue::Choice(hystart.to_owned()))].into();
    let mut cubic = Cubic::new(&Params::new(ENTRY.parameters, &params).expect("allowed"));
    let mut state = CwndState { cwnd: 10, ssthresh, ..CwndState::default() };
    for ack in 1..=rounds * 10 {
        let snd_nxt = (ack - 1) / 10 * 10 + 10;
        let rtt = Some(Span::from_millis(if ack > 10 { 150 } else { 100 }));
        let sample = AckSample { acked: 1, snd_una: ack, snd_nxt, rtt, ..AckSample::default() };
        let mut cx = context(ack * 10);
        cubic.pkts_acked(&mut state, &sample.progress(), &mut cx);
        cubic.on_ack(&mut state, &sample, &mut cx);
        cubic.cong_avoid(&mut state, 1, &sample, &mut cx);
    }
    (state.cwnd, state.ssthresh)
}

#[test]
fn hystart_plus_plus_grows_at_a_quarter_for_five_rounds_and_then_avoids_congestion() {
    // 10 packets, and 17 until the rise is detected; then 3 of its round and 40 of the next four make 10 more.
    assert_eq!(after_rounds_with("plus-plus", INFINITE_SSTHRESH, 6), (10 + 17 + 10, INFINITE_SSTHRESH));
    assert_eq!(after_rounds_with("plus-plus", INFINITE_SSTHRESH, 7).1, 37, "and then the threshold is the window");
    assert_eq!(after_rounds_with("off", INFINITE_SSTHRESH, 7), (80, INFINITE_SSTHRESH));
}

#[test]
fn hystart_plus_plus_is_for_the_first_slow_start_only() {
    assert_eq!(after_rounds_with("plus-plus", 1000, 7), (80, 1000));
}

/// The windows of a flow whose every round trip of 100 ms delivers its window, 50 packets at the most, until its
/// slow start has ended or for two seconds.
fn windows_on_a_path_of_50_packets(initial: CwndState) -> Vec<u32> {
    let params = [("hystart".to_owned(), crate::ParamValue::Choice("search".to_owned()))].into();
    let mut cubic = Cubic::new(&Params::new(ENTRY.parameters, &params).expect("allowed"));
    let (mut state, mut windows, mut delivered) = (initial, Vec::new(), 0);
    for round in 0..20 {
        let acks = state.cwnd.min(50);
        for ack in 0..acks {
            delivered += 1;
            let rtt = Some(Span::from_millis(100));
            let sample = AckSample { acked: 1, delivered, rtt, ..AckSample::default() };
            let mut cx = context(round * 100 + u64::from(ack * 100 / acks));
            cubic.on_ack(&mut state, &sample, &mut cx);
            if !state.in_slow_start() {
                return [windows, vec![state.cwnd]].concat();
            }
            cubic.cong_avoid(&mut state, 1, &sample, &mut cx);
        }
        windows.push(state.cwnd);
    }
    windows
}

/// The path is full in the fourth round, and two round trips later the window goes back by five bins of 17 or 18
/// packets.
#[test]
fn search_goes_back_to_the_window_of_two_rtts_ago() {
    let windows = windows_on_a_path_of_50_packets(slow_start(10));
    assert_eq!(windows[..5], [20, 40, 80, 130, 180]);
    let last = *windows.last().expect("it ends");
    assert!((6..=8).contains(&windows.len()), "{windows:?}");
    let before = windows[windows.len() - 2];
    assert!((before - 90..=before + 50 - 85).contains(&last), "{windows:?}");
}

#[test]
fn search_is_for_the_first_slow_start_only() {
    let state = CwndState { ssthresh: 10_000, ..slow_start(10) };
    assert_eq!(windows_on_a_path_of_50_packets(state).len(), 20);
}

#[test]
fn delay_is_not_measured_for_a_second_after_an_epoch_begins() {
    let mut cubic = cubic();
    cubic.update(&congestion_avoidance(100), 1, 1000);
    let progress = AckProgress { rtt: Some(Span::from_micros(50)), ..AckProgress::default() };
    cubic.pkts_acked(&mut congestion_avoidance(100), &progress, &mut context(1999));
    assert_eq!(cubic.ca.delay_min_us, 0);
    cubic.pkts_acked(&mut congestion_avoidance(100), &progress, &mut context(2000));
    assert_eq!(cubic.ca.delay_min_us, 50);
}

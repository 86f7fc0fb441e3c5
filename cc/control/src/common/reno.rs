//! Reno's increase and decrease, which many algorithms share. RFC 5681; Linux 6.1 `tcp_cong.c`.

use super::CwndState;
use crate::AckSample;

/// Slow start (Linux `tcp_slow_start`): grows by the acknowledged packets up to the threshold; returns the remaining
/// ones.
pub fn slow_start(state: &mut CwndState, acked: u32) -> u32 {
    let cwnd = (state.cwnd + acked).min(state.ssthresh).max(state.cwnd);
    let used = cwnd - state.cwnd;
    state.cwnd = cwnd.min(state.cwnd_clamp);
    acked - used
}

/// Adds a packet per `w` packets acknowledged (Linux `tcp_cong_avoid_ai`); `cwnd_cnt` keeps the fraction.
///
/// The early test avoids a burst when `w` has just shrunk.
pub fn cong_avoid_ai(state: &mut CwndState, w: u32, acked: u32) {
    let w = w.max(1);
    if state.cwnd_cnt >= w {
        state.cwnd_cnt = 0;
        state.cwnd += 1;
    }
    state.cwnd_cnt += acked;
    if state.cwnd_cnt >= w {
        let delta = state.cwnd_cnt / w;
        state.cwnd_cnt -= delta * w;
        state.cwnd += delta;
    }
    state.cwnd = state.cwnd.min(state.cwnd_clamp);
}

/// Reno's growth (Linux `tcp_reno_cong_avoid`): slow start, then one packet per window.
pub fn reno_cong_avoid(state: &mut CwndState, acked: u32) {
    let remaining_acked = if state.in_slow_start() { slow_start(state, acked) } else { acked };
    if remaining_acked > 0 {
        cong_avoid_ai(state, state.cwnd, remaining_acked);
    }
}

/// Reno's growth, if the congestion window limits the sender.
pub fn reno_cong_avoid_if_limited(state: &mut CwndState, acked: u32, sample: &AckSample) {
    if sample.cwnd_limited {
        reno_cong_avoid(state, acked);
    }
}

/// Reno's threshold (Linux `tcp_reno_ssthresh`): half the window, at least two packets.
#[must_use]
pub fn reno_ssthresh(state: &CwndState) -> u32 {
    (state.cwnd / 2).max(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(cwnd: u32, ssthresh: u32, cwnd_cnt: u32) -> CwndState {
        CwndState { cwnd, ssthresh, cwnd_cnt, ..CwndState::default() }
    }

    #[test]
    fn additive_increase_matches_the_kernels_three_cases() {
        let step = |cwnd, w, cwnd_cnt, acked| {
            let mut state = state(cwnd, 2, cwnd_cnt);
            cong_avoid_ai(&mut state, w, acked);
            (state.cwnd, state.cwnd_cnt)
        };
        assert_eq!(step(10, 10, 9, 1), (11, 0));
        assert_eq!(step(10, 10, 0, 25), (12, 5));
        assert_eq!(step(10, 4, 7, 0), (11, 0));
    }

    #[test]
    fn slow_start_stops_at_the_threshold_and_returns_the_rest() {
        let mut state = state(10, 12, 0);
        assert_eq!(slow_start(&mut state, 5), 3);
        assert_eq!(state.cwnd, 12);
    }
}

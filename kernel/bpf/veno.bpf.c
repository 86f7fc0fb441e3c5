/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * Veno: Reno with random loss told from congestion by Vegas' estimate of the queue.
 *
 * diff = w - w base / rtt estimates the packets that this flow has queued.
 * - Increase: Reno; where diff >= 3, one packet every second window only.
 * - Decrease: to 4/5 where diff < 3 (the loss was random), else to half. Slow start and undo are Reno's.
 *
 * Source: Fu and Liew, "TCP Veno: TCP enhancement for transmission over wireless access networks" (JSAC 2003).
 * Deviations from the paper, Linux's: the RTT is the minimum since the last acknowledgement that could raise the window,
 * not that of a round trip; diff at a loss is the one of the last growth, and of the last full window; Reno with fewer
 * than three samples since the start, and outside the open state.
 * Rounding: RTTs are microseconds, one more than measured; diff in half packets, rounded up; 4/5 rounded down.
 */
#include "vegas.bpf.h"

struct veno {
	struct vegas_rtt rtt;   /* its samples are those since the start, its minimum that since the last growth */
	u32 diff;               /* in half packets */
	bool full_window_seen;  /* the next full window does not grow */
};

enum { BETA = 2 * 3 };

/* One packet per two windows. */
static inline void increase_every_other_window(struct tcp_sock *tp, struct veno *state, u32 acked)
{
	if (tp->snd_cwnd_cnt < tp->snd_cwnd) {
		tp->snd_cwnd_cnt += acked;
		return;
	}
	bool grows = !state->full_window_seen && tp->snd_cwnd < tp->snd_cwnd_clamp;

	tp->snd_cwnd_cnt = 0;
	if (grows)
		tp->snd_cwnd++;
	state->full_window_seen = grows;
}

static inline void increase(struct tcp_sock *tp, struct veno *state, u32 acked)
{
	u64 half_packets = 2 * (u64)tp->snd_cwnd;

	state->diff = half_packets - half_packets * state->rtt.base_rtt / max_u32(state->rtt.min_rtt, 1);
	if (in_slow_start(tp))
		acked = tcp_slow_start(tp, acked);
	if (acked && state->diff < BETA)
		tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
	else if (acked)
		increase_every_other_window(tp, state, acked);
	tp->snd_cwnd = max_u32(tp->snd_cwnd, 2);
}

HOOK(void, veno_init, struct sock *sk)
{
	struct veno *state = private(sk);

	init_vegas_rtt(&state->rtt, tcp_sk(sk));
	/* That of the handshake counts among the samples. */
	state->rtt.samples = tcp_sk(sk)->srtt_us > 0;
	state->diff = 0;
	state->full_window_seen = false;
}

HOOK(void, veno_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct veno *state = private(sk);

	add_rtt_sample(&state->rtt, sample);
}

HOOK(void, veno_set_state, struct sock *sk, u8 new_state)
{
	struct veno *state = private(sk);

	state->rtt.is_enabled = new_state == CA_OPEN;
	if (state->rtt.is_enabled)
		state->rtt.min_rtt = NO_RTT;
}

static inline void veno_tx_start(struct sock *sk)
{
	struct veno *state = private(sk);

	/* After an idle period the route may have changed. */
	state->rtt.base_rtt = NO_RTT;
	state->rtt.min_rtt = NO_RTT;
	state->rtt.is_enabled = true;
	state->full_window_seen = false;
}

TX_START_HOOKS(veno)

HOOK(void, veno_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct veno *state = private(sk);

	if (!is_cwnd_limited(tp))
		return;
	if (!state->rtt.is_enabled) {
		tcp_reno_cong_avoid(sk, ack, acked);
		return;
	}
	if (state->rtt.samples < MIN_SAMPLES)
		tcp_reno_cong_avoid(sk, ack, acked);
	else
		increase(tp, state, acked);
	state->rtt.min_rtt = NO_RTT;
}

HOOK(u32, veno_ssthresh, struct sock *sk)
{
	struct veno *state = private(sk);

	if (state->diff < BETA)
		return max_u32((u64)tcp_sk(sk)->snd_cwnd * 4 / 5, 2);
	return tcp_reno_ssthresh(sk);
}

HOOK(u32, veno_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

PROGRAM_REGISTER_TX_START(rw_veno, veno,
	.init = (void *)veno_init,
	.pkts_acked = (void *)veno_pkts_acked,
	.set_state = (void *)veno_set_state,
	.cong_avoid = (void *)veno_cong_avoid,
	.ssthresh = (void *)veno_ssthresh,
	.undo_cwnd = (void *)veno_undo_cwnd
);

LICENSE;

/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * TCP-LP: low priority, uses the capacity that other flows leave.
 *
 * - Early congestion: the smoothed delay is not below min + 0.15 (max - min) of the delays seen. It halves the window; a
 *   second one within three round trips (the inference time) leaves one packet. During the inference time the window
 *   does not grow.
 * - Everything else is Reno's.
 *
 * Source: Kuzmanovic and Knightly, "TCP-LP: a distributed algorithm for low priority data transfer" (INFOCOM 2003).
 * Deviations from the paper: the delay is the round-trip time, not the one-way delay, so that a queue on the way back
 * makes it yield too (Linux subtracts time stamps, whose origins are random for each flow, and so hardly ever sees early
 * congestion). As in Linux: the greatest delay is the second greatest seen; early congestion resets both extremes;
 * growth after it may be slow start; the very first sample, the minimum and the maximum at once, halves the window. A
 * packet that was alone in flight brings no sample: a receiver that delays acknowledgements waits for a second one.
 * Rounding: delays are microseconds, at least one; the smoothed one has three fraction bits, the threshold is rounded
 * down.
 */
#include "kernel.bpf.h"

struct lp {
	u64 last_drop;          /* time of the latest early congestion, microseconds */
	u64 inference;          /* microseconds */
	u32 smoothed8;          /* eight times the smoothed delay, microseconds; 0 before the first sample */
	u32 min, max;           /* delays, microseconds */
	u32 max_reserve;        /* the greatest ever, not used as it may be an outlier */
	bool has_dropped;
	bool is_within_inference;
};

enum { THRESHOLD_PERCENT = 15, INFERENCE_RTTS = 3 };

static inline void add_sample(struct lp *state, u32 delay)
{
	if (!state->smoothed8) {
		state->smoothed8 = 8 * delay;
		state->min = delay;
		state->max = delay;
		state->max_reserve = delay;
		return;
	}
	state->min = min_u32(state->min, delay);
	if (delay > state->max_reserve) {
		state->max = state->max_reserve;
		state->max_reserve = delay;
	} else {
		state->max = max_u32(state->max, delay);
	}
	state->smoothed8 += delay - state->smoothed8 / 8;
}

static inline void early_congestion(struct lp *state, struct tcp_sock *tp)
{
	u32 smoothed = state->smoothed8 / 8;

	state->min = smoothed;
	state->max = 2 * smoothed;
	state->max_reserve = 2 * smoothed;
	tp->snd_cwnd = state->is_within_inference ? 1 : max_u32(tp->snd_cwnd / 2, 1);
	state->last_drop = tp->tcp_mstamp;
	state->has_dropped = true;
}

HOOK(void, lp_init, struct sock *sk)
{
	struct lp *state = private(sk);

	__builtin_memset(state, 0, sizeof(*state));
}

HOOK(void, lp_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lp *state = private(sk);
	bool has_sample = false;

	if (sample->rtt_us >= 0 && tp->packets_out + sample->pkts_acked > 1) {
		state->inference = INFERENCE_RTTS * (u64)(u32)sample->rtt_us;
		add_sample(state, max_u32(sample->rtt_us, 1));
		has_sample = true;
	}
	state->is_within_inference = state->has_dropped && tp->tcp_mstamp - state->last_drop < state->inference;
	if (!has_sample)
		return;
	u32 range = state->max - state->min;
	if (state->smoothed8 / 8 >= state->min + (u32)((u64)range * THRESHOLD_PERCENT / 100))
		early_congestion(state, tp);
}

HOOK(void, lp_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct lp *state = private(sk);

	if (!state->is_within_inference)
		tcp_reno_cong_avoid(sk, ack, acked);
}

HOOK(u32, lp_ssthresh, struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

HOOK(u32, lp_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

REGISTER(rw_lp) = {
	.init = (void *)lp_init,
	.pkts_acked = (void *)lp_pkts_acked,
	.cong_avoid = (void *)lp_cong_avoid,
	.ssthresh = (void *)lp_ssthresh,
	.undo_cwnd = (void *)lp_undo_cwnd,
	.flags = NON_RESTRICTED,
	.name = "rw_lp",
};

LICENSE;

/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * BIC: binary search for the window of the last loss.
 *
 * - Increase per round trip: a quarter of the way to the last maximum, at most 16 packets, at least a fifth of a packet
 *   near it; beyond the maximum the same steps mirrored. Reno up to 14 packets.
 * - Decrease: to 0.8 of the window (half up to 14 packets). After a loss below the last maximum the new maximum is 0.9
 *   of the window (fast convergence). Slow start and undo are Reno's; a timeout forgets all.
 *
 * Source: Xu, Harfoush, Rhee, "Binary increase congestion control (BIC) for fast long-distance networks" (INFOCOM 2004).
 * Deviations from the paper, Linux's: the step is scaled by the packets per acknowledgement although growth counts
 * packets, so that delayed acknowledgements make it up to twice as fast; it is computed again when the window has changed
 * or 31 ms have passed.
 * Rounding: 0.8 and 0.9 in 1/1024; packets acknowledged for one of growth and windows are rounded down; the packets an
 * acknowledgement in sixteenths.
 */
#include "kernel.bpf.h"

struct bic {
	u32 period;             /* packets acknowledged for each of growth */
	u32 last_max;           /* window of the last loss */
	u32 last_cwnd;          /* the window, and the time in milliseconds, that `period` is for */
	u32 last_time;
	u32 acked_per_ack;      /* packets per acknowledgement, smoothed, in sixteenths */
};

enum {
	MAX_INCREMENT = 16,     /* S_max, packets */
	LOW_WINDOW = 14,
	BETA = 819,             /* in 1/1024 */
	SEARCH = 4,             /* the search takes a quarter of the distance */
	SMOOTH_PART = 20,
	MAX_PERIOD_BEFORE_LOSS = 20,
	ACK_RATIO_SHIFT = 4,
	UPDATE_MS = 1000 / 32,
};

static inline void reset(struct bic *state)
{
	__builtin_memset(state, 0, sizeof(*state));
	state->acked_per_ack = 2 << ACK_RATIO_SHIFT;
}

/* The inverse of the growth per round trip, in packets acknowledged for each of growth. */
static inline u64 search_period(const struct bic *state, u64 cwnd)
{
	u64 smooth = cwnd * SMOOTH_PART / SEARCH, max = state->last_max;

	/* Before the first loss. This comes first, because the verifier of Linux 6.18.15 warns of a branch that cannot be. */
	if (!max) {
		u64 period = cwnd < MAX_INCREMENT * (SEARCH - 1) ? SEARCH - 1 : cwnd / MAX_INCREMENT;

		return min_u64(period, MAX_PERIOD_BEFORE_LOSS);
	}
	if (cwnd < max) {
		u64 step = (max - cwnd) / SEARCH;

		return step <= 1 ? smooth : cwnd / min_u64(step, MAX_INCREMENT);
	}
	if (cwnd < max + SEARCH)
		return smooth;
	if (cwnd < max + MAX_INCREMENT * (SEARCH - 1))
		return cwnd * (SEARCH - 1) / (cwnd - max);
	return cwnd / MAX_INCREMENT;
}

static inline u32 period_at(const struct bic *state, u32 cwnd)
{
	if (cwnd <= LOW_WINDOW)
		return cwnd;
	u64 period = search_period(state, cwnd);
	return max_u64((period << ACK_RATIO_SHIFT) / max_u32(state->acked_per_ack, 1), 1);
}

static inline void update(struct bic *state, u32 cwnd, u32 now)
{
	if (state->last_cwnd == cwnd && now - state->last_time <= UPDATE_MS)
		return;
	state->last_cwnd = cwnd;
	state->last_time = now;
	state->period = period_at(state, cwnd);
}

HOOK(void, bic_init, struct sock *sk)
{
	reset(private(sk));
}

HOOK(void, bic_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct bic *state = private(sk);

	if (ca_state(tcp_sk(sk)) == CA_OPEN)
		state->acked_per_ack += sample->pkts_acked - (state->acked_per_ack >> ACK_RATIO_SHIFT);
}

HOOK(void, bic_set_state, struct sock *sk, u8 new_state)
{
	if (new_state == CA_LOSS)
		reset(private(sk));
}

HOOK(void, bic_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bic *state = private(sk);

	if (!is_cwnd_limited(tp))
		return;
	if (in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	update(state, tp->snd_cwnd, clock_ms(tp));
	tcp_cong_avoid_ai(tp, max_u32(state->period, 1), acked);
}

HOOK(u32, bic_ssthresh, struct sock *sk)
{
	struct bic *state = private(sk);
	u32 cwnd = tcp_sk(sk)->snd_cwnd;

	state->last_max = cwnd < state->last_max ? (u64)cwnd * (1024 + BETA) / 2048 : cwnd;
	return max_u32(cwnd <= LOW_WINDOW ? cwnd / 2 : (u64)cwnd * BETA / 1024, 2);
}

HOOK(u32, bic_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

REGISTER(rw_bic) = {
	.init = (void *)bic_init,
	.pkts_acked = (void *)bic_pkts_acked,
	.set_state = (void *)bic_set_state,
	.cong_avoid = (void *)bic_cong_avoid,
	.ssthresh = (void *)bic_ssthresh,
	.undo_cwnd = (void *)bic_undo_cwnd,
	.name = "rw_bic",
};

LICENSE;

/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * TCP Illinois: increase and decrease depend on the queueing delay; loss triggers the decrease.
 *
 * Once per round trip, with the mean queueing delay of the round (da) and the greatest ever (dm):
 * - Increase: alpha packets per window, 10 while da is within 1 % of dm, then falling as k1 / (k2 + da) to 0.3. Once it
 *   has fallen, five rounds without delay bring it back.
 * - Decrease: by beta of the window, 1/8 up to da = 0.1 dm, rising linearly to 1/2 at 0.8 dm.
 * - Reno's (1, 1/2) below 15 packets and after a timeout. Slow start and undo are Reno's.
 *
 * Source: Liu, Basar, Srikant, "TCP-Illinois: a loss- and delay-based congestion control algorithm for high-speed
 * networks" (Performance Evaluation 2008).
 * Deviations from the paper, Linux's: alpha starts at its greatest; the greatest delay is never reset, so that one
 * outlier makes the flow aggressive from then on; what slow start leaves of an acknowledgement is dropped.
 * Rounding: delays are microseconds, RTTs above 3.3 s count as 3.3 s; alpha in 1/128, beta in 1/64, each rounded down
 * (the least alpha is 38/128).
 */
#include "kernel.bpf.h"

struct illinois {
	u64 rtt_sum;            /* of this round, microseconds */
	u32 rtt_samples;        /* of this round */
	u32 base_rtt, max_rtt;  /* least and greatest ever, microseconds */
	u32 round_end;          /* the round ends with the acknowledgement of more than this */
	u32 alpha;              /* in 1/128 */
	u32 beta;               /* in 1/64 */
	u32 acked;              /* packets of the latest acknowledgement, until they are counted */
	u32 low_rounds;         /* without delay since the delay has risen */
	bool has_risen;         /* the delay, since alpha was at its greatest */
};

enum {
	ALPHA_SHIFT = 7, ALPHA_ONE = 1 << ALPHA_SHIFT, ALPHA_MIN = 3 * ALPHA_ONE / 10, ALPHA_MAX = 10 * ALPHA_ONE,
	BETA_SHIFT = 6, BETA_ONE = 1 << BETA_SHIFT, BETA_MIN = BETA_ONE / 8, BETA_MAX = BETA_ONE / 2,
	MIN_WINDOW = 15, LOW_ROUNDS = 5,
};

#define RTT_MAX (0xffffffffu / ALPHA_MAX)

/* Alpha on the hyperbola through (0, ALPHA_MAX) and (dm, ALPHA_MIN). */
static inline u32 alpha_at(u64 da, u64 dm)
{
	return dm * ALPHA_MAX / max_u64(dm + da * (ALPHA_MAX - ALPHA_MIN) / ALPHA_MIN, 1);
}

static inline u32 next_alpha(struct illinois *state, u64 da, u64 dm)
{
	u64 low_delay = dm / 100;

	if (da > low_delay) {
		state->has_risen = true;
		return alpha_at(da - low_delay, dm - low_delay);
	}
	if (state->has_risen) {
		state->low_rounds++;
		if (state->low_rounds < LOW_ROUNDS)
			return state->alpha;
		state->has_risen = false;
		state->low_rounds = 0;
	}
	return ALPHA_MAX;
}

static inline u32 beta_at(u64 da, u64 dm)
{
	u64 low = dm / 10, high = 8 * dm / 10;

	if (da <= low)
		return BETA_MIN;
	if (da >= high)
		return BETA_MAX;
	return (BETA_MIN * high + (BETA_MAX - BETA_MIN) * da - BETA_MAX * low) / max_u64(high - low, 1);
}

static inline void end_round(struct illinois *state, u32 cwnd)
{
	if (cwnd < MIN_WINDOW) {
		state->alpha = ALPHA_ONE;
		state->beta = BETA_MAX;
	} else if (state->rtt_samples) {
		u64 mean = state->rtt_sum / state->rtt_samples;
		u64 da = mean - state->base_rtt, dm = state->max_rtt - state->base_rtt;

		state->alpha = next_alpha(state, da, dm);
		state->beta = beta_at(da, dm);
	}
	state->rtt_sum = 0;
	state->rtt_samples = 0;
}

/* Grows by about alpha packets per window. */
static inline void increase(struct tcp_sock *tp, struct illinois *state)
{
	u32 credit = tp->snd_cwnd_cnt + state->acked;
	u32 delta = (u64)credit * state->alpha >> ALPHA_SHIFT;

	state->acked = 1;
	if (delta >= tp->snd_cwnd) {
		tp->snd_cwnd = min_u32(tp->snd_cwnd + delta / max_u32(tp->snd_cwnd, 1), tp->snd_cwnd_clamp);
		credit = 0;
	}
	tp->snd_cwnd_cnt = credit;
}

HOOK(void, illinois_init, struct sock *sk)
{
	struct illinois *state = private(sk);

	__builtin_memset(state, 0, sizeof(*state));
	state->base_rtt = ~0u;
	state->alpha = ALPHA_MAX;
	state->beta = BETA_MAX;
	state->round_end = tcp_sk(sk)->snd_nxt;
}

HOOK(void, illinois_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct illinois *state = private(sk);

	state->acked = sample->pkts_acked;
	if (sample->rtt_us < 0)
		return;
	u32 rtt_us = min_u32(sample->rtt_us, RTT_MAX);
	state->base_rtt = min_u32(state->base_rtt, rtt_us);
	state->max_rtt = max_u32(state->max_rtt, rtt_us);
	state->rtt_sum += rtt_us;
	state->rtt_samples++;
}

HOOK(void, illinois_set_state, struct sock *sk, u8 new_state)
{
	struct illinois *state = private(sk);

	if (new_state != CA_LOSS)
		return;
	state->alpha = ALPHA_ONE;
	state->beta = BETA_MAX;
	state->has_risen = false;
	state->low_rounds = 0;
	state->rtt_sum = 0;
	state->rtt_samples = 0;
	state->round_end = tcp_sk(sk)->snd_nxt;
}

HOOK(void, illinois_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct illinois *state = private(sk);

	if (is_after(tp->snd_una, state->round_end)) {
		state->round_end = tp->snd_nxt;
		end_round(state, tp->snd_cwnd);
	}
	if (!is_cwnd_limited(tp))
		return;
	if (in_slow_start(tp))
		tcp_slow_start(tp, acked);
	else
		increase(tp, state);
}

HOOK(u32, illinois_ssthresh, struct sock *sk)
{
	struct illinois *state = private(sk);
	u32 cwnd = tcp_sk(sk)->snd_cwnd;

	return max_u32(cwnd - (u32)((u64)cwnd * state->beta >> BETA_SHIFT), 2);
}

HOOK(u32, illinois_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

REGISTER(rw_illinois) = {
	.init = (void *)illinois_init,
	.pkts_acked = (void *)illinois_pkts_acked,
	.set_state = (void *)illinois_set_state,
	.cong_avoid = (void *)illinois_cong_avoid,
	.ssthresh = (void *)illinois_ssthresh,
	.undo_cwnd = (void *)illinois_undo_cwnd,
	.name = "rw_illinois",
};

LICENSE;

/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * TCP-NV ("New Vegas"): Vegas for data centres, with rates instead of single RTTs.
 *
 * In an evaluation (one or more round trips) the greatest rate and the minimum RTT give the window without queue, plus a
 * pad of ten packets: max_win = greatest rate * minimum RTT + 10; a rate is what was delivered over one packet's smoothed
 * RTT.
 * - Window above max_win: no growth, threshold = max_win, and the window falls by 30 % of the excess.
 * - Window two packets or more below: growth is allowed: Reno's, slowed by a factor of two for each recent timeout.
 * - Loss: to 0.8 of the window. Slow start and undo are Reno's.
 * - The minimum RTT is that of the last 5 s or so (drawn at random between 3.75 and 6.25 s, so that flows differ).
 *
 * Source: Brakmo, "TCP-NV: congestion avoidance for data centers" (2010); constants as in Linux.
 * Deviation from Linux: no base RTT given from outside.
 * Rounding: rates in 100 bit/s, RTTs in microseconds, windows and the share of the excess in packets, all rounded down;
 * 30 % is 38/128, 0.8 is 819/1024; the random period is rounded up to a microsecond.
 */
#include "kernel.bpf.h"

struct nv {
	u64 max_rate;           /* of this evaluation, 100 bit/s */
	u64 min_rtt_reset;      /* when the minimum RTT is replaced, microseconds */
	u32 last_rtt;           /* smoothed, microseconds */
	u32 min_rtt;            /* microseconds */
	u32 min_rtt_new;        /* since the last reset; NO_RTT before the first sample */
	u32 samples, rounds;    /* of this evaluation */
	u32 round_end;          /* the round ends with the acknowledgement of more than this */
	u32 snd_una;
	u32 least_cwnd;         /* packets that receivers and interfaces may acknowledge at once */
	u32 growth_shift;       /* growth is slowed by two to the power of this */
	u32 growth_evaluations;
	bool has_last_rtt;
	bool may_grow;
	bool was_reduced;       /* evaluations begin anew in the open state */
};

enum {
	NO_RTT = 0x7fffffff,
	PAD = 10,
	PAD_BUFFER = 2,         /* a window this close below max_win stays */
	EXCESS_SHARE = 38,      /* in 1/128 */
	LOSS_SHARE = 819,       /* in 1/1024 */
	/* Samples before a decision to shrink, to end slow start, and to grow. */
	DECREASE_SAMPLES = 60, SLOW_START_SAMPLES = 30, INCREASE_SAMPLES = 20,
	/* Round trips before a decision to shrink, and without enough samples before growth stops. */
	DECREASE_ROUNDS = 2, STOP_ROUNDS = 10,
	/* Greatest exponent by which growth is slowed, and good evaluations before it falls. */
	MAX_GROWTH_SHIFT = 8, GROWTH_EVALUATIONS = 8,
	/* Window that a round trip with one sample may have: bounds and step. */
	MIN_LEAST_CWND = 4, MAX_LEAST_CWND = 81, LEAST_CWND_STEP = 2,
	MIN_PERIOD = 4,         /* packets acknowledged for each of growth, at least */
	RATE_SCALE = 80000,     /* bytes a microsecond in 100 bit/s */
	INITIAL_RESET_US = 2 * USEC_PER_SEC,
	MIN_RESET_US = 3750000, RESET_RANGE_US = 2500000,
};

static inline void update_min_rtt(struct nv *state, u64 now)
{
	if (now < state->min_rtt_reset)
		return;
	u64 random = (u64)bpf_get_prandom_u32() * RESET_RANGE_US;

	state->min_rtt = state->min_rtt_new;
	state->min_rtt_new = NO_RTT;
	state->min_rtt_reset = now + MIN_RESET_US + ((random + 0xffffffff) >> 32);
	state->least_cwnd = max_u32(state->least_cwnd / 2, MIN_LEAST_CWND);
}

static inline void add_sample(struct nv *state, u32 rtt, u32 delivered_bytes, u64 now)
{
	if (state->has_last_rtt)
		rtt = ((u64)rtt + state->last_rtt) / 2;
	else
		state->min_rtt = NO_RTT;
	state->has_last_rtt = true;
	state->last_rtt = rtt;
	state->max_rate = max_u64(state->max_rate, (u64)delivered_bytes * RATE_SCALE / max_u32(rtt, 1));
	state->samples++;
	state->min_rtt = min_u32(state->min_rtt, rtt);
	state->min_rtt_new = min_u32(state->min_rtt_new, rtt);
	update_min_rtt(state, now);
}

static inline void begin_evaluation(struct nv *state)
{
	state->max_rate = 0;
	state->samples = 0;
	state->rounds = 0;
}

/* Window without queue plus the pad, packets. */
static inline u32 max_win(const struct nv *state, u32 mss)
{
	/* Products beyond 64 bits count as the greatest. */
	u64 rate = min_u64(state->max_rate, ~0ull / max_u32(state->min_rtt, 1));
	u64 packets = rate * state->min_rtt / RATE_SCALE / max_u32(mss, 1);

	return min_u64(packets, INFINITE_SSTHRESH - PAD) + PAD;
}

/* Lowers the window towards `target`. Returns false while there are too few samples. */
static inline bool decrease(struct nv *state, struct tcp_sock *tp, u32 target)
{
	bool slow_start = tp->snd_ssthresh == INFINITE_SSTHRESH;
	u32 excess = tp->snd_cwnd - target;

	if (state->rounds < DECREASE_ROUNDS || state->samples < (slow_start ? SLOW_START_SAMPLES : DECREASE_SAMPLES)) {
		if (!slow_start && state->rounds > STOP_ROUNDS)
			state->may_grow = false;
		return false;
	}
	tp->snd_ssthresh = target;
	tp->snd_cwnd = excess > 2 ? tp->snd_cwnd - max_u32((u64)excess * EXCESS_SHARE / 128, 2) : target;
	state->may_grow = false;
	state->growth_evaluations = 0;
	return true;
}

/* Allows growth. Returns false while there are too few samples. */
static inline bool increase(struct nv *state)
{
	if (state->samples < INCREASE_SAMPLES)
		return false;
	state->may_grow = true;
	state->growth_evaluations++;
	if (state->growth_shift && state->growth_evaluations > GROWTH_EVALUATIONS) {
		state->growth_shift--;
		state->growth_evaluations = 0;
	}
	return true;
}

static inline void end_round(struct nv *state, struct tcp_sock *tp, u32 acked_bytes)
{
	state->rounds++;
	state->round_end = tp->snd_nxt;
	if (state->samples == 1 && state->least_cwnd < MAX_LEAST_CWND &&
	    acked_bytes >= (u64)(state->least_cwnd - 1) * tp->mss_cache) {
		/* A whole round trip in one acknowledgement is no evidence: a larger window first. */
		state->least_cwnd = min_u32(state->least_cwnd + LEAST_CWND_STEP, MAX_LEAST_CWND);
		state->round_end = tp->snd_nxt + state->least_cwnd * tp->mss_cache;
		state->samples = 0;
		state->may_grow = true;
		return;
	}
	u32 target = max_win(state, tp->mss_cache);
	bool is_evaluated = false;
	if (tp->snd_cwnd > target)
		is_evaluated = decrease(state, tp, target);
	else if (tp->snd_cwnd <= target - PAD_BUFFER)
		is_evaluated = increase(state);
	if (is_evaluated)
		begin_evaluation(state);
}

HOOK(void, nv_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct nv *state = private(sk);

	__builtin_memset(state, 0, sizeof(*state));
	state->min_rtt = NO_RTT;
	state->min_rtt_new = NO_RTT;
	state->min_rtt_reset = tp->tcp_mstamp + INITIAL_RESET_US;
	state->round_end = tp->snd_una;
	state->snd_una = tp->snd_una;
	state->least_cwnd = MIN_LEAST_CWND;
	state->may_grow = true;
}

HOOK(void, nv_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct nv *state = private(sk);

	if (sample->rtt_us < 0 || ca_state(tp) > CA_DISORDER)
		return;
	u32 acked_bytes = tp->snd_una - state->snd_una;
	state->snd_una = tp->snd_una;
	if (!sample->in_flight)
		return;
	add_sample(state, sample->rtt_us, sample->in_flight, tp->tcp_mstamp);
	if (is_after(tp->snd_una, state->round_end))
		end_round(state, tp, acked_bytes);
}

HOOK(void, nv_set_state, struct sock *sk, u8 new_state)
{
	struct nv *state = private(sk);

	if (new_state >= CA_CWR) {
		state->was_reduced = true;
		state->may_grow = false;
		if (new_state == CA_LOSS)
			state->growth_shift = min_u32(state->growth_shift + 1, MAX_GROWTH_SHIFT);
	} else if (new_state == CA_OPEN && state->was_reduced) {
		state->was_reduced = false;
		begin_evaluation(state);
		state->has_last_rtt = false;
		state->growth_evaluations = 0;
		state->round_end = state->snd_una;
	}
}

HOOK(void, nv_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct nv *state = private(sk);

	if (!state->may_grow || !is_cwnd_limited(tp))
		return;
	if (in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	u64 period = (u64)max_u32(tp->snd_cwnd, MIN_PERIOD) << (state->growth_shift & 31);
	tcp_cong_avoid_ai(tp, min_u64(period, 0xffffffff), acked);
}

HOOK(u32, nv_ssthresh, struct sock *sk)
{
	return max_u32((u64)tcp_sk(sk)->snd_cwnd * LOSS_SHARE >> 10, 2);
}

HOOK(u32, nv_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

REGISTER(rw_nv) = {
	.init = (void *)nv_init,
	.pkts_acked = (void *)nv_pkts_acked,
	.set_state = (void *)nv_set_state,
	.cong_avoid = (void *)nv_cong_avoid,
	.ssthresh = (void *)nv_ssthresh,
	.undo_cwnd = (void *)nv_undo_cwnd,
	.flags = NON_RESTRICTED,
	.name = "rw_nv",
};

LICENSE;

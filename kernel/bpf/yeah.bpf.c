/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * YeAH (Yet Another Highspeed TCP): Scalable while the queue is short, otherwise Reno with precautionary decongestion.
 *
 * Once a round trip, queue = w (rtt - base) / rtt, with its minimum RTT and the minimum ever (base):
 * - Slow mode, where queue > 80 or rtt - base > base / 8; else fast mode.
 * - Increase: fast mode Scalable's (1 packet per 100 acknowledged), slow mode Reno's.
 * - Decongestion: where queue > 80, the window falls by the queue (at most by half), but not below the estimated window
 *   of a competing Reno flow.
 * - Decrease: in fast mode and the first 16 rounds of slow mode by the queue, within 1/8 and 1/2 of the window;
 *   afterwards, as there are greedy flows, by half. Slow start and undo are Reno's.
 *
 * Source: Baiocchi, Castellani, Vacirca, "YeAH-TCP: yet another highspeed TCP" (PFLDnet 2007).
 * Deviations from the paper, Linux's: one queue limit serves for both modes and for decongestion; the queue is not
 * smoothed.
 * Rounding: RTTs are microseconds, one more than measured; queue and shares of the window are rounded down to packets.
 */
#include "vegas.bpf.h"

struct yeah {
	struct vegas_rtt rtt;
	u32 queue;              /* packets queued at the end of the last round that had enough samples */
	u32 slow_rounds;        /* rounds of slow mode in a row; zero: fast mode */
	u32 fast_rounds;        /* of fast mode, since the last loss */
	u32 reno_cwnd;          /* estimated window of a competing Reno flow */
};

enum {
	PACKETS_PER_INCREASE = 100,
	ALPHA = 80,             /* most packets left in the queue */
	PHI = 8,                /* slow mode where the queueing delay exceeds the base RTT over this */
	DELTA = 3,              /* least decrease: 2^-3 of the window */
	RHO = 16,               /* rounds of slow mode after which a loss halves */
	ZETA = 50,              /* rounds of fast mode that make the estimate of Reno's window start again */
	MIN_RENO_CWND = 2,
};

static inline void decongest(struct tcp_sock *tp, const struct yeah *state)
{
	u32 cwnd = tp->snd_cwnd;

	if (state->queue <= ALPHA || cwnd <= state->reno_cwnd)
		return;
	cwnd = max_u32(cwnd - min_u32(state->queue, cwnd / 2), state->reno_cwnd);
	tp->snd_cwnd = cwnd;
	tp->snd_ssthresh = cwnd;
}

static inline void end_round(struct tcp_sock *tp, struct yeah *state)
{
	u32 delay = state->rtt.min_rtt - state->rtt.base_rtt;

	state->queue = (u64)tp->snd_cwnd * delay / max_u32(state->rtt.min_rtt, 1);
	if (state->queue > ALPHA || delay > state->rtt.base_rtt / PHI) {
		decongest(tp, state);
		if (state->reno_cwnd <= MIN_RENO_CWND)
			state->reno_cwnd = max_u32(tp->snd_cwnd / 2, MIN_RENO_CWND);
		else
			state->reno_cwnd++;
		state->slow_rounds++;
		return;
	}
	state->fast_rounds++;
	if (state->fast_rounds > ZETA) {
		state->reno_cwnd = MIN_RENO_CWND;
		state->fast_rounds = 0;
	}
	state->slow_rounds = 0;
}

HOOK(void, yeah_init, struct sock *sk)
{
	struct yeah *state = private(sk);

	init_vegas_rtt(&state->rtt, tcp_sk(sk));
	state->queue = 0;
	state->slow_rounds = 0;
	state->fast_rounds = 0;
	state->reno_cwnd = MIN_RENO_CWND;
}

HOOK(void, yeah_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct yeah *state = private(sk);

	add_rtt_sample(&state->rtt, sample);
}

HOOK(void, yeah_set_state, struct sock *sk, u8 new_state)
{
	struct yeah *state = private(sk);

	begin_round_if_open(&state->rtt, new_state);
}

static inline void yeah_tx_start(struct sock *sk)
{
	struct yeah *state = private(sk);

	reset_vegas_rtt(&state->rtt);
}

TX_START_HOOKS(yeah)

HOOK(void, yeah_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct yeah *state = private(sk);

	if (!is_cwnd_limited(tp))
		return;
	if (in_slow_start(tp))
		acked = tcp_slow_start(tp, acked);
	if (acked)
		tcp_cong_avoid_ai(tp, state->slow_rounds ? tp->snd_cwnd : min_u32(tp->snd_cwnd, PACKETS_PER_INCREASE), acked);
	if (!ends_round(&state->rtt, tp))
		return;
	if (state->rtt.samples >= MIN_SAMPLES)
		end_round(tp, state);
	reset_round(&state->rtt);
}

HOOK(u32, yeah_ssthresh, struct sock *sk)
{
	struct yeah *state = private(sk);
	u32 cwnd = tcp_sk(sk)->snd_cwnd, half = max_u32(cwnd / 2, 2), reduction = half;

	if (state->slow_rounds < RHO)
		reduction = max_u32(min_u32(state->queue, half), cwnd >> DELTA);
	state->fast_rounds = 0;
	state->reno_cwnd = max_u32(state->reno_cwnd / 2, MIN_RENO_CWND);
	return cwnd > reduction + 2 ? cwnd - reduction : 2;
}

HOOK(u32, yeah_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

PROGRAM_REGISTER_TX_START(rw_yeah, yeah,
	.init = (void *)yeah_init,
	.pkts_acked = (void *)yeah_pkts_acked,
	.set_state = (void *)yeah_set_state,
	.cong_avoid = (void *)yeah_cong_avoid,
	.ssthresh = (void *)yeah_ssthresh,
	.undo_cwnd = (void *)yeah_undo_cwnd
);

LICENSE;

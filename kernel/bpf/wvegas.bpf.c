/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * wVegas, weighted Vegas: each subflow keeps packets queued in proportion to its share of the rate, which equalises
 * congestion.
 *
 * Once per round trip, with w the window in packets, rtt the mean RTT of the round and base the minimum ever:
 * diff = w (rtt - base) / rtt, about the packets that this subflow has queued.
 * - Slow start ends where diff > GAMMA, at the window without queue: w base / rtt.
 * - Where diff >= alpha: alpha = max(MIN_ALPHA, TOTAL_ALPHA x / sum(x)), x = w / rtt, of each sibling when it last did so.
 * - Increase: one packet where diff < alpha. Decrease: one packet where diff > alpha.
 * - Backoff: where the queueing delay (rtt - base) is twice the minimum, w = w base / (2 rtt), and the minimum is reset.
 * - Loss: half. Reno's growth in a round with too few samples and outside the open state.
 * A subflow without siblings is Vegas with alpha = TOTAL_ALPHA.
 *
 * Source: Cao, Xu and Fu, ICNP 2012; draft-xu-mptcp-congestion-control.
 * Rounding: of integers, which the controller has too; only the share of the rate is exact to 2^-12 (2^-19 for RTTs of at
 * most 1 s), so that alpha can be a packet less where TOTAL_ALPHA times the share is an integer within that.
 */
#include "subflows.bpf.h"

enum { TOTAL_ALPHA = 10, MIN_ALPHA = 2, GAMMA = 1, MIN_SAMPLES = 3 };
enum { RATE_SHIFT = 40 };           /* of rates in packets a microsecond: 2^60 at most, eight of them 2^63 */

/* The state of a subflow; RTTs in microseconds, one more than measured so that none is zero. */
struct wvegas {
	u64 rate;               /* shared: when alpha was last set; 0 before and after a timeout */
	u64 rtt_sum;            /* of this round */
	u32 samples;            /* in this round */
	u32 base_rtt;           /* the least RTT; the greatest number before the first sample */
	u32 queueing_delay;     /* the least since the last backoff; 0: none */
	u32 alpha;
	u32 round_end;          /* snd_nxt when the round began */
	bool begin_round;       /* whether the next acknowledgement begins a round */
};

struct rates {
	struct group group;
	u64 total;
};

static long add_sibling(u32 index, struct rates *rates)
{
	if (index)
		rates->total += subflow_at(&rates->group, index)->shared;
	return 0;
}

static inline void reset_round(struct wvegas *state)
{
	state->rtt_sum = 0;
	state->samples = 0;
}

static inline void set_alpha(struct sock *sk, struct wvegas *state, u32 rtt)
{
	struct rates rates;

	read_group(sk, &rates.group);
	state->rate = ((u64)min_u32(tcp_sk(sk)->snd_cwnd, CWND_LIMIT) << RATE_SHIFT) / max_u32(rtt, 1);
	CLEAR(rates.total);
	bpf_loop(rates.group.count, add_sibling, &rates, 0);
	state->alpha = max_u64(TOTAL_ALPHA * state->rate / max_u64(rates.total + state->rate, 1), MIN_ALPHA);
}

/* Updates the minimum queueing delay. Returns whether this one is at least twice that. */
static inline bool is_backoff_due(struct wvegas *state, u32 queueing_delay)
{
	if (!queueing_delay)
		return false;
	u32 least = state->queueing_delay ? min_u32(state->queueing_delay, queueing_delay) : queueing_delay;
	bool is_due = queueing_delay >= 2 * (u64)least;

	state->queueing_delay = is_due ? 0 : least;
	return is_due;
}

/* Returns the window. */
static inline u32 avoid_congestion(struct sock *sk, struct wvegas *state, u32 diff, u32 rtt)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = tp->snd_cwnd;

	if (diff >= state->alpha)
		set_alpha(sk, state, rtt);
	if (diff > state->alpha) {
		cwnd--;
		tp->snd_ssthresh = min_u32(tp->snd_ssthresh, cwnd);
	} else if (diff < state->alpha) {
		cwnd++;
	}
	if (is_backoff_due(state, rtt - state->base_rtt))
		cwnd = (u64)cwnd * state->base_rtt / (2 * (u64)max_u32(rtt, 1));
	return cwnd;
}

/* Changes the window at the end of a round with this mean RTT. */
static inline void end_round(struct sock *sk, struct wvegas *state, u32 acked, u32 rtt)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = tp->snd_cwnd;
	u32 unqueued = (u64)cwnd * state->base_rtt / max_u32(rtt, 1);
	u32 diff = (u64)cwnd * (rtt - state->base_rtt) / max_u32(rtt, 1);

	if (!in_slow_start(tp)) {
		cwnd = avoid_congestion(sk, state, diff, rtt);
	} else if (diff > GAMMA) {
		cwnd = min_u32(cwnd, unqueued + 1);
		tp->snd_ssthresh = min_u32(tp->snd_ssthresh, cwnd);
	} else {
		tcp_slow_start(tp, acked);
		cwnd = tp->snd_cwnd;
	}
	cwnd = max_u32(min_u32(cwnd, tp->snd_cwnd_clamp), 2);
	tp->snd_cwnd = cwnd;
	tp->snd_ssthresh = max_u32(max_u32(tp->snd_ssthresh, cwnd / 2 + cwnd / 4), 2);
}

/* Whether this acknowledgement ends a round; the next one then begins. */
static inline bool ends_round(const struct tcp_sock *tp, struct wvegas *state)
{
	if (state->begin_round) {
		state->begin_round = false;
		state->round_end = tp->snd_nxt;
	}
	bool ends = (s32)(tp->snd_una - state->round_end) > 0;
	if (ends)
		state->round_end = tp->snd_nxt;
	return ends;
}

HOOK(void, wvegas_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wvegas *state = private(sk);

	if (READ_BITS(tp, inet_conn.icsk_ca_state) != CA_OPEN) {
		tcp_reno_cong_avoid(sk, ack, acked);
		return;
	}
	if (!ends_round(tp, state)) {
		if (in_slow_start(tp))
			tcp_slow_start(tp, acked);
		return;
	}
	if (state->samples >= MIN_SAMPLES)
		end_round(sk, state, acked, max_u64(state->rtt_sum / state->samples, state->base_rtt));
	else
		tcp_reno_cong_avoid(sk, ack, acked);
	reset_round(state);
}

HOOK(void, wvegas_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct wvegas *state = private(sk);

	if (sample->rtt_us < 0)
		return;
	u32 rtt = sample->rtt_us + 1u;
	state->base_rtt = min_u32(state->base_rtt, rtt);
	state->rtt_sum += rtt;
	state->samples++;
}

HOOK(void, wvegas_init, struct sock *sk)
{
	struct wvegas *state = private(sk);

	state->base_rtt = 0xffffffff;
	state->alpha = MIN_ALPHA;
	state->round_end = tcp_sk(sk)->snd_una;
}

HOOK(void, wvegas_set_state, struct sock *sk, u8 new_state)
{
	struct wvegas *state = private(sk);

	if (new_state == CA_OPEN) {
		state->begin_round = true;
		state->alpha = MIN_ALPHA;
		state->queueing_delay = 0;
		reset_round(state);
	} else if (new_state == CA_LOSS) {
		state->rate = 0;
	}
}

/* After idling the route may have changed. */
HOOK(void, wvegas_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct wvegas *state = private(sk);

	if (event == CWND_RESTART) {
		state->base_rtt = 0xffffffff;
		reset_round(state);
	}
}

HOOK(u32, wvegas_ssthresh, struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

HOOK(u32, wvegas_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

REGISTER(rw_wvegas) = {
	.init = (void *)wvegas_init,
	.pkts_acked = (void *)wvegas_pkts_acked,
	.cong_avoid = (void *)wvegas_cong_avoid,
	.set_state = (void *)wvegas_set_state,
	.cwnd_event = (void *)wvegas_cwnd_event,
	.ssthresh = (void *)wvegas_ssthresh,
	.undo_cwnd = (void *)wvegas_undo_cwnd,
	.flags = NON_RESTRICTED,
	.name = "rw_wvegas",
};

LICENSE;

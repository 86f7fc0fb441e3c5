/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * H-TCP: increase by the time since the last congestion, decrease by the ratio of minimum to maximum RTT.
 *
 * - Increase: alpha packets per window, 1 for the first second after a congestion and then
 *   1 + 10 (D - 1) + ((D - 1) / 2)^2, D in seconds; scaled by the minimum RTT in units of 100 ms (half to ten times) and
 *   by 2 (1 - beta), so that the growth per second depends on neither RTT nor decrease.
 * - Decrease: to beta of the window, beta = minimum RTT / greatest RTT within 0.5 and 0.8, which just empties the queue;
 *   0.5 if the throughput since the last congestion differs by more than a fifth from that before.
 * Slow start is Reno's; undo also restores the time and the RTT of before the congestion.
 *
 * Source: Leith and Shorten, "H-TCP: TCP for high-speed and long-distance networks" (PFLDnet 2004).
 * Deviations from the paper, Linux's: the greatest RTT loses a twentieth of its distance from the minimum with every
 * congestion and ignores a sample more than 20 ms above it; no adaptive decrease with a minimum RTT of 10 ms or less;
 * what slow start leaves of an acknowledgement is dropped. Deviation from Linux: times are milliseconds whatever
 * CONFIG_HZ is.
 * Rounding: RTTs are rounded up to milliseconds; alpha before the scale is a whole number of packets; alpha and beta in
 * 1/128, the scale in eighths, throughput in packets per second, all rounded down.
 */
#include "kernel.bpf.h"

/* What congestion overwrites and undo restores. */
struct epoch {
	u32 start;              /* time of the last congestion, milliseconds */
	u32 max_rtt;            /* milliseconds; 0 before the first sample */
	u32 old_max_rate;       /* maximum throughput of the previous epoch, packets per second */
};

struct htcp {
	struct epoch epoch, undo;
	u32 alpha, beta;        /* in 1/128 */
	u32 acked;              /* packets of the latest acknowledgement in the open state, until they are counted */
	u32 min_rtt;            /* milliseconds; 0 before the first sample */
	u32 packets, since;     /* acknowledged since this time, in milliseconds */
	u32 rate, max_rate;     /* throughput and its greatest in this epoch, packets per second */
	bool is_steady;         /* throughput was at the last congestion, so that beta adapts to the ratio of RTTs */
	bool can_undo;
	bool is_timed;          /* since is set: not for the first throughput, which the kernel counts from its boot */
};

enum {
	ONE = 128,
	BETA_MIN = ONE / 2, BETA_MAX = 8 * ONE / 10,
	LOW_SPEED_MS = 1000,    /* Delta_L */
	MAX_RTT_STEP_MS = 20, MIN_RATIO_RTT_MS = 10,
	SETTLING_RTTS = 3,      /* after a congestion, in which the throughput filter is restarted */
	MS_PER_SEC = 1000,
};

static inline void update_alpha(struct htcp *state, u32 now)
{
	u32 elapsed = now - state->epoch.start;
	u64 factor = 1, beyond = elapsed > LOW_SPEED_MS ? elapsed - LOW_SPEED_MS : 0;

	if (beyond)
		factor += (10 * beyond + (beyond / 2) * (beyond / 2) / MS_PER_SEC) / MS_PER_SEC;
	if (state->min_rtt) {
		u32 scale = min_u32(max_u32(8 * MS_PER_SEC / (10 * state->min_rtt), 4), 80);

		factor = max_u64(8 * factor / scale, 1);
	}
	state->alpha = 2 * factor * (ONE - state->beta);
}

static inline void update_beta(struct htcp *state)
{
	u64 rate = state->max_rate, old_rate = state->epoch.old_max_rate;
	u32 max_rtt = state->epoch.max_rtt;

	state->beta = BETA_MIN;
	state->epoch.old_max_rate = rate;
	if (5 * rate < 4 * old_rate || 5 * rate > 6 * old_rate) {
		state->is_steady = false;
		return;
	}
	if (state->is_steady && state->min_rtt > MIN_RATIO_RTT_MS && max_rtt)
		state->beta = min_u32(max_u32(state->min_rtt * ONE / max_rtt, BETA_MIN), BETA_MAX);
	else
		state->is_steady = true;
}

static inline void measure_rtt(struct htcp *state, u32 rtt, bool is_open)
{
	if (!state->min_rtt || rtt < state->min_rtt)
		state->min_rtt = rtt;
	if (!is_open)
		return;
	u32 max_rtt = max_u32(state->epoch.max_rtt, state->min_rtt);
	state->epoch.max_rtt = rtt <= max_rtt + MAX_RTT_STEP_MS ? max_u32(max_rtt, rtt) : max_rtt;
}

static inline void start_rate(struct htcp *state, u32 now)
{
	state->packets = 0;
	state->since = now;
	state->is_timed = true;
}

static inline void measure_rate(struct htcp *state, const struct tcp_sock *tp, u32 acked, u32 now)
{
	u32 elapsed = state->is_timed ? now - state->since : ~0u, least = max_u32(state->alpha / ONE, 1);

	state->packets += acked;
	if (!state->min_rtt || elapsed < state->min_rtt || tp->snd_cwnd < least || state->packets < tp->snd_cwnd - least)
		return;
	u32 rate = (u64)state->packets * MS_PER_SEC / max_u32(elapsed, 1);
	if ((now - state->epoch.start) / state->min_rtt <= SETTLING_RTTS) {
		state->rate = rate;
		state->max_rate = rate;
	} else {
		state->rate = (3 * (u64)state->rate + rate) / 4;
		state->max_rate = max_u32(state->max_rate, state->rate);
	}
	start_rate(state, now);
}

HOOK(void, htcp_init, struct sock *sk)
{
	struct htcp *state = private(sk);

	__builtin_memset(state, 0, sizeof(*state));
	state->alpha = ONE;
	state->beta = BETA_MIN;
	state->acked = 1;
	state->epoch.start = clock_ms(tcp_sk(sk));
}

HOOK(void, htcp_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct htcp *state = private(sk);
	u8 in_state = ca_state(tp);
	u32 now = clock_ms(tp);

	if (in_state == CA_OPEN)
		state->acked = sample->pkts_acked;
	if (sample->rtt_us > 0)
		measure_rtt(state, ((u32)sample->rtt_us + USEC_PER_MSEC - 1) / USEC_PER_MSEC, in_state == CA_OPEN);
	if (in_state > CA_DISORDER) {
		start_rate(state, now);
	} else {
		measure_rate(state, tp, sample->pkts_acked, now);
	}
}

/* Time counts from the end of a reduction. */
HOOK(void, htcp_set_state, struct sock *sk, u8 new_state)
{
	struct htcp *state = private(sk);
	u32 now = clock_ms(tcp_sk(sk));

	if (new_state >= CA_CWR) {
		state->undo = state->epoch;
		state->can_undo = true;
		state->epoch.start = now;
	} else if (new_state == CA_OPEN && state->can_undo) {
		state->can_undo = false;
		state->epoch.start = now;
	}
}

HOOK(void, htcp_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct htcp *state = private(sk);

	if (!is_cwnd_limited(tp))
		return;
	if (in_slow_start(tp)) {
		tcp_slow_start(tp, acked);
		return;
	}
	if ((u64)tp->snd_cwnd_cnt * state->alpha / ONE >= tp->snd_cwnd) {
		tp->snd_cwnd = min_u32(tp->snd_cwnd + 1, tp->snd_cwnd_clamp);
		tp->snd_cwnd_cnt = 0;
		update_alpha(state, clock_ms(tp));
	} else {
		tp->snd_cwnd_cnt += state->acked;
	}
	state->acked = 1;
}

HOOK(u32, htcp_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct htcp *state = private(sk);
	u32 max_rtt;

	update_beta(state);
	update_alpha(state, clock_ms(tp));
	max_rtt = state->epoch.max_rtt;
	if (state->min_rtt && max_rtt > state->min_rtt)
		state->epoch.max_rtt = state->min_rtt + (u64)(max_rtt - state->min_rtt) * 95 / 100;
	return max_u32((u64)tp->snd_cwnd * state->beta / ONE, 2);
}

HOOK(u32, htcp_undo_cwnd, struct sock *sk)
{
	struct htcp *state = private(sk);

	if (state->can_undo)
		state->epoch = state->undo;
	state->can_undo = false;
	return tcp_reno_undo_cwnd(sk);
}

REGISTER(rw_htcp) = {
	.init = (void *)htcp_init,
	.pkts_acked = (void *)htcp_pkts_acked,
	.set_state = (void *)htcp_set_state,
	.cong_avoid = (void *)htcp_cong_avoid,
	.ssthresh = (void *)htcp_ssthresh,
	.undo_cwnd = (void *)htcp_undo_cwnd,
	.name = "rw_htcp",
};

LICENSE;

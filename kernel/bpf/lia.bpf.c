/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * LIA, the linked increases algorithm: the total of one TCP on the best path.
 *
 * With w a window in packets and rtt a smoothed RTT, in congestion avoidance: a packet more for each
 * `max(w, (sum(w / rtt))^2 / max(w / rtt^2))` packets acknowledged, which is RFC 6356's increase of
 * `min(alpha / sum(w), 1 / w)` for each. Decrease, slow start, recovery and undo are Reno's.
 *
 * Source: RFC 6356; Wischik, Raiciu, Greenhalgh and Handley, NSDI 2011.
 * Deviations: windows are packets, also where the packets of the paths differ in size. The interval is computed anew at
 * each acknowledgement.
 * Rounding: rates have four fraction bits in relation to the best path's; the interval is rounded down to a packet.
 */
#include "subflows.bpf.h"

enum { RATE_SHIFT = 4, MAX_RATES = 0x7fffffff };

struct lia {
	struct group group;
	struct subflow best;    /* the greatest cwnd / rtt^2 */
	u64 rates;              /* sum of cwnd / rtt, in best.srtt_us, with RATE_SHIFT fraction bits */
};

/* Whether a.cwnd / a.rtt^2 > b.cwnd / b.rtt^2, with RTTs of less than two minutes. */
static inline bool is_better(const struct subflow *a, const struct subflow *b)
{
	u64 a_rtt = a->srtt_us, b_rtt = b->srtt_us;

	return (a->cwnd * b_rtt / a_rtt) * b_rtt > b->cwnd * a_rtt;
}

static long find_best(u32 index, struct lia *lia)
{
	struct subflow *subflow = subflow_at(&lia->group, index);

	if (!lia->best.srtt_us || is_better(subflow, &lia->best))
		lia->best = *subflow;
	return 0;
}

static long add_rate(u32 index, struct lia *lia)
{
	struct subflow *subflow = subflow_at(&lia->group, index);

	lia->rates += ((u64)subflow->cwnd << RATE_SHIFT) * lia->best.srtt_us / max_u32(subflow->srtt_us, 1);
	return 0;
}

/* Packets acknowledged for each by which the window grows. */
static inline u32 interval(struct lia *lia, u32 cwnd)
{
	bpf_loop(lia->group.count, find_best, lia, 0);
	bpf_loop(lia->group.count, add_rate, lia, 0);
	u64 rates = min_u64(lia->rates, MAX_RATES);
	u64 interval = rates * rates / ((u64)max_u32(lia->best.cwnd, 1) << (2 * RATE_SHIFT));
	return max_u64(min_u64(interval, MAX_RATES), cwnd);
}

HOOK(void, lia_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lia lia = {};

	read_group(sk, &lia.group);
	if (is_alone(&lia.group)) {
		tcp_reno_cong_avoid(sk, ack, acked);
		return;
	}
	if (!is_cwnd_limited(tp))
		return;
	if (in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	tcp_cong_avoid_ai(tp, interval(&lia, tp->snd_cwnd), acked);
}

HOOK(u32, lia_ssthresh, struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

HOOK(u32, lia_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

REGISTER(rw_lia) = {
	.cong_avoid = (void *)lia_cong_avoid,
	.ssthresh = (void *)lia_ssthresh,
	.undo_cwnd = (void *)lia_undo_cwnd,
	.flags = NON_RESTRICTED,
	.name = "rw_lia",
};

LICENSE;

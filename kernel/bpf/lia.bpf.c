/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * LIA, the linked increases algorithm: the total of one TCP on the best path.
 *
 * With w a window in packets and rtt a smoothed RTT, per packet acknowledged in congestion avoidance: a growth of
 * `min(max(w / rtt^2) / (sum(w / rtt))^2, 1 / w)`, which is RFC 6356's `min(alpha / sum(w), 1 / w)`. Decrease, slow start,
 * recovery and undo are Reno's.
 *
 * Source: RFC 6356; Wischik, Raiciu, Greenhalgh and Handley, NSDI 2011.
 * Deviation: windows are packets, also where the packets of the paths differ in size.
 * Rounding: the increase is within 2^-12 of the RFC's, in relation to it, and 2^-28 packets beyond that (shares.bpf.h).
 */
#include "shares.bpf.h"

struct lia {
	struct shares shares;
	s64 best;               /* the greatest (w / rtt^2) / (sum(w / rtt))^2 */
};

static long find_best(u32 index, struct lia *lia)
{
	struct subflow *subflow = subflow_at(&lia->shares.group, index);
	u64 subflow_share = share(&lia->shares, subflow);

	lia->best = max_u64(lia->best, over_cwnd(subflow_share * subflow_share, subflow));
	return 0;
}

static inline s64 increase(struct sock *sk)
{
	struct lia lia;

	CLEAR(lia.best);
	read_shares(sk, &lia.shares);
	if (is_alone(&lia.shares.group))
		return RENOS;
	bpf_loop(lia.shares.group.count, find_best, &lia, 0);
	return min_u64(lia.best, PACKET / own_subflow(&lia.shares.group)->cwnd);
}

HOOK(void, lia_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct growth *growth = private(sk);

	if (grows_without_increase(tcp_sk(sk), acked))
		return;
	if (!is_increase_fresh(tcp_sk(sk), growth))
		keep_increase(tcp_sk(sk), growth, increase(sk));
	grow(sk, growth, ack, acked);
}

HOOK(void, lia_set_state, struct sock *sk, u8 new_state)
{
	forget_fraction(sk, new_state);
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
	.set_state = (void *)lia_set_state,
	.ssthresh = (void *)lia_ssthresh,
	.undo_cwnd = (void *)lia_undo_cwnd,
	.flags = NON_RESTRICTED,
	.name = "rw_lia",
};

LICENSE;

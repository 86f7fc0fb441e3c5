/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * BALIA, the balanced linked adaptation: increase and decrease are coupled, to balance friendliness and responsiveness.
 *
 * With x = w / rtt of a subflow, w its window in packets and rtt its smoothed RTT, and a = max(x) / x:
 * - Growth, per packet acknowledged in congestion avoidance: (x / rtt) / (sum(x))^2 * (1 + a) / 2 * (4 + a) / 5.
 * - Decrease: w / 2 * min(a, 1.5).
 * With s = x / sum(x) the own share and m the greatest, the growth is (s + m) / 2 * (4 s + m) / 5 / w, and a = m / s. Slow
 * start, recovery and undo are Reno's, as is a subflow without siblings.
 *
 * Source: Peng, Walid, Hwang and Low, IEEE/ACM ToN 2016; draft-walid-mptcp-congestion-control.
 * Deviation: the minimum threshold is two packets.
 * Rounding: the increase is within 2^-12 / w of the formula's, and 2^-28 / w beyond that, as both factors are at most 1 and
 * as exact as a share (shares.bpf.h). The threshold is within a packet: where a counts (below 1.5), s is above 1 / 12, and
 * m / s is exact to 2^-25 and the 2^-13 / w that the rates lose.
 */
#include "shares.bpf.h"

struct balia {
	struct shares shares;
	u64 greatest;           /* share */
};

static long find_greatest(u32 index, struct balia *balia)
{
	struct shares *shares = &balia->shares;

	balia->greatest = max_u64(balia->greatest, share(shares, subflow_at(&shares->group, index)));
	return 0;
}

static inline s64 increase(struct sock *sk)
{
	struct balia balia;
	struct group *group = &balia.shares.group;

	CLEAR(balia.greatest);
	read_shares(sk, &balia.shares);
	if (is_alone(group))
		return RENOS;
	bpf_loop(group->count, find_greatest, &balia, 0);
	u64 own = share(&balia.shares, own_subflow(group)), greatest = balia.greatest;
	u64 product = (own + greatest) / 2 * ((4 * own + greatest) / 5);
	return over_cwnd(product, own_subflow(group));
}

HOOK(void, balia_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct growth *growth = private(sk);

	if (grows_without_increase(tcp_sk(sk), acked))
		return;
	if (!is_increase_fresh(tcp_sk(sk), growth))
		keep_increase(tcp_sk(sk), growth, increase(sk));
	grow(sk, growth, ack, acked);
}

HOOK(u32, balia_ssthresh, struct sock *sk)
{
	u32 cwnd = tcp_sk(sk)->snd_cwnd;
	struct balia balia;
	struct group *group = &balia.shares.group;

	CLEAR(balia.greatest);
	read_shares(sk, &balia.shares);
	if (is_alone(group))
		return tcp_reno_ssthresh(sk);
	bpf_loop(group->count, find_greatest, &balia, 0);
	u64 own = share(&balia.shares, own_subflow(group)), greatest = balia.greatest;
	if (2 * greatest >= 3 * own)
		return max_u32(cwnd - (3 * (u64)cwnd + 3) / 4, 2);
	return max_u32(cwnd - (cwnd * greatest + 2 * own - 1) / (2 * own), 2);
}

HOOK(void, balia_set_state, struct sock *sk, u8 new_state)
{
	forget_fraction(sk, new_state);
}

HOOK(u32, balia_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

REGISTER(rw_balia) = {
	.cong_avoid = (void *)balia_cong_avoid,
	.set_state = (void *)balia_set_state,
	.ssthresh = (void *)balia_ssthresh,
	.undo_cwnd = (void *)balia_undo_cwnd,
	.flags = NON_RESTRICTED,
	.name = "rw_balia",
};

LICENSE;

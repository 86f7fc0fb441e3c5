/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * OLIA, the opportunistic linked increases algorithm: LIA's goal, but Pareto-optimal and more responsive.
 *
 * With w a window in packets, rtt a smoothed RTT, and l the greater of what was delivered since the last loss and between
 * the two before: B are the subflows with the greatest l / rtt^2 (the best, by the square of a TCP's rate at their
 * loss), M those with the greatest window, C those in B and not in M, N the number of all.
 * - Growth, per packet acknowledged in congestion avoidance: (w / rtt^2) / (sum(w / rtt))^2 + a / w, where, if C is not
 *   empty, a = 1 / (N |C|) in C and -1 / (N |M|) in M; otherwise 0. Window moves from M to C.
 * Decrease, slow start, recovery and undo are Reno's, as is a subflow without siblings.
 *
 * Source: Khalili, Gast, Popovic and Le Boudec, CoNEXT 2012; draft-khalili-mptcp-congestion-control.
 * Deviations: l is counted in packets, modulo 2^32. The exponent of rtt in B is that of the analysis. The window does not
 * fall below two packets.
 * Rounding: the first term is within 2^-12 / w of the formula's, and 2^-28 / w beyond that (shares.bpf.h), the second
 * within 2^-39; B, C and M are exact.
 */
#include "shares.bpf.h"

/* The state of a subflow. */
struct olia_subflow {
	struct growth growth;       /* shared: l */
	u32 l1;                     /* packets between the two losses before */
	u32 delivered_at_loss;      /* tcp_sock's `delivered` at the last loss */
};

struct olia {
	struct shares shares;
	struct subflow best;        /* the first in B */
	u32 largest;                /* window */
	u32 in_c, in_m;             /* number of subflows */
};

/* A product of 96 bits. */
struct product {
	u64 high;                   /* without the lowest 32 */
	u32 low;
};

/* l * rtt^2 of two subflows, with RTTs of less than 2^32 eighths of a microsecond. */
static inline struct product product(const struct subflow *l, const struct subflow *rtt)
{
	u64 square = (u64)rtt->srtt_eighths * rtt->srtt_eighths;
	u64 low = (u64)(u32)square * (u32)l->shared;

	return (struct product){ .high = (square >> 32) * (u32)l->shared + (low >> 32), .low = low };
}

/* Whether l / rtt^2 of `a` is greater than that of `b`. */
static inline bool is_better(const struct subflow *a, const struct subflow *b)
{
	struct product left = product(a, b), right = product(b, a);

	return left.high > right.high || (left.high == right.high && left.low > right.low);
}

static long find_best_and_largest(u32 index, struct olia *olia)
{
	struct subflow *subflow = subflow_at(&olia->shares.group, index);

	if (!index || is_better(subflow, &olia->best))
		olia->best = *subflow;
	olia->largest = max_u32(olia->largest, subflow->cwnd);
	return 0;
}

static inline bool is_in_m(const struct olia *olia, const struct subflow *subflow)
{
	return subflow->cwnd == olia->largest;
}

static inline bool is_in_c(const struct olia *olia, const struct subflow *subflow)
{
	return !is_in_m(olia, subflow) && !is_better(&olia->best, subflow);
}

static long count_sets(u32 index, struct olia *olia)
{
	struct subflow *subflow = subflow_at(&olia->shares.group, index);

	olia->in_m += is_in_m(olia, subflow);
	olia->in_c += is_in_c(olia, subflow);
	return 0;
}

/* The term a of the own subflow, INCREASE_BITS. */
static inline s64 alpha(struct olia *olia)
{
	struct group *group = &olia->shares.group;
	struct subflow *own = own_subflow(group);

	bpf_loop(group->count, find_best_and_largest, olia, 0);
	bpf_loop(group->count, count_sets, olia, 0);
	if (!olia->in_c)
		return 0;
	if (is_in_c(olia, own))
		return PACKET / (group->count * olia->in_c);
	return is_in_m(olia, own) ? -(PACKET / (group->count * max_u32(olia->in_m, 1))) : 0;
}

static inline s64 increase(struct sock *sk)
{
	struct olia olia;

	CLEAR(olia);
	read_shares(sk, &olia.shares);
	if (is_alone(&olia.shares.group))
		return RENOS;
	struct subflow *own = own_subflow(&olia.shares.group);
	u64 own_share = share(&olia.shares, own);
	s64 a = alpha(&olia);
	s64 shift = a < 0 ? -(s64)((u64)-a / own->cwnd) : (s64)((u64)a / own->cwnd);
	return over_cwnd(own_share * own_share, own) + shift;
}

HOOK(void, olia_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct olia_subflow *state = private(sk);

	if (grows_without_increase(tcp_sk(sk), acked))
		return;
	if (!is_increase_fresh(tcp_sk(sk), &state->growth))
		keep_increase(tcp_sk(sk), &state->growth, increase(sk));
	grow(sk, &state->growth, ack, acked);
}

HOOK(void, olia_init, struct sock *sk)
{
	struct olia_subflow *state = private(sk);

	state->delivered_at_loss = tcp_sk(sk)->delivered;
}

HOOK(void, olia_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct olia_subflow *state = private(sk);

	state->growth.shared = max_u32(tcp_sk(sk)->delivered - state->delivered_at_loss, state->l1);
}

HOOK(u32, olia_ssthresh, struct sock *sk)
{
	struct olia_subflow *state = private(sk);
	u32 l2 = tcp_sk(sk)->delivered - state->delivered_at_loss;

	if (l2) {
		state->l1 = l2;
		state->delivered_at_loss = tcp_sk(sk)->delivered;
		state->growth.shared = l2;
	}
	return tcp_reno_ssthresh(sk);
}

HOOK(void, olia_set_state, struct sock *sk, u8 new_state)
{
	forget_fraction(sk, new_state);
}

HOOK(u32, olia_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

REGISTER(rw_olia) = {
	.init = (void *)olia_init,
	.pkts_acked = (void *)olia_pkts_acked,
	.cong_avoid = (void *)olia_cong_avoid,
	.set_state = (void *)olia_set_state,
	.ssthresh = (void *)olia_ssthresh,
	.undo_cwnd = (void *)olia_undo_cwnd,
	.flags = NON_RESTRICTED,
	.name = "rw_olia",
};

LICENSE;

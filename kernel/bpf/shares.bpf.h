/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * What LIA, OLIA and BALIA have in common: the share of each subflow in the rate of the connection, and growth by
 * fractions of a packet.
 *
 * An increase is kept for a round trip, or until the own window is another one (RFC 6356, section 3: alpha is computed once per
 * round trip, and when a packet is lost). So an acknowledgement costs the same however many subflows there are.
 *
 * With x = cwnd / srtt of a subflow and s = x / sum(x) its share, (cwnd / srtt^2) / sum(x)^2 = s^2 / cwnd, for windows
 * to 2^20 packets and RTTs of 1 us to 2 minutes without overflow:
 * - A rate is cwnd * 2^43 / srtt, srtt in eighths of a microsecond: 2^10 to 2^60, and 2^63 for eight subflows.
 * - A share has 31 fraction bits: rates and their sum are first shifted so that the sum has 32 bits.
 * - An increase, in packets for each packet acknowledged, has 40.
 *
 * Rounding. The division of a rate loses less than 2^-13 of it where the RTT is at most 2 minutes (2^-20 at most 1 s),
 * the shift and the division of a share 3 units of 2^-31. So s^2 / w is within 2^-12 of the exact value, in relation to
 * it, and 2^-28 / w beyond that.
 */
#pragma once
#include "subflows.bpf.h"

#ifdef __bpf__
#define KEEPS_INCREASE true
#endif

enum { RATE_SHIFT = 43, SHARE_BITS = 31, INCREASE_BITS = 40 };
enum { MAX_ACKED = 1 << 20 };           /* more packets in one acknowledgement count as this */
#define PACKET (1LL << INCREASE_BITS)
#define RENOS (-(1LL << 62))            /* in place of an increase: without siblings that count */

/* The state of a subflow. */
struct growth {
	u64 shared;         /* read by the siblings */
	s64 fraction;       /* of a packet by which the window has still to grow or to shrink; INCREASE_BITS */
	s64 increase;       /* packets for each packet acknowledged, INCREASE_BITS, or RENOS */
	u64 computed;       /* when that was computed, microseconds of tcp_mstamp */
	u32 cwnd;           /* and with which window; 0: never, or before a reduction */
};

struct shares {
	struct group group;
	u64 total;          /* rate of all subflows */
	u32 shift;          /* total >> shift, and the rates likewise, have at most 32 bits */
};

static inline u64 rate(const struct subflow *subflow)
{
	return ((u64)subflow->cwnd << RATE_SHIFT) / subflow->srtt_eighths;
}

static long add_rate(u32 index, struct shares *shares)
{
	shares->total += rate(subflow_at(&shares->group, index));
	return 0;
}

/* Binary digits of `x`. */
static inline u32 digits(u64 x)
{
	u32 digits = 0;

	for (u32 step = 32; step; step >>= 1) {
		if (x >> step) {
			x >>= step;
			digits += step;
		}
	}
	return digits + (x > 0);
}

/* Reads the subflows and their rates. */
static inline void read_shares(struct sock *sk, struct shares *shares)
{
	read_group(sk, &shares->group);
	CLEAR(shares->total);
	bpf_loop(shares->group.count, add_rate, shares, 0);
	shares->shift = max_u32(digits(shares->total), 32) - 32;
}

/* Share of the rate, SHARE_BITS; at most 2^31. */
static inline u64 share(const struct shares *shares, const struct subflow *subflow)
{
	return ((rate(subflow) >> shares->shift) << SHARE_BITS) / max_u64(shares->total >> shares->shift, 1);
}

/* share^2 / cwnd, INCREASE_BITS; `product` is of two shares. */
static inline s64 over_cwnd(u64 product, const struct subflow *subflow)
{
	return (product / subflow->cwnd) >> (2 * SHARE_BITS - INCREASE_BITS);
}

/* Changes the window by `increase` (INCREASE_BITS, at most a packet either way) for each packet acknowledged. */
static inline void change_cwnd(struct tcp_sock *tp, struct growth *growth, s64 increase, u32 acked)
{
	s64 fraction = growth->fraction + increase * (s64)min_u32(acked, MAX_ACKED);
	s64 packets = fraction < 0 ? -(-fraction >> INCREASE_BITS) : fraction >> INCREASE_BITS;
	s64 least = min_u32(tp->snd_cwnd, 2);
	s64 cwnd = (s64)tp->snd_cwnd + packets;

	growth->fraction = fraction - packets * PACKET;
	cwnd = cwnd < least ? least : cwnd;
	tp->snd_cwnd = min_u64(cwnd, max_u32(tp->snd_cwnd_clamp, least));
}

/* Whether this acknowledgement needs no increase: the window is not filled, or slow start takes all packets. */
static inline bool grows_without_increase(struct tcp_sock *tp, u32 acked)
{
	if (!is_cwnd_limited(tp))
		return true;
	if ((u64)tp->snd_cwnd + acked > tp->snd_ssthresh)
		return false;
	tcp_slow_start(tp, acked);
	return true;
}

static inline bool is_increase_fresh(const struct tcp_sock *tp, const struct growth *growth)
{
	return growth->cwnd == tp->snd_cwnd && tp->tcp_mstamp - growth->computed < tp->srtt_us >> 3 && KEEPS_INCREASE;
}

static inline void keep_increase(const struct tcp_sock *tp, struct growth *growth, s64 increase)
{
	growth->increase = increase;
	growth->computed = tp->tcp_mstamp;
	growth->cwnd = tp->snd_cwnd;
}

/* Slow start, then growth by the increase. */
static inline void grow(struct sock *sk, struct growth *growth, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (growth->increase == RENOS) {
		tcp_reno_cong_avoid(sk, ack, acked);
		return;
	}
	if (in_slow_start(tp))
		acked = tcp_slow_start(tp, acked);
	if (acked)
		change_cwnd(tp, growth, growth->increase, acked);
}

/* The fraction is lost with the window, and the increase is computed again. */
static inline void forget_fraction(struct sock *sk, u8 new_state)
{
	struct growth *growth = private(sk);

	if (new_state >= CA_CWR)
		growth->fraction = growth->cwnd = 0;
}

/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * HighSpeed TCP: the larger the window, the larger the increase and the smaller the decrease.
 *
 * - Increase: a(w) packets per round trip; decrease: by b(w) w. Reno (1, 1/2) up to 38 packets.
 * - b(w) = 0.5 + (0.1 - 0.5) (ln w - ln 38) / (ln 83000 - ln 38)
 * - a(w) = w^2 p(w) 2 b(w) / (2 - b(w)) with the response p(w) = 1 / (12.8 w^1.2)
 *
 * Source: RFC 3649, section 5; the table is that of appendix B: a new row where a(w) has risen by one.
 * Deviations from the RFC, Linux's: a is added per acknowledgement, not per packet, so that delayed acknowledgements
 * halve the growth; what slow start leaves of an acknowledgement is dropped; the row is looked up in congestion
 * avoidance only, so that a loss in slow start uses the row before (at first: one half).
 * Rounding: a is a whole number of packets, b in 1/256 rounded down; the packets that a decrease takes are rounded down.
 */
#include "kernel.bpf.h"

struct highspeed {
	u32 row;
};

enum { ROWS = 72, LARGEST_STEP = 64, DECREASE_SHIFT = 8 };

/* Row i is for windows above those of the row before, up to its own; a = i + 1. The last row has no upper end. */
static const struct {
	u32 cwnd;       /* packets */
	u32 decrease;   /* b, in 1/256 */
} table[ROWS] = {
	{38, 128}, {118, 112}, {221, 104}, {347, 98}, {495, 93}, {663, 89}, {851, 86}, {1058, 83}, {1284, 81},
	{1529, 78}, {1793, 76}, {2076, 74}, {2378, 72}, {2699, 71}, {3039, 69}, {3399, 68}, {3778, 66},
	{4177, 65}, {4596, 64}, {5036, 62}, {5497, 61}, {5979, 60}, {6483, 59}, {7009, 58}, {7558, 57},
	{8130, 56}, {8726, 55}, {9346, 54}, {9991, 53}, {10661, 52}, {11358, 52}, {12082, 51}, {12834, 50},
	{13614, 49}, {14424, 48}, {15265, 48}, {16137, 47}, {17042, 46}, {17981, 45}, {18955, 45}, {19965, 44},
	{21013, 43}, {22101, 43}, {23230, 42}, {24402, 41}, {25618, 41}, {26881, 40}, {28193, 39}, {29557, 39},
	{30975, 38}, {32450, 38}, {33986, 37}, {35586, 36}, {37253, 36}, {38992, 35}, {40808, 35}, {42707, 34},
	{44694, 33}, {46776, 33}, {48961, 32}, {51258, 32}, {53677, 31}, {56230, 30}, {58932, 30}, {61799, 29},
	{64851, 28}, {68113, 28}, {71617, 27}, {75401, 26}, {79517, 26}, {84035, 25}, {89053, 24},
};

/* The row of a window, by binary search. */
static inline u32 row_of(u32 cwnd)
{
	u32 row = 0;

	for (u32 step = LARGEST_STEP; step; step >>= 1) {
		if (row + step < ROWS && cwnd > table[row + step - 1].cwnd)
			row += step;
	}
	return row;
}

HOOK(void, highspeed_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct highspeed *state = private(sk);

	if (!is_cwnd_limited(tp))
		return;
	if (in_slow_start(tp)) {
		tcp_slow_start(tp, acked);
		return;
	}
	state->row = row_of(tp->snd_cwnd);
	if (tp->snd_cwnd >= tp->snd_cwnd_clamp)
		return;
	u32 credit = tp->snd_cwnd_cnt + state->row + 1;
	if (credit >= tp->snd_cwnd) {
		credit -= tp->snd_cwnd;
		tp->snd_cwnd++;
	}
	tp->snd_cwnd_cnt = credit;
}

HOOK(u32, highspeed_ssthresh, struct sock *sk)
{
	struct highspeed *state = private(sk);
	u32 cwnd = tcp_sk(sk)->snd_cwnd;
	u32 decrease = table[min_u32(state->row, ROWS - 1)].decrease;

	return max_u32(cwnd - (u32)((u64)cwnd * decrease >> DECREASE_SHIFT), 2);
}

HOOK(u32, highspeed_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

REGISTER(rw_highspeed) = {
	.cong_avoid = (void *)highspeed_cong_avoid,
	.ssthresh = (void *)highspeed_ssthresh,
	.undo_cwnd = (void *)highspeed_undo_cwnd,
	.name = "rw_highspeed",
};

LICENSE;

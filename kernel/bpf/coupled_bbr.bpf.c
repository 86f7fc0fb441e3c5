/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * Coupled BBR: BBR v1 (bbr.bpf.h) on each path, with the total rate of the best path.
 *
 * With BW a path's bandwidth as BBR measures it, the cycle of ProbeBW is (1.25, 0.75, alpha x 6) BW, where
 * `alpha = (4 beta - 1) / 3` and `beta = BW max(BW) / sum(BW^2)`. The average rate of a path is then beta BW, and the sum
 * over the paths max(BW). The first two phases are BBR's, so that the bandwidth stays measurable. Where alpha is below
 * zero, the path cruises with a window of four packets.
 *
 * Source: Han, Xue, Xing, Hong and Wei, "Measurement and redesign of BBR-based MPTCP" (SIGCOMM 2019, poster), section 3.1;
 * what that leaves open is decided as in cc/control/src/coupled/coupled_bbr.rs.
 * Deviation: a path also cruises with four packets where alpha BW is less than that each minimum RTT.
 * Rounding: bandwidths have 20 fraction bits in relation to the greatest, so alpha is 1/256 too small at most.
 */
#include "bbr.bpf.h"
#include "subflows.bpf.h"

enum { RATIO_SHIFT = 20, SHARED_SHIFT = 4 };

struct bandwidths {
	struct group group;
	u64 max;                /* of the subflows' bandwidths */
	u64 squares;            /* sum of the squares of their ratios to it, 2 * RATIO_SHIFT fraction bits */
};

static inline u64 ratio(u64 bandwidth, u64 max)
{
	return (bandwidth << RATIO_SHIFT) / max_u64(max, 1);
}

static long find_max(u32 index, struct bandwidths *all)
{
	all->max = max_u64(all->max, subflow_at(&all->group, index)->shared);
	return 0;
}

static long add_square(u32 index, struct bandwidths *all)
{
	u64 square_root = ratio(subflow_at(&all->group, index)->shared, all->max);

	all->squares += square_root * square_root;
	return 0;
}

/* The first word of the state: the bandwidth in bytes per microsecond, times 2^20. */
static inline u64 shared_bandwidth(const struct tcp_sock *tp, const struct bbr *bbr)
{
	return (u64)bbr->best[0].rate * (tp->mss_cache & 0xffff) >> SHARED_SHIFT;
}

/* Gain and window for the cruise phases. */
static inline void couple(struct sock *sk, const struct bbr *bbr, struct bbr_cruise *cruise)
{
	struct bandwidths all;

	CLEAR(all);
	read_group(sk, &all.group);
	if (is_alone(&all.group) || !bbr->shared)
		return;
	bpf_loop(all.group.count, find_max, &all, 0);
	bpf_loop(all.group.count, add_square, &all, 0);
	u64 beta = (ratio(bbr->shared, all.max) << (2 * RATIO_SHIFT)) / max_u64(all.squares, 1);
	s64 three_alpha = 4 * beta - (1 << RATIO_SHIFT);
	u32 gain = three_alpha < 0 ? 0 : (u64)three_alpha / 3 >> (RATIO_SHIFT - GAIN_SHIFT);

	if (gain >= UNIT_GAIN)
		return;
	if (bbr_bdp(bbr, bbr->best[0].rate, gain) < MIN_CWND)
		cruise->max_cwnd = MIN_CWND;
	else
		cruise->pacing_gain = gain;
}

CONG_CONTROL(coupled_bbr_cong_control)
{
	struct bbr_cruise cruise = BBR_CRUISE;
	struct bbr *bbr = private(sk);

	couple(sk, bbr, &cruise);
	bbr_control(sk, bbr, rs, &cruise);
	bbr->shared = shared_bandwidth(tcp_sk(sk), bbr);
}

BBR_HOOKS(coupled_bbr)

PROGRAM_REGISTER_TX_START(rw_coupled_bbr, coupled_bbr, BBR_HOOKS_OF(coupled_bbr), .flags = NON_RESTRICTED);

LICENSE;

/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * Scalable TCP: increase and decrease in proportion to the window, so that recovery takes the same number of round
 * trips at any rate.
 *
 * - Increase: one packet per 100 acknowledged (1 % per round trip); below a window of 100 packets Reno's one per window.
 * - Decrease: to 7/8 of the window, at least two packets. Slow start, recovery and undo are Reno's.
 *
 * Source: Kelly, "Scalable TCP: improving performance in highspeed wide area networks" (CCR 2003).
 * Rounding: none; the window is whole packets, as is what a decrease takes (rounded down).
 */
#include "kernel.bpf.h"

enum { PACKETS_PER_INCREASE = 100, DECREASE_SHIFT = 3 };

HOOK(void, scalable_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!is_cwnd_limited(tp))
		return;
	if (in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	tcp_cong_avoid_ai(tp, min_u32(tp->snd_cwnd, PACKETS_PER_INCREASE), acked);
}

HOOK(u32, scalable_ssthresh, struct sock *sk)
{
	u32 cwnd = tcp_sk(sk)->snd_cwnd;

	return max_u32(cwnd - (cwnd >> DECREASE_SHIFT), 2);
}

HOOK(u32, scalable_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

REGISTER(rw_scalable) = {
	.cong_avoid = (void *)scalable_cong_avoid,
	.ssthresh = (void *)scalable_ssthresh,
	.undo_cwnd = (void *)scalable_undo_cwnd,
	.name = "rw_scalable",
};

LICENSE;

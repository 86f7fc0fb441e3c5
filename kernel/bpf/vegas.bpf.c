/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * Vegas: keeps a few packets queued, by delay.
 *
 * Once per round trip, with its minimum RTT and the minimum ever (base): diff = w (rtt - base) / base, about the packets
 * that this flow has in the queue.
 * - Increase: one packet where diff < 2. Decrease: one packet where diff > 4.
 * - Slow start ends where diff > 1, at the window without queue: w base / rtt + 1.
 * - Loss: half, as Reno. Reno's growth in a round with fewer than three samples and outside the open state.
 *
 * Source: Brakmo and Peterson, "TCP Vegas: end to end congestion avoidance on a global internet" (JSAC 1995).
 * Deviations from the paper, Linux's: diff is scaled by rtt / base and so reacts a little earlier; slow start doubles
 * every round trip instead of every other; no retransmission rules of its own. The window changes also while the sender
 * does not fill it.
 * Rounding: RTTs are microseconds, one more than measured; diff and the window without queue are rounded down.
 */
#include "vegas.bpf.h"

enum { ALPHA = 2, BETA = 4, GAMMA = 1 };

static inline void end_round(struct vegas_rtt *rtt, struct tcp_sock *tp, u32 acked)
{
	u32 cwnd = tp->snd_cwnd;
	u64 diff = (u64)cwnd * (rtt->min_rtt - rtt->base_rtt) / max_u32(rtt->base_rtt, 1);

	if (in_slow_start(tp)) {
		if (diff > GAMMA) {
			u64 target = (u64)cwnd * rtt->base_rtt / max_u32(rtt->min_rtt, 1);

			tp->snd_cwnd = min_u32(cwnd, target + 1);
			tp->snd_ssthresh = min_u32(tp->snd_ssthresh, tp->snd_cwnd);
		} else {
			tcp_slow_start(tp, acked);
		}
	} else if (diff > BETA) {
		tp->snd_cwnd = cwnd - 1;
		tp->snd_ssthresh = min_u32(tp->snd_ssthresh, tp->snd_cwnd);
	} else if (diff < ALPHA) {
		tp->snd_cwnd = cwnd + 1;
	}
	tp->snd_cwnd = max_u32(min_u32(tp->snd_cwnd, tp->snd_cwnd_clamp), 2);
	tp->snd_ssthresh = max_u32(current_ssthresh(tp), 2);
}

HOOK(void, vegas_init, struct sock *sk)
{
	init_vegas_rtt(private(sk), tcp_sk(sk));
}

HOOK(void, vegas_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	add_rtt_sample(private(sk), sample);
}

HOOK(void, vegas_set_state, struct sock *sk, u8 new_state)
{
	begin_round_if_open(private(sk), new_state);
}

static inline void vegas_tx_start(struct sock *sk)
{
	reset_vegas_rtt(private(sk));
}

TX_START_HOOKS(vegas)

HOOK(void, vegas_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct vegas_rtt *rtt = private(sk);

	if (!rtt->is_enabled) {
		tcp_reno_cong_avoid(sk, ack, acked);
	} else if (ends_round(rtt, tp)) {
		if (rtt->samples >= MIN_SAMPLES)
			end_round(rtt, tp, acked);
		else
			tcp_reno_cong_avoid(sk, ack, acked);
		reset_round(rtt);
	} else if (in_slow_start(tp)) {
		tcp_slow_start(tp, acked);
	}
}

HOOK(u32, vegas_ssthresh, struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

HOOK(u32, vegas_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

PROGRAM_REGISTER_TX_START(rw_vegas, vegas,
	.init = (void *)vegas_init,
	.pkts_acked = (void *)vegas_pkts_acked,
	.set_state = (void *)vegas_set_state,
	.cong_avoid = (void *)vegas_cong_avoid,
	.ssthresh = (void *)vegas_ssthresh,
	.undo_cwnd = (void *)vegas_undo_cwnd,
	.flags = NON_RESTRICTED
);

LICENSE;

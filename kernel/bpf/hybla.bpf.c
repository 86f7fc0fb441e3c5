/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * Hybla: a flow with a long RTT grows as fast as one with a short RTT.
 *
 * With rho = max(RTT / 25 ms, 1), an acknowledgement adds
 * - in slow start 2^rho - 1 packets, up to the threshold;
 * - in congestion avoidance rho^2 / w packets: as many per second as Reno at 25 ms.
 * Decrease and undo are Reno's, as is growth outside the open state.
 *
 * Source: Caini and Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks" (Int. J. Satellite
 * Communications 2004).
 * Deviations from the paper, Linux's: the RTT is the least smoothed one so far; the flow begins with a window of rho
 * packets; the exponent is at most 16; one step per acknowledgement, however many packets it covers; no window above
 * 65535 packets. Deviation from Linux: without an RTT of the handshake the flow begins with the initial window, and the
 * first sample sets rho.
 * Rounding: rho in eighths, rounded down; 2^rho and the steps in 1/128 packets, rounded down.
 */
#include "kernel.bpf.h"

struct hybla {
	u32 rho;                /* in eighths */
	u32 least_srtt_us;      /* as tcp_sock's: eight times the smoothed RTT */
	u32 fraction;           /* growth below one packet, in 1/128 */
};

enum { RTT0_US = 25000, RHO_ONE = 8, MAX_RHO = 1 << 15, ONE = 128, LARGEST_EXPONENT = 16, CLAMP = 65535 };

/* 2^(i/8), in 1/128. (Volatile, or clang puts it into a section of mergeable constants, which libbpf does not load.) */
static const volatile u32 powers[RHO_ONE] = {128, 139, 152, 165, 181, 197, 215, 234};

static inline void update_rho(struct hybla *state, const struct tcp_sock *tp)
{
	u32 srtt_us = tp->srtt_us;

	if (!srtt_us || srtt_us >= state->least_srtt_us)
		return;
	state->least_srtt_us = srtt_us;
	state->rho = min_u32(max_u32(srtt_us / RTT0_US, RHO_ONE), MAX_RHO);
}

static inline u32 clamp_of(const struct tcp_sock *tp)
{
	return min_u32(tp->snd_cwnd_clamp, CLAMP);
}

/* Adds `step` / 128 packets. */
static inline void increase(struct tcp_sock *tp, struct hybla *state, u32 step)
{
	u32 fraction = state->fraction + step % ONE;

	state->fraction = fraction % ONE;
	tp->snd_cwnd += step / ONE + fraction / ONE;
	if (fraction >= ONE)
		tp->snd_cwnd_cnt = 0;
	/* A window too large for such steps grows as Reno's, counting one packet per acknowledgement. */
	if (!step && tp->snd_cwnd_cnt >= tp->snd_cwnd) {
		tp->snd_cwnd++;
		tp->snd_cwnd_cnt = 0;
	}
}

HOOK(void, hybla_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct hybla *state = private(sk);

	state->rho = RHO_ONE;
	state->least_srtt_us = ~0u;
	state->fraction = 0;
	update_rho(state, tp);
	if (tp->srtt_us)
		tp->snd_cwnd = min_u32(state->rho / RHO_ONE, clamp_of(tp));
}

HOOK(void, hybla_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct hybla *state = private(sk);

	update_rho(state, tp);
	if (!is_cwnd_limited(tp))
		return;
	u32 rho = state->rho;
	if (ca_state(tp) != CA_OPEN) {
		tcp_reno_cong_avoid(sk, ack, acked);
	} else if (in_slow_start(tp)) {
		u32 exponent = min_u32(rho / RHO_ONE, LARGEST_EXPONENT);

		increase(tp, state, (powers[rho % RHO_ONE] << exponent) - ONE);
		tp->snd_cwnd = min_u32(tp->snd_cwnd, tp->snd_ssthresh);
	} else {
		u32 step = 2 * rho * rho / max_u32(tp->snd_cwnd, 1);

		if (step < ONE)
			tp->snd_cwnd_cnt++;
		increase(tp, state, step);
	}
	tp->snd_cwnd = min_u32(tp->snd_cwnd, clamp_of(tp));
}

HOOK(u32, hybla_ssthresh, struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

HOOK(u32, hybla_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

REGISTER(rw_hybla) = {
	.init = (void *)hybla_init,
	.cong_avoid = (void *)hybla_cong_avoid,
	.ssthresh = (void *)hybla_ssthresh,
	.undo_cwnd = (void *)hybla_undo_cwnd,
	.name = "rw_hybla",
};

LICENSE;

/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * BBR v1 (bbr.bpf.h) on one path, for kernels without tcp_bbr, and to compare its couplings with.
 */
#include "bbr.bpf.h"

static const struct bbr_cruise CRUISE = { .pacing_gain = UNIT_GAIN, .max_cwnd = MAX_CWND };

HOOK(void, bbr_init_hook, struct sock *sk)
{
	bbr_init(sk, private(sk));
	tcp_sk(sk)->snd_ssthresh = INFINITE_SSTHRESH;
}

CONG_CONTROL(bbr_cong_control)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr *bbr = private(sk);
	u32 ssthresh = bbr_on_ack(sk, bbr, rs, &CRUISE);

	if (ssthresh)
		tp->snd_ssthresh = ssthresh;
	tp->snd_cwnd = bbr_allowed_cwnd(tp, bbr, &CRUISE);
}

HOOK(u32, bbr_ssthresh, struct sock *sk)
{
	bbr_save_cwnd(private(sk));
	return tcp_sk(sk)->snd_ssthresh;
}

HOOK(u32, bbr_undo_cwnd, struct sock *sk)
{
	bbr_on_undo(sk, private(sk));
	return tcp_sk(sk)->snd_cwnd;
}

HOOK(void, bbr_set_state, struct sock *sk, u8 new_state)
{
	bbr_on_state(sk, private(sk), new_state);
}

HOOK(void, bbr_cwnd_event, struct sock *sk, enum ca_event event)
{
	bbr_on_event(sk, private(sk), event);
}

HOOK(u32, bbr_min_tso_segs, struct sock *sk)
{
	return bbr_min_segs(sk);
}

HOOK(u32, bbr_sndbuf_expand, struct sock *sk)
{
	return SNDBUF_EXPAND;
}

REGISTER(rw_bbr) = {
	.init = (void *)bbr_init_hook,
	.cong_control = (void *)bbr_cong_control,
	.ssthresh = (void *)bbr_ssthresh,
	.undo_cwnd = (void *)bbr_undo_cwnd,
	.set_state = (void *)bbr_set_state,
	.cwnd_event = (void *)bbr_cwnd_event,
	.min_tso_segs = (void *)bbr_min_tso_segs,
	.sndbuf_expand = (void *)bbr_sndbuf_expand,
	.flags = NON_RESTRICTED,
	.name = "rw_bbr",
};

LICENSE;

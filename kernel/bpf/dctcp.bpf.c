/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * DCTCP: decrease in proportion to the share of marked packets.
 *
 * Switches mark above a short queue; the sender estimates the marked share alpha and reduces by half of it:
 * - Once per round trip: alpha = (1 - g) alpha + g F, F the share of CE-marked packets, g = 1/16.
 * - A mark: to w (1 - alpha / 2), once per window. Loss: half, as Reno. Increase, slow start and undo are Reno's.
 * - As a receiver it echoes each packet's mark (RFC 8257, section 3.2): where CE changes, the acknowledgement that is
 *   being delayed goes out with the mark of the packets before, and the next one is not delayed.
 * Both ends need it; it negotiates ECN by itself. Where the peer refuses ECN the connection becomes Linux's Reno, as its
 *   packets would otherwise claim to be ECN-capable while nobody answers a mark (RFC 3168, section 6.1.1).
 *
 * Source: RFC 8257.
 * Deviation from the RFC, Linux's: marks are counted in packets, not bytes. A loss while a mark reduces the window halves
 * the window of that moment. Kernels differ in whether an acknowledgement's packets are counted before or after in_ack_event: they may
 * count for the next round.
 * Rounding: alpha in 1/1024; its decrease is rounded down, and below 16/1024 it becomes zero.
 */
#include "kernel.bpf.h"

struct dctcp {
	u32 alpha;              /* in 1/1024 */
	u32 round_end;          /* the round ends with the acknowledgement of this */
	u32 delivered;          /* packets, before this round */
	u32 delivered_ce;
	u32 rcv_nxt;            /* as a receiver: before the latest packet */
	bool ce;                /* as a receiver: the latest packet was marked (RFC 8257's DCTCP.CE) */
};

enum { MAX_ALPHA = 1024, MAX_ALPHA_SHIFT = 10, GAIN_SHIFT = 4 };

static inline void update_alpha(struct dctcp *state, u32 delivered, u32 delivered_ce)
{
	u32 decrease = state->alpha >> GAIN_SHIFT;
	u32 increase = ((u64)delivered_ce << (MAX_ALPHA_SHIFT - GAIN_SHIFT)) / max_u32(delivered, 1);

	/* A small alpha becomes zero, as its shift would be zero. */
	state->alpha -= decrease ? decrease : state->alpha;
	state->alpha = min_u32(state->alpha + increase, MAX_ALPHA);
}

HOOK(void, dctcp_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dctcp *state = private(sk);
	char reno[] = "reno";

	/* Linux then also stops marking the socket's packets ECT. */
	if (!(tp->ecn_flags & (ECN_OK | ECN_MODE_ACCECN)) &&
	    !bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, reno, sizeof(reno)))
		return;
	state->alpha = MAX_ALPHA;
	state->round_end = tp->snd_una;
	state->delivered = tp->delivered;
	state->delivered_ce = tp->delivered_ce;
	state->rcv_nxt = tp->rcv_nxt;
	state->ce = false;
}

HOOK(void, dctcp_in_ack_event, struct sock *sk, u32 flags)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dctcp *state = private(sk);

	if (is_after(state->round_end, tp->snd_una))
		return;
	update_alpha(state, tp->delivered - state->delivered, tp->delivered_ce - state->delivered_ce);
	state->round_end = tp->snd_nxt;
	state->delivered = tp->delivered;
	state->delivered_ce = tp->delivered_ce;
}

HOOK(void, dctcp_set_state, struct sock *sk, u8 new_state)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (new_state == CA_RECOVERY && ca_state(tp) != CA_RECOVERY)
		tp->snd_ssthresh = max_u32(tp->snd_cwnd / 2, 2);
}

/* The mark of the acknowledgements from now on. */
static inline void set_echo(struct tcp_sock *tp, bool ce)
{
	tp->ecn_flags = ce ? tp->ecn_flags | ECN_DEMAND_CWR : tp->ecn_flags & ~ECN_DEMAND_CWR;
}

/* A packet arrived, with or without the mark. */
static inline void receive(struct tcp_sock *tp, struct dctcp *state, bool ce)
{
	if (state->ce != ce) {
		if (tp->inet_conn.icsk_ack.pending & ACK_TIMER) {
			set_echo(tp, state->ce);
			bpf_tcp_send_ack(tp, state->rcv_nxt);
		}
		tp->inet_conn.icsk_ack.pending |= ACK_NOW;
	}
	state->ce = ce;
	state->rcv_nxt = tp->rcv_nxt;
	set_echo(tp, ce);
}

HOOK(void, dctcp_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (event == LOSS)
		tp->snd_ssthresh = max_u32(min_u32(tp->snd_ssthresh, tp->prior_cwnd / 2), 2);
	else if (event == ECN_IS_CE || event == ECN_NO_CE)
		receive(tp, private(sk), event == ECN_IS_CE);
}

HOOK(void, dctcp_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

HOOK(u32, dctcp_ssthresh, struct sock *sk)
{
	struct dctcp *state = private(sk);
	u32 cwnd = tcp_sk(sk)->snd_cwnd;

	return max_u32(cwnd - (u32)((u64)cwnd * state->alpha >> (MAX_ALPHA_SHIFT + 1)), 2);
}

HOOK(u32, dctcp_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

REGISTER(rw_dctcp) = {
	.init = (void *)dctcp_init,
	.in_ack_event = (void *)dctcp_in_ack_event,
	.set_state = (void *)dctcp_set_state,
	.cwnd_event = (void *)dctcp_cwnd_event,
	.cong_avoid = (void *)dctcp_cong_avoid,
	.ssthresh = (void *)dctcp_ssthresh,
	.undo_cwnd = (void *)dctcp_undo_cwnd,
	.flags = NEEDS_ECN,
	.name = "rw_dctcp",
};

LICENSE;

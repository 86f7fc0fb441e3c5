/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * A coupling of windows (`coupling`, coupling.bpf.h) over BBR v1 on each subflow.
 *
 * BBR models its path: it sets the pacing rate and bounds the packets in flight. The coupling bounds the connection's share
 * of the path. Both see every event, and each has its own window:
 * - cwnd = the smaller of the two; pacing rate = BBR's; ssthresh = the coupling's.
 * - Growth: the coupled window grows only while it limits the sender: the sender fills it, and it is not the greater of the
 *   two. It may be reduced at any time.
 * - Slow start: both double. When BBR's Startup ends, the coupling's slow start ends too, and window and threshold come down
 *   to the packets that fill the path.
 * - Loss, timeout, undo: the coupled window is reduced and recovers like any (proportional rate reduction, one packet after
 *   a timeout, the earlier window after undo); BBR does as it does alone.
 * - Idling: the coupled window is halved for each retransmission timeout, down to ten packets.
 *
 * Source: Luczak, Ignaciuk and Morawski 2023 for the combinations; how the two combine is
 * cc/control/src/common/path_controllers.rs. RFC 9937 as cc/control/src/common/prr.rs has it; RFC 2861.
 * Deviations: the coupled window grows only on acknowledgements that advance snd_una, also where reordering was seen.
 * Idling counts as with net.ipv4.tcp_slow_start_after_idle = 1, of the application only. A subflow keeps its window while
 * there is no memory for BBR's state.
 */
#pragma once
#define BBR_OF(sk) STORAGE(bbr_state, sk)
#include "bbr.bpf.h"

/* At icsk_ca_priv[COUPLED_WORD]. */
struct coupled_window {
	u32 prior_cwnd;         /* before the latest reduction; 0 once undone */
	u32 prior_ssthresh;
	u32 prr_delivered;      /* packets delivered since the reduction began */
	u32 snd_una;            /* at the previous acknowledgement */
	u32 reserved[4];
	u64 cwnd;               /* packets: word COUPLED_CWND */
};
_Static_assert(8 * COUPLED_WORD + __builtin_offsetof(struct coupled_window, cwnd) == 8 * COUPLED_CWND, "the last word");

/* Null without memory. */
SOCKET_STORAGE(bbr_state, struct bbr);

static inline struct coupled_window *window_of(struct sock *sk)
{
	return (struct coupled_window *)&tcp_sk(sk)->inet_conn.icsk_ca_priv[COUPLED_WORD];
}

/* Calls a hook of the coupling, if it has it, with its window in snd_cwnd. */
#define WITH_COUPLED_CWND(sk, call)                                                                                    \
	do {                                                                                                           \
		u32 sender_cwnd = tcp_sk(sk)->snd_cwnd;                                                                \
		tcp_sk(sk)->snd_cwnd = window_of(sk)->cwnd;                                                            \
		call;                                                                                                  \
		window_of(sk)->cwnd = max_u32(tcp_sk(sk)->snd_cwnd, 1);                                                \
		tcp_sk(sk)->snd_cwnd = sender_cwnd;                                                                    \
	} while (0)

static inline bool in_reduction(u32 ca_state)
{
	return ca_state == CA_CWR || ca_state == CA_RECOVERY;
}

/* The threshold to which undo returns: at least three quarters of the window, except for a reduction within another. */
static inline u32 coupled_ssthresh(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = window_of(sk)->cwnd;

	if (in_reduction(tp->inet_conn.icsk_ca_state))
		return tp->snd_ssthresh;
	return max_u32(tp->snd_ssthresh, (cwnd >> 1) + (cwnd >> 2));
}

static inline u32 allowed_cwnd(struct sock *sk, const struct bbr *bbr)
{
	return min_u32(window_of(sk)->cwnd, bbr_allowed_cwnd(tcp_sk(sk), bbr, &BBR_CRUISE));
}

/* Proportional rate reduction: packets are sent in proportion to those delivered. */
static inline void reduce_rate(struct sock *sk, const struct rate_sample *rs, bool advanced)
{
	struct coupled_window *window = window_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 in_flight = packets_in_flight(tp), ssthresh = tp->snd_ssthresh, out = tp->prr_out, prior = window->prior_cwnd;
	s64 send;

	if (!rs->acked_sacked || !prior)
		return;
	window->prr_delivered += rs->acked_sacked;
	if (in_flight > ssthresh) {
		send = ((u64)ssthresh * window->prr_delivered + prior - 1) / prior;
		send -= out;
	} else {
		send = (s64)window->prr_delivered - out;
		send = send > (s64)rs->acked_sacked ? send : (s64)rs->acked_sacked;
		send += advanced && rs->losses <= 0;
		send = send < (s64)(ssthresh - in_flight) ? send : (s64)(ssthresh - in_flight);
	}
	/* The first retransmission is always sent. */
	if (send < (out == 0))
		send = out == 0;
	window->cwnd = max_u64(in_flight + send, 1);
}

/* Growth, which the coupled window takes only while it limits the sender. */
static inline void grow_coupled(struct sock *sk, const struct bbr *bbr, const struct rate_sample *rs, bool advanced)
{
	struct coupled_window *window = window_of(sk);
	u32 cwnd = window->cwnd;
	bool limits = cwnd <= bbr_allowed_cwnd(tcp_sk(sk), bbr, &BBR_CRUISE) && is_cwnd_limited(tcp_sk(sk));

	if (!advanced)
		return;
	WITH_COUPLED_CWND(sk, coupling.cong_avoid(sk, tcp_sk(sk)->snd_una, rs->acked_sacked));
	if (!limits)
		window->cwnd = min_u32(window->cwnd, cwnd);
}

static inline void start_bbr(struct sock *sk, struct bbr *bbr)
{
	__builtin_memset(bbr, 0, sizeof(*bbr));
	bbr_init(sk, bbr);
}

static inline void over_bbr_init(struct sock *sk)
{
	struct coupled_window *window = window_of(sk);
	struct bbr *bbr = CREATE_STORAGE(bbr_state, sk);
	struct tcp_sock *tp = tcp_sk(sk);

	tp->snd_ssthresh = INFINITE_SSTHRESH;
	window->cwnd = tp->snd_cwnd;
	window->snd_una = tp->snd_una;
	if (coupling.init)
		coupling.init(sk);
	if (bbr)
		start_bbr(sk, bbr);
}

static inline void over_bbr_control(struct sock *sk, const struct rate_sample *rs)
{
	struct coupled_window *window = window_of(sk);
	struct bbr *bbr = BBR_OF(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	bool advanced = tp->snd_una != window->snd_una, reducing = in_reduction(tp->inet_conn.icsk_ca_state);

	window->snd_una = tp->snd_una;
	if (!bbr)
		return;
	if (reducing)
		reduce_rate(sk, rs, advanced);
	else
		grow_coupled(sk, bbr, rs, advanced);
	u32 startup_end = bbr_on_ack(sk, bbr, rs, &BBR_CRUISE);
	if (startup_end && !reducing && window->cwnd < tp->snd_ssthresh) {
		tp->snd_ssthresh = min_u32(tp->snd_ssthresh, max_u32(startup_end, 2));
		window->cwnd = min_u32(window->cwnd, tp->snd_ssthresh);
	}
	tp->snd_cwnd = allowed_cwnd(sk, bbr);
}

static inline u32 over_bbr_ssthresh(struct sock *sk)
{
	struct coupled_window *window = window_of(sk);
	struct bbr *bbr = BBR_OF(sk);
	u32 ssthresh;

	window->prior_ssthresh = coupled_ssthresh(sk);
	window->prior_cwnd = window->cwnd;
	window->prr_delivered = 0;
	WITH_COUPLED_CWND(sk, ssthresh = coupling.ssthresh(sk));
	if (bbr)
		bbr_save_cwnd(bbr);
	return ssthresh;
}

static inline void over_bbr_set_state(struct sock *sk, u8 state)
{
	struct coupled_window *window = window_of(sk);
	struct bbr *bbr = BBR_OF(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 prior = tp->inet_conn.icsk_ca_state;

	if (coupling.set_state)
		coupling.set_state(sk, state);
	if (state == CA_LOSS)
		window->cwnd = tp->snd_cwnd;
	else if (state == CA_RECOVERY && prior != CA_RECOVERY)
		window->cwnd = packets_in_flight(tp) + 1;
	else if (in_reduction(prior) && state < CA_CWR && window->prior_cwnd && tp->snd_ssthresh < INFINITE_SSTHRESH)
		window->cwnd = tp->snd_ssthresh;
	if (bbr)
		bbr_on_state(sk, bbr, state);
}

static inline u32 over_bbr_undo_cwnd(struct sock *sk)
{
	struct coupled_window *window = window_of(sk);
	struct bbr *bbr = BBR_OF(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (window->prior_cwnd) {
		window->cwnd = max_u32(window->cwnd, window->prior_cwnd);
		tp->snd_ssthresh = max_u32(tp->snd_ssthresh, window->prior_ssthresh);
		window->prior_cwnd = 0;
	}
	if (!bbr)
		return tp->snd_cwnd;
	bbr_on_undo(sk, bbr);
	return allowed_cwnd(sk, bbr);
}

/* Halves the coupled window once for each retransmission timeout without a packet sent. */
static inline void restart_after_idling(struct sock *sk)
{
	struct coupled_window *window = window_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 idle = (u32)bpf_jiffies64() - tp->lsndtime, rto = tp->inet_conn.icsk_rto, cwnd = window->cwnd;

	if (!rto || idle <= rto)
		return;
	if (coupling.cwnd_event)
		coupling.cwnd_event(sk, CWND_RESTART);
	tp->snd_ssthresh = coupled_ssthresh(sk);
	window->cwnd = max_u32(cwnd >> min_u32((idle - 1) / rto, 31), min_u32(TCP_INIT_CWND, cwnd));
}

static inline void over_bbr_tx_start(struct sock *sk)
{
	struct bbr *bbr = BBR_OF(sk);

	if (tcp_sk(sk)->app_limited)
		restart_after_idling(sk);
	if (bbr)
		bbr_on_tx_start(sk, bbr);
}

PROGRAM_HOOK(void, program_init, struct sock *sk)
{
	over_bbr_init(sk);
}

PROGRAM_HOOK(void, program_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	if (coupling.pkts_acked)
		coupling.pkts_acked(sk, sample);
}

CONG_CONTROL(program_cong_control)
{
	over_bbr_control(sk, rs);
}

PROGRAM_HOOK(u32, program_ssthresh, struct sock *sk)
{
	return over_bbr_ssthresh(sk);
}

PROGRAM_HOOK(void, program_set_state, struct sock *sk, u8 new_state)
{
	over_bbr_set_state(sk, new_state);
}

PROGRAM_HOOK(u32, program_undo_cwnd, struct sock *sk)
{
	return over_bbr_undo_cwnd(sk);
}

PROGRAM_HOOK(void, program_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	if (event == TX_START)
		over_bbr_tx_start(sk);
	else if (coupling.cwnd_event)
		coupling.cwnd_event(sk, event);
}

OPTIONAL_HOOK(void, program_cwnd_event_tx_start, struct sock *sk)
{
	over_bbr_tx_start(sk);
}

PROGRAM_HOOK(u32, program_min_tso_segs, struct sock *sk)
{
	return bbr_min_segs(sk);
}

PROGRAM_HOOK(u32, program_sndbuf_expand, struct sock *sk)
{
	return SNDBUF_EXPAND;
}

/* The registration of the program `object`. */
#define OVER_BBR(object)                                                                                               \
	PROGRAM_REGISTER_TX_START(object, program,                                                                     \
		.init = (void *)program_init,                                                                          \
		.pkts_acked = (void *)program_pkts_acked,                                                              \
		.cong_control = (void *)program_cong_control,                                                          \
		.ssthresh = (void *)program_ssthresh,                                                                  \
		.set_state = (void *)program_set_state,                                                                \
		.undo_cwnd = (void *)program_undo_cwnd,                                                                \
		.min_tso_segs = (void *)program_min_tso_segs,                                                          \
		.sndbuf_expand = (void *)program_sndbuf_expand,                                                        \
		.flags = NON_RESTRICTED                                                                                \
	);                                                                                                             \
	PROGRAM_LICENSE

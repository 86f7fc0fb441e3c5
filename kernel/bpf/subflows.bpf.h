/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * The subflows of a connection, as a coupled algorithm sees them at an event of one.
 *
 * The list is read again each time and nothing is kept, so nothing can leak or be out of date: the socket leads to its
 * subflow context, that to the MPTCP socket, that to the list of its subflows. All of these may be read only, and by
 * reads that cannot fault. A context that leaves the list during the walk ends it, as what is read of it is no longer
 * the connection's or zero; then some siblings do not count in this event. The own subflow comes first and is always
 * there. A sibling counts while it is in use (RFC 6356 couples the subflows over which a connection sends): while it
 * has packets out, or has sent less than a retransmission timeout ago. One that has never sent data, a backup that
 * stands by, and one that has timed out since its latest acknowledgement do not.
 */
#pragma once
#include "kernel.bpf.h"

enum { MAX_SUBFLOWS = 8 };          /* that count, of those that are active */
enum { MAX_CONTEXTS = 32 };         /* of the list that are visited */
enum { CWND_LIMIT = 1 << 20 };      /* a greater window counts as this */
#ifndef COUPLED_CWND
#define COUPLED_CWND 0              /* word of the algorithm's state with its window; 0: that is the sender's */
#endif
enum { MICROSECOND = 8 };           /* least smoothed RTT, in eighths of a microsecond */

/* A subflow that is established and has an RTT sample; a sibling is in use, too. */
struct subflow {
	u32 cwnd;           /* packets, 1 to CWND_LIMIT; a sibling's in a reduction: its ssthresh (RFC 6356, section 3) */
	u32 srtt_eighths;   /* smoothed RTT, eighths of a microsecond as in tcp_sock; at least MICROSECOND */
	u64 shared;         /* the first word of the algorithm's state; 0 if the subflow runs another algorithm */
#ifdef SUBFLOW_IDS
	u64 id;             /* address of the socket */
#endif
};

/* The subflows of one connection. */
struct group {
	struct subflow subflows[MAX_SUBFLOWS];      /* the own one, of the event, is the first */
	u32 count;                                  /* 0 if the own one is not active */
};

struct walk {
	struct group *group;
	struct sock *sk, *conn;
	const struct tcp_congestion_ops *ca_ops;
	struct list_head *position, *end;
};

static inline struct subflow *subflow_at(struct group *group, u32 index)
{
	return &group->subflows[index % MAX_SUBFLOWS];
}

/* The context whose list node this is. */
static inline struct mptcp_subflow_context *context_of(struct list_head *node)
{
#ifdef __bpf__
	return (void *)node - bpf_core_field_offset(struct mptcp_subflow_context, node);
#else
	return (struct mptcp_subflow_context *)((char *)node - offsetof(struct mptcp_subflow_context, node));
#endif
}

/* Whether a sibling is in use. */
static inline bool in_use(struct tcp_sock *tp)
{
	if (!READ(tp, data_segs_out) || READ(tp, inet_conn.icsk_retransmits))
		return false;
	return READ(tp, packets_out) || (u32)bpf_jiffies64() - READ(tp, lsndtime) < READ(tp, inet_conn.icsk_rto);
}

static inline void add_subflow(struct walk *walk, struct tcp_sock *tp)
{
	struct group *group = walk->group;
	u32 srtt_eighths = READ(tp, srtt_us);
	u8 ca_state = READ_BITS(tp, inet_conn.icsk_ca_state);
	bool reduced = (struct sock *)tp != walk->sk && (ca_state == CA_CWR || ca_state == CA_RECOVERY);

	if (READ(tp, inet_conn.icsk_inet.sk.__sk_common.skc_state) != TCP_ESTABLISHED || !srtt_eighths)
		return;
	struct subflow *subflow = subflow_at(group, group->count);
	bool same = READ(tp, inet_conn.icsk_ca_ops) == walk->ca_ops;
	u32 cwnd = COUPLED_CWND && same ? (u32)READ(tp, inet_conn.icsk_ca_priv[COUPLED_CWND]) : READ(tp, snd_cwnd);

	if (reduced)
		cwnd = READ(tp, snd_ssthresh);
	subflow->cwnd = min_u32(max_u32(cwnd, 1), CWND_LIMIT);
	subflow->srtt_eighths = max_u32(srtt_eighths, MICROSECOND);
#ifdef SUBFLOW_IDS
	subflow->id = (u64)tp;
#endif
	subflow->shared = same ? READ(tp, inet_conn.icsk_ca_priv[0]) : 0;
	group->count++;
}

static long visit_context(u32 index, struct walk *walk)
{
	struct mptcp_subflow_context *context = context_of(walk->position);

	if (walk->position == walk->end || !walk->position || walk->group->count >= MAX_SUBFLOWS)
		return 1;
	struct tcp_sock *tp = (struct tcp_sock *)READ(context, tcp_sock);
	if (READ(context, conn) != walk->conn || !tp)
		return 1;
	if ((struct sock *)tp != walk->sk && in_use(tp))
		add_subflow(walk, tp);
	walk->position = READ(context, node.next);
	return 0;
}

/* Reads the subflows of the connection of `sk`. Of plain TCP, and while the own subflow is not active: none. */
static inline void read_group(struct sock *sk, struct group *group)
{
	struct tcp_sock *tp = tcp_sk(sk);

	CLEAR(*group);
	if (!READ(tp, is_mptcp))
		return;
	struct mptcp_subflow_context *context = READ(tp, inet_conn.icsk_ulp_data);
	if (!context)
		return;
	struct mptcp_sock *connection = (struct mptcp_sock *)READ(context, conn);
	if (!connection)
		return;
	struct walk walk = {
		.group = group,
		.sk = sk,
		.conn = (struct sock *)connection,
		.ca_ops = READ(tp, inet_conn.icsk_ca_ops),
		.position = READ(connection, conn_list.next),
		.end = &connection->conn_list,
	};
	add_subflow(&walk, tp);
	if (group->count)
		bpf_loop(MAX_CONTEXTS, visit_context, &walk, 0);
}

static inline struct subflow *own_subflow(struct group *group)
{
	return &group->subflows[0];
}

/* Whether the own subflow has no active sibling: then every coupled algorithm except wVegas is Reno. */
static inline bool is_alone(const struct group *group)
{
	return group->count < 2;
}

/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * Stands for the kernel's sender, as little of it as an algorithm sees, for a test of the program that PROGRAM names:
 * this file includes its source, the very one that becomes the eBPF object.
 *
 *     cc -O2 -DPROGRAM='"lia.bpf.c"' -Ikernel/bpf -Ikernel/bpf/native kernel/bpf/native/main.c
 *
 * Standard input has a line for each event, `EVENT SUBFLOW [NAME VALUE]...`: the names are those of `values` below, each
 * sets a member of the subflow, or a value of this event, before the hooks are called. A member stays as it is until it
 * is set again, a value of the event is zero without its name. A subflow that is `up` is at the end of the MPTCP
 * connection's list. The answer to each line: snd_cwnd, snd_ssthresh, sk_pacing_rate and the first two words of the
 * algorithm's state.
 *
 *     up          a new socket, established: init
 *     down        release; the socket leaves the list
 *     set         no hook
 *     progress    pkts_acked and in_ack_event, before what the acknowledgement causes; nothing, not even of its values, to a
 *                 program without in_ack_event
 *     ack         pkts_acked and in_ack_event, in prior_state, if they were not called for its progress; set_state if
 *                 new_state is another; then cong_control, or else cong_avoid if may_raise is set and the window is not being
 *                 reduced
 *     congestion  prior_cwnd and ssthresh, then set_state(new_state), where it is a loss cwnd_event(LOSS) between them
 *                 and a window of in_flight + 1
 *     state       set_state(new_state): a timeout in an episode in which the window was reduced already, with a window of
 *                 in_flight + 1, or the end of one
 *     undo        undo_cwnd, and the threshold that the kernel kept (prior_ssthresh)
 *     recovered   the window becomes the threshold if to_ssthresh is set and there is no cong_control;
 *                 cwnd_event(COMPLETE_CWR)
 *     event       cwnd_event(new_event), or cwnd_event_tx_start()
 *     unlink      the socket leaves the list, whose walkers may still stand on it: its node is cleared
 *
 * Proportional rate reduction, cwnd validation and the like are the kernel's own: a driver sets their outcome.
 */
#include PROGRAM

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUBFLOWS = 32 };

struct socket {
	struct tcp_sock tp;
	struct mptcp_subflow_context context;
	u32 prior_ssthresh;
	u32 limited_from, limited_to;   /* `delivered` at which packets are sent that the algorithm limited */
	bool has_progress;              /* of the acknowledgement under way */
};

static struct socket sockets[SUBFLOWS];

static u32 native_index(struct sock *sk)
{
	return (struct socket *)sk - sockets;
}

static struct mptcp_sock connection = { .conn_list.next = &connection.conn_list };

/* Values of one event. */
static struct {
	u64 acked, may_raise, prior_state, new_state, new_event, to_ssthresh, in_flight, idle, sent, slow_path;
	/* Whether nothing is outstanding and nothing was acknowledged. */
	u64 nothing_outstanding;
	struct ack_sample sample;
	struct rate_sample rate;
} event;

/* Sets one value by its name. */
static void set(struct socket *socket, const char *name, long long value)
{
	struct tcp_sock *tp = &socket->tp;
#define VALUE(text, member) if (!strcmp(name, text)) { member = value; return; }
	VALUE("time_ns", native_time)
	VALUE("keeps_increase", native_keeps_increase)
	VALUE("random0", native_random[0])
	VALUE("random1", native_random[1])
	VALUE("snd_cwnd", tp->snd_cwnd)
	VALUE("snd_ssthresh", tp->snd_ssthresh)
	VALUE("snd_cwnd_clamp", tp->snd_cwnd_clamp)
	VALUE("prior_cwnd", tp->prior_cwnd)
	VALUE("prior_ssthresh", socket->prior_ssthresh)
	VALUE("srtt_eighths", tp->srtt_us)
	VALUE("mss", tp->mss_cache)
	VALUE("delivered", tp->delivered)
	VALUE("delivered_ce", tp->delivered_ce)
	VALUE("lost", tp->lost)
	VALUE("limited_until", tp->app_limited)
	VALUE("min_rtt_us", tp->rtt_min.s[0].v)
	VALUE("packets_out", tp->packets_out)
	VALUE("data_segs_out", tp->data_segs_out)
	VALUE("lsndtime", tp->lsndtime)
	VALUE("retransmits", tp->inet_conn.icsk_retransmits)
	VALUE("snd_una", tp->snd_una)
	VALUE("snd_nxt", tp->snd_nxt)
	VALUE("mstamp_us", tp->tcp_mstamp)
	VALUE("idle", event.idle)
	VALUE("rto", tp->inet_conn.icsk_rto)
	VALUE("sent", event.sent)
	VALUE("slow_path", event.slow_path)
	VALUE("nothing_outstanding", event.nothing_outstanding)
	VALUE("cwnd_limited", tp->is_cwnd_limited)
	VALUE("ca_state", tp->inet_conn.icsk_ca_state)
	VALUE("sk_state", tp->inet_conn.icsk_inet.sk.__sk_common.skc_state)
	VALUE("acked", event.acked)
	VALUE("may_raise", event.may_raise)
	VALUE("prior_state", event.prior_state)
	VALUE("new_state", event.new_state)
	VALUE("new_event", event.new_event)
	VALUE("to_ssthresh", event.to_ssthresh)
	VALUE("in_flight", event.in_flight)
	VALUE("pkts_acked", event.sample.pkts_acked)
	VALUE("rtt_us", event.sample.rtt_us)
	VALUE("prior_in_flight", event.rate.prior_in_flight)
	VALUE("losses", event.rate.losses)
	VALUE("rate_delivered", event.rate.delivered)
	VALUE("rate_interval_us", event.rate.interval_us)
	VALUE("prior_delivered", event.rate.prior_delivered)
	VALUE("prior_mstamp_us", event.rate.prior_mstamp)
	VALUE("app_limited", event.rate.is_app_limited)
	VALUE("ack_delayed", event.rate.is_ack_delayed)
	fprintf(stderr, "no value `%s`: native/main.c lists them\n", name);
	exit(2);
}

static void set_state(struct socket *socket, u8 state)
{
	if (registered.set_state)
		registered.set_state((struct sock *)&socket->tp, state);
	socket->tp.inet_conn.icsk_ca_state = state;
}

/* As Linux 7.1 and later for subflows of an even number, and as earlier ones for the others. */
static void cwnd_event(struct socket *socket, enum tcp_ca_event which)
{
	struct sock *sk = (struct sock *)&socket->tp;
	bool has_own_hook = which == TX_START && native_index(sk) % 2 == 0;

	if (has_own_hook && registered.cwnd_event_tx_start)
		registered.cwnd_event_tx_start(sk);
	if (!has_own_hook && registered.cwnd_event)
		registered.cwnd_event(sk, which);
}

static void unlink_node(struct list_head *node)
{
	for (struct list_head *prior = &connection.conn_list; prior->next; prior = prior->next) {
		if (prior->next == node) {
			prior->next = node->next;
			return;
		}
		if (prior->next == &connection.conn_list)
			return;
	}
}

static void up(struct socket *socket)
{
	struct list_head *last = &connection.conn_list;
	struct tcp_sock *tp = &socket->tp;

	unlink_node(&socket->context.node);
	memset(socket, 0, sizeof(*socket));
	while (last->next != &connection.conn_list)
		last = last->next;
	last->next = &socket->context.node;
	socket->context = (struct mptcp_subflow_context) {
		.node.next = &connection.conn_list, .conn = (struct sock *)&connection, .tcp_sock = (struct sock *)tp,
	};
	tp->inet_conn.icsk_inet.sk.__sk_common.skc_state = TCP_ESTABLISHED;
	tp->inet_conn.icsk_ca_ops = &registered;
	tp->inet_conn.icsk_ulp_data = &socket->context;
	tp->is_mptcp = true;
	tp->snd_cwnd = 10;
	tp->snd_ssthresh = INFINITE_SSTHRESH;
	tp->snd_cwnd_clamp = INFINITE_SSTHRESH;
	tp->mss_cache = 1448;
	tp->rtt_min.s[0].v = 0xffffffff;
	tp->inet_conn.icsk_inet.sk.sk_max_pacing_rate = 0xffffffffffffffff;
}

#ifndef LIMITS_ITSELF
#define LIMITS_ITSELF(sk) false
#endif

/* cong_control, of which LIMITS_ITSELF tells whether it marks its packets as application-limited. */
static void cong_control(struct socket *socket)
{
	struct tcp_sock *tp = &socket->tp;
	bool limited = LIMITS_ITSELF((struct sock *)tp);
	u32 prior_delivered = event.rate.prior_delivered;

	if (socket->limited_to && prior_delivered >= socket->limited_from && prior_delivered <= socket->limited_to)
		event.rate.is_app_limited = true;
	registered.cong_control((struct sock *)tp, tp->snd_una, 0, &event.rate);
	if (!LIMITS_ITSELF((struct sock *)tp) && !limited)
		return;
	if (!limited)
		socket->limited_from = tp->delivered;
	socket->limited_to = tp->app_limited;
}

static void acked(struct socket *socket)
{
	struct sock *sk = (struct sock *)&socket->tp;

	/* As in Linux, which has no packets to acknowledge where nothing is outstanding. */
	if (registered.pkts_acked && !event.nothing_outstanding)
		registered.pkts_acked(sk, &event.sample);
	if (registered.in_ack_event)
		registered.in_ack_event(sk, event.slow_path ? SLOW_PATH : 0);
}

static void ack(struct socket *socket)
{
	struct sock *sk = (struct sock *)&socket->tp;
	u8 state = event.new_state, state_before = socket->tp.inet_conn.icsk_ca_state;

	socket->tp.lost += event.rate.losses;
	socket->tp.prr_out += event.sent;
	if (event.acked)
		socket->tp.delivered_mstamp = socket->tp.tcp_mstamp;
	event.sample.in_flight = event.rate.delivered > 0 ? event.rate.delivered * socket->tp.mss_cache : 0;
	event.rate.rtt_us = event.sample.rtt_us;
	event.rate.acked_sacked = event.acked;
	socket->tp.inet_conn.icsk_ca_state = event.prior_state;
	if (!socket->has_progress)
		acked(socket);
	socket->has_progress = false;
	socket->tp.inet_conn.icsk_ca_state = state_before;
	if (state != socket->tp.inet_conn.icsk_ca_state)
		set_state(socket, state);
	if (registered.cong_control)
		cong_control(socket);
	else if (event.may_raise && state != CA_CWR && state != CA_RECOVERY)
		registered.cong_avoid(sk, socket->tp.snd_una, event.acked);
}

static void congestion(struct socket *socket)
{
	struct tcp_sock *tp = &socket->tp;
	bool reducing = tp->inet_conn.icsk_ca_state == CA_CWR || tp->inet_conn.icsk_ca_state == CA_RECOVERY;

	if (event.new_state == CA_LOSS || !reducing) {
		tp->prior_cwnd = tp->snd_cwnd;
		tp->snd_ssthresh = registered.ssthresh((struct sock *)tp);
		tp->snd_cwnd_cnt = 0;
		tp->prr_out = 0;
	}
	tp->packets_out = event.in_flight;
	if (event.new_state == CA_LOSS)
		cwnd_event(socket, LOSS);
	if (event.new_state == CA_LOSS)
		tp->snd_cwnd = event.in_flight + 1;
	set_state(socket, event.new_state);
}

static void handle(const char *name, struct socket *socket)
{
	struct sock *sk = (struct sock *)&socket->tp;
	struct tcp_sock *tp = &socket->tp;

	if (!strcmp(name, "up")) {
		tp->delivered_mstamp = tp->tcp_mstamp;
		if (registered.init)
			registered.init(sk);
	} else if (!strcmp(name, "down")) {
		if (registered.release)
			registered.release(sk);
		unlink_node(&socket->context.node);
	} else if (!strcmp(name, "progress")) {
		acked(socket);
		socket->has_progress = true;
	} else if (!strcmp(name, "ack")) {
		ack(socket);
	} else if (!strcmp(name, "congestion")) {
		congestion(socket);
	} else if (!strcmp(name, "state")) {
		if (event.new_state == CA_LOSS) {
			tp->snd_cwnd = event.in_flight + 1;
			tp->snd_cwnd_cnt = 0;
		}
		set_state(socket, event.new_state);
	} else if (!strcmp(name, "undo")) {
		tp->snd_cwnd = registered.undo_cwnd(sk);
		if (socket->prior_ssthresh > tp->snd_ssthresh)
			tp->snd_ssthresh = socket->prior_ssthresh;
	} else if (!strcmp(name, "recovered")) {
		if (event.to_ssthresh && !registered.cong_control && tp->snd_ssthresh < INFINITE_SSTHRESH)
			tp->snd_cwnd = tp->snd_ssthresh;
		cwnd_event(socket, COMPLETE_CWR);
	} else if (!strcmp(name, "event")) {
		tp->lsndtime = (u32)bpf_jiffies64() - event.idle;
		cwnd_event(socket, event.new_event);
		if (event.new_event == TX_START)
			tp->delivered_mstamp = tp->tcp_mstamp;
	} else if (!strcmp(name, "unlink")) {
		socket->context = (struct mptcp_subflow_context) {};
	} else if (strcmp(name, "set")) {
		fprintf(stderr, "no event `%s`: native/main.c lists them\n", name);
		exit(2);
	}
}

/* The value after a name in the line. */
static long long value_of(const char *name)
{
	const char *text = strtok(NULL, " \n");

	if (!text) {
		fprintf(stderr, "`%s` has no value\n", name);
		exit(2);
	}
	return strtoll(text, NULL, 10);
}

int main(void)
{
	char line[2048];

	while (fgets(line, sizeof(line), stdin)) {
		const char *name = strtok(line, " \n");
		struct socket *socket = &sockets[value_of(name) % SUBFLOWS];
		struct tcp_sock *tp = &socket->tp;

		memset(&event, 0, sizeof(event));
		native_drawn = 0;
		event.sample.rtt_us = -1;
		if (!strcmp(name, "up"))
			up(socket);
		if (strcmp(name, "progress") || registered.in_ack_event || registered.pkts_acked) {
			for (const char *value = strtok(NULL, " \n"); value; value = strtok(NULL, " \n"))
				set(socket, value, value_of(value));
			handle(name, socket);
		}
		printf("%u %u %lu %llu %lld\n", tp->snd_cwnd, tp->snd_ssthresh, tp->inet_conn.icsk_inet.sk.sk_pacing_rate,
			tp->inet_conn.icsk_ca_priv[0], (s64)tp->inet_conn.icsk_ca_priv[1]);
	}
	return 0;
}

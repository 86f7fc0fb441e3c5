/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * What kernel.bpf.h takes from here where there is no kernel: reads of members, bpf_loop, the kernel's functions that
 * programs call, and a clock that the driver sets. Another helper or kernel function that a program comes to need goes
 * here, as does a member of `tcp_sock` into kernel.bpf.h.
 */
#pragma once
#include <stddef.h>

#define KERNEL_VALUE(type, enumerator) enumerator
#define READ(pointer, member) ((pointer)->member)
#define READ_BITS(pointer, member) ((pointer)->member)
#define CLEAR(variable) __builtin_memset(&(variable), 0, sizeof(variable))
#define PROGRAM_HOOK(type, name, ...) static type name(__VA_ARGS__)
#define CONG_CONTROL(name) static void name(struct sock *sk, u32 snd_una, int flag, const struct rate_sample *rs)
#define PROGRAM_LICENSE struct license
#define OPTIONAL_HOOK PROGRAM_HOOK
#define PROGRAM_REGISTER_TX_START(object, prefix, ...)                                                                 \
	static struct tcp_congestion_ops registered = {                                                                \
		__VA_ARGS__, .cwnd_event = (void *)prefix##_cwnd_event,                                                \
		.cwnd_event_tx_start = (void *)prefix##_cwnd_event_tx_start,                                           \
	}
#define PROGRAM_REGISTER(object) static struct tcp_congestion_ops registered

/* Whether an increase is kept for a round trip; off, as the controllers compute theirs at each acknowledgement. */
static bool native_keeps_increase;
#define KEEPS_INCREASE native_keeps_increase

#define SOCKET_STORAGE(map, value_type) static value_type map[32]
#define STORAGE(map, sk) (&(map)[native_index(sk)])
#define CREATE_STORAGE(map, sk) STORAGE(map, sk)
#define NEW_STORAGE(map, sk) ((typeof(STORAGE(map, sk)))__builtin_memset(STORAGE(map, sk), 0, sizeof(*STORAGE(map, sk))))

static u32 native_index(struct sock *sk);

enum { CONFIG_HZ = 1000 };
static const int LINUX_KERNEL_VERSION = 6 << 16 | 18 << 8;

/* Time since the start, nanoseconds. */
static u64 native_time;

static inline u64 bpf_ktime_get_ns(void)
{
	return native_time;
}

static inline u64 bpf_jiffies64(void)
{
	return native_time / (1000000000 / CONFIG_HZ);
}

/* The random numbers of the event, in the order of their use. */
static u32 native_random[2];
static u32 native_drawn;

static inline u32 bpf_get_prandom_u32(void)
{
	return native_random[native_drawn++ % 2];
}

/* No other algorithm is there. */
static inline long bpf_setsockopt(void *sk, int level, int name, void *value, int length)
{
	(void)sk, (void)level, (void)name, (void)value, (void)length;
	return -1;
}

static inline long bpf_tcp_send_ack(void *tp, u32 rcv_nxt)
{
	(void)tp;
	(void)rcv_nxt;
	return 0;
}

#define bpf_loop(count, body, context, flags) native_loop(count, (long (*)(u32, void *))(void *)(body), context)

static inline long native_loop(u32 count, long (*body)(u32, void *), void *context)
{
	for (u32 index = 0; index < count; index++) {
		if (body(index, context))
			return index + 1;
	}
	return count;
}

/* Grows by the packets acknowledged up to the threshold; returns those left over. */
static inline u32 tcp_slow_start(struct tcp_sock *tp, u32 acked)
{
	u64 grown = (u64)tp->snd_cwnd + acked;
	u32 cwnd = grown < tp->snd_ssthresh ? grown : tp->snd_ssthresh;
	u32 used = cwnd - tp->snd_cwnd;

	tp->snd_cwnd = cwnd < tp->snd_cwnd_clamp ? cwnd : tp->snd_cwnd_clamp;
	return acked - used;
}

/* A packet more for each `w` packets acknowledged. */
static inline void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked)
{
	if (tp->snd_cwnd_cnt >= w) {
		tp->snd_cwnd_cnt = 0;
		tp->snd_cwnd++;
	}
	tp->snd_cwnd_cnt += acked;
	tp->snd_cwnd += tp->snd_cwnd_cnt / w;
	tp->snd_cwnd_cnt %= w;
	if (tp->snd_cwnd > tp->snd_cwnd_clamp)
		tp->snd_cwnd = tp->snd_cwnd_clamp;
}

static inline u32 tcp_reno_ssthresh(struct sock *sk)
{
	u32 half = ((struct tcp_sock *)sk)->snd_cwnd / 2;

	return half > 2 ? half : 2;
}

static inline void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	(void)ack;
	/* The driver has put slow start's rule into the flag. */
	if (!tp->is_cwnd_limited)
		return;
	if (tp->snd_cwnd < tp->snd_ssthresh)
		acked = tcp_slow_start(tp, acked);
	if (acked)
		tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
}

static inline u32 tcp_reno_undo_cwnd(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	return tp->snd_cwnd > tp->prior_cwnd ? tp->snd_cwnd : tp->prior_cwnd;
}

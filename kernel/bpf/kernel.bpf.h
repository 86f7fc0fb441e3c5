/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * What every program here uses of the kernel: the members of its structures, by name (CO-RE finds their offsets in the
 * running kernel's BTF), its functions, and the arithmetic that all share.
 *
 * The same files are compiled natively for the tests, with native.h in place of the kernel.
 */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;
typedef _Bool bool;
#define true 1
#define false 0

/* The kernel's enumerations, with its names; the macros below give the values of the kernel that runs. */
enum tcp_ca_state { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
enum tcp_ca_event {
	CA_EVENT_TX_START, CA_EVENT_CWND_RESTART, CA_EVENT_COMPLETE_CWR, CA_EVENT_LOSS, CA_EVENT_ECN_NO_CE,
	CA_EVENT_ECN_IS_CE,
};
enum inet_csk_ack_state_t { ICSK_ACK_TIMER = 2, ICSK_ACK_NOW = 16 };
enum sk_pacing { SK_PACING_NONE, SK_PACING_NEEDED };

#define CA_OPEN KERNEL_VALUE(tcp_ca_state, TCP_CA_Open)
#define CA_DISORDER KERNEL_VALUE(tcp_ca_state, TCP_CA_Disorder)
#define CA_CWR KERNEL_VALUE(tcp_ca_state, TCP_CA_CWR)
#define CA_RECOVERY KERNEL_VALUE(tcp_ca_state, TCP_CA_Recovery)
#define CA_LOSS KERNEL_VALUE(tcp_ca_state, TCP_CA_Loss)
#define TX_START KERNEL_VALUE(tcp_ca_event, CA_EVENT_TX_START)
#define CWND_RESTART KERNEL_VALUE(tcp_ca_event, CA_EVENT_CWND_RESTART)
#define COMPLETE_CWR KERNEL_VALUE(tcp_ca_event, CA_EVENT_COMPLETE_CWR)
#define LOSS KERNEL_VALUE(tcp_ca_event, CA_EVENT_LOSS)
#define ECN_NO_CE KERNEL_VALUE(tcp_ca_event, CA_EVENT_ECN_NO_CE)
#define ECN_IS_CE KERNEL_VALUE(tcp_ca_event, CA_EVENT_ECN_IS_CE)
#define ACK_TIMER KERNEL_VALUE(inet_csk_ack_state_t, ICSK_ACK_TIMER)
#define ACK_NOW KERNEL_VALUE(inet_csk_ack_state_t, ICSK_ACK_NOW)
#define PACING_NONE KERNEL_VALUE(sk_pacing, SK_PACING_NONE)
#define PACING_NEEDED KERNEL_VALUE(sk_pacing, SK_PACING_NEEDED)

/* The kernel has no names for these in its BTF: of states, and of in_ack_event's flags. */
enum { TCP_ESTABLISHED = 1, SLOW_PATH = 1 };
/*
 * TCP_CONG_*. NON_RESTRICTED: processes without CAP_NET_ADMIN may choose it. Programs have it that couple, or that grow at
 * most as Reno or CUBIC do and reduce as they do.
 */
enum { NON_RESTRICTED = 1, NEEDS_ECN = 2 };
enum { ECN_OK = 1, ECN_DEMAND_CWR = 4, ECN_MODE_ACCECN = 16 };             /* TCP_ECN_*; the last since Linux 6.18 */
enum { SOL_TCP = 6, TCP_CONGESTION = 13 };
enum { INFINITE_SSTHRESH = 0x7fffffff };
enum { LINUX_6_10 = 6 << 16 | 10 << 8 };                                  /* of LINUX_KERNEL_VERSION */
enum { USEC_PER_SEC = 1000000, USEC_PER_MSEC = 1000 };

#ifdef __bpf__
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
#endif

struct list_head {
	struct list_head *next;
};

struct sock_common {
	unsigned char skc_state;
};

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate;   /* bytes per second */
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;
};

struct inet_sock {
	struct sock sk;
};

struct tcp_congestion_ops;

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	const struct tcp_congestion_ops *icsk_ca_ops;
	u32 icsk_rto;                   /* jiffies */
	u8 icsk_retransmits;            /* timeouts since the latest acknowledgement of new data */
	void *icsk_ulp_data;
	u8 icsk_ca_state : 5;
	struct {
		u8 pending;             /* acknowledgement to be sent: ACK_* */
	} icsk_ack;
	u64 icsk_ca_priv[13];
};

struct minmax_sample {
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 snd_cwnd;                   /* packets */
	u32 snd_ssthresh;
	u32 snd_cwnd_cnt;
	u32 snd_cwnd_clamp;
	u32 snd_cwnd_stamp;
	u32 prior_cwnd;
	u32 reordering;                 /* the greatest distance seen, packets */
	u32 prr_out;                    /* packets sent since the present reduction began */
	u32 lsndtime;                   /* time of the latest packet sent, jiffies */
	u32 max_packets_out;
	u32 packets_out;
	u32 data_segs_out;              /* segments with data that were ever sent */
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 srtt_us;                    /* eight times the smoothed RTT, microseconds */
	struct minmax rtt_min;          /* s[0].v: the minimum RTT, microseconds; all ones without a sample */
	u32 mss_cache;                  /* bytes */
	u32 delivered;
	u64 delivered_mstamp;           /* time of the latest delivery, microseconds */
	u32 delivered_ce;               /* of `delivered`, those whose acknowledgement echoed a mark */
	u32 lost;
	u32 app_limited;                /* `delivered` up to which samples are application-limited; 0: none are */
	u32 snd_una;
	u32 snd_nxt;
	u32 rcv_nxt;
	u8 ecn_flags;                   /* ECN_* */
	u64 tcp_mstamp;                 /* time of the latest packet, microseconds */
	u8 is_cwnd_limited : 1;
	bool is_mptcp;
};

struct mptcp_subflow_context {
	struct list_head node;
	struct sock *conn;
	struct sock *tcp_sock;
};

struct mptcp_sock {
	struct list_head conn_list;
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;                     /* -1: none */
	u32 in_flight;                  /* bytes delivered since the packet of this acknowledgement was sent */
};

struct rate_sample {
	u64 prior_mstamp;
	u32 prior_delivered;
	s32 delivered;
	long interval_us;
	long rtt_us;
	int losses;
	u32 acked_sacked;
	u32 prior_in_flight;
	bool is_app_limited;
	bool is_ack_delayed;
};

/* The members that every kernel has. The loader changes the first: see load_for_everybody. */
#define CONGESTION_OPS                                                                                                 \
	u32 flags;                                                                                                     \
	char name[16];                                                                                                 \
	u32 (*ssthresh)(struct sock *sk);                                                                              \
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);                                                       \
	void (*set_state)(struct sock *sk, u8 new_state);                                                              \
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);                                                  \
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);                                          \
	void (*in_ack_event)(struct sock *sk, u32 flags);                                                              \
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);                        \
	u32 (*undo_cwnd)(struct sock *sk);                                                                             \
	void (*init)(struct sock *sk);                                                                                 \
	void (*release)(struct sock *sk);                                                                              \
	u32 (*min_tso_segs)(struct sock *sk);                                                                          \
	u32 (*sndbuf_expand)(struct sock *sk);

struct tcp_congestion_ops {
	CONGESTION_OPS
#ifndef __bpf__
	void (*cwnd_event_tx_start)(struct sock *sk);
#endif
};

/* The kernel's structure since Linux 7.1: what follows the three underscores is no part of the name. */
struct tcp_congestion_ops___tx_start {
	CONGESTION_OPS
	void (*cwnd_event_tx_start)(struct sock *sk);
};

#ifdef __bpf__
#pragma clang attribute pop

#define __VMLINUX_H__ 1                 /* bpf_tracing.h asks whether the types above are the kernel's */
#define __u8 u8
#define __u16 u16
#define __u32 u32
#define __u64 u64
#define __s32 s32
#define __s64 s64
#define __be16 u16
#define __be32 u32
#define __wsum u32
enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_SK_STORAGE = 24, BPF_F_NO_PREALLOC = 1 };
enum { BPF_SK_STORAGE_GET_F_CREATE = 1 };
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

/* A value of the running kernel; a program whose enumerator the kernel lacks is not loaded. */
#define KERNEL_VALUE(type, enumerator) bpf_core_enum_value(enum type, enumerator)
/* A member of another socket or of a structure that the verifier does not know: a read that cannot fault. */
#define READ(pointer, member) BPF_CORE_READ(pointer, member)
#define READ_BITS(pointer, member) BPF_CORE_READ_BITFIELD_PROBED(pointer, member)
/*
 * Zeroes a variable that bpf_loop's function changes; each such variable has to be. Linux 6.1's verifier follows that
 * function through one round only: it knows what a variable is that was set to 0, takes what only later rounds do for dead
 * code, and removes it. (rw_lia loaded there, but did not couple.) Of what a read has written it knows nothing, and a read
 * of address 0 writes zeros.
 */
#define CLEAR(variable) bpf_probe_read_kernel(&(variable), sizeof(variable), (void *)0)
/* A hook: HOOK(ssthresh, u32, lia_ssthresh, struct sock *sk). */
#define PROGRAM_HOOK(type, name, ...) SEC("struct_ops/" #name) type BPF_PROG(name, ##__VA_ARGS__)
/* A hook that is loaded only with a registration that has it. */
#define OPTIONAL_HOOK(type, name, ...) SEC("?struct_ops/" #name) type BPF_PROG(name, ##__VA_ARGS__)
#define PROGRAM_LICENSE char _license[] SEC("license") = "Dual MIT/GPL"
/* The hook cong_control: CONG_CONTROL(bbr_main) { ... }, with `sk` and `rs`. Its arguments are (sk, rs) up to Linux 6.9
 * and (sk, ack, flag, rs) since; of the two reads of the context, the verifier sees the one that the kernel has. */
#define CONG_CONTROL(name)                                                                                             \
	static inline void name##_with(struct sock *sk, const struct rate_sample *rs);                                 \
	SEC("struct_ops/" #name) void name(u64 *context)                                                               \
	{                                                                                                              \
		name##_with((struct sock *)context[0], rate_sample_of(context));                                       \
	}                                                                                                              \
	static inline void name##_with(struct sock *sk, const struct rate_sample *rs)
/* The registration; `object` is also the map's name. */
#define PROGRAM_REGISTER(object) SEC(".struct_ops") struct tcp_congestion_ops object
/*
 * The registration of a program whose hooks of the first packet after an idle time are PREFIX_cwnd_event and
 * PREFIX_cwnd_event_tx_start, twice: for kernels without the second hook as `object`, and for those with it as the map
 * `object` and an underscore. libbpf leaves out the second unless the loader chooses it (docs/how-to/load-into-the-kernel.md tells of bpftool).
 */
#define PROGRAM_REGISTER_TX_START(object, prefix, ...)                                                                 \
	SEC(".struct_ops") struct tcp_congestion_ops object = {                                                        \
		__VA_ARGS__, .cwnd_event = (void *)prefix##_cwnd_event, .name = #object,                               \
	};                                                                                                             \
	SEC("?.struct_ops") struct tcp_congestion_ops___tx_start object##_ = {                                         \
		__VA_ARGS__, .cwnd_event = (void *)prefix##_cwnd_event,                                                \
		.cwnd_event_tx_start = (void *)prefix##_cwnd_event_tx_start, .name = #object,                          \
	}
/* State of a socket beyond the 104 bytes; null before it is created, or without memory. */
#define SOCKET_STORAGE(map, value_type)                                                                                \
	struct {                                                                                                       \
		__uint(type, BPF_MAP_TYPE_SK_STORAGE);                                                                 \
		__uint(map_flags, BPF_F_NO_PREALLOC);                                                                  \
		__type(key, int);                                                                                      \
		__type(value, value_type);                                                                             \
	} map SEC(".maps")
#define STORAGE(map, sk) bpf_sk_storage_get(&map, sk, 0, 0)
#define CREATE_STORAGE(map, sk) bpf_sk_storage_get(&map, sk, 0, BPF_SK_STORAGE_GET_F_CREATE)
/* Of zeros, also where a socket had one already: its state may be more than the compiler zeroes. */
#define NEW_STORAGE(map, sk) (bpf_sk_storage_delete(&map, sk), CREATE_STORAGE(map, sk))

extern int LINUX_KERNEL_VERSION __kconfig;

/* In assembler, as the compiler would join the two reads to one with a variable offset, which the verifier refuses. */
static inline __attribute__((always_inline)) const struct rate_sample *rate_sample_of(u64 *context)
{
	const struct rate_sample *rs;

	if (LINUX_KERNEL_VERSION >= LINUX_6_10)
		asm volatile("%0 = *(u64 *)(%1 + 24)" : "=r"(rs) : "r"(context));
	else
		asm volatile("%0 = *(u64 *)(%1 + 8)" : "=r"(rs) : "r"(context));
	return rs;
}

extern u32 tcp_slow_start(struct tcp_sock *tp, u32 acked) __ksym;
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked) __ksym;
extern u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
#else
#include "native.h"
#endif

/* Of a coupling that is a part of another program, coupling.bpf.h says otherwise. */
#define HOOK PROGRAM_HOOK
#define LICENSE PROGRAM_LICENSE
#define REGISTER PROGRAM_REGISTER

/*
 * The hooks of a program that wants no event but the first packet after an idle time, for which it has PREFIX_tx_start(sk).
 * Linux tells of that by cwnd_event, and since 7.1 by a hook of its own instead: see PROGRAM_REGISTER_TX_START.
 */
#define TX_START_HOOKS(prefix)                                                                                         \
	HOOK(void, prefix##_cwnd_event, struct sock *sk, enum tcp_ca_event event)                                      \
	{                                                                                                              \
		if (event == TX_START)                                                                                 \
			prefix##_tx_start(sk);                                                                         \
	}                                                                                                              \
	OPTIONAL_HOOK(void, prefix##_cwnd_event_tx_start, struct sock *sk)                                             \
	{                                                                                                              \
		prefix##_tx_start(sk);                                                                                 \
	}

#define inline inline __attribute__((always_inline))

static inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

/* An algorithm's own state of a connection: at most 104 bytes, zero at `init`. */
static inline void *private(struct sock *sk)
{
	return tcp_sk(sk)->inet_conn.icsk_ca_priv;
}

static inline u32 max_u32(u32 a, u32 b)
{
	return a > b ? a : b;
}

static inline u32 min_u32(u32 a, u32 b)
{
	return a < b ? a : b;
}

static inline u64 min_u64(u64 a, u64 b)
{
	return a < b ? a : b;
}

static inline u64 max_u64(u64 a, u64 b)
{
	return a > b ? a : b;
}

static inline bool in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

/* Whether the window limits the sender (RFC 7661 in spirit; an inline function in the kernel): a window grows only then. */
static inline bool is_cwnd_limited(struct tcp_sock *tp)
{
	if (READ_BITS(tp, is_cwnd_limited))
		return true;
	return in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/* Congestion state of the socket of the event, before the event changes it. */
static inline u8 ca_state(struct tcp_sock *tp)
{
	return READ_BITS(tp, inet_conn.icsk_ca_state);
}

/* The socket's clock, milliseconds: as jiffies of a kernel with CONFIG_HZ = 1000, whatever the running kernel has. */
static inline u32 clock_ms(const struct tcp_sock *tp)
{
	return tp->tcp_mstamp / USEC_PER_MSEC;
}

/* Whether sequence number `a` comes after `b`. */
static inline bool is_after(u32 a, u32 b)
{
	return (s32)(b - a) < 0;
}

/* Threshold outside a reduction: at least three quarters of the window. */
static inline u32 current_ssthresh(const struct tcp_sock *tp)
{
	return max_u32(tp->snd_ssthresh, (tp->snd_cwnd >> 1) + (tp->snd_cwnd >> 2));
}

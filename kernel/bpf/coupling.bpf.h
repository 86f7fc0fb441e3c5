/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * To be included before the source of a window-based coupling, of which over_bbr.bpf.h then makes another program: its
 * hooks become plain functions, its registration a table of them.
 *
 * The state of such a subflow: in icsk_ca_priv the coupling's, whose first word siblings read, and from COUPLED_WORD on the
 * window that it keeps; BBR's in storage of the socket, as both do not fit.
 */
#pragma once
#define COUPLED_CWND 12         /* word of icsk_ca_priv: the coupled window, for the siblings */
#include "kernel.bpf.h"

enum { COUPLED_WORD = 8 };

/* As tcp_congestion_ops, but the compiler knows it and calls the functions directly. */
struct coupling_hooks {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	u32 flags;
	char name[16];
};

#undef HOOK
#undef LICENSE
#undef REGISTER
#define HOOK(type, name, ...) static inline type name(__VA_ARGS__)
#define LICENSE struct license
#define REGISTER(object) static const struct coupling_hooks coupling

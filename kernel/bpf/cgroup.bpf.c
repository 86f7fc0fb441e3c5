/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * Gives the TCP sockets of one control group a congestion control, and, if asked, MPTCP to those that ask for TCP.
 *
 * `choose` is attached to the group. It runs when a socket of the group listens, connects or is accepted: before the first
 * data, and for each subflow of MPTCP, which belongs to its connection's group. A program that sets TCP_CONGESTION later has
 * its own way. `use_mptcp` runs in every socket(2) of the machine and looks at the caller's group.
 *
 * The loader writes the settings (kernel/src/group.rs).
 */
typedef unsigned short __u16, __be16;
typedef unsigned int u32, __u32, __be32, __wsum;
typedef int s32, __s32;
typedef unsigned long long u64, __u64;
typedef long long __s64;

#include <bpf/bpf_helpers.h>

enum { SOL_TCP = 6, TCP_CONGESTION = 13, NAME_SIZE = 16, DEPTH = 32 };                 /* TCP_CA_NAME_MAX */
enum { CONNECT = 3, PASSIVE_ESTABLISHED = 5, LISTEN = 11 };                /* BPF_SOCK_OPS_*_CB */
enum { AF_INET = 2, AF_INET6 = 10, SOCK_STREAM = 1, IPPROTO_TCP = 6, IPPROTO_MPTCP = 262 };
enum { FAMILY, TYPE, PROTOCOL, RESULT };                                   /* the context of update_socket_protocol */

struct bpf_sock_ops {
	u32 op;
};

const volatile struct {
	u64 group;              /* its number: the inode of its folder */
	char congestion[NAME_SIZE];
} settings;

SEC("sockops")
int choose(struct bpf_sock_ops *context)
{
	u32 op = context->op;

	if (op == CONNECT || op == PASSIVE_ESTABLISHED || op == LISTEN)
		bpf_setsockopt(context, SOL_TCP, TCP_CONGESTION, (void *)settings.congestion, NAME_SIZE);
	return 1;
}

/* Whether the calling process is in the group, or in one within it. Groups are nested at most DEPTH deep. */
static inline __attribute__((always_inline)) int is_member(void)
{
	for (s32 level = 0; level < DEPTH; level++)
		if (bpf_get_current_ancestor_cgroup_id(level) == settings.group)
			return 1;
	return 0;
}

SEC("fmod_ret/update_socket_protocol")
int use_mptcp(u64 *context)
{
	s32 family = context[FAMILY], type = context[TYPE], protocol = context[PROTOCOL];

	if ((family == AF_INET || family == AF_INET6) && type == SOCK_STREAM && (!protocol || protocol == IPPROTO_TCP) &&
	    is_member())
		return IPPROTO_MPTCP;
	return context[RESULT];
}

char _license[] SEC("license") = "Dual MIT/GPL";

// The relay's address translation (src/data_plane/ropewalk/relay) in the kernel, at the egress of the TUN device: packets of
// relayed connections come in again by the device without being copied to the daemon. SYNs, fragments, packets with IP
// options or extension headers, and all that is not in the map leave by the device, to the daemon.
//
// The object next to this file is built by
//   clang -O2 -g -mcpu=v2 -target bpf -c relay.bpf.c -o relay.bpf.o && llvm-strip -g relay.bpf.o
// with the headers of libbpf-dev (on Debian also -I/usr/include/x86_64-linux-gnu).
#include <stddef.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

// Source and destination in network order; IPv4 addresses are mapped to IPv6 (RFC 4291, section 2.5.5.2).
struct flow {
    __u32 source[4];
    __u32 destination[4];
    __be16 source_port;
    __be16 destination_port;
};

// Addresses of a packet that leaves, to those with which it comes in again.
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 131072);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct flow);
    __type(value, struct flow);
} translations SEC(".maps");

#define MAPPED bpf_htonl(0xffff)

static __always_inline int translate_ports(struct __sk_buff *skb, __u32 tcp, const struct flow *old, const struct flow *new)
{
    __u32 old_ports, new_ports;
    __builtin_memcpy(&old_ports, &old->source_port, 4);
    __builtin_memcpy(&new_ports, &new->source_port, 4);
    if (bpf_l4_csum_replace(skb, tcp + offsetof(struct tcphdr, check), old_ports, new_ports, 4))
        return -1;
    return bpf_skb_store_bytes(skb, tcp, &new_ports, 4, 0);
}

static __always_inline int translate_v4(struct __sk_buff *skb, const struct flow *old, const struct flow *new)
{
    const __u32 tcp = sizeof(struct iphdr), check = tcp + offsetof(struct tcphdr, check);
    __u32 from[2] = { old->source[3], old->destination[3] }, to[2] = { new->source[3], new->destination[3] };
    __s64 diff = bpf_csum_diff(from, 8, to, 8, 0);
    if (bpf_l3_csum_replace(skb, offsetof(struct iphdr, check), 0, diff, 0) ||
        bpf_l4_csum_replace(skb, check, 0, diff, BPF_F_PSEUDO_HDR) ||
        bpf_skb_store_bytes(skb, offsetof(struct iphdr, saddr), to, 8, 0))
        return -1;
    return translate_ports(skb, tcp, old, new);
}

static __always_inline int translate_v6(struct __sk_buff *skb, const struct flow *old, const struct flow *new)
{
    const __u32 tcp = sizeof(struct ipv6hdr), check = tcp + offsetof(struct tcphdr, check);
    __s64 diff = bpf_csum_diff((__be32 *)old->source, 32, (__be32 *)new->source, 32, 0);
    if (bpf_l4_csum_replace(skb, check, 0, diff, BPF_F_PSEUDO_HDR) ||
        bpf_skb_store_bytes(skb, offsetof(struct ipv6hdr, saddr), new->source, 32, 0))
        return -1;
    return translate_ports(skb, tcp, old, new);
}

// Source and destination of a TCP segment that is no SYN; -1 for all other packets.
static __always_inline int parse(struct __sk_buff *skb, struct flow *flow)
{
    void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
    struct tcphdr *tcp;
    if (skb->protocol == bpf_htons(ETH_P_IP)) {
        struct iphdr *ip = data;
        tcp = (void *)(ip + 1);
        if ((void *)(tcp + 1) > end || ip->version != 4 || ip->ihl != 5 || ip->protocol != IPPROTO_TCP ||
            ip->frag_off & bpf_htons(0x3fff))
            return -1;
        flow->source[2] = flow->destination[2] = MAPPED;
        flow->source[3] = ip->saddr;
        flow->destination[3] = ip->daddr;
    } else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
        struct ipv6hdr *ip = data;
        tcp = (void *)(ip + 1);
        if ((void *)(tcp + 1) > end || ip->version != 6 || ip->nexthdr != IPPROTO_TCP)
            return -1;
        __builtin_memcpy(flow->source, &ip->saddr, 16);
        __builtin_memcpy(flow->destination, &ip->daddr, 16);
    } else {
        return -1;
    }
    flow->source_port = tcp->source;
    flow->destination_port = tcp->dest;
    return tcp->syn ? -1 : 0;
}

SEC("classifier")
int ropewalk_relay(struct __sk_buff *skb)
{
    struct flow old = {}, *new;
    if (parse(skb, &old))
        return TC_ACT_UNSPEC;
    new = bpf_map_lookup_elem(&translations, &old);
    if (!new)
        return TC_ACT_UNSPEC;
    if (skb->protocol == bpf_htons(ETH_P_IP) ? translate_v4(skb, &old, new) : translate_v6(skb, &old, new))
        return TC_ACT_SHOT;
    return bpf_redirect(skb->ifindex, BPF_F_INGRESS);
}

char _license[] SEC("license") = "Dual MIT/GPL";

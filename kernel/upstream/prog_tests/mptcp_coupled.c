// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Coupled congestion control of MPTCP: do two equal subflows grow as half a window each?
 *
 * Without loss, in congestion avoidance, the square of a Reno window grows by twice the packets acknowledged. The windows of two
 * equal subflows that are coupled (RFC 6356, section 3) grow by a quarter of that, in all; those of one subflow with an idle
 * backup grow as Reno's. The ratio depends on packets and not on time, so it is the same on a slow machine.
 *
 * A client and a server in two network namespaces, with two links whose queues hold all that is sent.
 */
#include <netinet/tcp.h>
#include <pthread.h>
#include <test_progs.h>
#include "network_helpers.h"

#define CLIENT "mptcp_coupled_c"
#define SERVER "mptcp_coupled_s"
#define PORT 10001
#define SSTHRESH 10
#define BYTES 8000000

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif
#ifndef SOL_MPTCP
#define SOL_MPTCP 284
#endif
#ifndef MPTCP_TCPINFO
#define MPTCP_TCPINFO 2
#endif

/* The tcp_info of linux/tcp.h as far as it is used here: that of netinet/tcp.h, which network_helpers.h includes, ends before. */
struct subflow_info {
	struct tcp_info info;
	__u64 pacing_rate;
	__u64 max_pacing_rate;
	__u64 bytes_acked;
};

/* struct mptcp_subflow_data of linux/mptcp.h, and what follows it. */
struct subflows {
	__u32 size_subflow_data;
	__u32 num_subflows;
	__u32 size_kernel;
	__u32 size_user;
	struct subflow_info subflows[2];
};

/* Reads from each connection until it ends. */
static void *drain(void *listener)
{
	static char buffer[1 << 16];
	int fd;

	while ((fd = accept(*(int *)listener, NULL, NULL)) >= 0) {
		while (read(fd, buffer, sizeof(buffer)) > 0)
			;
		close(fd);
	}
	return NULL;
}

static int listen_by_mptcp(void)
{
	struct network_helper_opts opts = { .proto = IPPROTO_MPTCP };
	struct sockaddr_storage address;
	socklen_t length;

	if (make_sockaddr(AF_INET, "10.9.9.9", PORT, &address, &length))
		return -1;
	return start_server_addr(SOCK_STREAM, &address, length, &opts);
}

static int connect_from(const char *address, int protocol, const char *cc)
{
	struct sockaddr_in client = { .sin_family = AF_INET }, server = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int fd = socket(AF_INET, SOCK_STREAM, protocol);

	inet_pton(AF_INET, address, &client.sin_addr);
	inet_pton(AF_INET, "10.9.9.9", &server.sin_addr);
	if (fd >= 0 && !setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, cc, strlen(cc)) &&
	    !bind(fd, (struct sockaddr *)&client, sizeof(client)) &&
	    !connect(fd, (struct sockaddr *)&server, sizeof(server)))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static bool get_subflows(int fd, struct subflows *subflows)
{
	socklen_t length = sizeof(*subflows);

	memset(subflows, 0, sizeof(*subflows));
	subflows->size_subflow_data = offsetof(struct subflows, subflows);
	subflows->size_user = sizeof(struct subflow_info);
	return !getsockopt(fd, SOL_MPTCP, MPTCP_TCPINFO, subflows, &length);
}

/* Waits until the connection has two subflows that have nothing in flight. */
static bool wait_idle(int fd, struct subflows *subflows)
{
	for (int i = 0; i < 3000; i++) {
		if (!get_subflows(fd, subflows))
			return false;
		if (subflows->num_subflows == 2 && !subflows->subflows[0].info.tcpi_unacked &&
		    !subflows->subflows[1].info.tcpi_unacked)
			return true;
		usleep(10000);
	}
	return false;
}

static bool send_all(int fd, size_t bytes)
{
	static const char buffer[1 << 16];

	while (bytes) {
		ssize_t sent = write(fd, buffer, bytes < sizeof(buffer) ? bytes : sizeof(buffer));

		if (sent <= 0)
			return false;
		bytes -= sent;
	}
	return true;
}

static double square(__u32 cwnd)
{
	return (double)cwnd * cwnd;
}

/* Growth of all windows between the two, in relation to that of Reno's. */
static double growth(const struct subflows *before, const struct subflows *after)
{
	double squares = 0, packets = 0;

	for (int i = 0; i < 2; i++) {
		const struct subflow_info *a = &before->subflows[i], *b = &after->subflows[i];

		squares += square(b->info.tcpi_snd_cwnd) - square(a->info.tcpi_snd_cwnd);
		packets += (double)(b->bytes_acked - a->bytes_acked) / b->info.tcpi_snd_mss;
	}
	return packets ? squares / (2 * packets) : 0;
}

static bool set_up(void)
{
	SYS(fail, "ip netns add %s", CLIENT);
	SYS(fail, "ip netns add %s", SERVER);
	SYS(fail, "ip -n %s link set lo up", SERVER);
	SYS(fail, "ip -n %s addr add 10.9.9.9/32 dev lo", SERVER);
	SYS(fail, "ip netns exec %s sysctl -qw net.ipv4.tcp_no_ssthresh_metrics_save=0", CLIENT);
	SYS(fail, "ip -n %s mptcp limits set subflows 2", CLIENT);
	SYS(fail, "ip -n %s mptcp limits set subflows 2", SERVER);
	for (int i = 1; i <= 2; i++) {
		SYS(fail, "ip link add c%d netns %s type veth peer name s%d netns %s", i, CLIENT, i, SERVER);
		SYS(fail, "ip -n %s addr add 10.9.%d.1/24 dev c%d", CLIENT, i, i);
		SYS(fail, "ip -n %s addr add 10.9.%d.2/24 dev s%d", SERVER, i, i);
		SYS(fail, "ip -n %s link set c%d up", CLIENT, i);
		SYS(fail, "ip -n %s link set s%d up", SERVER, i);
		SYS(fail, "ip netns exec %s tc qdisc add dev c%d root tbf rate 100mbit burst 10k latency 5s", CLIENT, i);
		SYS(fail, "ip -n %s rule add from 10.9.%d.1 table %d", CLIENT, i, i);
		SYS(fail, "ip -n %s route add 10.9.9.9 via 10.9.%d.2 dev c%d table %d ssthresh lock %d initcwnd %d",
		    CLIENT, i, i, i, SSTHRESH, SSTHRESH);
		SYS(fail, "ip -n %s mptcp endpoint add 10.9.%d.1 id %d dev c%d subflow", CLIENT, i, i, i);
	}
	SYS(fail, "ip -n %s route add 10.9.9.9 via 10.9.1.2 dev c1", CLIENT);
	return true;
fail:
	return false;
}

/* A route's threshold holds for an address that has had a connection. */
static bool prime(void)
{
	for (int i = 1; i <= 2; i++) {
		char address[16];
		int fd;

		snprintf(address, sizeof(address), "10.9.%d.1", i);
		fd = connect_from(address, IPPROTO_TCP, "reno");
		if (!ASSERT_GE(fd, 0, "connect by TCP") || !ASSERT_TRUE(send_all(fd, 1000), "send by TCP"))
			return false;
		close(fd);
	}
	return true;
}

static void check_growth(const char *cc)
{
	struct subflows before, both, idle, alone;
	int fd = connect_from("10.9.1.1", IPPROTO_MPTCP, cc);

	if (!ASSERT_GE(fd, 0, "connect by MPTCP"))
		return;
	if (!ASSERT_TRUE(send_all(fd, 1000) && wait_idle(fd, &before), "two subflows") ||
	    !ASSERT_TRUE(send_all(fd, BYTES) && wait_idle(fd, &both), "send by both"))
		goto out;
	ASSERT_LT(growth(&before, &both), 0.5, "two subflows grow by a quarter of Reno's growth");

	SYS(out, "ip -n %s mptcp endpoint change id 2 backup", CLIENT);
	/* More than a retransmission timeout; the first subflow then restarts its window. */
	sleep(2);
	if (!ASSERT_TRUE(send_all(fd, BYTES / 8) && wait_idle(fd, &idle), "send by one") ||
	    !ASSERT_TRUE(send_all(fd, BYTES) && wait_idle(fd, &alone), "send by one again"))
		goto out;
	ASSERT_EQ(alone.subflows[1].bytes_acked, idle.subflows[1].bytes_acked, "the backup is idle");
	ASSERT_GT(growth(&idle, &alone), 0.8, "with an idle backup a window grows as Reno's");
out:
	SYS_NOFAIL("ip -n %s mptcp endpoint change id 2 nobackup", CLIENT);
	close(fd);
}

static void run(const char *file, const char *map_name, const char *cc)
{
	struct bpf_link *link = NULL;
	struct bpf_object *object;
	struct bpf_map *map;

	object = bpf_object__open_file(file, NULL);
	if (!ASSERT_OK_PTR(object, "open"))
		return;
	if (!ASSERT_OK(bpf_object__load(object), "load"))
		goto out;
	map = bpf_object__find_map_by_name(object, map_name);
	if (!ASSERT_OK_PTR(map, "map"))
		goto out;
	link = bpf_map__attach_struct_ops(map);
	if (ASSERT_OK_PTR(link, "attach"))
		check_growth(cc);
out:
	bpf_link__destroy(link);
	bpf_object__close(object);
}

void serial_test_mptcp_coupled(void)
{
	struct nstoken *token = NULL;
	pthread_t thread;
	int listener = -1;

	if (!ASSERT_TRUE(set_up(), "set up"))
		goto out;
	token = open_netns(SERVER);
	if (!ASSERT_OK_PTR(token, "enter the server"))
		goto out;
	listener = listen_by_mptcp();
	close_netns(token);
	if (!ASSERT_GE(listener, 0, "listen") || !ASSERT_OK(pthread_create(&thread, NULL, drain, &listener), "thread"))
		goto out;
	token = open_netns(CLIENT);
	if (ASSERT_OK_PTR(token, "enter the client") && prime()) {
		if (test__start_subtest("lia"))
			run("lia.bpf.o", "rw_lia", "rw_lia");
		if (test__start_subtest("olia"))
			run("olia.bpf.o", "rw_olia", "rw_olia");
		if (test__start_subtest("balia"))
			run("balia.bpf.o", "rw_balia", "rw_balia");
		close_netns(token);
	}
	shutdown(listener, SHUT_RD);
	pthread_join(thread, NULL);
out:
	if (listener >= 0)
		close(listener);
	SYS_NOFAIL("ip netns del %s", CLIENT);
	SYS_NOFAIL("ip netns del %s", SERVER);
}

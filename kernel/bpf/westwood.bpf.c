/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * Westwood+: after a loss, the window is the measured bandwidth times the minimum RTT.
 *
 * - Increase: Reno.
 * - Decrease: Reno's half during the reduction; at its end threshold = window = bandwidth * minimum RTT / MSS. A timeout
 *   sets the threshold to that and lets slow start reach it.
 * - Bandwidth: bytes acknowledged per round trip (at least 50 ms), through two filters (7 old + new) / 8 in a row. A
 *   duplicate acknowledgement counts as one packet, which is subtracted from the later cumulative one.
 *
 * Source: Grieco and Mascolo, "Performance evaluation and comparison of Westwood+, New Reno, and Vegas TCP congestion
 * control" (CCR 2004).
 * Deviation from the paper, Linux's: the window falls to a half first and to the estimate at the end. Deviations from
 * Linux: duplicates are accounted for on every acknowledgement, not on those of the slow path only; the clock ticks in
 * milliseconds whatever CONFIG_HZ is. Kernels differ in whether pkts_acked or in_ack_event comes first: the RTT of an
 * acknowledgement may count from the next one on.
 * Rounding: RTTs are whole milliseconds, rounded up; bandwidths whole bytes per millisecond and the window whole packets,
 * both rounded down.
 */
#include "kernel.bpf.h"

struct westwood {
	u64 filtered;           /* bandwidth, bytes per millisecond: once filtered */
	u64 bandwidth;          /* twice filtered: the estimate */
	u64 bytes;              /* of the sample under way */
	u64 accounted;          /* bytes of duplicates, counted before the acknowledgement that covers them */
	u32 snd_una;
	u32 sample_start;       /* milliseconds */
	u32 rtt;                /* milliseconds */
	u32 min_rtt;            /* milliseconds */
	bool has_snd_una;
	bool reset_min_rtt;     /* the next acknowledgement's RTT becomes the minimum */
};

enum { SAMPLE_MS = 50, INITIAL_RTT_MS = 20000 };

static inline u64 filter(u64 average, u64 sample)
{
	return (7 * average + sample) >> 3;
}

static inline void end_sample(struct westwood *state, u32 elapsed)
{
	u64 sample = state->bytes / max_u32(elapsed, 1);

	if (!state->filtered && !state->bandwidth) {
		state->filtered = sample;
		state->bandwidth = sample;
	} else {
		state->filtered = filter(state->filtered, sample);
		state->bandwidth = filter(state->bandwidth, state->filtered);
	}
	state->bytes = 0;
}

/* Bytes that left the network by this acknowledgement: where header prediction took it, those that it acknowledges. */
static inline u64 acked_bytes(struct westwood *state, u32 snd_una, u32 mss, bool is_predicted)
{
	u32 advance = state->has_snd_una ? snd_una - state->snd_una : 0;

	state->has_snd_una = true;
	state->snd_una = snd_una;
	if (is_predicted)
		return advance;
	if (!advance) {
		state->accounted += mss;
		return mss;
	}
	if (advance == mss)
		return mss;
	if (state->accounted >= advance) {
		state->accounted -= advance;
		return mss;
	}
	u64 bytes = advance - state->accounted;
	state->accounted = 0;
	return bytes;
}

/* The window that fills the path without queue, packets. */
static inline u32 estimate(const struct westwood *state, const struct tcp_sock *tp)
{
	u64 packets = state->bandwidth * state->min_rtt / max_u32(tp->mss_cache, 1);

	return max_u64(min_u64(packets, tp->snd_cwnd_clamp), 2);
}

HOOK(void, westwood_init, struct sock *sk)
{
	struct westwood *state = private(sk);

	__builtin_memset(state, 0, sizeof(*state));
	state->sample_start = clock_ms(tcp_sk(sk));
	state->rtt = INITIAL_RTT_MS;
	state->min_rtt = INITIAL_RTT_MS;
	state->reset_min_rtt = true;
}

HOOK(void, westwood_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct westwood *state = private(sk);

	if (sample->rtt_us > 0)
		state->rtt = ((u32)sample->rtt_us + USEC_PER_MSEC - 1) / USEC_PER_MSEC;
}

HOOK(void, westwood_in_ack_event, struct sock *sk, u32 flags)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct westwood *state = private(sk);
	u32 now = clock_ms(tp), elapsed = now - state->sample_start;

	/* The packets of this acknowledgement belong to the next sample. */
	if (elapsed > max_u32(state->rtt, SAMPLE_MS)) {
		end_sample(state, elapsed);
		state->sample_start = now;
	}
	state->bytes += acked_bytes(state, tp->snd_una, tp->mss_cache, !(flags & SLOW_PATH));
	state->min_rtt = state->reset_min_rtt ? state->rtt : min_u32(state->min_rtt, state->rtt);
	state->reset_min_rtt = false;
}

HOOK(void, westwood_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct westwood *state = private(sk);

	if (event == COMPLETE_CWR) {
		tp->snd_ssthresh = estimate(state, tp);
		tp->snd_cwnd = tp->snd_ssthresh;
	} else if (event == LOSS) {
		tp->snd_ssthresh = estimate(state, tp);
		state->reset_min_rtt = true;
	}
}

HOOK(void, westwood_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

HOOK(u32, westwood_ssthresh, struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

HOOK(u32, westwood_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

REGISTER(rw_westwood) = {
	.init = (void *)westwood_init,
	.pkts_acked = (void *)westwood_pkts_acked,
	.in_ack_event = (void *)westwood_in_ack_event,
	.cwnd_event = (void *)westwood_cwnd_event,
	.cong_avoid = (void *)westwood_cong_avoid,
	.ssthresh = (void *)westwood_ssthresh,
	.undo_cwnd = (void *)westwood_undo_cwnd,
	.name = "rw_westwood",
};

LICENSE;

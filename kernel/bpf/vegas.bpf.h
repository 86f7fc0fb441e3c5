/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * Vegas' measure of queueing delay: the minimum RTT of each round trip against the minimum since the path was last
 * idle. A round trip ends when what was sent by its start is acknowledged.
 */
#pragma once
#include "kernel.bpf.h"

struct vegas_rtt {
	u32 base_rtt;           /* minimum since the path was last idle, microseconds; NO_RTT before the first sample */
	u32 min_rtt;            /* minimum of this round, microseconds; NO_RTT before its first sample */
	u32 samples;            /* of this round */
	u32 round_end;          /* the round ends with the acknowledgement of more than this */
	bool begin_round;       /* the next acknowledgement that may raise the window begins a round */
	bool is_enabled;        /* in the open state, and from where nothing is in flight */
};

/* Samples that a round needs: of two, one may be a delayed acknowledgement, the other noise. */
enum { NO_RTT = 0x7fffffff, MIN_SAMPLES = 3 };

static inline void reset_round(struct vegas_rtt *rtt)
{
	rtt->min_rtt = NO_RTT;
	rtt->samples = 0;
}

/* When transmission starts with nothing in flight: the route may have changed. If all is lost, the round lasts until that is
 * acknowledged. */
static inline void reset_vegas_rtt(struct vegas_rtt *rtt)
{
	if (!rtt->is_enabled)
		rtt->begin_round = true;
	rtt->base_rtt = NO_RTT;
	rtt->is_enabled = true;
	reset_round(rtt);
}

/* At `init`. */
static inline void init_vegas_rtt(struct vegas_rtt *rtt, const struct tcp_sock *tp)
{
	reset_vegas_rtt(rtt);
	rtt->round_end = tp->snd_nxt;
	rtt->begin_round = false;
}

static inline void add_rtt_sample(struct vegas_rtt *rtt, const struct ack_sample *sample)
{
	if (sample->rtt_us < 0)
		return;
	/* One microsecond more, so that neither RTT is ever zero. */
	u32 rtt_us = min_u32(sample->rtt_us + 1u, NO_RTT);
	rtt->base_rtt = min_u32(rtt->base_rtt, rtt_us);
	rtt->min_rtt = min_u32(rtt->min_rtt, rtt_us);
	rtt->samples++;
}

/* Begins a round when the sender comes back to the open state: one with losses is not evaluated. */
static inline void begin_round_if_open(struct vegas_rtt *rtt, u8 new_state)
{
	rtt->is_enabled = new_state == CA_OPEN;
	if (!rtt->is_enabled)
		return;
	rtt->begin_round = true;
	reset_round(rtt);
}

/* Whether this acknowledgement ends a round; the next one then begins. Evaluate it, then call reset_round. */
static inline bool ends_round(struct vegas_rtt *rtt, const struct tcp_sock *tp)
{
	if (rtt->begin_round)
		rtt->round_end = tp->snd_nxt;
	rtt->begin_round = false;
	if (!is_after(tp->snd_una, rtt->round_end))
		return false;
	rtt->round_end = tp->snd_nxt;
	return true;
}

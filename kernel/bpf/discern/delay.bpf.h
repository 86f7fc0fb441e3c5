/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * What the RTT samples of a subflow say: its base RTT, its queueing delay, and from which delay on a loss is congestion
 * (delay.rs, with its default theta = 0).
 */
#pragma once
#include "units.bpf.h"

enum { SLOT_SECONDS = 10 };             /* the base RTT is the minimum of the present slot and the one before */
enum { LEAST_IN_A_ROW = 3, MOST_IN_A_ROW = 8 };         /* samples of which the greatest counts for the base RTT */
enum { OLD = 105 };                     /* percent: a base RTT is old where the present slot's is so much greater */
enum { BASE_PART = 16 };                /* a delay of a sixteenth of the base RTT is a queue */
#define LEAST_NOISE TICKS(50)           /* noise of the hosts: five times the base RTT between these */
#define MOST_NOISE TICKS(2000)

struct delay {
	u64 slots[2];
	u64 slot_start, in_order_at;
	u64 latest;
	u64 samples[MOST_IN_A_ROW];     /* of packets in order: the greatest of some in a row counts */
	u32 in_a_row;
	u64 recent[4];                  /* queueing delays: the least of four counts */
	u64 queueing;
};

static inline void delay_init(struct delay *delay, u64 now)
{
	delay->slots[0] = delay->slots[1] = NEVER;
	delay->slot_start = delay->in_order_at = now;
	delay->in_a_row = LEAST_IN_A_ROW;
}

/* The RTT without a queue; NEVER before the first sample. */
static inline u64 base_rtt(const struct delay *delay)
{
	return min_u64(delay->slots[0], delay->slots[1]);
}

static inline bool is_slot_over(u64 since, u64 now)
{
	return saturating_sub(now, since) > SLOT_SECONDS * USEC_PER_SEC;
}

/* Of so many samples in a row the greatest counts for the base RTT: a quarter of the packets in flight, three to eight. */
static inline void set_in_flight(struct delay *delay, u32 packets)
{
	delay->in_a_row = min_u32(max_u32(packets / 4, LEAST_IN_A_ROW), MOST_IN_A_ROW);
}

/* Whether the base RTT was seen in the previous slot, and not yet in the current one. */
static inline bool is_base_old(const struct delay *delay)
{
	return 100 * min_u64(delay->slots[0], MAX_TICKS) > OLD * min_u64(delay->slots[1], MAX_TICKS);
}

static inline void update_base(struct delay *delay, u64 rtt, u64 now)
{
	for (u32 index = MOST_IN_A_ROW - 1; index > 0; index--)
		delay->samples[index] = delay->samples[index - 1];
	delay->samples[0] = rtt;
	u64 settled = rtt;
	for (u32 index = 1; index < MOST_IN_A_ROW; index++)
		settled = max_u64(settled, index < delay->in_a_row ? delay->samples[index] : 0);
	if (is_slot_over(delay->slot_start, now)) {
		delay->slots[1] = delay->slots[0];
		delay->slots[0] = settled;
		delay->slot_start = now;
	}
	delay->slots[0] = min_u64(delay->slots[0], settled);
}

/* Takes an RTT sample, of packets in order or not. */
static inline void add_rtt(struct delay *delay, u64 rtt, bool is_in_order, u64 now)
{
	bool is_first = base_rtt(delay) == NEVER;

	delay->latest = rtt;
	if (is_in_order || is_first)
		delay->in_order_at = now;
	if (is_in_order || is_first || is_slot_over(delay->in_order_at, now))
		update_base(delay, rtt, now);
	/* A packet that overtakes others skips what delays them: it does not show that there is no queue. */
	if (!is_in_order && rtt < base_rtt(delay))
		return;
	delay->recent[3] = delay->recent[2];
	delay->recent[2] = delay->recent[1];
	delay->recent[1] = delay->recent[0];
	delay->recent[0] = saturating_sub(rtt, base_rtt(delay));
	delay->queueing = min_u64(min_u64(delay->recent[0], delay->recent[1]),
				  min_u64(delay->recent[2], delay->recent[3]));
}

/* The path has become longer by so much: the delay of now is no queue. */
static inline void lengthen(struct delay *delay, u64 by)
{
	delay->slots[0] = base_rtt(delay) + by;
	delay->slots[1] = NEVER;
	delay->recent[0] = delay->recent[1] = delay->recent[2] = delay->recent[3] = 0;
	delay->queueing = 0;
}

/* The queueing delay from which a loss is congestion: theta. */
static inline u64 threshold(const struct delay *delay)
{
	u64 base = min_u64(base_rtt(delay), MAX_TICKS);

	return max_u64(clamp_u64(5 * base, LEAST_NOISE, MOST_NOISE), base / BASE_PART);
}

/* The queueing delay of a round from which a queue stands, and from which politeness tests. */
static inline u64 standing(const struct delay *delay)
{
	return max_u64(min_u64(base_rtt(delay), MAX_TICKS) / BASE_PART, MOST_NOISE);
}

/* The minimum queueing delay of a round that ends slow start. */
static inline u64 slow_start_limit(const struct delay *delay)
{
	return clamp_u64(base_rtt(delay) / 8, TICKS(4000), TICKS(16000));
}

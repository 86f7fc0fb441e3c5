/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * What a subflow saw in its latest round trips: packets, losses, queueing delays, packets in flight (round.rs).
 */
#pragma once
#include "units.bpf.h"

enum { MEMORY = 9 };                    /* rounds that are remembered, the present one included */
enum { SEEN = 16 };                     /* places for them: a power of two */
enum { MIN_SAMPLES = 8 };               /* of a round that tell of a queue */
enum { USE_US = USEC_PER_SEC };         /* for how long packets in flight show what is used of the window */
enum { NO_SAMPLE = 0xffffffff };

/* Packets acknowledged or lost, and those lost. */
struct counts {
	u64 packets, lost;
};

static inline void add_counts(struct counts *counts, u64 acked, u64 lost)
{
	counts->packets += acked + lost;
	counts->lost += lost;
}

static inline void forgive(struct counts *counts, u64 lost)
{
	counts->lost = saturating_sub(counts->lost, lost);
}

/* Part of the packets that was lost, 2^-32. */
static inline u64 loss_rate(const struct counts *counts)
{
	u64 lost = min_u64(counts->lost, 1ULL << 38), packets = max_u64(counts->packets, COUNT);

	return (lost << (LOSS_SHIFT - COUNT_SHIFT)) / (packets >> COUNT_SHIFT);
}

struct samples {
	u32 least, most;
	u64 sum;
	u64 count;
};

struct seen {
	struct samples in_flight;       /* packets */
	struct samples queueing;        /* ticks */
};

/* The mean of some rounds. */
struct load {
	u64 in_flight;                  /* 2^-8 packets */
	u64 queueing;                   /* ticks */
};

struct round {
	u64 start;
	struct counts counts;
	struct seen seen[SEEN];
	u32 newest;                     /* place of the present round; that of the one before comes next */
	u64 queueing;                   /* least queueing delay of the latest round with samples that has ended */
	u32 used[2];                    /* most packets in flight, in the present second and the one before */
	u64 used_since;
	u64 rate;                       /* mean delivery rate of rounds */
	u64 latest_rates[2];
};

static inline void clear_seen(struct seen *seen)
{
	__builtin_memset(seen, 0, sizeof(*seen));
	seen->in_flight.least = seen->queueing.least = NO_SAMPLE;
}

/* The round that was `age` rounds ago. */
static inline const struct seen *seen_at(const struct round *round, u32 age)
{
	return &round->seen[(round->newest + age) % SEEN];
}

static inline struct seen *present(struct round *round)
{
	return &round->seen[round->newest % SEEN];
}

static inline void round_init(struct round *round, u64 now)
{
	round->start = round->used_since = now;
	for (u32 index = 0; index < SEEN; index++)
		clear_seen(&round->seen[index]);
}

static inline void add_sample(struct samples *samples, u64 value)
{
	samples->least = min_u32(samples->least, min_u64(value, NO_SAMPLE - 1));
	samples->most = max_u32(samples->most, min_u64(value, NO_SAMPLE - 1));
	samples->sum += value;
	samples->count++;
}

static inline void add_in_flight(struct round *round, u32 packets, u64 now)
{
	add_sample(&present(round)->in_flight, packets);
	if (saturating_sub(now, round->used_since) > USE_US) {
		round->used[1] = round->used[0];
		round->used[0] = packets;
		round->used_since = now;
	}
	round->used[0] = max_u32(round->used[0], packets);
}

/* Maximum packets in flight of the last one or two seconds. */
static inline u32 used(const struct round *round)
{
	return max_u32(round->used[0], round->used[1]);
}

/* Whether every sample of this round so far had so much queueing delay. */
static inline bool is_queue(const struct round *round, u64 queueing)
{
	const struct samples *samples = &seen_at(round, 0)->queueing;

	return samples->count >= MIN_SAMPLES && samples->least >= queueing;
}

/* Whether the round has lasted so many ticks; then its rate is known. */
static inline bool round_ends(struct round *round, u64 ticks, u64 now)
{
	u64 elapsed = saturating_sub(now, round->start);

	if (!elapsed || TICKS(elapsed) < ticks)
		return false;
	u64 delivered = min_u64(saturating_sub(round->counts.packets, round->counts.lost), 1ULL << 35);
	u64 rate = (delivered << (RATE_SHIFT - COUNT_SHIFT)) * USEC_PER_SEC / max_u64(elapsed, 1);
	round->latest_rates[1] = round->latest_rates[0];
	round->latest_rates[0] = rate;
	round->rate = round->rate ? round->rate - round->rate / 4 + rate / 4 : rate;
	if (present(round)->queueing.count)
		round->queueing = present(round)->queueing.least;
	return true;
}

static inline void begin_round(struct round *round, u64 now)
{
	round->newest = (round->newest + SEEN - 1) % SEEN;
	clear_seen(present(round));
	round->start = now;
	round->counts.packets = round->counts.lost = 0;
}

/* Maximum packets in flight in the latest three rounds. */
static inline u32 most_in_flight(const struct round *round)
{
	return max_u32(max_u32(seen_at(round, 0)->in_flight.most, seen_at(round, 1)->in_flight.most),
		       seen_at(round, 2)->in_flight.most);
}

/* The mean of the latest two rounds. */
static inline struct load load(const struct round *round)
{
	const struct seen *last = seen_at(round, 0), *prior = seen_at(round, 1);
	u64 in_flight = min_u64(last->in_flight.sum + prior->in_flight.sum, 1ULL << 55);
	u64 queueing = last->queueing.sum + prior->queueing.sum;

	return (struct load) {
		.in_flight = (in_flight << COUNT_SHIFT) / max_u64(last->in_flight.count + prior->in_flight.count, 1),
		.queueing = queueing / max_u64(last->queueing.count + prior->queueing.count, 1),
	};
}

/* Whether the packets in flight have not fallen below `tenths` of their maximum, or of the window, in the latest two rounds. */
static inline bool is_filled(const struct round *round, u32 tenths, u64 cwnd)
{
	u64 most = min_u64((u64)most_in_flight(round) << PACKET_SHIFT, cwnd);
	u64 least = min_u32(seen_at(round, 0)->in_flight.least, seen_at(round, 1)->in_flight.least);

	return (least << PACKET_SHIFT) * 10 >= most * tenths;
}

/* The least and the most of the least queueing delays of the eight latest rounds; NO_SAMPLE where one had none. */
struct range {
	const struct round *round;
	u64 least, most;
};

static long widen(u32 index, struct range *range)
{
	u64 queueing = seen_at(range->round, index)->queueing.least;

	range->least = min_u64(range->least, queueing);
	range->most = max_u64(range->most, queueing);
	return 0;
}

static inline void range_of_queueing(struct range *range, const struct round *round)
{
	CLEAR(*range);
	range->round = round;
	range->least = ~range->least;
	bpf_loop(MEMORY - 1, widen, range, 0);
}

/* The eight latest rounds, in two halves. */
struct halves {
	const struct round *round;
	u64 later_most, earlier_least;  /* of the least queueing delays, ticks */
	u64 most, later_least;          /* of the packets in flight */
	u64 without_samples;
};

static long add_seen(u32 index, struct halves *halves)
{
	const struct seen *seen = seen_at(halves->round, index);

	halves->most = max_u64(halves->most, seen->in_flight.most);
	if (index >= MEMORY - 1)
		return 0;
	if (!seen->queueing.count)
		halves->without_samples++;
	if (index < MEMORY / 2) {
		halves->later_most = max_u64(halves->later_most, seen->queueing.least);
		halves->later_least = min_u64(halves->later_least, seen->in_flight.least);
	} else {
		halves->earlier_least = min_u64(halves->earlier_least, seen->queueing.least);
	}
	return 0;
}

/*
 * Whether a queue of more than this delay has fallen by half and stayed so, although the packets in flight did not fall: the
 * later half of the rounds remembered is below half of every earlier one.
 */
static inline bool queue_has_halved(const struct round *round, u64 queueing)
{
	struct halves halves;

	CLEAR(halves);
	halves.round = round;
	/* NEVER, of which the verifier must not know (CLEAR). */
	halves.earlier_least = ~halves.earlier_least;
	halves.later_least = ~halves.later_least;
	bpf_loop(MEMORY, add_seen, &halves, 0);
	return !halves.without_samples && 10 * min_u64(halves.later_least, NO_SAMPLE) >= 8 * halves.most &&
	       halves.earlier_least > queueing && 2 * halves.later_most < halves.earlier_least;
}

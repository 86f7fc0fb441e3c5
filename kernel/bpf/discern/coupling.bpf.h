/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * Which subflows share a bottleneck: their queueing delays move together (coupling.rs).
 *
 * A program reads siblings and writes only its own subflow. So both subflows of a pair keep its statistics, each in its own
 * storage, compare by their own clocks, and each looks for itself whether the other was reduced for delay. What a subflow
 * shows its siblings is a word: when it was reduced for delay last (microseconds, 32 bits), a random tag, which tells a socket
 * from an earlier one at the same address (8 bits, not 0), and its queueing delay (microseconds, 24 bits).
 *
 * Rounding: means have 8 fraction bits of a microsecond, variances 16. A queueing delay above a second counts as a second.
 */
#pragma once
#include "units.bpf.h"

enum {
	BIN_US = 50 * USEC_PER_MSEC,            /* time between comparisons */
	FORGETTING = 80,                        /* comparisons: 4 s (MEMORY) */
	MIN_COMPARISONS = 20,
	MIN_DEVIATION = 500,                    /* of the queueing delay to compare, microseconds */
	MAX_QUEUEING = 1 << 20,                 /* microseconds */
	MEAN_SHIFT = 8,
	PAIRS = 8,                              /* one more than siblings */
};
enum { TAG_SHIFT = 24, REDUCED_SHIFT = 32, TAG_MASK = 0xff, QUEUEING_MASK = 0xffffff };
/* Regression slopes 0.15 and 0.4, below which a bottleneck is not shared, and above which it is. */
enum { LEAST_SLOPE = 3, LEAST_SLOPE_OF = 20, SLOPE = 2, SLOPE_OF = 5 };

/* Statistics of the queueing delays of the own subflow and a sibling. */
struct pair {
	u64 key;                /* address and tag of the sibling's socket; 0: none */
	u64 compared_at;
	s64 mean[2];
	u64 variance[2];
	s64 covariance;
	u32 comparisons;
	bool is_separate;       /* not shared; at first a bottleneck is */
};

struct coupling {
	struct pair pairs[PAIRS];
	u64 next_bin;
	u32 followed;           /* the latest reduction of a sibling that was seen, microseconds */
	u32 tag;
};

static inline u64 shown_word(const struct coupling *coupling, u64 queueing, u32 reduced_at)
{
	u64 queueing_us = min_u64(queueing >> TICK_SHIFT, QUEUEING_MASK);

	return (u64)reduced_at << REDUCED_SHIFT | (u64)coupling->tag << TAG_SHIFT | queueing_us;
}

static inline u64 shown_queueing(u64 word)
{
	return min_u64(word & QUEUEING_MASK, MAX_QUEUEING);
}

static inline u64 forget(u64 value, u32 memory)
{
	return value - value / max_u32(memory, 1);
}

static inline void judge_pair(struct pair *pair)
{
	u64 variance = max_u64(pair->variance[0], pair->variance[1]);
	u64 covariance = pair->covariance > 0 ? pair->covariance : 0;

	if (pair->comparisons < MIN_COMPARISONS || variance < (u64)MIN_DEVIATION * MIN_DEVIATION << 2 * MEAN_SHIFT)
		return;
	bool is_above = SLOPE_OF * covariance > SLOPE * variance;
	bool is_below = LEAST_SLOPE_OF * covariance < LEAST_SLOPE * variance;
	pair->is_separate = !is_above && (pair->is_separate || is_below);
}

/* Compares the own queueing delay with the sibling's, microseconds. */
static inline void compare(struct pair *pair, u64 own, u64 other)
{
	pair->comparisons = min_u32(pair->comparisons, FORGETTING) + 1;
	u32 memory = min_u32(pair->comparisons, FORGETTING);
	s64 differences[2] = { (s64)(own << MEAN_SHIFT) - pair->mean[0], (s64)(other << MEAN_SHIFT) - pair->mean[1] };

	for (u32 path = 0; path < 2; path++) {
		u64 square = (u64)(differences[path] * differences[path]);

		pair->mean[path] += signed_div(differences[path], memory);
		pair->variance[path] = forget(pair->variance[path] + square / max_u32(memory, 1), memory);
	}
	s64 covariance = pair->covariance + signed_div(differences[0] * differences[1], memory);
	pair->covariance = covariance - signed_div(covariance, memory);
	judge_pair(pair);
}

/* The pair with this key: the existing one, or a new one in place of the least recently compared one. */
static inline struct pair *pair_of(struct coupling *coupling, u64 key)
{
	u32 found = 0;

	for (u32 index = 1; index < PAIRS; index++) {
		struct pair *best = &coupling->pairs[found % PAIRS], *pair = &coupling->pairs[index];

		if (pair->key == key || (best->key != key && pair->compared_at < best->compared_at))
			found = index;
	}
	struct pair *pair = &coupling->pairs[found % PAIRS];
	if (pair->key != key) {
		__builtin_memset(pair, 0, sizeof(*pair));
		pair->key = key;
	}
	return pair;
}

/* A subflow's view of its siblings. */
struct siblings {
	struct group group;
	struct coupling *coupling;
	u64 queueing;           /* the own, microseconds */
	u64 now;
	u32 sharing;            /* siblings in use that share the bottleneck */
	u32 newest;             /* how long ago the latest reduction of one of these was, microseconds */
	u32 newest_at;
	bool is_due;            /* whether it is time to compare */
};

static long visit_sibling(u32 index, struct siblings *siblings)
{
	struct subflow *sibling = subflow_at(&siblings->group, index);
	u64 word = sibling->shared;

	if (!index)
		return 0;
	if (!word) {
		/* Another algorithm, which shows nothing. */
		siblings->sharing++;
		return 0;
	}
	struct pair *pair = pair_of(siblings->coupling, sibling->id << 8 | (word >> TAG_SHIFT & TAG_MASK));
	if (siblings->is_due) {
		compare(pair, siblings->queueing, shown_queueing(word));
		pair->compared_at = siblings->now;
	}
	if (pair->is_separate)
		return 0;
	siblings->sharing++;
	u32 reduced_at = word >> REDUCED_SHIFT, age = (u32)siblings->now - reduced_at;
	if (reduced_at && age < siblings->newest) {
		siblings->newest = age;
		siblings->newest_at = reduced_at;
	}
	return 0;
}

/* Looks at the siblings; compares queueing delays each BIN_US. `queueing` is the own, ticks. */
static inline void look_at_siblings(struct sock *sk, struct coupling *coupling, u64 queueing, struct siblings *siblings)
{
	CLEAR(*siblings);
	siblings->coupling = coupling;
	siblings->queueing = min_u64(queueing >> TICK_SHIFT, MAX_QUEUEING);
	siblings->now = tcp_sk(sk)->tcp_mstamp;
	siblings->newest = ~siblings->newest;           /* the greatest, of which the verifier must not know (CLEAR) */
	read_group(sk, &siblings->group);
	if (is_alone(&siblings->group))
		return;
	siblings->is_due = siblings->now >= coupling->next_bin;
	if (siblings->is_due)
		coupling->next_bin = siblings->now + BIN_US;
	bpf_loop(siblings->group.count, visit_sibling, siblings, 0);
}

/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * Losses without delay: are they random? Backing off tells, because random loss does not follow the rate (experiment.rs, with
 * its defaults: nothing becomes stale).
 */
#pragma once
#include "round.bpf.h"

enum {
	MAX_RANDOM_LOSS = 8 * ONE / 100,        /* random loss above it is treated as congestion */
	SUSPICION = 3,                          /* standard deviations before losses are suspect */
	LEAST_ROUNDS = 3, MOST_ROUNDS = 40,     /* of an experiment, round trips */
	EVIDENCE = 5,                           /* lost packets from which an experiment can follow */
	MORE_LOSSES = 3,                        /* beyond EVIDENCE that end one */
	MIN_PROOF = 3,                          /* losses that prove random loss */
	ESTIMATE_PACKETS = 5000,                /* for which an earlier estimate counts, at most (MEMORY) */
	MAX_COUNTED = 20000,                    /* packets after which the counts since the last verdict fade */
	BACK_OFF = ONE / 2,                     /* what an experiment leaves of the window */
};
#define MIN_TRIGGER ((1ULL << LOSS_SHIFT) / 100000)

/* A running experiment. */
struct trial {
	u64 from;                       /* NEVER: there is none */
	struct counts counts;
	u64 prior_cwnd;
	struct counts before;           /* the losses that began it */
};

enum verdict { RANDOM, CONGESTION, BACKED_OFF };

struct random_loss {
	u64 rate;                       /* p: the part of packets that is lost at random, 2^-32 */
	u64 packets;                    /* from which it is known, 2^-8 */
	struct counts counts;           /* since the last verdict */
	struct trial trial;
	struct counts open_before, open_after;  /* what earlier trials have left open */
};

static inline bool is_under_trial(const struct random_loss *random)
{
	return random->trial.from != NEVER;
}

static inline void end_trial(struct random_loss *random)
{
	random->trial.from = NEVER;
}

/* Counts packets; a trial counts from a round trip after the window was backed off. */
static inline void count(struct random_loss *random, u64 acked, u64 lost, u64 srtt, u64 now)
{
	if (is_under_trial(random) && ticks_since(random->trial.from, now) > srtt)
		add_counts(&random->trial.counts, acked, lost);
	add_counts(&random->counts, acked, lost);
	if (random->counts.packets > MAX_COUNTED * COUNT) {
		random->counts.packets /= 2;
		random->counts.lost /= 2;
	}
}

/* Whether more were lost than the known random loss explains: L > pN + 3 sqrt(pN (1 + N/n)) + 1, and the 1 where p > 0. */
static inline bool is_suspect(const struct random_loss *random)
{
	u64 most = (u64)MAX_RANDOM_LOSS * (1ULL << LOSS_SHIFT) / ONE;
	/* Losses in 2^-16 packets, so that the square of 60 000 has 64 bits. */
	u64 packets = min_u64(random->counts.packets, 3 * MAX_COUNTED * COUNT);
	u64 lost = min_u64(random->counts.lost, packets) << 8;
	u64 expected = min_u64(random->rate, most) * (packets >> 4) >> (LOSS_SHIFT - 12);
	u64 uncertainty = (1 << 12) + (random->packets ? (packets << 12) / random->packets : 0);

	u64 least = expected + (expected ? 1 << 16 : 0);
	if (lost <= least)
		return false;
	u64 excess = lost - least;
	return excess * excess > SUSPICION * SUSPICION * (expected * uncertainty >> 12) << 16;
}

/* A packet was lost without delay. */
static inline enum verdict judge(struct random_loss *random, u64 cwnd, u64 now)
{
	struct trial *trial = &random->trial;

	if (!is_suspect(random))
		return RANDOM;
	if (random->counts.lost < EVIDENCE * COUNT)
		return CONGESTION;
	trial->before.packets = random->open_before.packets + random->counts.packets;
	trial->before.lost = random->open_before.lost + random->counts.lost;
	trial->counts = random->open_after;
	trial->prior_cwnd = cwnd;
	trial->from = now;
	__builtin_memset(&random->open_before, 0, sizeof(random->open_before));
	__builtin_memset(&random->open_after, 0, sizeof(random->open_after));
	__builtin_memset(&random->counts, 0, sizeof(random->counts));
	return BACKED_OFF;
}

/* Adds what a trial has found to the estimate. */
static inline void pool(struct random_loss *random, const struct counts *found)
{
	u64 known = min_u64(random->packets, ESTIMATE_PACKETS * COUNT), lost = min_u64(found->lost, 1ULL << 30);
	u64 packets = max_u64(known + found->packets, 1);

	random->rate = (random->rate * known + (lost << LOSS_SHIFT)) / packets;
	random->packets = packets;
}

/* Ends a trial that has seen enough; returns the window to give back if the loss is random, or else 0. */
static inline u64 check_trial(struct random_loss *random, u64 srtt, u64 now)
{
	struct trial *trial = &random->trial;

	if (!is_under_trial(random))
		return 0;
	u64 elapsed = ticks_since(trial->from, now), round = max_u64(srtt, TICKS(100));
	u64 trigger = max_u64(loss_rate(&trial->before), MIN_TRIGGER), rate = loss_rate(&trial->counts);
	u64 packets = min_u64(trial->counts.packets, 1ULL << 31);
	bool has_enough = trial->counts.lost >= (EVIDENCE + MORE_LOSSES) * COUNT ||
			  packets * trigger >= 2ULL * EVIDENCE << (LOSS_SHIFT + COUNT_SHIFT);

	if (elapsed < LEAST_ROUNDS * round || (!has_enough && elapsed < MOST_ROUNDS * round))
		return 0;
	end_trial(random);
	__builtin_memset(&random->counts, 0, sizeof(random->counts));
	if (trial->counts.lost >= MIN_PROOF * COUNT && 2 * rate > trigger) {
		pool(random, &trial->counts);
		return trial->prior_cwnd;
	}
	if (has_enough) {
		random->rate = min_u64(random->rate, rate);
	} else {
		random->open_before = trial->before;
		random->open_after = trial->counts;
	}
	return 0;
}

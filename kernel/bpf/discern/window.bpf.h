/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * The window of a subflow: slow start, CUBIC's curve of an n-th of a flow, reductions, undo (window.rs).
 *
 * Rounding: times on the curve are 2^-12 s, so the curve is within 0.03 packets where it took 10 s to its origin; an increase
 * for a packet has 28 bits; the windows themselves 24. Times on the curve are at most 256 s before and after its origin.
 */
#pragma once
#include "units.bpf.h"

enum {
	BETA = 7 * ONE / 10,                    /* what a reduction leaves (RFC 9438 section 4.6) */
	CUBE_SHIFT = 12,                        /* times on the curve, 2^-12 s */
	MAX_CURVE = 256 << CUBE_SHIFT,
	INCREASE_SHIFT = 28,
	GROWTH_WITHOUT_HISTORY = 20,            /* a twentieth a round trip at least, without a history of reductions */
	MAX_IDLE_SECONDS = 300,                 /* for which an unused window is kept (RFC 7661 section 4.4.3) */
	MAX_LOOK_AHEAD_SECONDS = 10,            /* of a base RTT that CUBIC looks ahead */
};
/* C = 2/5 packets per cubic second; ALPHA = 3 (1 - BETA) / (1 + BETA) = 9/17. */
enum { C_NUMERATOR = 2, C_DENOMINATOR = 5, ALPHA_NUMERATOR = 9, ALPHA_DENOMINATOR = 17 };
#define MIN_CWND (2 * PACKET)

/* The time since the latest reduction as CUBIC counts it. */
struct epoch {
	u64 start;              /* NEVER: there is none */
	u64 k;                  /* until the curve reaches its origin, 2^-12 s */
	u64 origin;
	u64 w_est;              /* the Reno-friendly window */
};

/* The state that undo restores. */
struct prior {
	u64 cwnd, ssthresh, w_max;
	struct epoch epoch;
	bool is_set;
};

struct window {
	u64 cwnd, ssthresh, clamp, initial, w_max;
	struct epoch epoch;
	u64 last_reduction;
	struct prior prior;     /* before the first reduction of the present episode of losses */
	u64 proved;             /* a window that was proved harmless; the next growth begins there */
};

static inline void window_init(struct window *window, u32 cwnd)
{
	window->cwnd = window->initial = (u64)min_u32(max_u32(cwnd, 1), CWND_LIMIT) << PACKET_SHIFT;
	window->ssthresh = INFINITE_WINDOW;
	window->epoch.start = window->last_reduction = NEVER;
}

static inline bool in_window_slow_start(const struct window *window)
{
	return window->cwnd < window->ssthresh;
}

/* Whether no congestion was seen yet. */
static inline bool in_first_slow_start(const struct window *window)
{
	return window->ssthresh == INFINITE_WINDOW;
}

static inline void end_slow_start(struct window *window)
{
	window->ssthresh = max_u64(window->cwnd, MIN_CWND);
}

/* Reduces the window to a part of itself, and notes it as CUBIC does, with fast convergence. */
static inline void window_reduce(struct window *window, u32 part, u64 now)
{
	u64 cwnd = window->cwnd;

	window->w_max = cwnd < window->w_max ? part_of(cwnd, ONE + part) / 2 : cwnd;
	window->cwnd = max_u64(part_of(cwnd, part), min_u64(MIN_CWND, cwnd));
	window->ssthresh = max_u64(window->cwnd, MIN_CWND);
	window->epoch.start = NEVER;
	window->proved = 0;
	window->last_reduction = now;
}

/* CUBIC's curve leads back to this window at least. */
static inline void aim_at(struct window *window, u64 cwnd)
{
	window->w_max = max_u64(window->w_max, cwnd);
	window->epoch.start = NEVER;
}

/* A reduction was unnecessary: grows from this window on at least, along CUBIC's curve from there. */
static inline void restore(struct window *window, u64 cwnd)
{
	window->proved = max_u64(window->proved, cwnd);
	aim_at(window, cwnd);
}

/* A reduction was unnecessary: grows from this window on, without history. */
static inline void give_back(struct window *window, u64 cwnd)
{
	window->proved = cwnd;
	window->epoch.start = NEVER;
	window->w_max = 0;
}

/* An episode of losses begins: what it reduces can be undone. */
static inline void begin_episode(struct window *window)
{
	window->prior.cwnd = window->cwnd;
	window->prior.ssthresh = window->ssthresh;
	window->prior.w_max = window->w_max;
	window->prior.epoch = window->epoch;
	window->prior.is_set = true;
}

static inline void forbid_undo(struct window *window)
{
	window->prior.is_set = false;
}

/* The losses of the episode were spurious. */
static inline void window_undo(struct window *window)
{
	bool is_set = window->prior.is_set;

	window->prior.is_set = false;
	if (!is_set || window->prior.cwnd <= window->cwnd)
		return;
	window->cwnd = window->prior.cwnd;
	window->ssthresh = max_u64(window->ssthresh, window->prior.ssthresh);
	window->w_max = window->prior.w_max;
	window->epoch = window->prior.epoch;
	window->last_reduction = NEVER;
}

/* A timeout: one packet beyond those in flight, and no history (RFC 9438 section 4.8). */
static inline void on_timeout(struct window *window, u32 cwnd, bool reduce, u64 now)
{
	if (reduce) {
		begin_episode(window);
		window_reduce(window, BETA, now);
		window->w_max = 0;
	}
	window->cwnd = (u64)min_u32(max_u32(cwnd, 1), CWND_LIMIT) << PACKET_SHIFT;
	window->epoch.start = NEVER;
	window->proved = 0;
}

/* Grows to the threshold; returns the packets that are left of those acknowledged. */
static inline u64 slow_start(struct window *window, u64 acked)
{
	u64 cwnd = window->cwnd;

	if (!in_window_slow_start(window))
		return acked;
	u64 grown = min_u64(min_u64(cwnd + acked, window->ssthresh), max_u64(window->clamp, cwnd));
	window->cwnd = grown;
	return in_first_slow_start(window) ? 0 : saturating_sub(acked, grown - cwnd);
}

struct cube_root {
	u64 cube, root;
};

static long add_root_bit(u32 index, struct cube_root *search)
{
	u64 root = search->root | 1ULL << (20 - min_u32(index, 20));

	if (root * root * root <= search->cube)
		search->root = root;
	return 0;
}

/* Cube root, rounded down; of what is greater than 2^63, 2^21 - 1. */
static inline u64 cube_root(u64 cube)
{
	struct cube_root search;

	CLEAR(search);
	search.cube = cube;
	bpf_loop(21, add_root_bit, &search, 0);
	return search.root;
}

/* K = cbrt(distance n / C), 2^-12 s. */
static inline u64 time_to_origin(u64 distance, u32 n)
{
	u64 cube = distance * n * C_DENOMINATOR / C_NUMERATOR;

	/* In 2^-36 cubic seconds, of which MAX_CURVE has 2^60. */
	return cube_root(min_u64(cube, 1ULL << 48) << (3 * CUBE_SHIFT - PACKET_SHIFT));
}

static inline void begin_epoch(struct window *window, u32 n, u64 now)
{
	struct epoch *epoch = &window->epoch;

	epoch->start = now;
	epoch->origin = max_u64(window->w_max, window->cwnd);
	epoch->k = time_to_origin(epoch->origin - window->cwnd, n);
	epoch->w_est = window->cwnd;
}

/* The window to which CUBIC's curve leads within a base RTT. */
static inline u64 target(const struct window *window, u32 n, u64 base, u64 now)
{
	u64 base_us = min_u64(base >> TICK_SHIFT, MAX_LOOK_AHEAD_SECONDS * USEC_PER_SEC);
	u64 elapsed = min_u64(saturating_sub(now, window->epoch.start), 1ULL << 40) + base_us;
	u64 time = (elapsed << CUBE_SHIFT) / USEC_PER_SEC, k = window->epoch.k;
	u64 t = min_u64(time > k ? time - k : k - time, MAX_CURVE);
	u64 distance = (t * t * t >> (3 * CUBE_SHIFT - PACKET_SHIFT)) * C_NUMERATOR / (C_DENOMINATOR * max_u32(n, 1));

	return time > k ? window->epoch.origin + distance : saturating_sub(window->epoch.origin, distance);
}

/* By how much a window grows for a packet that leads to `target` within a window, INCREASE_SHIFT: half a packet at most. */
static inline u64 increase_to(u64 target, u64 cwnd)
{
	u64 distance = min_u64(saturating_sub(target, cwnd), cwnd / 2);

	return (distance << (INCREASE_SHIFT - 8)) / max_u64(cwnd >> 8, 1);
}

/* The growth of RFC 9438 section 4 with C/n and a Reno-friendly increase of an n-th, for `acked` packets. */
static inline u64 cubic(struct window *window, u64 acked, u32 n, u64 base, u64 now)
{
	u64 cwnd = window->cwnd;

	if (window->epoch.start == NEVER)
		begin_epoch(window, n, now);
	u64 aim = target(window, n, base, now);
	u64 increase = aim > cwnd ? increase_to(aim, cwnd)
				  : (1ULL << (INCREASE_SHIFT + PACKET_SHIFT)) / (100 * max_u64(cwnd, 1));
	if (!window->w_max)
		increase = max_u64(increase, (1 << INCREASE_SHIFT) / (GROWTH_WITHOUT_HISTORY * max_u32(n, 1)));
	window->epoch.w_est += ALPHA_NUMERATOR * (acked << (PACKET_SHIFT - 4)) /
			       (ALPHA_DENOMINATOR * max_u32(n, 1) * max_u64(cwnd >> 4, 1));
	increase = max_u64(increase, increase_to(window->epoch.w_est, cwnd));
	return increase * (acked >> (PACKET_SHIFT - 8)) >> (INCREASE_SHIFT + 8 - PACKET_SHIFT);
}

/* Slow start, then CUBIC's growth of an n-th of a flow, for so many packets, on a path with this base RTT. */
FUNCTION void window_grow(struct window *window, u32 packets, u32 n, u64 base, u64 now)
{
	window->cwnd = max_u64(window->cwnd, min_u64(window->proved, window->clamp));
	window->proved = 0;
	u64 rest = slow_start(window, (u64)min_u32(packets, MAX_ACKED) << PACKET_SHIFT);
	if (!rest)
		return;
	u64 growth = min_u64(cubic(window, rest, n, base, now), rest / 2);
	window->cwnd = min_u64(window->cwnd + growth, max_u64(window->clamp, window->cwnd));
}

/*
 * The first packet after nothing was in flight, for `idle` microseconds: no time on the curve (RFC 7661 section 4.4.3). Returns
 * whether nothing is known of the path any more.
 */
static inline bool on_idle(struct window *window, u64 idle, u64 now)
{
	if (window->epoch.start != NEVER)
		window->epoch.start = min_u64(window->epoch.start + idle, now);
	if (idle <= (u64)MAX_IDLE_SECONDS * USEC_PER_SEC)
		return false;
	window->ssthresh = max_u64(window->ssthresh, window->cwnd - window->cwnd / 4);
	window->cwnd = min_u64(window->cwnd, window->initial);
	window->proved = 0;
	return true;
}

/* What congestion reduces are the packets used lately, if they are less than half of the window (RFC 7661 section 4.4.1). */
static inline void validate(struct window *window, u32 used)
{
	if ((u64)used << (PACKET_SHIFT + 1) < window->cwnd)
		window->cwnd = max_u64((u64)used << PACKET_SHIFT, min_u64(window->initial, window->cwnd));
}

static inline void use_at_most(struct window *window, u32 packets)
{
	window->cwnd = min_u64(window->cwnd, max_u64((u64)packets << PACKET_SHIFT, MIN_CWND));
}

/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * Politeness: a flow whose own backing off empties the queue as if nobody else were there is alone, and needs no queue
 * (politeness.rs).
 */
#pragma once
#include "delay.bpf.h"
#include "round.bpf.h"
#include "window.bpf.h"

enum {
	VERDICTS = 3,                           /* that make us alone */
	EFFECTIVE = 95,                         /* percent of the packets in flight that are left at most, to tell */
	LEAST_WINDOW = 4,                       /* that a test leaves, packets */
	SETTLING_ROUNDS = 3,                    /* in which a queue follows the window */
	STEADY_TENTHS = 5, CLEAR_TENTHS = 7,    /* of the window, in use before and after a test */
	MAX_KEPT_RATE = 9 * ONE / 10,           /* a rate above this part of the earlier one was kept */
};
enum { BELOW = 9 * ONE / 10 };          /* what is left of an empty queue's window where the base RTT is old */
enum { FLOOR = 7 * ONE / 10, FLOOR_ALONE = ONE / 10 };          /* the least part of the window that a test leaves */
#define CHANCE (1u << 30)                                       /* of a test in a round, in 2^-32; twice it when alone */
#define MIN_SETTLING TICKS(60000)
#define LEAST_QUEUE TICKS(100)                                  /* that a test counts as */

/* Whose queue it was; OTHERS_ALONE where our rate has fallen with our window. */
enum owner { US, OTHERS, OTHERS_ALONE };

/* The window was backed off, to see what the queue does. */
struct test {
	u64 at;                 /* NEVER: there is no test */
	struct load load;       /* before */
	u64 cwnd;               /* the used window before */
	u64 rate;               /* the delivery rate before */
	u32 left;               /* the part of the window that was left */
	bool is_steady;         /* whether the window was in use then */
};

struct politeness {
	struct test test;
	u64 prior_window;       /* CUBIC's aim before we were alone */
	u64 next_test;
	u32 own_verdicts;       /* that the queue was ours, less those that there are others */
	u32 other_verdicts;     /* in a row */
	bool alone;
};

/* What politeness looks at when a round ends. */
struct view {
	const struct delay *delay;
	const struct round *round;
	u64 srtt;
	bool may_reduce;
	u64 now;
};

static inline void abandon_test(struct politeness *politeness)
{
	politeness->test.at = NEVER;
}

static inline u64 pause_us(u32 other_verdicts)
{
	return (other_verdicts == 0 ? 1 : other_verdicts == 1 ? 3 : 10) * (u64)USEC_PER_SEC;
}

/* Ticks in which a queue follows the window. */
static inline u64 settling(const struct view *view)
{
	return max_u64(SETTLING_ROUNDS * (view->srtt + view->round->queueing), MIN_SETTLING);
}

/* Whether the rate fell by less than half of the reduction. */
static inline bool has_kept_rate(const struct test *test, const struct view *view)
{
	u64 rates = view->round->latest_rates[0] + view->round->latest_rates[1];
	u32 kept = min_u32(ONE - (ONE - test->left) / 2, MAX_KEPT_RATE);

	return rates * (ONE / 2) > test->rate * kept;
}

/* Whether the rate fell by less than where nine tenths of the packets in flight were ours: left / (1 - 0.9 (1 - left)). */
static inline bool is_alone_by_rate(const struct test *test, const struct view *view)
{
	u64 rates = view->round->latest_rates[0] + view->round->latest_rates[1];

	return rates * (ONE + 9 * test->left) > 20 * test->left * test->rate;
}

/*
 * Whether the delay is not that of a queue: the rate fell with the window, and the RTT stayed as it was, to within half of what
 * is a queue, in the rounds before the test and since. Then the path is longer by what is returned.
 */
static inline u64 longer_by(const struct test *test, const struct view *view)
{
	struct range range;

	range_of_queueing(&range, view->round);
	bool is_still = 2 * (range.most - range.least) < standing(view->delay) && range.least > standing(view->delay);
	return is_still && !has_kept_rate(test, view) ? range.least : 0;
}

/*
 * The verdict: ours is a queue of which nothing is left, or from which three quarters of what would be gone if nobody else
 * were there are gone, while the rate stayed; or where the rate says that nearly all packets in flight are ours.
 */
static inline enum owner owner(const struct test *test, const struct view *view)
{
	struct load after = load(view->round);
	u64 base = min_u64(base_rtt(view->delay), MAX_TICKS), before = test->load.queueing;

	if (2 * view->round->queueing < standing(view->delay) || is_alone_by_rate(test, view))
		return US;
	if (!has_kept_rate(test, view))
		return OTHERS_ALONE;
	u64 with_queue = min_u64(base + before, MAX_TICKS);
	u64 alone = saturating_sub(after.in_flight * with_queue / max_u64(test->load.in_flight, 1), base);
	u64 own = max_u64(saturating_sub(before, alone), LEAST_QUEUE);
	return 4 * saturating_sub(before, after.queueing) > 3 * own ? US : OTHERS;
}

/* The queue did not follow our window: there are others. */
static inline void on_others(struct politeness *politeness, struct window *window, u64 now)
{
	politeness->own_verdicts = saturating_sub(politeness->own_verdicts, 1);
	if (politeness->own_verdicts)
		return;
	if (politeness->alone)
		aim_at(window, politeness->prior_window);
	politeness->alone = false;
	politeness->next_test = now + pause_us(politeness->other_verdicts);
	politeness->other_verdicts = min_u32(politeness->other_verdicts + 1, 2);
}

static inline void judge_test(struct politeness *politeness, const struct view *view, struct window *window)
{
	struct test *test = &politeness->test;
	struct load after = load(view->round);

	test->at = NEVER;
	bool has_fallen = 100 * after.in_flight <= EFFECTIVE * test->load.in_flight;
	if (!has_fallen || !is_filled(view->round, CLEAR_TENTHS, window->cwnd)) {
		/* Pauses of the application and an unused window are no evidence: nothing is learnt, and nothing is lost. */
		bool kept = has_kept_rate(test, view);

		if (!has_fallen || !kept)
			restore(window, test->cwnd);
		if (!kept)
			politeness->next_test = view->now + pause_us(0);
		return;
	}
	enum owner found = owner(test, view);
	if (found == US) {
		politeness->own_verdicts = min_u32(politeness->own_verdicts + 1, VERDICTS);
		politeness->other_verdicts = 0;
		politeness->alone |= politeness->own_verdicts >= VERDICTS;
		return;
	}
	if (found == OTHERS_ALONE)
		restore(window, test->cwnd);
	if (found == OTHERS || test->is_steady)
		on_others(politeness, window, view->now);
	else
		politeness->next_test = view->now + pause_us(0);
}

/* Whether the queue has halved although we did nothing. */
static inline bool sees_others(const struct view *view, const struct window *window)
{
	u64 remembered = MEMORY * (view->srtt + view->round->queueing);

	if (ticks_since(window->last_reduction, view->now) < remembered)
		return false;
	return queue_has_halved(view->round, standing(view->delay) * 3 / 2);
}

static inline bool is_test_due(const struct politeness *politeness, const struct view *view)
{
	if (view->round->queueing <= standing(view->delay) || view->now < politeness->next_test || !view->may_reduce)
		return false;
	return bpf_get_prandom_u32() < (politeness->alone ? 2 * CHANCE : CHANCE);
}

static inline void begin_test(struct politeness *politeness, const struct view *view, struct window *window)
{
	u64 base = min_u64(base_rtt(view->delay), MAX_TICKS), queueing = view->round->queueing;
	struct test *test = &politeness->test;

	test->is_steady = is_filled(view->round, STEADY_TENTHS, window->cwnd);
	use_at_most(window, most_in_flight(view->round));
	u64 least = min_u64(LEAST_WINDOW * PACKET * ONE / max_u64(window->cwnd, 1), ONE);
	least = max_u64(least, politeness->alone ? FLOOR_ALONE : FLOOR);
	u32 part = politeness->alone && is_base_old(view->delay) ? BELOW : ONE;
	test->left = max_u64(base * part / max_u64(base + queueing, 1), least);
	test->cwnd = window->cwnd;
	u64 w_max = max_u64(window->w_max, window->cwnd);
	window_reduce(window, test->left, view->now);
	if (!politeness->alone) {
		politeness->prior_window = w_max;
		aim_at(window, w_max);
	}
	test->at = view->now;
	test->load = load(view->round);
	test->rate = view->round->rate;
}

/*
 * A round has ended: judges a test that has lasted long enough, looks for others, or begins a test. Returns by how much the test
 * has shown the path to be longer than it was.
 */
static inline u64 politeness_end_round(struct politeness *politeness, const struct view *view, struct window *window)
{
	if (politeness->test.at != NEVER) {
		if (ticks_since(politeness->test.at, view->now) < settling(view))
			return 0;
		u64 by = longer_by(&politeness->test, view);
		if (!by) {
			judge_test(politeness, view, window);
			return 0;
		}
		give_back(window, politeness->test.cwnd);
		abandon_test(politeness);
		return by;
	}
	if (sees_others(view, window))
		on_others(politeness, window, view->now);
	else if (is_test_due(politeness, view))
		begin_test(politeness, view, window);
	return 0;
}

/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * Discern: a CUBIC window whose answer to a loss depends on evidence.
 *
 * A loss is congestion or it is not. The evidence is the queueing delay of the packets after the lost one; where there is no
 * delay, an experiment. The rules are at the head of cc/control/src/coupled/discern/mod.rs; each file in discern/ has the
 * constants and rules of the module of that name, this one those of path.rs.
 *
 * The controller is told of events; the kernel calls hooks. What stands for what:
 * - acked, lost, prior_in_flight, rtt: rate_sample's acked_sacked, losses, prior_in_flight, rtt_us.
 * - The state before the acknowledgement, which tells whether packets are in order: that in pkts_acked, called first.
 * - may_raise_cwnd, a flag that cong_control has only since Linux 6.10: snd_una has moved, or reordering was seen.
 * - What begins an episode. ssthresh does not tell; the state that follows does. Recovery is a loss, Loss a timeout, which
 *   reduces if ssthresh was called before it. CWR outside an acknowledgement is a drop of the own interface. CWR during one is
 *   a mark if delivered_ce has risen at its end, and otherwise the repair by a tail-loss probe, which is no sign of congestion.
 * - Marks in recovery: delivered_ce.
 * - The mirror to siblings (a path with the same bottleneck was reduced for delay): each reads it of the others.
 * - A spurious loss: undo_cwnd. An idle pause: the first packet after it, in jiffies.
 * - Penalties of the scheduler: Linux has none.
 * Not to be had: parameters. The program has the defaults.
 *
 * With cong_control the program has window and pacing to itself, as the controller has: no proportional rate reduction, no
 * restart after idling. The state is in storage of the socket; without memory for it the window stays as it is.
 *
 * Source: own algorithm (experimental), after RFC 9438.
 * Rounding: discern/units.bpf.h has the units; windows are within a packet and 2^-10 of the controller's after an event, as
 * long as no comparison with a bound falls to the other side.
 */
#define SUBFLOW_IDS
#include "discern/coupling.bpf.h"
#include "discern/experiment.bpf.h"
#include "discern/politeness.bpf.h"

enum {
	MUCH_RANDOM_LOSS = 3 * ONE / 1000,      /* from which a loss with delay takes less than CUBIC's part */
	MAX_BETA = 95 * ONE / 100,              /* the greatest part of the window that congestion leaves there */
	BASE_OF_BETA = 97 * ONE / 100,          /* of base RTT / RTT */
	BETA_ECN = 85 * ONE / 100,              /* what a mark leaves (RFC 8511 section 3.1) */
	LEAST_CAP = ONE / 2,
	DEFAULT_REORDERING = 3,
	MAX_IDLE_JIFFIES = 1 << 20,             /* longer than a window is kept, with any CONFIG_HZ */
	SLOW_START_GAIN = 20, GAIN = 12,        /* pacing over window per RTT, tenths (as Linux) */
	SNDBUF_EXPAND = 3,
};
#define MIN_ROUND TICKS(10000)

struct discern {
	struct window window;
	struct delay delay;
	struct round round;
	struct random_loss random_loss;
	struct politeness politeness;
	struct coupling coupling;
	u64 srtt;                       /* ticks */
	u64 episode_lost;               /* packets, COUNT */
	u32 reduced_for_delay;          /* shown to the siblings, microseconds; 0: never */
	u64 init_at;                    /* of tcp_mstamp, and in jiffies */
	u32 init_jiffies;
	u32 delivered_ce, snd_una;
	u8 prior_state;                 /* before the acknowledgement under way */
	bool in_ack;                    /* whether one is under way */
	bool begins_episode;            /* ssthresh was called, and set_state was not yet */
	bool begins_cwr;                /* CWR began in the acknowledgement under way */
};

SOCKET_STORAGE(discern_state, struct discern);

/* The inputs from an acknowledgement. */
struct discern_ack {
	u64 now;
	u32 acked, lost, marked;
	u32 paths;                      /* with the own one, that share the bottleneck */
	bool may_raise, cwnd_limited, begins_cwr;
	u8 ca_state;
};

static inline u64 latest_rtt(const struct discern *state)
{
	return max_u64(state->srtt, state->delay.latest);
}

/* Whether the latest reduction was at least a round trip ago. */
static inline bool may_reduce(const struct discern *state, u64 now)
{
	return ticks_since(state->window.last_reduction, now) > latest_rtt(state);
}

/* Reduces the used part of the window to `part` of it, for congestion. */
static inline void reduce(struct discern *state, u32 part, u64 now)
{
	validate(&state->window, used(&state->round));
	window_reduce(&state->window, part, now);
}

/* Window, threshold and pacing rate for the kernel. */
static inline void decide(struct sock *sk, struct discern *state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 cwnd = state->window.cwnd, ssthresh = state->window.ssthresh;
	u32 gain = cwnd < ssthresh / 2 ? SLOW_START_GAIN : GAIN;

	tp->snd_cwnd = max_u64(cwnd >> PACKET_SHIFT, 1);
	tp->snd_ssthresh = clamp_u64(ssthresh >> PACKET_SHIFT, 2, INFINITE_SSTHRESH);
	if (!tp->srtt_us)
		return;
	/* After a reduction the smoothed RTT is that of the queue of before. Both in eighths of a microsecond. */
	u64 rtt = state->delay.latest ? min_u64(tp->srtt_us, state->delay.latest >> 1) : tp->srtt_us;
	u64 bytes = (max_u64(cwnd, MIN_CWND) >> (PACKET_SHIFT - COUNT_SHIFT)) * (tp->mss_cache & 0xffff);
	u64 rate = min_u64(bytes, 1ULL << 40) * (8 * USEC_PER_SEC) / max_u64(rtt, 1) * gain / 10 >> COUNT_SHIFT;
	sk->sk_pacing_rate = min_u64(max_u64(rate, 1), sk->sk_max_pacing_rate);
}

static inline void measure(struct discern *state, struct tcp_sock *tp, const struct rate_sample *rs,
			   const struct discern_ack *ack)
{
	u64 acked = (u64)ack->acked << COUNT_SHIFT, lost = (u64)ack->lost << COUNT_SHIFT;

	if (rs->rtt_us >= 0) {
		bool is_in_order = state->prior_state == CA_OPEN && ack->ca_state == CA_OPEN;

		set_in_flight(&state->delay, rs->prior_in_flight);
		add_rtt(&state->delay, min_u64(TICKS(rs->rtt_us), MAX_TICKS), is_in_order, ack->now);
		add_sample(&present(&state->round)->queueing, state->delay.queueing);
	}
	if (tp->srtt_us)
		state->srtt = min_u64((u64)tp->srtt_us << 1, MAX_TICKS);
	state->episode_lost += lost;
	add_in_flight(&state->round, rs->prior_in_flight, ack->now);
	add_counts(&state->round.counts, acked, lost);
	count(&state->random_loss, acked, lost, state->srtt, ack->now);
}

/* A queue that reduced a subflow of the same bottleneck within a round trip reduces this one once it sees it, too. */
FUNCTION void follow_siblings(struct sock *sk, struct discern *state, struct discern_ack *ack)
{
	struct siblings siblings;

	look_at_siblings(sk, &state->coupling, state->delay.queueing, &siblings);
	ack->paths = 1 + siblings.sharing;
	if (!siblings.newest_at || siblings.newest_at == state->coupling.followed)
		return;
	bool is_recent = TICKS(siblings.newest) < state->srtt;
	if (is_recent && state->delay.queueing < threshold(&state->delay))
		return;
	state->coupling.followed = siblings.newest_at;
	if (is_recent && may_reduce(state, ack->now))
		reduce(state, BETA, ack->now);
}

/* A sign of congestion that is not a loss, and begins an episode. */
static inline void on_sign(struct discern *state, u32 part, u64 now)
{
	forbid_undo(&state->window);
	if (!may_reduce(state, now))
		return;
	reduce(state, part, now);
	abandon_test(&state->politeness);
}

/*
 * Marks during a recovery begin no episode. Where losses are random the path is always in recovery, so that they count all
 * the same. An echo lasts for a round trip after the window was reduced.
 */
static inline void on_marks_in_recovery(struct discern *state, const struct discern_ack *ack)
{
	bool in_recovery = ack->marked && ack->ca_state == CA_RECOVERY;

	if (!in_recovery || ticks_since(state->window.last_reduction, ack->now) <= 2 * latest_rtt(state))
		return;
	forbid_undo(&state->window);
	reduce(state, BETA_ECN, ack->now);
}

/* The part that is left after a loss with delay. */
static inline u32 beta(const struct discern *state)
{
	u64 latest = state->delay.latest, much = MUCH_RANDOM_LOSS * (1ULL << LOSS_SHIFT) / ONE;

	if (state->random_loss.rate <= much || !latest)
		return BETA;
	return clamp_u64(BASE_OF_BETA * min_u64(base_rtt(&state->delay), MAX_TICKS) / latest, BETA, MAX_BETA);
}

/* More of a round's packets lost than any random loss that is forgiven: L > B + 2 sqrt(B) + 2, B = 0.08 N. */
static inline void check_cap(struct discern *state, u64 now)
{
	u64 packets = min_u64(state->round.counts.packets, 1ULL << 30);
	u64 lost = min_u64(state->round.counts.lost, packets);
	u64 bound = part_of(packets, MAX_RANDOM_LOSS), least = bound + 2 * COUNT;

	if (lost <= least || (lost - least) * (lost - least) <= 4 * bound << COUNT_SHIFT || !may_reduce(state, now))
		return;
	reduce(state, clamp_u64(ONE - lost * ONE / max_u64(packets, 1), LEAST_CAP, BETA), now);
	end_trial(&state->random_loss);
	state->round.counts.packets = state->round.counts.lost = 0;
}

static inline void on_loss_without_delay(struct discern *state, u64 now)
{
	check_cap(state, now);
	if (in_first_slow_start(&state->window) || is_under_trial(&state->random_loss) || !may_reduce(state, now))
		return;
	enum verdict verdict = judge(&state->random_loss, state->window.cwnd, now);
	if (verdict != RANDOM)
		reduce(state, verdict == CONGESTION ? BETA : BACK_OFF, now);
}

FUNCTION void on_loss(struct discern *state, u64 now)
{
	if (state->delay.queueing < threshold(&state->delay)) {
		on_loss_without_delay(state, now);
		return;
	}
	state->random_loss.counts.packets = state->random_loss.counts.lost = 0;
	if (!may_reduce(state, now))
		return;
	reduce(state, beta(state), now);
	abandon_test(&state->politeness);
	end_trial(&state->random_loss);
	state->reduced_for_delay = max_u32(now, 1);
}

FUNCTION void end_round(struct discern *state, u64 now)
{
	struct window *window = &state->window;

	if (!round_ends(&state->round, max_u64(state->srtt, MIN_ROUND), now))
		return;
	u64 cwnd = check_trial(&state->random_loss, state->srtt, now);
	if (cwnd)
		give_back(window, cwnd);
	if (!in_window_slow_start(window)) {
		struct view view = {
			.delay = &state->delay, .round = &state->round, .srtt = state->srtt,
			.may_reduce = may_reduce(state, now), .now = now,
		};
		u64 longer_by = politeness_end_round(&state->politeness, &view, window);

		if (longer_by)
			lengthen(&state->delay, longer_by);
	}
	begin_round(&state->round, now);
}

static inline struct discern_ack ack_of(struct tcp_sock *tp, struct discern *state, const struct rate_sample *rs)
{
	struct discern_ack ack = {
		.now = tp->tcp_mstamp,
		.acked = rs->acked_sacked,
		.lost = rs->losses > 0 ? rs->losses : 0,
		.marked = tp->delivered_ce - state->delivered_ce,
		.paths = 1,
		.may_raise = tp->snd_una != state->snd_una || tp->reordering > DEFAULT_REORDERING,
		.cwnd_limited = is_cwnd_limited(tp),
		.begins_cwr = state->begins_cwr,
		.ca_state = ca_state(tp),
	};

	state->delivered_ce = tp->delivered_ce;
	state->snd_una = tp->snd_una;
	state->in_ack = state->begins_cwr = false;
	state->window.clamp = (u64)min_u32(max_u32(tp->snd_cwnd_clamp, 1), CWND_LIMIT) << PACKET_SHIFT;
	return ack;
}

CONG_CONTROL(discern_cong_control)
{
	struct discern *state = STORAGE(discern_state, sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!state)
		return;
	struct discern_ack ack = ack_of(tp, state, rs);
	if (ack.begins_cwr && ack.marked)
		on_sign(state, BETA_ECN, ack.now);
	measure(state, tp, rs, &ack);
	follow_siblings(sk, state, &ack);
	if (in_first_slow_start(&state->window) && is_queue(&state->round, slow_start_limit(&state->delay)))
		end_slow_start(&state->window);
	on_marks_in_recovery(state, &ack);
	if (ack.lost)
		on_loss(state, ack.now);
	if (ack.may_raise && ack.cwnd_limited && ack.acked)
		window_grow(&state->window, ack.acked, ack.paths, base_rtt(&state->delay), ack.now);
	end_round(state, ack.now);
	*(u64 *)private(sk) = shown_word(&state->coupling, state->delay.queueing, state->reduced_for_delay);
	decide(sk, state);
}

HOOK(void, discern_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct discern *state = STORAGE(discern_state, sk);

	if (!state)
		return;
	state->prior_state = ca_state(tcp_sk(sk));
	state->in_ack = true;
}

HOOK(void, discern_init, struct sock *sk)
{
	struct discern *state = NEW_STORAGE(discern_state, sk);
	struct tcp_sock *tp = tcp_sk(sk);

	tp->snd_ssthresh = INFINITE_SSTHRESH;
	if (sk->sk_pacing_status == PACING_NONE)
		sk->sk_pacing_status = PACING_NEEDED;
	if (!state)
		return;
	window_init(&state->window, tp->snd_cwnd);
	delay_init(&state->delay, tp->tcp_mstamp);
	round_init(&state->round, tp->tcp_mstamp);
	end_trial(&state->random_loss);
	abandon_test(&state->politeness);
	state->coupling.tag = max_u32(bpf_get_prandom_u32() & TAG_MASK, 1);
	state->init_at = tp->tcp_mstamp;
	state->init_jiffies = bpf_jiffies64();
	state->srtt = (u64)tp->srtt_us << 1;
	state->delivered_ce = tp->delivered_ce;
	state->snd_una = tp->snd_una;
	*(u64 *)private(sk) = shown_word(&state->coupling, 0, 0);
}

HOOK(u32, discern_ssthresh, struct sock *sk)
{
	struct discern *state = STORAGE(discern_state, sk);

	if (state)
		state->begins_episode = true;
	return tcp_sk(sk)->snd_ssthresh;
}

HOOK(void, discern_set_state, struct sock *sk, u8 new_state)
{
	struct discern *state = STORAGE(discern_state, sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!state)
		return;
	u64 now = tp->tcp_mstamp;
	bool begins_episode = state->begins_episode;
	state->begins_episode = false;
	if (new_state == CA_RECOVERY && ca_state(tp) != CA_RECOVERY) {
		state->episode_lost = 0;
		begin_episode(&state->window);
	} else if (new_state == CA_CWR && state->in_ack) {
		state->begins_cwr = true;
	} else if (new_state == CA_CWR) {
		on_sign(state, BETA, now);
		decide(sk, state);
	} else if (new_state == CA_LOSS) {
		on_timeout(&state->window, tp->snd_cwnd, begins_episode, now);
		end_trial(&state->random_loss);
		abandon_test(&state->politeness);
		decide(sk, state);
	}
}

HOOK(u32, discern_undo_cwnd, struct sock *sk)
{
	struct discern *state = STORAGE(discern_state, sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!state)
		return tp->snd_cwnd;
	window_undo(&state->window);
	forgive(&state->random_loss.counts, state->episode_lost);
	end_trial(&state->random_loss);
	forgive(&state->round.counts, state->episode_lost);
	abandon_test(&state->politeness);
	state->episode_lost = 0;
	decide(sk, state);
	return max_u64(state->window.cwnd >> PACKET_SHIFT, 1);
}

/* Time since the latest packet was sent. A jiffy's length is measured since init: not every system has its Kconfig. */
static inline u64 idle_us(const struct discern *state, const struct tcp_sock *tp)
{
	u32 jiffies = bpf_jiffies64(), idle = min_u32(jiffies - tp->lsndtime, MAX_IDLE_JIFFIES);
	u64 age_us = min_u64(saturating_sub(tp->tcp_mstamp, state->init_at), 1ULL << 40);

	return idle * age_us / max_u32(jiffies - state->init_jiffies, 1);
}

static inline void discern_tx_start(struct sock *sk)
{
	struct discern *state = STORAGE(discern_state, sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!state)
		return;
	if (on_idle(&state->window, idle_us(state, tp), tp->tcp_mstamp)) {
		abandon_test(&state->politeness);
		end_trial(&state->random_loss);
	}
	decide(sk, state);
}

TX_START_HOOKS(discern)

HOOK(u32, discern_sndbuf_expand, struct sock *sk)
{
	return SNDBUF_EXPAND;
}

PROGRAM_REGISTER_TX_START(rw_discern, discern,
	.init = (void *)discern_init,
	.pkts_acked = (void *)discern_pkts_acked,
	.cong_control = (void *)discern_cong_control,
	.ssthresh = (void *)discern_ssthresh,
	.set_state = (void *)discern_set_state,
	.undo_cwnd = (void *)discern_undo_cwnd,
	.sndbuf_expand = (void *)discern_sndbuf_expand,
	.flags = NON_RESTRICTED
);

LICENSE;

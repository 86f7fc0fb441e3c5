/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * BBR, version 3: the model of version 1 (bbr.bpf.h) with bounds from loss, and gentler probing.
 *
 * The bandwidth is the greatest delivery rate of this probing cycle and the one before, the minimum RTT that of 10 s. New
 * are the bounds:
 * - Long-term: packets in flight at which a probe lost more than 2 %. It grows back by 1, 2, 4, 8 ... packets per round.
 * - Short-term: after a round with loss, bandwidth and packets in flight are reduced to those delivered in it, or to 0.7 of
 *   the earlier bounds, whichever is more. The next probe resets them.
 * The modes: Startup at gain 2.77, until three rounds bring less than a quarter more bandwidth, or a round in recovery has
 * six acknowledgements with loss and more than 2 % lost; Drain, the inverse. Then a cycle: down at 0.9, until there is
 * headroom of 15 % below the long-term bound; cruise at 1; after 2 to 3 s (or as many rounds as Reno would need for a loss)
 * refill at 1 for a round; up at 1.25, until the bandwidth does not grow any more or too much is lost. ProbeRTT: if 5 s
 * brought no new minimum RTT, half a window for 200 ms.
 *
 * Source: draft-ietf-ccwg-bbr; where the published versions differ, and constants, as cc/control/src/single/bbr3 (rules.rs:
 * LINUX). The state is in storage of the socket.
 * Deviations: the kernel does not tell what was in flight when a packet was sent and what was lost since: taken are the
 * packets delivered over the rate sample's interval and those lost in the round. No reaction to marks, nor to losses that a
 * tail-loss probe repaired. As in version 1, the pacer's next release is not considered.
 */
#define BBR_OF(sk) ((struct bbr3 *)STORAGE(bbr3_state, sk))
#include "bbr.bpf.h"

/* Beside STARTUP, DRAIN and PROBE_RTT. */
enum { DOWN = 4, CRUISE, REFILL, UP };

/* The relation of the acknowledgements to the latest probe. */
enum ack_phase { ACKS_INIT, ACKS_REFILLING, ACKS_PROBE_STARTING, ACKS_PROBE_FEEDBACK, ACKS_PROBE_STOPPING };

enum {
	STARTUP_GAIN = 710,
	DOWN_GAIN = 232,
	UP_GAIN = 320,
	UP_CWND_GAIN = 576,
	PROBE_RTT_CWND_GAIN = 128,
	LOSS_THRESH = 5,                        /* 2 % */
	BETA = 180,                             /* what a round with loss leaves of a bound */
	HEADROOM = 38,
	FULL_LOSS_CNT = 6,
	PROBE_RTT_INTERVAL = 5 * USEC_PER_SEC,
	PROBE_WAIT = 2 * USEC_PER_SEC,          /* and up to a second more */
	MAX_PROBE_ROUNDS = 63,
	MAX_PROBE_UP_ROUNDS = 30,
	OFFLOAD_BYTES = 65536,                  /* a burst has so many bytes more, halved for each 2^9 us of minimum RTT */
	OFFLOAD_RTT_SHIFT = 9,
	BURST_SEGS = 2,
};
#define NO_BOUND 0xffffffff

struct bbr3_bounds {
	u32 bw_lo;                      /* short-term */
	u32 inflight_lo;                /* short-term, packets */
	u32 inflight_hi;                /* long-term, packets */
};

struct bbr3 {
	u32 cwnd, prior_cwnd;           /* packets */
	u32 bw_filter[2];               /* greatest rate of the previous cycle and of this one */
	struct bbr3_bounds bounds, undo;
	u32 min_rtt_us, min_rtt_stamp;
	u32 probe_rtt_min_us, probe_rtt_min_stamp;
	u32 probe_rtt_done_stamp;       /* 0: not yet known */
	u32 next_round_delivered;
	u32 delivered_mstamp;
	u32 bw_latest;                  /* greatest rate of the loss round */
	u32 inflight_latest;            /* greatest delivery of a rate sample of the loss round, packets */
	u32 loss_round_delivered;       /* the loss round ends with a packet sent when so many were delivered */
	u32 lost;                       /* packets lost in the loss round */
	u32 loss_events;                /* acknowledgements with loss in it */
	struct bbr_excess excess;
	u32 cycle_stamp, probe_wait_us, rounds_since_probe;
	u32 probe_up_cnt;               /* packets acknowledged for one more packet of inflight_hi */
	u32 probe_up_acks, probe_up_rounds;
	u32 full_bw, full_bw_cnt;
	u32 mode, ack_phase, prev_ca_state;
	bool full_bw_now, full_bw_reached;
	bool loss_in_round;
	bool prior_probe_ok;            /* whether losses found now may be due to the probe */
	bool prior_probe_too_high, stopped_risky_probe;
	bool has_undo, has_seen_rtt, idle_restart, probe_rtt_round_done;
};

SOCKET_STORAGE(bbr3_state, struct bbr3);

struct bbr3_ack {
	struct bbr_ack common;
	bool valid, loss_round_start, cwnd_limited;
	u32 prior_delivered, delivered; /* of the rate sample */
	u32 rate;                       /* 0 without a sample */
	u32 tx_in_flight, tx_lost;      /* of the newest packet's flight */
};

static inline u32 share_of(u32 count, u32 of_256)
{
	return (u64)count * of_256 >> GAIN_SHIFT;
}

static inline u32 max_bw(const struct bbr3 *bbr)
{
	return max_u32(bbr->bw_filter[0], bbr->bw_filter[1]);
}

static inline u32 used_bw(const struct bbr3 *bbr)
{
	return min_u32(max_bw(bbr), bbr->bounds.bw_lo);
}

static inline bool is_probe_bw(const struct bbr3 *bbr)
{
	return bbr->mode >= DOWN;
}

/* Whether the mode probes for more bandwidth: its losses lower no short-term bound. */
static inline bool is_probing_bw(const struct bbr3 *bbr)
{
	return bbr->mode == STARTUP || bbr->mode == REFILL || bbr->mode == UP;
}

static inline u32 bdp(const struct bbr3 *bbr, u32 bw, u32 gain)
{
	if (bbr->min_rtt_us == (u32)NO_RTT)
		return TCP_INIT_CWND;
	u64 scaled = min_u64((u64)bw * bbr->min_rtt_us, 1ULL << 53) * gain >> GAIN_SHIFT;
	return min_u64((scaled + (1 << BW_SCALE) - 1) >> BW_SCALE, MAX_CWND);
}

/* Packets in one burst of the pacer. */
static inline u32 burst(struct sock *sk, const struct bbr3 *bbr)
{
	u32 halvings = min_u32(bbr->min_rtt_us >> OFFLOAD_RTT_SHIFT, 31);
	u64 bytes = min_u64((sk->sk_pacing_rate >> BURST_SHIFT) + (OFFLOAD_BYTES >> halvings), GSO_MAX_SIZE);

	return max_u64(bytes / max_u32(tcp_sk(sk)->mss_cache, 1), BURST_SEGS);
}

/* At least three bursts, and two packets more in the mode that probes. */
static inline u32 quantized(struct sock *sk, const struct bbr3 *bbr, u32 packets)
{
	packets = max_u32(max_u32(packets, 3 * burst(sk, bbr)), MIN_CWND);
	return bbr->mode == UP ? packets + 2 : packets;
}

/* Packets in flight that fill the path at this bandwidth. */
static inline u32 inflight_at(struct sock *sk, const struct bbr3 *bbr, u32 bw)
{
	return quantized(sk, bbr, bdp(bbr, bw, UNIT_GAIN));
}

static inline u32 target_inflight(struct sock *sk, const struct bbr3 *bbr)
{
	return min_u32(inflight_at(sk, bbr, used_bw(bbr)), bbr->cwnd);
}

static inline u32 inflight_with_headroom(const struct bbr3 *bbr)
{
	u32 inflight_hi = bbr->bounds.inflight_hi;

	if (inflight_hi == NO_BOUND)
		return NO_BOUND;
	return max_u32(inflight_hi - min_u32(max_u32(share_of(inflight_hi, HEADROOM), 1), inflight_hi), MIN_CWND);
}

static inline bool is_too_high(u32 tx_in_flight, u32 lost)
{
	return tx_in_flight && lost > share_of(tx_in_flight, LOSS_THRESH);
}

static inline void restart_full_bw(struct bbr3 *bbr, u32 bw)
{
	bbr->full_bw = bw;
	bbr->full_bw_cnt = 0;
	bbr->full_bw_now = false;
}

static inline void reset_lower_bounds(struct bbr3 *bbr)
{
	bbr->bounds.bw_lo = bbr->bounds.inflight_lo = NO_BOUND;
}

static inline void reset_congestion_signals(struct bbr3 *bbr)
{
	bbr->loss_in_round = false;
	bbr->bw_latest = bbr->inflight_latest = 0;
}

static inline void start_down(const struct tcp_sock *tp, struct bbr3 *bbr)
{
	reset_congestion_signals(bbr);
	bbr->rounds_since_probe = (u64)bpf_get_prandom_u32() * 2 >> 32;
	bbr->probe_wait_us = PROBE_WAIT + ((u64)bpf_get_prandom_u32() * USEC_PER_SEC >> 32);
	bbr->cycle_stamp = bbr->delivered_mstamp;
	bbr->ack_phase = ACKS_PROBE_STOPPING;
	bbr->next_round_delivered = tp->delivered;
	bbr->mode = DOWN;
}

static inline void start_cruise(struct bbr3 *bbr)
{
	if (bbr->bounds.inflight_lo != NO_BOUND)
		bbr->bounds.inflight_lo = min_u32(bbr->bounds.inflight_lo, bbr->bounds.inflight_hi);
	bbr->mode = CRUISE;
}

static inline void start_refill(const struct tcp_sock *tp, struct bbr3 *bbr)
{
	reset_lower_bounds(bbr);
	bbr->probe_up_cnt = bbr->probe_up_acks = bbr->probe_up_rounds = 0;
	bbr->stopped_risky_probe = false;
	bbr->ack_phase = ACKS_REFILLING;
	bbr->next_round_delivered = tp->delivered;
	bbr->mode = REFILL;
}

/* Doubles the growth of inflight_hi for the next round. */
static inline void raise_slope(struct bbr3 *bbr)
{
	bbr->probe_up_cnt = max_u32(bbr->cwnd >> (bbr->probe_up_rounds & 31), 1);
	bbr->probe_up_rounds = min_u32(bbr->probe_up_rounds + 1, MAX_PROBE_UP_ROUNDS);
}

static inline void start_up(const struct tcp_sock *tp, struct bbr3 *bbr, u32 rate)
{
	bbr->prior_probe_ok = true;
	bbr->ack_phase = ACKS_PROBE_STARTING;
	bbr->next_round_delivered = tp->delivered;
	restart_full_bw(bbr, rate);
	bbr->cycle_stamp = bbr->delivered_mstamp;
	raise_slope(bbr);
	bbr->mode = UP;
}

/* A flight of `inflight` packets was too large: once per probe, that is the long-term bound. */
static inline void handle_too_high(struct sock *sk, struct bbr3 *bbr, u32 inflight, bool app_limited)
{
	bbr->prior_probe_too_high = true;
	bbr->prior_probe_ok = false;
	if (!app_limited)
		bbr->bounds.inflight_hi = max_u32(inflight, share_of(target_inflight(sk, bbr), BETA));
	if (bbr->mode == UP)
		start_down(tcp_sk(sk), bbr);
}

/* The packets in flight at which the losses crossed the threshold, with the latest loss being one packet. */
static inline u32 inflight_at_loss(u32 tx_in_flight, u32 lost)
{
	u32 prior = tx_in_flight - 1, prior_lost = lost - 1;
	u32 budget = ((u64)prior * LOSS_THRESH + UNIT_GAIN - 1) >> GAIN_SHIFT;

	return prior + (budget > prior_lost ? (u64)(budget - prior_lost) * UNIT_GAIN / (UNIT_GAIN - LOSS_THRESH) : 0);
}

static inline void handle_lost(struct sock *sk, struct bbr3 *bbr, const struct bbr3_ack *ack)
{
	u32 tx_in_flight, lost;

	if (!ack->common.lost)
		return;
	if (!bbr->loss_in_round)
		bbr->loss_round_delivered = tcp_sk(sk)->delivered;
	bbr->loss_in_round = true;
	bbr->lost += ack->common.lost;
	tx_in_flight = ack->delivered + bbr->lost;
	if (!bbr->prior_probe_ok || !is_too_high(tx_in_flight, bbr->lost))
		return;
	/* Of several losses, the first beyond the threshold counts. */
	lost = min_u32(bbr->lost, share_of(tx_in_flight, LOSS_THRESH) + 1);
	handle_too_high(sk, bbr, inflight_at_loss(tx_in_flight, lost), ack->common.app_limited);
}

static inline void update_round(const struct tcp_sock *tp, struct bbr3 *bbr, struct bbr3_ack *ack)
{
	ack->common.round_start = ack->valid && (s32)(ack->prior_delivered - bbr->next_round_delivered) >= 0;
	if (ack->common.round_start) {
		bbr->next_round_delivered = tp->delivered;
		bbr->rounds_since_probe++;
	}
}

/* Lowers the short-term bounds after a round with loss. */
static inline void adapt_lower_bounds(struct bbr3 *bbr)
{
	struct bbr3_bounds *bounds = &bbr->bounds;

	if (!bbr->loss_in_round || is_probing_bw(bbr))
		return;
	if (bounds->inflight_lo == NO_BOUND)
		bounds->inflight_lo = bbr->cwnd;
	if (bounds->bw_lo == NO_BOUND)
		bounds->bw_lo = max_bw(bbr);
	bounds->bw_lo = max_u32(max_u32(bbr->bw_latest, share_of(bounds->bw_lo, BETA)), 1);
	bounds->inflight_lo = max_u32(bbr->inflight_latest, share_of(bounds->inflight_lo, BETA));
}

static inline void update_model(const struct tcp_sock *tp, struct bbr3 *bbr, struct bbr3_ack *ack)
{
	if (!ack->valid)
		return;
	bbr->bw_latest = max_u32(bbr->bw_latest, ack->rate);
	bbr->inflight_latest = max_u32(bbr->inflight_latest, ack->delivered);
	if ((s32)(ack->prior_delivered - bbr->loss_round_delivered) >= 0) {
		bbr->loss_round_delivered = tp->delivered;
		ack->loss_round_start = true;
	}
	if (!ack->common.app_limited || ack->rate >= max_bw(bbr))
		bbr->bw_filter[1] = max_u32(bbr->bw_filter[1], ack->rate);
	bbr->loss_in_round |= ack->common.lost > 0;
	if (ack->loss_round_start) {
		adapt_lower_bounds(bbr);
		bbr->loss_in_round = false;
		bbr->lost = 0;
	}
	bbr_update_excess(&bbr->excess, &ack->common, used_bw(bbr), bbr->cwnd,
			  bbr->full_bw_reached ? EXTRA_ACKED_WIN_RTTS : 1);
}

/* Ends Startup by loss, at the end of a round in recovery. */
static inline void check_startup_loss(struct sock *sk, struct bbr3 *bbr, const struct bbr3_ack *ack)
{
	bool recovery = tcp_sk(sk)->inet_conn.icsk_ca_state == CA_RECOVERY;

	if (bbr->full_bw_reached)
		return;
	bbr->loss_events += ack->common.lost > 0;
	if (!ack->loss_round_start)
		return;
	if (bbr->loss_events >= FULL_LOSS_CNT && recovery && is_too_high(ack->tx_in_flight, ack->tx_lost)) {
		bbr->full_bw_now = bbr->full_bw_reached = true;
		bbr->bounds.inflight_hi = max_u32(inflight_at(sk, bbr, max_bw(bbr)), bbr->inflight_latest);
	}
	bbr->loss_events = 0;
}

static inline void check_full_bw(struct bbr3 *bbr, const struct bbr3_ack *ack)
{
	if (!ack->valid || ack->common.app_limited || bbr->full_bw_now)
		return;
	if (ack->rate >= (u64)bbr->full_bw * FULL_BW_THRESH >> GAIN_SHIFT) {
		restart_full_bw(bbr, ack->rate);
	} else if (ack->common.round_start) {
		bbr->full_bw_cnt++;
		bbr->full_bw_now = bbr->full_bw_cnt >= FULL_BW_CNT;
		bbr->full_bw_reached |= bbr->full_bw_now;
	}
}

static inline void check_drain(struct sock *sk, struct bbr3 *bbr, const struct bbr3_ack *ack)
{
	u32 filled = inflight_at(sk, bbr, max_bw(bbr));

	if (bbr->mode == STARTUP && bbr->full_bw_reached) {
		bbr->mode = DRAIN;
		tcp_sk(sk)->snd_ssthresh = filled;
		reset_congestion_signals(bbr);
	}
	if (bbr->mode == DRAIN && ack->common.in_flight <= filled)
		start_down(tcp_sk(sk), bbr);
}

static inline bool is_limited_by_inflight_hi(const struct bbr3 *bbr, const struct bbr3_ack *ack)
{
	return ack->cwnd_limited && bbr->cwnd >= bbr->bounds.inflight_hi;
}

/* Raises inflight_hi to the packets in flight of a probe without much loss, and further if it limits the probe. */
static inline void raise_inflight_hi(struct bbr3 *bbr, const struct bbr3_ack *ack)
{
	if (bbr->bounds.inflight_hi == NO_BOUND)
		return;
	bbr->bounds.inflight_hi = max_u32(bbr->bounds.inflight_hi, ack->tx_in_flight);
	if (bbr->mode != UP)
		return;
	if (!is_limited_by_inflight_hi(bbr, ack)) {
		bbr->probe_up_acks = 0;
		return;
	}
	bbr->probe_up_acks += ack->common.acked;
	bbr->bounds.inflight_hi += bbr->probe_up_acks / max_u32(bbr->probe_up_cnt, 1);
	bbr->probe_up_acks %= max_u32(bbr->probe_up_cnt, 1);
	if (ack->common.round_start)
		raise_slope(bbr);
}

/* Adapts the long-term bound by the probe's acknowledgements. True if that began the next probe. */
static inline bool adapt_upper_bounds(struct sock *sk, struct bbr3 *bbr, const struct bbr3_ack *ack)
{
	if (ack->common.round_start && bbr->ack_phase == ACKS_PROBE_STARTING) {
		bbr->ack_phase = ACKS_PROBE_FEEDBACK;
	} else if (ack->common.round_start && bbr->ack_phase == ACKS_PROBE_STOPPING) {
		bbr->prior_probe_ok = false;
		bbr->ack_phase = ACKS_INIT;
		if (is_probe_bw(bbr) && !ack->common.app_limited && bbr->bw_filter[1]) {
			bbr->bw_filter[0] = bbr->bw_filter[1];
			bbr->bw_filter[1] = 0;
		}
		if (is_probe_bw(bbr) && bbr->stopped_risky_probe && !bbr->prior_probe_too_high) {
			start_refill(tcp_sk(sk), bbr);
			return true;
		}
	}
	if (!is_too_high(ack->tx_in_flight, ack->tx_lost))
		raise_inflight_hi(bbr, ack);
	else if (bbr->prior_probe_ok)
		handle_too_high(sk, bbr, ack->tx_in_flight, ack->valid && ack->common.app_limited);
	return false;
}

/* Whether the wait is over, or a Reno flow of this window would have had a loss. */
static inline bool is_time_to_probe(struct sock *sk, const struct bbr3 *bbr)
{
	s32 waited = bbr->delivered_mstamp - bbr->cycle_stamp - bbr->probe_wait_us;

	return waited > 0 || bbr->rounds_since_probe >= min_u32(target_inflight(sk, bbr), MAX_PROBE_ROUNDS);
}

static inline void check_time_to_go_down(struct sock *sk, struct bbr3 *bbr, const struct bbr3_ack *ack, u32 in_flight)
{
	bool stopped = bbr->prior_probe_too_high && in_flight >= bbr->bounds.inflight_hi;

	bbr->stopped_risky_probe |= stopped;
	if (!stopped && is_limited_by_inflight_hi(bbr, ack)) {
		/* The bound, not the path, limits the bandwidth. */
		restart_full_bw(bbr, ack->rate);
	} else if (stopped || bbr->full_bw_now) {
		bbr->prior_probe_too_high = false;
		start_down(tcp_sk(sk), bbr);
	}
}

static inline void update_cycle(struct sock *sk, struct bbr3 *bbr, const struct bbr3_ack *ack)
{
	if (!bbr->full_bw_reached || adapt_upper_bounds(sk, bbr, ack))
		return;
	u32 in_flight = ack->common.prior_in_flight + (bbr->mode == UP ? burst(sk, bbr) : 0);

	if (bbr->mode == UP) {
		check_time_to_go_down(sk, bbr, ack, in_flight);
	} else if (bbr->mode == REFILL) {
		if (ack->common.round_start)
			start_up(tcp_sk(sk), bbr, ack->rate);
	} else if (bbr->mode == DOWN || bbr->mode == CRUISE) {
		if (is_time_to_probe(sk, bbr))
			start_refill(tcp_sk(sk), bbr);
		else if (bbr->mode == DOWN && in_flight <= inflight_with_headroom(bbr) &&
			 in_flight <= inflight_at(sk, bbr, max_bw(bbr)))
			start_cruise(bbr);
	}
}

/* Saves the window before an episode or ProbeRTT reduces it. */
static inline void save_cwnd(struct bbr3 *bbr)
{
	bool reduced = bbr->prev_ca_state >= CA_RECOVERY || bbr->mode == PROBE_RTT;

	bbr->prior_cwnd = reduced ? max_u32(bbr->prior_cwnd, bbr->cwnd) : bbr->cwnd;
}

static inline u32 probe_rtt_cwnd(const struct bbr3 *bbr)
{
	return max_u32(bdp(bbr, used_bw(bbr), PROBE_RTT_CWND_GAIN), MIN_CWND);
}

static inline void check_probe_rtt_done(const struct tcp_sock *tp, struct bbr3 *bbr, u32 now)
{
	if (!bbr->probe_rtt_done_stamp || (s32)(now - bbr->probe_rtt_done_stamp) <= 0)
		return;
	bbr->probe_rtt_min_stamp = now;
	bbr->cwnd = max_u32(bbr->cwnd, bbr->prior_cwnd);
	reset_lower_bounds(bbr);
	if (bbr->full_bw_reached) {
		/* There are fewer packets in flight than the path holds, and nothing to drain. */
		start_down(tp, bbr);
		start_cruise(bbr);
	} else {
		bbr->mode = STARTUP;
	}
}

static inline void handle_probe_rtt(struct tcp_sock *tp, struct bbr3 *bbr, const struct bbr3_ack *ack)
{
	bbr_mark_app_limited(tp, ack->common.in_flight);
	if (bbr->probe_rtt_done_stamp) {
		bbr->probe_rtt_round_done |= ack->common.round_start;
		if (bbr->probe_rtt_round_done)
			check_probe_rtt_done(tp, bbr, ack->common.now);
	} else if (ack->common.in_flight <= probe_rtt_cwnd(bbr)) {
		bbr->probe_rtt_done_stamp = (ack->common.now + PROBE_RTT_DURATION) ?: 1;
		bbr->next_round_delivered = tp->delivered;
	}
}

static inline void update_min_rtt(struct tcp_sock *tp, struct bbr3 *bbr, const struct rate_sample *rs,
				  const struct bbr3_ack *ack)
{
	u32 now = ack->common.now;
	bool expired = now - bbr->probe_rtt_min_stamp > PROBE_RTT_INTERVAL;
	long rtt_us = rs->rtt_us;

	if (rtt_us >= 0 && (rtt_us < bbr->probe_rtt_min_us || (expired && !(ack->valid && rs->is_ack_delayed)))) {
		bbr->probe_rtt_min_us = rtt_us;
		bbr->probe_rtt_min_stamp = now;
	}
	if (bbr->probe_rtt_min_us <= bbr->min_rtt_us || now - bbr->min_rtt_stamp > MIN_RTT_WINDOW) {
		bbr->min_rtt_us = bbr->probe_rtt_min_us;
		bbr->min_rtt_stamp = bbr->probe_rtt_min_stamp;
	}
	if (expired && !bbr->idle_restart && bbr->mode != PROBE_RTT) {
		save_cwnd(bbr);
		bbr->mode = PROBE_RTT;
		bbr->ack_phase = ACKS_PROBE_STOPPING;
		bbr->next_round_delivered = tp->delivered;
		bbr->probe_rtt_done_stamp = 0;
		bbr->probe_rtt_round_done = false;
	}
	if (bbr->mode == PROBE_RTT)
		handle_probe_rtt(tp, bbr, ack);
	if (ack->common.acked)
		bbr->idle_restart = false;
}

static inline void init_pacing_rate(struct sock *sk, struct bbr3 *bbr)
{
	u32 srtt_us = tcp_sk(sk)->srtt_us >> 3, mss = tcp_sk(sk)->mss_cache;

	bbr->has_seen_rtt = srtt_us > 0;
	bbr_pace(sk, bbr_bytes_per_second(bbr_rate(bbr->cwnd, srtt_us ?: USEC_PER_MSEC), mss, STARTUP_GAIN));
}

static inline u32 pacing_gain(const struct bbr3 *bbr)
{
	if (bbr->mode == STARTUP)
		return STARTUP_GAIN;
	if (bbr->mode == DRAIN)
		return DRAIN_GAIN;
	if (bbr->mode == DOWN)
		return DOWN_GAIN;
	return bbr->mode == UP ? UP_GAIN : UNIT_GAIN;
}

static inline void set_pacing_rate(struct sock *sk, struct bbr3 *bbr)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!bbr->has_seen_rtt && tp->srtt_us >> 3)
		init_pacing_rate(sk, bbr);
	u64 rate = bbr_bytes_per_second(used_bw(bbr), tp->mss_cache, pacing_gain(bbr));
	if (bbr->full_bw_reached || rate > sk->sk_pacing_rate)
		bbr_pace(sk, rate);
}

static inline u32 towards_target(struct sock *sk, const struct bbr3 *bbr, u32 acked)
{
	u32 gain = bbr->mode == UP ? UP_CWND_GAIN : bbr->mode == PROBE_RTT ? UNIT_GAIN : CWND_GAIN;
	u32 extra = bbr_extra_acked(&bbr->excess, used_bw(bbr)), cwnd = bbr->cwnd;
	u32 target = quantized(sk, bbr, bdp(bbr, used_bw(bbr), gain) + extra);

	if (bbr->full_bw_reached)
		return min_u32(cwnd + acked, target);
	return cwnd < target || cwnd < 2 * TCP_INIT_CWND ? cwnd + acked : cwnd;
}

/* Window that the bounds allow in this mode. */
static inline u32 bound_cwnd(const struct bbr3 *bbr)
{
	u32 inflight_hi = bbr->bounds.inflight_hi;

	if (bbr->mode == STARTUP || bbr->mode == DRAIN)
		inflight_hi = NO_BOUND;
	else if (bbr->mode == CRUISE || bbr->mode == PROBE_RTT)
		inflight_hi = inflight_with_headroom(bbr);
	return max_u32(min_u32(inflight_hi, bbr->bounds.inflight_lo), MIN_CWND);
}

static inline void set_cwnd(struct sock *sk, struct bbr3 *bbr, const struct bbr3_ack *ack)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 state = tp->inet_conn.icsk_ca_state;

	if (bbr->prev_ca_state == CA_LOSS && state != CA_LOSS)
		bbr->cwnd = max_u32(bbr->cwnd, bbr->prior_cwnd);
	if (ack->common.acked)
		bbr->cwnd = min_u32(max_u32(towards_target(sk, bbr, ack->common.acked), MIN_CWND), MAX_CWND);
	if (bbr->mode == PROBE_RTT)
		bbr->cwnd = min_u32(bbr->cwnd, probe_rtt_cwnd(bbr));
	bbr->cwnd = min_u32(bbr->cwnd, bound_cwnd(bbr));
	bbr->prev_ca_state = state;
	tp->snd_cwnd = max_u32(min_u32(bbr->cwnd, tp->snd_cwnd_clamp), 1);
}

HOOK(void, bbr3_init, struct sock *sk)
{
	struct bbr3 *bbr = CREATE_STORAGE(bbr3_state, sk);
	struct tcp_sock *tp = tcp_sk(sk);

	tp->snd_ssthresh = INFINITE_SSTHRESH;
	if (sk->sk_pacing_status == PACING_NONE)
		sk->sk_pacing_status = PACING_NEEDED;
	if (!bbr)
		return;
	__builtin_memset(bbr, 0, sizeof(*bbr));
	bbr->cwnd = tp->snd_cwnd;
	bbr->min_rtt_us = bbr->probe_rtt_min_us = tp->rtt_min.s[0].v;
	bbr->min_rtt_stamp = bbr->probe_rtt_min_stamp = tp->tcp_mstamp;
	bbr->next_round_delivered = bbr->loss_round_delivered = tp->delivered;
	bbr->delivered_mstamp = tp->tcp_mstamp;
	reset_lower_bounds(bbr);
	bbr->bounds.inflight_hi = NO_BOUND;
	bbr_restart_epoch(&bbr->excess, tp->tcp_mstamp);
	init_pacing_rate(sk, bbr);
}

CONG_CONTROL(bbr3_cong_control)
{
	struct bbr3 *bbr = BBR_OF(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!bbr)
		return;
	if (rs->acked_sacked)
		bbr->delivered_mstamp = tp->delivered_mstamp;
	struct bbr3_ack ack = {
		.common = bbr_ack_of(tp, rs, bbr->mode == PROBE_RTT),
		.valid = rs->delivered >= 0 && rs->interval_us > 0 && rs->acked_sacked,
		.cwnd_limited = is_cwnd_limited(tp),
		.prior_delivered = rs->prior_delivered,
		.delivered = rs->delivered >= 0 ? rs->delivered : 0,
	};

	ack.common.delivered_mstamp = bbr->delivered_mstamp;
	handle_lost(sk, bbr, &ack);
	if (!ack.valid)
		ack.delivered = 0;
	else
		ack.rate = saturate_u32((((u64)ack.delivered << BW_SCALE) + rs->interval_us - 1) /
					max_u64(rs->interval_us, 1));
	ack.tx_in_flight = ack.delivered + bbr->lost;
	ack.tx_lost = bbr->lost;
	update_round(tp, bbr, &ack);
	update_model(tp, bbr, &ack);
	check_startup_loss(sk, bbr, &ack);
	check_full_bw(bbr, &ack);
	check_drain(sk, bbr, &ack);
	update_cycle(sk, bbr, &ack);
	update_min_rtt(tp, bbr, rs, &ack);
	set_pacing_rate(sk, bbr);
	set_cwnd(sk, bbr, &ack);
	if (ack.loss_round_start) {
		bbr->bw_latest = ack.rate;
		bbr->inflight_latest = ack.delivered;
	}
}

HOOK(u32, bbr3_ssthresh, struct sock *sk)
{
	struct bbr3 *bbr = BBR_OF(sk);

	if (bbr) {
		save_cwnd(bbr);
		bbr->undo = bbr->bounds;
		bbr->has_undo = true;
	}
	return tcp_sk(sk)->snd_ssthresh;
}

HOOK(void, bbr3_set_state, struct sock *sk, u8 new_state)
{
	struct bbr3 *bbr = BBR_OF(sk);

	if (!bbr || new_state != CA_LOSS)
		return;
	if (!is_probing_bw(bbr) && bbr->bounds.inflight_lo == NO_BOUND)
		bbr->bounds.inflight_lo = max_u32(bbr->cwnd, bbr->prior_cwnd);
	bbr->cwnd = tcp_sk(sk)->snd_cwnd;
	bbr->prev_ca_state = CA_LOSS;
	restart_full_bw(bbr, 0);
}

HOOK(u32, bbr3_undo_cwnd, struct sock *sk)
{
	struct bbr3 *bbr = BBR_OF(sk);

	if (!bbr)
		return tcp_sk(sk)->snd_cwnd;
	restart_full_bw(bbr, 0);
	bbr->loss_in_round = false;
	if (bbr->has_undo) {
		bbr->bounds.bw_lo = max_u32(bbr->bounds.bw_lo, bbr->undo.bw_lo);
		bbr->bounds.inflight_lo = max_u32(bbr->bounds.inflight_lo, bbr->undo.inflight_lo);
		bbr->bounds.inflight_hi = max_u32(bbr->bounds.inflight_hi, bbr->undo.inflight_hi);
		bbr->cwnd = bbr->prior_cwnd;
	}
	return max_u32(min_u32(bbr->cwnd, tcp_sk(sk)->snd_cwnd_clamp), 1);
}

static inline void bbr3_tx_start(struct sock *sk)
{
	struct bbr3 *bbr = BBR_OF(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 now = tp->tcp_mstamp;

	if (!bbr || !tp->app_limited)
		return;
	bbr->idle_restart = true;
	bbr_restart_epoch(&bbr->excess, now);
	if (is_probe_bw(bbr))
		bbr_pace(sk, bbr_bytes_per_second(used_bw(bbr), tp->mss_cache, UNIT_GAIN));
	else if (bbr->mode == PROBE_RTT)
		check_probe_rtt_done(tp, bbr, now);
}

TX_START_HOOKS(bbr3)

HOOK(u32, bbr3_sndbuf_expand, struct sock *sk)
{
	return SNDBUF_EXPAND;
}

PROGRAM_REGISTER_TX_START(rw_bbr3, bbr3,
	.init = (void *)bbr3_init,
	.cong_control = (void *)bbr3_cong_control,
	.ssthresh = (void *)bbr3_ssthresh,
	.undo_cwnd = (void *)bbr3_undo_cwnd,
	.set_state = (void *)bbr3_set_state,
	.sndbuf_expand = (void *)bbr3_sndbuf_expand
);

LICENSE;

/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * BBR, version 1: rate and window from a model of the path.
 *
 * The model has two measurements: the bandwidth (maximum delivery rate of the last ten round trips) and the minimum RTT
 * (of the last ten seconds). The sender paces at `gain * bandwidth`, keeps at most `gain * bandwidth * minimum RTT` in
 * flight, and goes through four modes:
 * - Startup: gain 2.89 until the bandwidth has not grown by a quarter for three round trips. Drain: the inverse.
 * - ProbeBW: eight phases of one minimum RTT each, at 1.25, 0.75 and six times 1.
 * - ProbeRTT: if ten seconds brought no new minimum RTT, four packets in flight for 200 ms.
 *
 * Loss changes the model only where it indicates a policer (`lt_`: two intervals of heavy loss with the same rate); in
 * the first round of recovery, a packet is sent for each one delivered. Packets acknowledged beyond those expected are
 * added to the window.
 *
 * Source: Cardwell, Cheng, Gunn, Yeganeh and Jacobson, "BBR: congestion-based congestion control" (ACM Queue 2016);
 * draft-cardwell-iccrg-bbr-congestion-control-00; as cc/control/src/single/bbr.
 * Deviations: the release time of the pacer's next packet is not considered: the packets in flight then are taken to be
 * those in flight now. Bandwidth is bounded by 256 packets per microsecond, excess acknowledgements by 65,535 packets.
 * Units: bandwidth in packets per microsecond times 2^24, gains in 1/256, times in microseconds modulo 2^32.
 */
#pragma once
#include "kernel.bpf.h"

enum bbr_mode { STARTUP, DRAIN, PROBE_BW, PROBE_RTT };

enum {
	BW_SCALE = 24,
	GAIN_SHIFT = 8,
	UNIT_GAIN = 1 << GAIN_SHIFT,
	HIGH_GAIN = 739,                        /* 2/ln 2: the least that doubles the delivery rate every round trip */
	DRAIN_GAIN = 88,                        /* its inverse */
	CWND_GAIN = 512,
	PROBE_GAIN = 320,
	REDUCE_GAIN = 192,
	CYCLE_PHASES = 8,
	CRUISE_PHASE = 2,                       /* the first of the phases with gain 1 */

	BW_RTTS = 10,
	FULL_BW_THRESH = 320,                   /* growth of the bandwidth while the pipe is not full */
	FULL_BW_CNT = 3,
	MIN_RTT_WINDOW = 10 * USEC_PER_SEC,
	PROBE_RTT_DURATION = 200 * USEC_PER_MSEC,
	NO_RTT = -1,                            /* as u32 the greatest */

	MIN_CWND = 4,
	TCP_INIT_CWND = 10,
	MAX_CWND = 0x7fffffff,

	PACING_MARGIN = 10000 * 99,             /* 99 % of a second's 10^6 us */
	MIN_TSO_RATE = 1200000 / 8,             /* below this rate in bytes per second, a burst is one packet */
	BURST_SHIFT = 10,                       /* a burst is the data of 2^-10 s ... */
	GSO_MAX_SIZE = 65535 - 320,             /* ... at most so many bytes ... */
	GSO_MAX_SEGS = 127,                     /* ... and packets */
	SNDBUF_EXPAND = 3,                      /* send buffer, windows: in recovery more is sent than acknowledged */

	EXTRA_ACKED_WIN_RTTS = 5,               /* round trips of each of two slots */
	EXTRA_ACKED_MAX = 100 * USEC_PER_MSEC,  /* the excess is at most what the bandwidth delivers in this time */
	EXTRA_ACKED_LIMIT = 0xffff,
	ACK_EPOCH_MAX = 1 << 20,                /* packets after which an epoch ends */

	LT_MIN_RTTS = 4,                        /* length of an interval, round trips */
	LT_MAX_RTTS = 16,
	LT_LOSS_THRESH = 50,                    /* lost / delivered, in 1/256 */
	LT_RATIO_SHIFT = 3,                     /* two rates agree if they differ by an eighth at most ... */
	LT_DIFF = 4000 / 8,                     /* ... or by 4 kbit/s */
	LT_USE_RTTS = 48,
};

struct bbr_bw {
	u32 round, rate;
};

/* Packets acknowledged beyond those expected: the maximum excess of two slots of round trips. */
struct bbr_excess {
	u32 epoch_mstamp;
	u16 extra_acked[2];
	u32 epoch_acked : 20,
	    win_rtts : 5,
	    win_idx : 1;
};

/* State of a path: 104 bytes. */
struct bbr {
	u64 shared;                     /* what siblings read; the program's */
	struct bbr_bw best[3];          /* best, second and third best of the bandwidth's filter */
	u32 cwnd;                       /* packets */
	u32 prior_cwnd;                 /* to restore after recovery and ProbeRTT */
	u32 min_rtt_us;
	u32 min_rtt_stamp;
	u32 probe_rtt_done_stamp;       /* 0: not yet known */
	u32 next_rtt_delivered;         /* the round ends with a packet sent when so many were delivered */
	u32 rtt_cnt;
	u32 full_bw;
	u32 cycle_mstamp;               /* start of the phase */
	u32 lt_bw;                      /* rate of the last interval; 0 without one */
	u32 lt_last_delivered;
	u32 lt_last_lost;
	u32 lt_last_stamp_ms;
	struct bbr_excess excess;
	u32 lt_use_bw : 1,
	    lt_is_sampling : 1,
	    full_bw_reached : 1,
	    probe_rtt_round_done : 1,
	    idle_restart : 1,
	    packet_conservation : 1;
	u32 mode : 2,
	    cycle_idx : 3,
	    prev_ca_state : 3,
	    full_bw_cnt : 2,
	    lt_rtt_cnt : 7,
	    has_seen_rtt : 1,
	    pacing_gain : 10;
};
_Static_assert(sizeof(struct bbr) <= 104, "icsk_ca_priv has 104 bytes");

/* Gain of the cruise phases, and a bound of their window, which a coupling of paths may set. */
struct bbr_cruise {
	u32 pacing_gain;
	u32 max_cwnd;                   /* packets */
};

#define BBR_CRUISE (struct bbr_cruise) { .pacing_gain = UNIT_GAIN, .max_cwnd = MAX_CWND }

/* One acknowledgement. */
struct bbr_ack {
	u32 acked;                      /* packets newly delivered */
	u32 lost;                       /* packets newly marked lost */
	u32 in_flight;                  /* packets, now */
	u32 prior_in_flight;            /* packets, before it */
	u32 now;
	u32 delivered_mstamp;
	bool app_limited;
	bool round_start;               /* whether it begins a round */
};

/* For the native build: whether the algorithm, not the application, limits the sender. */
#define LIMITS_ITSELF(sk) (BBR_OF(sk)->mode == PROBE_RTT)
#ifndef BBR_OF
#define BBR_OF(sk) ((struct bbr *)private(sk))
#endif

static inline u32 packets_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

static inline u32 saturate_u32(u64 value)
{
	return min_u64(value, 0xffffffff);
}

/* `packets` over `interval_us`. */
static inline u32 bbr_rate(u32 packets, u64 interval_us)
{
	return saturate_u32(((u64)packets << BW_SCALE) / max_u64(interval_us, 1));
}

/* Packets that the bandwidth delivers in a time. */
static inline u64 bbr_packets_in(u32 bw, u32 us)
{
	return ((u64)bw * us) >> BW_SCALE;
}

/* `gain * bw` minus the pacing margin of 1 %, bytes per second. */
static inline u64 bbr_bytes_per_second(u32 bw, u32 mss, u32 gain)
{
	u64 scaled = (u64)bw * (mss & 0xffff) * gain >> GAIN_SHIFT;

	return (scaled >> BW_SCALE) * PACING_MARGIN + ((scaled & ((1 << BW_SCALE) - 1)) * PACING_MARGIN >> BW_SCALE);
}

/* The bandwidth in use. */
static inline u32 bbr_bandwidth(const struct bbr *bbr)
{
	return bbr->lt_use_bw ? bbr->lt_bw : bbr->best[0].rate;
}

/* `gain * bw * minimum RTT`, packets, rounded up. */
static inline u32 bbr_bdp(const struct bbr *bbr, u32 bw, u32 gain)
{
	if (bbr->min_rtt_us == (u32)NO_RTT)
		return TCP_INIT_CWND;
	u64 scaled = min_u64((u64)bw * bbr->min_rtt_us, 1ULL << 53) * gain >> GAIN_SHIFT;
	return min_u64((scaled + (1 << BW_SCALE) - 1) >> BW_SCALE, MAX_CWND);
}

static inline u32 bbr_min_segs(const struct sock *sk)
{
	return sk->sk_pacing_rate < MIN_TSO_RATE ? 1 : 2;
}

/* Packets in one burst of the pacer. */
static inline u32 bbr_burst(struct sock *sk)
{
	u64 bytes = min_u64(sk->sk_pacing_rate >> BURST_SHIFT, GSO_MAX_SIZE);

	return min_u64(max_u64(bytes / max_u32(tcp_sk(sk)->mss_cache, 1), bbr_min_segs(sk)), GSO_MAX_SEGS);
}

/* Room for three bursts (the sender's, the network's, the receiver's), even for a receiver that acknowledges pairs, and
 * for two more packets in the probing phase. */
static inline u32 bbr_quantization_budget(struct sock *sk, const struct bbr *bbr, u32 packets)
{
	u32 sum = packets + 3 * bbr_burst(sk);

	sum += sum & 1;
	return bbr->mode == PROBE_BW && bbr->cycle_idx == 0 ? sum + 2 : sum;
}

/* Packets in flight at this gain. */
static inline u32 bbr_inflight(struct sock *sk, const struct bbr *bbr, u32 gain)
{
	return bbr_quantization_budget(sk, bbr, bbr_bdp(bbr, bbr->best[0].rate, gain));
}

static inline void bbr_pace(struct sock *sk, u64 bytes_per_second)
{
	sk->sk_pacing_rate = min_u64(max_u64(bytes_per_second, 1), sk->sk_max_pacing_rate);
}

/* Before the first measurement: `gain * cwnd / srtt`, with an RTT of a millisecond while it is unknown. */
static inline void bbr_init_pacing_rate(struct sock *sk, struct bbr *bbr)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 srtt_us = tp->srtt_us >> 3;

	bbr->has_seen_rtt = srtt_us > 0;
	bbr_pace(sk, bbr_bytes_per_second(bbr_rate(bbr->cwnd, srtt_us ?: USEC_PER_MSEC), tp->mss_cache, HIGH_GAIN));
}

static inline void bbr_restart_epoch(struct bbr_excess *excess, u32 now)
{
	excess->epoch_mstamp = now;
	excess->epoch_acked = 0;
}

static inline void bbr_init(struct sock *sk, struct bbr *bbr)
{
	struct tcp_sock *tp = tcp_sk(sk);

	bbr->cwnd = tp->snd_cwnd;
	bbr->min_rtt_us = tp->rtt_min.s[0].v;
	bbr->min_rtt_stamp = tp->tcp_mstamp;
	bbr->next_rtt_delivered = tp->delivered;
	bbr->pacing_gain = HIGH_GAIN;
	bbr_restart_epoch(&bbr->excess, tp->tcp_mstamp);
	bbr_init_pacing_rate(sk, bbr);
	if (sk->sk_pacing_status == PACING_NONE)
		sk->sk_pacing_status = PACING_NEEDED;
}

/* Adds a sample to the filter (Kathleen Nichols' windowed maximum, cc/control/src/common/windowed_max.rs). */
static inline void bbr_add_bw(struct bbr *bbr, u32 rate)
{
	struct bbr_bw *best = bbr->best;
	struct bbr_bw sample = { .round = bbr->rtt_cnt, .rate = rate };

	if (rate >= best[0].rate || sample.round - best[2].round > BW_RTTS) {
		best[0] = best[1] = best[2] = sample;
		return;
	}
	if (rate >= best[1].rate)
		best[1] = best[2] = sample;
	else if (rate >= best[2].rate)
		best[2] = sample;
	/* Expires the best; spreads the others over the window. */
	u32 age = sample.round - best[0].round;
	if (age > BW_RTTS) {
		best[0] = best[1];
		best[1] = best[2];
		best[2] = sample;
		if (sample.round - best[0].round > BW_RTTS) {
			best[0] = best[1];
			best[1] = sample;
		}
	} else if (best[1].round == best[0].round && age > BW_RTTS / 4) {
		best[1] = best[2] = sample;
	} else if (best[2].round == best[1].round && age > BW_RTTS / 2) {
		best[2] = sample;
	}
}

static inline void bbr_advance_cycle(struct bbr *bbr, u32 now)
{
	bbr->cycle_idx = (bbr->cycle_idx + 1) % CYCLE_PHASES;
	bbr->cycle_mstamp = now;
}

/* At a random phase other than the one that reduces. */
static inline void bbr_enter_probe_bw(struct bbr *bbr, u32 now)
{
	bbr->mode = PROBE_BW;
	bbr->cycle_idx = CYCLE_PHASES - 1 - ((u64)bpf_get_prandom_u32() * (CYCLE_PHASES - 1) >> 32);
	bbr_advance_cycle(bbr, now);
}

static inline void bbr_start_lt_interval(const struct tcp_sock *tp, struct bbr *bbr)
{
	bbr->lt_last_delivered = tp->delivered;
	bbr->lt_last_lost = tp->lost;
	bbr->lt_last_stamp_ms = tp->delivered_mstamp / USEC_PER_MSEC;
	bbr->lt_rtt_cnt = 0;
}

static inline void bbr_restart_lt(const struct tcp_sock *tp, struct bbr *bbr)
{
	bbr->lt_bw = 0;
	bbr->lt_use_bw = 0;
	bbr->lt_is_sampling = 0;
	bbr_start_lt_interval(tp, bbr);
}

/* The end of an interval with heavy loss: a rate like that of the previous interval is a policer's. */
static inline void bbr_end_lt_interval(const struct tcp_sock *tp, struct bbr *bbr)
{
	u32 delivered = tp->delivered - bbr->lt_last_delivered, lost = tp->lost - bbr->lt_last_lost;
	s32 interval_ms = (u32)(tp->delivered_mstamp / USEC_PER_MSEC) - bbr->lt_last_stamp_ms;

	if (!delivered || (u64)lost << 8 < (u64)LT_LOSS_THRESH * delivered || interval_ms <= 0)
		return;
	u32 rate = bbr_rate(delivered, (u64)interval_ms * USEC_PER_MSEC), last = bbr->lt_bw;
	u32 difference = rate > last ? rate - last : last - rate;
	if (last && (difference <= last >> LT_RATIO_SHIFT ||
		     bbr_bytes_per_second(difference, tp->mss_cache, UNIT_GAIN) <= LT_DIFF)) {
		bbr->lt_bw = ((u64)rate + last) / 2;
		bbr->lt_use_bw = 1;
		bbr->lt_rtt_cnt = 0;
		return;
	}
	bbr->lt_bw = rate;
	bbr_start_lt_interval(tp, bbr);
}

/* Looks for a policer, which drops all packets beyond a token rate; its rate is used for 48 round trips of ProbeBW. */
static inline void bbr_sample_lt_bw(const struct tcp_sock *tp, struct bbr *bbr, const struct bbr_ack *ack)
{
	if (bbr->lt_use_bw) {
		if (bbr->mode == PROBE_BW && ack->round_start && ++bbr->lt_rtt_cnt >= LT_USE_RTTS) {
			bbr_restart_lt(tp, bbr);
			bbr_enter_probe_bw(bbr, ack->delivered_mstamp);
		}
		return;
	}
	if (!bbr->lt_is_sampling) {
		/* The policer has run out of tokens only after the first loss. */
		if (!ack->lost)
			return;
		bbr_start_lt_interval(tp, bbr);
		bbr->lt_is_sampling = 1;
	}
	bbr->lt_rtt_cnt += ack->round_start;
	if (ack->app_limited || bbr->lt_rtt_cnt > LT_MAX_RTTS)
		bbr_restart_lt(tp, bbr);
	else if (bbr->lt_rtt_cnt >= LT_MIN_RTTS && ack->lost)
		bbr_end_lt_interval(tp, bbr);
}

static inline void bbr_update_bw(const struct tcp_sock *tp, struct bbr *bbr, const struct rate_sample *rs,
				 struct bbr_ack *ack)
{
	if ((s32)(rs->prior_delivered - bbr->next_rtt_delivered) >= 0) {
		bbr->next_rtt_delivered = tp->delivered;
		bbr->rtt_cnt++;
		ack->round_start = true;
		bbr->packet_conservation = 0;
	}
	bbr_sample_lt_bw(tp, bbr, ack);
	u32 rate = bbr_rate(rs->delivered, rs->interval_us);
	if (!ack->app_limited || rate >= bbr->best[0].rate)
		bbr_add_bw(bbr, rate);
}

/* The packets to add to the window at this bandwidth. */
static inline u32 bbr_extra_acked(const struct bbr_excess *excess, u32 bw)
{
	return min_u64(max_u32(excess->extra_acked[0], excess->extra_acked[1]), bbr_packets_in(bw, EXTRA_ACKED_MAX));
}

/* Updates the excess, with the bandwidth in use, the window, and the round trips of a slot. */
static inline void bbr_update_excess(struct bbr_excess *excess, const struct bbr_ack *ack, u32 bw, u32 cwnd, u32 win_rtts)
{
	if (ack->round_start && ++excess->win_rtts >= win_rtts) {
		excess->win_rtts = 0;
		excess->win_idx ^= 1;
		if (excess->win_idx)
			excess->extra_acked[1] = 0;
		else
			excess->extra_acked[0] = 0;
	}
	u64 expected = bbr_packets_in(bw, ack->delivered_mstamp - excess->epoch_mstamp);
	if (excess->epoch_acked <= expected || excess->epoch_acked + ack->acked >= ACK_EPOCH_MAX) {
		bbr_restart_epoch(excess, ack->delivered_mstamp);
		expected = 0;
	}
	excess->epoch_acked = min_u32(excess->epoch_acked + ack->acked, ACK_EPOCH_MAX - 1);
	u32 extra = min_u32(min_u64(excess->epoch_acked - expected, cwnd), EXTRA_ACKED_LIMIT);
	if (excess->win_idx)
		excess->extra_acked[1] = max_u32(excess->extra_acked[1], extra);
	else
		excess->extra_acked[0] = max_u32(excess->extra_acked[0], extra);
}

static inline bool bbr_is_cruising(const struct bbr *bbr)
{
	return bbr->mode == PROBE_BW && bbr->cycle_idx >= CRUISE_PHASE;
}

/* Whether the phase is over: after a minimum RTT; the probing phase not before a queue or a loss, the reducing phase
 * earlier if there is no queue. */
static inline bool bbr_is_next_phase(struct sock *sk, const struct bbr *bbr, const struct bbr_ack *ack)
{
	bool full_length = ack->delivered_mstamp - bbr->cycle_mstamp > bbr->min_rtt_us;

	if (bbr_is_cruising(bbr) || bbr->pacing_gain == UNIT_GAIN)
		return full_length;
	if (bbr->pacing_gain > UNIT_GAIN)
		return full_length && (ack->lost || ack->prior_in_flight + bbr_burst(sk) >=
							    bbr_inflight(sk, bbr, bbr->pacing_gain));
	return full_length || ack->prior_in_flight <= bbr_inflight(sk, bbr, UNIT_GAIN);
}

static inline void bbr_check_full_bw(struct bbr *bbr, const struct bbr_ack *ack)
{
	if (bbr->full_bw_reached || !ack->round_start || ack->app_limited)
		return;
	if (bbr->best[0].rate >= (u64)bbr->full_bw * FULL_BW_THRESH >> GAIN_SHIFT) {
		bbr->full_bw = bbr->best[0].rate;
		bbr->full_bw_cnt = 0;
		return;
	}
	bbr->full_bw_cnt++;
	bbr->full_bw_reached = bbr->full_bw_cnt >= FULL_BW_CNT;
}

/* Returns the packets in flight that fill the path if Startup ended, else 0. */
static inline u32 bbr_check_drain(struct sock *sk, struct bbr *bbr, const struct bbr_ack *ack)
{
	u32 filled = bbr_inflight(sk, bbr, UNIT_GAIN), startup_end = 0;

	if (bbr->mode == STARTUP && bbr->full_bw_reached) {
		bbr->mode = DRAIN;
		startup_end = filled;
	}
	if (bbr->mode == DRAIN && ack->in_flight <= filled)
		bbr_enter_probe_bw(bbr, ack->delivered_mstamp);
	return startup_end;
}

/* Saves the window before recovery or ProbeRTT reduces it. */
static inline void bbr_save_cwnd(struct bbr *bbr)
{
	bool reduced = bbr->prev_ca_state >= CA_RECOVERY || bbr->mode == PROBE_RTT;

	bbr->prior_cwnd = reduced ? max_u32(bbr->prior_cwnd, bbr->cwnd) : bbr->cwnd;
}

static inline void bbr_check_probe_rtt_done(struct bbr *bbr, u32 now, u32 delivered_mstamp)
{
	if (!bbr->probe_rtt_done_stamp || (s32)(now - bbr->probe_rtt_done_stamp) <= 0)
		return;
	bbr->min_rtt_stamp = now;
	bbr->cwnd = max_u32(bbr->cwnd, bbr->prior_cwnd);
	if (bbr->full_bw_reached)
		bbr_enter_probe_bw(bbr, delivered_mstamp);
	else
		bbr->mode = STARTUP;
}

/* In ProbeRTT the delivery rate is that of the probe, not that of the path. */
static inline void bbr_mark_app_limited(struct tcp_sock *tp, u32 in_flight)
{
	if (LINUX_KERNEL_VERSION >= LINUX_6_10)
		tp->app_limited = max_u32(tp->delivered + in_flight, 1);
}

static inline void bbr_handle_probe_rtt(struct tcp_sock *tp, struct bbr *bbr, const struct bbr_ack *ack)
{
	bbr_mark_app_limited(tp, ack->in_flight);
	if (bbr->probe_rtt_done_stamp) {
		if (ack->round_start)
			bbr->probe_rtt_round_done = 1;
		if (bbr->probe_rtt_round_done)
			bbr_check_probe_rtt_done(bbr, ack->now, ack->delivered_mstamp);
	} else if (ack->in_flight <= MIN_CWND) {
		bbr->probe_rtt_done_stamp = (ack->now + PROBE_RTT_DURATION) ?: 1;
		bbr->next_rtt_delivered = tp->delivered;
	}
}

static inline void bbr_update_min_rtt(struct tcp_sock *tp, struct bbr *bbr, const struct rate_sample *rs,
				      const struct bbr_ack *ack)
{
	bool expired = ack->now - bbr->min_rtt_stamp > MIN_RTT_WINDOW;
	long rtt_us = rs->rtt_us;

	if (rtt_us >= 0 && (rtt_us < bbr->min_rtt_us || (expired && !rs->is_ack_delayed))) {
		bbr->min_rtt_us = rtt_us;
		bbr->min_rtt_stamp = ack->now;
	}
	if (expired && !bbr->idle_restart && bbr->mode != PROBE_RTT) {
		bbr->mode = PROBE_RTT;
		bbr_save_cwnd(bbr);
		bbr->probe_rtt_done_stamp = 0;
		bbr->probe_rtt_round_done = 0;
	}
	if (bbr->mode == PROBE_RTT)
		bbr_handle_probe_rtt(tp, bbr, ack);
	if (ack->acked)
		bbr->idle_restart = 0;
}

static inline u32 bbr_gain_of_mode(const struct bbr *bbr, const struct bbr_cruise *cruise)
{
	if (bbr->mode == STARTUP)
		return HIGH_GAIN;
	if (bbr->mode == DRAIN)
		return DRAIN_GAIN;
	if (bbr->mode == PROBE_RTT || bbr->lt_use_bw)
		return UNIT_GAIN;
	if (bbr->cycle_idx == 0)
		return PROBE_GAIN;
	return bbr->cycle_idx == 1 ? REDUCE_GAIN : cruise->pacing_gain;
}

/* Paces at `gain * bandwidth`; until the pipe has been full once, the rate is only raised. */
static inline void bbr_set_pacing_rate(struct sock *sk, struct bbr *bbr)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!bbr->has_seen_rtt && tp->srtt_us >> 3)
		bbr_init_pacing_rate(sk, bbr);
	u64 rate = bbr_bytes_per_second(bbr_bandwidth(bbr), tp->mss_cache, bbr->pacing_gain);
	if (bbr->full_bw_reached || rate > sk->sk_pacing_rate)
		bbr_pace(sk, rate);
}

/* The window after loss and after the start and the end of recovery. */
static inline u32 bbr_recover_or_restore(const struct tcp_sock *tp, struct bbr *bbr, const struct bbr_ack *ack)
{
	u32 cwnd = bbr->cwnd > ack->lost ? bbr->cwnd - ack->lost : 1;
	u32 prior_state = bbr->prev_ca_state, state = tp->inet_conn.icsk_ca_state;

	bbr->prev_ca_state = state;
	if (state == CA_RECOVERY && prior_state != CA_RECOVERY) {
		bbr->packet_conservation = 1;
		bbr->next_rtt_delivered = tp->delivered;
		return ack->in_flight + ack->acked;
	}
	if (prior_state >= CA_RECOVERY && state < CA_RECOVERY) {
		bbr->packet_conservation = 0;
		return max_u32(cwnd, bbr->prior_cwnd);
	}
	return cwnd;
}

static inline u32 bbr_towards_target(struct sock *sk, const struct bbr *bbr, const struct bbr_ack *ack, u32 cwnd)
{
	u32 gain = bbr->mode == PROBE_BW ? CWND_GAIN : bbr->mode == PROBE_RTT ? UNIT_GAIN : HIGH_GAIN;
	u32 extra = bbr->full_bw_reached ? bbr_extra_acked(&bbr->excess, bbr_bandwidth(bbr)) : 0;
	u32 target = bbr_quantization_budget(sk, bbr, bbr_bdp(bbr, bbr_bandwidth(bbr), gain) + extra);

	if (bbr->full_bw_reached)
		cwnd = min_u32(cwnd + ack->acked, target);
	else if (cwnd < target || tcp_sk(sk)->delivered < TCP_INIT_CWND)
		cwnd += ack->acked;
	return max_u32(cwnd, MIN_CWND);
}

static inline void bbr_set_cwnd(struct sock *sk, struct bbr *bbr, const struct bbr_ack *ack)
{
	if (ack->acked) {
		u32 cwnd = bbr_recover_or_restore(tcp_sk(sk), bbr, ack);

		cwnd = bbr->packet_conservation ? max_u32(cwnd, ack->in_flight + ack->acked) :
						  bbr_towards_target(sk, bbr, ack, cwnd);
		bbr->cwnd = min_u32(cwnd, MAX_CWND);
	}
	if (bbr->mode == PROBE_RTT)
		bbr->cwnd = min_u32(bbr->cwnd, MIN_CWND);
}

static inline struct bbr_ack bbr_ack_of(const struct tcp_sock *tp, const struct rate_sample *rs, bool in_probe_rtt)
{
	return (struct bbr_ack) {
		.acked = rs->acked_sacked,
		.lost = rs->losses,
		.in_flight = packets_in_flight(tp),
		.prior_in_flight = rs->prior_in_flight,
		.now = tp->tcp_mstamp,
		.delivered_mstamp = tp->delivered_mstamp,
		/* Used if app_limited cannot be written (bbr_mark_app_limited). */
		.app_limited = rs->is_app_limited || (LINUX_KERNEL_VERSION < LINUX_6_10 && in_probe_rtt),
	};
}

/* The hook cong_control: updates the model, the pacing rate, and `bbr->cwnd`. Returns a slow-start threshold if Startup
 * ended, else 0: BBR itself does not use it. */
static inline u32 bbr_on_ack(struct sock *sk, struct bbr *bbr, const struct rate_sample *rs,
			     const struct bbr_cruise *cruise)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr_ack ack = bbr_ack_of(tp, rs, bbr->mode == PROBE_RTT);

	if (rs->delivered >= 0 && rs->interval_us > 0) {
		bbr_update_bw(tp, bbr, rs, &ack);
		if (ack.acked)
			bbr_update_excess(&bbr->excess, &ack, bbr_bandwidth(bbr), bbr->cwnd, EXTRA_ACKED_WIN_RTTS);
	}
	if (bbr->mode == PROBE_BW && bbr_is_next_phase(sk, bbr, &ack))
		bbr_advance_cycle(bbr, ack.delivered_mstamp);
	bbr_check_full_bw(bbr, &ack);
	u32 startup_end = bbr_check_drain(sk, bbr, &ack);
	bbr_update_min_rtt(tp, bbr, rs, &ack);
	bbr->pacing_gain = bbr_gain_of_mode(bbr, cruise);
	bbr_set_pacing_rate(sk, bbr);
	bbr_set_cwnd(sk, bbr, &ack);
	return startup_end;
}

/* The window for the sender: the model's, with the bound of the cruise phases. */
static inline u32 bbr_allowed_cwnd(const struct tcp_sock *tp, const struct bbr *bbr, const struct bbr_cruise *cruise)
{
	u32 cwnd = bbr_is_cruising(bbr) ? min_u32(bbr->cwnd, cruise->max_cwnd) : bbr->cwnd;

	return max_u32(min_u32(cwnd, tp->snd_cwnd_clamp), 1);
}

/* The hook set_state: after a timeout, for which the kernel has set a window of the packets in flight and one more. */
static inline void bbr_on_state(struct sock *sk, struct bbr *bbr, u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr_ack timeout = { .lost = 1, .round_start = true, .delivered_mstamp = tp->delivered_mstamp };

	if (state != CA_LOSS)
		return;
	bbr->cwnd = tp->snd_cwnd;
	bbr->prev_ca_state = CA_LOSS;
	bbr->full_bw = 0;
	bbr_sample_lt_bw(tp, bbr, &timeout);
}

/* The hook undo_cwnd: the window did not depend on the loss, but the model may. */
static inline void bbr_on_undo(struct sock *sk, struct bbr *bbr)
{
	bbr->full_bw = 0;
	bbr->full_bw_cnt = 0;
	bbr_restart_lt(tcp_sk(sk), bbr);
}

/* The first packet after the application had nothing to send is sent at the bandwidth. */
static inline void bbr_on_tx_start(struct sock *sk, struct bbr *bbr)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 now = tp->tcp_mstamp;

	if (!tp->app_limited)
		return;
	bbr->idle_restart = 1;
	bbr_restart_epoch(&bbr->excess, now);
	if (bbr->mode == PROBE_BW)
		bbr_pace(sk, bbr_bytes_per_second(bbr_bandwidth(bbr), tp->mss_cache, UNIT_GAIN));
	else if (bbr->mode == PROBE_RTT)
		bbr_check_probe_rtt_done(bbr, now, now);
}

/* The hook cong_control of an algorithm that leaves window and threshold to the model. */
static inline void bbr_control(struct sock *sk, struct bbr *bbr, const struct rate_sample *rs,
			       const struct bbr_cruise *cruise)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 ssthresh = bbr_on_ack(sk, bbr, rs, cruise);

	if (ssthresh)
		tp->snd_ssthresh = ssthresh;
	tp->snd_cwnd = bbr_allowed_cwnd(tp, bbr, cruise);
}

/* The hooks other than cong_control of such an algorithm, and their entries in its registration. */
#define BBR_HOOKS(prefix)                                                                                              \
	HOOK(void, prefix##_init, struct sock *sk)                                                                     \
	{                                                                                                              \
		bbr_init(sk, private(sk));                                                                             \
		tcp_sk(sk)->snd_ssthresh = INFINITE_SSTHRESH;                                                          \
	}                                                                                                              \
	HOOK(u32, prefix##_ssthresh, struct sock *sk)                                                                  \
	{                                                                                                              \
		bbr_save_cwnd(private(sk));                                                                            \
		return tcp_sk(sk)->snd_ssthresh;                                                                       \
	}                                                                                                              \
	HOOK(u32, prefix##_undo_cwnd, struct sock *sk)                                                                 \
	{                                                                                                              \
		bbr_on_undo(sk, private(sk));                                                                          \
		return tcp_sk(sk)->snd_cwnd;                                                                           \
	}                                                                                                              \
	HOOK(void, prefix##_set_state, struct sock *sk, u8 new_state)                                                  \
	{                                                                                                              \
		bbr_on_state(sk, private(sk), new_state);                                                              \
	}                                                                                                              \
	static inline void prefix##_tx_start(struct sock *sk)                                                          \
	{                                                                                                              \
		bbr_on_tx_start(sk, private(sk));                                                                      \
	}                                                                                                              \
	TX_START_HOOKS(prefix)                                                                                         \
	BBR_SIZES(prefix)

#define BBR_SIZES(prefix)                                                                                              \
	HOOK(u32, prefix##_min_tso_segs, struct sock *sk)                                                              \
	{                                                                                                              \
		return bbr_min_segs(sk);                                                                               \
	}                                                                                                              \
	HOOK(u32, prefix##_sndbuf_expand, struct sock *sk)                                                             \
	{                                                                                                              \
		return SNDBUF_EXPAND;                                                                                  \
	}

#define BBR_HOOKS_OF(prefix)                                                                                           \
	.init = (void *)prefix##_init, .ssthresh = (void *)prefix##_ssthresh, .undo_cwnd = (void *)prefix##_undo_cwnd, \
	.set_state = (void *)prefix##_set_state,                                                                       \
	.cong_control = (void *)prefix##_cong_control, .min_tso_segs = (void *)prefix##_min_tso_segs,                  \
	.sndbuf_expand = (void *)prefix##_sndbuf_expand

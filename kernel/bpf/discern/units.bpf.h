/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * Discern's numbers. No floats are there, so each quantity has a unit of its own:
 *
 * - Windows: 2^-24 packets (PACKET), at most MAX_CWND packets.
 * - Delays and RTTs: ticks of a sixteenth of a microsecond. In these b/16, b/8 and 3b/2 of whole microseconds are exact.
 * - Points in time: microseconds of tcp_mstamp. NEVER is later than all of them.
 * - Parts of a window: 10^-5 (ONE), so that 0.7 and 0.85 are exact.
 * - Counts of packets: 2^-8 packets (COUNT). Loss rates: 2^-32. Delivery rates: 2^-16 packets per second.
 *
 * Each product has at most 63 bits, for windows up to 2^20 packets and RTTs up to 268 s.
 */
#pragma once
#include "../subflows.bpf.h"

enum { PACKET_SHIFT = 24, COUNT_SHIFT = 8, LOSS_SHIFT = 32, RATE_SHIFT = 16, TICK_SHIFT = 4 };
enum { ONE = 100000 };
enum { MAX_ACKED = 1 << 14 };           /* more packets in one acknowledgement count as this */
#define PACKET (1ULL << PACKET_SHIFT)
#define COUNT (1ULL << COUNT_SHIFT)
#define MAX_CWND ((u64)CWND_LIMIT << PACKET_SHIFT)
#define INFINITE_WINDOW ((u64)INFINITE_SSTHRESH << PACKET_SHIFT)
#define NEVER (~0ULL)
#define MAX_TICKS 0xfffffff0ULL
#define TICKS(us) ((u64)(us) << TICK_SHIFT)

/* A function of its own for the verifier, with a stack frame of its own: the frames of a chain of calls have 512 bytes. */
#define FUNCTION static __attribute__((noinline))

static inline u64 clamp_u64(u64 value, u64 least, u64 most)
{
	return min_u64(max_u64(value, least), most);
}

static inline u64 saturating_sub(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

/* `part` of a window or count, in 1 / ONE. */
static inline u64 part_of(u64 whole, u32 part)
{
	return whole * part / ONE;
}

/* Ticks since a point in time; as many as there are since NEVER. */
static inline u64 ticks_since(u64 then, u64 now)
{
	if (then == NEVER)
		return NEVER;
	return TICKS(min_u64(saturating_sub(now, then), 1ULL << 50));
}

/* Quotient of a signed number, towards zero: the instruction set has none. */
static inline s64 signed_div(s64 a, u64 b)
{
	return a < 0 ? -(s64)((u64)-a / max_u64(b, 1)) : (s64)((u64)a / max_u64(b, 1));
}

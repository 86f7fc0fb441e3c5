/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * BALIA's windows over BBR v1 on each subflow (over_bbr.bpf.h).
 */
#include "coupling.bpf.h"
#include "balia.bpf.c"
#include "over_bbr.bpf.h"

OVER_BBR(rw_balia_bbr);

/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * LIA's windows over BBR v1 on each subflow (over_bbr.bpf.h).
 */
#include "coupling.bpf.h"
#include "lia.bpf.c"
#include "over_bbr.bpf.h"

OVER_BBR(rw_lia_bbr);

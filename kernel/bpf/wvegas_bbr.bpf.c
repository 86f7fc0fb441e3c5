/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * wVegas's windows over BBR v1 on each subflow (over_bbr.bpf.h).
 */
#include "coupling.bpf.h"
#include "wvegas.bpf.c"
#include "over_bbr.bpf.h"

OVER_BBR(rw_wvegas_bbr);

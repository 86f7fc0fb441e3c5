/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * BBR v1 (bbr.bpf.h) on one path, for kernels without tcp_bbr.
 */
#include "bbr.bpf.h"

CONG_CONTROL(rw_bbr_cong_control)
{
	bbr_control(sk, private(sk), rs, &BBR_CRUISE);
}

BBR_HOOKS(rw_bbr)

PROGRAM_REGISTER_TX_START(rw_bbr, rw_bbr, BBR_HOOKS_OF(rw_bbr));

LICENSE;

//! The window: grows to the model's target, shrinks with loss, and is restored after recovery.

use super::mode::Mode;
use super::{Bbr, MIN_CWND, TCP_INIT_CWND};
use crate::{AckSample, CaState};

/// Maximum window, packets.
const MAX_CWND: u32 = u32::MAX / 2;

impl Bbr {
    /// Saves the window before recovery or ProbeRTT reduces it (Linux `bbr_save_cwnd`).
    pub(super) fn save_cwnd(&mut self) {
        let already_reduced = self.prev_ca_state >= CaState::Recovery || self.mode == Mode::ProbeRtt;
        self.prior_cwnd = if already_reduced { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
    }

    pub(super) fn set_cwnd(&mut self, sample: &AckSample) {
        if sample.acked > 0 {
            let cwnd = self.set_cwnd_to_recover_or_restore(sample);
            self.cwnd = if self.packet_conservation {
                cwnd.max(sample.in_flight + sample.acked)
            } else {
                self.cwnd_towards_target(cwnd, sample)
            }
            .min(MAX_CWND);
        }
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(MIN_CWND);
        }
    }

    /// The window after loss, and at the start and end of recovery.
    fn set_cwnd_to_recover_or_restore(&mut self, sample: &AckSample) -> u32 {
        let cwnd = self.cwnd.saturating_sub(sample.lost).max(1);
        let prior_state = std::mem::replace(&mut self.prev_ca_state, sample.ca_state);
        if self.for_tunnel_path {
            return cwnd; // no packet conservation
        }
        if sample.ca_state == CaState::Recovery && prior_state != CaState::Recovery {
            self.packet_conservation = true;
            self.rounds.next_rtt_delivered = sample.delivered;
            sample.in_flight + sample.acked
        } else if prior_state >= CaState::Recovery && sample.ca_state < CaState::Recovery {
            self.packet_conservation = false;
            cwnd.max(self.prior_cwnd)
        } else {
            cwnd
        }
    }

    fn cwnd_towards_target(&self, cwnd: u32, sample: &AckSample) -> u32 {
        let extra_acked =
            if self.full_bw.full_bw_reached { self.ack_aggregation.extra_acked(self.bandwidth()) } else { 0 };
        let bdp = self.bdp(self.bandwidth(), self.cwnd_gain);
        let target = u32::try_from(self.quantization_budget(bdp.saturating_add(extra_acked))).unwrap_or(MAX_CWND);
        let increased = cwnd.saturating_add(sample.acked);
        // Linux counts the SYN as delivered.
        let delivered = sample.delivered + u64::from(!self.for_tunnel_path);
        let cwnd = if self.full_bw.full_bw_reached {
            increased.min(target)
        } else if cwnd < target || delivered < u64::from(TCP_INIT_CWND) {
            increased
        } else {
            cwnd
        };
        cwnd.max(MIN_CWND)
    }
}

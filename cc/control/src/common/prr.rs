//! Proportional rate reduction: RFC 6937 section 3, with the extra packet that Linux 6.1 adds on a cumulative
//! acknowledgement without new loss.

use super::CwndState;
use crate::AckSample;

/// Minimum window, packets.
const MIN_CWND: u32 = 1;

/// Packets delivered and sent since the present reduction began (Linux `prr_delivered`, `prr_out`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prr {
    delivered: u32,
    out: u32,
}

impl CwndState {
    /// Sets the window such that packets are sent in proportion to those delivered.
    pub(super) fn proportional_rate_reduction(&mut self, sample: &AckSample) {
        self.prr.out += sample.sent;
        if sample.acked == 0 || self.prior_cwnd == 0 {
            return;
        }
        self.prr.delivered += sample.acked;
        let delta = i64::from(self.ssthresh) - i64::from(sample.in_flight);
        let (delivered, out) = (i64::from(self.prr.delivered), i64::from(self.prr.out));
        let sndcnt = if delta < 0 {
            let prior = i64::from(self.prior_cwnd);
            (i64::from(self.ssthresh) * delivered + prior - 1) / prior - out
        } else {
            let mut sndcnt = (delivered - out).max(i64::from(sample.acked));
            if sample.una_advanced && sample.lost == 0 {
                sndcnt += 1;
            }
            sndcnt.min(delta)
        };
        // The first retransmission is always sent.
        let sndcnt = sndcnt.max(i64::from(out == 0));
        self.cwnd = (sample.in_flight + u32::try_from(sndcnt).unwrap_or(0)).max(MIN_CWND);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CaState;

    fn sndcnt(delivered: u32, out: u32, in_flight: u32, acked: u32, una_advanced: bool) -> u32 {
        let mut state = CwndState {
            ssthresh: 70,
            prior_cwnd: 100,
            ca_state: CaState::Recovery,
            prr: Prr { delivered: delivered - acked, out },
            ..CwndState::default()
        };
        state.reduce_cwnd(&AckSample { acked, in_flight, una_advanced, ..AckSample::default() });
        state.cwnd - in_flight
    }

    #[test]
    fn proportional_rate_reduction_as_in_the_kernel() {
        assert_eq!(sndcnt(1, 0, 99, 1, false), 1);
        assert_eq!(sndcnt(10, 6, 95, 1, false), 1);
        assert_eq!(sndcnt(10, 7, 95, 1, false), 0);
        assert_eq!(sndcnt(40, 30, 60, 2, true), 10);
        assert_eq!(sndcnt(40, 38, 60, 2, false), 2);
        assert_eq!(sndcnt(40, 38, 60, 2, true), 3, "one more where the cumulative acknowledgement moved");
    }
}

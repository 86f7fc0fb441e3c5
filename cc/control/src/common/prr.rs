//! Proportional rate reduction: RFC 9937 section 6, in packets. As in Linux 6.1, RecoverFS is the window before the
//! reduction. In the RFC it is the data that may still be delivered, which is less if the sender did not fill its
//! window.

use super::CwndState;
use crate::AckSample;

/// Minimum window, packets.
const MIN_CWND: u32 = 1;

/// Packets delivered and sent since the current reduction began (Linux `prr_delivered`, `prr_out`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prr {
    delivered: u32,
    out: u32,
}

impl CwndState {
    /// Sets the window so that packets are sent in proportion to those delivered (RFC 9937 section 6.2).
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
            // The Conservative Reduction Bound, and the Slow Start Reduction Bound after a SafeACK.
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

    /// The windows of a recovery with a threshold of 10 of 20 packets, and whether each acknowledgement of one packet lets
    /// one be sent, until so many have come.
    fn recovery(mut in_flight: u32, acks: usize) -> (Vec<u32>, Vec<bool>) {
        let (ssthresh, prior_cwnd, ca_state) = (10, 20, CaState::Recovery);
        let mut state = CwndState { ssthresh, prior_cwnd, ca_state, ..CwndState::default() };
        let mut sent = 0;
        (0..acks)
            .map(|ack| {
                in_flight -= u32::from(ack > 0);
                state.reduce_cwnd(&AckSample { acked: 1, in_flight, sent, ..AckSample::default() });
                sent = state.cwnd - in_flight;
                in_flight += sent;
                assert!(sent <= 1);
                (state.cwnd, sent == 1)
            })
            .unzip()
    }

    /// RFC 9937, figure 1: packet 0 of 20 is lost, and found lost by the acknowledgement of packet 3, after two more were
    /// sent; the figure's acknowledgements 3 to 21, of which the next one ends recovery. At the 19th, when 10 packets are
    /// in flight, the figure sends one and at the 20th none; section 6.2 has it the other way round, as 10 are not above
    /// the threshold.
    #[test]
    fn one_loss_halves_the_rate_over_a_round_trip_as_the_rfc_shows() {
        let (cwnd, sent) = recovery(18, 19);
        assert_eq!(cwnd[..16], [19, 18, 18, 17, 17, 16, 16, 15, 15, 14, 14, 13, 13, 12, 12, 11]);
        assert!(sent[..16].iter().enumerate().all(|(ack, sent)| *sent == (ack % 2 == 0)), "every other one");
        assert_eq!((&cwnd[16..], &sent[16..]), (&[10, 10, 10][..], &[false, true, true][..]));
    }

    /// RFC 9937, figure 2: packets 0 to 14 of 20 are lost; the figure's acknowledgements 17 to 19.
    #[test]
    fn a_burst_of_losses_is_sent_again_as_fast_as_packets_are_delivered_as_the_rfc_shows() {
        assert_eq!(recovery(4, 3), (vec![5, 5, 5], vec![true; 3]));
    }
}

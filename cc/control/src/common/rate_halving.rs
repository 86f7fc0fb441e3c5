//! Rate halving (Mathis, Semke, Mahdavi and Lahey 1999), as in ns-2's TCP-Linux agent and in Linux before 3.2.

use super::CwndState;
use crate::AckSample;

impl CwndState {
    /// Lowers the window by one packet every second acknowledgement, to at most one packet above those in flight and at
    /// least [`min_cwnd`](super::CongestionOps::min_cwnd).
    pub(super) fn halve_rate(&mut self, sample: &AckSample) {
        if sample.acked == 0 || self.cwnd <= self.min_cwnd {
            return;
        }
        self.cwnd_cnt += 1;
        self.cwnd = (self.cwnd - self.cwnd_cnt / 2).min(sample.in_flight + 1).max(self.min_cwnd);
        self.cwnd_cnt %= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reduction;

    /// As on ns-2.35's TCP-Linux agent: a window of 60 with 62 packets out, two of them lost, at the third SACK and
    /// thereafter.
    #[test]
    fn rate_halving_sends_one_packet_for_two_delivered_down_to_min_cwnd() {
        let mut state = CwndState { reduction: Reduction::Halving, cwnd: 60, min_cwnd: 55, ..CwndState::default() };
        let mut in_flight = 58;
        let cwnds = [(); 12].map(|()| {
            state.reduce_cwnd(&AckSample { acked: 1, in_flight, ..AckSample::default() });
            in_flight = in_flight.max(state.cwnd) - 1; // filled up to the window; then the next packet is delivered
            state.cwnd
        });
        assert_eq!(cwnds, [59, 58, 58, 57, 57, 56, 56, 55, 55, 55, 55, 55]);
    }
}

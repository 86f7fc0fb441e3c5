//! BBR v1 for one path of a tunnel. Such a path differs from that of a TCP connection, each time with a deviation:
//!
//! - Its losses are often not congestion (radio), and never delay its other packets, because a lost packet is
//!   retransmitted on any path. Therefore there is no packet conservation. On a path with many packets in flight, a
//!   random loss occurs every round trip, and recovery follows recovery. A window that each time falls to the packets
//!   in flight would leave no room to probe.
//! - It carries packets as the scheduler and bursts of inner flows provide them, so that some packets of nearly every
//!   round are sent while it is application-limited. Startup, which ignores application-limited rounds, would pace at
//!   2.89 times the bandwidth for ever. Here a round counts if one of its samples was not application-limited, or had a
//!   quarter more in flight than the bandwidth-delay product (BBR's measure of growth): such a sample shows the path's
//!   delivery rate.
//! - Its packets are paced without segmentation offload, and acknowledged 0.25 ms after their arrival on average.
//!   Therefore the window exceeds its gain by a quarter of a burst (1 ms of the rate), instead of three. On a path with
//!   an RTT of less than a few milliseconds, three are a standing queue of 3 ms for every flow that shares the path.

use super::bbr::Bbr;
use crate::{AlgorithmEntry, Constructor};

/// The registry's entry.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "bbr-path",
    aliases: &[],
    title: "BBR v1 for a tunnel's path: random loss and gaps between bursts do not slow it",
    source: "own rule, after BBR v1 (ACM Queue 2016)",
    properties: super::bbr::ENTRY.properties,
    constructor: Constructor::PerPath(|_| Box::new(Bbr::for_tunnel_path())),
    ..super::bbr::ENTRY
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single::testing::Flow;
    use crate::{AckSample, CaState, Cause, Decision, PathController, SendState};

    const RTT_MS: u64 = 50;

    fn flow(controller: Bbr) -> Flow<Bbr> {
        Flow::with_rtt(controller, RTT_MS)
    }

    fn decision(flow: &Flow<Bbr>) -> Decision {
        flow.controller.decision()
    }

    /// The pacing rate over the delivery rate after ten round trips of 101 packets whose samples are
    /// application-limited, the last one only if `app_limited`, with so many packets in flight. 2.89 in Startup, at
    /// most 1.25 later.
    fn pacing_gain(controller: Bbr, tx_in_flight: u32, app_limited: bool) -> f64 {
        let mut flow = flow(controller);
        for _ in 0..10 {
            let change = |app_limited: bool| {
                move |sample: &mut AckSample| {
                    sample.in_flight = 100;
                    sample.newest_delivered = Some(SendState { tx_in_flight, ..SendState::default() });
                    sample.rate_sample.as_mut().expect("a sample").app_limited = app_limited;
                }
            };
            flow.round_with(100, change(true));
            flow.ack_with(1, change(app_limited));
        }
        decision(&flow).pacing_rate.expect("BBR paces").0 as f64 / (101.0 * 1448.0 * 8.0 / 0.05)
    }

    #[test]
    fn a_quarter_more_than_the_bandwidth_delay_product_in_flight_ends_startup() {
        assert!(pacing_gain(Bbr::for_tunnel_path(), 128, true) < 1.3, "1.25 * 101 is less");
        assert!(pacing_gain(Bbr::for_tunnel_path(), 126, true) > 2.8, "the application may be the limit");
        assert!(pacing_gain(Bbr::new(), 128, true) > 2.8, "Linux does not look");
    }

    #[test]
    fn one_sample_that_is_not_application_limited_makes_a_full_round() {
        assert!(pacing_gain(Bbr::for_tunnel_path(), 0, false) < 1.3);
        assert!(pacing_gain(Bbr::new(), 0, false) > 2.8, "Linux looks at the sample that begins the round");
    }

    #[test]
    fn the_window_has_a_quarter_of_a_burst_beyond_the_gain() {
        let [path, linux] = [Bbr::for_tunnel_path(), Bbr::new()].map(|controller| {
            let mut flow = flow(controller);
            flow.rounds(60, 400);
            decision(&flow)
        });
        assert_eq!(path.pacing_rate, linux.pacing_rate);
        // A burst is what the pacing rate sends in 2^-10 s, as in Linux. Both windows are rounded up to even ones.
        let burst = (path.pacing_rate.expect("BBR paces").0 / 8 / 1024 / 1448) as u32;
        assert!(burst > 4, "{burst}");
        assert!((linux.cwnd - path.cwnd).abs_diff(3 * burst - burst / 4) <= 1, "{path:?} {linux:?}");
    }

    #[test]
    fn recovery_leaves_the_window() {
        let cwnds = [Bbr::for_tunnel_path(), Bbr::new()].map(|controller| {
            let mut flow = flow(controller);
            flow.rounds(20, 100);
            let cwnd = decision(&flow).cwnd;
            flow.congestion(Cause::Loss, 60);
            flow.round_with(10, |sample| {
                (sample.ca_state, sample.in_flight, sample.lost) = (CaState::Recovery, 60, 1);
                sample.rate_sample = None;
            });
            (cwnd, decision(&flow).cwnd)
        });
        let [(cwnd, path), (_, linux)] = cwnds;
        assert!(cwnd > 200 && path > cwnd / 10 * 9, "{path} of {cwnd}");
        assert_eq!(linux, 70, "packets in flight and acknowledged");
    }
}

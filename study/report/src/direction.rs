//! Which values of a quantity are the better ones.

use crate::copies;

/// The better direction of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// More is better, as of goodput.
    Higher,
    /// Less is better, as of delay.
    Lower,
    /// Neither, as of a congestion window or of one flow's share.
    Neutral,
}

/// Values of which more is better.
const HIGHER: [&str; 5] = ["goodput_mbps", "mean_goodput_mbps", "throughput_mbps", "video_mbps", "jain"];

/// Values of which less is better, or the beginnings of their names.
const LOWER: [&str; 29] = [
    "rtt_ms",
    "srtt_ms",
    "one_way_delay_ms",
    "response_time_ms",
    "protocol_delay_ms",
    "frame_delay_ms",
    "head_of_line_",
    "longest_gap_ms",
    "longest_loss_packets",
    "completion_s",
    "convergence_s",
    "startup_s",
    "stall_s",
    "stalls",
    "late_frames",
    "rate_switches",
    "drop_percent",
    "dropped_packets",
    "drops_per_s",
    "declared_lost_packets",
    "retransmitted_packets",
    "spurious_",
    "timeouts",
    "max_out_of_order_packets",
    "variation_percent",
    "load_deviation_percent",
    "load_responsiveness_s",
    "cpu_",
    "tunnel_cpu_",
];

/// The better direction of a value as a table names it, such as `rtt_ms.p95`.
pub(crate) fn direction(value: &str) -> Direction {
    let (name, _) = copies::split(value);
    match name {
        _ if HIGHER.contains(&name) => Direction::Higher,
        _ if LOWER.iter().any(|lower| name.starts_with(lower)) => Direction::Lower,
        _ => Direction::Neutral,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::table_values;

    #[test]
    fn goodput_is_better_high_delay_low_and_a_window_neither() {
        let of = ["goodput_mbps", "goodput_mbps.p50", "jain", "rtt_ms.p95", "drop_percent", "cwnd_packets", "share"];
        let [high, low, none] = [Direction::Higher, Direction::Lower, Direction::Neutral];
        assert_eq!(of.map(direction), [high, high, high, low, low, none, none]);
    }

    #[test]
    fn every_name_is_that_of_a_value() {
        let known: Vec<String> = [(false, false), (true, false), (false, true)]
            .into_iter()
            .flat_map(|(subflow, is_timed)| table_values(subflow, is_timed))
            .collect();
        for name in HIGHER.iter().chain(&LOWER) {
            assert!(known.iter().any(|value| value.starts_with(name)), "{name}");
        }
    }
}

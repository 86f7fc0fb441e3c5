//! Earlier names of columns and values, which are read in results folders and never written.

use serde_json::Value;
use std::borrow::Cow;

/// The earlier name, and the current one. The name of a distribution stands for all its columns (`hold_ms.p95`).
const RENAMED: [(&str, &str); 26] = [
    ("window_packets", "cwnd_packets"),
    ("threshold_packets", "ssthresh_packets"),
    ("undone", "spurious_recoveries"),
    ("requests_ms", "response_time_ms"),
    ("one_way_ms", "one_way_delay_ms"),
    ("head_of_line_ms", "head_of_line_delay_ms"),
    ("most_waiting_packets", "max_out_of_order_packets"),
    ("found_lost_packets", "declared_lost_packets"),
    ("spurious_packets", "spurious_losses"),
    ("most_held", "max_reorder_buffered_packets"),
    ("max_held_packets", "max_reorder_buffered_packets"),
    ("held_packets", "reorder_buffered_packets"),
    ("switches", "rate_switches"),
    ("stolen_s", "steal_s"),
    ("copied_packets", "redundant_packets"),
    ("rescued_packets", "redundant_first_packets"),
    ("hold_ms", "reorder_delay_ms"),
    ("sent_pieces", "sent_fragments"),
    ("repaired_pieces", "retransmitted_fragments"),
    ("duplicate_pieces", "duplicate_fragments"),
    ("missed_pieces", "missing_fragments"),
    ("load_swings", "load_flaps"),
    ("load_moved_s", "load_responsiveness_s"),
    ("trajectory_percent", "cwnd_trajectory_error_percent"),
    ("quantile_percent", "cwnd_quantile_error_percent"),
    ("window_percent", "mean_cwnd_error_percent"),
];

/// The smoothed RTT of a time series. (The `rtt_ms` of a record is a distribution, `rtt_ms.mean`.)
const SERIES_RTT: (&str, &str) = ("rtt_ms", "srtt_ms");

/// The current name.
pub(crate) fn current(name: &str) -> Cow<'_, str> {
    if name == SERIES_RTT.0 {
        return SERIES_RTT.1.into();
    }
    let base = name.split('.').next().unwrap_or(name);
    match RENAMED.iter().find(|(earlier, _)| *earlier == base) {
        Some((_, current)) => format!("{current}{}", &name[base.len()..]).into(),
        None => name.into(),
    }
}

/// Replaces earlier names in the values of a layout.
pub(crate) fn rename_in_layout(layout: &mut Value) {
    match layout {
        Value::Object(entries) => entries.iter_mut().for_each(|(key, value)| match value {
            Value::String(name) if key == "value" => *name = current(name).into_owned(),
            _ => rename_in_layout(value),
        }),
        Value::Array(items) => items.iter_mut().for_each(rename_in_layout),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_names_are_read_as_current_ones() {
        let names = ["window_packets", "hold_ms.p95", "rtt_ms", "rtt_ms.p95", "goodput_mbps", "parameter.undone"];
        let current_names =
            ["cwnd_packets", "reorder_delay_ms.p95", "srtt_ms", "rtt_ms.p95", "goodput_mbps", "parameter.undone"];
        assert_eq!(names.map(current), current_names);
        let mut layout = serde_json::json!({"figures": [{"title": "undone", "value": "window_packets"}]});
        rename_in_layout(&mut layout);
        assert_eq!(layout, serde_json::json!({"figures": [{"title": "undone", "value": "cwnd_packets"}]}));
    }
}

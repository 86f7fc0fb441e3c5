//! The tunnel's record, from the status of both daemons.

use crate::Error;
use record::{Summary, Tunnel};
use serde_json::Value;

/// The record of the data direction: what the near end sent, and what the far end delivered.
pub(crate) fn summary(statuses: &[String]) -> Result<Tunnel, Error> {
    let read = |text: &String| {
        serde_json::from_str::<Value>(text)
            .map_err(|error| Error::failed(format!("the tunnel's status is no JSON: {error}")))
    };
    let [near, far] = statuses else { return Err(Error::failed("an end of the tunnel printed no status")) };
    let (near, far) = (read(near)?, read(far)?);
    let count = |value: &Value| value.as_u64().unwrap_or(0);
    let (ingress, reorder) = (&near["peers"][0]["ingress_queue"], &far["peers"][0]["reorder_buffer"]);
    Ok(Tunnel {
        delivered_packets: count(&far["interface"]["received"]["packets"]),
        reorder_buffered_packets: count(&reorder["reordered_packets"]),
        late_packets: count(&reorder["late_packets"]),
        dropped_packets: count(&ingress["dropped_packets"]),
        marked_packets: count(&ingress["marked_packets"]),
        timeouts: count(&reorder["timeouts"]),
        max_reorder_buffered_packets: count(&reorder["max_backlog_packets"]),
        relayed_connections: [&near, &far]
            .map(|end| count(&end["peers"][0]["relay"]["opened_connections"]))
            .iter()
            .sum(),
        reorder_delay_ms: Summary { mean: reorder["timeout_ms"].as_f64().unwrap_or(0.0), ..Summary::default() },
        ..Tunnel::default()
    })
}

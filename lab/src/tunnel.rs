//! The tunnel's record, from the status of both daemons.

use crate::Error;
use record::{RopewalkTunnel, Summary, Tunnel};
use serde_json::Value;

fn parse(status: &str) -> Result<Value, Error> {
    serde_json::from_str(status).map_err(|error| Error::failed(format!("the tunnel's status is not JSON: {error}")))
}

/// The reasons why the policies of the ends failed.
///
/// # Errors
/// A status is not JSON.
pub(crate) fn controller_failures(statuses: &[String]) -> Result<Vec<String>, Error> {
    let mut failures = Vec::new();
    for text in statuses {
        let status = parse(text)?;
        let peers = status["peers"].as_array().map_or(&[][..], Vec::as_slice);
        failures.extend(peers.iter().filter_map(|peer| peer["controller_failure"].as_str().map(str::to_owned)));
    }
    Ok(failures)
}

/// The record of the data direction: what the near end sent, and what the far end delivered.
pub(crate) fn summary(statuses: &[String]) -> Result<Tunnel, Error> {
    let [near, far] = statuses else { return Err(Error::failed("an end of the tunnel printed no status")) };
    let (near, far) = (parse(near)?, parse(far)?);
    let count = |value: &Value| value.as_u64().unwrap_or(0);
    let (ingress, reorder) = (&near["peers"][0]["ingress_queue"], &far["peers"][0]["reorder_buffer"]);
    Ok(Tunnel {
        delivered_packets: count(&far["interface"]["received"]["packets"]),
        reorder_buffered_packets: count(&reorder["reordered_packets"]),
        late_packets: count(&reorder["late_packets"]),
        dropped_packets: count(&ingress["dropped_packets"]),
        timeouts: count(&reorder["timeouts"]),
        max_reorder_buffered_packets: count(&reorder["max_backlog_packets"]),
        reorder_delay_ms: Summary { mean: reorder["timeout_ms"].as_f64().unwrap_or(0.0), ..Summary::default() },
        ropewalk: (near["mode"] == "ropewalk").then(|| RopewalkTunnel {
            marked_packets: count(&ingress["marked_packets"]),
            relayed_connections: [&near, &far]
                .map(|end| count(&end["peers"][0]["relay"]["opened_connections"]))
                .iter()
                .sum(),
            ..RopewalkTunnel::default()
        }),
        ..Tunnel::default()
    })
}

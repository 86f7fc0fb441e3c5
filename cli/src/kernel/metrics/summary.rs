//! Metrics over all connections, by protocol and congestion control.

use super::Connection;
use super::text::Family;
use std::collections::BTreeMap;

/// A protocol and a congestion control.
type Group<'a> = (&'static str, &'a str);
/// The values of each group.
type Values<'a> = BTreeMap<Group<'a>, Vec<f64>>;

pub(super) fn families(connections: &[Connection]) -> Vec<Family> {
    let subflows =
        || connections.iter().flat_map(|it| it.subflows.iter().map(move |subflow| (it.protocol(), *subflow)));
    let count = "Established connections; mixed: their subflows differ in congestion control.";
    let window = "Congestion window of established subflows, packets.";
    let rtt = "Smoothed round-trip time of established subflows.";
    let share = "Share of the payload that the subflow with most of it carried, of MPTCP connections with two or more subflows.";
    vec![
        counts(
            Family::gauge("ropewalk_kernel_connections", count),
            &values(connections.iter().map(|it| ((it.protocol(), it.algorithm()), 1.0))),
        ),
        counts(
            Family::gauge("ropewalk_kernel_subflows", "Established subflows; a TCP connection is one."),
            &values(subflows().map(|(protocol, it)| ((protocol, it.congestion.as_str()), 1.0))),
        ),
        spreads(
            Family::gauge("ropewalk_kernel_window_packets", window),
            values(subflows().map(|(protocol, it)| ((protocol, it.congestion.as_str()), f64::from(it.info.snd_cwnd)))),
        ),
        spreads(
            Family::gauge("ropewalk_kernel_rtt_seconds", rtt),
            values(
                subflows()
                    .filter(|(_, it)| it.info.rtt > 0)
                    .map(|(protocol, it)| ((protocol, it.congestion.as_str()), f64::from(it.info.rtt) / 1e6)),
            ),
        ),
        spreads(
            Family::gauge("ropewalk_kernel_largest_share_ratio", share),
            values(connections.iter().filter_map(|it| Some(((it.protocol(), it.algorithm()), largest_share(it)?)))),
        ),
    ]
}

fn values<'a>(values: impl Iterator<Item = (Group<'a>, f64)>) -> Values<'a> {
    let mut groups = Values::new();
    values.for_each(|(group, value)| groups.entry(group).or_default().push(value));
    groups
}

/// One sample per group: its number of values.
fn counts(mut family: Family, groups: &Values) -> Family {
    for ((protocol, algorithm), values) in groups {
        family.add(&[("protocol", protocol), ("algorithm", algorithm)], values.len() as f64);
    }
    family
}

/// Three samples per group: its minimum, median and maximum.
fn spreads(mut family: Family, groups: Values) -> Family {
    for ((protocol, algorithm), mut values) in groups {
        values.sort_by(f64::total_cmp);
        let last = values.len() - 1;
        for (stat, value) in [("min", values[0]), ("median", values[last / 2]), ("max", values[last])] {
            family.add(&[("protocol", protocol), ("algorithm", algorithm), ("stat", stat)], value);
        }
    }
    family
}

/// 0.5 if two subflows carry the same amount, 1 if one carries everything; none before anything was acknowledged.
fn largest_share(connection: &Connection) -> Option<f64> {
    let (subflows, total) = (&connection.subflows, connection.acked_bytes());
    let largest = subflows.iter().map(|subflow| subflow.info.bytes_acked).max()?;
    (subflows.len() > 1 && total > 0).then(|| largest as f64 / total as f64)
}

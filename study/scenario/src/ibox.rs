//! Profiles of iBoxNet as scenarios: the public ones of `microsoft/internet-in-a-box`, and others of their form.
//!
//! A profile (S. Ashok et al.: iBox: Internet in a Box, HotNets 2020) is a link that was learned from packet traces: in each
//! direction a rate, a drop-tail queue, a delay, and the rate of other traffic in each second.

use serde_json::Value;
use std::fmt::Write;

/// The packets of other traffic, headers included, bytes: those of the authors' simulations.
const PACKET_BYTES: u64 = 1000;
/// The name of the flow that crosses the paths.
const FLOW: &str = "data";
/// The length of a run where a profile has no other traffic, seconds: that of the published profiles.
const SECONDS: usize = 30;
/// No rate, buffer or delay of a profile is greater, in its unit.
const MAX: u64 = 1_000_000_000;

/// A profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IboxProfile {
    /// Where its traces are from.
    source: Option<String>,
    /// The direction of the data that was measured.
    forward: Direction,
    /// The other direction.
    reverse: Direction,
}

/// A direction of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Direction {
    rate_kbps: u64,
    queue_packets: u64,
    delay_ms: u64,
    /// The rate of other traffic in each second, kbit/s.
    traffic_kbps: Vec<u64>,
}

impl IboxProfile {
    /// Reads a profile's JSON.
    ///
    /// # Errors
    /// It is no JSON, or a key is missing or has no such value; with the key's name.
    pub fn parse(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let direction = |name: &str| Direction::of(&value["config"][name], &format!("config.{name}"));
        let (up, down) = (direction("uplink")?, direction("downlink")?);
        let (forward, reverse) = match value["data_flow_direction"].as_str() {
            Some("upload") => (up, down),
            Some("download") => (down, up),
            _ => return Err("data_flow_direction: expected \"upload\" or \"download\"".to_owned()),
        };
        let source = value["data_source_url"].as_str().map(str::to_owned);
        Ok(Self { source, forward, reverse })
    }

    /// The path's table and the flows of the other traffic.
    fn tables(&self, name: &str) -> String {
        let Direction { rate_kbps, queue_packets, delay_ms, .. } = &self.forward;
        let back = &self.reverse;
        let mut text = self.source.as_ref().map_or(String::new(), |source| format!("# {}\n", source.escape_default()));
        let _ = writeln!(
            text,
            "[[path]]\nname = \"{name}\"\nrate = \"{rate_kbps}kbit\"\ndelay = \"{delay_ms}ms\"\nqueue = {{ limit = \"{queue_packets}p\" }}\n\
             reverse = {{ rate = \"{}kbit\", delay = \"{}ms\", queue = {{ limit = \"{}p\" }} }}\n",
            back.rate_kbps, back.delay_ms, back.queue_packets
        );
        for (direction, suffix, key) in [(&self.forward, "", ""), (back, "-back", "direction = \"reverse\"\n")] {
            let mut second = 0;
            for same in direction.traffic_kbps.chunk_by(|one, other| one == other) {
                let (start, stop) = (second, second + same.len());
                second = stop;
                if same[0] > 0 {
                    let _ = writeln!(
                        text,
                        "[[flow]]\nname = \"{name}-traffic{suffix}-{start}\"\nkind = \"udp\"\npath = \"{name}\"\n{key}rate = \"{}kbit\"\n\
                         packet = \"{PACKET_BYTES}b\"\nstart = \"{start}s\"\nstop = \"{stop}s\"\n",
                        same[0]
                    );
                }
            }
        }
        text
    }
}

impl Direction {
    fn of(value: &Value, name: &str) -> Result<Self, String> {
        let number = |value: &Value, key: &str, least: u64| {
            let number = value.as_u64().filter(|number| (least..=MAX).contains(number));
            number.ok_or_else(|| format!("{name}.{key}: expected a whole number from {least} to {MAX}, not {value}"))
        };
        let of = |key: &str, least: u64| number(&value[key], key, least);
        let traffic = "cross_traffic_pattern";
        let rates = value[traffic].as_array().ok_or_else(|| format!("{name}.{traffic}: expected a list of rates"))?;
        Ok(Self {
            rate_kbps: of("bottleneck_bandwidth", 1)?,
            queue_packets: of("buffer_size_packets", 1)?,
            delay_ms: of("propagation_delay", 0)?,
            traffic_kbps: rates.iter().map(|rate| number(rate, traffic, 0)).collect::<Result<_, _>>()?,
        })
    }
}

/// The text of a scenario whose paths are profiles with their other traffic. A flow crosses them by CUBIC, Reno and BBR: TCP over one
/// path, MPTCP over several.
#[must_use]
pub fn of_ibox(name: &str, paths: &[(String, IboxProfile)]) -> String {
    let lengths = paths.iter().flat_map(|(_, path)| [&path.forward, &path.reverse]).map(|of| of.traffic_kbps.len());
    let seconds = lengths.max().filter(|length| *length > 0).unwrap_or(SECONDS);
    let mut text = format!(
        "# From profiles of iBoxNet: a rate, a drop-tail queue, a delay, and the rate of other traffic in each second.\n\
         name = \"{name}\"\nduration = \"{seconds}s\"\nsample = \"100ms\"\n\n"
    );
    for (name, path) in paths {
        text += &path.tables(name);
    }
    let flow = match paths {
        [(path, _)] => format!("path = \"{path}\"\n"),
        _ => {
            let names: Vec<String> = paths.iter().map(|(name, _)| format!("\"{name}\"")).collect();
            format!("kind = \"mptcp\"\npaths = [{}]\n", names.join(", "))
        }
    };
    text + &format!(
        "[[flow]]\nname = \"{FLOW}\"\n{flow}\n[sweep]\n\"flow.{FLOW}.congestion\" = [\"cubic\", \"reno\", \"bbr\"]\n"
    ) + &table("goodput_mbps")
        + &table("rtt_ms.p95")
}

/// A table of the flow's values.
fn table(value: &str) -> String {
    format!("\n[[table]]\nvalue = \"{value}\"\nflow = \"{FLOW}\"\nrows = \"flow.{FLOW}.congestion\"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Overrides;
    use std::path::Path;

    fn profile(rate: &str) -> String {
        format!(
            r#"{{"data_flow_direction": "upload", "data_source_url": "https://example.org/106/", "config": {{
            "uplink": {{"bottleneck_bandwidth": {rate}, "buffer_size_bytes": 11961, "buffer_size_packets": 7,
                "propagation_delay": 24, "cross_traffic_pattern": [500, 500, 0, 974]}},
            "downlink": {{"bottleneck_bandwidth": 100000, "buffer_size_bytes": 15000000, "buffer_size_packets": 10000,
                "propagation_delay": 0, "cross_traffic_pattern": []}}}}}}"#
        )
    }

    #[test]
    fn a_profile_is_a_path_with_other_traffic() {
        let profile = IboxProfile::parse(&profile("6792")).unwrap();
        let paths = ["a", "b"].map(|name| (name.to_owned(), profile.clone()));
        let parse = |file: &str, text: &str| crate::parse(file, text, Path::new("."), &Overrides::default());
        let text = of_ibox("two", &paths);
        let cell = parse("two.toml", &text).unwrap().cells.remove(0).experiment;
        assert_eq!(cell.duration.as_secs_f64(), 4.0);
        let names: Vec<&str> = cell.flows.iter().map(|flow| flow.name.as_str()).collect();
        assert_eq!(names, ["a-traffic-0", "a-traffic-3", "b-traffic-0", "b-traffic-3", "data"]);
        let times: Vec<_> = cell.flows.iter().map(|flow| flow.start.as_secs_f64()).collect();
        assert_eq!(times, [0.0, 3.0, 0.0, 3.0, 0.0]);
        assert!(text.contains("rate = \"6792kbit\"\ndelay = \"24ms\"\nqueue = { limit = \"7p\" }"), "{text}");
        assert!(parse("one.toml", &of_ibox("one", &paths[..1])).is_ok());
    }

    #[test]
    fn a_wrong_profile_is_told_with_its_key() {
        let error = |text: &str| IboxProfile::parse(text).unwrap_err();
        for wrong in ["0", "-3", "1.5", "\"6mbit\"", "null", "1e300", "99999999999"] {
            let message = error(&profile(wrong));
            assert!(message.starts_with("config.uplink.bottleneck_bandwidth: expected a whole number"), "{message}");
        }
        assert!(error("{").contains("line 1"));
        assert!(error("{}").starts_with("config.uplink.cross_traffic_pattern"));
        assert!(error(&profile("1").replace("upload", "up")).starts_with("data_flow_direction"));
    }
}

//! Rules that mark packets as real-time: by DSCP, or by protocol and port.

use std::ops::RangeInclusive;
use wire::inner::{Inner, protocol};

/// DSCP EF, expedited forwarding (RFC 3246): telephony (RFC 4594).
const EXPEDITED_FORWARDING: u8 = 46;
/// DSCP AF41, AF42, AF43 (RFC 2597): video conferences (RFC 4594).
const ASSURED_FORWARDING_4: [u8; 3] = [34, 36, 38];

/// The rules that mark packets as real-time. An unmarked packet may still be of the class, if its flow is sparse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RealtimeRules {
    /// DSCPs, six bits each.
    pub dscp: Vec<u8>,
    /// Ports of either end.
    pub ports: Vec<RealtimePorts>,
}

/// Ports of a protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RealtimePorts {
    /// UDP or TCP, by its number.
    pub protocol: u8,
    /// The ports.
    pub ports: RangeInclusive<u16>,
}

impl Default for RealtimeRules {
    fn default() -> Self {
        Self { dscp: std::iter::once(EXPEDITED_FORWARDING).chain(ASSURED_FORWARDING_4).collect(), ports: Vec::new() }
    }
}

impl RealtimeRules {
    /// Whether they mark a packet.
    #[must_use]
    pub fn is_marked(&self, packet: &Inner) -> bool {
        let is_port = |rule: &RealtimePorts, port: u16| rule.protocol == packet.protocol && rule.ports.contains(&port);
        let has_port = |rule: &RealtimePorts| {
            packet.ports.is_some_and(|(source, destination)| is_port(rule, source) || is_port(rule, destination))
        };
        self.dscp.contains(&(packet.tos >> 2)) || self.ports.iter().any(has_port)
    }
}

impl RealtimePorts {
    /// Parses `udp/5060` or `udp/16384-32767`; `None` if it is neither.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (protocol, ports) = text.split_once('/')?;
        let protocol = match protocol {
            "udp" => protocol::UDP,
            "tcp" => protocol::TCP,
            _ => return None,
        };
        let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
        let ports: RangeInclusive<u16> = first.parse().ok()?..=last.parse().ok()?;
        (!ports.is_empty()).then_some(Self { protocol, ports })
    }
}

/// The code point of a name (RFC 2474, 2597, 3246, 8622) or of a number from 0 to 63.
#[must_use]
pub(super) fn dscp(text: &str) -> Option<u8> {
    let upper = text.to_ascii_uppercase();
    let digits: Vec<u8> = upper.bytes().skip(2).map(|digit| digit.wrapping_sub(b'0')).collect();
    match (upper.get(..2), &digits[..]) {
        (Some("EF"), []) => Some(EXPEDITED_FORWARDING),
        (Some("LE"), []) => Some(1),
        (Some("CS"), [class @ 0..=7]) => Some(class * 8),
        (Some("AF"), [class @ 1..=4, drop @ 1..=3]) => Some(class * 8 + drop * 2),
        _ => text.parse().ok().filter(|number| *number < 64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_points_have_the_numbers_of_their_rfcs() {
        let known =
            [("EF", 46), ("af41", 34), ("AF42", 36), ("AF43", 38), ("CS5", 40), ("LE", 1), ("46", 46), ("0", 0)];
        assert!(known.iter().all(|(name, number)| dscp(name) == Some(*number)));
        assert!(
            ["", "AF", "AF4", "AF44", "AF51", "CS8", "64", "-1", "EFx", "é"].iter().all(|name| dscp(name).is_none())
        );
    }

    #[test]
    fn ports_of_either_end_and_code_points_mark_a_packet() {
        let ports = ["udp/5060", "udp/16384-32767"].map(|text| RealtimePorts::parse(text).expect("ports"));
        let rules = RealtimeRules { ports: ports.to_vec(), ..RealtimeRules::default() };
        // IPv4 with UDP from port 20000 to 443, or from 1 to 2.
        let packet = |tos: u8, protocol: u8, ports: [u16; 2]| {
            let mut bytes = vec![0x45, tos, 0, 28, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
            ports.iter().for_each(|port| bytes.extend(port.to_be_bytes()));
            bytes.extend([0, 8, 0, 0]);
            Inner::parse(&bytes).expect("a packet")
        };
        assert!(rules.is_marked(&packet(0, protocol::UDP, [20_000, 443])));
        assert!(rules.is_marked(&packet(0, protocol::UDP, [443, 5060])));
        assert!(!rules.is_marked(&packet(0, protocol::UDP, [443, 5061])));
        assert!(
            !rules.is_marked(&packet(46, protocol::UDP, [1, 2])),
            "the two low bits of a TOS byte are no part of the DSCP"
        );
        assert!(rules.is_marked(&packet(46 << 2 | 1, protocol::UDP, [1, 2])));
        assert!(
            ["udp", "udp/", "sctp/1", "udp/9-8", "udp/65536"].iter().all(|text| RealtimePorts::parse(text).is_none())
        );
    }
}

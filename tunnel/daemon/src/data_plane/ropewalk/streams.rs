//! The stream of each packet of the host: flows are hashed to streams.

use crate::config::RealtimeRules;
use machine::{FIRST_REALTIME_STREAM, FIRST_UNORDERED_STREAM, REALTIME_END};
use wire::inner::{Inner, protocol};

/// DSCP of expedited forwarding (RFC 3246).
const EXPEDITED_FORWARDING: u8 = 46;

/// Maps flows to streams.
#[derive(Debug)]
pub(super) struct StreamMap {
    /// Key of the hash.
    pub(super) key: u64,
    /// The rules that mark packets as real-time; `None` without that class.
    pub(super) rules: Option<RealtimeRules>,
}

impl StreamMap {
    /// The stream of a packet's flow: ordered, except for ICMP and expedited forwarding. Marked flows have streams of
    /// their own.
    pub(super) fn stream(&self, inner: &Inner) -> u8 {
        let is_expedited = inner.tos >> 2 == EXPEDITED_FORWARDING;
        let is_unordered = is_expedited || matches!(inner.protocol, protocol::ICMP | protocol::ICMPV6);
        let range = match &self.rules {
            None if is_unordered => u16::from(FIRST_UNORDERED_STREAM)..256,
            None => 0..u16::from(FIRST_UNORDERED_STREAM),
            Some(rules) => match (rules.is_marked(inner), is_unordered) {
                (true, true) => u16::from(FIRST_UNORDERED_STREAM)..u16::from(REALTIME_END),
                (true, false) => u16::from(FIRST_REALTIME_STREAM)..u16::from(FIRST_UNORDERED_STREAM),
                (false, true) => u16::from(REALTIME_END)..256,
                (false, false) => 0..u16::from(FIRST_REALTIME_STREAM),
            },
        };
        (u64::from(range.start) + inner.flow_hash(self.key) % range.len() as u64) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UDP from port `port` to 443.
    fn packet(tos: u8, protocol: u8, port: u16) -> Inner {
        let mut bytes = vec![0x45, tos, 0, 28, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        bytes.extend(port.to_be_bytes());
        bytes.extend([1, 187, 0, 8, 0, 0]);
        Inner::parse(&bytes).expect("a packet")
    }

    #[test]
    fn marked_flows_have_streams_of_their_own_and_only_where_there_is_a_class() {
        let with_rules = |rules| StreamMap { key: 7, rules };
        let (plain, class) = (with_rules(None), with_rules(Some(RealtimeRules::default())));
        let streams = |map: &StreamMap, tos, protocol| {
            let streams: Vec<u8> = (1..2000).map(|port| map.stream(&packet(tos, protocol, port))).collect();
            (*streams.iter().min().expect("many"), *streams.iter().max().expect("many"))
        };
        assert_eq!(streams(&plain, 0, protocol::UDP), (0, 239));
        assert_eq!(streams(&plain, 46 << 2, protocol::UDP), (240, 255));
        assert_eq!(streams(&class, 0, protocol::UDP), (0, 223));
        assert_eq!(streams(&class, 34 << 2, protocol::UDP), (224, 239), "AF41");
        assert_eq!(streams(&class, 46 << 2, protocol::UDP), (240, 247), "EF");
        assert!(streams(&class, 0, protocol::ICMP).0 >= 248);
    }
}

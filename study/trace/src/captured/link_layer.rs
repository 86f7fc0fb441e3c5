//! Where the IP header begins in a packet of a capture, by the capture's link type.

use pcap_parser::Linktype;

/// Link types of packets that begin with the IP header: `DLT_RAW` of most systems, and the registered ones.
const RAW: [Linktype; 4] = [Linktype(12), Linktype::RAW, Linktype::IPV4, Linktype::IPV6];
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
/// Tags of VLANs (IEEE 802.1Q and 802.1ad).
const VLANS: [[u8; 2]; 2] = [[0x81, 0x00], [0x88, 0xa8]];

/// The length of the link layer's header; none if the packet is not IP.
///
/// # Errors
/// Packets of this link type are not read; the text says which ones are.
pub(super) fn header_length(link: Linktype, data: &[u8]) -> Result<Option<usize>, String> {
    let with_type = |at: usize, length: usize| has_ip(data, at).then_some(length);
    Ok(match link {
        Linktype::ETHERNET => {
            let tags = data.get(12..).unwrap_or(&[]).chunks_exact(4);
            let tags = tags.take_while(|tag| VLANS.iter().any(|vlan| tag.starts_with(vlan))).count();
            with_type(12 + 4 * tags, 14 + 4 * tags)
        }
        Linktype::LINUX_SLL => with_type(14, 16),
        Linktype::LINUX_SLL2 => with_type(0, 20),
        Linktype::NULL | Linktype::LOOP => Some(4),
        raw if RAW.contains(&raw) => Some(0),
        Linktype(other) => {
            return Err(format!(
                "the link type {other} cannot be read; capture on an Ethernet, loopback or tunnel device, or on `any`"
            ));
        }
    })
}

fn has_ip(data: &[u8], at: usize) -> bool {
    data.get(at..at + 2).is_some_and(|ethertype| ethertype == IPV4 || ethertype == IPV6)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offsets of the link-layer header types of tcpdump.org.
    #[test]
    fn each_link_type_has_its_header() {
        let mut tagged = [0; 22];
        tagged[12..14].copy_from_slice(&VLANS[1]);
        tagged[16..18].copy_from_slice(&VLANS[0]);
        tagged[20..22].copy_from_slice(&IPV6);
        let at = |offset: usize| [&vec![0; offset][..], &IPV4].concat();
        for (link, data, expected) in [
            (Linktype::ETHERNET, at(12), Some(14)),
            (Linktype::ETHERNET, tagged.to_vec(), Some(22)),
            (Linktype::ETHERNET, vec![0; 14], None),
            (Linktype::ETHERNET, vec![0x81; 3], None),
            (Linktype::LINUX_SLL, at(14), Some(16)),
            (Linktype::LINUX_SLL2, at(0), Some(20)),
            (Linktype::NULL, at(4), Some(4)),
            (Linktype::RAW, vec![0x45], Some(0)),
        ] {
            assert_eq!(header_length(link, &data), Ok(expected), "{link:?} {data:?}");
        }
        assert!(header_length(Linktype(105), &[]).unwrap_err().starts_with("the link type 105 cannot be read"));
    }
}

use super::*;
use crate::samples::Sample;
use proptest::prelude::*;

#[test]
fn the_header_is_encoded_as_by_linux() {
    let (offload, packet) = Sample { v6: true, flags: 0x98, ..Sample::tcp(3000) }.with_offload(1428);
    let bytes = offload.to_bytes();
    assert_eq!(bytes, [1, 0x84, 60, 0, 0x94, 0x05, 40, 0, 16, 0]);
    let super_packet = [&bytes[..], &packet].concat();
    assert_eq!(VirtioNetHeader::parse(&super_packet), Ok((offload, &packet[..])));
    assert_eq!(offload.rebuild(&packet), Ok(offload));
    assert_eq!(offload.segment_count(&packet), 3);
}

#[test]
fn udp_fragmentation_is_rejected() {
    assert_eq!(VirtioNetHeader::parse(&[0, 3, 0, 0, 0, 0, 0, 0, 0, 0]), Err(Malformed::Type));
    assert_eq!(VirtioNetHeader::parse(&[0; 9]), Err(Malformed::Truncated));
}

proptest! {
    #[test]
    fn an_encoded_header_is_decoded(checksum: Option<(u16, u16)>, data_valid: bool, gso: Option<(u16, bool)>, hdr_len: u16) {
        let offload = VirtioNetHeader {
            checksum: checksum.map(|(start, offset)| PartialChecksum { start, offset }),
            data_valid,
            gso: gso.map(|(size, cwr)| Gso { gso_type: GsoType::UdpL4, size, cwr }),
            hdr_len,
        };
        let bytes = offload.to_bytes();
        prop_assert_eq!(VirtioNetHeader::parse(&bytes), Ok((offload, &[][..])));
    }
}

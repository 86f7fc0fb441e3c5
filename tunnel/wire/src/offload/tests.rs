use super::*;
use crate::samples::Sample;
use proptest::prelude::*;

#[test]
fn the_header_stands_as_linux_writes_it() {
    let (offload, packet) = Sample { v6: true, flags: 0x98, ..Sample::tcp(3000) }.left_to_do(1428);
    let bytes = offload.to_bytes();
    assert_eq!(bytes, [1, 0x84, 60, 0, 0x94, 0x05, 40, 0, 16, 0]);
    let parcel = [&bytes[..], &packet].concat();
    assert_eq!(Offload::parse(&parcel), Ok((offload, &packet[..])));
    assert_eq!(offload.validate(&packet), Ok(()));
    assert_eq!(offload.packets(&packet), 3);
}

#[test]
fn udp_fragmentation_is_not_known() {
    assert_eq!(Offload::parse(&[0, 3, 0, 0, 0, 0, 0, 0, 0, 0]), Err(Malformed::Type));
    assert_eq!(Offload::parse(&[0; 9]), Err(Malformed::Truncated));
}

proptest! {
    #[test]
    fn what_is_written_is_read(checksum: Option<(u16, u16)>, verified: bool, cut: Option<(u16, bool)>, headers: u16) {
        let offload = Offload {
            checksum: checksum.map(|(start, offset)| Partial { start, offset }),
            verified,
            cut: cut.map(|(size, cwr)| Cut { kind: Kind::Udp, size, cwr }),
            headers,
        };
        let bytes = offload.to_bytes();
        prop_assert_eq!(Offload::parse(&bytes), Ok((offload, &[][..])));
    }
}

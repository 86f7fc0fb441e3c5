//! The last step of a parcel: it is looked at, and goes to the device.

use super::assembler::Whole;
use crate::plane::device::{Device, Written};
use std::io::IoSlice;
use std::net::IpAddr;
use wire::inner::Inner;
use wire::inner::ecn;
use wire::offload::Offload;
use wire::segment::Segmenter;

/// Why a parcel is not for the device.
pub(super) enum Unfit {
    /// It is no IP packet, not what its header says, or was marked and cannot show it.
    Malformed,
    /// Its source is not its peer's.
    Foreign,
}

/// Looks at a parcel before the device gets it: what it is, where its packet begins, whose it is. Marks it if its pieces
/// were marked (RFC 6040, section 4.2).
pub(super) fn check(whole: Whole<'_>, is_own: impl Fn(IpAddr) -> bool) -> Result<(Offload, &[u8], usize), Unfit> {
    let Whole { bytes, offload, marked } = whole;
    let start = if offload { Offload::LEN } else { 0 };
    let header = if offload { Offload::parse(bytes).map(|(header, _)| header) } else { Ok(Offload::default()) };
    let header = header.map_err(|_| Unfit::Malformed)?;
    let inner = Inner::parse(bytes.get(start..).unwrap_or_default()).map_err(|_| Unfit::Malformed)?;
    // What is behind the packet is padding, as in Ethernet: its own header says where it ends.
    let bytes = &mut bytes[..start + inner.len];
    let packet = &mut bytes[start..];
    header.validate(packet).map_err(|_| Unfit::Malformed)?;
    if !is_own(inner.source) {
        return Err(Unfit::Foreign);
    }
    if marked && !ecn::mark(packet) {
        return Err(Unfit::Malformed);
    }
    Ok((header, bytes, start))
}

/// Writes a parcel: as it is if the device can take it, else cut.
pub(super) fn write(device: &mut Device, offload: Offload, bytes: &[u8], start: usize, buffer: &mut [u8]) {
    let packet = &bytes[start..];
    let is_super = offload.cut.is_some();
    if start == 0 {
        return device.write_plain(packet);
    }
    let takes = if is_super { device.takes(offload.cut) } else { device.has_header() };
    if takes && device.write_super(&[IoSlice::new(bytes)]) == Written::Done {
        return;
    }
    let Ok(mut cut) = Segmenter::new(offload, packet) else { return };
    while let Some(len) = cut.next_into(buffer) {
        device.write_plain(&buffer[..len]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_ends_where_its_header_says_whatever_is_behind() {
        let mut bytes = [0; 40];
        // IPv4, 20 bytes of header, 28 in all.
        (bytes[0], bytes[3]) = (0x45, 28);
        let whole = Whole { bytes: &mut bytes, offload: false, marked: false };
        let (_, bytes, start) = check(whole, |_| true).ok().expect("it is whole");
        assert_eq!((bytes.len(), start), (28, 0));
        let cut = Whole { bytes: &mut [0x45, 0, 0, 28, 0, 0], offload: false, marked: false };
        assert!(matches!(check(cut, |_| true), Err(Unfit::Malformed)));
    }
}

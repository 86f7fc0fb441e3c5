//! What must hold for any bytes at all. The fuzz targets (`fuzz/`) call these with what a fuzzer finds, and the tests of
//! this crate with random bytes and with the fuzzer's saved inputs. They panic if it does not hold.

use crate::coalesce::Merger;
use crate::frame::{Body, Frame};
use crate::gre;
use crate::inner::{Inner, addresses, ecn, mss, protocol};
use crate::mpt::{Keepalive, is_control};
use crate::offload::Offload;
use crate::segment::{Segmenter, trim_first};

/// The plain ones' complement sum, word by word, against which the fast one is tested.
#[must_use]
pub fn slow_sum(bytes: &[u8]) -> u16 {
    let mut sum = 0_u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Whether all checksums of an unfragmented IP packet are right, by the slow sum.
#[must_use]
pub fn sums_are_right(packet: &[u8]) -> bool {
    let Ok(inner) = Inner::parse(packet) else { return false };
    let header = inner.is_v6() || slow_sum(&packet[..usize::from(packet[0] & 15) * 4]) == 0xffff;
    let body = &packet[inner.transport..inner.len];
    let mut summed = addresses(packet).unwrap_or_default().to_vec();
    summed.extend_from_slice(&[0, inner.protocol]);
    summed.extend_from_slice(&(body.len() as u32).to_be_bytes());
    summed.extend_from_slice(body);
    let summed = if inner.protocol == protocol::ICMP { body } else { &summed };
    header && slow_sum(summed) == 0xffff
}

/// GRE and what stands behind it: what is parsed is written as it was, but for bits that are ignored.
///
/// # Panics
/// If that does not hold.
pub fn gre(data: &[u8]) {
    if let Ok((header, payload)) = gre::Header::parse(data) {
        assert_eq!(header.len() + payload.len(), data.len());
        let mut again = data.to_vec();
        header.write(&mut again);
        assert_eq!(gre::Header::parse(&again), Ok((header, payload)));
        if let Ok(keepalive) = Keepalive::parse(payload) {
            assert!(is_control(payload));
            assert_eq!(Keepalive::parse(&keepalive.to_bytes()[4..]), Ok(keepalive));
        }
    }
    if let Some(sealed) = gre::Sealed::parse(data) {
        assert_eq!(sealed.to_bytes(), data[..gre::Sealed::LEN]);
    }
}

/// Frames: what is read is written, and read again.
///
/// # Panics
/// If that does not hold.
pub fn frames(data: &[u8]) {
    let read = |body: &[u8]| match Body::parse(body) {
        Ok(Body::Control(frames)) => frames.filter_map(Result::ok).collect::<Vec<Frame>>(),
        Ok(Body::Data(header, piece)) => {
            assert_eq!([&header.to_bytes()[..], piece].concat(), body);
            Vec::new()
        }
        Err(_) => Vec::new(),
    };
    let frames = read(data);
    let mut out = Vec::new();
    for frame in &frames {
        frame.write(&mut out);
    }
    assert_eq!(out.len(), frames.iter().map(Frame::len).sum::<usize>());
    assert_eq!(read(&out), frames);
}

/// Inner packets: lengths are inside, right checksums stay right through marking and clamping, and ICMP errors are sound.
///
/// # Panics
/// If that does not hold.
pub fn inner(data: &[u8]) {
    let Ok(parsed) = Inner::parse(data) else { return };
    assert!(parsed.transport <= parsed.len && parsed.len <= data.len());
    let mut packet = data[..parsed.len].to_vec();
    let right = sums_are_right(&packet);
    let marked = ecn::mark(&mut packet);
    let clamped = mss::clamp(&mut packet, 1280, false);
    assert!(!clamped || !mss::clamp(&mut packet, 1280, false), "once is enough");
    let after = Inner::parse(&packet).expect("still a packet");
    assert_eq!(Inner { tos: if marked { parsed.tos | 3 } else { parsed.tos }, ..parsed }, after);
    assert!(!right || sums_are_right(&packet));
}

/// A parcel: its segments have all of its payload and right checksums; trimmed, the same but the first.
///
/// # Panics
/// If that does not hold.
pub fn segment(data: &[u8]) {
    let Ok((offload, packet)) = Offload::parse(data) else { return };
    let Ok(segmenter) = Segmenter::new(offload, packet) else { return };
    let segments = all(segmenter);
    assert_eq!(segments.len(), offload.packets(packet));
    assert!(offload.cut.is_none() || segments.iter().all(|segment| sums_are_right(segment)));
    let mut parcel = data.to_vec();
    if let Some(start) = trim_first(&mut parcel) {
        let (offload, packet) = Offload::parse(&parcel[start..]).expect("its own header");
        let rest = all(Segmenter::new(offload, packet).expect("its own offload"));
        assert_eq!(rest.len(), segments.len() - 1);
    }
}

/// Merging: whatever the packets are, they come out as they went in, but for an identification that means nothing. They
/// are those that a parcel is cut into, so that their checksums are right, and pieces of the data as it is.
///
/// # Panics
/// If that does not hold.
pub fn coalesce(data: &[u8]) {
    let mut packets = match Offload::parse(data).and_then(|(offload, packet)| Segmenter::new(offload, packet)) {
        Ok(segmenter) => all(segmenter),
        Err(_) => Vec::new(),
    };
    packets.extend(data.chunks(60).map(<[u8]>::to_vec));
    let mut place = 0;
    for (count, parcel) in parcels(&packets) {
        let (offload, packet) = Offload::parse(&parcel).expect("its own header");
        let own = &packets[place..place + count];
        match count {
            1 => assert_eq!(packet, own[0]),
            _ => {
                let again = all(Segmenter::new(offload, packet).expect("its own offload"));
                assert!(again.iter().all(|packet| sums_are_right(packet)));
                assert_eq!(
                    again.iter().map(unnumbered).collect::<Vec<_>>(),
                    own.iter().map(unnumbered).collect::<Vec<_>>()
                );
            }
        }
        place += count;
    }
    assert_eq!(place, packets.len());
}

/// Without the identification of an IPv4 packet that is never fragmented, and without the checksum that covers it.
fn unnumbered(packet: impl AsRef<[u8]>) -> Vec<u8> {
    let mut packet = packet.as_ref().to_vec();
    if packet[0] >> 4 == 4 && packet[6] & 0x40 != 0 {
        packet[4..6].fill(0);
        packet[10..12].fill(0);
    }
    packet
}

/// How many packets are merged into each parcel, and the parcel as a device is given it.
pub(crate) fn parcels(mut packets: &[Vec<u8>]) -> Vec<(usize, Vec<u8>)> {
    let mut merger = Merger::new(true, true);
    let mut parcels = Vec::new();
    while !packets.is_empty() {
        let (taken, rest) = packets.split_at(merger.take(packets));
        let payloads = taken.iter().flat_map(|packet| &packet[merger.skip()..]);
        parcels.push((taken.len(), merger.head().iter().chain(payloads).copied().collect()));
        packets = rest;
    }
    parcels
}

/// The packets of a segmenter.
pub(crate) fn all(mut segmenter: Segmenter<'_>) -> Vec<Vec<u8>> {
    let mut out = vec![0; segmenter.longest()];
    core::iter::from_fn(|| segmenter.next_into(&mut out).map(|len| out[..len].to_vec())).collect()
}

#[cfg(test)]
mod tests;

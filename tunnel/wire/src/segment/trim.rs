//! Dropping the first packet of a super-packet, so that a queue that drops one packet to tell its sender to slow down
//! (CoDel) does not drop the 45 behind it as well.

use super::CWR;
use crate::checksum::{self, pseudo};
use crate::inner::{addresses, protocol};
use crate::offload::{Cut, Layout, Offload, tcp_sequence};
use crate::reader::{put_word, word};

/// Drops the first packet of a `parcel` (virtio-net header and super-packet) in place: only headers move. What is left
/// begins at the offset that is returned. `None`, and nothing is changed, if the parcel is not two packets or more.
pub fn trim_first(parcel: &mut [u8]) -> Option<usize> {
    let (mut offload, packet) = Offload::parse(parcel).ok()?;
    let cut = offload.cut?;
    let layout = offload.layout(cut, packet).ok()?;
    let (size, payload) = (usize::from(cut.size), packet.len() - layout.payload);
    let left = payload.checked_sub(size).filter(|left| *left > 0)?;
    offload.cut = (left > size).then_some(Cut { cwr: false, ..cut });
    parcel.copy_within(Offload::LEN..Offload::LEN + layout.payload, Offload::LEN + size);
    let rest = &mut parcel[size..];
    rest[..Offload::LEN].copy_from_slice(&offload.to_bytes());
    renumber(&mut rest[Offload::LEN..], layout, cut.size);
    Some(size)
}

/// Lengths, identification, sequence number and sums, after `dropped` bytes of payload are gone.
fn renumber(packet: &mut [u8], layout: Layout, dropped: u16) {
    if layout.v6 {
        put_word(packet, 4, (packet.len() - 40) as u16);
    } else {
        shift_word(packet, 2, dropped.wrapping_neg());
        shift_word(packet, 4, 1);
    }
    let Some(pseudo) =
        addresses(packet).map(|both| pseudo(both, if layout.tcp { protocol::TCP } else { protocol::UDP }))
    else {
        return;
    };
    let header = &mut packet[layout.transport..];
    let len = header.len() as u16;
    if layout.tcp {
        let sequence = tcp_sequence(header, 0).wrapping_add(u32::from(dropped));
        header[4..8].copy_from_slice(&sequence.to_be_bytes());
        header[13] &= !CWR;
    } else {
        put_word(header, 4, len);
    }
    put_word(header, layout.checksum_offset(), pseudo.word(len).folded());
}

/// Adds to a word of IPv4's header and keeps its checksum right.
fn shift_word(packet: &mut [u8], at: usize, by: u16) {
    let old = word(packet, at);
    let new = old.wrapping_add(by);
    put_word(packet, at, new);
    let checksum = checksum::update(word(packet, 10), old, new);
    put_word(packet, 10, checksum);
}

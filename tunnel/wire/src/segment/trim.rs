//! Dropping the first segment of a super-packet. CoDel drops one packet as a signal, and must not drop the up to 45
//! after it as well.

use super::CWR;
use crate::checksum::{self, pseudo_header_sum};
use crate::inner::{addresses, protocol};
use crate::reader::{put_word, word};
use crate::virtio::{Gso, Layout, VirtioNetHeader, tcp_sequence};

/// Drops the first segment of a `super_packet` (with its virtio_net_hdr) in place: only headers move. The rest begins
/// at the returned offset. `None`, and nothing is changed, if it has fewer than two segments.
pub fn trim_first(super_packet: &mut [u8]) -> Option<usize> {
    let (mut offload, packet) = VirtioNetHeader::parse(super_packet).ok()?;
    let gso = offload.gso?;
    let layout = offload.layout(gso, packet).ok()?;
    let (size, payload) = (usize::from(gso.size), packet.len() - layout.payload);
    let remaining = payload.checked_sub(size).filter(|remaining| *remaining > 0)?;
    offload.gso = (remaining > size).then_some(Gso { cwr: false, ..gso });
    super_packet.copy_within(VirtioNetHeader::LEN..VirtioNetHeader::LEN + layout.payload, VirtioNetHeader::LEN + size);
    let trimmed = &mut super_packet[size..];
    trimmed[..VirtioNetHeader::LEN].copy_from_slice(&offload.to_bytes());
    update_headers(&mut trimmed[VirtioNetHeader::LEN..], layout, gso.size);
    Some(size)
}

/// Updates lengths, identification, sequence number and checksums after `dropped` bytes of payload were removed.
fn update_headers(packet: &mut [u8], layout: Layout, dropped: u16) {
    if layout.v6 {
        put_word(packet, 4, (packet.len() - 40) as u16);
    } else {
        add_to_word(packet, 2, dropped.wrapping_neg());
        add_to_word(packet, 4, 1);
    }
    let Some(pseudo) = addresses(packet)
        .map(|addresses| pseudo_header_sum(addresses, if layout.tcp { protocol::TCP } else { protocol::UDP }))
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
    put_word(header, layout.checksum_offset(), pseudo.add_word(len).folded());
}

/// Adds to a word of IPv4's header, and updates its checksum.
fn add_to_word(packet: &mut [u8], offset: usize, increment: u16) {
    let old_word = word(packet, offset);
    let new_word = old_word.wrapping_add(increment);
    put_word(packet, offset, new_word);
    let checksum = checksum::update(word(packet, 10), old_word, new_word);
    put_word(packet, 10, checksum);
}

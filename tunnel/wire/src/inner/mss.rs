//! MSS clamping: the MSS option of a SYN is lowered to what fits the tunnel (RFC 9293, section 3.7.1), so that
//! connections do not depend on path MTU discovery.

use super::{Inner, protocol};
use crate::checksum;
use crate::reader::{put_word, word};

const SYN: u8 = 2;
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const MSS: u8 = 2;

/// Lowers the MSS option of a SYN to what fits `mtu` bytes without options of IP and TCP (RFC 6691). `partial` if
/// the checksum is the sum of the pseudo-header alone, which does not cover the option. True if the packet was changed.
pub fn clamp(packet: &mut [u8], mtu: u16, partial: bool) -> bool {
    let Some((tcp, offset)) = find_syn_mss(packet) else { return false };
    let headers_len = if packet[0] >> 4 == 6 { 60 } else { 40 };
    let (mss, max_mss) = (word(packet, offset), mtu.saturating_sub(headers_len));
    if mss <= max_mss {
        return false;
    }
    put_word(packet, offset, max_mss);
    if !partial {
        // At an odd offset the value spans two words of the sum, which holds it with its bytes swapped.
        let aligned = |word: u16| if (offset - tcp) % 2 == 1 { word.swap_bytes() } else { word };
        let checksum = checksum::update(word(packet, tcp + 16), aligned(mss), aligned(max_mss));
        put_word(packet, tcp + 16, checksum);
    }
    true
}

/// Offsets of a SYN's TCP header and of its MSS option's value.
fn find_syn_mss(packet: &[u8]) -> Option<(usize, usize)> {
    let inner = Inner::parse(packet).ok()?;
    let tcp = packet[..inner.len].get(inner.transport..)?;
    if inner.protocol != protocol::TCP || inner.fragment || tcp.len() < 20 || tcp[13] & SYN == 0 {
        return None;
    }
    let options = tcp.get(20..usize::from(tcp[12] >> 4) * 4)?;
    find_mss(options).map(|offset| (inner.transport, inner.transport + 20 + offset))
}

fn find_mss(options: &[u8]) -> Option<usize> {
    let mut offset = 0;
    loop {
        offset += match options.get(offset..)? {
            [END, ..] | [] => return None,
            [NO_OPERATION, ..] => 1,
            [MSS, 4, _, _, ..] => return Some(offset + 2),
            [_, length, ..] if *length >= 2 => usize::from(*length),
            _ => return None,
        };
    }
}

//! Acknowledgements that nobody in his right mind would send.

use ropewalk_transport::tcp::{Ack, SackBlocks};
use units::RngStream;

/// A number near something that exists, or anything.
pub(crate) fn number(stream: &mut RngStream) -> u64 {
    if stream.chance(0.9) { stream.below(200) } else { stream.bits() }
}

/// Any acknowledgement, of a handshake or not.
pub(crate) fn ack(stream: &mut RngStream, syn: bool) -> Ack {
    let mut blocks = SackBlocks::default();
    (0..stream.below(4)).for_each(|_| blocks.push((number(stream), number(stream))));
    Ack {
        one_way_ms: 0,
        syn,
        ack: number(stream),
        receive_window: number(stream) % (1 << 40),
        tsval: stream.bits() as u32,
        tsecr: number(stream) as u32,
        sack_blocks: blocks,
        ece: stream.chance(0.1),
    }
}

//! Random acknowledgements.

use ropewalk_transport::tcp::{Ack, SackBlocks};
use units::RngStream;

/// A number near something that exists, or anything.
pub(crate) fn number(rng: &mut RngStream) -> u64 {
    if rng.chance(0.9) { rng.below(200) } else { rng.bits() }
}

/// Any acknowledgement, of a handshake or not.
pub(crate) fn ack(rng: &mut RngStream, syn: bool) -> Ack {
    let mut blocks = SackBlocks::default();
    (0..rng.below(4)).for_each(|_| blocks.push((number(rng), number(rng))));
    Ack {
        one_way_delay_ms: 0,
        syn,
        ack: number(rng),
        receive_window: number(rng) % (1 << 40),
        tsval: rng.bits() as u32,
        tsecr: number(rng) as u32,
        sack_blocks: blocks,
        ece: rng.chance(0.1),
        ace: rng.bits() as u8,
    }
}

//! The calibration loop: work that no change to Ropewalk can make faster. Its speed shows how fast the machine was at that
//! moment.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Steps of [`calibrate`].
pub(super) const STEPS: u64 = 5_000_000;

/// A fixed amount of work of the simulator's kind: an event queue of 1024 entries, take one out, put one back with a later
/// time. Returns a checksum, so that the compiler keeps the loop.
pub(crate) fn calibrate() -> u64 {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut queue: BinaryHeap<_> = (0..1024).map(|id| Reverse((draw() >> 40, id))).collect();
    let mut checksum = 0_u64;
    for id in 0..STEPS {
        let Reverse((time, _)) = queue.pop().expect("one goes in for each that comes out");
        checksum = checksum.rotate_left(1) ^ time;
        queue.push(Reverse((time + (draw() >> 40), id)));
    }
    checksum
}

//! Memory of all connections together, shared by a dynamic threshold: each connection may hold half of what the others
//! leave (Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998). Some memory is always left for the next
//! connection: if n connections hold their maximum, 1 / (n + 1).

/// The initial window of both byte streams, bytes: a server may send first.
pub(crate) const INITIAL_WINDOW: u64 = 64 * 1024;

/// Bytes charged for each chunk in addition to its own, so that tiny chunks are not free.
const CHUNK_OVERHEAD: u64 = 256;

/// The bytes held, and their maximum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) used: u64,
    max: u64,
}

impl Memory {
    pub(crate) fn new(max: u64) -> Self {
        Self { used: 0, max }
    }

    /// The bytes charged for a chunk of this length.
    pub(crate) fn charge(length: u64) -> u64 {
        length + CHUNK_OVERHEAD
    }

    /// The bytes that a connection that holds `held` may hold now.
    pub(crate) fn limit(&self, held: u64) -> u64 {
        (self.max + held).saturating_sub(self.used) / 2
    }

    /// Whether a connection that holds `held` may hold `charge` more. A connection that holds nothing may have one
    /// chunk of any length that fits the free memory.
    pub(crate) fn admits(&self, held: u64, charge: u64) -> bool {
        self.used + charge <= self.max && (held == 0 || held + charge <= self.limit(held))
    }
}

//! The source of an endpoint's random numbers, which is passed in: the daemon passes the system's generator, a
//! simulation a seeded one.

use std::fmt;
use units::RngStream;

/// A source of random numbers. They must be unpredictable: then a ping's token in an answer proves that the sender of
/// the answer received the ping (RFC 9000, section 8.2.1).
pub struct Entropy(Box<dyn FnMut() -> u64 + Send>);

impl Entropy {
    /// A source that calls `bits` for 64 random bits.
    #[must_use]
    pub fn new(bits: impl FnMut() -> u64 + Send + 'static) -> Self {
        Self(Box::new(bits))
    }

    /// The same numbers for the same seed: only for simulations, because the numbers are predictable.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        let mut stream = RngStream::named(seed, "tunnel");
        Self::new(move || stream.bits())
    }

    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        (self.0)()
    }
}

impl fmt::Debug for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entropy")
    }
}

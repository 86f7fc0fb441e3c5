//! Sources of random bytes, which are passed in: the daemon passes the system's generator, a simulation a seeded one,
//! so that the same handshake gives the same bytes again.

use ring::rand::{SecureRandom, SystemRandom};

/// A source of random bytes.
pub trait Entropy {
    /// Fills `bytes`. The tunnel's security requires that they are unpredictable.
    fn fill(&mut self, bytes: &mut [u8]);
}

impl<F: FnMut(&mut [u8])> Entropy for F {
    fn fill(&mut self, bytes: &mut [u8]) {
        self(bytes);
    }
}

/// The operating system's generator (`getrandom`): for drivers, never for simulations.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    /// # Panics
    /// If the system's generator fails.
    fn fill(&mut self, bytes: &mut [u8]) {
        SystemRandom::new().fill(bytes).expect("the system's generator works");
    }
}

/// Draws `N` bytes.
pub(crate) fn random_bytes<const N: usize>(entropy: &mut dyn Entropy) -> [u8; N] {
    let mut bytes = [0; N];
    entropy.fill(&mut bytes);
    bytes
}

/// Draws a number in `0..bound`, for the jitter of timers; the bias of the modulo is below 2^-32 for the bounds used.
pub(crate) fn random_below(entropy: &mut dyn Entropy, bound: u64) -> u64 {
    u64::from_be_bytes(random_bytes(entropy)) % bound
}

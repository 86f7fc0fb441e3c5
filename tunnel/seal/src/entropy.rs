//! Where unpredictable bytes come from. A machine never draws them itself: the daemon lends it the system's generator, a
//! simulation a seeded one, and then the real handshake gives the same bytes again.

use ring::rand::{SecureRandom, SystemRandom};

/// A source of unpredictable bytes.
pub trait Entropy {
    /// Fills `bytes`. The whole security of the tunnel rests on nobody being able to guess them.
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
    /// If the system has no entropy to give: going on without would be worse.
    fn fill(&mut self, bytes: &mut [u8]) {
        SystemRandom::new().fill(bytes).expect("the system gives entropy");
    }
}

/// `N` bytes of it.
pub(crate) fn draw<const N: usize>(entropy: &mut dyn Entropy) -> [u8; N] {
    let mut bytes = [0; N];
    entropy.fill(&mut bytes);
    bytes
}

/// A number in `0..bound` for spreading out timers; the bias of the modulo is below 2^-32 for the bounds used.
pub(crate) fn below(entropy: &mut dyn Entropy, bound: u64) -> u64 {
    u64::from_be_bytes(draw(entropy)) % bound
}

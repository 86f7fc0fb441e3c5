//! A stable 64-bit digest of a run.

/// FNV-1a over 64-bit words: order matters, every machine agrees, and nothing is kept.
#[derive(Clone, Copy, Debug)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(strings::OFFSET_BASIS)
    }
}

impl Digest {
    /// Adds a word.
    pub fn add(&mut self, word: u64) {
        // A rotation beside the multiplication lets high bits reach low ones.
        self.0 = (self.0 ^ word).wrapping_mul(strings::PRIME).rotate_left(29);
    }

    /// Adds text.
    pub fn add_text(&mut self, text: &str) {
        self.add(text.len() as u64);
        text.bytes().for_each(|byte| self.add(u64::from(byte)));
    }

    /// Sixteen hexadecimal digits.
    #[must_use]
    pub fn hex(self) -> String {
        format!("{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_matters() {
        let digest_of = |values: &[u64]| {
            let mut digest = Digest::default();
            values.iter().for_each(|word| digest.add(*word));
            digest.hex()
        };
        assert_ne!(digest_of(&[1, 2]), digest_of(&[2, 1]));
        assert_eq!(digest_of(&[1, 2]), digest_of(&[1, 2]));
    }
}

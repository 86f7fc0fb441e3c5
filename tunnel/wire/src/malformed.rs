//! Why bytes from a stranger are dropped: one small enum for the whole crate, so that a driver can count by reason.

use core::fmt;

/// What is wrong with some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Malformed {
    /// They end before their own headers say.
    Truncated,
    /// A version that is not known: GRE's is not 0, IP's neither 4 nor 6.
    Version,
    /// A GRE header sets reserved bits that a receiver must not ignore.
    Reserved,
    /// A checksum is wrong.
    Checksum,
    /// A length or an offset contradicts the rest.
    Length,
    /// A frame, message or offload of an unknown type.
    Type,
    /// A value that its field may not have.
    Value,
}

impl Malformed {
    /// All reasons; a counter's place is `reason as usize`.
    pub const ALL: [Self; 7] =
        [Self::Truncated, Self::Version, Self::Reserved, Self::Checksum, Self::Length, Self::Type, Self::Value];

    /// One word, as a label of a counter.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::Version => "version",
            Self::Reserved => "reserved",
            Self::Checksum => "checksum",
            Self::Length => "length",
            Self::Type => "type",
            Self::Value => "value",
        }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl core::error::Error for Malformed {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_counter() {
        for (place, reason) in Malformed::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, place);
            assert_eq!(Malformed::ALL.into_iter().filter(|other| other.name() == reason.name()).count(), 1);
        }
    }
}

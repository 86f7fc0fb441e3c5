//! The decoding error of this crate.

use core::fmt;

/// Why bytes cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Malformed {
    /// They are shorter than their headers say.
    Truncated,
    /// Unknown version: not 0 in GRE, neither 4 nor 6 in IP.
    Version,
    /// Reserved bits of a GRE header are set that a receiver must not ignore.
    Reserved,
    /// Wrong checksum.
    Checksum,
    /// A length or an offset contradicts the rest.
    Length,
    /// Unknown type of a frame, message or offload.
    Type,
    /// Invalid value of a field.
    Value,
}

impl Malformed {
    /// All reasons, in the order of `reason as usize`.
    pub const ALL: [Self; 7] =
        [Self::Truncated, Self::Version, Self::Reserved, Self::Checksum, Self::Length, Self::Type, Self::Value];

    /// Name in counters.
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
    fn every_reason_has_a_name_and_an_index_of_its_own() {
        for (index, reason) in Malformed::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
            assert_eq!(Malformed::ALL.into_iter().filter(|other| other.name() == reason.name()).count(), 1);
        }
    }
}

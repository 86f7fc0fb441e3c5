//! The decoding error of this crate.

use core::fmt;

/// Why bytes cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Malformed {
    /// There are fewer bytes than the headers state.
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

//! A cursor for decoding.

use crate::{Malformed, varint};

/// The unread bytes. A failed read consumes nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (array, remainder) = self.0.split_first_chunk().ok_or(Malformed::Truncated)?;
        self.0 = remainder;
        Ok(*array)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    /// A variable-length integer that must fit into 32 bits.
    pub(crate) fn varint(&mut self) -> Result<u32, Malformed> {
        let (value, remainder) = varint::read(self.0).ok_or(Malformed::Truncated)?;
        let value = u32::try_from(value).map_err(|_| Malformed::Value)?;
        self.0 = remainder;
        Ok(value)
    }
}

/// The big-endian 16-bit word at `offset`, which must be inside.
pub(crate) fn word(bytes: &[u8], offset: usize) -> u16 {
    u16::from_be_bytes([bytes[offset], bytes[offset + 1]])
}

/// Writes a big-endian 16-bit word at `offset`, which must be inside.
pub(crate) fn put_word(bytes: &mut [u8], offset: usize, value: u16) {
    bytes[offset..offset + 2].copy_from_slice(&value.to_be_bytes());
}

//! A column of integers in few bytes: differences as variable-length integers; DEFLATE and base64 on the page.

use base64ct::{Base64, Encoding};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::io::{self, Write};

/// A column that grows. Near values take one or two bytes each.
#[derive(Clone, Debug, Default)]
pub(super) struct Column {
    /// The differences, zigzag-coded (sign in the lowest bit), seven bits per byte, lowest first.
    bytes: Vec<u8>,
    last: i64,
    len: usize,
}

impl Column {
    pub(super) fn push(&mut self, value: i64) {
        let difference = value - self.last;
        let mut rest = ((difference << 1) ^ (difference >> 63)) as u64;
        while rest > 0x7f {
            self.bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.bytes.push(rest as u8);
        (self.last, self.len) = (value, self.len + 1);
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn last(&self) -> i64 {
        self.last
    }

    /// The values.
    pub(super) fn values(&self) -> impl Iterator<Item = i64> + '_ {
        let (mut bytes, mut last) = (self.bytes.iter(), 0);
        std::iter::from_fn(move || {
            let (mut zigzag, mut shift) = (0_u64, 0);
            loop {
                let byte = bytes.next()?;
                zigzag |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte & 0x80 == 0 {
                    break;
                }
            }
            last += (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
            Some(last)
        })
    }

    /// The column as text: DEFLATE with zlib's header (RFC 1950), in base64.
    ///
    /// # Errors
    /// None in practice: it writes to memory.
    pub(super) fn packed(&self) -> io::Result<String> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&self.bytes)?;
        Ok(Base64::encode_string(&encoder.finish()?))
    }
}

impl FromIterator<i64> for Column {
    fn from_iter<I: IntoIterator<Item = i64>>(values: I) -> Self {
        let mut column = Self::default();
        values.into_iter().for_each(|value| column.push(value));
        column
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_gives_its_values_back_and_near_ones_take_a_byte() {
        let values = [0, 63, 0, -64, i64::from(u32::MAX), -1, 1 << 40, 1 << 40];
        let column = Column::from_iter(values);
        assert_eq!((column.values().collect::<Vec<_>>(), column.len()), (values.to_vec(), values.len()));
        assert_eq!(Column::from_iter(0..1000).bytes.len(), 1000);
    }
}

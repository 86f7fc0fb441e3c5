//! Variable-length integers (RFC 9000, section 16): the first two bits encode the length, 1, 2, 4 or 8 bytes.

/// The largest value that can be encoded.
pub const MAX: u64 = (1 << 62) - 1;

/// Length of the shortest encoding of `value`, bytes.
#[must_use]
pub const fn len(value: u64) -> usize {
    match value {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

/// Appends the shortest encoding of `value`.
///
/// # Panics
/// If `value` is larger than [`MAX`].
pub fn write(value: u64, buffer: &mut Vec<u8>) {
    let start = buffer.len();
    buffer.resize(start + len(value), 0);
    write_into(value, &mut buffer[start..]);
}

/// Writes the shortest encoding of `value` to `buffer`, which has its [length](len).
///
/// # Panics
/// If `value` is larger than [`MAX`], or `buffer` of another length.
pub fn write_into(value: u64, buffer: &mut [u8]) {
    assert!(value <= MAX, "{value} has no variable-length encoding");
    let len = len(value);
    let length_bits = len.ilog2() as u64;
    let shifted = value | length_bits << (8 * len - 2);
    buffer.copy_from_slice(&shifted.to_be_bytes()[8 - len..]);
}

/// Decodes the value at the beginning of `bytes`, in any encoding; returns it with the bytes after it.
#[must_use]
pub fn read(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let len = 1 << (bytes.first()? >> 6);
    let (encoded, remainder) = bytes.split_at_checked(len)?;
    let value = encoded.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
    Some((value & (MAX >> (64 - 8 * len)), remainder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_examples_of_rfc_9000_appendix_a_1_are_decoded() {
        let examples: [(&[u8], u64); 5] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ];
        for (bytes, value) in examples {
            assert_eq!(read(bytes), Some((value, &[][..])));
            assert_eq!(read(&bytes[..bytes.len() - 1]), None, "cut short");
        }
    }

    #[test]
    fn the_ranges_of_the_encodings_are_those_of_table_4() {
        for (value, bytes) in [(63, 1), (64, 2), (16_383, 2), (16_384, 4), (1 << 30, 8), ((1 << 30) - 1, 4), (MAX, 8)] {
            assert_eq!(len(value), bytes, "{value}");
        }
    }

    proptest! {
        #[test]
        fn an_encoded_value_is_decoded(value in 0..=MAX, small in 0..70_000_u64, rest: Vec<u8>) {
            for value in [value, small] {
                let mut buffer = Vec::new();
                write(value, &mut buffer);
                prop_assert_eq!(buffer.len(), len(value));
                buffer.extend_from_slice(&rest);
                prop_assert_eq!(read(&buffer), Some((value, &rest[..])));
            }
        }
    }
}

//! Variable-length integers of RFC 9000, section 16: the first two bits say whether 1, 2, 4 or 8 bytes follow in network
//! order.

/// The largest value that can be told.
pub const MOST: u64 = (1 << 62) - 1;

/// Bytes that `value` takes at the shortest.
#[must_use]
pub const fn len(value: u64) -> usize {
    match value {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

/// Appends `value` in the shortest form.
///
/// # Panics
/// If `value` is larger than [`MOST`]: then it has no form.
pub fn write(value: u64, out: &mut Vec<u8>) {
    assert!(value <= MOST, "{value} has no variable-length form");
    let len = len(value);
    let form = len.ilog2() as u64;
    let shifted = value | form << (8 * len - 2);
    out.extend_from_slice(&shifted.to_be_bytes()[8 - len..]);
}

/// The value that `bytes` begin with, in any of its forms, and the bytes after it.
#[must_use]
pub fn read(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let len = 1 << (bytes.first()? >> 6);
    let (own, rest) = bytes.split_at_checked(len)?;
    let value = own.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
    Some((value & (MOST >> (64 - 8 * len)), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_examples_of_rfc_9000_section_a_1_are_read() {
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
    fn the_borders_of_each_form_are_those_of_table_4() {
        for (value, bytes) in [(63, 1), (64, 2), (16_383, 2), (16_384, 4), (1 << 30, 8), ((1 << 30) - 1, 4), (MOST, 8)]
        {
            assert_eq!(len(value), bytes, "{value}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(value in 0..=MOST, small in 0..70_000_u64, rest: Vec<u8>) {
            for value in [value, small] {
                let mut out = Vec::new();
                write(value, &mut out);
                prop_assert_eq!(out.len(), len(value));
                out.extend_from_slice(&rest);
                prop_assert_eq!(read(&out), Some((value, &rest[..])));
            }
        }
    }
}

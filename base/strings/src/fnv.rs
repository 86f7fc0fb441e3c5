//! FNV-1a (RFC 9923): a hash that does not depend on a library's version.

/// The 64-bit offset basis (RFC 9923).
pub const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
/// The 64-bit prime (RFC 9923).
pub const PRIME: u64 = 0x0100_0000_01b3;

/// FNV-1a, 64 bit.
#[must_use]
pub fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(OFFSET_BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// FNV-1a, 32 bit.
#[must_use]
pub fn fnv1a_32(bytes: impl IntoIterator<Item = u8>) -> u32 {
    bytes.into_iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hashes_are_those_of_the_published_test_vectors() {
        // Fowler, Noll and Vo: the vectors of `test_fnv.c`.
        for (text, hash_32, hash_64) in [
            ("", 0x811c_9dc5, 0xcbf2_9ce4_8422_2325),
            ("a", 0xe40c_292c, 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0xbf9c_f968, 0x8594_4171_f739_67e8),
        ] {
            assert_eq!((fnv1a_32(text.bytes()), fnv1a(text.bytes())), (hash_32, hash_64), "{text:?}");
        }
    }
}

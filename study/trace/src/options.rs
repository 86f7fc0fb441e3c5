//! Options of TCP: MSS, window scale, SACK and timestamps (RFC 9293, 7323, 2018), and those of MPTCP (RFC 8684).

use sha2::{Digest, Sha256};

/// The room for options in a TCP header, bytes.
const MAX: usize = 40;
const NOP: u8 = 1;
const MPTCP: u8 = 30;

/// The options of a TCP header, in the order in which Linux writes them.
#[derive(Debug, Default)]
pub(crate) struct Options(Vec<u8>);

/// The keys of an MPTCP connection, with the values derived from them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys {
    /// The data sender's key, and the receiver's.
    keys: [[u8; 8]; 2],
}

impl Keys {
    /// The keys of the flow with this number.
    pub(crate) fn of(flow: u16) -> Self {
        let key = |side: u64| (u64::from(flow) << 1 | side).to_be_bytes();
        Self { keys: [key(0), key(1)] }
    }

    /// The data sequence number of a byte of one side.
    pub(crate) fn data_seq(self, side: usize, byte: u64) -> u64 {
        hashed(self.keys[side]).1.wrapping_add(1).wrapping_add(byte)
    }
}

/// The token and the first data sequence number of a key (RFC 8684, sections 3.1 and 3.2).
pub(crate) fn hashed(key: [u8; 8]) -> (u32, u64) {
    let hash = Sha256::digest(key);
    let bytes = |range: std::ops::Range<usize>| hash[range].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    (bytes(0..4) as u32, bytes(24..32))
}

impl Options {
    /// MSS, SACK permitted and window scale of a SYN.
    pub(crate) fn syn(mss: u16, timestamps: Option<[u32; 2]>, window_scale: u8) -> Self {
        let mut options = Self::default();
        let [high, low] = mss.to_be_bytes();
        options.0.extend([2, 4, high, low]);
        options.0.extend([4, 2]);
        match timestamps {
            Some(times) => options.push_timestamps(times),
            None => options.0.extend([NOP, NOP]),
        }
        options.0.extend([NOP, 3, 3, window_scale]);
        options
    }

    /// The timestamps of any other segment.
    pub(crate) fn timestamps(timestamps: Option<[u32; 2]>) -> Self {
        let mut options = Self::default();
        if let Some(times) = timestamps {
            options.0.extend([NOP, NOP]);
            options.push_timestamps(times);
        }
        options
    }

    fn push_timestamps(&mut self, times: [u32; 2]) {
        self.0.extend([8, 10]);
        self.0.extend(times.iter().flat_map(|time| time.to_be_bytes()));
    }

    /// SACK blocks, as many as fit.
    pub(crate) fn push_sack(&mut self, blocks: &[[u32; 2]]) {
        let room = MAX.saturating_sub(self.0.len() + 4) / 8;
        let blocks = &blocks[..blocks.len().min(room)];
        if !blocks.is_empty() {
            self.0.extend([NOP, NOP, 5, 2 + 8 * blocks.len() as u8]);
            self.0.extend(blocks.iter().flatten().flat_map(|edge| edge.to_be_bytes()));
        }
    }

    /// MP_CAPABLE, version 1, HMAC-SHA256: without keys on a SYN, with the receiver's key on its answer, with both keys on
    /// the third packet (RFC 8684, section 3.1).
    pub(crate) fn push_capable(&mut self, keys: Keys, is_answer: bool, is_third: bool) {
        let keys: &[[u8; 8]] = match (is_answer, is_third) {
            (true, _) => &keys.keys[1..],
            (_, true) => &keys.keys,
            _ => &[],
        };
        self.0.extend([MPTCP, 4 + 8 * keys.len() as u8, 0x01, 0x01]);
        self.0.extend(keys.iter().flatten());
    }

    /// MP_JOIN on a SYN, on its answer, and on the third packet (RFC 8684, section 3.2). The HMACs are zeros.
    pub(crate) fn push_join(&mut self, keys: Keys, subflow: u16, is_answer: bool, is_third: bool) {
        let nonce = u32::from(subflow).to_be_bytes();
        match (is_answer, is_third) {
            (true, _) => {
                self.0.extend([MPTCP, 16, 0x10, subflow as u8]);
                self.0.extend([0; 8]);
                self.0.extend(nonce);
            }
            (_, true) => {
                self.0.extend([MPTCP, 24, 0x10, 0]);
                self.0.extend([0; 20]);
            }
            _ => {
                self.0.extend([MPTCP, 12, 0x10, subflow as u8]);
                self.0.extend(hashed(keys.keys[1]).0.to_be_bytes());
                self.0.extend(nonce);
            }
        }
    }

    /// The Data ACK of a DSS option, 32 bits (RFC 8684, section 3.3).
    pub(crate) fn push_data_ack(&mut self, data_ack: u64) {
        self.0.extend([MPTCP, 8, 0x20, 0x01]);
        self.0.extend((data_ack as u32).to_be_bytes());
    }

    /// A DSS option of `size` bytes with padding: Data ACK, data sequence number of 64 bits if there is room, subflow
    /// sequence number from the subflow's first, length; without a checksum.
    pub(crate) fn push_mapping(&mut self, size: u32, data_ack: u64, data_seq: u64, subflow_seq: u32, length: u16) {
        let is_long = size >= 24;
        self.0.extend([MPTCP, if is_long { 22 } else { 18 }, 0x20, if is_long { 0x0d } else { 0x05 }]);
        self.0.extend((data_ack as u32).to_be_bytes());
        let number = data_seq.to_be_bytes();
        self.0.extend(if is_long { &number[..] } else { &number[4..] });
        self.0.extend(subflow_seq.to_be_bytes());
        self.0.extend(length.to_be_bytes());
    }

    /// The bytes, with padding to a multiple of four.
    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        while !self.0.len().is_multiple_of(4) {
            self.0.push(NOP);
        }
        self.0.truncate(MAX);
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8684, section 3.1 and 3.2: the token is the first 32 bits of the key's SHA-256, the first data sequence number its
    /// last 64 bits. The hash is that of eight zeros.
    #[test]
    fn token_and_first_data_sequence_number_are_of_the_keys_hash() {
        let (token, number) = hashed([0; 8]);
        assert_eq!((token, number), (0xaf55_70f5, 0xe5b2_328d_e0e8_3dfc));
    }

    #[test]
    fn no_option_needs_more_room_than_there_is() {
        let times = Some([1, 2]);
        for [is_answer, is_third] in [[false, false], [true, false]] {
            let mut options = Options::syn(1460, times, 7);
            options.push_join(Keys::of(3), 1, is_answer, is_third);
            assert!(options.0.len() <= MAX, "{options:?}");
        }
        let mut options = Options::timestamps(times);
        options.push_join(Keys::of(3), 1, false, true);
        assert!(options.into_bytes().len() <= MAX);
        let mut options = Options::timestamps(times);
        options.push_data_ack(9);
        options.push_sack(&[[1, 2]; 3]);
        assert_eq!(options.into_bytes().len(), 12 + 8 + 4 + 2 * 8);
    }
}

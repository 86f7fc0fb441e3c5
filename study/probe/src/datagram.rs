//! Datagrams that the server returns: never longer than they came, and each once.
//!
//! The client fills session, stream, number and its time; the server fills its own number and time. Both add a keyed hash.

use crate::token::Token;

/// Bytes of fields and keyed hash: the shortest datagram.
pub(crate) const MIN_LEN: usize = 56;
/// The longest datagram, bytes: it passes any path without fragments.
pub(crate) const MAX_LEN: usize = 1200;
/// Length of the fields under the hash, bytes.
const FIELDS: usize = 40;
/// The most datagrams of a stream.
pub(crate) const MAX_COUNT: u32 = 1 << 16;

/// The fields of a datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Datagram {
    /// The session.
    pub(crate) session: u64,
    /// The stream of the session.
    pub(crate) stream: u32,
    /// The number in the stream, from 0.
    pub(crate) number: u32,
    /// The client's time when it was sent, nanoseconds.
    pub(crate) sent_ns: u64,
    /// In an answer: how many datagrams of the stream had come before.
    pub(crate) place: u32,
    /// In an answer: the server's time, nanoseconds; at least 1.
    pub(crate) returned_ns: u64,
}

impl Datagram {
    /// Writes fields and hash to the beginning of `bytes`, which has at least [`MIN_LEN`].
    pub(crate) fn write(&self, key: &Token, bytes: &mut [u8]) {
        let fields = [
            &self.session.to_be_bytes()[..],
            &self.stream.to_be_bytes(),
            &self.number.to_be_bytes(),
            &self.sent_ns.to_be_bytes(),
            &self.place.to_be_bytes(),
            &[0; 4],
            &self.returned_ns.to_be_bytes(),
        ]
        .concat();
        bytes[..FIELDS].copy_from_slice(&fields);
        bytes[FIELDS..MIN_LEN].copy_from_slice(&key.mac(&[&fields])[..MIN_LEN - FIELDS]);
    }

    /// The session that a datagram names, before its hash is checked.
    pub(crate) fn session(bytes: &[u8]) -> Option<u64> {
        bytes.first_chunk().map(|session| u64::from_be_bytes(*session))
    }

    /// The fields of a datagram; none if it is too short, or its hash is another.
    pub(crate) fn read(key: &Token, bytes: &[u8]) -> Option<Self> {
        let fields: &[u8; FIELDS] = bytes.first_chunk()?;
        if !key.verifies(&[fields], bytes.get(FIELDS..MIN_LEN)?) {
            return None;
        }
        let long = |at: usize| fields[at..].first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
        let short = |at: usize| fields[at..].first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
        Some(Self {
            session: long(0)?,
            stream: short(8)?,
            number: short(12)?,
            sent_ns: long(16)?,
            place: short(24)?,
            returned_ns: long(32)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_is_read_as_it_was_written_and_no_changed_one_is() {
        let key = Token::new("0123456789abcdef").unwrap().for_session(5);
        let datagram = Datagram { session: 5, stream: 2, number: 9, sent_ns: 1 << 60, place: 8, returned_ns: 77 };
        let mut bytes = [0; 64];
        datagram.write(&key, &mut bytes);
        assert_eq!((Datagram::session(&bytes), Datagram::read(&key, &bytes)), (Some(5), Some(datagram)));
        for at in 0..MIN_LEN {
            let mut changed = bytes;
            changed[at] ^= 1;
            assert_eq!(Datagram::read(&key, &changed), None, "byte {at}");
        }
        (0..MIN_LEN).for_each(|length| assert_eq!(Datagram::read(&key, &bytes[..length]), None, "{length} bytes"));
    }
}

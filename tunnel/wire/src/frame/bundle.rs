//! Bundles: the body of a datagram with several inner packets, after optional frames.
//!
//! ```text
//! bundle           50   length of the frames v   frames   entry...
//! entry            data header 6   length v   whole inner packet
//! ```

use super::{DataHeader, Frames};
use crate::reader::Reader;
use crate::{Malformed, varint};
use core::ops::Range;

/// Maximum number of entries; a receiver ignores those that follow.
pub const MAX_BUNDLE_ENTRIES: usize = 64;

/// A decoded bundle.
#[derive(Clone, Debug)]
pub struct Bundle<'a> {
    /// Its frames.
    pub frames: Frames<'a>,
    /// Its entries.
    pub entries: Entries<'a>,
}

impl<'a> Bundle<'a> {
    /// First byte of a bundle.
    pub(super) const TYPE: u8 = 0x50;

    /// Writes the part before the entries, with the encoded `frames`, to the front of `buffer`; returns its length.
    ///
    /// # Panics
    /// If `buffer` is shorter than [that](Self::frames_len).
    pub fn write_frames(buffer: &mut [u8], frames: &[u8]) -> usize {
        let len = Self::frames_len(frames.len());
        let (prefix, encoded) = buffer[..len].split_at_mut(len - frames.len());
        prefix[0] = Self::TYPE;
        varint::write_into(frames.len() as u64, &mut prefix[1..]);
        encoded.copy_from_slice(frames);
        len
    }

    /// Bytes before the entries, with `frame_bytes` bytes of frames.
    #[must_use]
    pub const fn frames_len(frame_bytes: usize) -> usize {
        1 + varint::len(frame_bytes as u64) + frame_bytes
    }

    /// Bytes of an entry with a fragment of `fragment_bytes` bytes.
    #[must_use]
    pub const fn entry_len(fragment_bytes: usize) -> usize {
        DataHeader::LEN + varint::len(fragment_bytes as u64) + fragment_bytes
    }

    /// Writes an entry to the front of `buffer`, and returns its length. `write` writes the fragment, of
    /// `fragment_bytes` bytes, and returns its header.
    ///
    /// # Panics
    /// If `buffer` is shorter than the [entry](Self::entry_len).
    pub fn write_entry(buffer: &mut [u8], fragment_bytes: usize, write: impl FnOnce(&mut [u8]) -> DataHeader) -> usize {
        let len = Self::entry_len(fragment_bytes);
        let (prefix, fragment) = buffer[..len].split_at_mut(len - fragment_bytes);
        let header = write(fragment);
        prefix[..DataHeader::LEN].copy_from_slice(&header.to_bytes());
        varint::write_into(fragment_bytes as u64, &mut prefix[DataHeader::LEN..]);
        len
    }

    /// Decodes a body that begins with the type of bundles.
    ///
    /// # Errors
    /// `Truncated` if the frames are cut short.
    pub(super) fn parse(body: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(&body[1..]);
        let frame_bytes = reader.varint()? as usize;
        let frames = reader.0.get(..frame_bytes).ok_or(Malformed::Truncated)?;
        let offset = body.len() - reader.0.len() + frame_bytes;
        Ok(Self { frames: Frames(Reader(frames)), entries: Entries { body, offset, count: 0 } })
    }
}

/// Iterator over the entries of a bundle: header and place in the body. Ends at the end of the bytes, after
/// [`MAX_BUNDLE_ENTRIES`], or after the first error.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    body: &'a [u8],
    /// Offset of the next entry.
    offset: usize,
    /// Entries that were read.
    count: usize,
}

impl Entries<'_> {
    /// An entry is a whole inner packet, which has at least one byte.
    fn read(&mut self) -> Result<Option<(DataHeader, Range<usize>)>, Malformed> {
        let bytes = &self.body[self.offset..];
        if bytes.is_empty() || self.count == MAX_BUNDLE_ENTRIES {
            return Ok(None);
        }
        let (header, bytes) = DataHeader::parse(bytes)?;
        let mut reader = Reader(bytes);
        let len = reader.varint()? as usize;
        if len > reader.0.len() {
            return Err(Malformed::Truncated);
        }
        if len == 0 || !header.first || !header.last {
            return Err(Malformed::Value);
        }
        let start = self.body.len() - reader.0.len();
        (self.offset, self.count) = (start + len, self.count + 1);
        Ok(Some((header, start..start + len)))
    }
}

impl Iterator for Entries<'_> {
    type Item = Result<(DataHeader, Range<usize>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.read().transpose();
        if !matches!(entry, Some(Ok(_))) {
            self.offset = self.body.len();
        }
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Body, Frame};
    use super::*;

    fn whole(stream: u8) -> DataHeader {
        DataHeader { stream, sequence: 7, first: true, last: true, ..DataHeader::default() }
    }

    fn bundle(frames: &[u8], fragments: &[(DataHeader, &[u8])]) -> Vec<u8> {
        let mut body = vec![0; Bundle::frames_len(frames.len())];
        assert_eq!(Bundle::write_frames(&mut body, frames), body.len());
        for (header, fragment) in fragments {
            let start = body.len();
            body.resize(start + Bundle::entry_len(fragment.len()), 0);
            let write = |bytes: &mut [u8]| {
                bytes.copy_from_slice(fragment);
                *header
            };
            assert_eq!(Bundle::write_entry(&mut body[start..], fragment.len(), write), body.len() - start);
        }
        body
    }

    /// The entries before the first error, and the error.
    fn entries(body: &[u8]) -> (Vec<(u8, &[u8])>, Option<Malformed>) {
        let Ok(Body::Bundle(bundle)) = Body::parse(body) else { panic!("a bundle") };
        let mut error = None;
        let entry = |(header, range): (DataHeader, Range<usize>)| (header.stream, &body[range]);
        let entries = bundle.entries.map_while(|entry| entry.map_err(|found| error = Some(found)).ok());
        let entries = entries.map(entry).collect();
        (entries, error)
    }

    #[test]
    fn a_bundle_is_encoded_as_documented() {
        let long = [9; 64];
        let body = bundle(&[6], &[(whole(3), b"a"), (whole(4), &long)]);
        assert_eq!(body[..11], [0x50, 1, 6, 0x43, 3, 0, 0, 0, 7, 1, b'a']);
        assert_eq!(body[11..19], [0x43, 4, 0, 0, 0, 7, 0x40, 64]);
        let Ok(Body::Bundle(decoded)) = Body::parse(&body) else { panic!("a bundle") };
        assert_eq!(decoded.frames.collect::<Vec<_>>(), [Ok(Frame::Close)]);
        assert_eq!(entries(&body), (vec![(3, &b"a"[..]), (4, &long[..])], None));
    }

    #[test]
    fn an_entry_that_is_empty_cut_short_or_no_whole_packet_ends_a_bundle() {
        let part = DataHeader { last: false, ..whole(5) };
        for (second, expected) in [((whole(5), &b""[..]), Malformed::Value), ((part, b"b"), Malformed::Value)] {
            let body = bundle(&[], &[(whole(3), b"a"), second, (whole(4), b"c")]);
            assert_eq!(entries(&body), (vec![(3, &b"a"[..])], Some(expected)));
        }
        let body = bundle(&[], &[(whole(3), b"a"), (whole(4), b"four")]);
        for len in 11..body.len() {
            let (entries, error) = entries(&body[..len]);
            assert_eq!((entries.len(), error), (1, Some(Malformed::Truncated)), "{len}");
        }
        assert_eq!(Body::parse(&[0x50, 2, 6]).unwrap_err(), Malformed::Truncated, "frames that are cut short");
        assert_eq!(Body::parse(&[0x50]).unwrap_err(), Malformed::Truncated);
    }

    #[test]
    fn entries_after_the_64th_are_ignored() {
        let body = bundle(&[], &[(whole(3), &b"a"[..]); MAX_BUNDLE_ENTRIES + 1]);
        assert_eq!(entries(&body).0.len(), MAX_BUNDLE_ENTRIES);
    }
}

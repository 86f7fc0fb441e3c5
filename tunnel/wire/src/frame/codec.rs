//! Encoding and decoding of frames. Nothing is allocated, except when the caller's vector has to grow.

use super::{Ack, AckRanges, Bundle, DataHeader, Frame, PathName, PathState};
use crate::reader::Reader;
use crate::{Malformed, varint};

/// First byte of a data frame, and its bits.
mod data {
    pub(super) const TYPE: u8 = 0x40;
    pub(super) const FIRST: u8 = 1;
    pub(super) const LAST: u8 = 2;
    pub(super) const RETRANSMISSION: u8 = 4;
    pub(super) const OFFLOAD: u8 = 8;
    pub(super) const BITS: u8 = FIRST | LAST | RETRANSMISSION | OFFLOAD;
}

const PADDING: u8 = 0;
const ACK: u8 = 1;
const PING: u8 = 2;
const PONG: u8 = 3;
const REORDER_TIMEOUT: u8 = 4;
const PATH: u8 = 5;
const CLOSE: u8 = 6;
const PATH_NAME: u8 = 7;

/// The body of an opened datagram.
#[derive(Clone, Debug)]
pub enum Body<'a> {
    /// One fragment.
    Data(DataHeader, &'a [u8]),
    /// Control frames, read one by one.
    Control(Frames<'a>),
    /// Whole inner packets, and control frames.
    Bundle(Bundle<'a>),
}

impl<'a> Body<'a> {
    /// Parses a body, whose first byte distinguishes data from control. An empty body is control without frames.
    ///
    /// # Errors
    /// `Truncated` if a data header or the frames of a bundle are cut short, `Type` for a first byte above those of
    /// bundles.
    pub fn parse(body: &'a [u8]) -> Result<Self, Malformed> {
        match body.first() {
            None | Some(..data::TYPE) => Ok(Self::Control(Frames(Reader(body)))),
            Some(&Bundle::TYPE) => Bundle::parse(body).map(Self::Bundle),
            Some(_) => DataHeader::parse(body).map(|(header, fragment)| Self::Data(header, fragment)),
        }
    }
}

impl DataHeader {
    /// Bytes of the header.
    pub const LEN: usize = 6;

    /// Encodes the header.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        let bits = bit(self.first, data::FIRST)
            | bit(self.last, data::LAST)
            | bit(self.retransmission, data::RETRANSMISSION)
            | bit(self.offload, data::OFFLOAD);
        let [a, b, c, d] = self.sequence.to_be_bytes();
        [data::TYPE | bits, self.stream, a, b, c, d]
    }

    /// Decodes the header at the beginning of `body`; returns it with the fragment after it.
    ///
    /// # Errors
    /// `Truncated`, or `Type` if it is not a data frame.
    pub fn parse(body: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let ([kind, stream, sequence @ ..], fragment) = body.split_first_chunk::<6>().ok_or(Malformed::Truncated)?;
        if kind & !data::BITS != data::TYPE {
            return Err(Malformed::Type);
        }
        let header = Self {
            stream: *stream,
            sequence: u32::from_be_bytes(*sequence),
            first: kind & data::FIRST != 0,
            last: kind & data::LAST != 0,
            retransmission: kind & data::RETRANSMISSION != 0,
            offload: kind & data::OFFLOAD != 0,
        };
        Ok((header, fragment))
    }
}

impl Frame {
    /// Appends the frame to `buffer`. An [`Ack`] needs at least one range, and none of its ranges and gaps may be 0: a
    /// decoder would reject it.
    pub fn write(&self, buffer: &mut Vec<u8>) {
        match self {
            Self::Ack(ack) => ack.write(buffer),
            Self::Ping { token } => token_frame(PING, *token, buffer),
            Self::Pong { token } => token_frame(PONG, *token, buffer),
            Self::ReorderTimeout { micros } => {
                buffer.push(REORDER_TIMEOUT);
                buffer.extend_from_slice(&micros.to_be_bytes());
            }
            Self::Path { path, state } => buffer.extend_from_slice(&[PATH, *path, state.code()]),
            Self::Close => buffer.push(CLOSE),
            Self::PathName { path, name } => {
                let bytes = name.as_bytes();
                buffer.extend_from_slice(&[PATH_NAME, *path, bytes.len() as u8]);
                buffer.extend_from_slice(bytes);
            }
        }
    }

    /// Number of bytes that [`write`](Self::write) appends.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a frame is never empty")]
    pub fn len(&self) -> usize {
        match self {
            Self::Ack(ack) => ack.len(),
            Self::Ping { .. } | Self::Pong { .. } => 9,
            Self::ReorderTimeout { .. } => 5,
            Self::Path { .. } => 3,
            Self::Close => 1,
            Self::PathName { name, .. } => 3 + name.as_bytes().len(),
        }
    }
}

fn token_frame(kind: u8, token: u64, buffer: &mut Vec<u8>) {
    buffer.push(kind);
    buffer.extend_from_slice(&token.to_be_bytes());
}

impl PathState {
    fn code(self) -> u8 {
        match self {
            Self::Regular => 0,
            Self::Backup => 1,
            Self::Removed => 2,
            Self::Secondary => 3,
            Self::Metered => 4,
        }
    }

    fn from_code(code: u8) -> Result<Self, Malformed> {
        Self::ALL.get(usize::from(code)).copied().ok_or(Malformed::Value)
    }
}

impl Ack {
    fn write(&self, buffer: &mut Vec<u8>) {
        buffer.extend_from_slice(&[ACK, self.path]);
        buffer.extend_from_slice(&self.largest.to_be_bytes());
        buffer.extend_from_slice(&self.receive_timestamp_us.to_be_bytes());
        self.varints().for_each(|value| varint::write(value, buffer));
    }

    fn len(&self) -> usize {
        10 + self.varints().map(varint::len).sum::<usize>()
    }

    /// The fields of variable length, in their order. There is no gap after the oldest range.
    fn varints(&self) -> impl Iterator<Item = u64> + '_ {
        let lengths = self.ranges.iter().flat_map(|(length, gap)| [length, gap]).map(u64::from);
        let count = self.ranges.count;
        let first = [u64::from(self.ack_delay_us), u64::from(self.ce_count), count as u64];
        first.into_iter().chain(lengths.take((2 * count).saturating_sub(1)))
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            path: bytes.u8()?,
            largest: bytes.u32()?,
            receive_timestamp_us: bytes.u32()?,
            ack_delay_us: bytes.varint()?,
            ce_count: bytes.varint()?,
            ranges: AckRanges::read(bytes)?,
        })
    }
}

impl AckRanges {
    /// Decodes ranges. They must span less than half of the number space, or older and newer ones could not be
    /// distinguished.
    fn read(bytes: &mut Reader<'_>) -> Result<Self, Malformed> {
        let count = bytes.varint()?;
        let mut ranges = Self::default();
        let mut span = 0_u64;
        let mut read_positive = || {
            let value = bytes.varint()?;
            span += u64::from(value);
            if value == 0 || span >= 1 << 31 { Err(Malformed::Value) } else { Ok(value) }
        };
        for index in 0..count.max(1) {
            let gap = if index == 0 { 0 } else { read_positive()? };
            if count == 0 || !ranges.push(gap, read_positive()?) {
                return Err(Malformed::Value);
            }
        }
        Ok(ranges)
    }
}

/// Iterator over the control frames of a body. Ends at padding, at the end of the bytes, or after the first error.
#[derive(Clone, Debug)]
pub struct Frames<'a>(pub(super) Reader<'a>);

impl Frames<'_> {
    fn read(&mut self) -> Result<Option<Frame>, Malformed> {
        let bytes = &mut self.0;
        let Ok(kind) = bytes.u8() else { return Ok(None) };
        Ok(Some(match kind {
            PADDING => return Ok(None),
            ACK => Frame::Ack(Ack::read(bytes)?),
            PING => Frame::Ping { token: bytes.u64()? },
            PONG => Frame::Pong { token: bytes.u64()? },
            REORDER_TIMEOUT => Frame::ReorderTimeout { micros: bytes.u32()? },
            PATH => Frame::Path { path: bytes.u8()?, state: PathState::from_code(bytes.u8()?)? },
            CLOSE => Frame::Close,
            PATH_NAME => Frame::PathName { path: bytes.u8()?, name: PathName::read(bytes)? },
            _ => return Err(Malformed::Type),
        }))
    }
}

impl Iterator for Frames<'_> {
    type Item = Result<Frame, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let frame = self.read().transpose();
        if !matches!(frame, Some(Ok(_))) {
            self.0 = Reader(&[]);
        }
        frame
    }
}

#[cfg(test)]
mod tests;

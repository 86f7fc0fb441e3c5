//! Frames to bytes and back. Nothing is allocated but by the vector that the caller lends, if it is short.

use super::{Ack, DataHeader, Frame, PathState, Ranges};
use crate::reader::Reader;
use crate::{Malformed, varint};

/// First byte of a piece of data, with its bits.
mod data {
    pub(super) const TYPE: u8 = 0x40;
    pub(super) const FIRST: u8 = 1;
    pub(super) const LAST: u8 = 2;
    pub(super) const AGAIN: u8 = 4;
    pub(super) const OFFLOAD: u8 = 8;
    pub(super) const BITS: u8 = FIRST | LAST | AGAIN | OFFLOAD;
}

const PADDING: u8 = 0;
const ACK: u8 = 1;
const PING: u8 = 2;
const PONG: u8 = 3;
const HOLD: u8 = 4;
const PATH: u8 = 5;
const CLOSE: u8 = 6;

/// What an opened datagram carries.
#[derive(Clone, Debug)]
pub enum Body<'a> {
    /// One piece of data.
    Data(DataHeader, &'a [u8]),
    /// Control frames, read one by one.
    Control(Frames<'a>),
}

impl<'a> Body<'a> {
    /// Tells data from control by the first byte. An empty body is control without frames.
    ///
    /// # Errors
    /// `Truncated` if a piece's header is cut short, `Type` for a first byte above those of data.
    pub fn parse(body: &'a [u8]) -> Result<Self, Malformed> {
        match body.first() {
            None | Some(..data::TYPE) => Ok(Self::Control(Frames(Reader(body)))),
            Some(_) => DataHeader::parse(body).map(|(header, piece)| Self::Data(header, piece)),
        }
    }
}

impl DataHeader {
    /// Bytes of the header.
    pub const LEN: usize = 6;

    /// The header as bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        let bits = bit(self.first, data::FIRST)
            | bit(self.last, data::LAST)
            | bit(self.again, data::AGAIN)
            | bit(self.offload, data::OFFLOAD);
        let [a, b, c, d] = self.sequence.to_be_bytes();
        [data::TYPE | bits, self.stream, a, b, c, d]
    }

    /// The header that `body` begins with, and the piece after it.
    ///
    /// # Errors
    /// `Truncated`, or `Type` if this is no data.
    pub fn parse(body: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let ([kind, stream, sequence @ ..], piece) = body.split_first_chunk::<6>().ok_or(Malformed::Truncated)?;
        if kind & !data::BITS != data::TYPE {
            return Err(Malformed::Type);
        }
        let header = Self {
            stream: *stream,
            sequence: u32::from_be_bytes(*sequence),
            first: kind & data::FIRST != 0,
            last: kind & data::LAST != 0,
            again: kind & data::AGAIN != 0,
            offload: kind & data::OFFLOAD != 0,
        };
        Ok((header, piece))
    }
}

impl Frame {
    /// Appends the frame. An [`Ack`] must tell at least one run, and no run or gap of 0: a reader would refuse it.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Ack(ack) => ack.write(out),
            Self::Ping { token } => token_frame(PING, *token, out),
            Self::Pong { token } => token_frame(PONG, *token, out),
            Self::Hold { wait_us } => {
                out.push(HOLD);
                out.extend_from_slice(&wait_us.to_be_bytes());
            }
            Self::Path { path, state } => out.extend_from_slice(&[PATH, *path, state.code()]),
            Self::Close => out.push(CLOSE),
        }
    }

    /// Bytes that [`write`](Self::write) appends.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a frame is never empty")]
    pub fn len(&self) -> usize {
        match self {
            Self::Ack(ack) => ack.len(),
            Self::Ping { .. } | Self::Pong { .. } => 9,
            Self::Hold { .. } => 5,
            Self::Path { .. } => 3,
            Self::Close => 1,
        }
    }
}

fn token_frame(kind: u8, token: u64, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(&token.to_be_bytes());
}

impl PathState {
    fn code(self) -> u8 {
        match self {
            Self::Regular => 0,
            Self::Backup => 1,
            Self::Gone => 2,
        }
    }

    fn from_code(code: u8) -> Result<Self, Malformed> {
        [Self::Regular, Self::Backup, Self::Gone].get(usize::from(code)).copied().ok_or(Malformed::Value)
    }
}

impl Ack {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[ACK, self.path]);
        out.extend_from_slice(&self.largest.to_be_bytes());
        out.extend_from_slice(&self.arrived_us.to_be_bytes());
        self.varints().for_each(|value| varint::write(value, out));
    }

    fn len(&self) -> usize {
        10 + self.varints().map(varint::len).sum::<usize>()
    }

    /// All that has a variable length, in its order. After the oldest run nothing is missing, and nothing is told.
    fn varints(&self) -> impl Iterator<Item = u64> + '_ {
        let runs = self.ranges.iter().flat_map(|(arrived, missing)| [arrived, missing]).map(u64::from);
        let count = self.ranges.count;
        let first = [u64::from(self.delay_us), u64::from(self.marked), count as u64];
        first.into_iter().chain(runs.take((2 * count).saturating_sub(1)))
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            path: bytes.u8()?,
            largest: bytes.u32()?,
            arrived_us: bytes.u32()?,
            delay_us: bytes.varint()?,
            marked: bytes.varint()?,
            ranges: Ranges::read(bytes)?,
        })
    }
}

impl Ranges {
    /// Together they may span less than half of the number space, or older and newer could not be told apart.
    fn read(bytes: &mut Reader<'_>) -> Result<Self, Malformed> {
        let count = bytes.varint()?;
        let mut ranges = Self::default();
        let mut span = 0_u64;
        let mut positive = || {
            let value = bytes.varint()?;
            span += u64::from(value);
            if value == 0 || span >= 1 << 31 { Err(Malformed::Value) } else { Ok(value) }
        };
        for place in 0..count.max(1) {
            let missing = if place == 0 { 0 } else { positive()? };
            if count == 0 || !ranges.push(missing, positive()?) {
                return Err(Malformed::Value);
            }
        }
        Ok(ranges)
    }
}

/// The control frames of a body, in order. Ends at padding, at the end of the bytes, or after the first error.
#[derive(Clone, Debug)]
pub struct Frames<'a>(Reader<'a>);

impl Frames<'_> {
    fn read(&mut self) -> Result<Option<Frame>, Malformed> {
        let bytes = &mut self.0;
        let Ok(kind) = bytes.u8() else { return Ok(None) };
        Ok(Some(match kind {
            PADDING => return Ok(None),
            ACK => Frame::Ack(Ack::read(bytes)?),
            PING => Frame::Ping { token: bytes.u64()? },
            PONG => Frame::Pong { token: bytes.u64()? },
            HOLD => Frame::Hold { wait_us: bytes.u32()? },
            PATH => Frame::Path { path: bytes.u8()?, state: PathState::from_code(bytes.u8()?)? },
            CLOSE => Frame::Close,
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

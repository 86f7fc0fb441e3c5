//! The application on top of a flow: greedy, at a constant rate, answering requests, or sending a video.
//!
//! TCP moves segments; their payload is known here. All segments of a message are full but its last one.

mod client;
mod video;

pub(crate) use client::{Client, RequestKind};
pub(crate) use video::Video;

use scenario::model;
use units::{Instant, Rate, RngStream};

/// The application of a flow.
#[derive(Debug)]
pub(crate) enum Application {
    /// Writes everything when the connection opens.
    Greedy,
    /// Writes at a constant rate.
    Steady(Writer),
    /// Responds to a client's requests.
    Requests(Box<Client>),
    /// Sends a video.
    Video(Box<Video>),
    /// Sends what a relay has received.
    Relayed,
}

impl Application {
    pub(crate) fn new(application: &model::Application, flow: &str, start: Instant, mss: u32, seed: u64) -> Self {
        match application {
            model::Application::Greedy => Self::Greedy,
            model::Application::Steady { rate, write } => {
                Self::Steady(Writer::new(start, *rate, write.unwrap_or(u64::from(mss))))
            }
            model::Application::Requests(requests) => {
                Self::Requests(Box::new(Client::new(*requests, start, model::Requests::random_stream(seed, flow))))
            }
            model::Application::Video(video) => {
                let rng = RngStream::named(seed, &format!("flow {flow} video"));
                Self::Video(Box::new(Video::new(video, start, mss, rng)))
            }
        }
    }

    /// The time of the next write, which may be in the past.
    pub(crate) fn due(&self, message: &Message) -> Instant {
        match self {
            Self::Steady(writer) => writer.due(message),
            Self::Video(video) => video.due(),
            Self::Greedy | Self::Requests(_) | Self::Relayed => Instant::NEVER,
        }
    }

    /// Writes what is due. Returns the segments, and the bytes that the last one lacks.
    pub(crate) fn write(&mut self, now: Instant, message: &Message) -> Option<(u64, u32)> {
        match self {
            Self::Steady(writer) => writer.write(now, message),
            Self::Video(video) => video.write(now),
            Self::Greedy | Self::Requests(_) | Self::Relayed => None,
        }
    }

    /// The flow stops.
    pub(crate) fn stop(&mut self, now: Instant) {
        match self {
            Self::Requests(client) => client.stop(),
            Self::Video(video) => video.stop(now),
            Self::Greedy | Self::Steady(_) | Self::Relayed => {}
        }
    }

    /// Bytes that a segment carries.
    #[inline]
    pub(crate) fn payload(&self, message: &Message, segment: u64) -> u32 {
        match self {
            Self::Video(video) => video.payload(segment),
            _ => message.payload(segment),
        }
    }

    /// Bytes of the message being sent that precede a segment, all of which have been delivered.
    pub(crate) fn bytes_below(&self, message: &Message, segment: u64) -> u64 {
        match self {
            Self::Video(video) => video.bytes_below(segment),
            _ => message.bytes_below(segment),
        }
    }
}

/// A message: bytes that an application sends as one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    /// Number of the first segment.
    pub first: u64,
    /// The length, bytes; none if it is endless.
    pub bytes: Option<u64>,
    mss: u64,
}

impl Message {
    pub(crate) fn new(first: u64, bytes: Option<u64>, mss: u32) -> Self {
        Self { first, bytes, mss: u64::from(mss) }
    }

    /// Number of segments.
    pub(crate) fn segments(&self) -> u64 {
        self.bytes.map_or(u64::MAX, |bytes| bytes.div_ceil(self.mss))
    }

    /// Number of the segment after the last.
    pub(crate) fn end(&self) -> u64 {
        self.first.saturating_add(self.segments())
    }

    /// Bytes that the last segment lacks to a full one.
    pub(crate) fn lacking(&self) -> u32 {
        self.bytes.map_or(0, |bytes| (bytes.next_multiple_of(self.mss) - bytes) as u32)
    }

    /// Bytes that a segment carries. (Of an earlier message only retransmissions are still sent; they count as full.)
    pub(crate) fn payload(&self, segment: u64) -> u32 {
        let remaining = self.bytes.map(|bytes| bytes.saturating_sub(segment.saturating_sub(self.first) * self.mss));
        remaining.map_or(self.mss, |bytes| bytes.min(self.mss)) as u32
    }

    /// Bytes of the message that precede a segment.
    pub(crate) fn bytes_below(&self, segment: u64) -> u64 {
        let bytes = segment.saturating_sub(self.first) * self.mss;
        self.bytes.map_or(bytes, |total| total.min(bytes))
    }
}

/// Writes at a constant rate. Bytes that do not fill a segment wait for the next write (Nagle's algorithm, RFC 896).
#[derive(Debug)]
pub(crate) struct Writer {
    start: Instant,
    rate: Rate,
    /// Size of a write, bytes.
    write_bytes: u64,
    writes: u64,
    /// Segments passed to TCP.
    segments: u64,
}

impl Writer {
    fn new(start: Instant, rate: Rate, write_bytes: u64) -> Self {
        Self { start, rate, write_bytes, writes: 0, segments: 0 }
    }

    /// The time of the next write; never, once all of the message is written.
    pub(crate) fn due(&self, message: &Message) -> Instant {
        let written = self.writes * self.write_bytes;
        match message.bytes {
            Some(bytes) if written >= bytes => Instant::NEVER,
            _ => self.start + self.rate.time_for(written),
        }
    }

    /// Writes what is due. Returns the segments that this fills, and the bytes that the last one lacks.
    pub(crate) fn write(&mut self, now: Instant, message: &Message) -> Option<(u64, u32)> {
        while self.due(message) <= now {
            self.writes += 1;
        }
        let written = self.writes * self.write_bytes;
        let (segments, lacking) = match message.bytes {
            Some(bytes) if written >= bytes => (message.segments(), message.lacking()),
            _ => (written / message.mss, 0),
        };
        let new_segments = segments - std::mem::replace(&mut self.segments, segments);
        (new_segments > 0).then_some((new_segments, lacking))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Span;

    #[test]
    fn a_message_is_as_long_as_its_bytes() {
        let message = Message::new(7, Some(2500), 1000);
        assert_eq!((message.segments(), message.end(), message.lacking()), (3, 10, 500));
        assert_eq!([6, 7, 8, 9].map(|segment| message.payload(segment)), [1000, 1000, 1000, 500]);
        assert_eq!([7, 9, 10, 11].map(|segment| message.bytes_below(segment)), [0, 2000, 2500, 2500]);
        let whole = Message::new(0, Some(3000), 1000);
        assert_eq!((whole.segments(), whole.lacking(), whole.payload(2)), (3, 0, 1000));
        let endless = Message::new(0, None, 1000);
        assert_eq!((endless.end(), endless.payload(1 << 40), endless.bytes_below(5)), (u64::MAX, 1000, 5000));
    }

    #[test]
    fn writes_keep_to_the_rate_and_fill_segments() {
        // 1200 bytes every 1.2 ms: five writes make six segments of 1000 bytes.
        let (message, start) = (Message::new(0, None, 1000), Instant(5_000_000));
        let mut writer = Writer::new(start, Rate::from_mbit(8), 1200);
        assert_eq!(writer.due(&message), start);
        let mut written = Vec::new();
        for step in 0..5 {
            let now = start + Span::from_micros(1200) * step;
            assert_eq!(writer.due(&message), now);
            written.push(writer.write(now, &message).map(|(segments, _)| segments));
        }
        assert_eq!(written, [Some(1), Some(1), Some(1), Some(1), Some(2)]);
    }

    #[test]
    fn a_sized_flow_stops_writing_and_sends_its_short_end() {
        let message = Message::new(0, Some(2500), 1000);
        let mut writer = Writer::new(Instant::ZERO, Rate::from_mbit(8), 1000);
        let written = writer.write(Instant::ZERO + Span::from_secs(1), &message);
        assert_eq!((written, writer.due(&message)), (Some((3, 500)), Instant::NEVER));
        assert_eq!(writer.write(Instant::ZERO + Span::from_secs(2), &message), None);
    }
}

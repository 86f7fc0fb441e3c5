//! The lines of a connection. The server greets with a nonce; each request of the client ends with a keyed hash over that
//! nonce, the number of the request on this connection, and the request.

use crate::token::{Token, hex, random, unhex};
use measured::Direction;
use std::io::{self, Read, Write};

/// The longest request and greeting, bytes.
const MAX_LEN: usize = 256;
/// The longest report, bytes.
pub(crate) const MAX_REPORT: usize = 8 << 20;
const GREETING: &str = "ropewalk-probe 1 ";

/// What a client asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// A session, on the connection that controls it.
    Open,
    /// A flow: this connection carries it.
    Flow(FlowRequest),
    /// The server's report of a flow of this session.
    Report(u32),
    /// Which datagrams of a stream of this session came.
    Arrivals(u32),
}

/// A TCP flow that the client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FlowRequest {
    pub(crate) session: u64,
    /// The number of the flow, by which its report is asked for.
    pub(crate) flow: u32,
    /// As the client sees it.
    pub(crate) direction: Direction,
    /// The longest time, milliseconds.
    pub(crate) millis: u64,
    /// The most payload, bytes.
    pub(crate) bytes: u64,
    /// The congestion control of a server that sends.
    pub(crate) congestion: String,
}

impl Request {
    pub(crate) fn encode(&self) -> String {
        match self {
            Self::Open => "open".to_owned(),
            Self::Report(flow) => format!("report {flow}"),
            Self::Arrivals(stream) => format!("arrivals {stream}"),
            Self::Flow(flow) => format!(
                "{} {:016x} {} {} {} {}",
                flow.direction.name(),
                flow.session,
                flow.flow,
                flow.millis,
                flow.bytes,
                flow.congestion
            ),
        }
    }

    pub(crate) fn decode(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["open"] => Some(Self::Open),
            ["report", flow] => Some(Self::Report(flow.parse().ok()?)),
            ["arrivals", stream] => Some(Self::Arrivals(stream.parse().ok()?)),
            [direction, session, flow, millis, bytes, congestion] => {
                let direction = Direction::ALL.into_iter().find(|known| known.name() == direction)?;
                let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
                if congestion.len() > 15 || !congestion.bytes().all(is_name) {
                    return None;
                }
                Some(Self::Flow(FlowRequest {
                    session: u64::from_be_bytes(unhex(session)?),
                    flow: flow.parse().ok()?,
                    direction,
                    millis: millis.parse().ok()?,
                    bytes: bytes.parse().ok()?,
                    congestion: congestion.to_owned(),
                }))
            }
            _ => None,
        }
    }
}

/// The nonce of a connection, and how many requests it has carried.
#[derive(Debug)]
pub(crate) struct Requests {
    nonce: [u8; 16],
    count: u64,
}

impl Requests {
    /// The server greets.
    pub(crate) fn greet(stream: &mut impl Write) -> io::Result<Self> {
        let nonce = random()?;
        stream.write_all(format!("{GREETING}{}\n", hex(&nonce)).as_bytes())?;
        Ok(Self { nonce, count: 0 })
    }

    /// The client reads the greeting.
    pub(crate) fn read_greeting(stream: &mut impl Read) -> io::Result<Self> {
        let line = read_line(stream, MAX_LEN)?;
        let nonce = line.strip_prefix(GREETING).and_then(unhex);
        let nonce = nonce.ok_or_else(|| io::Error::other("the other end is no `ropewalk probe --serve`"))?;
        Ok(Self { nonce, count: 0 })
    }

    /// The client asks.
    pub(crate) fn send(&mut self, stream: &mut impl Write, token: &Token, request: &Request) -> io::Result<()> {
        let line = request.encode();
        let mac = token.mac(&[&self.nonce, &self.count.to_be_bytes(), line.as_bytes()]);
        self.count += 1;
        stream.write_all(format!("{line} {}\n", hex(&mac)).as_bytes())
    }

    /// The server reads the next request.
    ///
    /// # Errors
    ///
    /// The connection ended, the line is longer than any request, or is not of a client that knows the token.
    pub(crate) fn receive(&mut self, stream: &mut impl Read, token: &Token) -> io::Result<Request> {
        let line = read_line(stream, MAX_LEN)?;
        let (request, mac) = line.rsplit_once(' ').unwrap_or_default();
        let parts: [&[u8]; 3] = [&self.nonce, &self.count.to_be_bytes(), request.as_bytes()];
        let is_authentic = unhex::<32>(mac).is_some_and(|mac| token.verifies(&parts, &mac));
        self.count += 1;
        let request = is_authentic.then(|| Request::decode(request)).flatten();
        request.ok_or_else(|| io::Error::other("the token is another one"))
    }
}

/// The server's answer: `ok` with text, or `no` with the reason.
pub(crate) fn answer(stream: &mut impl Write, answer: &Result<String, String>) -> io::Result<()> {
    let line = match answer {
        Ok(text) => format!("ok {text}\n"),
        Err(reason) => format!("no {reason}\n"),
    };
    stream.write_all(line.as_bytes())
}

/// Reads an answer of at most `max_len` bytes: its text, or the reason of the refusal.
pub(crate) fn read_answer(stream: &mut impl Read, max_len: usize) -> io::Result<String> {
    let line = read_line(stream, max_len)?;
    match line.split_once(' ') {
        Some(("ok", text)) => Ok(text.to_owned()),
        Some(("no", reason)) => Err(io::Error::other(format!("the other end refuses: {reason}"))),
        _ => Err(io::Error::other("the other end gives no answer that is known")),
    }
}

/// The next line without its end. A byte is read at a time, because bytes of a flow may follow.
fn read_line(stream: &mut impl Read, max_len: usize) -> io::Result<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() < max_len {
        stream.read_exact(&mut byte)?;
        match byte[0] {
            b'\n' => return String::from_utf8(line).map_err(io::Error::other),
            byte => line.push(byte),
        }
    }
    Err(io::Error::other("the line is too long"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow() -> FlowRequest {
        FlowRequest {
            session: u64::MAX - 1,
            flow: 7,
            direction: Direction::Down,
            millis: 8000,
            bytes: 1 << 40,
            congestion: "rw_discern".to_owned(),
        }
    }

    #[test]
    fn requests_are_read_as_they_were_written_and_no_other_line_is_one() {
        for request in [Request::Open, Request::Report(3), Request::Arrivals(u32::MAX), Request::Flow(flow())] {
            assert_eq!(Request::decode(&request.encode()), Some(request));
        }
        for line in ["", "open 1", "report", "report -1", "down 1 1 1 1 cubic", "up 000000000000000a 1 1 1 a/b"] {
            assert_eq!(Request::decode(line), None, "{line}");
        }
    }

    #[test]
    fn a_request_counts_once_and_with_the_token_only() {
        let [token, other] = ["0123456789abcdef", "fedcba9876543210"].map(|text| Token::new(text).unwrap());
        let mut greeting = Vec::new();
        let mut server = Requests::greet(&mut greeting).unwrap();
        let mut client = Requests::read_greeting(&mut &greeting[..]).unwrap();
        let mut line = Vec::new();
        client.send(&mut line, &token, &Request::Report(1)).unwrap();
        assert_eq!(server.receive(&mut &line[..], &token).unwrap(), Request::Report(1));
        assert!(server.receive(&mut &line[..], &token).is_err(), "replayed");
        let mut forged = Vec::new();
        client.send(&mut forged, &other, &Request::Open).unwrap();
        assert!(server.receive(&mut &forged[..], &token).is_err());
    }

    /// Lines of words that requests are made of, and of any bytes.
    #[test]
    fn no_line_of_a_stranger_panics_or_is_a_request() {
        let token = Token::new("0123456789abcdef").unwrap();
        let mut random = units::RngStream::named(1, "lines");
        let words =
            ["open", "report", "arrivals", "up", "down", "0123456789abcdef", "7", "-1", "cubic", "\u{fffd}", ""];
        for _ in 0..10_000 {
            let count = random.below(9);
            let mut line: Vec<u8> = Vec::new();
            for _ in 0..count {
                line.extend(words[random.below(words.len() as u64) as usize].bytes());
                line.push(if random.chance(0.9) { b' ' } else { random.bits() as u8 });
            }
            line.push(b'\n');
            let mut requests = Requests::greet(&mut Vec::new()).unwrap();
            assert!(requests.receive(&mut &line[..], &token).is_err());
            let _ = Request::decode(&String::from_utf8_lossy(&line));
        }
    }

    #[test]
    fn a_line_without_an_end_is_refused_at_its_bound() {
        assert!(read_line(&mut std::io::repeat(b'a'), MAX_LEN).is_err());
        assert!(read_line(&mut &b"no end"[..], MAX_LEN).is_err());
    }
}

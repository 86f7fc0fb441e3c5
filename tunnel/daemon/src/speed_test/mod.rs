//! The speed test between two daemons, inside the tunnel: TCP and UDP port [`PORT`] on the tunnel's device.
//!
//! A connection begins with a line: `ropewalk-test 1 ID WHAT SECONDS`. `hold` is answered by `ok` and keeps the test open
//! until the connection ends. With the same ID, `down` is answered by as many bytes as pass in that time, and `up` by a
//! [`Progress`] every 100 ms while bytes are taken. `about` is answered by a line with the host's name and the daemon's
//! version. During the test, datagrams that begin with the ID are sent back. Any other line is answered by a line with the reason, such as `busy`. Each peer has at most one test at a time.

mod responder;

pub use responder::{MAX_PHASE, MAX_STREAMS, Responder};

/// The port of both protocols.
pub const PORT: u16 = 4755;
/// The interval at which the receiver of `up` reports.
pub const PROGRESS_INTERVAL: std::time::Duration = std::time::Duration::from_millis(100);

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The test itself.
    Hold,
    /// Bytes to the client.
    Down,
    /// Bytes from the client.
    Up,
    /// The version and the name of the other host.
    About,
}

/// The first line of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The test, a number drawn by the client.
    pub id: u64,
    /// The purpose of the connection.
    pub what: What,
    /// Duration of the transfer, seconds.
    pub seconds: u64,
}

/// The number of bytes that arrived within a time since the first of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Time, microseconds.
    pub elapsed_us: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Hello {
    /// The line, with its end.
    #[must_use]
    pub fn encode(&self) -> String {
        let what = match self.what {
            What::Hold => "hold",
            What::Down => "down",
            What::Up => "up",
            What::About => "about",
        };
        format!("ropewalk-test 1 {:016x} {what} {}\n", self.id, self.seconds)
    }

    /// The line without its end; `None` if it is another.
    #[must_use]
    pub fn decode(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        let ["ropewalk-test", "1", id, what, seconds] = words[..] else { return None };
        let what = match what {
            "hold" => What::Hold,
            "down" => What::Down,
            "up" => What::Up,
            "about" => What::About,
            _ => return None,
        };
        Some(Self { id: u64::from_str_radix(id, 16).ok()?, what, seconds: seconds.parse().ok()? })
    }
}

impl Progress {
    /// Length on the wire, bytes.
    pub const LEN: usize = 16;

    /// Both numbers, big-endian.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::LEN] {
        (u128::from(self.elapsed_us) << 64 | u128::from(self.bytes)).to_be_bytes()
    }

    /// The inverse of [`Progress::encode`].
    #[must_use]
    pub fn decode(bytes: [u8; Self::LEN]) -> Self {
        let both = u128::from_be_bytes(bytes);
        Self { elapsed_us: (both >> 64) as u64, bytes: both as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hello_and_progress_are_read_as_they_were_written_and_no_other_line_is_a_hello() {
        for what in [What::Hold, What::Down, What::Up, What::About] {
            let hello = Hello { id: u64::MAX - 1, what, seconds: 7 };
            assert_eq!(Hello::decode(hello.encode().trim_end()), Some(hello));
        }
        let progress = Progress { elapsed_us: 1, bytes: u64::MAX };
        assert_eq!(Progress::decode(progress.encode()), progress);
        for line in
            ["", "ropewalk-test 2 1 up 1", "ropewalk-test 1 1 up", "ropewalk-test 1 g up 1", "ropewalk-test 1 1 up -1"]
        {
            assert_eq!(Hello::decode(line), None, "{line}");
        }
    }
}

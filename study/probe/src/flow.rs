//! One TCP flow, as its sender and as its receiver. The receiver keeps the time: it closes the connection at the end.

use serde::{Deserialize, Serialize};
use sock_diag::SockDiag;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The length of an interval of goodput.
pub(crate) const INTERVAL: Duration = Duration::from_millis(100);
/// Time between two looks at `TCP_INFO`.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(50);
/// The longest wait for the first byte, and for the receiver's end of the flow after its time.
pub(crate) const GRACE: Duration = Duration::from_secs(10);
/// What a sender keeps unsent in its socket, bytes: more would only delay the end.
const NOT_SENT: u32 = 1 << 17;
const BLOCK_LEN: usize = 1 << 16;
/// The most intervals from the start of one flow to that of another one at the same time: the other end tells both.
const MAX_APART: usize = 1000;

/// The bounds of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) time: Duration,
    /// Payload.
    pub(crate) bytes: u64,
}

/// What the sender of a flow tells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SenderReport {
    /// The congestion control, as the kernel names it.
    pub(crate) congestion: String,
    /// Time, seconds, and smoothed RTT, milliseconds.
    pub(crate) rtt: Vec<(f64, f64)>,
    pub(crate) sent_segments: Option<u64>,
    pub(crate) retransmitted_segments: Option<u64>,
    pub(crate) mss_bytes: Option<u64>,
}

/// What the receiver of a flow tells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReceiverReport {
    /// The first byte, seconds since a time that is the same for all flows of a session.
    #[serde(default)]
    pub(crate) start_s: f64,
    /// From the first byte to the last one.
    pub(crate) seconds: f64,
    pub(crate) bytes: u64,
    /// Bytes in each whole [`INTERVAL`] since the first byte.
    pub(crate) intervals: Vec<u64>,
}

impl SenderReport {
    /// The report of two flows at the same time.
    pub(crate) fn combined_with(mut self, other: Self) -> Self {
        let sum = |one: Option<u64>, other: Option<u64>| Some(one?.saturating_add(other?));
        self.sent_segments = sum(self.sent_segments, other.sent_segments);
        self.retransmitted_segments = sum(self.retransmitted_segments, other.retransmitted_segments);
        self.rtt.extend(other.rtt);
        self.rtt.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        self
    }
}

impl ReceiverReport {
    /// The report of two flows at the same time.
    pub(crate) fn combined_with(self, other: &Self) -> Self {
        let start_s = self.start_s.min(other.start_s);
        let end_s = (self.start_s + self.seconds).max(other.start_s + other.seconds);
        let mut intervals = Vec::new();
        for report in [&self, other] {
            let after = ((report.start_s - start_s) / INTERVAL.as_secs_f64()).round() as usize;
            let first = after.min(MAX_APART);
            intervals.resize(intervals.len().max(first + report.intervals.len()), 0_u64);
            let sums = intervals[first..].iter_mut().zip(&report.intervals);
            sums.for_each(|(sum, bytes)| *sum = sum.saturating_add(*bytes));
        }
        Self { start_s, seconds: end_s - start_s, bytes: self.bytes.saturating_add(other.bytes), intervals }
    }
}

/// What an end tells of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FlowReport {
    Sender(SenderReport),
    Receiver(ReceiverReport),
}

/// Sends until the receiver closes the connection, or the bounds are reached.
pub(crate) fn send(mut stream: TcpStream, bounds: Bounds) -> io::Result<SenderReport> {
    let socket = socket2::SockRef::from(&stream);
    socket.set_tcp_notsent_lowat(NOT_SENT)?;
    let congestion = String::from_utf8_lossy(&socket.tcp_congestion()?).trim_end_matches('\0').to_owned();
    stream.set_write_timeout(Some(bounds.time + GRACE))?;
    stream.set_read_timeout(Some(bounds.time + GRACE))?;
    let is_done = AtomicBool::new(false);
    let watched = stream.try_clone()?;
    thread::scope(|scope| {
        let sampler = scope.spawn(|| sample(&watched, &is_done));
        let written = write_all(&mut stream, bounds);
        if written == bounds.bytes {
            let _ = stream.shutdown(Shutdown::Write);
        }
        // The receiver's end: it sends nothing else.
        let _ = stream.read(&mut [0]);
        is_done.store(true, Ordering::Relaxed);
        let report = sampler.join().unwrap_or_default();
        Ok(SenderReport { congestion, ..report })
    })
}

/// Writes until the bounds or an error; returns the bytes.
fn write_all(stream: &mut TcpStream, bounds: Bounds) -> u64 {
    let block = vec![0; BLOCK_LEN];
    let end = Instant::now() + bounds.time + GRACE;
    let mut written = 0;
    while written < bounds.bytes && Instant::now() < end {
        let length = (bounds.bytes - written).min(BLOCK_LEN as u64) as usize;
        match stream.write(&block[..length]) {
            Ok(count) if count > 0 => written += count as u64,
            _ => break,
        }
    }
    written
}

/// Looks at `TCP_INFO` until the flow is done. A kernel that does not tell gives an empty report.
fn sample(stream: &TcpStream, is_done: &AtomicBool) -> SenderReport {
    let mut report = SenderReport::default();
    let (Ok(local), Ok(remote), Ok(mut kernel)) = (stream.local_addr(), stream.peer_addr(), SockDiag::new()) else {
        return report;
    };
    let start = Instant::now();
    while !is_done.load(Ordering::Relaxed) {
        if let Ok(Some(found)) = kernel.find(local, remote) {
            let info = found.info;
            report.rtt.push((start.elapsed().as_secs_f64(), f64::from(info.rtt) / 1e3));
            report.sent_segments = Some(info.data_segs_out.into());
            report.retransmitted_segments = Some(info.total_retrans.into());
            report.mss_bytes = Some(info.snd_mss.into());
        }
        thread::sleep(SAMPLE_INTERVAL);
    }
    report
}

/// Receives until the sender's end or the bounds, and closes the connection.
pub(crate) fn receive(mut stream: TcpStream, bounds: Bounds, epoch: Instant) -> io::Result<ReceiverReport> {
    stream.set_read_timeout(Some(GRACE))?;
    let mut block = vec![0; BLOCK_LEN];
    // The time begins with one byte, so that no more than that came before it.
    let mut arrivals = Arrivals { bytes: stream.read(&mut block[..1])? as u64, ..Arrivals::default() };
    let start = Instant::now();
    let start_s = start.duration_since(epoch).as_secs_f64();
    let mut elapsed = Duration::ZERO;
    while arrivals.bytes < bounds.bytes {
        let left = bounds.time.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Ok(arrivals.report(start_s, bounds.time));
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut block) {
            Ok(0) => break,
            Ok(count) => {
                elapsed = start.elapsed().min(bounds.time);
                arrivals.add(elapsed, count as u64);
            }
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(arrivals.report(start_s, elapsed))
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// Bytes that arrived, by interval.
#[derive(Debug, Default)]
struct Arrivals {
    bytes: u64,
    /// Bytes in the intervals that have ended.
    counted: u64,
    intervals: Vec<u64>,
}

impl Arrivals {
    fn add(&mut self, elapsed: Duration, bytes: u64) {
        self.end_intervals(elapsed);
        self.bytes += bytes;
    }

    /// Ends the intervals before a time. What is not counted yet came in the first of them.
    fn end_intervals(&mut self, elapsed: Duration) {
        let ended = (elapsed.as_nanos() / INTERVAL.as_nanos()) as usize;
        while self.intervals.len() < ended {
            self.intervals.push(self.bytes - self.counted);
            self.counted = self.bytes;
        }
    }

    fn report(mut self, start_s: f64, elapsed: Duration) -> ReceiverReport {
        self.end_intervals(elapsed);
        ReceiverReport { start_s, seconds: elapsed.as_secs_f64(), bytes: self.bytes, intervals: self.intervals }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_in_the_interval_in_which_they_came() {
        let mut arrivals = Arrivals { bytes: 5, ..Arrivals::default() };
        for (millis, bytes) in [(50, 10), (99, 1), (100, 20), (450, 7)] {
            arrivals.add(Duration::from_millis(millis), bytes);
        }
        let report = arrivals.report(0.0, Duration::from_millis(600));
        assert_eq!(report.intervals, [16, 20, 0, 0, 7, 0]);
        assert_eq!((report.bytes, report.seconds), (43, 0.6));
    }

    #[test]
    fn flows_at_the_same_time_are_the_sum_of_what_each_carried_and_all_rtts_in_order() {
        let receiver = |start_s, seconds, bytes, intervals: &[u64]| ReceiverReport {
            start_s,
            seconds,
            bytes,
            intervals: intervals.to_vec(),
        };
        let both = receiver(1.0, 0.25, 12, &[5, 7]).combined_with(&receiver(1.0, 0.375, 9, &[1, 2, 6]));
        assert_eq!(both, receiver(1.0, 0.375, 21, &[6, 9, 6]));
        // One that starts later adds its time: a sum of rates at different times would be more than the link carries.
        let both = receiver(1.5, 0.25, 12, &[5, 7]).combined_with(&receiver(1.25, 0.25, 9, &[1, 2]));
        assert_eq!(both, receiver(1.25, 0.5, 21, &[1, 2, 0, 5, 7]));
        let lie = receiver(0.0, 1.0, 1, &[1]).combined_with(&receiver(1e300, 1.0, 1, &[1]));
        assert_eq!(lie.intervals.len(), MAX_APART + 1);
        let sender = |rtt: &[(f64, f64)], sent| SenderReport {
            rtt: rtt.to_vec(),
            sent_segments: sent,
            retransmitted_segments: Some(1),
            ..SenderReport::default()
        };
        let both = sender(&[(0.1, 20.0), (0.3, 22.0)], Some(4)).combined_with(sender(&[(0.2, 30.0)], Some(5)));
        assert_eq!(
            both,
            SenderReport {
                retransmitted_segments: Some(2),
                ..sender(&[(0.1, 20.0), (0.2, 30.0), (0.3, 22.0)], Some(9))
            }
        );
        let unknown = sender(&[], Some(4)).combined_with(sender(&[], None));
        assert_eq!(unknown.sent_segments, None, "a part of a sum is no sum");
    }
}

//! Measurements with the other end: rates of TCP streams, and RTTs of small datagrams at the same time.

use daemon::speed_test::{Hello, Progress, What};
use serde::Serialize;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Time between datagrams.
const ECHO_INTERVAL: Duration = Duration::from_millis(50);
/// An answer that takes longer is lost.
const ECHO_TIMEOUT: Duration = Duration::from_secs(2);
/// Duration of the measurement of the idle RTT.
const IDLE_TIME: Duration = Duration::from_secs(2);
/// Bytes of what the other end says of itself.
const MAX_ABOUT_LEN: u64 = 256;
/// The ramp at the beginning of a measurement, which is not counted.
const RAMP_SHARE: f64 = 0.3;

/// A direction, as this end sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Down,
    Up,
}

impl Direction {
    pub(super) fn name(self) -> &'static str {
        if self == Self::Down { "down" } else { "up" }
    }
}

/// Round-trip times of one measurement; null if no datagram was answered.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Rtt {
    pub(super) min_ms: Option<f64>,
    pub(super) median_ms: Option<f64>,
    pub(super) p95_ms: Option<f64>,
    pub(super) answered: usize,
    pub(super) lost: usize,
}

/// An open test.
pub(super) struct Session {
    address: SocketAddr,
    id: u64,
    /// The test ends when it is closed.
    _hold: TcpStream,
}

impl Session {
    pub(super) fn open(address: SocketAddr) -> io::Result<Self> {
        // Unpredictable enough to distinguish tests; they are admitted by the peer's address.
        let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let id = clock.as_nanos() as u64 ^ u64::from(std::process::id()) << 40;
        let mut hold = begin(address, Hello { id, what: What::Hold, seconds: 1 })?;
        hold.set_read_timeout(Some(CONNECT_TIMEOUT))?;
        let mut line = String::new();
        BufReader::new(&mut hold).read_line(&mut line)?;
        match line.trim_end() {
            "ok" => Ok(Self { address, id, _hold: hold }),
            "busy" => Err(io::Error::other("another test is under way")),
            reason => Err(io::Error::other(reason.to_owned())),
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The test's number, by which the other end distinguishes tests.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// The version and the host's name of the other end; `None` from an earlier version.
    pub(super) fn about(&self) -> Option<String> {
        let hello = Hello { id: self.id, what: What::About, seconds: 1 };
        let stream = begin(self.address, hello).ok()?;
        stream.set_read_timeout(Some(CONNECT_TIMEOUT)).ok()?;
        let mut line = String::new();
        BufReader::new(stream.take(MAX_ABOUT_LEN)).read_line(&mut line).ok()?;
        let about = line.trim_end().strip_prefix("about ")?;
        Some(about.chars().filter(|c| !c.is_control()).collect())
    }

    /// Round-trip times without load.
    pub(super) fn idle_rtt(&self) -> io::Result<Rtt> {
        let end = Instant::now() + IDLE_TIME;
        self.echo(Duration::ZERO, || Instant::now() >= end)
    }

    /// The rate of several streams, bit/s of TCP's payload, and the RTT at the same time.
    pub(super) fn load(&self, direction: Direction, seconds: u64, streams: usize) -> io::Result<(f64, Rtt)> {
        let is_done = AtomicBool::new(false);
        let ramp = Duration::from_secs(seconds).mul_f64(RAMP_SHARE);
        thread::scope(|scope| {
            let echo = scope.spawn(|| self.echo(ramp, || is_done.load(Ordering::Relaxed)));
            let streams: Vec<_> = (0..streams).map(|_| scope.spawn(|| self.stream(direction, seconds))).collect();
            let rates: Vec<_> = streams.into_iter().map(|stream| stream.join().unwrap_or(Ok(0.0))).collect();
            is_done.store(true, Ordering::Relaxed);
            let rtt = echo.join().unwrap_or_else(|_| Ok(Rtt::default()))?;
            let sum = rates.into_iter().sum::<io::Result<f64>>()?;
            let nothing = || io::Error::other("nothing arrived in this time: try more --seconds");
            if sum > 0.0 { Ok((sum, rtt)) } else { Err(nothing()) }
        })
    }

    fn stream(&self, direction: Direction, seconds: u64) -> io::Result<f64> {
        let what = if direction == Direction::Down { What::Down } else { What::Up };
        let stream = begin(self.address, Hello { id: self.id, what, seconds })?;
        let duration = Duration::from_secs(seconds);
        let timeline = if direction == Direction::Down { receive(stream, duration)? } else { send(stream, duration)? };
        // A stream that the others left no room has no rate.
        Ok(rate(&timeline).unwrap_or(0.0))
    }

    /// Sends datagrams until `is_done`, and takes the answers. Those sent within the `ramp` do not count: other packets were
    /// under way then, and paths may just have changed.
    fn echo(&self, ramp: Duration, is_done: impl Fn() -> bool) -> io::Result<Rtt> {
        let socket = UdpSocket::bind(if self.address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" })?;
        socket.connect(self.address)?;
        let start = Instant::now();
        let mut rtts = Vec::new();
        let mut sent = 0;
        let mut next = start;
        while !is_done() {
            if Instant::now() >= next {
                let stamp = start.elapsed().as_nanos() as u64;
                let datagram = [self.id.to_be_bytes(), stamp.to_be_bytes()].concat();
                // A full queue is a loss.
                let _ = socket.send(&datagram);
                sent += usize::from(start.elapsed() >= ramp);
                next += ECHO_INTERVAL;
            }
            take_answers(&socket, (start, ramp), next.saturating_duration_since(Instant::now()), &mut rtts)?;
        }
        // The answers still under way.
        let end = Instant::now() + ECHO_TIMEOUT;
        while rtts.len() < sent && Instant::now() < end {
            take_answers(&socket, (start, ramp), end.saturating_duration_since(Instant::now()), &mut rtts)?;
        }
        Ok(Rtt::of(rtts, sent))
    }
}

/// Waits for one answer for a time, and adds its round-trip time, ms, if its question was sent after the ramp.
fn take_answers(
    socket: &UdpSocket,
    (start, ramp): (Instant, Duration),
    wait: Duration,
    rtts: &mut Vec<f64>,
) -> io::Result<()> {
    socket.set_read_timeout(Some(wait.max(Duration::from_millis(1))))?;
    let mut answer = [0; 16];
    if let Ok(16) = socket.recv(&mut answer) {
        let stamp = u64::from_be_bytes(answer[8..].try_into().unwrap_or_default());
        if Duration::from_nanos(stamp) >= ramp {
            rtts.push((start.elapsed().as_nanos() as f64 - stamp as f64) / 1e6);
        }
    }
    Ok(())
}

impl Rtt {
    fn of(mut rtts: Vec<f64>, sent: usize) -> Self {
        rtts.sort_by(f64::total_cmp);
        let at = |share: f64| rtts.get((rtts.len() as f64 * share) as usize).or(rtts.last()).copied();
        Self {
            min_ms: rtts.first().copied(),
            median_ms: at(0.5),
            p95_ms: at(0.95),
            answered: rtts.len(),
            lost: sent.saturating_sub(rtts.len()),
        }
    }
}

fn begin(address: SocketAddr, hello: Hello) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)?;
    stream.write_all(hello.encode().as_bytes())?;
    Ok(stream)
}

/// Takes bytes until the time is over or the other end stops.
fn receive(mut stream: TcpStream, duration: Duration) -> io::Result<Vec<Progress>> {
    stream.set_read_timeout(Some(duration))?;
    let mut block = vec![0; 1 << 16];
    let mut bytes = stream.read(&mut block)? as u64;
    let start = Instant::now();
    let mut timeline = vec![Progress { elapsed_us: 0, bytes }];
    while start.elapsed() < duration {
        match stream.read(&mut block) {
            Ok(0) | Err(_) => break,
            Ok(count) => bytes += count as u64,
        }
        timeline.push(Progress { elapsed_us: start.elapsed().as_micros() as u64, bytes });
    }
    Ok(timeline)
}

/// Sends until the other end, which keeps the time, closes the connection; the timeline is its own.
fn send(mut stream: TcpStream, duration: Duration) -> io::Result<Vec<Progress>> {
    let mut reports = stream.try_clone()?;
    stream.set_write_timeout(Some(duration))?;
    let end = Instant::now() + 2 * duration + CONNECT_TIMEOUT;
    let sender = thread::spawn(move || {
        let block = vec![0; 1 << 16];
        while Instant::now() < end && stream.write(&block).is_ok() {}
    });
    reports.set_read_timeout(Some(duration + CONNECT_TIMEOUT))?;
    let mut timeline = Vec::new();
    let mut report = [0; Progress::LEN];
    while reports.read_exact(&mut report).is_ok() {
        timeline.push(Progress::decode(report));
    }
    // The connection is closed: the sender has failed, or fails at once.
    drop(reports);
    let _ = sender.join();
    Ok(timeline)
}

/// The rate after the ramp, bit/s.
fn rate(timeline: &[Progress]) -> Option<f64> {
    let end = timeline.last()?;
    let ramp_us = (end.elapsed_us as f64 * RAMP_SHARE) as u64;
    let start = timeline.iter().find(|progress| progress.elapsed_us >= ramp_us)?;
    let time_us = end.elapsed_us.checked_sub(start.elapsed_us).filter(|time_us| *time_us > 0)?;
    Some((end.bytes - start.bytes) as f64 * 8e6 / time_us as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_bytes_after_the_ramp() {
        let point = |elapsed_us, bytes| Progress { elapsed_us, bytes };
        let timeline = [point(0, 0), point(2_999_999, 1), point(3_000_000, 1_000_000), point(10_000_000, 8_000_000)];
        assert_eq!(rate(&timeline), Some(8e6));
        assert_eq!((rate(&[]), rate(&timeline[..1])), (None, None));
    }

    #[test]
    fn round_trip_times_have_a_median_and_lost_answers_are_counted() {
        let rtt = Rtt::of(vec![30.0, 10.0, 20.0], 5);
        assert_eq!((rtt.median_ms, rtt.p95_ms, rtt.answered, rtt.lost), (Some(20.0), Some(30.0), 3, 2));
    }
}

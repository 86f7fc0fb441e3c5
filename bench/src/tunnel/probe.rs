//! Round-trip times of small datagrams between the hosts of a testbed.
//!
//! `ropewalk-bench echo PORT` answers every datagram; `ropewalk-bench probe ADDRESS GAP_NS TIME_MS` sends one each gap, whether or not
//! earlier ones came back, and prints the round-trip times it saw. Both run in a host of the testbed, as processes of their
//! own, because a namespace is a process's.

use super::running::RunningSystem;
use super::testbed::{LEFT, RIGHT, Testbed};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::Stdio;
use std::time::{Duration, Instant};

const PORT: u16 = 5301;
/// Bytes of a probe: those of a voice packet or a game's.
const BYTES: usize = 64;
/// How long to wait for the last answers.
const TIMEOUT: Duration = Duration::from_millis(1500);

/// Round-trip times, and how many probes were not answered.
#[derive(Debug)]
pub(super) struct Times {
    ascending_ns: Vec<u64>,
    sent: u64,
    time: Duration,
}

impl Times {
    /// The quantile `share`.
    pub(super) fn at(&self, share: f64) -> Duration {
        let place = (share * self.ascending_ns.len() as f64) as usize;
        let last = self.ascending_ns.len().saturating_sub(1);
        self.ascending_ns.get(place.min(last)).map_or(Duration::MAX, |ns| Duration::from_nanos(*ns))
    }

    /// Share of the probes without an answer.
    pub(super) fn lost(&self) -> f64 {
        1.0 - self.ascending_ns.len() as f64 / self.sent as f64
    }

    /// Round trips a second.
    pub(super) fn per_second(&self) -> f64 {
        self.ascending_ns.len() as f64 / self.time.as_secs_f64()
    }
}

/// Sends probes from left to right through the running system.
pub(super) fn between(
    testbed: &Testbed,
    running: &RunningSystem,
    gap: Duration,
    time: Duration,
) -> Result<Times, String> {
    let program = std::env::current_exe().map_err(|why| why.to_string())?;
    let program = program.display();
    let mut echo = testbed.command(RIGHT, &format!("{program} echo {PORT}"));
    let mut echo = echo.stdin(Stdio::piped()).spawn().map_err(|why| why.to_string())?;
    std::thread::sleep(Duration::from_millis(100));
    let line = format!("{program} probe {} {} {}", running.probed, gap.as_nanos(), time.as_millis());
    let printed = testbed.run(LEFT, &line);
    let _ = echo.kill();
    let _ = echo.wait();
    let said: Value = serde_json::from_str(&printed?).map_err(|_| "the probe said nothing".to_owned())?;
    let ascending_ns: Vec<u64> = said["ns"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
    if ascending_ns.is_empty() {
        return Err("no datagram came back".to_owned());
    }
    Ok(Times { ascending_ns, sent: said["sent"].as_u64().unwrap_or(1), time })
}

/// Whether a probe is answered within `timeout`.
pub(super) fn answers(testbed: &Testbed, target: Ipv4Addr, timeout: Duration) -> bool {
    let running = RunningSystem::plain(target);
    let start = Instant::now();
    while start.elapsed() < timeout {
        if between(testbed, &running, Duration::from_millis(50), Duration::from_millis(100)).is_ok() {
            return true;
        }
    }
    false
}

/// `ropewalk-bench echo PORT`
pub(crate) fn echo(port: &str) -> Result<(), String> {
    let port: u16 = port.parse().map_err(|_| format!("`{port}` is no port"))?;
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).map_err(|why| why.to_string())?;
    let mut room = [0; 2048];
    loop {
        // A refused answer shows up here as an error of the socket; the next datagram is none the worse.
        if let Ok((bytes, from)) = socket.recv_from(&mut room) {
            let _ = socket.send_to(&room[..bytes], from);
        }
    }
}

/// `ropewalk-bench probe ADDRESS GAP_NS TIME_MS`
pub(crate) fn probe(words: &[&str]) -> Result<(), String> {
    let usage = "probe ADDRESS GAP_NS TIME_MS";
    let [address, gap, time] = words else { return Err(usage.to_owned()) };
    let address: Ipv4Addr = address.parse().map_err(|_| usage)?;
    let gap = Duration::from_nanos(gap.parse().map_err(|_| usage)?);
    let time = Duration::from_millis(time.parse().map_err(|_| usage)?);
    let (mut ns, sent) = round_trips((address, PORT).into(), gap, time).map_err(|why| why.to_string())?;
    ns.sort_unstable();
    crate::shell::say(&json!({ "ns": ns, "sent": sent }).to_string())
}

fn round_trips(to: SocketAddr, gap: Duration, time: Duration) -> std::io::Result<(Vec<u64>, u64)> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect(to)?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    let start = Instant::now();
    let listener = socket.try_clone()?;
    let listening = std::thread::spawn(move || listen(&listener, start, time + TIMEOUT));
    let sent = send(&socket, start, gap, time);
    Ok((listening.join().expect("it does not panic"), sent))
}

/// Sends on time; when it wakes late it catches up.
fn send(socket: &UdpSocket, start: Instant, gap: Duration, time: Duration) -> u64 {
    let mut sent = 0;
    while start.elapsed() < time {
        let mut probe = [0; BYTES];
        probe[..8].copy_from_slice(&(start.elapsed().as_nanos() as u64).to_be_bytes());
        sent += u64::from(socket.send(&probe).is_ok());
        let due = start + gap.mul_f64(sent as f64);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    sent
}

fn listen(socket: &UdpSocket, start: Instant, until: Duration) -> Vec<u64> {
    let mut times = Vec::new();
    let mut room = [0; BYTES];
    while start.elapsed() < until {
        match socket.recv(&mut room) {
            Ok(BYTES) => {
                let sent = u64::from_be_bytes(room[..8].try_into().expect("eight bytes"));
                times.push((start.elapsed().as_nanos() as u64).saturating_sub(sent));
            }
            Err(why) if why.kind() == std::io::ErrorKind::WouldBlock => break,
            _ => {}
        }
    }
    times
}

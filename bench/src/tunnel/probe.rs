//! Round-trip times of small datagrams between the hosts of a testbed.
//!
//! `ropewalk-bench echo PORT` answers every datagram; `ropewalk-bench probe ADDRESS INTERVAL_NS TIME_MS` sends one each
//! interval, whether or not earlier ones came back, and prints the round-trip times. Both run in a host of the testbed,
//! as processes of their own, because a namespace belongs to a process.

use super::running::RunningSystem;
use super::testbed::{CLIENT, SERVER, Testbed};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::Stdio;
use std::time::{Duration, Instant};

const PORT: u16 = 5301;
/// Size of a probe, bytes: that of a packet of a voice call or a game.
const PROBE_BYTES: usize = 64;
/// Time to wait for the last answers.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(1500);

/// Round-trip times, and the number of probes that were not answered.
#[derive(Debug)]
pub(super) struct RoundTrips {
    ascending_ns: Vec<u64>,
    sent: u64,
    time: Duration,
    longest_gap: Duration,
}

impl RoundTrips {
    /// The quantile `share` of the round-trip times.
    pub(super) fn quantile(&self, share: f64) -> Duration {
        let index = (share * self.ascending_ns.len() as f64) as usize;
        let last = self.ascending_ns.len().saturating_sub(1);
        self.ascending_ns.get(index.min(last)).map_or(Duration::MAX, |ns| Duration::from_nanos(*ns))
    }

    /// The longest time between two answers.
    pub(super) fn longest_gap(&self) -> Duration {
        self.longest_gap
    }

    /// Share of the probes without an answer.
    pub(super) fn lost(&self) -> f64 {
        1.0 - self.ascending_ns.len() as f64 / self.sent as f64
    }

    /// Round trips per second.
    pub(super) fn per_second(&self) -> f64 {
        self.ascending_ns.len() as f64 / self.time.as_secs_f64()
    }
}

/// Measures round-trip times from the client to the server through the running system.
pub(super) fn measure_rtt(
    testbed: &Testbed,
    running: &RunningSystem,
    interval: Duration,
    time: Duration,
) -> Result<RoundTrips, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let program = program.display();
    let mut echo = testbed.command(SERVER, &format!("{program} echo {PORT}"));
    let mut echo = echo.stdin(Stdio::piped()).spawn().map_err(|error| error.to_string())?;
    std::thread::sleep(Duration::from_millis(100));
    let line = format!("{program} probe {} {} {}", running.probe_target, interval.as_nanos(), time.as_millis());
    let printed = testbed.run(CLIENT, &line);
    let _ = echo.kill();
    let _ = echo.wait();
    let report: Value = serde_json::from_str(&printed?).map_err(|_| "the probe printed no report".to_owned())?;
    let ascending_ns: Vec<u64> = report["ns"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
    if ascending_ns.is_empty() {
        return Err("no datagram was answered".to_owned());
    }
    let longest_gap = Duration::from_nanos(report["longest_gap_ns"].as_u64().unwrap_or_default());
    Ok(RoundTrips { ascending_ns, sent: report["sent"].as_u64().unwrap_or(1), time, longest_gap })
}

/// Whether a probe is answered within `timeout`.
pub(super) fn is_reachable(testbed: &Testbed, target: Ipv4Addr, timeout: Duration) -> bool {
    let running = RunningSystem::plain(target);
    let start = Instant::now();
    while start.elapsed() < timeout {
        if measure_rtt(testbed, &running, Duration::from_millis(50), Duration::from_millis(500)).is_ok() {
            return true;
        }
    }
    false
}

/// `ropewalk-bench echo PORT`
pub(crate) fn echo(port: &str) -> Result<(), String> {
    let port: u16 = port.parse().map_err(|_| format!("`{port}` is not a port"))?;
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).map_err(|error| error.to_string())?;
    let mut buffer = [0; 2048];
    loop {
        // An ICMP error for an earlier answer is reported here; later datagrams are not affected.
        if let Ok((bytes, source)) = socket.recv_from(&mut buffer) {
            let _ = socket.send_to(&buffer[..bytes], source);
        }
    }
}

/// `ropewalk-bench probe ADDRESS INTERVAL_NS TIME_MS`
pub(crate) fn probe(arguments: &[&str]) -> Result<(), String> {
    let usage = "probe ADDRESS INTERVAL_NS TIME_MS";
    let [address, interval, time] = arguments else { return Err(usage.to_owned()) };
    let address: Ipv4Addr = address.parse().map_err(|_| usage)?;
    let interval = Duration::from_nanos(interval.parse().map_err(|_| usage)?);
    let time = Duration::from_millis(time.parse().map_err(|_| usage)?);
    let (mut ns, sent, gap) = round_trips((address, PORT).into(), interval, time).map_err(|error| error.to_string())?;
    ns.sort_unstable();
    crate::shell::print(&json!({ "ns": ns, "sent": sent, "longest_gap_ns": gap.as_nanos() as u64 }).to_string())
}

fn round_trips(address: SocketAddr, interval: Duration, time: Duration) -> std::io::Result<(Vec<u64>, u64, Duration)> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect(address)?;
    socket.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    let start = Instant::now();
    let listener = socket.try_clone()?;
    let listener_thread = std::thread::spawn(move || listen(&listener, start, time + ANSWER_TIMEOUT));
    let sent = send(&socket, start, interval, time);
    let (times, gap) = listener_thread.join().expect("it does not panic");
    Ok((times, sent, gap))
}

/// Sends a probe every `interval` for `time`, including those whose time passed while the thread slept. Returns their
/// number.
fn send(socket: &UdpSocket, start: Instant, interval: Duration, time: Duration) -> u64 {
    let mut sent = 0;
    while start.elapsed() < time {
        let mut probe = [0; PROBE_BYTES];
        probe[..8].copy_from_slice(&(start.elapsed().as_nanos() as u64).to_be_bytes());
        sent += u64::from(socket.send(&probe).is_ok());
        let next_send = start + interval.mul_f64(sent as f64);
        std::thread::sleep(next_send.saturating_duration_since(Instant::now()));
    }
    sent
}

/// Returns the round-trip times, ns, and the longest time between two answers.
fn listen(socket: &UdpSocket, start: Instant, time: Duration) -> (Vec<u64>, Duration) {
    let (mut times, mut latest, mut gap) = (Vec::new(), None, Duration::ZERO);
    let mut answered = HashSet::new();
    let mut buffer = [0; PROBE_BYTES];
    while start.elapsed() < time {
        // After a silence there may be more; `time` ends the loop.
        if let Ok(PROBE_BYTES) = socket.recv(&mut buffer) {
            let sent = u64::from_be_bytes(buffer[..8].try_into().expect("eight bytes"));
            let now = start.elapsed();
            // Some systems deliver datagrams twice: the first answer counts.
            if !answered.insert(sent) {
                continue;
            }
            times.push((now.as_nanos() as u64).saturating_sub(sent));
            gap = gap.max(now.saturating_sub(latest.replace(now).unwrap_or(now)));
        }
    }
    (times, gap)
}

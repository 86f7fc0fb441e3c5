//! Calls from one host of a testbed to the other, measured one way: both hosts share the machine's clock.
//!
//! `ropewalk-bench call ADDRESS TIME_MS` sends two calls of 50 datagrams per second each; `ropewalk-bench hear TIME_MS`
//! receives them and prints the quality that a listener notices. They run in hosts of the testbed, as processes of their
//! own, because a namespace belongs to a process.

use super::testbed::Testbed;
use nix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, UdpSocket};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A port for each call.
const PORTS: [u16; 2] = [5311, 5312];
/// Time between two datagrams of a call.
const INTERVAL: Duration = Duration::from_millis(20);
/// Bytes of a datagram: 200 with the headers of IPv4 and UDP, a voice packet's.
const DATAGRAM_BYTES: usize = 172;
/// Time to wait for the last datagrams.
const LINGER: Duration = Duration::from_secs(2);

/// The quality of the worse call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    /// The longest time between two datagrams, milliseconds.
    pub(super) longest_gap_ms: f64,
    /// Maximum number of consecutive datagrams that did not arrive.
    pub(super) longest_loss: f64,
    /// Quantiles of the one-way delay, milliseconds.
    pub(super) p95_ms: f64,
    pub(super) p99_ms: f64,
}

/// Two calls that are being sent and heard.
#[derive(Debug)]
pub(super) struct Calls {
    speaker: Child,
    listener: Child,
}

impl Calls {
    /// Begins calls from a host to the address of the `other` one.
    pub(super) fn start(testbed: &Testbed, host: usize, to: Ipv4Addr, time: Duration) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let program = program.display();
        let spawn = |host: usize, line: String| {
            let mut command = testbed.command(host, &line);
            command.stdout(Stdio::piped()).spawn().map_err(|error| format!("{line}: {error}"))
        };
        let listener = spawn(1 - host, format!("{program} hear {}", (time + LINGER).as_millis()))?;
        std::thread::sleep(Duration::from_millis(100));
        let speaker = spawn(host, format!("{program} call {to} {}", time.as_millis()))?;
        Ok(Self { speaker, listener })
    }

    /// Waits for the end of the calls.
    pub(super) fn finish(mut self) -> Result<Heard, String> {
        self.speaker.wait().map_err(|error| error.to_string())?;
        let output = self.listener.wait_with_output().map_err(|error| error.to_string())?;
        let report: Value = serde_json::from_slice(&output.stdout).map_err(|_| "a listener printed no report")?;
        let calls = report.as_array().filter(|calls| calls.len() == PORTS.len());
        let calls =
            calls.filter(|calls| calls.iter().all(|call| !call.is_null())).ok_or("a call was not heard at all")?;
        let worst = |key: &str| calls.iter().filter_map(|call| call[key].as_f64()).fold(0.0, f64::max);
        Ok(Heard {
            longest_gap_ms: worst("longest_gap_ms"),
            longest_loss: worst("longest_loss"),
            p95_ms: worst("p95_ms"),
            p99_ms: worst("p99_ms"),
        })
    }
}

/// `ropewalk-bench call ADDRESS TIME_MS`
pub(crate) fn call(arguments: &[&str]) -> Result<(), String> {
    let usage = "call ADDRESS TIME_MS";
    let [address, time] = arguments else { return Err(usage.to_owned()) };
    let address: Ipv4Addr = address.parse().map_err(|_| usage)?;
    let time = Duration::from_millis(time.parse().map_err(|_| usage)?);
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(|error| error.to_string())?;
    let (start, mut number) = (Instant::now(), 0_u32);
    while start.elapsed() < time {
        for port in PORTS {
            let mut datagram = [0; DATAGRAM_BYTES];
            datagram[..8].copy_from_slice(&now_ns()?.to_be_bytes());
            datagram[8..12].copy_from_slice(&number.to_be_bytes());
            // A datagram that the host refuses is missing at the listener.
            let _ = socket.send_to(&datagram, (address, port));
        }
        number += 1;
        std::thread::sleep((start + INTERVAL * number).saturating_duration_since(Instant::now()));
    }
    Ok(())
}

/// `ropewalk-bench hear TIME_MS`
pub(crate) fn hear(time: &str) -> Result<(), String> {
    let time = Duration::from_millis(time.parse().map_err(|_| "hear TIME_MS")?);
    let listeners = PORTS.map(|port| std::thread::spawn(move || listen(port, time)));
    let reports = listeners.map(|listener| listener.join().expect("it does not panic"));
    let mut heard = Vec::new();
    for report in reports {
        heard.push(notice(&report?));
    }
    crate::shell::print(&json!(heard).to_string())
}

/// A datagram that arrived: its number, its sending time and its arrival time, ns.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    number: u32,
    sent: u64,
    at: u64,
}

fn listen(port: u16, time: Duration) -> Result<Vec<Arrival>, String> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).map_err(|error| error.to_string())?;
    socket.set_read_timeout(Some(Duration::from_millis(200))).map_err(|error| error.to_string())?;
    let (start, mut arrivals, mut buffer) = (Instant::now(), Vec::new(), [0; DATAGRAM_BYTES]);
    while start.elapsed() < time {
        if let Ok(DATAGRAM_BYTES) = socket.recv(&mut buffer) {
            let sent = u64::from_be_bytes(buffer[..8].try_into().expect("eight bytes"));
            let number = u32::from_be_bytes(buffer[8..12].try_into().expect("four bytes"));
            arrivals.push(Arrival { number, sent, at: now_ns()? });
        }
    }
    Ok(arrivals)
}

/// The quality of a call, `null` without a datagram.
fn notice(arrivals: &[Arrival]) -> Value {
    let (Some(first), Some(last)) = (arrivals.first(), arrivals.iter().map(|arrival| arrival.number).max()) else {
        return Value::Null;
    };
    let gap = arrivals.windows(2).map(|pair| pair[1].at.saturating_sub(pair[0].at)).max().unwrap_or_default();
    let mut numbers: Vec<u32> = arrivals.iter().map(|arrival| arrival.number).collect();
    numbers.sort_unstable();
    let missing = |pair: &[u32]| pair[1].saturating_sub(pair[0]).saturating_sub(1);
    let longest_loss = numbers.windows(2).map(missing).max().unwrap_or_default().max(numbers[0]);
    let mut delays: Vec<u64> = arrivals.iter().map(|arrival| arrival.at.saturating_sub(arrival.sent)).collect();
    delays.sort_unstable();
    let quantile = |share: f64| ms(delays[((share * delays.len() as f64) as usize).min(delays.len() - 1)]);
    json!({
        "first": first.number,
        "last": last,
        "longest_gap_ms": ms(gap),
        "longest_loss": longest_loss,
        "p95_ms": quantile(0.95),
        "p99_ms": quantile(0.99),
    })
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// The machine's monotonic clock, which all namespaces share.
fn now_ns() -> Result<u64, String> {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).map_err(|error| error.to_string())?;
    Ok(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_notices_gaps_losses_in_a_row_and_delays() {
        let arrival = |number: u32, delay_ms: u64| {
            let sent = u64::from(number) * 20_000_000;
            Arrival { number, sent, at: sent + delay_ms * 1_000_000 }
        };
        let heard = notice(&[arrival(0, 10), arrival(1, 10), arrival(5, 40), arrival(4, 70), arrival(7, 10)]);
        assert_eq!(heard["longest_gap_ms"], 110.0, "from 30 to 140 ms");
        assert_eq!(heard["longest_loss"], 2, "the second and the third");
        assert_eq!(heard["p99_ms"], 70.0);
        assert_eq!(notice(&[]), Value::Null);
    }
}

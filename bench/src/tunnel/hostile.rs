//! An honest peer's service while another peer attacks the server.
//!
//! The attacker has a separate link, so that it takes no capacity of the honest peer's links: it only uses resources of
//! the server. `ropewalk-bench attack PRIVATE-KEY SERVER-KEY SOURCE DESTINATION ATTACK RATE` is the attacker, in the
//! client's host, until it is killed.

use super::cpu_accounting::CpuAccounting;
use super::iperf3::BulkTransfer;
use super::options::Options;
use super::programs::Programs;
use super::ropewalk::{ATTACKER_ADDRESS, GRE_IN_UDP_PORT, INNER_ADDRESSES};
use super::running::RunningSystem;
use super::testbed::{CLIENT, SERVER, Testbed};
use super::{PROBE_INTERVAL, WARM_UP, probe, ropewalk};
use seal::{PrivateKey, PublicKey};
use serde_json::{Value, json};
use std::net::UdpSocket;
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use testnet::{Attack, HostilePeer, InnerAddresses};
use units::RngStream;

/// The honest peer's links, and the attacker's.
const LINKS: [&str; 3] = ["rate=100mbit delay=5ms queue=50ms", "rate=40mbit delay=15ms queue=50ms", ""];
/// Datagrams per second of the attacker.
const RATE: f64 = 2000.0;
/// Time for which RTTs are measured without bulk data, whose own queue changes them from run to run.
const IDLE_TIME: Duration = Duration::from_secs(2);
/// Time between two initiations while there is no session.
const RETRY: Duration = Duration::from_millis(200);

/// Measures the honest peer before and during each attack.
pub(super) fn run(
    options: &Options,
    programs: &Programs,
    accounting: &CpuAccounting,
    rows: &mut Vec<Value>,
) -> Result<(), String> {
    let testbed = Testbed::make(programs, &LINKS)?;
    let (running, keys) = ropewalk::start_with_attacker(&testbed, programs, accounting)?;
    for attack in Attack::ALL {
        eprintln!("hostile {attack:?}");
        let before = measure(options, &testbed, &running, accounting)?;
        let mut attacker = start_attacker(&testbed, &keys, attack)?;
        let during = measure(options, &testbed, &running, accounting);
        let _ = attacker.kill();
        let _ = attacker.wait();
        let mut row = during?;
        let ratio = |key: &str| row[key].as_f64().unwrap_or(0.0) / before[key].as_f64().unwrap_or(1.0);
        let [goodput, idle, ping] = ["mbps", "ping_idle_ms", "ping_p50_ms"].map(ratio);
        row["bench"] = json!("hostile");
        row["testbed"] = json!("140");
        row["system"] = json!(format!("{attack:?}"));
        row["goodput_ratio"] = json!(goodput);
        (row["ping_idle_ratio"], row["ping_ratio"]) = (json!(idle), json!(ping));
        row["attack_per_second"] = json!(RATE);
        rows.push(row);
    }
    Ok(())
}

fn measure(
    options: &Options,
    testbed: &Testbed,
    running: &RunningSystem,
    accounting: &CpuAccounting,
) -> Result<Value, String> {
    let idle = probe::measure_rtt(testbed, running, PROBE_INTERVAL, IDLE_TIME)?;
    let time = Duration::from_secs(u64::from(options.seconds + WARM_UP));
    let (transfer, round_trips) = std::thread::scope(|scope| {
        let pings = scope.spawn(|| probe::measure_rtt(testbed, running, PROBE_INTERVAL, time));
        let transfer = BulkTransfer::run(testbed, accounting, running, options.seconds, WARM_UP);
        (transfer, pings.join().expect("it does not panic"))
    });
    let (transfer, round_trips) = (transfer?, round_trips?);
    let mut row = transfer.as_row();
    row["mbps"] = json!(transfer.gbps * 1e3);
    row["ping_idle_ms"] = json!(idle.quantile(0.5).as_secs_f64() * 1e3);
    row["ping_p50_ms"] = json!(round_trips.quantile(0.5).as_secs_f64() * 1e3);
    row["ping_lost"] = json!(round_trips.lost());
    Ok(row)
}

fn start_attacker(testbed: &Testbed, keys: &[String; 2], attack: Attack) -> Result<std::process::Child, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let [private, server] = keys;
    let link = LINKS.len() - 1;
    let [source, destination] = [CLIENT, SERVER].map(|host| testbed.address(link, host));
    let line = format!("{} attack {private} {server} {source} {destination} {attack:?} {RATE}", program.display());
    testbed.command(CLIENT, &line).stdin(Stdio::null()).spawn().map_err(|error| format!("{line}: {error}"))
}

/// `ropewalk-bench attack PRIVATE-KEY SERVER-KEY SOURCE DESTINATION ATTACK RATE`
pub(crate) fn attack(arguments: &[&str]) -> Result<(), String> {
    let usage = || "attack PRIVATE-KEY SERVER-KEY SOURCE DESTINATION ATTACK RATE".to_owned();
    let [private, server, source, destination, name, rate] = arguments else { return Err(usage()) };
    let private: PrivateKey = private.parse().map_err(|_| usage())?;
    let server: PublicKey = server.parse().map_err(|_| usage())?;
    let attack = Attack::ALL.into_iter().find(|attack| format!("{attack:?}") == *name).ok_or_else(usage)?;
    let rate: f64 = rate.parse().map_err(|_| usage())?;
    let io_error = |error: std::io::Error| error.to_string();
    let socket = UdpSocket::bind((*source, 0)).map_err(io_error)?;
    socket.connect((*destination, GRE_IN_UDP_PORT)).map_err(io_error)?;
    socket.set_nonblocking(true).map_err(io_error)?;
    let mut attacker =
        Attacker { peer: HostilePeer::new(private, server), socket, start: Instant::now(), retry: Instant::now() };
    let inner = InnerAddresses {
        own: ATTACKER_ADDRESS.octets(),
        foreign: INNER_ADDRESSES[CLIENT].octets(),
        target: INNER_ADDRESSES[SERVER].octets(),
        port: 9000,
    };
    let mut rng = RngStream::named(16, "attack");
    for k in 0.. {
        attacker.receive();
        // A path that the attack has removed is opened again.
        let (path, body) = if k % 100 == 0 { (0, ping()) } else { attack.datagram(k, &inner, &mut rng) };
        attacker.send(path, &body);
        let next_send = attacker.start + Duration::from_secs_f64(k as f64 / rate);
        std::thread::sleep(next_send.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

/// A hostile peer with a UDP socket.
struct Attacker {
    peer: HostilePeer,
    socket: UdpSocket,
    start: Instant,
    /// The time at which the next initiation may be sent.
    retry: Instant,
}

impl Attacker {
    fn now(&self) -> units::Instant {
        units::Instant(self.start.elapsed().as_nanos() as u64)
    }

    /// Handles the datagrams that have arrived. Starts a handshake if there is no session.
    fn receive(&mut self) {
        let mut buffer = [0; 65_536];
        while let Ok(len) = self.socket.recv(&mut buffer) {
            self.peer.receive(self.now(), &mut buffer[..len]);
        }
        if !self.peer.has_session() && Instant::now() >= self.retry {
            self.retry = Instant::now() + RETRY;
            let wall_clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
            if let Some(initiation) = self.peer.initiation(self.now(), wall_clock) {
                let _ = self.socket.send(initiation.as_bytes());
            }
        }
    }

    fn send(&mut self, path: u8, body: &[u8]) {
        if let Some(datagram) = self.peer.seal(self.now(), path, body) {
            let _ = self.socket.send(&datagram);
        }
    }
}

fn ping() -> Vec<u8> {
    let mut body = Vec::new();
    wire::frame::Frame::Ping { token: 1 }.write(&mut body);
    body
}

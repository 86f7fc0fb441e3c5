//! A flow made by external programs: a server, and a client that connects at the flow's start and ends with the flow.

use super::flow::Flow;
use super::flow_counters::FlowCounters;
use super::{Outcome, enter, sleep_until, within};
use crate::Generator;
use crate::protocol::{self, FlowSpec, NetnsCommand, TcpSpec};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use socket2::{Domain, Protocol, Socket, Type};
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// The port of FTP's control connection.
const FTP: u16 = 21;
/// Time limit for a server to listen, and for a client to end after its time and drain its queues.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A flow made by external programs.
pub(super) struct Programs {
    programs: protocol::Programs,
    size: Option<u64>,
    counters: Arc<FlowCounters>,
    client: Arc<Client>,
}

/// The client's process.
#[derive(Default)]
struct Client {
    process_id: OnceLock<Pid>,
    /// The duration of the transfer, or the error of the client.
    outcome: OnceLock<Result<Duration, String>>,
    /// Whether the agent has terminated it.
    is_terminated: AtomicBool,
}

impl Programs {
    /// Starts the server and waits until it listens.
    pub(super) fn open(traffic: &FlowSpec, tcp: &TcpSpec, programs: &protocol::Programs) -> Outcome<Self> {
        let (server, [source, sink]) = (&programs.server, &traffic.ends);
        within(&server.netns, || match programs.generator {
            Generator::Ftp => serve_ftp(server, source.address, tcp.subflows.as_deref().unwrap_or_default()),
            _ => serve(server, sink.address.port()),
        })?;
        let counters = Arc::<FlowCounters>::default();
        counters.expect_connection(source.address);
        Ok(Self { programs: programs.clone(), size: tcp.size, counters, client: Arc::default() })
    }
}

impl Flow for Programs {
    fn begin(&self, [start, _]: [Instant; 2]) -> Outcome<()> {
        let (programs, size) = (self.programs.clone(), self.size);
        let (counters, client) = (self.counters.clone(), self.client.clone());
        thread::spawn(move || {
            let end = client
                .run(&programs.client, start)
                .and_then(|duration| programs.transfer_time(size, duration))
                .map_err(|error| format!("`{}` {error}", programs.client.line));
            if let Ok(duration) = client.outcome.get_or_init(|| end) {
                counters.read(programs.delivered(size).unwrap_or(0));
                size.map(|_| counters.completion.get_or_init(|| *duration));
            }
            counters.end(None);
        });
        Ok(())
    }

    fn counters(&self) -> &FlowCounters {
        &self.counters
    }

    /// Terminates the client of a flow with a size; iperf3 without one ends by its own time.
    fn stop(&self) {
        if self.size.is_some() {
            self.client.terminate();
        }
    }

    fn finish(&self) -> Outcome<()> {
        self.stop();
        self.client.wait();
        self.client.terminate();
        self.client.wait();
        match self.client.outcome.get() {
            Some(Err(error)) if !self.client.is_terminated.load(Ordering::Relaxed) => Err(error.as_str().into()),
            _ => Ok(()),
        }
    }
}

impl protocol::Programs {
    /// Bytes that the sink has read, after the client has succeeded. iperf3 reports what its server had read when its
    /// client had written all, which may be less.
    fn delivered(&self, size: Option<u64>) -> Option<u64> {
        if self.generator == Generator::Ftp { size } else { received(&self.client.output) }
    }

    /// The time that the transfer took: for a file by FTP computed from the rate that wget reports, without the dialogue
    /// before the transfer; otherwise the client's `duration`.
    fn transfer_time(&self, size: Option<u64>, duration: Duration) -> Outcome<Duration> {
        let (Generator::Ftp, Some(size)) = (self.generator, size) else { return Ok(duration) };
        let log = &self.client.output;
        let rate = wget_rate(log)
            .ok_or_else(|| format!("wget reports no rate like (42.5 MB/s) in {log}: {}", log_tail(log)))?;
        #[expect(clippy::cast_precision_loss, reason = "a file of less than 2^53 bytes")]
        Ok(Duration::from_secs_f64(size as f64 / rate))
    }
}

impl Client {
    fn run(&self, command: &NetnsCommand, start: Instant) -> Outcome<Duration> {
        enter(&command.netns)?;
        sleep_until(start);
        let mut child = spawn(command, Stdio::null(), File::create(&command.output)?.into())?;
        self.process_id.get_or_init(|| Pid::from_raw(child.id().cast_signed()));
        let status = child.wait()?;
        let duration = start.elapsed();
        if status.success() {
            Ok(duration)
        } else {
            Err(format!("failed ({status}): {}", log_tail(&command.output)).into())
        }
    }

    fn terminate(&self) {
        if let Some(process_id) = self.process_id.get().filter(|_| self.outcome.get().is_none()) {
            self.is_terminated.store(true, Ordering::Relaxed);
            let _ = kill(*process_id, Signal::SIGTERM); // fails if it has just ended by itself
        }
    }

    fn wait(&self) {
        let begin = Instant::now();
        while self.process_id.get().is_some() && self.outcome.get().is_none() && begin.elapsed() < TIMEOUT {
            thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Starts a server in this thread's namespace, and waits until it listens. It ends with the run.
fn serve(command: &NetnsCommand, port: u16) -> Outcome<()> {
    spawn(command, Stdio::null(), File::create(&command.output)?.into())?;
    let begin = Instant::now();
    while !listens(port) {
        if begin.elapsed() > TIMEOUT {
            return Err(format!("`{}` does not listen: {}", command.line, log_tail(&command.output)).into());
        }
        thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// Accepts the control connection and runs the server on it, as `inetd` does. So the control connection is TCP, while
/// those that the server opens may be MPTCP: vsftpd sets SO_OOBINLINE on the first, which MPTCP does not support.
fn serve_ftp(command: &NetnsCommand, source: SocketAddr, subflows: &[IpAddr]) -> Outcome<()> {
    let any: IpAddr = if source.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let (listener, command) = (TcpListener::bind((any, FTP))?, command.clone());
    let others = subflows.iter().filter(|address| **address != source.ip());
    let listeners = others
        .map(|address| subflow_listener(SocketAddr::new(*address, source.port())))
        .collect::<Outcome<Vec<_>>>()?;
    thread::spawn(move || -> Outcome<()> {
        enter(&command.netns)?;
        let input = OwnedFd::from(listener.accept()?.0);
        let output = input.try_clone()?;
        spawn(&command, input.into(), output.into())?.wait()?;
        drop(listeners);
        Ok(())
    });
    Ok(())
}

/// A listener for further subflows: the kernel accepts them only at an address with a listener, and vsftpd listens on the
/// address of the first one only.
fn subflow_listener(address: SocketAddr) -> Outcome<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::MPTCP))?;
    socket.bind(&address.into())?;
    socket.listen(1)?;
    Ok(socket)
}

/// Starts a command in this thread's namespace. Its standard error is appended to its output file.
fn spawn(command: &NetnsCommand, input: Stdio, output: Stdio) -> Outcome<Child> {
    let mut tokens = command.line.split_whitespace();
    let errors = File::options().append(true).create(true).open(&command.output)?;
    let mut command = Command::new(tokens.next().unwrap_or_default());
    command.env("LC_ALL", "C"); // wget's numbers are parsed
    Ok(command.args(tokens).stdin(input).stdout(output).stderr(errors).spawn()?)
}

/// Whether a server listens on this port in this thread's namespace.
fn listens(port: u16) -> bool {
    const LISTEN: &str = "0A";
    let port = format!(":{port:04X}");
    ["tcp", "tcp6"].iter().any(|family| {
        let table = fs::read_to_string(format!("/proc/thread-self/net/{family}")).unwrap_or_default();
        let mut rows = table.lines().map(|row| row.split_whitespace().collect::<Vec<_>>());
        rows.any(|row| {
            row.get(1).is_some_and(|local_address| local_address.ends_with(&port)) && row.get(3) == Some(&LISTEN)
        })
    })
}

/// Bytes that iperf3's server has read, by its client's JSON report.
fn received(file: &str) -> Option<u64> {
    let report: serde_json::Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    report["end"]["sum_received"]["bytes"].as_u64()
}

/// The rate in wget's log, bytes per second: three digits, in units of 1024.
fn wget_rate(log: &str) -> Option<f64> {
    let log = fs::read_to_string(log).ok()?;
    let (rate, unit) = log.rsplit_once("B/s)")?.0.rsplit_once('(')?.1.split_once(' ')?;
    let power = ["", "K", "M", "G"].iter().position(|prefix| *prefix == unit)?;
    let rate = rate.parse::<f64>().ok()?;
    (rate > 0.0).then(|| rate * 1024_f64.powi(power.try_into().unwrap_or(0)))
}

/// The end of a program's output.
fn log_tail(file: &str) -> String {
    let messages = fs::read_to_string(file).unwrap_or_default();
    messages.chars().rev().take(300).collect::<Vec<_>>().into_iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's table is read in parts: rows may be missing while other processes open and close sockets.
    #[test]
    fn a_port_that_is_listened_on_is_seen() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(testing::eventually(|| listens(port)));
        drop(listener);
        assert!(testing::eventually(|| !listens(port)));
    }

    #[test]
    fn the_received_bytes_are_found_in_iperf3s_report() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let report = r#"{"end": {"sum_sent": {"bytes": 20054016}, "sum_received": {"bytes": 18346432}}}"#;
        fs::write(&file, report).unwrap();
        assert_eq!(received(file.path().to_str().unwrap()), Some(18_346_432));
        fs::write(&file, r#"{"end": {}, "error": "unable to connect"}"#).unwrap();
        assert_eq!(received(file.path().to_str().unwrap()), None);
    }

    #[test]
    fn the_rate_is_found_in_wgets_log() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let rate = |line: &str| {
            fs::write(&file, format!(" 96% [====>   ] 1.2MB/s eta 1s\n\n{line} - '/dev/null' saved [100]\n")).unwrap();
            wget_rate(file.path().to_str().unwrap())
        };
        assert_eq!(rate("2024-01-01 00:00:00 (42.5 MB/s)"), Some(42.5 * 1024.0 * 1024.0));
        assert_eq!(rate("2024-01-01 00:00:00 (812 KB/s)"), Some(812.0 * 1024.0));
        assert_eq!(rate("2024-01-01 00:00:00 (0.00 B/s)"), None);
        fs::write(&file, "Login incorrect.\n").unwrap();
        assert_eq!(wget_rate(file.path().to_str().unwrap()), None);
    }
}

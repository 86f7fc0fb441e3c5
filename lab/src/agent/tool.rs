//! A flow that programs make: a server that waits, a client that connects at the flow's start and ends when all is done.

use super::tally::Tally;
use super::traffic::Flow;
use super::{Outcome, enter, until, within};
use crate::Generator;
use crate::plan::{self, Job, Tcp, Traffic};
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

/// FTP's port for commands.
const FTP: u16 = 21;
/// For a server to listen, and for a client to end after its time, with all that its queues still hold.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time between two looks.
const BEAT: Duration = Duration::from_millis(10);

/// A flow made by programs.
pub(super) struct Tool {
    tool: plan::Tool,
    size: Option<u64>,
    tally: Arc<Tally>,
    client: Arc<Client>,
}

/// What became of the client.
#[derive(Default)]
struct Client {
    number: OnceLock<Pid>,
    /// How long it took, or what went wrong.
    end: OnceLock<Result<Duration, String>>,
    /// We have ended it.
    is_cut: AtomicBool,
}

impl Tool {
    /// The server listens from now on.
    pub(super) fn open(traffic: &Traffic, tcp: &Tcp, tool: &plan::Tool) -> Outcome<Self> {
        let (server, [source, sink]) = (&tool.server, &traffic.sides);
        within(&server.space, || match tool.generator {
            Generator::Ftp => serve_ftp(server, source.address, tcp.subflows.as_deref().unwrap_or_default()),
            _ => serve(server, sink.address.port()),
        })?;
        let tally = Arc::<Tally>::default();
        tally.expect(source.address);
        Ok(Self { tool: tool.clone(), size: tcp.size, tally, client: Arc::default() })
    }
}

impl Flow for Tool {
    fn begin(&self, [start, _]: [Instant; 2]) -> Outcome<()> {
        let (tool, size) = (self.tool.clone(), self.size);
        let (tally, client) = (self.tally.clone(), self.client.clone());
        thread::spawn(move || {
            let end = client.run(&tool.client, start).map_err(|why| format!("`{}` {why}", tool.client.line));
            if let Ok(took) = client.end.get_or_init(|| end) {
                tally.read(tool.delivered(size).unwrap_or(0));
                size.map(|_| tally.completion.get_or_init(|| *took));
            }
            tally.end(None);
        });
        Ok(())
    }

    fn tally(&self) -> &Tally {
        &self.tally
    }

    /// iperf3 without a size has its time.
    fn stop(&self) {
        if self.size.is_some() {
            self.client.cut();
        }
    }

    fn finish(&self) -> Outcome<()> {
        self.stop();
        self.client.wait();
        self.client.cut();
        self.client.wait();
        match self.client.end.get() {
            Some(Err(why)) if !self.client.is_cut.load(Ordering::Relaxed) => Err(why.as_str().into()),
            _ => Ok(()),
        }
    }
}

impl plan::Tool {
    /// What the sink has read, of a program that has ended well. iperf3 counts what its server has read; it ends with what
    /// its client has written, so that may be less.
    fn delivered(&self, size: Option<u64>) -> Option<u64> {
        if self.generator == Generator::Ftp { size } else { received(&self.client.output) }
    }
}

impl Client {
    fn run(&self, job: &Job, start: Instant) -> Outcome<Duration> {
        enter(&job.space)?;
        until(start);
        let mut child = spawn(job, Stdio::null(), File::create(&job.output)?.into())?;
        self.number.get_or_init(|| Pid::from_raw(child.id().cast_signed()));
        let status = child.wait()?;
        let took = start.elapsed();
        if status.success() { Ok(took) } else { Err(format!("failed ({status}): {}", last_words(&job.output)).into()) }
    }

    fn cut(&self) {
        if let Some(number) = self.number.get().filter(|_| self.end.get().is_none()) {
            self.is_cut.store(true, Ordering::Relaxed);
            let _ = kill(*number, Signal::SIGTERM); // fails where it has just ended by itself
        }
    }

    fn wait(&self) {
        let begin = Instant::now();
        while self.number.get().is_some() && self.end.get().is_none() && begin.elapsed() < PATIENCE {
            thread::sleep(BEAT);
        }
    }
}

/// Starts a server in this thread's namespace, and waits until it listens. It ends with the run.
fn serve(job: &Job, port: u16) -> Outcome<()> {
    spawn(job, Stdio::null(), File::create(&job.output)?.into())?;
    let begin = Instant::now();
    while !listens(port) {
        if begin.elapsed() > PATIENCE {
            return Err(format!("`{}` does not listen: {}", job.line, last_words(&job.output)).into());
        }
        thread::sleep(BEAT);
    }
    Ok(())
}

/// As `inetd` does it: takes the first connection for commands, and gives it to the server as its input and output. So it is
/// TCP, while what the server opens may be MPTCP: vsftpd wants SO_OOBINLINE of the first, which MPTCP does not have.
fn serve_ftp(job: &Job, source: SocketAddr, subflows: &[IpAddr]) -> Outcome<()> {
    let any: IpAddr = if source.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let (listener, job) = (TcpListener::bind((any, FTP))?, job.clone());
    let others = subflows.iter().filter(|address| **address != source.ip());
    let doors = others.map(|address| door(SocketAddr::new(*address, source.port()))).collect::<Outcome<Vec<_>>>()?;
    thread::spawn(move || -> Outcome<()> {
        enter(&job.space)?;
        let input = OwnedFd::from(listener.accept()?.0);
        let output = input.try_clone()?;
        spawn(&job, input.into(), output.into())?.wait()?;
        drop(doors);
        Ok(())
    });
    Ok(())
}

/// The kernel lets further subflows in where somebody listens. vsftpd does on the address of the first one only.
fn door(address: SocketAddr) -> Outcome<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::MPTCP))?;
    socket.bind(&address.into())?;
    socket.listen(1)?;
    Ok(socket)
}

/// In this thread's namespace. What it complains of goes where the other output of a job goes.
fn spawn(job: &Job, input: Stdio, output: Stdio) -> Outcome<Child> {
    let mut words = job.line.split_whitespace();
    let errors = File::options().append(true).create(true).open(&job.output)?;
    let mut command = Command::new(words.next().unwrap_or_default());
    Ok(command.args(words).stdin(input).stdout(output).stderr(errors).spawn()?)
}

/// A server listens on this port in this thread's namespace.
fn listens(port: u16) -> bool {
    const LISTEN: &str = "0A";
    let port = format!(":{port:04X}");
    ["tcp", "tcp6"].iter().any(|family| {
        let table = fs::read_to_string(format!("/proc/thread-self/net/{family}")).unwrap_or_default();
        let mut rows = table.lines().map(|row| row.split_whitespace().collect::<Vec<_>>());
        rows.any(|row| row.get(1).is_some_and(|own| own.ends_with(&port)) && row.get(3) == Some(&LISTEN))
    })
}

/// What iperf3's server has read, by its client's JSON.
fn received(file: &str) -> Option<u64> {
    let report: serde_json::Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    report["end"]["sum_received"]["bytes"].as_u64()
}

/// The end of what it said.
fn last_words(file: &str) -> String {
    let said = fs::read_to_string(file).unwrap_or_default();
    said.chars().rev().take(300).collect::<Vec<_>>().into_iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_listened_on_is_seen() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(listens(port));
        drop(listener);
        assert!(!listens(port));
    }

    #[test]
    fn what_iperf3_has_received_is_found_in_its_report() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let report = r#"{"end": {"sum_sent": {"bytes": 20054016}, "sum_received": {"bytes": 18346432}}}"#;
        fs::write(&file, report).unwrap();
        assert_eq!(received(file.path().to_str().unwrap()), Some(18_346_432));
        fs::write(&file, r#"{"end": {}, "error": "unable to connect"}"#).unwrap();
        assert_eq!(received(file.path().to_str().unwrap()), None);
    }
}

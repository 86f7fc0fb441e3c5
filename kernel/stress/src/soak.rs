//! All disturbances at once for a given time. Connections are long and short, over MPTCP and plain TCP, and their
//! algorithms are switched and unloaded while in use. The links change, lose and reorder packets, and their endpoints
//! come and go.

use crate::churn::{self, Shared, count};
use crate::network::{Host, Network};
use crate::observe::{Held, KernelLog, counter, sockets};
use crate::traffic::{Connection, Kind, Sink};
use crate::trial::wait_until;
use kernel::Program;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use units::RngStream;

/// Number of connections at any time that send as much as they can for some seconds.
const LONG: u64 = 3;
/// Threads that open one short connection after another.
const SHORT: u64 = 2;
/// Links of the network.
const LINKS: usize = 3;

/// The parameters of a run.
#[derive(Clone, Debug)]
pub struct Soak {
    /// Programs that are loaded, used, and unloaded while in use.
    pub programs: Vec<&'static Program>,
    /// The kernel's own algorithms that connections also draw.
    pub own: Vec<String>,
    /// The duration.
    pub span: Duration,
    /// The seed of all random choices.
    pub seed: u64,
    /// Time from one unloading to the next.
    pub reload_interval: Duration,
}

/// The result of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// Counters, with their names.
    pub counters: Vec<(&'static str, u64)>,
    /// Warnings of the kernel, and leftovers; empty if there are none.
    pub findings: Vec<String>,
}

impl Soak {
    /// Runs it, and calls `progress` about every ten seconds.
    ///
    /// # Errors
    /// If it cannot be set up, or a thread failed.
    pub fn run(&self, progress: &mut dyn FnMut(&Report)) -> Result<Report, String> {
        let mut log = KernelLog::from_now()?;
        for program in &self.programs {
            kernel::load(program).map_err(|error| error.to_string())?;
        }
        let outcome = self.carry(&mut log, progress);
        for program in &self.programs {
            kernel::unload(program).map_err(|error| error.to_string())?;
        }
        let mut report = outcome?;
        if !wait_until(|| Held::of(&self.programs).is_empty()) {
            report.findings.push(format!("the kernel still holds {:?}", Held::of(&self.programs)));
        }
        report.findings.extend(log.findings());
        Ok(report)
    }

    fn carry(&self, log: &mut KernelLog, progress: &mut dyn FnMut(&Report)) -> Result<Report, String> {
        let network = Arc::new(Network::new(LINKS)?);
        let sink = Sink::start(&network)?;
        let shared = Arc::new(Shared::default());
        let threads = self.threads(&network, &shared);
        let (start, mut findings) = (Instant::now(), Vec::new());
        while start.elapsed() < self.span && findings.is_empty() && !threads.iter().any(JoinHandle::is_finished) {
            std::thread::sleep(Duration::from_secs(10).min(self.span.saturating_sub(start.elapsed())));
            findings.extend(log.findings());
            progress(&Report { counters: counters(&network, &shared, &sink)?, findings: findings.clone() });
        }
        shared.stop.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().map_err(|_| "a thread panicked")??;
        }
        let counters = counters(&network, &shared, &sink)?;
        drop(sink);
        if !wait_until(|| sockets(&network, Host::Client) == Ok(0)) {
            let left = sockets(&network, Host::Client)?;
            findings.push(format!("the client still has {left} sockets"));
        }
        Ok(Report { counters, findings })
    }

    fn threads(&self, network: &Arc<Network>, shared: &Arc<Shared>) -> Vec<JoinHandle<Result<(), String>>> {
        let mut names = self.own.clone();
        names.extend(self.programs.iter().map(|program| program.kernel_name.to_owned()));
        let stream = |name: &str| RngStream::named(self.seed, name);
        let mut threads = Vec::new();
        for index in 0..LONG + SHORT {
            let (names, shared, rng) = (names.clone(), shared.clone(), stream(&format!("connections {index}")));
            let sender = Sender { names, shared, rng };
            threads.push(network.spawn(Host::Client, move || {
                if index < LONG {
                    sender.long();
                } else {
                    sender.short();
                };
                Ok(())
            }));
        }
        let (of_links, of_endpoints) = ((network.clone(), shared.clone()), (network.clone(), shared.clone()));
        let (links, endpoints) = (stream("links"), stream("endpoints"));
        threads.push(std::thread::spawn(move || churn::links(&of_links.0, &of_links.1, links)));
        threads.push(std::thread::spawn(move || {
            churn::endpoints(&of_endpoints.0, &of_endpoints.1, endpoints, u64::MAX);
            Ok(())
        }));
        let (programs, shared, interval) = (self.programs.clone(), shared.clone(), self.reload_interval);
        if !programs.is_empty() {
            threads.push(std::thread::spawn(move || churn::programs(&programs, &shared, interval)));
        }
        threads
    }
}

fn counters(network: &Network, shared: &Shared, sink: &Sink) -> Result<Vec<(&'static str, u64)>, String> {
    let of_client = |group, name| counter(network, Host::Client, group, name);
    let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    Ok(vec![
        ("MB", sink.bytes() / 1_000_000),
        ("connections", load(&shared.connections)),
        ("refused", load(&shared.refused)),
        ("switches", load(&shared.switches)),
        ("reloads", load(&shared.reloads)),
        ("endpoint changes", load(&shared.endpoint_changes)),
        ("joins", of_client("MPTcpExt", "MPJoinSynAckRx")?),
        ("link changes", load(&shared.link_changes)),
        ("fast retransmissions", of_client("TcpExt", "TCPFastRetrans")?),
        ("timeouts", of_client("TcpExt", "TCPTimeouts")?),
        ("undone reductions", of_client("TcpExt", "TCPFullUndo")? + of_client("TcpExt", "TCPDSACKUndo")?),
        ("reordered by SACK", of_client("TcpExt", "TCPSACKReorder")?),
    ])
}

/// A thread that opens connections one after the other.
struct Sender {
    names: Vec<String>,
    shared: Arc<Shared>,
    rng: RngStream,
}

impl Sender {
    fn draw(&mut self) -> String {
        self.names[usize::try_from(self.rng.below(self.names.len() as u64)).expect("an index")].clone()
    }

    /// Opens a connection; one in five is plain TCP. It fails if a program is just being unloaded, or a handshake is
    /// lost.
    fn open(&mut self) -> Option<Connection> {
        let kind = if self.rng.chance(0.2) { Kind::Tcp } else { Kind::Mptcp };
        let name = self.draw();
        let connection = Connection::open(kind, &name);
        count(if connection.is_ok() { &self.shared.connections } else { &self.shared.refused });
        connection.ok()
    }

    /// Some seconds each, with a switch of the algorithm every second or so; a third end with a reset.
    fn long(mut self) {
        while !self.shared.stopped() {
            let Some(mut connection) = self.open() else { continue };
            for _ in 0..1 + self.rng.below(8) {
                let span = Duration::from_millis(200 + self.rng.below(2000));
                let (start, shared) = (Instant::now(), self.shared.clone());
                connection.send(u64::MAX, &|| start.elapsed() > span || shared.stopped());
                let name = self.draw();
                if connection.switch(&name).is_ok() {
                    count(&self.shared.switches);
                }
            }
            if self.rng.below(3) == 0 {
                connection.reset_on_close();
            }
        }
    }

    /// Up to 300 kB each, and a pause.
    fn short(mut self) {
        while !self.shared.stopped() {
            let Some(mut connection) = self.open() else { continue };
            let bytes = 1 + self.rng.below(300_000);
            let shared = self.shared.clone();
            connection.send(bytes, &|| shared.stopped());
            drop(connection);
            let pause = self.rng.below(100);
            self.shared.sleep(Duration::from_millis(pause));
        }
    }
}

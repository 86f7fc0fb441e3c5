//! Checks whether programs that were used heavily and unloaded while in use leave anything behind. Each program gets a
//! given number of subflow joins and removals on two simultaneous long connections, and of short connections at the
//! same time.

use crate::churn::{self, Shared, count};
use crate::network::{Host, Network};
use crate::observe::{Held, KernelLog, counter};
use crate::traffic::{Connection, Kind, Sink};
use crate::trial::wait_until;
use kernel::Program;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use units::RngStream;

/// Long connections at once.
const LONG: u64 = 2;
/// Links of a network.
const LINKS: usize = 3;

/// The load for each program.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Endpoints removed or added, five per second.
    pub endpoint_changes: u64,
    /// Short connections, one after the other.
    pub short_connections: u64,
}

/// The result of a run.
#[derive(Debug, Default)]
pub struct Remains {
    /// For each program: joins of subflows, connections, megabytes.
    pub rows: Vec<String>,
    /// Problems; empty if there are none.
    pub findings: Vec<String>,
}

/// Loads the programs, uses all at the same time, each in its own network, unloads them while they are in use, closes
/// the connections, and checks for leftovers.
///
/// # Errors
/// If something cannot be set up or loaded.
pub fn run(programs: &[&'static Program], load: Load) -> Result<Remains, String> {
    let mut log = KernelLog::from_now()?;
    let before = Held::of(programs); // of somebody else who has just unloaded them
    let mut loaded = Vec::new();
    let outcome = programs.iter().try_for_each(|program| {
        kernel::load(program).map_err(|error| error.to_string())?;
        loaded.push(*program);
        Ok::<(), String>(())
    });
    let held = Held::of(programs).without(&before);
    let used = outcome.and_then(|()| use_all(programs, load));
    for program in loaded {
        kernel::unload(program).map_err(|error| error.to_string())?;
    }
    let mut remains = Remains::default();
    // From here on the connections have algorithms that are unloaded. They close at once, as each drains its queues for seconds.
    let closing: Vec<_> = used?.into_iter().map(|used| std::thread::spawn(move || used.close())).collect();
    for (program, thread) in programs.iter().zip(closing) {
        let name = program.kernel_name;
        let (row, finding) = joined(thread)?;
        remains.rows.push(format!("{name}: {row}"));
        remains.findings.extend(finding.map(|finding| format!("{name}: {finding}")));
    }
    // Ids are not reused: programs loaded since then have others.
    let left = || held.among(&Held::of(programs));
    if !wait_until(|| left().is_empty()) {
        remains.findings.push(format!("the kernel still holds {:?}", left()));
    }
    remains.findings.extend(log.findings());
    Ok(remains)
}

/// A network whose long connections are still open.
struct Used {
    network: Arc<Network>,
    sink: Sink,
    shared: Arc<Shared>,
    long: Vec<JoinHandle<Result<(), String>>>,
}

fn use_all(programs: &[&'static Program], load: Load) -> Result<Vec<Used>, String> {
    let start = |program: &&'static Program| {
        let name = program.kernel_name;
        std::thread::spawn(move || use_one(name, load))
    };
    let threads: Vec<_> = programs.iter().map(start).collect();
    threads.into_iter().map(joined).collect()
}

fn joined<T>(thread: JoinHandle<Result<T, String>>) -> Result<T, String> {
    thread.join().map_err(|_| "a thread panicked".to_owned())?
}

fn use_one(name: &'static str, load: Load) -> Result<Used, String> {
    let network = Arc::new(Network::new(LINKS)?);
    for link in 0..LINKS {
        network.tc(Host::Router, &format!("qdisc add dev down{link} root tbf rate 20mbit burst 20kb limit 60kb"))?;
    }
    let (sink, shared) = (Sink::start(&network)?, Arc::new(Shared::default()));
    let long = (0..LONG).map(|_| {
        let shared = shared.clone();
        network.spawn(Host::Client, move || {
            Connection::open(Kind::Mptcp, name)?.send(u64::MAX, &|| shared.stopped());
            Ok(())
        })
    });
    let long: Vec<_> = long.collect();
    let counted = shared.clone();
    let short = network.spawn(Host::Client, move || {
        (0..load.short_connections).try_for_each(|_| {
            Connection::open(Kind::Mptcp, name)?.send(20_000, &|| false);
            count(&counted.connections);
            Ok::<(), String>(())
        })
    });
    churn::endpoints(&network, &shared, RngStream::named(1, name), load.endpoint_changes);
    joined(short)?;
    Ok(Used { network, sink, shared, long })
}

impl Used {
    /// Closes the connections; returns the summary, and a problem if there is one.
    fn close(self) -> Result<(String, Option<String>), String> {
        let before = self.sink.bytes();
        let continued = wait_until(|| self.sink.bytes() > before);
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.long {
            joined(thread)?;
        }
        let joins = counter(&self.network, Host::Client, "MPTcpExt", "MPJoinSynAckRx")?;
        let changes = self.shared.endpoint_changes.load(Ordering::Relaxed);
        let connections = self.shared.connections.load(Ordering::Relaxed) + LONG;
        let megabytes = self.sink.bytes() / 1_000_000;
        let row = format!("{changes} endpoint changes, {joins} joins, {connections} connections, {megabytes} MB");
        let closed = self.sink.close(&self.network);
        let silent = (!continued).then(|| "nothing was carried any more after it was unloaded".to_owned());
        let finding = silent.or(closed.err());
        Ok((row, finding))
    }
}

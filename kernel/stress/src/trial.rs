//! One program from loading to unloading: whether it loads, carries data and couples, whether each of its hooks is
//! called, and whether it leaves nothing behind.

use crate::exercise;
use crate::network::{Host, Network};
use crate::observe::{Held, KernelLog, Stats, sockets};
use crate::traffic::{Connection, Kind, Sink};
use kernel::{Hook, Loaded, Program};
use std::time::{Duration, Instant};

/// Bytes that a trial sends.
const BYTES: u64 = 8_000_000;
/// Payload of a full packet in these tests, bytes.
pub(crate) const PACKET: u64 = 1428;
/// Slow-start threshold from the start, packets, so that all growth is that of congestion avoidance.
const SSTHRESH: u64 = 10;
/// Programs whose two equal subflows grow by a quarter of Reno's growth; the limit is in the middle between 1/4 and 1.
const QUARTER: [&str; 3] = ["lia", "olia", "balia"];
/// The program that becomes Reno if ECN was not negotiated.
const NEEDS_ECN: &str = "dctcp";
const GREATEST_GROWTH: f64 = 0.5;
/// Time after which a condition has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// The result of a trial.
#[derive(Debug)]
pub struct Outcome {
    /// Bytes that arrived.
    pub carried: u64,
    /// Windows of the subflows at the end, packets; empty if the kernel has no netem, because they are meaningless
    /// then.
    pub windows: Vec<u64>,
    /// The upper limit of [`Outcome::growth`].
    pub greatest_growth: Option<f64>,
    /// The program's hooks with their calls; each has to be called.
    pub hooks: Vec<Hook>,
    /// Whether nothing was left after the program was unloaded and the connection closed.
    pub unloaded: bool,
    /// Warnings of the kernel during the trial.
    pub log: Vec<String>,
}

impl Outcome {
    /// Growth of the windows in congestion avoidance relative to uncoupled Reno's, whose square is twice the packets
    /// sent. Two equal subflows coupled by LIA, OLIA or BALIA have a quarter. `None` if there are not two subflows.
    #[must_use]
    pub fn growth(&self) -> Option<f64> {
        let squares: u64 = self.windows.iter().map(|window| window.pow(2).saturating_sub(SSTHRESH.pow(2))).sum();
        (self.windows.len() == 2).then(|| squares as f64 / (2.0 * (self.carried / PACKET) as f64))
    }

    /// The result in one line.
    ///
    /// # Errors
    /// What went wrong, in one line.
    pub fn row(&self) -> Result<String, String> {
        if !self.unloaded {
            return Err("unloaded, but the kernel still holds it".to_owned());
        }
        if let Some(line) = self.log.first() {
            return Err(format!("the kernel's log: {line}"));
        }
        let silent: Vec<&str> = self.hooks.iter().filter(|hook| hook.calls == 0).map(|hook| hook.name).collect();
        if self.hooks.is_empty() || !silent.is_empty() {
            return Err(format!("of its {} hooks never called: {}", self.hooks.len(), silent.join(", ")));
        }
        if let (Some(growth), Some(greatest)) = (self.growth(), self.greatest_growth)
            && growth > greatest
        {
            return Err(format!("not coupled: its windows {:?} grew by {growth:.2} of Reno's", self.windows));
        }
        let growth = self.growth().map_or_else(|| "-".to_owned(), |growth| format!("{growth:.2}"));
        Ok(format!("carried {} MB, windows {:?}, growth {growth}, unloaded", self.carried / 1_000_000, self.windows))
    }
}

/// Loads a program and sends over two subflows of 20 ms each (if the kernel has netem). Then makes them lose packets,
/// time out and become idle ([`exercise`]), unloads the program while it is in use, and closes.
///
/// # Errors
/// The first failure: of loading, with the kernel's message, or of the connection.
pub fn run(program: &'static Program) -> Result<Outcome, String> {
    let mut log = KernelLog::from_now()?;
    let _stats = Stats::enable()?;
    let before = Held::of(&[program]); // of somebody else who has just unloaded it
    let loaded = kernel::load(program).map_err(|error| error.to_string())?;
    let held = Held::of(&[program]).without(&before);
    let carried = carry(&loaded);
    let unloaded = kernel::unload(program).map_err(|error| error.to_string());
    let (paths, connection, windows, hooks) = carried?;
    unloaded?;
    paths.close(connection)?;
    let unloaded = wait_until(|| held.among(&Held::of(&[program])).is_empty());
    let greatest_growth = QUARTER.contains(&program.name).then_some(GREATEST_GROWTH);
    Ok(Outcome { carried: BYTES, windows, greatest_growth, hooks, unloaded, log: log.findings() })
}

type Carried = (Paths, Connection, Vec<u64>, Vec<Hook>);

/// A connection that has sent all its data, with the windows of its subflows (none if the kernel has no netem), and the
/// hooks that were called after it lost packets, timed out and was idle.
fn carry(loaded: &Loaded) -> Result<Carried, String> {
    let mut paths = Paths::new(2)?;
    let delay = |link| format!("qdisc add dev down{link} root netem delay 20ms limit 10000");
    let delayed = (0..2).all(|link| paths.network.tc(Host::Router, &delay(link)).is_ok());
    let mut connection = open(&mut paths, loaded.program)?;
    paths.send(&mut connection, BYTES)?;
    let windows = if delayed { windows(&paths.network)? } else { Vec::new() };
    let hooks = exercise::run(&mut paths, &mut connection, loaded.id)?;
    Ok((paths, connection, windows, hooks))
}

/// Opens a connection with the program. A program that needs ECN takes over from Reno, because its own SYN claims to be
/// ECN-capable: a listener with another algorithm refuses ECN, and then the program becomes Reno.
fn open(paths: &mut Paths, program: &Program) -> Result<Connection, String> {
    if program.name != NEEDS_ECN {
        return paths.open(program.kernel_name);
    }
    let connection = paths.open("reno")?;
    connection.switch(program.kernel_name)?;
    Ok(connection)
}

/// A network of several links, on which connections leave slow start at ten packets.
#[derive(Debug)]
pub struct Paths {
    pub(crate) network: Network,
    sink: Sink,
    /// Bytes that its connections have sent.
    sent: u64,
}

impl Paths {
    /// Makes a network with `links` links.
    ///
    /// # Errors
    /// The message of a command or a socket.
    pub fn new(links: usize) -> Result<Self, String> {
        let network = Network::new(links)?;
        let sink = Sink::start(&network)?;
        for link in 0..links {
            let route = format!("route replace default via 10.77.{link}.2 dev up{link} table {}", 100 + link);
            network.ip(Host::Client, &format!("{route} ssthresh lock {SSTHRESH} initcwnd {SSTHRESH}"))?;
        }
        network.write(Host::Client, "net/ipv4/tcp_ecn", "1")?;
        // A route's threshold applies only with this setting, and only to an address that has had a connection before.
        network.write(Host::Client, "net/ipv4/tcp_no_ssthresh_metrics_save", "0")?;
        for link in 0..links {
            drop(start(&network, link, Kind::Tcp, "reno")?);
        }
        if !wait_until(|| sink.ended() == links as u64 && sockets(&network, Host::Client) == Ok(0)) {
            return Err("plain TCP connections did not end".to_owned());
        }
        Ok(Self { network, sink, sent: links as u64 * PACKET })
    }

    /// An MPTCP connection with a subflow on each link, which has sent a packet.
    ///
    /// # Errors
    /// If the kernel does not give it this congestion control, or not all subflows.
    pub fn open(&mut self, congestion: &str) -> Result<Connection, String> {
        let connection = start(&self.network, 0, Kind::Mptcp, congestion)?;
        self.sent += PACKET;
        let chosen = connection.congestion()?;
        if chosen != congestion {
            return Err(format!("the connection has {chosen} instead of {congestion}"));
        }
        if !wait_until(|| windows(&self.network).is_ok_and(|windows| windows.len() == self.network.links())) {
            return Err("not a subflow on each link".to_owned());
        }
        Ok(connection)
    }

    /// Closes the last connection, and then removes the network: a socket that lost its network before it was closed would hold
    /// its program for minutes.
    ///
    /// # Errors
    /// The sockets that are left.
    pub fn close(self, connection: Connection) -> Result<(), String> {
        drop(connection);
        self.sink.close(&self.network)
    }

    /// Sends, and waits only until all is in the connection's buffer.
    pub(crate) fn start_sending(&mut self, connection: &mut Connection, bytes: u64) {
        let start = Instant::now();
        self.sent += connection.send(bytes, &|| start.elapsed() > PATIENCE);
    }

    /// Sends, and waits until all has arrived.
    ///
    /// # Errors
    /// If it does not arrive.
    pub fn send(&mut self, connection: &mut Connection, bytes: u64) -> Result<(), String> {
        let start = Instant::now();
        self.start_sending(connection, bytes);
        let arrived = wait_until(|| self.sink.bytes() == self.sent);
        match arrived && start.elapsed() < PATIENCE {
            true => Ok(()),
            false => Err(format!("{bytes} bytes did not arrive in {} s", PATIENCE.as_secs())),
        }
    }
}

fn start(network: &Network, link: usize, kind: Kind, congestion: &str) -> Result<Connection, String> {
    let name = congestion.to_owned();
    let thread = network.spawn(Host::Client, move || {
        let mut connection = Connection::open_by(link, kind, &name)?;
        connection.send(PACKET, &|| false); // subflows join once data has been acknowledged
        Ok(connection)
    });
    thread.join().map_err(|_| "the connecting thread panicked".to_owned())?
}

/// The windows of the client's established subflows, as `ss` prints them.
fn windows(network: &Network) -> Result<Vec<u64>, String> {
    let table = network.run(Host::Client, "ss -Htin state established")?;
    Ok(table.split_whitespace().filter_map(|word| word.strip_prefix("cwnd:")?.parse().ok()).collect())
}

/// Whether a condition becomes true in time.
pub fn wait_until(condition: impl FnMut() -> bool) -> bool {
    wait_within(PATIENCE, condition)
}

/// Whether a condition becomes true within this time.
pub(crate) fn wait_within(time: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < time {
        if condition() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

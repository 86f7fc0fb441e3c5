//! A testbed: hosts as network namespaces, joined by links with a rate, delay, jitter, loss and queue.
//!
//! ```no_run
//! use lab::testbed::{Testbed, LEFT, RIGHT};
//! # use ropewalk_lab as lab;
//! let mut testbed = Testbed::pair(&["ropewalk", "lab-agent"], &["rate=100mbit delay=10ms", "rate=50mbit delay=30ms"])?;
//! println!("{}", testbed.run(LEFT, &format!("ping -c 3 {}", testbed.v4(1, RIGHT)))?);
//! testbed.change(1, "both down")?;
//! # Ok::<(), lab::testbed::Error>(())
//! ```
//!
//! Link `k` is the device `p<k>` in both its hosts, with addresses 10.88.k.1 and .2, fd88:k::1 and ::2 (the first is
//! that of the host named first). A link without a shape is a veth pair, one with a rate alone a veth pair with the
//! token bucket filter of `tc`, any other an emulated one. It needs root.
//!
//! Namespaces and processes are removed when the value is dropped. A reaper, a process of its own, removes them if the
//! owner is killed; if the reaper is killed too, the next testbed does.

mod commands;
mod error;
mod interactive;
mod link;
mod reaper;

pub use crate::emulator::Shape;
pub use error::Error;
pub(crate) use interactive::main as interactive_main;
pub(crate) use reaper::main as reap;
pub(crate) use reaper::{Reaper, sweep};

use link::RunningLink;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The result of work in a host's network.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The first host of a [pair](Testbed::pair).
pub const LEFT: usize = 0;
/// The second host of a [pair](Testbed::pair).
pub const RIGHT: usize = 1;

/// Number of testbeds and runs of this process so far, which is a part of their names.
static TESTBEDS: AtomicU32 = AtomicU32::new(0);

/// A link between two hosts of a testbed.
#[derive(Clone, Debug)]
pub struct Link {
    /// The indices of both hosts.
    pub hosts: [usize; 2],
    /// From the first to the second host.
    pub forward: Shape,
    /// From the second to the first.
    pub reverse: Shape,
}

/// Hosts and links, which are removed when this value is dropped.
#[derive(Debug)]
pub struct Testbed {
    hosts: Vec<String>,
    links: Vec<Link>,
    // Fields are dropped in this order: the links' processes before the namespaces.
    running: Vec<RunningLink>,
    _reaper: Reaper,
}

/// A name for a testbed or a run that is unique on this machine: the prefix of its namespaces' names.
pub(crate) fn name() -> String {
    format!("rw-{}-{}", std::process::id(), TESTBEDS.fetch_add(1, Ordering::Relaxed))
}

/// Checks that this process can make testbeds.
///
/// # Errors
/// The missing privilege or device, in words.
pub fn possible() -> Result<(), String> {
    if !nix::unistd::Uid::effective().is_root() {
        return Err("testbeds need root".into());
    }
    std::fs::File::open("/dev/net/tun").map_err(|error| format!("testbeds need /dev/net/tun: {error}"))?;
    let probe = format!("{}-probe", name());
    commands::run(&format!("ip netns add {probe}")).map_err(|error| format!("no network namespaces here: {error}"))?;
    commands::run(&format!("ip netns del {probe}")).map(drop).map_err(|error| error.to_string())
}

impl Testbed {
    /// Makes two hosts with these links between them, each `FORWARD / REVERSE`, or one [shape](Shape) for both
    /// directions.
    ///
    /// # Errors
    /// A shape that cannot be read; a command that fails.
    pub fn pair(agent: &[&str], links: &[&str]) -> Result<Self, Error> {
        let link = |words: &&str| {
            let [forward, reverse] = crate::emulator::parse_shapes(words).map_err(Error::Shape)?;
            Ok(Link { hosts: [LEFT, RIGHT], forward, reverse })
        };
        Self::new(agent, &["left", "right"], &links.iter().map(link).collect::<Result<Vec<_>, Error>>()?)
    }

    /// Hosts of these names, each up to six letters long, with `links`. `agent` is the command that runs
    /// [`agent`](crate::agent): `ropewalk lab-agent`, or `ropewalk-lab-agent`.
    ///
    /// # Errors
    /// A command that fails.
    pub fn new(agent: &[&str], hosts: &[&str], links: &[Link]) -> Result<Self, Error> {
        sweep();
        let name = name();
        let reaper = Reaper::start(agent, &name, None)?;
        let hosts: Vec<String> = hosts.iter().map(|host| format!("{name}-{host}")).collect();
        let mut testbed = Self { hosts, links: links.to_vec(), running: Vec::new(), _reaper: reaper };
        for host in &testbed.hosts {
            commands::host(host)?;
        }
        for (k, link) in links.iter().enumerate() {
            let hosts = link.hosts.map(|host| testbed.hosts[host].as_str());
            testbed.running.push(RunningLink::create(agent, k, hosts, link)?);
            commands::addresses(k, hosts)?;
        }
        Ok(testbed)
    }

    /// The network namespace of a host.
    #[must_use]
    pub fn namespace(&self, host: usize) -> &str {
        &self.hosts[host]
    }

    /// The device of a link, in both its hosts.
    #[must_use]
    pub fn device(&self, link: usize) -> String {
        commands::device(link)
    }

    /// A host's IPv4 address on a link, which has 24 bits of network.
    #[must_use]
    pub fn v4(&self, link: usize, host: usize) -> Ipv4Addr {
        commands::v4(link, self.end(link, host))
    }

    /// A host's IPv6 address on a link, which has 64 bits of network.
    #[must_use]
    pub fn v6(&self, link: usize, host: usize) -> Ipv6Addr {
        commands::v6(link, self.end(link, host))
    }

    /// A command that runs `program` in a host.
    #[must_use]
    pub fn command(&self, host: usize, program: &str) -> Command {
        commands::in_namespace(&self.hosts[host], program)
    }

    /// Runs a command line (split at blanks) in a host to its end and returns its output.
    ///
    /// # Errors
    /// The command cannot be run, or it fails; the error has its output.
    pub fn run(&self, host: usize, line: &str) -> Result<String, Error> {
        let mut words = line.split_whitespace();
        let mut command = self.command(host, words.next().unwrap_or_default());
        commands::finish(command.args(words), line)
    }

    /// Does `work` in a host's namespace, on a thread of its own: sockets opened there belong to the host.
    ///
    /// # Errors
    /// An error of `work`, or a namespace that cannot be entered.
    pub fn within<T: Send>(&self, host: usize, work: impl FnOnce() -> Outcome<T> + Send) -> Outcome<T> {
        crate::namespace::within(&self.hosts[host], work)
    }

    /// Changes an emulated link while it carries packets: `forward`, `reverse` or `both`, then any of `up`, `down`,
    /// `rate=`, `delay=`, `loss=`, `mtu=`. A link that is down drops all packets; the devices stay up.
    ///
    /// # Errors
    /// The link is not emulated, or it refuses the change.
    pub fn change(&mut self, link: usize, words: &str) -> Result<(), Error> {
        self.running[link].change(words)
    }

    fn end(&self, link: usize, host: usize) -> usize {
        let end = self.links[link].hosts.iter().position(|name| *name == host);
        end.unwrap_or_else(|| panic!("host {host} is not on link {link}"))
    }
}

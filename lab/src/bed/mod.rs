//! A test bed: hosts as network namespaces, joined by links with a rate, delay, jitter, loss and queue.
//!
//! ```no_run
//! use lab::bed::{Bed, LEFT, RIGHT};
//! # use ropewalk_lab as lab;
//! let mut bed = Bed::pair(&["ropewalk", "lab-agent"], &["rate=100mbit delay=10ms", "rate=50mbit delay=30ms"])?;
//! println!("{}", bed.run(LEFT, &format!("ping -c 3 {}", bed.v4(1, RIGHT)))?);
//! bed.change(1, "both down")?;
//! # Ok::<(), lab::bed::Error>(())
//! ```
//!
//! Link `k` is the device `p<k>` in both its hosts, with addresses 10.88.k.1 and .2, fd88:k::1 and ::2 (the first is that
//! of the host named first). Where nothing is asked of a link it is a pair of virtual Ethernet devices; where only a rate
//! is, the same with the token bucket of `tc`; otherwise an [emulated](crate::emulate) one. It needs root.
//!
//! Everything vanishes with the value: also if its owner is killed, because a keeper waits for that in a process of its
//! own. Should that be killed too, the next bed removes what it finds of owners that no longer live.

mod commands;
mod error;
mod held;
mod keeper;
mod wire;

pub use crate::emulate::Shape;
pub use error::Error;
pub(crate) use held::main as hold;
pub(crate) use keeper::main as keep;
pub(crate) use keeper::{Keeper, sweep};

use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use wire::Wire;

/// What happens in a host's network, or why it does not.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The first host of a [pair](Bed::pair).
pub const LEFT: usize = 0;
/// The second host of a [pair](Bed::pair).
pub const RIGHT: usize = 1;

/// Beds and runs of this process so far: a part of their names.
static BEDS: AtomicU32 = AtomicU32::new(0);

/// Two hosts of a bed and what lies between them.
#[derive(Clone, Debug)]
pub struct Link {
    /// The places of both hosts.
    pub hosts: [usize; 2],
    /// From the first to the second host.
    pub there: Shape,
    /// From the second to the first.
    pub back: Shape,
}

/// Hosts and links that exist as long as this value.
#[derive(Debug)]
pub struct Bed {
    hosts: Vec<String>,
    links: Vec<Link>,
    // Fields are dropped in this order: the links' processes before the namespaces.
    wires: Vec<Wire>,
    _keeper: Keeper,
}

/// A name that nobody else on this machine has, for a bed or a run: what its namespaces' names begin with.
pub(crate) fn name() -> String {
    format!("rw-{}-{}", std::process::id(), BEDS.fetch_add(1, Ordering::Relaxed))
}

/// Can this process make test beds? If not: why.
///
/// # Errors
/// What is lacking, in words.
pub fn possible() -> Result<(), String> {
    if !nix::unistd::Uid::effective().is_root() {
        return Err("test beds need root".into());
    }
    std::fs::File::open("/dev/net/tun").map_err(|why| format!("test beds need /dev/net/tun: {why}"))?;
    let probe = format!("{}-probe", name());
    commands::run(&format!("ip netns add {probe}")).map_err(|why| format!("no network namespaces here: {why}"))?;
    commands::run(&format!("ip netns del {probe}")).map(drop).map_err(|why| why.to_string())
}

impl Bed {
    /// Two hosts with these links between them, each `THERE / BACK`, or one [shape](Shape) for both directions.
    ///
    /// # Errors
    /// A shape that cannot be read; a command that fails.
    pub fn pair(agent: &[&str], links: &[&str]) -> Result<Self, Error> {
        let link = |words: &&str| {
            let [there, back] = crate::emulate::both(words).map_err(Error::Shape)?;
            Ok(Link { hosts: [LEFT, RIGHT], there, back })
        };
        Self::new(agent, &["left", "right"], &links.iter().map(link).collect::<Result<Vec<_>, Error>>()?)
    }

    /// Hosts of these names, which may be up to six letters long, with `links`. `agent` is the program, and its first
    /// words, that runs [`agent`](crate::agent): `ropewalk lab-agent`, or `ropewalk-lab-agent`.
    ///
    /// # Errors
    /// A command that fails.
    pub fn new(agent: &[&str], hosts: &[&str], links: &[Link]) -> Result<Self, Error> {
        sweep();
        let name = name();
        let keeper = Keeper::start(agent, &name, None)?;
        let hosts: Vec<String> = hosts.iter().map(|host| format!("{name}-{host}")).collect();
        let mut bed = Self { hosts, links: links.to_vec(), wires: Vec::new(), _keeper: keeper };
        for host in &bed.hosts {
            commands::host(host)?;
        }
        for (k, link) in links.iter().enumerate() {
            let hosts = link.hosts.map(|host| bed.hosts[host].as_str());
            bed.wires.push(Wire::lay(agent, k, hosts, link)?);
            commands::addresses(k, hosts)?;
        }
        Ok(bed)
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

    /// A program that is to run in a host.
    #[must_use]
    pub fn command(&self, host: usize, program: &str) -> Command {
        commands::inside(&self.hosts[host], program)
    }

    /// Runs a command line (split at blanks) in a host to its end; what it prints.
    ///
    /// # Errors
    /// If it cannot be run or fails, with what it complained of.
    pub fn run(&self, host: usize, line: &str) -> Result<String, Error> {
        let mut words = line.split_whitespace();
        let mut command = self.command(host, words.next().unwrap_or_default());
        commands::finish(command.args(words), line)
    }

    /// Does `work` in a host's network, on a thread of its own: sockets opened there stay there.
    ///
    /// # Errors
    /// Those of `work`; a namespace that cannot be entered.
    pub fn within<T: Send>(&self, host: usize, work: impl FnOnce() -> Outcome<T> + Send) -> Outcome<T> {
        crate::namespace::within(&self.hosts[host], work)
    }

    /// Changes an emulated link while it carries packets: `there`, `back` or `both`, then any of `up`, `down`, `rate=`,
    /// `delay=`, `loss=`, `mtu=`. Down means silence: the devices stay up.
    ///
    /// # Errors
    /// If the link is not emulated, or refuses.
    pub fn change(&mut self, link: usize, words: &str) -> Result<(), Error> {
        self.wires[link].change(words)
    }

    fn end(&self, link: usize, host: usize) -> usize {
        let end = self.links[link].hosts.iter().position(|other| *other == host);
        end.unwrap_or_else(|| panic!("host {host} is not on link {link}"))
    }
}

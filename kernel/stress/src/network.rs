//! Three hosts as network namespaces: a client with several links to a router, and a server with as many.
//!
//! Link `i` is the client's device `up` + i, to the router, and the router's device `down` + i, to the server. Addresses:
//! the client's 10.77.i.1, the router's 10.77.i.2 and 10.78.i.1, the server's 10.78.i.2; the server answers at [`SERVER`],
//! which every link leads to. A packet uses the link whose client address it has, in both directions.

use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

/// The server's address.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 1);
/// The port of its sink.
pub const PORT: u16 = 5001;

/// Number of networks that this process has made, for their names.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// A host of a [`Network`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// Sends.
    Client,
    /// Forwards.
    Router,
    /// Receives.
    Server,
}

/// The three hosts; they are removed when it is dropped.
#[derive(Debug)]
pub struct Network {
    name: String,
    links: usize,
}

impl Network {
    /// Creates the hosts with up to 200 links, each of which is an MPTCP endpoint of the client.
    ///
    /// # Errors
    /// The message of `ip`, for example without root.
    pub fn new(links: usize) -> Result<Self, String> {
        let name = format!("rw-stress-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let network = Self { name, links };
        network.set_up()?;
        Ok(network)
    }

    /// Number of links.
    #[must_use]
    pub fn links(&self) -> usize {
        self.links
    }

    /// The address and port of the server's sink.
    #[must_use]
    pub fn server() -> SocketAddr {
        (SERVER, PORT).into()
    }

    /// The client's address on a link.
    #[must_use]
    pub fn client_address(link: usize) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, u8::try_from(link).expect("at most 200 links"), 1)
    }

    /// Name of a host's namespace.
    #[must_use]
    pub fn namespace(&self, host: Host) -> String {
        let letter = match host {
            Host::Client => 'c',
            Host::Router => 'r',
            Host::Server => 's',
        };
        format!("{}-{letter}", self.name)
    }

    /// Runs a command line, split at blanks, in a host.
    ///
    /// # Errors
    /// The command line and its message.
    pub fn run(&self, host: Host, line: &str) -> Result<String, String> {
        run(&format!("ip netns exec {} {line}", self.namespace(host)))
    }

    /// Runs `ip` in a host: as [`Network::run`], with one process fewer.
    ///
    /// # Errors
    /// The command line and its message.
    pub fn ip(&self, host: Host, arguments: &str) -> Result<String, String> {
        run(&format!("ip -n {} {arguments}", self.namespace(host)))
    }

    /// Runs `tc` in a host.
    ///
    /// # Errors
    /// The command line and its message.
    pub fn tc(&self, host: Host, arguments: &str) -> Result<String, String> {
        run(&format!("tc -n {} {arguments}", self.namespace(host)))
    }

    /// Moves this thread into a host.
    ///
    /// # Errors
    /// If this is not root, or the host no longer exists.
    pub fn enter(&self, host: Host) -> Result<(), String> {
        enter(&self.namespace(host))
    }

    /// Starts a thread in a host.
    ///
    /// # Errors
    /// Those of [`Network::enter`].
    pub fn spawn<T: Send + 'static>(&self, host: Host, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        let namespace = self.namespace(host);
        std::thread::spawn(move || {
            enter(&namespace).expect("the namespace is there as long as the network is");
            work()
        })
    }

    fn set_up(&self) -> Result<(), String> {
        for host in [Host::Client, Host::Router, Host::Server] {
            run(&format!("ip netns add {}", self.namespace(host)))?;
            self.ip(host, "link set lo up")?;
        }
        self.ip(Host::Server, &format!("address add {SERVER}/32 dev lo"))?;
        self.write(Host::Router, "net/ipv4/ip_forward", "1")?;
        self.write(Host::Client, "net/mptcp/enabled", "1")?;
        self.write(Host::Server, "net/mptcp/enabled", "1")?;
        for host in [Host::Client, Host::Server] {
            self.ip(host, "mptcp limits set subflows 8 add_addr_accepted 8")?;
            self.write(host, "net/ipv4/conf/all/rp_filter", "0")?;
        }
        (0..self.links).try_for_each(|link| self.add_link(link))
    }

    fn add_link(&self, i: usize) -> Result<(), String> {
        let [client, router, server] = [Host::Client, Host::Router, Host::Server].map(|host| self.namespace(host));
        run(&format!("ip link add up{i} netns {client} type veth peer name c{i} netns {router}"))?;
        run(&format!("ip link add down{i} netns {router} type veth peer name s{i} netns {server}"))?;
        let table = 100 + i;
        let lines = [
            (Host::Client, format!("address add 10.77.{i}.1/24 dev up{i}")),
            (Host::Router, format!("address add 10.77.{i}.2/24 dev c{i}")),
            (Host::Router, format!("address add 10.78.{i}.1/24 dev down{i}")),
            (Host::Server, format!("address add 10.78.{i}.2/24 dev s{i}")),
            (Host::Client, format!("link set up{i} up")),
            (Host::Router, format!("link set c{i} up")),
            (Host::Router, format!("link set down{i} up")),
            (Host::Server, format!("link set s{i} up")),
            (Host::Client, format!("route add default via 10.77.{i}.2 dev up{i} table {table}")),
            (Host::Client, format!("rule add from 10.77.{i}.1 table {table}")),
            (Host::Router, format!("route add {SERVER}/32 via 10.78.{i}.2 dev down{i} table {table}")),
            (Host::Router, format!("rule add iif c{i} table {table}")),
            (Host::Server, format!("route add 10.77.{i}.0/24 via 10.78.{i}.1 dev s{i}")),
        ];
        lines.iter().try_for_each(|(host, line)| self.ip(*host, line).map(drop))?;
        self.write(Host::Router, &format!("net/ipv4/conf/c{i}/rp_filter"), "0")?;
        if i == 0 {
            self.ip(Host::Client, "route add default via 10.77.0.2 dev up0")?;
        }
        self.add_endpoint(i)
    }

    /// Makes the client's address on a link an MPTCP endpoint: connections join with it.
    ///
    /// # Errors
    /// If it already is one.
    pub fn add_endpoint(&self, link: usize) -> Result<(), String> {
        let id = link + 1;
        self.ip(Host::Client, &format!("mptcp endpoint add 10.77.{link}.1 id {id} dev up{link} subflow")).map(drop)
    }

    /// Removes the endpoint: its subflows close.
    ///
    /// # Errors
    /// If it is not an endpoint.
    pub fn delete_endpoint(&self, link: usize) -> Result<(), String> {
        self.ip(Host::Client, &format!("mptcp endpoint delete id {}", link + 1)).map(drop)
    }

    /// Writes a setting below `/proc/sys` of a host.
    ///
    /// # Errors
    /// If the kernel has no such setting or refuses the value.
    pub fn write(&self, host: Host, setting: &str, value: &str) -> Result<(), String> {
        self.read_or_write(host, setting, Some(value)).map(drop)
    }

    /// Reads a file below `/proc/net` of a host.
    ///
    /// # Errors
    /// If the kernel has no such file.
    pub fn read_proc_net(&self, host: Host, file: &str) -> Result<String, String> {
        self.read_or_write(host, file, None)
    }

    fn read_or_write(&self, host: Host, file: &str, value: Option<&str>) -> Result<String, String> {
        let namespace = self.namespace(host);
        let (path, value) = match value {
            Some(value) => (format!("/proc/sys/{file}"), Some(value.to_owned())),
            None => (format!("/proc/thread-self/net/{file}"), None),
        };
        let work = move || {
            enter(&namespace)?;
            let outcome = match value {
                Some(value) => std::fs::write(&path, value).map(|()| String::new()),
                None => std::fs::read_to_string(&path),
            };
            outcome.map_err(|error| format!("{path}: {error}"))
        };
        std::thread::spawn(work).join().map_err(|_| "its thread panicked".to_owned())?
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for host in [Host::Client, Host::Router, Host::Server] {
            let _ = run(&format!("ip netns delete {}", self.namespace(host)));
        }
    }
}

fn enter(namespace: &str) -> Result<(), String> {
    let file = File::open(format!("/run/netns/{namespace}")).map_err(|error| format!("{namespace}: {error}"))?;
    setns(file, CloneFlags::CLONE_NEWNET).map_err(|error| format!("{namespace}: {error}"))
}

fn run(line: &str) -> Result<String, String> {
    let mut tokens = line.split_whitespace();
    let output = Command::new(tokens.next().expect("a command line has a first word")).args(tokens).output();
    let output = output.map_err(|error| format!("cannot run `{line}`: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{line}`: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

//! A server and a client with two uplinks, on machines of their own.

use crate::debian::{self, Suite};
use crate::internet::{Internet, Socket, WEB};
use crate::machine::Machine;
use crate::package;
use std::collections::BTreeSet;
use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};
use testing::eventually;

/// The client's devices.
pub(crate) const UPLINKS: [(&str, Socket); 2] = [("eth0", Socket::Router(1)), ("eth1", Socket::Router(2))];

/// What a package, a setup or a purge could leave behind. Left out is what changes by itself: the package manager's own
/// files, journals, random seeds, users (which `getent` shows) and neighbours.
const TRACES: &str = "find /etc /usr /var /root -xdev -printf '%M %u:%g %p %l\\n' | grep -v -E \
    ' /var/(lib/(apt|dpkg|systemd|NetworkManager)|cache|log|tmp)/| /etc/((passwd|group|g?shadow|sub[ug]id)-?|[.]pwd.lock) '
find /etc -xdev -type f -exec sha256sum {} + | grep -v -E ' /etc/((passwd|group|g?shadow|sub[ug]id)-?)$'
find /run/ropewalk* /run/systemd/system /run/systemd/transient 2> /dev/null
getent passwd
getent group
nft --stateless list ruleset
ip -4 rule; ip -6 rule; ip -4 route show table all; ip -6 route show table all | sed 's/ expires [0-9]*sec//'
ip -brief link | sed 's/@if[0-9]*//'
sysctl -a 2> /dev/null | grep -E '^net[.](ipv4|ipv6|core)' | grep -v -E 'random|[.]neigh[.]|fastopen_key|stable_secret'
systemctl list-unit-files --no-legend --no-pager
true";

/// The machines, and the network that they are on.
pub(crate) struct Pair {
    pub(crate) server: Machine,
    pub(crate) client: Machine,
    pub(crate) internet: Internet,
    /// One pair at a time: two would need the memory of four machines.
    _turn: MutexGuard<'static, ()>,
}

impl Pair {
    /// Two booted machines of a suite of Debian with the package; none, and the test is skipped, if there can be none.
    /// `prepare` is given each machine before its first boot.
    pub(crate) fn new(suite: Suite, prepare: impl Fn(&Machine)) -> Option<Self> {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let root = debian::root(suite)?;
        let machine = |name: &str| {
            let machine = Machine::new(name, &root);
            machine.write("/srv/ropewalk.deb", fs::read(package::current()).unwrap());
            machine
        };
        let (server, client) = (machine("server"), machine("client"));
        let network = "[Match]\nName=eth0\n[Network]\nAddress=203.0.113.1/24\nGateway=203.0.113.254\n";
        server.write("/etc/systemd/network/10-wan.network", network);
        for (metric, (device, _)) in UPLINKS.iter().enumerate() {
            let network =
                format!("[Match]\nName={device}\n[Network]\nDHCP=ipv4\n[DHCPv4]\nRouteMetric={}\n", 100 + metric);
            client.write(&format!("/etc/systemd/network/10-{device}.network"), network);
        }
        [&server, &client].into_iter().for_each(prepare);
        let mut pair = Self { server, client, internet: Internet::new(), _turn: turn };
        pair.boot_server();
        pair.boot_client();
        Some(pair)
    }

    pub(crate) fn boot_server(&mut self) {
        self.server.boot(|pid| self.internet.plug_in(pid, "eth0", Socket::Internet));
    }

    pub(crate) fn boot_client(&mut self) {
        self.client.boot(|pid| UPLINKS.iter().for_each(|(device, socket)| self.internet.plug_in(pid, device, *socket)));
        assert!(eventually(|| self.client.run("ip route show default").lines().count() == 2));
    }

    /// Installs the package on both machines.
    pub(crate) fn install(&self) {
        for machine in [&self.server, &self.client] {
            machine.run("apt-get install --yes /srv/ropewalk.deb");
        }
    }

    /// Sets the client up, and the server if it is not yet, as docs/tunnel/setup.md says.
    pub(crate) fn set_up(&self) {
        let is_there = self.server.succeeds("ropewalk setup server --list");
        let verb = if is_there { "--add client1" } else { "--yes" };
        let printed = self.server.run(&format!("ropewalk setup server {verb}"));
        let token = printed.lines().find(|line| line.starts_with("rw1-"));
        let token = token.unwrap_or_else(|| panic!("no token in {printed}"));
        let printed = self.client.run(&format!("echo {token} | ropewalk setup client - --yes"));
        assert!(printed.contains("over 2 of 2 paths"), "{printed}");
    }

    /// Whether the client reaches the Internet by the tunnel: its packets come from the server's address.
    pub(crate) fn carries_traffic(&self) -> bool {
        self.client.succeeds(&format!("ping -c 1 -W 2 -I rw0 {WEB}"))
    }

    /// The number of the client's paths that carry packets.
    pub(crate) fn paths_up(&self) -> usize {
        let status = self.client.output("ropewalk show --json rw0").0;
        let status: serde_json::Value = serde_json::from_str(&status).unwrap_or_default();
        let paths = status["peers"][0]["paths"].as_array().into_iter().flatten();
        paths.filter(|path| path["state"] == "up").count()
    }

    #[track_caller]
    pub(crate) fn wait_for_paths(&self, number: usize) {
        assert!(eventually(|| self.paths_up() == number), "{}", self.client.output("ropewalk show").0);
        assert!(eventually(|| self.carries_traffic()), "{}", self.client.output("ropewalk show").0);
    }
}

/// What a machine has of files, users, rules, routes, devices, kernel settings and units.
pub(crate) fn traces(machine: &Machine) -> String {
    // An address has its route when it is known to be the only one (RFC 4862, section 5.4).
    assert!(eventually(|| machine.run("ip -6 address show tentative").trim().is_empty()));
    // What others load and unload meanwhile is listed in the settings of every machine.
    let is_of_kernel = |line: &&str| line.contains("net.ipv4.tcp_a") && line.contains("_congestion_control");
    machine.run(TRACES).lines().filter(|line| !is_of_kernel(line)).map(|line| format!("{line}\n")).collect()
}

/// The lines that one of two texts has and the other has not, with their sign.
pub(crate) fn changes(before: &str, after: &str) -> Vec<String> {
    let [before, after] = [before, after].map(|text| text.lines().collect::<BTreeSet<_>>());
    let removed = before.difference(&after).map(|line| format!("- {line}"));
    removed.chain(after.difference(&before).map(|line| format!("+ {line}"))).collect()
}

//! Namespaces, and the veth pairs and routes between them.

use super::address::ROUTERS;
use super::{Environment, Family, Network, Subnet, uplink};
use scenario::model::Link;

/// An interface: namespace and device.
pub(super) type Interface = (String, String);

/// A hop of a path: a subnet between two interfaces. Data goes from the first to the second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hop {
    pub(super) ports: [Interface; 2],
    pub(super) subnet: Subnet,
    /// The end (1 or 2) of the subnet at which the first interface is.
    pub(super) first_end: u8,
    /// The link whose delay and loss the hop has, if any.
    pub(super) link: Option<usize>,
}

impl Network<'_> {
    /// The routers of link `i`, in the direction of the data: `a` has its queue, `b` its delay and loss, `c` the queue
    /// of the reverse direction. Routers without a function are left out, because a hop costs a guest much CPU time.
    pub(super) fn routers(&self, i: usize) -> Vec<String> {
        let link = &self.experiment.links[i];
        let queues = |forward: bool| is_rated(link) && self.local(i, forward).is_none();
        let shared = self.users(i).count() > 1;
        let (a, c) = (queues(true), queues(false));
        let letters: Vec<char> = match (self.environment.netem, self.is_emulated(i)) {
            (true, _) => [(a, 'a'), (true, 'b'), (c || (shared && !a), 'c')]
                .iter()
                .filter(|router| router.0)
                .map(|router| router.1)
                .collect(),
            (false, true) => vec!['a', 'c'],
            (false, false) => {
                [(true, 'a'), (a || c || shared, 'c')].iter().filter(|router| router.0).map(|router| router.1).collect()
            }
        };
        letters.iter().map(|letter| format!("{}l{i}{letter}", self.environment.prefix)).collect()
    }

    /// The pairs and paths that link `i` is a part of.
    pub(super) fn users(&self, i: usize) -> impl Iterator<Item = (usize, usize)> {
        self.host_paths().into_iter().filter(move |(_, p)| self.experiment.paths[*p].links.contains(&i))
    }

    /// The device of a router of link `i` that leads to the sinks, or to the sources.
    pub(super) fn port(&self, i: usize, router: &str, to_sinks: bool) -> Interface {
        let (k, p) = self.users(i).next().expect("only used links have routers");
        let side = usize::from(!to_sinks);
        let hop = self.hops(k, p).into_iter().find(|hop| hop.ports[side].0 == router);
        hop.expect("a router has two ports").ports[side].clone()
    }

    /// The commands that make hosts, routers and interfaces.
    pub(super) fn interfaces(&self) -> Vec<String> {
        let hosts = (0..self.pairs.len()).flat_map(|k| [self.host(true, k), self.host(false, k)]);
        let routers: Vec<String> = self.used_links().flat_map(|i| self.routers(i)).collect();
        let mut lines: Vec<String> =
            hosts.chain(routers.iter().cloned()).flat_map(|name| self.namespace(&name)).collect();
        let forwarding = match self.family {
            Family::V4 => "net.ipv4.ip_forward=1",
            Family::V6 => "net.ipv6.conf.all.forwarding=1",
        };
        lines.extend(routers.iter().map(|name| format!("ip netns exec {name} sysctl -qw {forwarding}")));
        let mut hops: Vec<Hop> = Vec::new();
        for (k, p) in self.host_paths() {
            for hop in self.hops(k, p) {
                if hops.iter().all(|built| built.ports != hop.ports) {
                    lines.extend(self.hop_setup(&hop));
                    hops.push(hop);
                }
            }
        }
        lines
    }

    /// The commands that make a hop.
    fn hop_setup(&self, hop: &Hop) -> Vec<String> {
        let emulated = hop.link.filter(|link| self.is_emulated(*link));
        let mut lines = emulated.map_or_else(|| vec![pair(hop)], |link| self.emulator(link, hop));
        lines.extend(self.address(hop, emulated.is_none()));
        lines
    }

    /// Sets the addresses of a subnet's ends. Neighbours are permanent, so that there is no ARP; a veth pair's offloads
    /// are off, so that packets have the MTU's size.
    fn address(&self, hop: &Hop, is_pair: bool) -> Vec<String> {
        let mut lines = Vec::new();
        for (side, end) in [(0, hop.first_end), (1, 3 - hop.first_end)] {
            let (netns, device) = &hop.ports[side];
            let nodad = if self.family == Family::V6 { " nodad" } else { "" };
            if is_pair {
                lines.push(format!(
                    "ip netns exec {netns} ethtool -K {device} tso off gso off gro off tx-udp-segmentation off"
                ));
            } else {
                lines.push(format!("ip -n {netns} link set dev {device} address {}", hop.subnet.mac(end)));
            }
            let [own, peer] = [end, 3 - end].map(|end| hop.subnet.address(self.family, end));
            lines.push(format!("ip -n {netns} address add {own}/{} dev {device}{nodad}", self.family.prefix()));
            lines.push(format!("ip -n {netns} link set dev {device} up"));
            let mac = hop.subnet.mac(3 - end);
            lines.push(format!("ip -n {netns} neighbour replace {peer} lladdr {mac} dev {device} nud permanent"));
        }
        lines
    }

    /// The routes on each path towards each pair's sink and source.
    pub(super) fn routes(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (k, p) in self.host_paths() {
            let hops = self.hops(k, p);
            let [source, sink] = [Subnet::source(k, p), Subnet::sink(k, p)].map(|subnet| subnet.network(self.family));
            for adjacent in hops.windows(2) {
                let (router, next, previous) = (&adjacent[0].ports[1].0, &adjacent[1], &adjacent[0]);
                // The first and the last router know the hosts' own networks.
                if next.subnet != Subnet::sink(k, p) {
                    let via = next.subnet.address(self.family, 3 - next.first_end);
                    lines.push(format!("ip -n {router} route replace {sink} via {via}"));
                }
                if previous.subnet != Subnet::source(k, p) {
                    let via = previous.subnet.address(self.family, previous.first_end);
                    lines.push(format!("ip -n {router} route replace {source} via {via}"));
                }
            }
        }
        lines.dedup();
        lines
    }

    /// The hops from pair `k`'s source over path `p` to its sink.
    pub(super) fn hops(&self, k: usize, p: usize) -> Vec<Hop> {
        let links = &self.experiment.paths[p].links;
        let mut hops = Vec::new();
        let mut upstream: Interface = (self.host(true, k), uplink(p));
        let mut subnet = Subnet::source(k, p);
        for (position, &i) in links.iter().enumerate() {
            let routers = self.routers(i);
            let name = if position == 0 { format!("s{k}p{p}") } else { format!("from{}", links[position - 1]) };
            hops.push(Hop { ports: [upstream, (routers[0].clone(), name)], subnet, first_end: 1, link: None });
            for (n, pair) in routers.windows(2).enumerate() {
                let ports = [(pair[0].clone(), "right".to_owned()), (pair[1].clone(), "left".to_owned())];
                let subnet = Subnet { area: ROUTERS, number: 4 * i as u8 + n as u8 };
                hops.push(Hop { ports, subnet, first_end: 1, link: Some(i) });
            }
            let next = links.get(position + 1);
            let name = next.map_or(format!("d{k}p{p}"), |next| format!("to{next}"));
            upstream = (routers[routers.len() - 1].clone(), name);
            // A link may lead to several others: the subnet is numbered by the pair of links.
            subnet = next.map_or(Subnet::sink(k, p), |next| self.subnet_between(i, *next));
        }
        hops.push(Hop { ports: [upstream, (self.host(false, k), uplink(p))], subnet, first_end: 2, link: None });
        hops
    }

    /// The subnet from a link's last router to the next link's first.
    fn subnet_between(&self, link: usize, next: usize) -> Subnet {
        let all_pairs =
            self.experiment.paths.iter().flat_map(|path| path.links.windows(2).map(|pair| (pair[0], pair[1])));
        let mut link_pairs: Vec<(usize, usize)> = all_pairs.collect();
        link_pairs.sort_unstable();
        link_pairs.dedup();
        let index = link_pairs.iter().position(|pair| *pair == (link, next)).unwrap_or(0);
        Subnet { area: 255, number: index as u8 }
    }

    /// Makes a namespace; without IPv6 if it is unused, whose neighbour discovery would be additional traffic.
    fn namespace(&self, name: &str) -> Vec<String> {
        let mut lines = vec![format!("ip netns add {name}"), format!("ip -n {name} link set lo up")];
        if self.family == Family::V4 {
            let keys =
                ["all", "default"].map(|interface| format!("net.ipv6.conf.{interface}.disable_ipv6=1")).join(" ");
            lines.push(format!("ip netns exec {name} sysctl -eqw {keys}"));
        }
        lines
    }

    /// The links that some pair's path has; the others are not built.
    pub(super) fn used_links(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.experiment.links.len()).filter(|i| self.is_used(*i))
    }

    /// Whether some pair's path has link `i`.
    pub(crate) fn is_used(&self, i: usize) -> bool {
        self.users(i).next().is_some()
    }
}

fn is_rated(link: &Link) -> bool {
    link.forward.rate.is_some() || link.reverse.rate.is_some()
}

fn pair(hop: &Hop) -> String {
    let [(a_netns, a_name), (b_netns, b_name)] = &hop.ports;
    let [a, b] = [hop.first_end, 3 - hop.first_end].map(|end| hop.subnet.mac(end));
    format!("ip link add {a_name} netns {a_netns} address {a} type veth peer name {b_name} netns {b_netns} address {b}")
}

impl Environment {
    /// A file in the run's folder.
    pub(super) fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }
}

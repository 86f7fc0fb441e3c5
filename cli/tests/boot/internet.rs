//! The network between machines, in namespaces.
//!
//! ```text
//! client eth0 --- router 1 (NAT, DHCP, DNS) --- internet 203.0.113.254 --- eth0 server 203.0.113.1
//!        eth1 --- router 2 (NAT, DHCP, DNS) -------'     198.51.100.7, a web server
//!                                                        9.9.9.9, a resolver
//! ```

use crate::debian;
use crate::uplink_capture::Capture;
use lab::testbed::{Link, Shape, Testbed};
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Stdio};

/// The host between the others.
const INTERNET: usize = 0;
/// The server's address.
pub(crate) const SERVER: &str = "203.0.113.1";
/// A host that is no machine's.
pub(crate) const WEB: &str = "198.51.100.7";
/// The address in the answers of the public resolver, 9.9.9.9, and in those of the routers' resolvers.
pub(crate) const PUBLIC_ANSWER: &str = WEB;
pub(crate) const ROUTERS_ANSWER: &str = "192.0.2.99";

/// A place where a machine's device is plugged in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Socket {
    /// The Internet, with addresses of 203.0.113.0/24.
    Internet,
    /// Router 1 or 2, with addresses of 192.168.1.0/24 or 192.168.2.0/24.
    Router(usize),
}

/// What is set up in which host.
const COMMANDS: &[(usize, &str)] = &[
    (INTERNET, "sysctl -qw net.ipv4.ip_forward=1"),
    (INTERNET, "ip address add 198.51.100.7/32 dev lo"),
    (INTERNET, "ip address add 9.9.9.9/32 dev lo"),
    (INTERNET, "ip address add 203.0.113.254/24 dev br0"),
    (INTERNET, "ip address add 192.0.2.254/25 dev p0"),
    (INTERNET, "ip address add 192.0.2.126/25 dev p1"),
    (1, "ip address add 192.0.2.129/25 dev p0"),
    (1, "ip route add default via 192.0.2.254"),
    (1, "ip address add 192.168.1.1/24 dev br0"),
    (2, "ip address add 192.0.2.1/25 dev p1"),
    (2, "ip route add default via 192.0.2.126"),
    (2, "ip address add 192.168.2.1/24 dev br0"),
];

/// The network.
pub(crate) struct Internet {
    testbed: Testbed,
    /// The servers for DHCP and DNS of each host.
    servers: [Option<Child>; 3],
}

impl Internet {
    pub(crate) fn new() -> Self {
        let link = |hosts| Link { hosts, forward: Shape::none(), reverse: Shape::none() };
        let links = [link([1, INTERNET]), link([2, INTERNET])];
        let testbed =
            Testbed::new(&[env!("CARGO_BIN_EXE_ropewalk"), "lab-agent"], &["inet", "nat1", "nat2"], &links).unwrap();
        let run = |host: usize, line: &str| drop(testbed.run(host, line).unwrap());
        for (host, device) in [(INTERNET, "p0"), (INTERNET, "p1"), (1, "p0"), (2, "p1")] {
            run(host, &format!("ip address flush dev {device} scope global"));
        }
        for host in 0..3 {
            run(host, "ip link add br0 type bridge");
            run(host, "ip link set br0 up");
        }
        COMMANDS.iter().for_each(|(host, line)| run(*host, line));
        for router in 1..3 {
            run(router, "sysctl -qw net.ipv4.ip_forward=1");
            run(router, "nft add table ip nat");
            run(router, "nft add chain ip nat post { type nat hook postrouting priority srcnat ; }");
            run(router, &format!("nft add rule ip nat post oifname p{} masquerade", router - 1));
        }
        let mut internet = Self { testbed, servers: [const { None }; 3] };
        internet.serve(INTERNET, &["--listen-address=9.9.9.9", &format!("--address=/#/{PUBLIC_ANSWER}")]);
        for router in 1..3 {
            internet.serve_client(router, &[&format!("--dhcp-range=192.168.{router}.50,192.168.{router}.99,1h")]);
        }
        internet
    }

    /// Starts a router's servers for DHCP and DNS, with these options in the place of earlier ones.
    pub(crate) fn serve_client(&mut self, router: usize, options: &[&str]) {
        let answer = format!("--address=/#/{ROUTERS_ANSWER}");
        let common = ["--interface=br0", "--dhcp-authoritative", "--no-ping", &answer];
        self.serve(router, &[&common, options].concat());
    }

    /// Starts dnsmasq in a host, in the place of one that runs.
    fn serve(&mut self, host: usize, options: &[&str]) {
        self.servers[host].take().iter_mut().for_each(end);
        let leases = format!("--dhcp-leasefile={}", debian::folder().join(self.testbed.namespace(host)).display());
        let mut command = self.testbed.command(host, "setpriv");
        command.args([
            "--pdeathsig",
            "KILL",
            "dnsmasq",
            "--keep-in-foreground",
            "--conf-file=/dev/null",
            "--pid-file=",
        ]);
        command.args(["--no-hosts", "--no-resolv", "--bind-interfaces", "--user=root", &leases]).args(options);
        self.servers[host] = Some(command.stdin(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn().unwrap());
    }

    /// Plugs a new device of the machine with this process in.
    pub(crate) fn plug_in(&self, pid: u32, device: &str, socket: Socket) {
        let host = host(socket);
        let port = port(device, socket);
        let run = |line: String| drop(self.testbed.run(host, &line).unwrap());
        let _ = self.testbed.run(host, &format!("ip link del {port}"));
        // The same address at each boot, as a card has.
        let address = format!("02:00:00:00:00:0{host}");
        run(format!("ip link add {port} type veth peer name {device} address {address} netns {pid}"));
        run(format!("ip link set {port} master br0 up"));
    }

    /// Whether the other end of a device is up: without it the device has no carrier.
    pub(crate) fn set_carrier(&self, device: &str, socket: Socket, is_up: bool) {
        let state = if is_up { "up" } else { "down" };
        self.testbed.run(host(socket), &format!("ip link set {} {state}", port(device, socket))).unwrap();
    }

    /// Runs a line in a router.
    pub(crate) fn run(&self, router: usize, line: &str) {
        self.testbed.run(router, line).unwrap();
    }

    /// Captures what comes out of a device that is plugged in.
    pub(crate) fn capture(&self, device: &str, socket: Socket) -> Capture {
        let port = port(device, socket);
        let start = move || Ok(Capture::start(&port, SERVER.parse()?)?);
        self.testbed.within(host(socket), start).unwrap()
    }

    /// Listens on an address of the Internet.
    pub(crate) fn listen(&self, address: SocketAddr) -> TcpListener {
        self.testbed.within(INTERNET, move || Ok(TcpListener::bind(address)?)).unwrap()
    }
}

impl Drop for Internet {
    fn drop(&mut self) {
        self.servers.iter_mut().flatten().for_each(end);
        for host in 0..3 {
            let _ = fs::remove_file(debian::folder().join(self.testbed.namespace(host)));
        }
    }
}

fn end(server: &mut Child) {
    let _ = server.kill().and_then(|()| server.wait().map(drop));
}

fn host(socket: Socket) -> usize {
    match socket {
        Socket::Internet => INTERNET,
        Socket::Router(number) => number,
    }
}

/// The device at the other end.
fn port(device: &str, socket: Socket) -> String {
    format!("port-{device}-{}", host(socket))
}

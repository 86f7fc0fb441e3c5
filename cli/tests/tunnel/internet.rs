//! A server, a client behind a router with address translation, and a host that only the server's translation reaches,
//! in namespaces; server and client have files of their own.
//!
//! ```text
//! client p3, p4 --- router (NAT) p2 --- internet --- p0 server 203.0.113.1
//!                                          '-------- p1 web    198.51.100.7
//! ```
//!
//! With sites, a host is behind the client (p5), and a second client is behind the router (p6) with a host behind it (p7).

use crate::tunnel_pair::program;
use daemon::control_plane::Client;
use daemon::event::Event;
use lab::testbed::{self, Link, Shape, Testbed};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;
use testing::{MINUTE, Reason, eventually, skip};

pub(crate) const SERVER: usize = 0;
pub(crate) const INTERNET: usize = 1;
pub(crate) const WEB: usize = 2;
pub(crate) const ROUTER: usize = 3;
pub(crate) const CLIENT: usize = 4;
pub(crate) const LAN: usize = 5;
pub(crate) const OFFICE: usize = 6;
pub(crate) const OFFICE_LAN: usize = 7;

pub(crate) const SERVER_ADDRESS: &str = "203.0.113.1";
pub(crate) const WEB_ADDRESS: &str = "198.51.100.7";
pub(crate) const SERVER_ADDRESS_V6: &str = "2001:db8:1::1";
pub(crate) const WEB_ADDRESS_V6: &str = "[2001:db8:2::7]";

/// What is set up in which host. The client's addresses are those that home and mobile networks give by DHCP.
const COMMANDS: &[(usize, &str)] = &[
    (SERVER, "ip address add 203.0.113.1/24 dev p0"),
    (SERVER, "ip route add default via 203.0.113.254"),
    (SERVER, "ip address add 2001:db8:1::1/64 dev p0 nodad"),
    (SERVER, "ip route add default via 2001:db8:1::fe"),
    (INTERNET, "ip address add 2001:db8:1::fe/64 dev p0 nodad"),
    (INTERNET, "ip address add 2001:db8:2::fe/64 dev p1 nodad"),
    (INTERNET, "sysctl -qw net.ipv6.conf.all.forwarding=1"),
    (WEB, "ip address add 2001:db8:2::7/64 dev p1 nodad"),
    (WEB, "ip route add default via 2001:db8:2::fe"),
    (INTERNET, "ip address add 203.0.113.254/24 dev p0"),
    (INTERNET, "ip address add 198.51.100.254/24 dev p1"),
    (INTERNET, "ip address add 192.0.2.254/24 dev p2"),
    (INTERNET, "sysctl -qw net.ipv4.ip_forward=1"),
    (INTERNET, "ip address add 9.9.9.9/32 dev p1"),
    (INTERNET, "ip address add 2620:fe::fe/128 dev p1 nodad"),
    (WEB, "ip address add 198.51.100.7/24 dev p1"),
    (WEB, "ip route add default via 198.51.100.254"),
    (ROUTER, "ip address add 192.0.2.2/24 dev p2"),
    (ROUTER, "ip address add 192.168.1.1/24 dev p3"),
    (ROUTER, "ip address add 100.64.0.1/24 dev p4"),
    (ROUTER, "ip route add default via 192.0.2.254"),
    (ROUTER, "sysctl -qw net.ipv4.ip_forward=1"),
    (ROUTER, "nft add table ip nat"),
    (ROUTER, "nft add chain ip nat post { type nat hook postrouting priority srcnat ; }"),
    (ROUTER, "nft add rule ip nat post oifname p2 masquerade"),
    (CLIENT, "ip address add 192.168.1.23/24 dev p3"),
    (CLIENT, "ip address add 100.64.0.23/24 dev p4"),
    (CLIENT, "ip route add default via 192.168.1.1 dev p3 metric 100"),
    (CLIENT, "ip route add default via 100.64.0.1 dev p4 metric 200"),
];

/// What sites add.
const SITE_COMMANDS: &[(usize, &str)] = &[
    (CLIENT, "ip address add 192.168.50.1/24 dev p5"),
    (CLIENT, "ip address add fd50::1/64 dev p5 nodad"),
    (LAN, "ip address add 192.168.50.10/24 dev p5"),
    (LAN, "ip address add fd50::10/64 dev p5 nodad"),
    (LAN, "ip route add default via 192.168.50.1"),
    (LAN, "ip route add default via fd50::1"),
    (ROUTER, "ip address add 192.168.2.1/24 dev p6"),
    (OFFICE, "ip address add 192.168.2.23/24 dev p6"),
    (OFFICE, "ip route add default via 192.168.2.1 dev p6"),
    (OFFICE, "ip address add 192.168.60.1/24 dev p7"),
    (OFFICE_LAN, "ip address add 192.168.60.10/24 dev p7"),
    (OFFICE_LAN, "ip route add default via 192.168.60.1"),
];

/// What of /etc a host has.
const ETC: &str = "/etc/passwd /etc/group /etc/shadow /etc/gshadow /etc/login.defs /etc/nsswitch.conf /etc/ld.so.cache";

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// The network, and the files of server and client.
pub(crate) struct Internet {
    /// Processes that hold the mounts, by host.
    holders: Vec<(usize, Child)>,
    pub(crate) testbed: Testbed,
    folder: PathBuf,
}

impl Internet {
    /// `None`, and the test is skipped, if the machine cannot make it.
    pub(crate) fn new() -> Option<Self> {
        Self::make(5, &[SERVER, CLIENT], COMMANDS)
    }

    /// With sites: hosts behind the client and behind a second one.
    pub(crate) fn with_sites() -> Option<Self> {
        Self::make(8, &[SERVER, CLIENT, OFFICE], &[COMMANDS, SITE_COMMANDS].concat())
    }

    /// With sites, and a web host that can be set up as a server, too.
    pub(crate) fn with_second_server() -> Option<Self> {
        Self::make(8, &[SERVER, WEB, CLIENT, OFFICE], &[COMMANDS, SITE_COMMANDS].concat())
    }

    fn make(hosts: usize, with_files: &[usize], commands: &[(usize, &str)]) -> Option<Self> {
        testbed::possible().map_err(|reason| skip(Reason::Missing, &reason)).ok()?;
        if Command::new("nft").arg("--version").output().is_err() {
            skip(Reason::Missing, "nft is not installed");
            return None;
        }
        let link = |hosts| Link { hosts, forward: Shape::none(), reverse: Shape::none() };
        let all = [
            [SERVER, INTERNET],
            [WEB, INTERNET],
            [ROUTER, INTERNET],
            [CLIENT, ROUTER],
            [CLIENT, ROUTER],
            [CLIENT, LAN],
            [OFFICE, ROUTER],
            [OFFICE, OFFICE_LAN],
        ];
        let links: Vec<Link> = all.into_iter().filter(|ends| ends.iter().all(|host| *host < hosts)).map(link).collect();
        let names = ["srv", "inet", "web", "nat", "cli", "lan", "off", "olan"];
        let testbed = Testbed::new(&[&program(), "lab-agent"], &names[..hosts], &links).unwrap();
        for (number, link) in links.iter().enumerate() {
            for host in link.hosts {
                testbed.run(host, &format!("ip address flush dev p{number} scope global")).unwrap();
            }
        }
        commands.iter().for_each(|(host, line)| drop(testbed.run(*host, line).unwrap()));
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("rw-net-{}-{number}", std::process::id()));
        let mut internet = Self { holders: Vec::new(), testbed, folder };
        with_files.iter().for_each(|host| internet.hold(*host));
        ["9.9.9.9", "2620:fe::fe"].iter().for_each(|address| internet.resolve_at(address.parse().unwrap()));
        Some(internet)
    }

    /// A resolver on the internet, of which is asked only that it answers.
    fn resolve_at(&self, address: IpAddr) {
        let socket = self.testbed.within(INTERNET, move || Ok(UdpSocket::bind((address, 53))?)).unwrap();
        thread::spawn(move || {
            let mut buffer = [0; 512];
            while let Ok((len, from)) = socket.recv_from(&mut buffer) {
                let _ = socket.send_to(&buffer[..len], from);
            }
        });
    }

    /// Gives a host processes and files of its own: the part of /etc that names users, and empty /var/lib, /var/log and /run.
    fn hold(&mut self, host: usize) {
        let etc = self.folder.join(format!("etc{host}"));
        fs::create_dir_all(&etc).unwrap();
        let etc = etc.display();
        let script = format!(
            "set -e; mount -t tmpfs tmpfs {etc}; cp -a $(ls -d {ETC}) {etc}/; mkdir {etc}/sysctl.d; mount --bind {etc} /etc; \
             for d in /var/lib /var/log /run; do mount -t tmpfs tmpfs $d; done; mount -t sysfs sysfs /sys; \
             echo ready; sleep infinity & while :; do wait $!; done"
        );
        let mut command = self.testbed.command(host, "unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", &script]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "the files of a host");
        self.holders.push((host, child));
    }

    /// A command that runs a program of a host.
    pub(crate) fn command(&self, host: usize, words: &[&str]) -> Command {
        let holder = self.holders.iter().find(|(holder, _)| *holder == host);
        let mut command = match holder {
            None => self.testbed.command(host, words[0]),
            Some((_, child)) => {
                let mut command = Command::new("nsenter");
                let init = format!("/proc/{0}/task/{0}/children", child.id());
                let init = fs::read_to_string(init).unwrap();
                command.args([&format!("--target={}", init.trim()), "--mount", "--net", "--pid", words[0]]);
                command
            }
        };
        command.args(&words[1..]).stdin(Stdio::null());
        command
    }

    /// Runs a program of a host to its end.
    pub(crate) fn output(&self, host: usize, words: &[&str]) -> Output {
        self.command(host, words).output().unwrap()
    }

    /// The standard output of a program that succeeds.
    #[track_caller]
    pub(crate) fn run(&self, host: usize, words: &[&str]) -> String {
        let output = self.output(host, words);
        let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(output.status.success(), "{words:?}: {}\n{stdout}\n{stderr}", output.status);
        stdout
    }

    /// The events of a host's tunnel `rw0`, from its socket.
    pub(crate) fn events(&self, host: usize) -> Vec<Event> {
        let (_, holder) = self.holders.iter().find(|(holder, _)| *holder == host).expect("the host has files");
        let folder = PathBuf::from(format!("/proc/{}/root", holder.id())).join("run/ropewalk");
        serde_json::from_str(&Client::new(&folder, "rw0").request("GET", "/v1/events?since=0", "").unwrap()).unwrap()
    }

    /// `pgrep` or `pkill` with its words, for processes of the host with this in their line; its status. Without the host's
    /// namespace they would be those of all tests that run at this time.
    pub(crate) fn processes(&self, host: usize, tool: &str, line: &str) -> bool {
        let script = format!("exec {tool} --ns $$ --nslist net -f '{line}'");
        self.output(host, &["sh", "-c", &script]).status.success()
    }

    /// `ropewalk`, with words separated by blanks.
    #[track_caller]
    pub(crate) fn ropewalk(&self, host: usize, line: &str) -> String {
        let program = program();
        self.run(host, &[&[&*program], &*line.split_whitespace().collect::<Vec<_>>()].concat())
    }

    /// `ropewalk`, with a text on standard input.
    #[track_caller]
    pub(crate) fn ropewalk_reading(&self, host: usize, line: &str, input: &str) -> String {
        let program = program();
        let mut command = self.command(host, &[&[&*program], &*line.split_whitespace().collect::<Vec<_>>()].concat());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{line}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// `ropewalk`, with an executable script `name` before all others of that name; whether it succeeds.
    pub(crate) fn succeeds_with(&self, host: usize, name: &str, script: &str, line: &str) -> bool {
        let folder = self.folder.join("bin");
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join(name);
        fs::write(&file, script).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
        let program = program();
        let mut command = self.command(host, &[&[&*program], &*line.split_whitespace().collect::<Vec<_>>()].concat());
        let succeeds = command.env("PATH", path).output().unwrap().status.success();
        fs::remove_file(file).unwrap();
        succeeds
    }

    /// The exit code and the standard error of `ropewalk`, which fails.
    #[track_caller]
    pub(crate) fn refusal(&self, host: usize, line: &str) -> (i32, String) {
        let program = program();
        let output = self.output(host, &[&[&*program], &*line.split_whitespace().collect::<Vec<_>>()].concat());
        assert!(!output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stdout));
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// What a setup could leave behind in a host: files, rules, routes, kernel settings, processes, devices.
    pub(crate) fn traces(&self, host: usize) -> String {
        let script = "find /etc /var/lib /var/log /run -type f ! -name '*-' ! -name '.pwd.lock' -exec sha256sum {} + | \
                      sort -k2; find /etc /var/lib /run -type d | sort; nft list ruleset; ip route; ip -6 route; ip rule; \
                      ip -o link | cut -d: -f2; sysctl net.ipv4.ip_forward net.ipv6.conf.all.forwarding \
                      net.ipv4.conf.all.rp_filter; getent passwd ropewalk; getent group ropewalk; true";
        self.run(host, &["sh", "-c", script])
    }

    /// Serves one connection in `host`, and returns the address that it comes from and the line that it sends.
    pub(crate) fn ask(&self, from: usize, host: usize, address: &str) -> Result<(IpAddr, String), String> {
        let address: SocketAddr = format!("{address}:7777").parse().unwrap();
        self.ask_at(from, address, host, address)
    }

    /// The same, where the connection to `address` is expected at `listen` of the host.
    pub(crate) fn ask_at(
        &self,
        from: usize,
        address: SocketAddr,
        host: usize,
        listen: SocketAddr,
    ) -> Result<(IpAddr, String), String> {
        let mut listener = self.testbed.within(host, move || Ok(TcpListener::bind(listen)?));
        // A program that another test starts has this one's earlier listener, too, until it is executed.
        assert!(eventually(|| {
            if listener.is_err() {
                listener = self.testbed.within(host, move || Ok(TcpListener::bind(listen)?));
            }
            listener.is_ok()
        }));
        let listener = listener.unwrap();
        listener.set_nonblocking(true).unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let is_over_there = Arc::clone(&is_over);
        let serving = thread::spawn(move || {
            while !is_over_there.load(Ordering::Relaxed) {
                let Ok((mut stream, source)) = listener.accept() else {
                    thread::sleep(Duration::from_millis(5));
                    continue;
                };
                let mut line = String::new();
                stream.set_nonblocking(false).unwrap();
                let read = BufReader::new(&stream).read_line(&mut line);
                if read.is_ok() && stream.write_all(b"answer\n").is_ok() {
                    return Some((source.ip(), line));
                }
            }
            None
        });
        let exchange = self.testbed.within(from, move || {
            let mut stream = TcpStream::connect_timeout(&address, MINUTE)?;
            stream.set_read_timeout(Some(MINUTE))?;
            stream.write_all(b"question\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        });
        // A connection that failed is not served any more, and its address is free again.
        is_over.store(exchange.is_err(), Ordering::Relaxed);
        let served = serving.join().unwrap();
        exchange.map_err(|error| error.to_string())?;
        served.ok_or_else(|| "closed without an answer".to_owned())
    }
}

impl Drop for Internet {
    fn drop(&mut self) {
        for host in self.holders.iter().map(|(host, _)| *host) {
            let _ = self.output(host, &[&program(), "down", "rw0"]);
        }
        for (_, child) in &mut self.holders {
            let _ = child.kill().and_then(|()| child.wait());
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

//! The data plane between two network namespaces: real devices, real sockets, real TCP inside, every byte compared.
//! The time until a failure is detected is measured in virtual time, in `tunnel/machine`.

use ipnet::IpNet;
use machine::PathConfig;
use mpt::{KeepaliveConfig, ReorderConfig};
use nix::sched::{CloneFlags, setns};
use ropewalk_daemon::config::TunnelOptions;
use ropewalk_daemon::data_plane::{
    Command, CommandSender, DataPlane, DataPlaneConfig, DeviceConfig, EngineConfig, MptConfig, MptPathConfig,
    PeerConfig, PeerPathConfig, Report, RopewalkConfig, SocketConfig, Update, channel, event_channel,
};
use seal::PrivateKey;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command as Program;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use testing::{Reason, eventually, skip};
use units::Span;

/// Two namespaces, connected by two veth pairs; removed when dropped.
struct Network {
    names: [String; 2],
}

fn ip(arguments: &str) -> bool {
    Program::new("ip").args(arguments.split_whitespace()).status().is_ok_and(|status| status.success())
}

impl Network {
    /// `None`, and the test is skipped, without root.
    fn new(test: &str) -> Option<Self> {
        let names = ["a", "b"].map(|host| format!("rw-{test}-{}-{host}", std::process::id()));
        let network = Self { names };
        let [a, b] = &network.names;
        let mut is_created =
            nix::unistd::geteuid().is_root() && ip(&format!("netns add {a}")) && ip(&format!("netns add {b}"));
        for path in 0..2 {
            is_created = is_created && ip(&format!("link add v{path} netns {a} type veth peer name v{path} netns {b}"));
            for (host, name) in (1..).zip(&network.names) {
                is_created = is_created
                    && ip(&format!("-n {name} address add 10.10{path}.0.{host}/24 dev v{path}"))
                    && ip(&format!("-n {name} address add fd0{path}::{host}/64 dev v{path} nodad"))
                    && ip(&format!("-n {name} link set v{path} up"));
            }
        }
        if !is_created {
            skip(Reason::Missing, "network namespaces need root and the `ip` command");
        }
        is_created.then_some(network)
    }

    /// Runs `work` on a thread that lives in namespace `host`.
    fn spawn<T: Send + 'static>(&self, host: usize, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        let namespace = File::open(format!("/var/run/netns/{}", self.names[host])).expect("the namespace exists");
        thread::spawn(move || {
            setns(namespace, CloneFlags::CLONE_NEWNET).expect("root may enter it");
            work()
        })
    }

    /// Starts one end, and adds an inner address to its device.
    fn start(&self, host: usize, config: DataPlaneConfig) -> (CommandSender, JoinHandle<()>) {
        let (commands, receiver) = channel().expect("a descriptor");
        let (ready, opened) = mpsc::channel();
        let data_plane = self.spawn(host, move || {
            let mut data_plane = DataPlane::open(config).unwrap_or_else(|error| panic!("{error}"));
            ready.send(()).expect("the test waits");
            data_plane.run(&receiver).unwrap_or_else(|error| panic!("{error}"));
        });
        opened.recv().expect("the data plane opens");
        assert!(ip(&format!("-n {} address add 10.9.0.{}/24 dev rw0", self.names[host], host + 1)));
        (commands, data_plane)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.names.iter().for_each(|name| {
            ip(&format!("netns delete {name}"));
        });
    }
}

fn outer_address(is_v6: bool, path: usize, host: usize) -> SocketAddr {
    let text =
        if is_v6 { format!("[fd0{path}::{}]:4754", host + 1) } else { format!("10.10{path}.0.{}:4754", host + 1) };
    text.parse().expect("an address")
}

/// Path 0 over IPv4, path 1 over IPv6.
fn config(host: usize, mtu: u16, offload: bool, engine: EngineConfig) -> DataPlaneConfig {
    let socket = |path: usize| SocketConfig {
        name: format!("v{path}"),
        interface: Some(format!("v{path}")),
        shares_port: false,
        bind: outer_address(path == 1, path, host),
        offload,
    };
    let device = DeviceConfig { name: "rw0".into(), mtu, offload };
    let (events, _) = event_channel();
    DataPlaneConfig { device, sockets: (0..2).map(socket).collect(), engine, events }
}

fn mpt_engine(host: usize) -> EngineConfig {
    let inner_address = |host: usize| IpAddr::from([10, 9, 0, host as u8 + 1]);
    let path = |path: usize| MptPathConfig {
        name: format!("v{path}"),
        socket: path,
        remote: outer_address(path == 1, path, 1 - host),
        weight: 1,
    };
    EngineConfig::Mpt(MptConfig {
        peer_name: None,
        local: inner_address(host),
        remote: inner_address(1 - host),
        allowed_ips: vec![IpNet::from(inner_address(1 - host))],
        scheduler: "mpt".into(),
        backpressure: false,
        keepalive: Some(KeepaliveConfig { keepalive_time: Span::from_millis(50), dead_time: Span::from_millis(200) }),
        reorder: Some(ReorderConfig { window: 4000, timeout: Span::from_millis(50), deliver_late: false }),
        paths: (0..2).map(path).collect(),
    })
}

/// Host 0 knows the address of host 1; host 1 learns its paths from datagrams.
fn ropewalk_engine(host: usize) -> EngineConfig {
    let key = |host: usize| PrivateKey::from_bytes([host as u8 + 1; 32]);
    let path = |path: usize| PeerPathConfig {
        id: path as u8,
        name: format!("v{path}"),
        socket: path,
        remote: outer_address(path == 1, path, 1),
        weight: 1,
        path: if path == 1 { PathConfig::regular(1452, 48) } else { PathConfig::regular(1472, 28) },
    };
    let peer = PeerConfig {
        public_key: key(1 - host).public_key(),
        name: None,
        preshared_key: None,
        allowed_ips: vec![IpAddr::from([10, 9, 0, 2 - host as u8]).into()],
        priority: None,
        paths: if host == 0 { (0..2).map(path).collect() } else { Vec::new() },
        options: TunnelOptions::default(),
    };
    EngineConfig::Ropewalk(RopewalkConfig {
        private_key: key(host),
        peers: vec![peer],
        other_peers: Vec::new(),
        realtime: None,
        relay: None,
        earliest_handshake: 0,
    })
}

fn random_bytes(bytes: usize) -> Vec<u8> {
    let mut random = units::RngStream::named(1, "content");
    (0..bytes / 8).flat_map(|_| random.bits().to_le_bytes()).collect()
}

/// Sends `bytes` bytes through the tunnel and back; `between_halves` runs after the first half.
fn transfer(network: &Network, bytes: usize, between_halves: impl FnOnce()) {
    let (half_sender, half_receiver) = mpsc::channel();
    let (continue_sender, continue_receiver) = mpsc::channel();
    let server = network.spawn(1, move || {
        let listener = TcpListener::bind("10.9.0.2:5000").expect("the device has the address");
        let (mut stream, _) = listener.accept().expect("a client comes");
        let (mut received, mut buffer) = (Vec::with_capacity(bytes), vec![0; 1 << 16]);
        while received.len() < bytes {
            let len = stream.read(&mut buffer).expect("the tunnel holds");
            assert!(len > 0, "closed after {} bytes", received.len());
            received.extend_from_slice(&buffer[..len]);
            if received.len() >= bytes / 2 {
                let _ = half_sender.send(());
            }
        }
        received
    });
    let client = network.spawn(0, move || {
        let mut connected = None;
        let connect = || {
            let address = "10.9.0.2:5000".parse().expect("an address");
            connected = TcpStream::connect_timeout(&address, Duration::from_millis(500)).ok();
            connected.is_some()
        };
        assert!(eventually(connect), "no connection");
        let (mut stream, content) = (connected.expect("connected above"), random_bytes(bytes));
        let (first, second) = content.split_at(bytes / 2);
        stream.write_all(first).expect("the tunnel holds");
        continue_receiver.recv().expect("the test continues");
        stream.write_all(second).expect("the tunnel holds");
        let _ = stream.read(&mut [0]);
    });
    half_receiver.recv().expect("the first half arrives");
    between_halves();
    continue_sender.send(()).expect("the client waits");
    let received = server.join().expect("no panic");
    client.join().expect("no panic");
    assert!(received == random_bytes(bytes), "every byte is correct");
}

fn report(commands: &CommandSender) -> Report {
    let (sender, receiver) = mpsc::channel();
    commands.send(Command::Report(Box::new(move |report| sender.send(report).expect("the test waits"))));
    receiver.recv().expect("a reply")
}

fn stop(hosts: [(CommandSender, JoinHandle<()>); 2]) {
    for (commands, data_plane) in hosts {
        commands.send(Command::Stop);
        data_plane.join().expect("no panic");
    }
}

#[test]
fn mpt_carries_tcp_over_two_paths_and_survives_the_loss_of_one() {
    let Some(network) = Network::new("mpt") else { return };
    let hosts = [0, 1].map(|host| network.start(host, config(host, 1440, true, mpt_engine(host))));
    let paths = || report(&hosts[0].0).mpt.expect("the mode is mpt").paths;
    let packets_before_cut = std::cell::Cell::new(0);
    let cut_path = || {
        assert!(paths().iter().all(|path| path.sent.packets > 1000), "in turn: {:?}", paths());
        packets_before_cut.set(paths()[1].sent.packets);
        assert!(ip(&format!("-n {} link set v0 down", network.names[1])));
    };
    transfer(&network, 20 << 20, cut_path);
    assert!(eventually(|| !paths()[0].up && paths()[1].up), "{:?}", paths());
    assert!(paths()[1].sent.packets > packets_before_cut.get() + 1000, "{:?}", paths());
    stop(hosts);
}

/// Datagrams that a host sends from `source`, which reach the other's device.
fn send_from(network: &Network, source: [u8; 4], count: u64) {
    let send = move || {
        let socket = std::net::UdpSocket::bind((IpAddr::from(source), 0)).expect("the device has the address");
        (0..count).for_each(|_| assert!(socket.send_to(&[0; 100], "10.9.0.2:9").is_ok()));
    };
    network.spawn(0, send).join().expect("no panic");
}

#[test]
fn mpt_drops_and_counts_packets_of_a_source_that_the_peer_may_not_use_until_a_change_allows_it() {
    let Some(network) = Network::new("source") else { return };
    let hosts = [0, 1].map(|host| network.start(host, config(host, 1440, true, mpt_engine(host))));
    // Host 0 speaks with another's address, and could with any.
    let foreign = [10, 9, 0, 77];
    assert!(ip(&format!("-n {} address add 10.9.0.77/24 dev rw0", network.names[0])));
    assert!(eventually(|| report(&hosts[0].0).mpt.expect("the mode is mpt").paths.iter().all(|path| path.up)));
    let dropped = || report(&hosts[1].0).mpt.expect("the mode is mpt").unallowed_source;
    let written = || report(&hosts[1].0).device.written.packets;
    // Of the host's own packets, those of IPv6 are foreign, too.
    let (dropped_before, written_before) = (dropped(), written());
    send_from(&network, foreign, 50);
    assert!(eventually(|| dropped() >= dropped_before + 50), "{} dropped", dropped() - dropped_before);
    assert_eq!(written(), written_before);
    send_from(&network, [10, 9, 0, 1], 50);
    // Some may have been merged into one.
    assert!(eventually(|| written() > written_before));

    let (done, is_done) = mpsc::channel();
    let networks = vec!["10.9.0.0/24".parse().expect("a network")];
    hosts[1].0.send(Command::AllowedIps(networks, Box::new(move || done.send(()).expect("the test waits"))));
    is_done.recv().expect("the data plane answers");
    let written_before = written();
    send_from(&network, foreign, 50);
    assert!(eventually(|| written() > written_before));
    stop(hosts);
}

#[test]
fn mpt_without_offload_carries_the_same() {
    let Some(network) = Network::new("plain") else { return };
    let hosts = [0, 1].map(|host| network.start(host, config(host, 1440, host == 0, mpt_engine(host))));
    transfer(&network, 20 << 20, || ());
    let report = report(&hosts[1].0);
    assert!(!report.device.tcp_offload && !report.sockets[0].offload);
    stop(hosts);
}

/// A socket's default buffer holds 92 full packets, the interface's queue 99; a burst of 400 is more than both.
#[test]
fn mpt_with_backpressure_overflows_no_queue_of_its_own_host() {
    let Some(network) = Network::new("hold") else { return };
    let tc = |words: &str| Program::new("tc").args(words.split_whitespace()).output().expect("tc is there");
    for path in 0..2 {
        let queue = "root tbf rate 50mbit burst 3kb limit 150000";
        assert!(tc(&format!("-n {} qdisc add dev v{path} {queue}", network.names[0])).status.success());
    }
    let engine = |host: usize| match mpt_engine(host) {
        EngineConfig::Mpt(config) => EngineConfig::Mpt(MptConfig { backpressure: true, ..config }),
        engine => engine,
    };
    let hosts = [0, 1].map(|host| network.start(host, config(host, 1440, false, engine(host))));
    transfer(&network, 1 << 20, || ());
    let sent = || report(&hosts[0].0).sockets.iter().map(|socket| socket.sent.packets).sum::<u64>();
    let before = sent();
    let burst = network.spawn(0, || {
        let socket = std::net::UdpSocket::bind("10.9.0.1:0").expect("the device has the address");
        for _ in 0..400 {
            socket.send_to(&[0; 1400], "10.9.0.2:9").expect("the ring has room for 500");
        }
    });
    burst.join().expect("no panic");
    // The packets wait in the device until the queues have room.
    assert!(eventually(|| sent() >= before + 400), "{} of 400 were sent", sent() - before);
    for path in 0..2 {
        let queue = tc(&format!("-s -j -n {} qdisc show dev v{path}", network.names[0])).stdout;
        let queue = String::from_utf8(queue).expect("JSON");
        assert!(queue.contains("\"packets\":") && queue.contains("\"drops\":0,"), "{queue}");
    }
    stop(hosts);
}

#[test]
fn allowed_ips_of_a_peer_change_while_the_tunnel_runs() {
    let Some(network) = Network::new("net") else { return };
    let hosts = [0, 1].map(|host| network.start(host, config(host, 1500, true, ropewalk_engine(host))));
    let [client, server] = hosts.each_ref().map(|(commands, _)| commands);
    transfer(&network, 1 << 20, || ());
    let set_allowed_ips = |host: usize, last_octet: u8| {
        let DataPlaneConfig {
            device, sockets, engine: EngineConfig::Ropewalk(RopewalkConfig { mut peers, .. }), ..
        } = config(host, 1500, true, ropewalk_engine(host))
        else {
            unreachable!("the mode is ropewalk");
        };
        peers[0].allowed_ips = vec![IpAddr::from([10, 9, 0, last_octet]).into()];
        let (sender, receiver) = mpsc::channel();
        let update = Update {
            mtu: device.mtu,
            sockets: sockets.into_iter().map(Some).collect(),
            peers,
            other_peers: Vec::new(),
        };
        let reply = move |result: Result<_, _>| sender.send(result.is_ok()).expect("the test waits");
        hosts[host].0.send(Command::Update(Box::new(update), Box::new(reply)));
        assert!(receiver.recv().expect("a reply"));
    };
    let bind = |host: usize| network.spawn(host, move || UdpSocket::bind(format!("10.9.0.{}:6000", host + 1)));
    let [source, destination] =
        [0, 1].map(|host| bind(host).join().expect("no panic").expect("the device has the address"));
    destination.set_read_timeout(Some(Duration::from_millis(200))).expect("a valid timeout");
    let send_request = || source.send_to(b"?", "10.9.0.2:6000").expect("the device takes it");
    let is_delivered = || {
        eventually(|| {
            send_request();
            destination.recv(&mut [0]).is_ok()
        })
    };
    // Sends a request and waits until a host has counted it as refused.
    let is_refused = |refusals: &dyn Fn() -> u64| {
        while destination.recv(&mut [0]).is_ok() {}
        let before = refusals();
        send_request();
        eventually(|| refusals() > before) && destination.recv(&mut [0]).is_err()
    };
    assert!(is_delivered());
    set_allowed_ips(0, 7);
    assert!(is_refused(&|| report(client).device.unrouted), "the destination is in no peer's allowed IPs");
    set_allowed_ips(0, 2);
    set_allowed_ips(1, 7);
    assert!(is_refused(&|| report(server).peers[0].unallowed_source), "the source is not the peer's any more");
    set_allowed_ips(1, 1);
    assert!(is_delivered());
    stop(hosts);
}

#[test]
fn ropewalk_segments_super_packets_that_the_far_device_does_not_accept() {
    let Some(network) = Network::new("cut") else { return };
    let hosts = [0, 1].map(|host| network.start(host, config(host, 1500, host == 0, ropewalk_engine(host))));
    transfer(&network, 20 << 20, || ());
    let report = report(&hosts[1].0);
    assert!(!report.device.tcp_offload);
    assert_eq!((report.peers[0].unallowed_source, report.peers[0].incomplete), (0, 0));
    stop(hosts);
}

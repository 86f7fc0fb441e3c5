//! Relayed TCP connections: what the applications at both ends see is what TCP itself would show them.

use crate::traffic::Transfer;
use crate::tunnel_pair::{AddressFamilies, DEVICE, Family, IPV4, TunnelPair};
use daemon::status::RelayStatus;
use lab::testbed::{LEFT, RIGHT};
use nix::libc::linger;
use nix::sys::socket::{MsgFlags, send, setsockopt, sockopt};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use testing::{MINUTE, Reason, eventually, skip};

const LINKS: [&str; 2] = ["delay=2ms", "delay=4ms"];
const RELAY: &str = "relay = \"tcp\"";
const IPV6: AddressFamilies = AddressFamilies { outer: Family::V4, inner: Family::V6 };

/// The next port of a server: no port is used twice.
static PORTS: AtomicU16 = AtomicU16::new(9000);

/// Both daemons up, with these lines in `[tunnel]`; the kernel or the daemon translates packets.
fn pair_with(families: AddressFamilies, keys: [&str; 2], kernel: bool) -> Option<TunnelPair> {
    let mut pair = TunnelPair::configured(families, &LINKS)?;
    for host in [RIGHT, LEFT] {
        pair.edit(host, |text| format!("{text}\n[tunnel]\n{}\n", keys[host]));
        if kernel { pair.start(host) } else { pair.start_without_bpf(host) }
    }
    [RIGHT, LEFT].into_iter().for_each(|host| pair.wait_until_up(host));
    Some(pair)
}

/// Both daemons up, and both have said that they relay.
fn relaying_pair(families: AddressFamilies) -> Option<TunnelPair> {
    let pair = pair_with(families, [RELAY; 2], true)?;
    wait_until_relaying(&pair);
    Some(pair)
}

fn wait_until_relaying(pair: &TunnelPair) {
    for host in [LEFT, RIGHT] {
        assert!(eventually(|| relay(pair, host).peer_relays), "host {host}: {:?}", relay(pair, host));
    }
}

fn relay(pair: &TunnelPair, host: usize) -> RelayStatus {
    pair.status(host).peers[0].relay.expect("this end relays")
}

/// The address of a new server on a host.
fn new_address(pair: &TunnelPair, host: usize) -> SocketAddr {
    SocketAddr::new(pair.families.inner_address(host), PORTS.fetch_add(1, Ordering::Relaxed))
}

fn listen(pair: &TunnelPair, host: usize) -> TcpListener {
    let address = new_address(pair, host);
    pair.testbed.within(host, || Ok(TcpListener::bind(address)?)).unwrap()
}

fn connect(pair: &TunnelPair, host: usize, address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = pair.testbed.within(host, || Ok(TcpStream::connect_timeout(&address, MINUTE)));
    let stream = stream.unwrap()?;
    stream.set_read_timeout(Some(MINUTE))?;
    stream.set_write_timeout(Some(MINUTE))?;
    Ok(stream)
}

/// A client on the left host and the server's end of its connection on the right one.
fn connection(pair: &TunnelPair) -> (TcpStream, TcpStream) {
    let listener = listen(pair, RIGHT);
    let client = connect(pair, LEFT, listener.local_addr().unwrap()).unwrap();
    let server = listener.accept().unwrap().0;
    server.set_read_timeout(Some(MINUTE)).unwrap();
    server.set_write_timeout(Some(MINUTE)).unwrap();
    (client, server)
}

fn read_all(mut stream: &TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn both_ends_see_the_original_addresses_and_every_byte_in_both_families_and_directions() {
    for (families, kernel) in [(IPV4, true), (IPV6, true), (IPV4, false), (IPV6, false)] {
        let Some(pair) = pair_with(families, [RELAY; 2], kernel) else { return };
        wait_until_relaying(&pair);
        assert_eq!(relay(&pair, LEFT).kernel_translation, kernel);
        let (client, server) = connection(&pair);
        assert_eq!(server.peer_addr().unwrap(), client.local_addr().unwrap());
        assert_eq!(client.peer_addr().unwrap(), server.local_addr().unwrap());
        assert_eq!(client.local_addr().unwrap().ip(), families.inner_address(LEFT));
        for from in [LEFT, RIGHT] {
            assert_eq!(Transfer::start(&pair, from, 8 << 20).finish(), 8 << 20);
        }
        drop((client, server));
        let is_closed = || [LEFT, RIGHT].iter().all(|host| relay(&pair, *host).connections == 0);
        assert!(eventually(is_closed), "{:?}", relay(&pair, LEFT));
        let RelayStatus { opened_connections, accepted_connections, sent_bytes, received_bytes, held_bytes, .. } =
            relay(&pair, LEFT);
        assert_eq!((opened_connections, accepted_connections, held_bytes), (2, 1, 0));
        assert_eq!((sent_bytes, received_bytes), (8 << 20, 8 << 20));
    }
}

/// A process that is killed when it is dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

#[test]
fn a_file_from_a_web_server_is_the_same_file() {
    let Some(pair) = relaying_pair(IPV4) else { return };
    let address = new_address(&pair, RIGHT);
    let folder = pair.folder(RIGHT).join("www");
    std::fs::create_dir_all(&folder).unwrap();
    let content: Vec<u8> = (0..20_u32 << 20).map(|byte| (byte.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(folder.join("file"), &content).unwrap();
    let mut server = pair.testbed.command(RIGHT, "python3");
    server.args(["-m", "http.server", "--bind", &address.ip().to_string(), &address.port().to_string()]);
    let spawned = server.current_dir(&folder).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let Ok(child) = spawned else { return skip(Reason::Missing, "python3") };
    let _server = Server(child);
    let mut client = None;
    assert!(eventually(|| {
        client = connect(&pair, LEFT, address).ok();
        client.is_some()
    }));
    let mut client = client.unwrap();
    client.write_all(b"GET /file HTTP/1.0\r\n\r\n").unwrap();
    let answer = read_all(&client);
    let body = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    assert!(answer.starts_with(b"HTTP/1.0 200") && answer[body..] == content);
    assert!(relay(&pair, LEFT).received_bytes >= content.len() as u64);
}

#[test]
fn urgent_data_stay_where_they_are_in_the_byte_stream() {
    let Some(pair) = relaying_pair(IPV4) else { return };
    let (mut client, server) = connection(&pair);
    client.write_all(b"before ").unwrap();
    assert_eq!(send(client.as_raw_fd(), b"urgent", MsgFlags::MSG_OOB).unwrap(), 6);
    client.write_all(b" after").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_all(&server), b"before urgent after");
}

#[test]
fn an_ssh_session_passes_bytes_in_both_directions_and_its_exit_status() {
    let Some(pair) = relaying_pair(IPV4) else { return };
    let address = new_address(&pair, RIGHT);
    let folder = pair.folder(RIGHT).join("ssh");
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    for key in ["host", "user"] {
        let keygen = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &file(key)]).status();
        if !keygen.is_ok_and(|status| status.success()) {
            return skip(Reason::Missing, "ssh-keygen");
        }
    }
    // The folder of privilege separation, which the package's unit makes.
    std::fs::create_dir_all("/run/sshd").unwrap();
    let mut server = pair.testbed.command(RIGHT, "/usr/sbin/sshd");
    server.args(["-D", "-f", "/dev/null", "-h", &file("host"), "-p", &address.port().to_string()]);
    for option in ["PidFile=none", "StrictModes=no", "UsePAM=no", "PermitRootLogin=yes"] {
        server.args(["-o", option]);
    }
    server.args(["-o", &format!("AuthorizedKeysFile={}", file("user.pub"))]);
    let Ok(child) = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
        return skip(Reason::Missing, "sshd");
    };
    let _server = Server(child);
    assert!(eventually(|| connect(&pair, LEFT, address).is_ok()));
    let mut client = pair.testbed.command(LEFT, "ssh");
    client.args(["-F", "/dev/null", "-i", &file("user"), "-p", &address.port().to_string()]);
    for option in ["BatchMode=yes", "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null"] {
        client.args(["-o", option]);
    }
    client.args([&format!("root@{}", address.ip()), "cat; exit 7"]);
    let mut client = client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let sent: Vec<u8> = (0..1_u32 << 20).map(|byte| byte as u8).collect();
    let (mut input, bytes) = (client.stdin.take().unwrap(), sent.clone());
    let writer = thread::spawn(move || input.write_all(&bytes));
    let output = client.wait_with_output().unwrap();
    assert!(writer.join().unwrap().is_ok() && output.stdout == sent);
    assert_eq!(output.status.code(), Some(7));
    assert!(relay(&pair, LEFT).sent_bytes >= sent.len() as u64);
}

#[test]
fn a_refused_connection_and_an_unreachable_host_are_told_as_what_they_are() {
    let Some(mut pair) = TunnelPair::configured(IPV4, &LINKS) else { return };
    pair.edit(LEFT, |text| {
        text.replace("allowed-ips = ", "allowed-ips = [\"10.78.0.0/24\", ").replace("/32\"", "/32\"]")
    });
    for host in [RIGHT, LEFT] {
        pair.edit(host, |text| format!("{text}\n[tunnel]\nrelay = \"tcp\"\n"));
        pair.start(host);
    }
    [RIGHT, LEFT].into_iter().for_each(|host| pair.wait_until_up(host));
    wait_until_relaying(&pair);
    // The kernel's own verdict: `connect_timeout` polls for it, and may find a hang-up without an error.
    let connect = |address: SocketAddr| pair.testbed.within(LEFT, || Ok(TcpStream::connect(address))).unwrap();
    let refused = connect(new_address(&pair, RIGHT)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused, "{refused:?}");
    pair.testbed.run(RIGHT, "sysctl -qw net.ipv4.ip_forward=1").unwrap();
    pair.testbed.run(RIGHT, "ip route add unreachable 10.78.0.0/24").unwrap();
    let unreachable = connect("10.78.0.1:80".parse().unwrap()).unwrap_err();
    assert_eq!(unreachable.kind(), ErrorKind::HostUnreachable, "{unreachable:?}");
    assert_eq!(relay(&pair, LEFT).opened_connections, 2);
}

#[test]
fn a_server_answers_after_the_client_has_ended_its_direction() {
    let Some(pair) = relaying_pair(IPV4) else { return };
    let (mut client, mut server) = connection(&pair);
    client.write_all(b"question").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_all(&server), b"question");
    let answer = vec![7; 1 << 20];
    server.write_all(&answer).unwrap();
    drop(server);
    assert_eq!(read_all(&client), answer);
}

#[test]
fn a_reset_of_either_end_reaches_the_other() {
    let Some(pair) = relaying_pair(IPV4) else { return };
    for client_resets in [false, true] {
        let (client, server) = connection(&pair);
        let (resetting, mut other) = if client_resets { (client, server) } else { (server, client) };
        setsockopt(&resetting, sockopt::Linger, &linger { l_onoff: 1, l_linger: 0 }).unwrap();
        drop(resetting);
        assert_eq!(other.read(&mut [0; 16]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
}

#[test]
fn a_slow_reader_stalls_its_own_connection_and_no_other() {
    const BYTES: usize = 64 << 20;
    let Some(pair) = relaying_pair(IPV4) else { return };
    let (mut client, server) = connection(&pair);
    let writer = thread::spawn(move || client.write_all(&vec![3; BYTES]).unwrap());
    // Nothing is read before the other connection has carried all of its bytes.
    assert!(eventually(|| relay(&pair, RIGHT).held_bytes > 0));
    assert_eq!(Transfer::start(&pair, LEFT, 8 << 20).finish(), 8 << 20);
    assert!(!writer.is_finished(), "more is written than all buffers of the connection hold");
    assert_eq!(read_all(&server).len(), BYTES);
    writer.join().unwrap();
}

#[test]
fn two_thousand_short_connections_leave_none_behind() {
    const THREADS: usize = 8;
    const CONNECTIONS: usize = 250;
    let Some(pair) = relaying_pair(IPV4) else { return };
    let listener = listen(&pair, RIGHT);
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        for _ in 0..THREADS * CONNECTIONS {
            let mut stream = listener.accept().unwrap().0;
            let question = read_all(&stream);
            stream.write_all(&question).unwrap();
        }
    });
    let client = || {
        for number in 0..CONNECTIONS as u64 {
            let mut stream = TcpStream::connect_timeout(&address, MINUTE)?;
            stream.set_read_timeout(Some(MINUTE))?;
            stream.write_all(&number.to_le_bytes())?;
            stream.shutdown(Shutdown::Write)?;
            assert_eq!(read_all(&stream), number.to_le_bytes());
        }
        Ok(())
    };
    thread::scope(|scope| {
        let clients = [(); THREADS].map(|()| scope.spawn(|| pair.testbed.within(LEFT, client)));
        clients.into_iter().for_each(|client| client.join().unwrap().unwrap());
    });
    server.join().unwrap();
    let is_closed = || [LEFT, RIGHT].iter().all(|host| relay(&pair, *host).connections == 0);
    assert!(eventually(is_closed), "{:?}", relay(&pair, LEFT));
    assert_eq!(relay(&pair, LEFT).opened_connections, (THREADS * CONNECTIONS) as u64);
    assert_eq!(relay(&pair, LEFT).not_relayed_connections, 0);
}

#[test]
fn a_relayed_transfer_survives_a_pulled_path_and_a_reload() {
    let Some(mut pair) = relaying_pair(IPV4) else { return };
    let transfer = Transfer::endless(&pair, LEFT);
    transfer.wait_for(1 << 20);
    pair.testbed.change(0, "both down").unwrap();
    transfer.wait_for(4 << 20);
    let device = pair.testbed.device(0);
    pair.edit(LEFT, |text| text.replace(&format!("name = \"{device}\""), &format!("name = \"{device}\"\nweight = 2")));
    pair.reload(LEFT).unwrap();
    transfer.wait_for(4 << 20);
    pair.testbed.change(0, "both up").unwrap();
    assert!(transfer.stop() > 0);
    assert_eq!(relay(&pair, LEFT).opened_connections, 1);
}

#[test]
fn what_is_excluded_or_unknown_to_the_peer_goes_through_the_tunnel_as_packets() {
    let excluded = ["relay = \"tcp\"\nrelay-exclude = [\"tcp/1-65535\"]", RELAY];
    for keys in [excluded, [RELAY, "relay = \"off\""]] {
        let Some(pair) = pair_with(IPV4, keys, true) else { return };
        assert_eq!(Transfer::start(&pair, LEFT, 1 << 20).finish(), 1 << 20);
        let RelayStatus { opened_connections, not_relayed_connections, .. } = relay(&pair, LEFT);
        assert_eq!((opened_connections, not_relayed_connections), (0, 0));
    }
    // The far end excludes what the near end does not: it refuses to relay, and the held SYN goes on as a packet.
    let keys = [RELAY, "relay = \"tcp\"\nrelay-exclude = [\"10.77.0.0/24\"]"];
    let Some(pair) = pair_with(IPV4, keys, true) else { return };
    wait_until_relaying(&pair);
    assert_eq!(Transfer::start(&pair, LEFT, 1 << 20).finish(), 1 << 20);
    let RelayStatus { opened_connections, not_relayed_connections, sent_bytes, .. } = relay(&pair, LEFT);
    assert_eq!((opened_connections, not_relayed_connections, sent_bytes), (1, 1, 0));
}

#[test]
fn a_killed_daemon_leaves_nothing_and_its_connections_are_reset_when_it_is_started_again() {
    let Some(mut pair) = relaying_pair(IPV4) else { return };
    let (mut client, mut server) = connection(&pair);
    client.write_all(b"question").unwrap();
    assert_eq!(server.read(&mut [0; 16]).unwrap(), 8);
    pair.kill(LEFT);
    let is_gone = || pair.testbed.run(LEFT, &format!("ip link show {DEVICE}")).is_err();
    assert!(eventually(is_gone), "the device outlives its process");
    for command in ["ip address", "ip route show table all", "ip -6 route show table all"] {
        let text = pair.testbed.run(LEFT, command).unwrap();
        assert!(!text.contains("198.18.") && !text.contains("fd72:6f70:"), "{command}: {text}");
    }
    pair.start(LEFT);
    pair.wait_until_up(LEFT);
    wait_until_relaying(&pair);
    assert_eq!(server.read(&mut [0; 16]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    // The client's next segment is answered by the server's host, which does not know the connection any more.
    assert!(eventually(|| client.write_all(b"question").is_err()));
    assert_eq!(Transfer::start(&pair, LEFT, 1 << 20).finish(), 1 << 20);
}

#[test]
fn a_daemon_that_is_stopped_resets_the_connections_of_its_host() {
    let Some(pair) = relaying_pair(IPV4) else { return };
    let (mut client, mut server) = connection(&pair);
    client.write_all(b"question").unwrap();
    assert_eq!(server.read(&mut [0; 16]).unwrap(), 8);
    drop(pair.command(LEFT).args(["down", DEVICE]).output().unwrap());
    for end in [&mut client, &mut server] {
        assert_eq!(end.read(&mut [0; 16]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
}

//! Other programs that use several uplinks, if they are on the path of executables: glorytun and MLVPN, which get the rates
//! of the links, because their users are asked to measure them; and engarde, which sends each datagram of WireGuard over all
//! links.

use super::baselines::{
    self, INNER_ADDRESSES, start_wireguard_go, wait_for_device, wait_until_reachable, wireguard_device,
};
use super::cpu_accounting::CpuAccounting;
use super::running::RunningSystem;
use super::scratch_folder;
use super::testbed::{CLIENT, SERVER, Testbed};
use crate::shell;
use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Stdio};

/// UDP port of the server, and of its first link.
const PORT: u16 = 5080;
/// Packets that MLVPN holds back for reordering; its example says that 64 is usually enough.
const REORDER_BUFFER: u32 = 64;
/// The address at which engarde's client receives WireGuard's datagrams.
const ENGARDE_ADDRESS: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, PORT);

/// glorytun with ChaCha20-Poly1305, which every build supports, and a path over every link.
pub(super) fn glorytun(testbed: &Testbed, accounting: &CpuAccounting) -> Result<RunningSystem, String> {
    find("glorytun")?;
    let key = scratch_folder().join("glorytun.key");
    fs::write(&key, shell::output("glorytun keygen")?).map_err(|error| error.to_string())?;
    let (key, server) = (key.display(), testbed.address(0, SERVER));
    let mut processes = Vec::new();
    for host in [SERVER, CLIENT] {
        let device = format!("rwgt{host}");
        let remote = if host == CLIENT { format!("to addr {server} port {PORT}") } else { String::new() };
        let line = format!("glorytun bind dev {device} keyfile {key} chacha from addr 0.0.0.0 port {PORT} {remote}");
        processes.push(start(testbed, accounting, host, &line, "glorytun")?);
        address(testbed, host, &device)?;
    }
    for link in 0..testbed.links() {
        let (local, remote) = (testbed.address(link, CLIENT), testbed.address(link, SERVER));
        let [up, down] = [CLIENT, SERVER].map(|host| testbed.rate_mbps(link, host));
        let line = format!("glorytun path dev rwgt{CLIENT} addr {local} to addr {remote} port {PORT}");
        testbed.run(CLIENT, &format!("{line} set up rate fixed tx {up}mbit rx {down}mbit"))?;
    }
    wait_until_reachable(testbed, processes)
}

/// MLVPN, with a tunnel over every link and its reorder buffer.
pub(super) fn mlvpn(testbed: &Testbed, accounting: &CpuAccounting) -> Result<RunningSystem, String> {
    find("mlvpn")?;
    let mut processes = Vec::new();
    for host in [SERVER, CLIENT] {
        let device = format!("rwml{host}");
        let file = scratch_folder().join(format!("mlvpn{host}.conf"));
        write(&file, 0o600, &mlvpn_configuration(testbed, host, &device))?;
        let line = format!("mlvpn --config {} --user daemon --quiet", file.display());
        processes.push(start(testbed, accounting, host, &line, "mlvpn")?);
        address(testbed, host, &device)?;
    }
    wait_until_reachable(testbed, processes)
}

/// engarde below wireguard-go: every datagram over every link.
pub(super) fn engarde(testbed: &Testbed, accounting: &CpuAccounting) -> Result<RunningSystem, String> {
    find("engarde-client")?;
    find("engarde-server")?;
    let mut processes = Vec::new();
    for host in [SERVER, CLIENT] {
        let role = if host == SERVER { "server" } else { "client" };
        let file = scratch_folder().join(format!("engarde-{role}.yml"));
        write(&file, 0o600, &engarde_configuration(testbed, host))?;
        let line = format!("engarde-{role} {}", file.display());
        processes.push(start(testbed, accounting, host, &line, "engarde")?);
    }
    processes.extend(start_wireguard_go(testbed, accounting, ENGARDE_ADDRESS)?);
    wait_until_reachable(testbed, processes)
}

fn engarde_configuration(testbed: &Testbed, host: usize) -> String {
    if host == SERVER {
        let wireguard = SocketAddrV4::new(Ipv4Addr::LOCALHOST, baselines::PORT);
        return format!(
            "server:\n  listenAddr: \"0.0.0.0:{PORT}\"\n  dstAddr: \"{wireguard}\"\n  clientTimeout: 30\n  \
             writeTimeout: 10\n"
        );
    }
    let server = |link| SocketAddrV4::new(testbed.address(link, SERVER), PORT);
    let mut text = format!(
        "client:\n  listenAddr: \"{ENGARDE_ADDRESS}\"\n  dstAddr: \"{}\"\n  writeTimeout: 10\n  \
         excludedInterfaces: [\"lo\", \"{}\"]\n  dstOverrides:\n",
        server(0),
        wireguard_device(CLIENT)
    );
    for link in 0..testbed.links() {
        let _ = write!(text, "    - ifName: \"{}\"\n      dstAddr: \"{}\"\n", testbed.device(link), server(link));
    }
    text
}

fn mlvpn_configuration(testbed: &Testbed, host: usize, device: &str) -> String {
    let (mode, peer) = (if host == SERVER { "server" } else { "client" }, 1 - host);
    let mut text = format!(
        "[general]\nmode = \"{mode}\"\nmtu = 1444\ntuntap = \"tun\"\ninterface_name = \"{device}\"\n\
         timeout = 10\npassword = \"bench of ropewalk\"\nreorder_buffer_size = {REORDER_BUFFER}\nloss_tolerence = 50\n"
    );
    for link in 0..testbed.links() {
        let bytes = testbed.rate_mbps(link, host) * 1e6 / 8.0;
        let (local, remote, port) = (testbed.address(link, host), testbed.address(link, peer), PORT + link as u16);
        let _ =
            write!(text, "\n[link{link}]\nbindhost = \"{local}\"\nbindport = {port}\nbandwidth_upload = {bytes:.0}\n");
        if host == CLIENT {
            let _ = write!(text, "remotehost = \"{remote}\"\nremoteport = {port}\n");
        }
    }
    text
}

/// Writes a file with these permissions.
pub(super) fn write(file: &Path, mode: u32, text: &str) -> Result<(), String> {
    let written = fs::write(file, text).and_then(|()| fs::set_permissions(file, fs::Permissions::from_mode(mode)));
    written.map_err(|error| format!("{}: {error}", file.display()))
}

fn find(program: &str) -> Result<(), String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if is_there { Ok(()) } else { Err(format!("{program} is not on the path of executables")) }
}

fn start(testbed: &Testbed, accounting: &CpuAccounting, host: usize, line: &str, name: &str) -> Result<Child, String> {
    let log =
        fs::File::create(scratch_folder().join(format!("{name}{host}.log"))).map_err(|error| error.to_string())?;
    let errors = log.try_clone().map_err(|error| error.to_string())?;
    let mut command = accounting.in_group(&testbed.command(host, line));
    command.stdin(Stdio::null()).stdout(log).stderr(errors);
    command.spawn().map_err(|error| format!("{line}: {error}"))
}

/// Sets the inner address of a host's device, once the device exists.
fn address(testbed: &Testbed, host: usize, device: &str) -> Result<(), String> {
    wait_for_device(testbed, host, device)?;
    testbed.run(host, &format!("ip address add {}/24 dev {device}", INNER_ADDRESSES[host]))?;
    testbed.run(host, &format!("ip link set {device} up")).map(drop)
}

//! Starts the systems that the tunnel is compared with; a system that is not installed and cannot be installed is skipped.

use super::cpu_accounting::CpuAccounting;
use super::running::RunningSystem;
use super::testbed::{CLIENT, SERVER, Testbed};
use super::{probe, scratch_folder};
use crate::shell;
use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Inner addresses of the tunnel's client and server.
pub(super) const INNER_ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 98, 0, 1), Ipv4Addr::new(10, 98, 0, 2)];
/// UDP port of WireGuard and OpenVPN.
pub(super) const PORT: u16 = 51_820;
/// Maximum time from the start of a system until it forwards a datagram.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(10);

/// WireGuard in user space, with segmentation offload on both of its sides; one path.
pub(super) fn wireguard_go(testbed: &Testbed, accounting: &CpuAccounting) -> Result<RunningSystem, String> {
    let server = SocketAddrV4::new(testbed.address(0, SERVER), PORT);
    wait_until_reachable(testbed, start_wireguard_go(testbed, accounting, server)?)
}

/// Starts both ends of WireGuard. The client sends to `server`; the server listens at [`PORT`].
pub(super) fn start_wireguard_go(
    testbed: &Testbed,
    accounting: &CpuAccounting,
    server: SocketAddrV4,
) -> Result<Vec<Child>, String> {
    let program = installed_wireguard_go()?;
    if !shell::succeeds("wg --version") {
        return Err("wg is missing: apt-get install --no-install-recommends wireguard-tools".to_owned());
    }
    let keys = [wireguard_keys(CLIENT)?, wireguard_keys(SERVER)?];
    let mut processes = Vec::new();
    for host in [CLIENT, SERVER] {
        // The control sockets lie in one folder of the machine, by the device's name.
        let device = wireguard_device(host);
        let mut command = accounting.in_group(&testbed.command(host, &format!("{} -f {device}", program.display())));
        command.env("LOG_LEVEL", "error").stdout(Stdio::null()).stderr(Stdio::null());
        processes.push(command.spawn().map_err(|error| error.to_string())?);
        // Its control socket comes later than the device.
        wait_until(&format!("{device} takes no configuration"), || {
            testbed.run(host, &format!("wg show {device}")).is_ok()
        })?;
        let peer = 1 - host;
        let (private_key, public_key) = (keys[host].0.display(), &keys[peer].1);
        let endpoint = if host == CLIENT { format!("endpoint {server}") } else { String::new() };
        testbed.run(host, &format!("wg set {device} private-key {private_key} listen-port {PORT} peer {public_key} allowed-ips {}/32 {endpoint}", INNER_ADDRESSES[peer]))?;
        testbed.run(host, &format!("ip address add {}/24 dev {device}", INNER_ADDRESSES[host]))?;
        testbed.run(host, &format!("ip link set {device} up mtu 1420"))?;
    }
    Ok(processes)
}

/// The name of WireGuard's device on a host.
pub(super) fn wireguard_device(host: usize) -> String {
    format!("rwg{host}")
}

/// OpenVPN over UDP with AES-256-GCM; one path.
pub(super) fn openvpn(testbed: &Testbed, accounting: &CpuAccounting) -> Result<RunningSystem, String> {
    if Command::new("openvpn").arg("--version").output().is_err() {
        return Err("openvpn is missing: apt-get install --no-install-recommends openvpn".to_owned());
    }
    let fingerprints = [certificate(CLIENT)?, certificate(SERVER)?];
    let mut processes = Vec::new();
    for host in [SERVER, CLIENT] {
        let peer = 1 - host;
        // A server with `--remote` would refuse the client's port, which is any free one.
        let role = if host == SERVER {
            format!("--tls-server --dh none --port {PORT}")
        } else {
            format!("--tls-client --nobind --remote {} {PORT}", testbed.address(0, SERVER))
        };
        let folder = scratch_folder();
        let line = format!(
            "openvpn --dev rwo{host} --dev-type tun --proto udp4 {role} --disable-dco \
             --ifconfig {} {} --cert {folder}/ovpn{host}.crt --key {folder}/ovpn{host}.key --peer-fingerprint {} \
             --data-ciphers AES-256-GCM --sndbuf 4194304 --rcvbuf 4194304 --verb 1",
            INNER_ADDRESSES[host],
            INNER_ADDRESSES[peer],
            fingerprints[peer],
            folder = folder.display(),
        );
        let mut command = accounting.in_group(&testbed.command(host, &line));
        let log = fs::File::create(folder.join(format!("ovpn{host}.log"))).map_err(|error| error.to_string())?;
        processes.push(command.stdout(log).spawn().map_err(|error| error.to_string())?);
    }
    wait_until_reachable(testbed, processes)
}

/// The kernel's MPTCP, with a subflow on every link.
pub(super) fn mptcp(testbed: &Testbed) -> Result<RunningSystem, String> {
    if !shell::succeeds("mptcpize --help") {
        return Err("mptcpize is missing: apt-get install --no-install-recommends mptcpize".to_owned());
    }
    for host in [CLIENT, SERVER] {
        testbed.run(host, "sysctl -qw net.mptcp.enabled=1")?;
        testbed.run(host, "ip mptcp limits set subflow 8 add_addr_accepted 8")?;
        for link in 1..testbed.links() {
            let role = if host == CLIENT { "subflow" } else { "signal" };
            let (address, device) = (testbed.address(link, host), testbed.device(link));
            testbed.run(host, &format!("ip mptcp endpoint add {address} dev {device} {role}"))?;
        }
    }
    Ok(RunningSystem { wrapper: "mptcpize run", ..RunningSystem::plain(testbed.address(0, SERVER)) })
}

/// Waits until the server answers through the tunnel.
pub(super) fn wait_until_reachable(testbed: &Testbed, processes: Vec<Child>) -> Result<RunningSystem, String> {
    let running = RunningSystem::tunnel(INNER_ADDRESSES[SERVER], processes);
    if probe::is_reachable(testbed, INNER_ADDRESSES[SERVER], STARTUP_TIMEOUT) {
        Ok(running)
    } else {
        Err("no packet comes through it".to_owned())
    }
}

pub(super) fn wait_for_device(testbed: &Testbed, host: usize, device: &str) -> Result<(), String> {
    wait_until(&format!("{device} never appeared"), || testbed.run(host, &format!("ip link show {device}")).is_ok())
}

/// Waits for a condition; the error names what was missing.
fn wait_until(missing: &str, condition: impl Fn() -> bool) -> Result<(), String> {
    let start = Instant::now();
    while !condition() {
        if start.elapsed() > STARTUP_TIMEOUT {
            return Err(missing.to_owned());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Debian's package is from 2022 and has no offloads; this version comes through the Go module proxy.
fn installed_wireguard_go() -> Result<PathBuf, String> {
    let program = scratch_folder().join("wireguard");
    if !program.exists() {
        let mut go = Command::new("go");
        let output = go.args(["install", "golang.zx2c4.com/wireguard@latest"]).env("GOBIN", scratch_folder()).output();
        let output = output.map_err(|_| "Go is missing, which builds wireguard-go".to_owned())?;
        if !output.status.success() {
            return Err(format!("go install: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
    }
    Ok(program)
}

/// Makes a key pair for a host; returns the file of the private key, and the public key.
fn wireguard_keys(host: usize) -> Result<(PathBuf, String), String> {
    let file = scratch_folder().join(format!("wg{host}.key"));
    fs::write(&file, shell::output("wg genkey")?).map_err(|error| error.to_string())?;
    let private = fs::File::open(&file).map_err(|error| error.to_string())?;
    let output = Command::new("wg").arg("pubkey").stdin(private).output().map_err(|error| error.to_string())?;
    Ok((file, String::from_utf8_lossy(&output.stdout).trim().to_owned()))
}

/// Makes a self-signed certificate for a host and returns its fingerprint.
fn certificate(host: usize) -> Result<String, String> {
    let file = scratch_folder().join(format!("ovpn{host}"));
    let file = file.display();
    let request = format!(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 7 -subj /CN=bench{host} \
         -keyout {file}.key -out {file}.crt"
    );
    if !shell::succeeds(&request) {
        return Err("openssl made no certificate".to_owned());
    }
    let fingerprint = shell::output(&format!("openssl x509 -noout -fingerprint -sha256 -in {file}.crt"))?;
    Ok(fingerprint.trim().rsplit('=').next().unwrap_or_default().to_owned())
}

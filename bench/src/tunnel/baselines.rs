//! The systems that the tunnel is compared with. Each is skipped where it is not installed and cannot be.

use super::cpu_accounting::CpuAccounting;
use super::running::RunningSystem;
use super::testbed::{LEFT, RIGHT, Testbed};
use super::{probe, scratch};
use crate::shell;
use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Addresses inside the tunnel: left, right.
const INNER: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 98, 0, 1), Ipv4Addr::new(10, 98, 0, 2)];
const PORT: u16 = 51_820;
/// The longest time from the start until a datagram passes.
const TIMEOUT: Duration = Duration::from_secs(10);

/// WireGuard in user space, with segmentation offload on both of its sides; one path.
pub(super) fn wireguard_go(testbed: &Testbed, accounting: &CpuAccounting) -> Result<RunningSystem, String> {
    let program = installed_wireguard_go()?;
    if !shell::succeeds("wg --version") {
        return Err("wg is missing: apt-get install --no-install-recommends wireguard-programs".to_owned());
    }
    let keys = [wireguard_keys(LEFT)?, wireguard_keys(RIGHT)?];
    let mut ends = Vec::new();
    for host in [LEFT, RIGHT] {
        // The control sockets lie in one folder of the machine, by the device's name.
        let device = format!("rwg{host}");
        let mut command = accounting.in_group(&testbed.command(host, &format!("{} -f {device}", program.display())));
        command.env("LOG_LEVEL", "error").stdout(Stdio::null()).stderr(Stdio::null());
        ends.push(command.spawn().map_err(|why| why.to_string())?);
        device_appears(testbed, host, &device)?;
        let other = 1 - host;
        let (private, public) = (keys[host].0.display(), &keys[other].1);
        let to = testbed.address(0, other);
        testbed.run(host, &format!("wg set {device} private-key {private} listen-port {PORT} peer {public} allowed-ips {}/32 endpoint {to}:{PORT}", INNER[other]))?;
        testbed.run(host, &format!("ip address add {}/24 dev {device}", INNER[host]))?;
        testbed.run(host, &format!("ip link set {device} up mtu 1420"))?;
    }
    up(testbed, ends)
}

/// OpenVPN over UDP with AES-256-GCM; one path.
pub(super) fn openvpn(testbed: &Testbed, accounting: &CpuAccounting) -> Result<RunningSystem, String> {
    if Command::new("openvpn").arg("--version").output().is_err() {
        return Err("openvpn is missing: apt-get install --no-install-recommends openvpn".to_owned());
    }
    let prints = [certificate(LEFT)?, certificate(RIGHT)?];
    let mut ends = Vec::new();
    for host in [RIGHT, LEFT] {
        let other = 1 - host;
        let role = if host == RIGHT { "--tls-server --dh none" } else { "--tls-client --nobind" };
        let folder = scratch();
        let line = format!(
            "openvpn --dev rwo{host} --dev-type tun --proto udp4 --remote {} --port {PORT} {role} --disable-dco \
             --ifconfig {} {} --cert {folder}/ovpn{host}.crt --key {folder}/ovpn{host}.key --peer-fingerprint {} \
             --data-ciphers AES-256-GCM --sndbuf 4194304 --rcvbuf 4194304 --verb 1",
            testbed.address(0, other),
            INNER[host],
            INNER[other],
            prints[other],
            folder = folder.display(),
        );
        let mut command = accounting.in_group(&testbed.command(host, &line));
        let log = fs::File::create(folder.join(format!("ovpn{host}.log"))).map_err(|why| why.to_string())?;
        ends.push(command.stdout(log).spawn().map_err(|why| why.to_string())?);
    }
    up(testbed, ends)
}

/// The kernel's MPTCP, with a subflow on every link.
pub(super) fn mptcp(testbed: &Testbed) -> Result<RunningSystem, String> {
    if !shell::succeeds("mptcpize --help") {
        return Err("mptcpize is missing: apt-get install --no-install-recommends mptcpize".to_owned());
    }
    for host in [LEFT, RIGHT] {
        testbed.run(host, "sysctl -qw net.mptcp.enabled=1")?;
        testbed.run(host, "ip mptcp limits set subflow 8 add_addr_accepted 8")?;
        for link in 1..testbed.links() {
            let role = if host == LEFT { "subflow" } else { "signal" };
            let (address, device) = (testbed.address(link, host), testbed.device(link));
            testbed.run(host, &format!("ip mptcp endpoint add {address} dev {device} {role}"))?;
        }
    }
    Ok(RunningSystem { wrapper: "mptcpize run", ..RunningSystem::plain(testbed.address(0, RIGHT)) })
}

fn up(testbed: &Testbed, ends: Vec<Child>) -> Result<RunningSystem, String> {
    let running = RunningSystem::tunnel(INNER[RIGHT], ends);
    if probe::answers(testbed, INNER[RIGHT], TIMEOUT) {
        Ok(running)
    } else {
        Err("nothing comes through it".to_owned())
    }
}

fn device_appears(testbed: &Testbed, host: usize, device: &str) -> Result<(), String> {
    let start = Instant::now();
    while testbed.run(host, &format!("ip link show {device}")).is_err() {
        if start.elapsed() > TIMEOUT {
            return Err(format!("{device} never appeared"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Debian's package is of 2022 and has no offloads; this one comes through the Go module proxy.
fn installed_wireguard_go() -> Result<PathBuf, String> {
    let program = scratch().join("wireguard");
    if !program.exists() {
        let mut go = Command::new("go");
        let built = go.args(["install", "golang.zx2c4.com/wireguard@latest"]).env("GOBIN", scratch()).output();
        let built = built.map_err(|_| "Go is missing, which builds wireguard-go".to_owned())?;
        if !built.status.success() {
            return Err(format!("go install: {}", String::from_utf8_lossy(&built.stderr).trim()));
        }
    }
    Ok(program)
}

/// The file of a private key, and the public key.
fn wireguard_keys(host: usize) -> Result<(PathBuf, String), String> {
    let file = scratch().join(format!("wg{host}.key"));
    fs::write(&file, shell::output("wg genkey")?).map_err(|why| why.to_string())?;
    let private = fs::File::open(&file).map_err(|why| why.to_string())?;
    let output = Command::new("wg").arg("pubkey").stdin(private).output().map_err(|why| why.to_string())?;
    Ok((file, String::from_utf8_lossy(&output.stdout).trim().to_owned()))
}

/// Makes a self-signed certificate for a host; its fingerprint.
fn certificate(host: usize) -> Result<String, String> {
    let file = scratch().join(format!("ovpn{host}"));
    let file = file.display();
    let made = format!(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 7 -subj /CN=bench{host} \
         -keyout {file}.key -out {file}.crt"
    );
    if !shell::succeeds(&made) {
        return Err("openssl made no certificate".to_owned());
    }
    let said = shell::output(&format!("openssl x509 -noout -fingerprint -sha256 -in {file}.crt"))?;
    Ok(said.trim().rsplit('=').next().unwrap_or_default().to_owned())
}

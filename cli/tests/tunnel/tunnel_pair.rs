//! Two hosts and the daemon on both, which are removed when the value is dropped, also when a test panics.

use daemon::control_plane::Client;
use daemon::keys;
use daemon::status::{PathState, PathStatus, TunnelStatus};
use lab::testbed::{self, LEFT, RIGHT, Testbed};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use testing::{Reason, eventually, skip};

/// The tunnel's device on both hosts.
pub(crate) const DEVICE: &str = "rw0";
/// The UDP port of both daemons.
pub(crate) const PORT: u16 = 4754;

static FOLDERS: AtomicU32 = AtomicU32::new(0);

/// The program under test; `ROPEWALK_TEST_PROGRAM` names another build of it.
pub(crate) fn program() -> String {
    std::env::var("ROPEWALK_TEST_PROGRAM").unwrap_or_else(|_| env!("CARGO_BIN_EXE_ropewalk").into())
}

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

/// Address families of the outer and of the inner packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddressFamilies {
    pub(crate) outer: Family,
    pub(crate) inner: Family,
}

/// IPv4 over IPv4.
pub(crate) const IPV4: AddressFamilies = AddressFamilies { outer: Family::V4, inner: Family::V4 };

impl AddressFamilies {
    /// The inner address of a host.
    pub(crate) fn inner_address(self, host: usize) -> IpAddr {
        match self.inner {
            Family::V4 => IpAddr::from([10, 77, 0, host as u8 + 1]),
            Family::V6 => IpAddr::from([0xfd77, 0, 0, 0, 0, 0, 0, host as u16 + 1]),
        }
    }

    fn outer_address(self, testbed: &Testbed, link: usize, host: usize) -> IpAddr {
        match self.outer {
            Family::V4 => testbed.v4(link, host).into(),
            Family::V6 => testbed.v6(link, host).into(),
        }
    }

    /// Prefix lengths of an inner host and of the inner network.
    fn prefixes(self) -> [u8; 2] {
        if self.inner == Family::V4 { [32, 24] } else { [128, 64] }
    }
}

/// Two hosts, the links between them, and their daemons.
pub(crate) struct TunnelPair {
    // Fields are dropped in this order.
    daemons: [Option<Child>; 2],
    pub(crate) testbed: Testbed,
    pub(crate) families: AddressFamilies,
    links: usize,
    private_keys: [String; 2],
    folder: PathBuf,
}

impl TunnelPair {
    /// Both daemons up, with all paths. `None`, and the test is skipped, if the machine cannot make a testbed.
    pub(crate) fn up(families: AddressFamilies, links: &[&str]) -> Option<Self> {
        let mut pair = Self::configured(families, links)?;
        [RIGHT, LEFT].into_iter().for_each(|host| pair.start(host));
        [RIGHT, LEFT].into_iter().for_each(|host| pair.wait_until_up(host));
        Some(pair)
    }

    /// As [`TunnelPair::up`], but no daemon is started yet.
    pub(crate) fn configured(families: AddressFamilies, links: &[&str]) -> Option<Self> {
        testbed::possible().map_err(|reason| skip(Reason::Missing, &reason)).ok()?;
        let testbed = Testbed::pair(&[env!("CARGO_BIN_EXE_ropewalk"), "lab-agent"], links).unwrap();
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        // A short name: the path of a unix socket has 107 bytes at most.
        let folder = std::env::temp_dir().join(format!("rw-{}-{number}", std::process::id()));
        let private_keys = [(); 2].map(|()| keys::genkey().to_string());
        let links = links.len();
        let pair = Self { daemons: [None, None], testbed, families, links, private_keys, folder };
        [LEFT, RIGHT].into_iter().for_each(|host| pair.configure(host));
        Some(pair)
    }

    /// Writes a host's configuration. The left host initiates on every link; the right one learns its addresses from
    /// that.
    fn configure(&self, host: usize) {
        let (other, families) = (1 - host, self.families);
        let ([host_prefix, network_prefix], [inner, peer_inner]) =
            (families.prefixes(), [host, other].map(|host| families.inner_address(host)));
        let public = keys::pubkey(self.private_key(other)).unwrap();
        let private = self.private_key(host);
        let mut text = format!("[interface]\naddress = \"{inner}/{network_prefix}\"\nprivate-key = \"{private}\"\n");
        write!(text, "\n[[peer]]\npublic-key = \"{public}\"\nallowed-ips = \"{peer_inner}/{host_prefix}\"\n").unwrap();
        for link in (0..self.links).filter(|_| host == LEFT) {
            let [source, remote] = [host, other].map(|host| families.outer_address(&self.testbed, link, host));
            let device = self.testbed.device(link);
            write!(text, "\n[[path]]\nname = \"{device}\"\ninterface = \"{device}\"\nsource = \"{source}\"\n").unwrap();
            write!(text, "endpoint = \"{remote}\"\nlisten-port = {PORT}\n").unwrap();
        }
        fs::create_dir_all(self.folder(host)).unwrap();
        let file = fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(self.file(host));
        file.unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// The private key of a host, in base64.
    pub(crate) fn private_key(&self, host: usize) -> &str {
        &self.private_keys[host]
    }

    /// The directory of a daemon's socket and state file.
    pub(crate) fn folder(&self, host: usize) -> PathBuf {
        self.folder.join(host.to_string())
    }

    /// The configuration file of a host.
    pub(crate) fn file(&self, host: usize) -> PathBuf {
        self.folder(host).join(format!("{DEVICE}.toml"))
    }

    /// Changes a host's configuration file; the daemon does not reload it.
    pub(crate) fn edit(&self, host: usize, change: impl FnOnce(String) -> String) {
        let text = fs::read_to_string(self.file(host)).unwrap();
        fs::write(self.file(host), change(text)).unwrap();
    }

    /// `ropewalk reload rw0`: its standard output, or its standard error if it fails.
    pub(crate) fn reload(&self, host: usize) -> Result<String, String> {
        let output = self.command(host).args(["reload", DEVICE]).output().unwrap();
        let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        if output.status.success() { Ok(stdout) } else { Err(stderr) }
    }

    /// A command that runs the program on a host.
    pub(crate) fn command(&self, host: usize) -> Command {
        let mut command = self.testbed.command(host, &program());
        command.env("ROPEWALK_RUN", self.folder(host)).env("RUST_LOG", "warn").stdin(Stdio::null());
        command
    }

    /// `ropewalk up FILE`.
    pub(crate) fn start(&mut self, host: usize) {
        let child = self.command(host).arg("up").arg(self.file(host)).spawn();
        self.daemons[host] = Some(child.unwrap());
    }

    /// As [`TunnelPair::start`], with a state directory, in which the daemon keeps what a restart shall not forget.
    pub(crate) fn start_with_state(&mut self, host: usize) {
        let mut command = self.command(host);
        command.env("STATE_DIRECTORY", self.folder(host)).arg("up").arg(self.file(host));
        self.daemons[host] = Some(command.spawn().unwrap());
    }

    /// As [`TunnelPair::start_with_state`], with a clock that is off, such as `-2h`.
    pub(crate) fn start_at_another_time(&mut self, host: usize, offset: &str) {
        let mut command = self.testbed.command(host, "faketime");
        command.args(["-f", offset, &program(), "up"]).arg(self.file(host)).env("STATE_DIRECTORY", self.folder(host));
        command.env("ROPEWALK_RUN", self.folder(host)).env("RUST_LOG", "warn").stdin(Stdio::null());
        self.daemons[host] = Some(command.spawn().unwrap());
    }

    /// As [`TunnelPair::start`], without the privilege to load eBPF programs.
    pub(crate) fn start_without_bpf(&mut self, host: usize) {
        self.start_with(host, &["--bounding-set=-bpf,-sys_admin"]);
    }

    /// As [`TunnelPair::start`], with options of `setpriv`.
    pub(crate) fn start_with(&mut self, host: usize, options: &[&str]) {
        let mut command = self.testbed.command(host, "setpriv");
        command.args(options).args([&program(), "up"]).arg(self.file(host));
        command.env("ROPEWALK_RUN", self.folder(host)).env("RUST_LOG", "warn").stdin(Stdio::null());
        self.daemons[host] = Some(command.spawn().unwrap());
    }

    /// As [`TunnelPair::start`], with the address of the system's bus (D-Bus).
    pub(crate) fn start_with_bus(&mut self, host: usize, address: &str) {
        let mut command = self.command(host);
        self.daemons[host] =
            Some(command.env("DBUS_SYSTEM_BUS_ADDRESS", address).arg("up").arg(self.file(host)).spawn().unwrap());
    }

    /// As [`TunnelPair::start`], with a file in the place of `/etc/hosts`.
    pub(crate) fn start_with_hosts(&mut self, host: usize, hosts: &Path) {
        let script = "mount --bind \"$0\" /etc/hosts && exec \"$@\"";
        let mut command = self.testbed.command(host, "unshare");
        command.args(["--mount", "sh", "-c", script]).arg(hosts).args([&program(), "up"]).arg(self.file(host));
        command.env("ROPEWALK_RUN", self.folder(host)).env("RUST_LOG", "warn").stdin(Stdio::null());
        self.daemons[host] = Some(command.spawn().unwrap());
    }

    /// Kills the daemon (SIGKILL).
    pub(crate) fn kill(&mut self, host: usize) {
        let mut daemon = self.daemons[host].take().expect("it was started");
        daemon.kill().unwrap();
        daemon.wait().unwrap();
    }

    /// Waits until the daemon has ended by itself.
    pub(crate) fn wait(&mut self, host: usize) -> ExitStatus {
        self.daemons[host].take().expect("it was started").wait().unwrap()
    }

    /// Requests the daemon's end, and waits for it.
    pub(crate) fn stop(&mut self, host: usize) {
        self.client(host).request("POST", "/v1/down", "").unwrap();
        assert!(self.daemons[host].take().expect("it was started").wait().unwrap().success());
    }

    /// The daemon's process id.
    pub(crate) fn pid(&self, host: usize) -> u32 {
        self.daemons[host].as_ref().expect("it was started").id()
    }

    /// Waits until all paths of a host are up.
    pub(crate) fn wait_until_up(&self, host: usize) {
        let all_up = |status: &TunnelStatus| {
            status.paths().filter(|(_, path)| path.state == PathState::Up).count() == self.links
        };
        let up = || self.client(host).status().is_ok_and(|status| all_up(&status));
        assert!(eventually(up), "host {host} does not come up: {:#?}", self.client(host).status());
    }

    /// Waits until the daemon of a host answers.
    pub(crate) fn wait_until_started(&self, host: usize) {
        assert!(eventually(|| self.client(host).status().is_ok()), "host {host} does not start");
    }

    pub(crate) fn client(&self, host: usize) -> Client {
        Client::new(&self.folder(host), DEVICE)
    }

    /// The status that `ropewalk show rw0 --json` prints on a host.
    pub(crate) fn status(&self, host: usize) -> TunnelStatus {
        let output = self.command(host).args(["show", DEVICE, "--json"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The status of one path on a host.
    pub(crate) fn path(&self, host: usize, link: usize) -> PathStatus {
        self.status(host).peers[0].paths[link].clone()
    }

    /// Number of packets that a host dropped for a reason.
    pub(crate) fn drops(&self, host: usize, reason: &str) -> u64 {
        let drops = self.status(host).drops;
        drops.iter().find(|drop| drop.reason == reason).unwrap_or_else(|| panic!("{reason}: {drops:?}")).packets
    }
}

impl Drop for TunnelPair {
    fn drop(&mut self) {
        for host in [LEFT, RIGHT] {
            let Some(mut daemon) = self.daemons[host].take() else { continue };
            let requested = self.client(host).request("POST", "/v1/down", "").is_ok();
            let has_ended = || daemon.try_wait().is_ok_and(|ended| ended.is_some());
            if !requested || !eventually(has_ended) {
                let _ = daemon.kill().and_then(|()| daemon.wait());
            }
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Resident memory of a process, bytes.
pub(crate) fn memory(pid: u32) -> u64 {
    let text = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status")).unwrap();
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

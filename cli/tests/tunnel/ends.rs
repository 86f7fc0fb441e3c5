//! Two hosts and the daemon on both, gone with the value, also when a test panics.

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
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use testing::{Reason, eventually, skip};

/// The tunnel's device on both hosts.
pub(crate) const DEVICE: &str = "rw0";
/// Where both daemons listen: the right one always, the left one so that it is found again.
pub(crate) const PORT: u16 = 4754;

/// One at a time: each needs the CPU for its links.
static TURN: Mutex<()> = Mutex::new(());
static FOLDERS: AtomicU32 = AtomicU32::new(0);

/// The program under test; `ROPEWALK_TEST_PROGRAM` names another build of it.
pub(crate) fn program() -> String {
    std::env::var("ROPEWALK_TEST_PROGRAM").unwrap_or_else(|_| env!("CARGO_BIN_EXE_ropewalk").into())
}

/// Which of the two inner families, or of the two outer ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

/// What the two ends speak.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) outer: Family,
    pub(crate) inner: Family,
}

/// IPv4 over IPv4.
pub(crate) const USUAL: Plan = Plan { outer: Family::V4, inner: Family::V4 };

impl Plan {
    /// A host's address inside the tunnel.
    pub(crate) fn inside(self, host: usize) -> IpAddr {
        match self.inner {
            Family::V4 => IpAddr::from([10, 77, 0, host as u8 + 1]),
            Family::V6 => IpAddr::from([0xfd77, 0, 0, 0, 0, 0, 0, host as u16 + 1]),
        }
    }

    fn outside(self, testbed: &Testbed, link: usize, host: usize) -> IpAddr {
        match self.outer {
            Family::V4 => testbed.v4(link, host).into(),
            Family::V6 => testbed.v6(link, host).into(),
        }
    }

    /// Of a single inner host, and of the inner network.
    fn prefixes(self) -> [u8; 2] {
        if self.inner == Family::V4 { [32, 24] } else { [128, 64] }
    }
}

/// Both hosts, what lies between them, and their daemons.
pub(crate) struct Ends {
    // Fields are dropped in this order.
    daemons: [Option<Child>; 2],
    pub(crate) testbed: Testbed,
    pub(crate) plan: Plan,
    links: usize,
    folder: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

impl Ends {
    /// Both ends up, with all paths. `None`, and the test is skipped, where there can be no testbed.
    pub(crate) fn up(plan: Plan, links: &[&str]) -> Option<Self> {
        let mut ends = Self::prepared(plan, links)?;
        [RIGHT, LEFT].into_iter().for_each(|host| ends.start(host));
        [RIGHT, LEFT].into_iter().for_each(|host| ends.wait_until_up(host));
        Some(ends)
    }

    /// As [`Ends::up`], but nothing is started yet.
    pub(crate) fn prepared(plan: Plan, links: &[&str]) -> Option<Self> {
        testbed::possible().map_err(|why| skip(Reason::Missing, &why)).ok()?;
        // Who panicked has cleaned up all the same.
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let testbed = Testbed::pair(&[&program(), "lab-agent"], links).unwrap();
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        // A short name: the path of a unix socket has 107 bytes at most.
        let folder = std::env::temp_dir().join(format!("rw-{}-{number}", std::process::id()));
        let ends = Self { daemons: [None, None], testbed, plan, links: links.len(), folder, _turn: turn };
        let private = [keys::genkey(), keys::genkey()];
        [LEFT, RIGHT].into_iter().for_each(|host| ends.configure(host, &private));
        Some(ends)
    }

    /// The left host calls on every link; the right one is a server, which learns from it where that is.
    fn configure(&self, host: usize, private: &[String; 2]) {
        let (other, plan) = (1 - host, self.plan);
        let ([single, network], [own, peer]) = (plan.prefixes(), [host, other].map(|host| plan.inside(host)));
        let public = keys::pubkey(&private[other]).unwrap();
        let mut text = format!("[interface]\naddress = \"{own}/{network}\"\nprivate-key = \"{}\"\n", private[host]);
        write!(text, "\n[[peer]]\npublic-key = \"{public}\"\nallowed-ips = \"{peer}/{single}\"\n").unwrap();
        for link in (0..self.links).filter(|_| host == LEFT) {
            let [source, remote] = [host, other].map(|host| plan.outside(&self.testbed, link, host));
            let device = self.testbed.device(link);
            write!(text, "\n[[path]]\nname = \"{device}\"\ninterface = \"{device}\"\nsource = \"{source}\"\n").unwrap();
            write!(text, "endpoint = \"{remote}\"\nlisten-port = {PORT}\n").unwrap();
        }
        fs::create_dir_all(self.folder(host)).unwrap();
        let file = fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(self.file(host));
        file.unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Where a host's daemon keeps its socket and its state.
    pub(crate) fn folder(&self, host: usize) -> PathBuf {
        self.folder.join(host.to_string())
    }

    fn file(&self, host: usize) -> PathBuf {
        self.folder(host).join(format!("{DEVICE}.toml"))
    }

    /// Changes a host's configuration; the daemon is not told.
    pub(crate) fn edit(&self, host: usize, change: impl FnOnce(String) -> String) {
        let text = fs::read_to_string(self.file(host)).unwrap();
        fs::write(self.file(host), change(text)).unwrap();
    }

    /// `ropewalk reload rw0`: what it says, or what it complains of.
    pub(crate) fn reload(&self, host: usize) -> Result<String, String> {
        let output = self.command(host).args(["reload", DEVICE]).output().unwrap();
        let [said, wrong] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        if output.status.success() { Ok(said) } else { Err(wrong) }
    }

    /// The program on a host.
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

    /// The daemon is gone at once, without a word.
    pub(crate) fn kill(&mut self, host: usize) {
        let mut daemon = self.daemons[host].take().expect("it was started");
        daemon.kill().unwrap();
        daemon.wait().unwrap();
    }

    /// The daemon's process.
    pub(crate) fn pid(&self, host: usize) -> u32 {
        self.daemons[host].as_ref().expect("it was started").id()
    }

    /// Until all paths of a host work.
    pub(crate) fn wait_until_up(&self, host: usize) {
        let all = |status: &TunnelStatus| {
            status.paths().filter(|(_, path)| path.state == PathState::Up).count() == self.links
        };
        let up = || self.client(host).status().is_ok_and(|status| all(&status));
        assert!(eventually(up), "host {host} does not come up: {:#?}", self.client(host).status());
    }

    fn client(&self, host: usize) -> Client {
        Client::new(&self.folder(host), DEVICE)
    }

    /// What `ropewalk show rw0 --json` prints on a host.
    pub(crate) fn status(&self, host: usize) -> TunnelStatus {
        let output = self.command(host).args(["show", DEVICE, "--json"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// One path, as a host tells of it.
    pub(crate) fn path(&self, host: usize, link: usize) -> PathStatus {
        self.status(host).peers[0].paths[link].clone()
    }

    /// How many packets a host dropped for a reason.
    pub(crate) fn drops(&self, host: usize, reason: &str) -> u64 {
        let drops = self.status(host).drops;
        drops.iter().find(|drop| drop.reason == reason).unwrap_or_else(|| panic!("{reason}: {drops:?}")).packets
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        for host in [LEFT, RIGHT] {
            let Some(mut daemon) = self.daemons[host].take() else { continue };
            let asked = self.client(host).request("POST", "/v1/down", "").is_ok();
            let ended = || daemon.try_wait().is_ok_and(|ended| ended.is_some());
            if !asked || !eventually(ended) {
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

//! Root file systems of Debian, made by debootstrap.

use crate::machine;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use testing::{Reason, skip};

/// A suite of Debian: its code name, and what a root of it has besides the required packages.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Suite {
    name: &'static str,
    /// Installed packages. The services among them are off until a test turns one on.
    packages: &'static [&'static str],
    /// Packages in `/srv/packages`, which conflict with an installed one.
    alternatives: &'static str,
}

/// Debian 12, with what manages networks, firewalls and resolvers.
pub(crate) const BOOKWORM: Suite = Suite {
    name: "bookworm",
    packages: &[BASE, "systemd-resolved,ufw,firewalld,network-manager"],
    alternatives: "openresolv resolvconf",
};
/// Debian 13.
pub(crate) const TRIXIE: Suite = Suite { name: "trixie", packages: &[BASE], alternatives: "" };
/// What every root has.
const BASE: &str = "systemd-sysv,libpam-systemd,dbus,iproute2,iputils-ping,nftables,procps";

/// Fetches packages into a root without installing them.
const FETCH: &str = "set -e
rm -f $1/etc/resolv.conf
cp /etc/resolv.conf $1/etc/
mkdir -p $1/srv/packages
chroot $1 sh -c \"apt-get update -qq && cd /srv/packages && apt-get download -qq $2\"
";

/// Turns everything off that would change a machine or its network without being asked, and the network on.
const SCRIPT: &str = "set -e
for unit in firewalld ufw nftables NetworkManager systemd-resolved; do
    systemctl --root=$1 --quiet disable $unit 2> /dev/null || true
done
systemctl --root=$1 --quiet mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
    fstrim.timer systemd-timesyncd.service logrotate.timer
systemctl --root=$1 --quiet enable systemd-networkd
rm -rf $1/var/cache/apt/archives/*.deb $1/var/lib/apt/lists/* $1/usr/share/locale/* $1/usr/share/man/*
rm -f $1/etc/resolv.conf
touch $1/etc/resolv.conf
: > $1/etc/machine-id
";

/// Mounts what a machine needs.
const PROBE: &str = "set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /run
mkdir /run/upper /run/work /run/merged
mount -t overlay overlay -o lowerdir=/etc,upperdir=/run/upper,workdir=/run/work /run/merged
mount -t cgroup2 cgroup2 /run/merged";

/// Programs that these tests need, and the packages that have them.
const PROGRAMS: &[(&str, &str)] = &[
    ("debootstrap", "debootstrap"),
    ("systemd-nspawn", "systemd-container"),
    ("dnsmasq", "dnsmasq-base"),
    ("nft", "nftables"),
    ("dpkg-deb", "dpkg"),
];

/// The root of a suite, which is made if it is not there; none, and the test is skipped, where that cannot be.
pub(crate) fn root(suite: Suite) -> Option<PathBuf> {
    lab::testbed::possible().map_err(|reason| skip(Reason::Missing, &reason)).ok()?;
    for (program, package) in PROGRAMS {
        if !is_there(program) {
            skip(Reason::Missing, &format!("{program}: apt-get install {package}"));
            return None;
        }
    }
    if let Err(error) = run(Command::new("unshare").args(["--mount", "sh", "-c", PROBE])) {
        skip(Reason::Kernel, &error);
        return None;
    }
    let folder = folder();
    fs::create_dir_all(&folder).unwrap();
    remove_abandoned_machines();
    // Tests run at once, and so may test binaries.
    let _lock = lock();
    let root = folder.join(format!("{}-{:x}", suite.name, digest(suite)));
    if !root.is_dir() {
        sweep(&folder, suite.name);
        make(suite, &root).map_err(|error| skip(Reason::Missing, &error)).ok()?;
    }
    Some(root)
}

/// Removes the files of machines whose test was killed.
fn remove_abandoned_machines() {
    for entry in fs::read_dir(std::env::temp_dir()).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(machine::PREFIX).and_then(|rest| rest.split('-').next());
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A lock on the folder of the roots, until it is dropped.
pub(crate) fn lock() -> File {
    let lock = File::create(folder().join("lock")).unwrap();
    lock.lock().unwrap();
    lock
}

/// The folder of the roots.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("boot")
}

fn digest(suite: Suite) -> u64 {
    let mut hasher = DefaultHasher::new();
    (suite, FETCH, SCRIPT).hash(&mut hasher);
    hasher.finish()
}

/// Removes roots of an earlier list of packages.
fn sweep(folder: &Path, suite: &str) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&format!("{suite}-")) {
            fs::remove_dir_all(entry.path()).unwrap();
        }
    }
}

/// Makes a root in a folder that is renamed at the end. An error says that the packages cannot be fetched.
fn make(suite: Suite, root: &Path) -> Result<(), String> {
    let Suite { name, packages, alternatives } = suite;
    let new = root.with_extension("new");
    let packages = format!("--include={}", packages.join(","));
    // What it mounts for the packages' scripts is gone with the namespace.
    let debootstrap = ["--mount", "debootstrap", "--variant=minbase", &packages, name];
    let result = run(Command::new("unshare").args(debootstrap).arg(&new).env("DPKG_FORCE", "unsafe-io"));
    if let Err(error) = result {
        let is_unpacked = new.join("debootstrap/debootstrap.log").exists() && error.contains("configuring");
        assert!(!is_unpacked, "{error}");
        return Err(error);
    }
    if !alternatives.is_empty() {
        run(Command::new("sh").args(["-c", FETCH, "sh"]).arg(&new).arg(alternatives))?;
    }
    run(Command::new("sh").args(["-c", SCRIPT, "sh"]).arg(&new)).unwrap();
    fs::rename(&new, root).map_err(|error| error.to_string())
}

fn run(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    let lines: Vec<_> = stdout.lines().chain(stderr.lines()).collect();
    if output.status.success() {
        return Ok(lines.join("\n"));
    }
    Err(format!("{command:?}: {}", lines[lines.len().saturating_sub(3)..].join("; ")))
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.into_iter().any(|folder| folder.join(program).is_file())
}

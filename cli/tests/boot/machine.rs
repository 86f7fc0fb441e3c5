//! A machine: systemd as PID 1 in a container of systemd-nspawn, with a file system that is a layer over a shared root.
//!
//! Nothing of the host changes. The container is started in namespaces of its own for mounts, processes and the network,
//! with a mount of cgroup2 of its own, so that the host needs neither systemd nor cgroup2. It ends with its owner: at the
//! end of its standard input.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use testing::eventually;

/// How the names of machines begin; the test's process and the machine's own name follow.
pub(crate) const PREFIX: &str = "rw-boot-";

/// Starts a container in new namespaces: name, root, folder of the layer. It says `ready` when devices can be moved in,
/// boots after a line of input, and is killed at the end of the input.
const SCRIPT: &str = "set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/nspawn $3/upper $3/work $3/merged
umount --lazy --recursive /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t overlay overlay -o lowerdir=$2,upperdir=$3/upper,workdir=$3/work $3/merged
echo ready
read line
exec 3<&0
{ cat <&3 > /dev/null; kill -KILL -1; } > /dev/null 2>&1 &
group=/sys/fs/cgroup/$1
mkdir -p $group
echo $$ > $group/cgroup.procs
SYSTEMD_NSPAWN_API_VFS_WRITABLE=network SYSTEMD_SECCOMP=0 systemd-nspawn --quiet --keep-unit --register=no --boot \
    --machine=$1 --directory=$3/merged --network-namespace-path=/proc/self/ns/net --capability=all --bind=/dev/net/tun \
    --resolv-conf=off --timezone=off --link-journal=no --console=pipe < /dev/null >> $3/console 2>&1 3<&- || true
echo $$ > /sys/fs/cgroup/cgroup.procs
for try in $(seq 100); do
    find $group -depth -type d -exec rmdir {} + 2> /dev/null && break
    sleep 0.1
done
";

/// A machine, which runs or is off.
pub(crate) struct Machine {
    name: String,
    root: PathBuf,
    folder: PathBuf,
    running: Option<Running>,
}

/// The processes of a machine that runs.
struct Running {
    container: Child,
    /// Its end stops the machine.
    _stdin: ChildStdin,
    /// The machine's PID 1, as the host counts.
    init: u32,
}

impl Machine {
    /// A machine that is off, with a file system as that of `root`.
    pub(crate) fn new(name: &str, root: &Path) -> Self {
        let name = format!("{PREFIX}{}-{name}", std::process::id());
        // Not below `target`, which may be a layer itself: the upper one of two must not.
        let folder = std::env::temp_dir().join(&name);
        fs::create_dir_all(folder.join("upper")).unwrap();
        let machine = Self { name, root: root.to_owned(), folder, running: None };
        machine.write("/etc/hostname", "machine\n");
        machine.write("/etc/hosts", "127.0.0.1 localhost machine\n");
        // Nothing here survives the host's power.
        machine.write("/etc/dpkg/dpkg.cfg.d/no-sync", "force-unsafe-io\n");
        // It looks for logical volumes, which are the host's.
        let units = machine.folder.join("upper/etc/systemd/system");
        fs::create_dir_all(&units).unwrap();
        symlink("/dev/null", units.join("e2scrub_reap.service")).unwrap();
        machine
    }

    /// Writes a file of a machine that is off.
    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        assert!(self.running.is_none(), "{path}: the machine runs");
        let path = self.folder.join("upper").join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Boots. `connect` is given a process in whose network namespace devices are to be put.
    pub(crate) fn boot(&mut self, connect: impl FnOnce(u32)) {
        let options = ["--mount", "--net", "--pid", "--fork", "--mount-proc", "sh", "-c", SCRIPT, "sh", &self.name];
        let mut command = Command::new("unshare");
        command.args(options).args([&self.root, &self.folder]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut container = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(container.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "the container of {}", self.name);
        connect(container.id());
        let mut stdin = container.stdin.take().unwrap();
        stdin.write_all(b"boot\n").unwrap();
        let mut init = None;
        assert!(eventually(|| {
            init = find_init(container.id());
            init.is_some()
        }));
        self.running = Some(Running { container, _stdin: stdin, init: init.unwrap() });
        // `degraded`: a unit failed, such as one for a disk.
        let is_up = || matches!(self.output("systemctl is-system-running").0.trim(), "running" | "degraded");
        // A boot takes seconds, and minutes on a machine that does much else.
        assert!((0..4).any(|_| eventually(is_up)), "{}\n{}", self.console(), self.output("systemctl list-jobs").0);
    }

    /// Shuts down, as `poweroff` does.
    pub(crate) fn shut_down(&mut self) {
        self.output("systemctl poweroff");
        let mut running = self.running.take().expect("it runs");
        assert!(eventually(|| running.container.try_wait().unwrap().is_some()), "{}", self.console());
    }

    /// A command that runs a line of a shell in the machine.
    pub(crate) fn command(&self, line: &str) -> Command {
        let init = self.running.as_ref().expect("the machine runs").init.to_string();
        let mut command = Command::new("nsenter");
        command.args(["--target", &init, "--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wd"]);
        command.args(["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8"]);
        command.args(["DEBIAN_FRONTEND=noninteractive", "bash", "-c", line]).stdin(Stdio::null());
        command
    }

    /// What a line of a shell prints on both streams, and whether it succeeds.
    pub(crate) fn output(&self, line: &str) -> (String, bool) {
        let Output { status, stdout, stderr } = self.command(line).output().unwrap();
        (format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr)), status.success())
    }

    /// As [`output`](Self::output), of a line that succeeds.
    #[track_caller]
    pub(crate) fn run(&self, line: &str) -> String {
        let (text, succeeds) = self.output(line);
        assert!(succeeds, "{}: {line}: {text}\n{}", self.name, self.journal());
        text
    }

    /// Whether a line of a shell succeeds.
    pub(crate) fn succeeds(&self, line: &str) -> bool {
        self.output(line).1
    }

    /// The end of the journal of the tunnel.
    fn journal(&self) -> String {
        self.output("journalctl --no-pager --lines 30 --unit 'ropewalk*@*'").0
    }

    fn console(&self) -> String {
        fs::read_to_string(self.folder.join("console")).unwrap_or_default()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(Running { mut container, _stdin, .. }) = self.running.take() {
            drop(_stdin);
            let _ = container.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The process below `pid` that has become systemd.
fn find_init(pid: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    children.split_whitespace().filter_map(|child| child.parse().ok()).find_map(|child: u32| {
        let name = fs::read_to_string(format!("/proc/{child}/comm")).unwrap_or_default();
        if name == "systemd\n" { Some(child) } else { find_init(child) }
    })
}

//! The Debian package, installed and removed by dpkg in a file system that is thrown away.

use crate::support::{folder, is_there, last_line, run, static_program, version};
use std::path::Path;
use std::process::Command;
use testing::{Reason, skip};

/// Mounts a writable layer over this system's files, and installs and removes the package in it. The layer is in
/// memory.
const SCRIPT: &str = "set -e
mount -t tmpfs none $1
mkdir $1/upper $1/work $1/new
mount -t overlay overlay -o lowerdir=/,upperdir=$1/upper,workdir=$1/work $1/new
cp $2 $1/new/tmp/ropewalk.deb
mount --bind /dev $1/new/dev
mount -t proc none $1/new/proc
chroot $1/new sh -e -c '
    dpkg --force-depends --install /tmp/ropewalk.deb
    ropewalk --version
    test -s /usr/share/man/man1/ropewalk-up.1
    bash -c \". /usr/share/bash-completion/completions/ropewalk; complete -p ropewalk\"
    stat --format \"%A %U:%G\" /etc/ropewalk
    dpkg --remove ropewalk
    ! test -e /usr/bin/ropewalk
    dpkg --purge ropewalk
'";

#[test]
fn dpkg_installs_and_removes_it() {
    if !is_there("dpkg-deb") {
        return;
    }
    if !is_root() || !Path::new("/usr/bin/systemd-sysusers").exists() {
        return skip(Reason::Missing, "root, and systemd-sysusers: apt-get install systemd-standalone-sysusers");
    }
    let Some(program) = static_program() else { return };
    let [folder, packed] = ["deb", "deb-packed"].map(folder);
    let [packed, program] = [packed.as_path(), program].map(|path| path.to_str().unwrap());
    // Compressing takes longer than all the rest.
    let chore = ["DPKG_DEB_COMPRESSOR_TYPE=none", env!("CARGO_BIN_EXE_xtask"), "deb", "--out", packed];
    let printed = run("env", &[&chore[..], &["--program", program]].concat());
    let package = last_line(&printed);
    let script = ["--mount", "sh", "-c", SCRIPT, "sh", folder.to_str().unwrap(), package.to_str().unwrap()];
    let output = run("unshare", &script);
    for line in [&*format!("ropewalk {}", version()), "drwxr-x--- root:ropewalk"] {
        assert!(output.lines().any(|printed| printed == line), "{line} in {output}");
    }
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

//! What is published: a repository for apt and its install script, with a key that is thrown away.

use crate::debian::{self, BOOKWORM};
use crate::machine::Machine;
use crate::package;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use testing::{Reason, skip};

/// A folder of GnuPG with one key, and what was signed with it.
struct Published {
    home: PathBuf,
    /// The folder to be published.
    folder: PathBuf,
}

impl Published {
    /// Publishes the package, as from an address.
    fn new(name: &str, url: &str) -> Self {
        // The name of the agent's socket is short: at most 107 bytes.
        let home = std::env::temp_dir().join(format!("rw-gpg-{}-{name}", std::process::id()));
        fs::create_dir_all(&home).unwrap();
        let gpg = |arguments: &[&str]| {
            let mut command = Command::new("gpg");
            command.env("GNUPGHOME", &home).args([
                "--batch",
                "--quiet",
                "--passphrase",
                "",
                "--pinentry-mode",
                "loopback",
            ]);
            let output = command.args(arguments).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        gpg(&["--quick-generate-key", "Test <test@example.org>", "ed25519", "sign", "never"]);
        let keys = gpg(&["--with-colons", "--list-keys"]);
        let key = keys.lines().find_map(|line| line.strip_prefix("fpr:::::::::")).unwrap().trim_end_matches(':');
        let printed =
            package::chore(&["release", "--key", key, "--url", url, package::current().to_str().unwrap()], &home);
        let folder = debian::folder().join(format!("publish-{name}"));
        let _ = fs::remove_dir_all(&folder);
        fs::rename(printed.lines().next_back().unwrap(), &folder).unwrap();
        Self { home, folder }
    }

    /// Writes the folder into a machine.
    fn copy(&self, machine: &Machine, to: &str) {
        copy(&self.folder, Path::new(to), machine);
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        let _ = Command::new("gpgconf").env("GNUPGHOME", &self.home).args(["--kill", "gpg-agent"]).status();
        let _ = fs::remove_dir_all(&self.home);
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn copy(from: &Path, to: &Path, machine: &Machine) {
    for entry in fs::read_dir(from).unwrap().flatten() {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to, machine);
        } else {
            machine.write(to.to_str().unwrap(), fs::read(entry.path()).unwrap());
        }
    }
}

#[test]
fn apt_installs_what_is_published_and_nothing_that_another_key_has_signed() {
    if Command::new("gpg").arg("--version").output().is_err() {
        return skip(Reason::Missing, "gpg: apt-get install gpg gpg-agent");
    }
    let Some(root) = debian::root(BOOKWORM) else { return };
    let mut machine = Machine::new("apt", &root);
    Published::new("a", "file:///srv/a").copy(&machine, "/srv/a");
    Published::new("b", "file:///srv/b").copy(&machine, "/srv/b");
    machine.write("/etc/apt/sources.list", "");
    machine.boot(|_| ());

    // The repository of one key with the index of another.
    machine.run("cp -a /srv/a /srv/kept; cp /srv/b/apt/dists/stable/InRelease /srv/b/apt/dists/stable/Release.gpg /srv/a/apt/dists/stable/");
    let (printed, succeeds) = machine.output("sh /srv/a/install.sh");
    assert!(!succeeds && !machine.succeeds("command -v ropewalk"), "{printed}");
    machine.run("cp -a /srv/kept/. /srv/a");
    // A package that is not the one of the index.
    machine.run("echo >> $(ls /srv/a/apt/pool/main/r/ropewalk/*.deb)");
    let (printed, succeeds) = machine.output("sh /srv/a/install.sh");
    assert!(!succeeds && !machine.succeeds("command -v ropewalk"), "{printed}");
    machine.run("cp -a /srv/kept/. /srv/a");

    machine.run("sh /srv/a/install.sh");
    assert!(machine.run("ropewalk --version").starts_with("ropewalk "));
    assert!(machine.run("apt-cache policy ropewalk").contains("file:/srv/a/apt stable/main"));
    machine.run("cd /srv/a && sha256sum --check SHA256SUMS");
}

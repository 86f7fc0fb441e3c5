//! The package for OpenWrt: its parts agree, and its package manager installs it where that is to be had.

use crate::support::{artefact, folder, run};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn the_description_has_the_digest_of_the_files() {
    let Some(package) = artefact("openwrt") else { return };
    let bytes = fs::read(&package).unwrap();
    // The second gzip stream, with the files (RFC 1952, section 2.3.1: magic numbers, deflate).
    let start = (1..bytes.len()).find(|&at| bytes[at..].starts_with(&[0x1f, 0x8b, 8])).unwrap();
    let description = unpack(&bytes[..start], ".PKGINFO");
    let field = |name: &str| {
        let line = description.lines().find_map(|line| line.strip_prefix(&format!("{name} = ")));
        line.unwrap_or_else(|| panic!("{name} in {description}")).to_owned()
    };
    let data = folder("openwrt").join("data.tar.gz");
    fs::write(&data, &bytes[start..]).unwrap();
    let digest = run("sha256sum", &[data.to_str().unwrap()]);
    assert_eq!(digest.split(' ').next(), Some(&*field("datahash")));
    assert_eq!((field("pkgname"), field("arch")), ("ropewalk".into(), "x86_64".into()));
    assert_headers_have_names(&data);
    let list = run("tar", &["--list", "--file", data.to_str().unwrap()]);
    for file in [
        "usr/bin/ropewalk",
        "etc/config/ropewalk",
        "etc/init.d/ropewalk",
        "etc/uci-defaults/99-ropewalk",
        "lib/netifd/proto/ropewalk.sh",
        "lib/upgrade/keep.d/ropewalk",
        "www/luci-static/resources/protocol/ropewalk.js",
    ] {
        assert!(list.lines().any(|line| line == file), "{file} in {list}");
    }
}

/// To apk a header without a name is the end of the archive.
fn assert_headers_have_names(archive: &Path) {
    let output = Command::new("gzip").args(["--decompress", "--stdout"]).arg(archive).output().unwrap();
    let (mut at, bytes) = (0, output.stdout);
    // Blocks of 512 bytes: the name begins at 0, the size at 124, in octal digits (POSIX.1-1988, ustar).
    while bytes[at..at + 1024].iter().any(|byte| *byte != 0) {
        assert_ne!(bytes[at], 0, "the header at {at} has a name");
        let size = std::str::from_utf8(&bytes[at + 124..at + 135]).unwrap();
        at += 512 + usize::from_str_radix(size, 8).unwrap().next_multiple_of(512);
    }
}

/// A file of a compressed tar archive without its end.
fn unpack(archive: &[u8], file: &str) -> String {
    let mut tar = Command::new("tar");
    let tar = tar.args(["--extract", "--gzip", "--to-stdout", file]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = tar.stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(archive).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

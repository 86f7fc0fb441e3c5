//! `cargo xtask oci`: an image for container runtimes (OCI image specification 1.1), made without one and without a registry.
//!
//! One layer: the static program, `nft` for forwarding and address translation with the libraries that it needs, from
//! Debian's packages, and no certificates. The image is an archive that `docker load` and `podman load` read.

use super::archive::{self, File, Files};
use super::static_program::{Program, folder, write};
use crate::shell;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Debian's packages in the image: `nft` and what it links.
const PACKAGES: &[&str] = &[
    "nftables",
    "libbsd0",
    "libc6",
    "libedit2",
    "libgmp10",
    "libjansson4",
    "libmd0",
    "libmnl0",
    "libnftables1",
    "libnftnl11",
    "libtinfo6",
    "libxtables12",
];
/// Folders of these packages that the image has: programs, libraries, and copyright files.
const KEPT: &[&str] = &["lib", "lib64", "usr/lib", "usr/sbin", "usr/share/doc"];
/// Files of these folders that the image does not need.
const LEFT_OUT: &[&str] = &["/gconv/", "/audit/", "/xtables/", "changelog", "NEWS", "README", "examples/"];

/// Debian's and OCI's names of a processor, by the compiler's name.
const ARCHITECTURES: &[(&str, &str)] = &[("x86_64", "amd64"), ("aarch64", "arm64")];

/// Writes `ropewalk-VERSION-TARGET.oci.tar`.
pub(super) fn build(program: &Program) -> Result<PathBuf, String> {
    let architecture = ARCHITECTURES.iter().find(|(processor, _)| *processor == program.processor());
    let (_, architecture) =
        architecture.ok_or_else(|| format!("no image for {}: there are no Debian packages for it", program.target))?;
    let layer = archive::tar(&root(program, architecture)?, false)?;
    let image = image(&layer, architecture, &tag(&program.version))?;
    write(program.artefact(".oci.tar"), &archive::tar(&image, false)?)
}

/// The contents of the image's file system.
fn root(program: &Program, architecture: &str) -> Result<Files, String> {
    let mut files = debian_files(architecture)?;
    let text = |text: &str| File::Regular(0o644, text.as_bytes().to_vec());
    files.extend([
        ("usr/bin/ropewalk".to_owned(), File::Regular(0o755, archive::read(&program.file)?)),
        ("etc/passwd".to_owned(), text("root:x:0:0:root:/root:/bin/false\n")),
        ("etc/group".to_owned(), text("root:x:0:\n")),
        ("etc/ropewalk".to_owned(), File::Folder(0o700)),
        ("run".to_owned(), File::Folder(0o755)),
        ("tmp".to_owned(), File::Folder(0o1777)),
        ("var/lib/ropewalk".to_owned(), File::Folder(0o700)),
    ]);
    Ok(files)
}

/// The files of Debian's packages, fetched with `apt-get download`.
fn debian_files(architecture: &str) -> Result<Files, String> {
    let folder = folder().join(format!("debian-{architecture}"));
    let (packages, root) = (folder.join("packages"), folder.join("root"));
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    if !fs::exists(&root).map_err(failed)? {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&packages).map_err(failed)?;
        let names = PACKAGES.iter().map(|name| format!("{name}:{architecture}")).collect::<Vec<_>>().join(" ");
        shell::run_in(&packages, &format!("apt-get download --quiet {names}"))?;
        let unpacked = folder.join("unpacked");
        for package in fs::read_dir(&packages).map_err(failed)? {
            shell::run(&format!(
                "dpkg-deb --extract {} {}",
                package.map_err(failed)?.path().display(),
                unpacked.display()
            ))?;
        }
        fs::rename(&unpacked, &root).map_err(failed)?;
    }
    let mut files = Files::new();
    for kept in KEPT {
        collect(&root, &root.join(kept), &mut files).map_err(failed)?;
    }
    files.retain(|path, _| !LEFT_OUT.iter().any(|part| path.contains(part)));
    Ok(files)
}

/// Adds the files below `folder`, if it exists, by their paths from `root`.
fn collect(root: &Path, folder: &Path, files: &mut Files) -> std::io::Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let metadata = fs::symlink_metadata(&path)?;
        if metadata.is_symlink() {
            files.insert(name, File::Link(fs::read_link(&path)?.display().to_string()));
        } else if metadata.is_dir() {
            collect(root, &path, files)?;
        } else {
            files.insert(name, File::Regular(metadata.permissions().mode() & 0o7777, fs::read(&path)?));
        }
    }
    Ok(())
}

/// A version in the characters of a tag (OCI distribution specification, "Pulling manifests").
fn tag(version: &str) -> String {
    version.replace(['~', '+'], "-")
}

/// The files of an image with one layer.
fn image(layer: &[u8], architecture: &str, version: &str) -> Result<Files, String> {
    let compressed = archive::gzip(layer)?;
    let config = json!({
        "architecture": architecture,
        "os": "linux",
        "config": {
            "Entrypoint": ["/usr/bin/ropewalk"],
            "Cmd": ["up", "/etc/ropewalk/rw0.toml"],
            "Env": ["PATH=/usr/sbin:/usr/bin"],
            "ExposedPorts": {"4754/udp": {}},
            "Volumes": {"/etc/ropewalk": {}, "/var/lib/ropewalk": {}},
            "Labels": {"org.opencontainers.image.version": version, "org.opencontainers.image.licenses": "MIT OR Apache-2.0"},
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", archive::sha256(layer))]},
        "history": [{"created_by": "cargo xtask oci"}],
    });
    let mut files = Files::new();
    let layer = blob(&mut files, compressed, "application/vnd.oci.image.layer.v1.tar+gzip");
    let config = blob(&mut files, config.to_string().into_bytes(), "application/vnd.oci.image.config.v1+json");
    let manifest_type = "application/vnd.oci.image.manifest.v1+json";
    let manifest = json!({"schemaVersion": 2, "mediaType": manifest_type, "config": config, "layers": [layer]});
    let mut manifest = blob(&mut files, manifest.to_string().into_bytes(), manifest_type);
    manifest["platform"] = json!({"architecture": architecture, "os": "linux"});
    manifest["annotations"] = json!({
        "org.opencontainers.image.ref.name": version,
        "io.containerd.image.name": format!("localhost/ropewalk:{version}"),
    });
    let index =
        json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [manifest]});
    let text = |value: &Value| File::Regular(0o644, value.to_string().into_bytes());
    files.insert("index.json".to_owned(), text(&index));
    files.insert("oci-layout".to_owned(), text(&json!({"imageLayoutVersion": "1.0.0"})));
    Ok(files)
}

/// Adds a blob by its digest, and returns its descriptor.
fn blob(files: &mut Files, content: Vec<u8>, media_type: &str) -> Value {
    let (digest, size) = (archive::sha256(&content), content.len());
    files.insert(format!("blobs/sha256/{digest}"), File::Regular(0o644, content));
    json!({"mediaType": media_type, "digest": format!("sha256:{digest}"), "size": size})
}

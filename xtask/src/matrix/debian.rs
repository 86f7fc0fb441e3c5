//! Debian's kernels: fetched by apt with a source list of their own, so that the machine's is not touched, and unpacked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A kernel to boot.
#[derive(Debug)]
pub(super) struct Kernel {
    /// The name of its files: that of the package or of the image.
    pub(super) name: String,
    /// The compressed image.
    pub(super) image: PathBuf,
    /// Folder with its modules somewhere below; none for an image without a package.
    pub(super) modules: Option<PathBuf>,
}

/// Debian 12 has Linux 6.1, Debian 13 has 6.12, and unstable has a recent stable kernel.
pub(super) const SUITES: [&str; 3] = ["bookworm", "trixie", "sid"];

/// The small kernels, without drivers of hardware; the package depends on the current version.
const PACKAGE: &str = "linux-image-cloud-amd64";

/// Beginnings of the names of the packages with a kernel's files: newer ones have image and modules apart.
const PARTS: [&str; 3] = ["linux-image-", "linux-binary-", "linux-modules-"];

/// The kernel of a release, which is downloaded once; after `cargo clean`, or if its folder is removed, it is downloaded
/// again.
pub(super) fn fetch(suite: &str, folder: &Path) -> Result<Kernel, String> {
    let folder = folder.join(suite);
    let package = |part: &str| find(&folder, &|name| name.starts_with(part) && name.ends_with(".deb"));
    if package(PARTS[0]).is_none() {
        download(suite, &folder)?;
    }
    let image = package(PARTS[0]).ok_or_else(|| format!("{suite}: apt downloaded no kernel"))?;
    let files = folder.join("files");
    for package in PARTS.into_iter().filter_map(package) {
        extract(&package, &files)?;
    }
    unpacked(image.file_stem().unwrap_or_default().to_string_lossy().into_owned(), &files)
}

fn download(suite: &str, folder: &Path) -> Result<(), String> {
    let io_error = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(folder.join("lists/partial")).map_err(io_error)?;
    fs::create_dir_all(folder.join("cache/archives/partial")).map_err(io_error)?;
    let keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
    let source = format!("deb [arch=amd64 signed-by={keyring}] http://deb.debian.org/debian {suite} main\n");
    fs::write(folder.join("sources.list"), source).map_err(io_error)?;
    apt("apt-get", folder, &["--quiet", "update"])?;
    let version = parts(folder, PACKAGE)?;
    let version = version.first().ok_or_else(|| format!("{suite}: {PACKAGE} depends on no kernel"))?;
    let mut words = vec!["--quiet", "download", version];
    let rest = parts(folder, version)?;
    words.extend(rest.iter().map(String::as_str));
    apt("apt-get", folder, &words).map(drop)
}

/// The packages with a kernel's files that a package depends on.
fn parts(folder: &Path, package: &str) -> Result<Vec<String>, String> {
    let dependencies = apt("apt-cache", folder, &["depends", package])?;
    let names = dependencies.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    Ok(names.filter(|name| PARTS.iter().any(|part| name.starts_with(part))).map(str::to_owned).collect())
}

/// Runs a program of apt with all its folders in `folder`.
fn apt(program: &str, folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let settings = [
        ("Dir::Etc::sourcelist", folder.join("sources.list").display().to_string()),
        ("Dir::Etc::sourceparts", "-".to_owned()),
        ("Dir::State::lists", folder.join("lists").display().to_string()),
        ("Dir::Cache", folder.join("cache").display().to_string()),
        ("APT::Architecture", "amd64".to_owned()),
        ("APT::Sandbox::User", "root".to_owned()), // the folder may belong to root
    ];
    let mut command = Command::new(program);
    for (key, value) in settings {
        command.arg("-o").arg(format!("{key}={value}"));
    }
    output(command.args(arguments).current_dir(folder))
}

/// A Debian package, unpacked below `folder`; a folder with unpacked ones; or an image as it is.
pub(super) fn unpack(file: &Path, folder: &Path) -> Result<Kernel, String> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let package = name.strip_suffix(".deb");
    match package {
        _ if file.is_dir() => unpacked(name, file),
        _ if !file.is_file() => Err(format!(
            "{}: no such file; a kernel is a Debian package (.deb), a folder with unpacked ones, or an image",
            file.display()
        )),
        None => Ok(Kernel { name, image: file.to_owned(), modules: None }),
        Some(package) => {
            let files = folder.join(package);
            if !files.exists() {
                extract(file, &files)?;
            }
            unpacked(package.to_owned(), &files)
        }
    }
}

fn extract(package: &Path, folder: &Path) -> Result<(), String> {
    output(Command::new("dpkg-deb").arg("--extract").arg(package).arg(folder)).map(drop)
}

fn unpacked(name: String, files: &Path) -> Result<Kernel, String> {
    let image = find(files, &|name| name.starts_with("vmlinuz"));
    let image = image.ok_or_else(|| format!("{}: there is no kernel in it", files.display()))?;
    Ok(Kernel { name, image, modules: Some(files.to_owned()) })
}

/// The first file with such a name, somewhere below a folder.
pub(super) fn find(folder: &Path, is_wanted: &dyn Fn(&str) -> bool) -> Option<PathBuf> {
    let entries: Vec<_> = fs::read_dir(folder).ok()?.filter_map(Result::ok).collect();
    entries.iter().find_map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => find(&entry.path(), is_wanted),
        _ => Some(entry.path()).filter(|_| is_wanted(&entry.file_name().to_string_lossy())),
    })
}

/// Runs a command and returns its standard output, of bytes that need not be text.
pub(super) fn raw_output(command: &mut Command) -> Result<Vec<u8>, String> {
    let output = command.output().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(output.stdout)
}

fn output(command: &mut Command) -> Result<String, String> {
    raw_output(command).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

//! Archives whose bytes depend only on their files: entries are sorted, with the same time and owner.

use flate2::{Compression, GzBuilder};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;

/// The two empty blocks at the end of a tar archive, bytes.
const END: usize = 1024;

/// A file of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum File {
    /// A regular file: its mode and its content.
    Regular(u32, Vec<u8>),
    /// A symbolic link to this path.
    Link(String),
    /// A folder, which may be empty, with its mode.
    Folder(u32),
}

/// The files by their paths, relative to the root, without a leading slash.
pub(crate) type Files = BTreeMap<String, File>;

/// Reads a file of this machine.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// A tar archive (ustar, POSIX.1-1988). `checksums` adds to each regular file its SHA-1 in a PAX header, which apk requires.
pub(crate) fn tar(files: &Files, checksums: bool) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("tar: {error}");
    let mut builder = tar::Builder::new(Vec::new());
    for (path, file) in with_folders(files) {
        let mut header = tar::Header::new_ustar();
        header.set_mtime(0);
        let (kind, mode, content): (_, _, &[u8]) = match &file {
            File::Regular(mode, content) => (tar::EntryType::Regular, *mode, content),
            File::Link(_) => (tar::EntryType::Symlink, 0o777, &[]),
            File::Folder(mode) => (tar::EntryType::Directory, *mode, &[]),
        };
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(content.len() as u64);
        if checksums && kind == tar::EntryType::Regular {
            let record = pax_record("APK-TOOLS.checksum.SHA1", &hex(&Sha1::digest(content)));
            let mut header = header.clone();
            header.set_entry_type(tar::EntryType::XHeader);
            header.set_size(record.len() as u64);
            // `append_pax_extensions` writes no name. apk takes a header without a name as the end of the archive.
            builder.append_data(&mut header, "PaxHeader", record.as_bytes()).map_err(failed)?;
        }
        match &file {
            File::Link(target) => builder.append_link(&mut header, &path, target),
            _ => builder.append_data(&mut header, &path, content),
        }
        .map_err(failed)?;
    }
    builder.into_inner().map_err(failed)
}

/// A record of a PAX header (POSIX.1-2017, "pax Extended Header"): its length, which counts itself, keyword and value.
fn pax_record(keyword: &str, value: &str) -> String {
    let rest = format!(" {keyword}={value}\n");
    let digits = |length: usize| length.to_string().len();
    let length = rest.len() + digits(rest.len() + digits(rest.len()));
    format!("{length}{rest}")
}

/// A tar archive without its end, so that another one may follow.
pub(crate) fn tar_segment(files: &Files) -> Result<Vec<u8>, String> {
    let mut archive = tar(files, false)?;
    archive.truncate(archive.len() - END);
    Ok(archive)
}

/// Compressed by gzip (RFC 1952), without a name and a time.
pub(crate) fn gzip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).map_err(|error| format!("gzip: {error}"))
}

/// SHA-256, in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The files and their folders. Each folder comes before its contents.
fn with_folders(files: &Files) -> Files {
    let parents: BTreeSet<&str> =
        files.keys().flat_map(|path| path.match_indices('/').map(|(end, _)| &path[..end])).collect();
    let folders = parents.into_iter().map(|path| (path.to_owned(), File::Folder(0o755)));
    folders.chain(files.clone()).collect()
}

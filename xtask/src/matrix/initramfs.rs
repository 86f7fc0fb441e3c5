//! The guest's file system: a cpio archive of this machine's own programs with their libraries, and the kernel's modules.

use super::debian::{Kernel, find, raw_output};
use crate::shell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const INIT: &str = include_str!("init.sh");
/// This machine's programs that the guest runs.
const PROGRAMS: [&str; 4] = ["busybox", "ip", "tc", "ss"];
/// The kernel's modules, in the order of loading, without their ending.
const MODULES: [&str; 3] = ["veth", "sch_tbf", "sch_netem"];
/// File types and permissions of cpio.
const FOLDER: u32 = 0o040_755;
const EXECUTABLE: u32 = 0o100_755;

/// Writes it, and returns its name.
pub(super) fn write(kernel: &Kernel, folder: &Path) -> Result<PathBuf, String> {
    let mut files = BTreeMap::from([("init".to_owned(), INIT.as_bytes().to_vec())]);
    let stress = shell::target().join("release/ropewalk-stress");
    let mut programs = vec![stress];
    for name in PROGRAMS {
        programs.push(PathBuf::from(shell::output(&format!("which {name}"))?.trim()));
    }
    for program in &programs {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        files.insert(format!("bin/{name}"), read(program)?);
        for library in libraries(program)? {
            files.insert(library.trim_start_matches('/').to_owned(), read(Path::new(&library))?);
        }
    }
    for (index, name) in MODULES.iter().enumerate() {
        if let Some(module) = kernel.modules.as_deref().and_then(|folder| find(folder, &is_module(name))) {
            files.insert(format!("modules/{index}-{name}.ko"), read_module(&module)?);
        }
    }
    let file = folder.join(format!("{}.cpio", kernel.name));
    fs::write(&file, archive(&files)).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(file)
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    fs::read(file).map_err(|error| format!("{}: {error}", file.display()))
}

/// Paths of the shared libraries, the dynamic linker among them; none of a static program.
fn libraries(program: &Path) -> Result<Vec<String>, String> {
    let output = Command::new("ldd").arg(program).output().map_err(|error| format!("cannot run ldd: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.split_whitespace().filter(|word| word.starts_with('/')).map(str::to_owned).collect())
}

/// Whether a file is the module, as it is or compressed.
fn is_module(name: &str) -> impl Fn(&str) -> bool {
    move |file| file.strip_prefix(name).is_some_and(|ending| ending.starts_with(".ko"))
}

fn read_module(file: &Path) -> Result<Vec<u8>, String> {
    match file.extension().is_some_and(|ending| ending == "xz") {
        true => raw_output(Command::new("xz").args(["--decompress", "--stdout"]).arg(file)),
        false => read(file),
    }
}

/// A cpio archive of the form `newc`, of executable files and the folders that they lie in.
fn archive(files: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let mut folders: Vec<&str> = vec!["proc", "sys", "dev", "run", "tmp", "etc"];
    for name in files.keys() {
        folders.extend(name.match_indices('/').map(|(end, _)| &name[..end]));
    }
    folders.sort_unstable();
    folders.dedup();
    let mut archive = Vec::new();
    folders.iter().for_each(|name| add_entry(&mut archive, name, FOLDER, &[]));
    files.iter().for_each(|(name, data)| add_entry(&mut archive, name, EXECUTABLE, data));
    add_entry(&mut archive, "TRAILER!!!", 0, &[]);
    archive
}

fn add_entry(archive: &mut Vec<u8>, name: &str, mode: u32, data: &[u8]) {
    let size = u32::try_from(data.len()).expect("no file of four gigabytes");
    let name_size = u32::try_from(name.len() + 1).expect("a short name");
    // inode, mode, user, group, links, time, size, device (2), special device (2), size of the name, checksum
    let fields = [0, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0];
    archive.extend_from_slice(b"070701");
    for field in fields {
        archive.extend_from_slice(format!("{field:08X}").as_bytes());
    }
    archive.extend_from_slice(name.as_bytes());
    archive.push(0);
    pad(archive);
    archive.extend_from_slice(data);
    pad(archive);
}

fn pad(archive: &mut Vec<u8>) {
    archive.resize(archive.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// cpio(5): the header has 110 bytes; name and data are padded to multiples of four.
    #[test]
    fn an_entry_is_a_header_with_padded_name_and_data() {
        let mut archive = Vec::new();
        add_entry(&mut archive, "init", EXECUTABLE, b"12345");
        assert_eq!(archive.len(), (110 + 5usize).next_multiple_of(4) + 8);
        assert_eq!(&archive[..22], b"07070100000000000081ED");
        assert_eq!(&archive[54..62], b"00000005", "the size");
        assert_eq!(&archive[110..116], b"init\0\0");
    }
}

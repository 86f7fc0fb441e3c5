//! The files of the package, in a folder.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A folder of files to be packed.
#[derive(Debug)]
pub(super) struct Tree(PathBuf);

impl Tree {
    /// An empty folder that replaces `root`.
    pub(super) fn new(root: PathBuf) -> Result<Self, String> {
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).map_err(|error| io_error(&root, &error))?;
        Ok(Self(root))
    }

    pub(super) fn root(&self) -> &Path {
        &self.0
    }

    /// Writes a file, and its parent folders.
    pub(super) fn write(&self, path: &str, mode: u32, content: &[u8]) -> Result<(), String> {
        let file = self.0.join(path);
        let folder = file.parent().unwrap_or(&self.0);
        let written = fs::create_dir_all(folder)
            .and_then(|()| fs::write(&file, content))
            .and_then(|()| fs::set_permissions(&file, Permissions::from_mode(mode)));
        written.map_err(|error| io_error(&file, &error))
    }

    /// Makes a folder.
    pub(super) fn folder(&self, path: &str, mode: u32) -> Result<PathBuf, String> {
        let folder = self.0.join(path);
        let made =
            fs::create_dir_all(&folder).and_then(|()| fs::set_permissions(&folder, Permissions::from_mode(mode)));
        made.map(|()| folder.clone()).map_err(|error| io_error(&folder, &error))
    }

    /// The size of the installed files, KiB: each file rounded up, and one for each folder (deb-substvars(5)).
    pub(super) fn installed_kib(&self) -> Result<u64, String> {
        size_kib(&self.0).map_err(|error| io_error(&self.0, &error))
    }
}

fn size_kib(folder: &Path) -> io::Result<u64> {
    let mut total = 1;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            total += if entry.file_name() == "DEBIAN" { 0 } else { size_kib(&entry.path())? };
        } else {
            total += metadata.len().div_ceil(1024);
        }
    }
    Ok(total)
}

fn io_error(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_installed_size_counts_what_is_installed() {
        let tree = Tree::new(std::env::temp_dir().join(format!("ropewalk-deb-{}", std::process::id()))).unwrap();
        tree.write("usr/bin/a", 0o755, &[0; 1025]).unwrap();
        tree.write("DEBIAN/control", 0o644, &[0; 5000]).unwrap();
        tree.folder("etc", 0o700).unwrap();
        // The root, usr, bin and etc; two blocks of the file.
        assert_eq!(tree.installed_kib(), Ok(4 + 2));
        fs::remove_dir_all(tree.root()).unwrap();
    }
}

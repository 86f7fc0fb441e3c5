//! Others' files on the page are the published ones.

use sha2::{Digest, Sha256};
use std::path::Path;

/// File name and digest of every row of the table.
fn promised(readme: &str) -> Vec<(&str, &str)> {
    let words = readme.lines().filter(|line| line.starts_with("| `")).map(|row| row.split('`').collect::<Vec<_>>());
    words.map(|words| (words[1], words[words.len() - 2])).collect()
}

#[test]
fn vendored_files_have_the_digests_that_their_readme_promises() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/vendor");
    let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let promised = promised(&readme);
    for (name, digest) in &promised {
        let hash = Sha256::digest(std::fs::read(folder.join(name)).unwrap());
        assert_eq!(hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>(), *digest, "{name}");
    }
    for file in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()) {
        let name = file.to_string_lossy().into_owned();
        let own = name == "README.md" || name.ends_with(".LICENSE");
        assert!(own || promised.iter().any(|(promised, _)| *promised == name), "{name} is not in the table");
    }
}

//! Checks that no file names a home folder or the folder of the checkout.

use super::Source;
use std::path::Path;

/// Names of the folders that hold home folders; without slashes, so that this file has no finding.
const HOMES: &[&str] = &["home", "root", "Users"];

/// Findings in all text files: home folders, and the folder of this very checkout.
pub(super) fn check(root: &Path, sources: &[Source]) -> Vec<String> {
    let mut banned: Vec<_> = HOMES.iter().map(|home| format!("/{home}/")).collect();
    // A checkout right below `/` has too common a name to look for: `/src/` is in every crate.
    banned.extend((root.components().count() > 2).then(|| format!("{}/", root.display())));
    let finding = |source: &Source| {
        let path = banned.iter().find(|path| source.text.contains(path.as_str()))?;
        Some(format!("{}: names a folder of one machine: `{path}`", source.path))
    };
    sources.iter().filter_map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_folders_and_the_checkout_are_found() {
        let findings = |text: String| check(Path::new("/srv/checkout"), &[Source { path: "x".to_owned(), text }]).len();
        assert_eq!(findings(format!("see /{}/ada/notes", HOMES[0])), 1);
        assert_eq!(findings("built in /srv/checkout/target".to_owned()), 1);
        assert_eq!(findings("see /proc/net/tcp and /etc/fstab".to_owned()), 0);
    }
}

//! The package's control file (deb-control(5)).

use super::package::Package;
use crate::shell;

/// The maintainer if the variables of deb-changelog(5) name none. It must not be published.
const AUTHORS: &str = "The Ropewalk authors";
const NO_ADDRESS: &str = "ropewalk@localhost";

/// The fields that differ between builds.
pub(super) struct Control {
    package: &'static Package,
    version: String,
    architecture: String,
    /// Name and address.
    maintainer: String,
    /// The repository that the workspace names, if any.
    homepage: Option<String>,
}

impl Control {
    /// The fields of a build. `DEBFULLNAME` and `DEBEMAIL` are the maintainer's name and address, as for Debian's own tools.
    pub(super) fn new(package: &'static Package, version: &str, architecture: &str) -> Result<Self, String> {
        let variable = |name, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
        let maintainer = format!("{} <{}>", variable("DEBFULLNAME", AUTHORS), variable("DEBEMAIL", NO_ADDRESS));
        let homepage = shell::package_field("repository")?;
        Ok(Self { package, version: version.to_owned(), architecture: architecture.to_owned(), maintainer, homepage })
    }

    /// The package's name.
    pub(super) fn package(&self) -> &'static str {
        self.package.name
    }

    /// The control file of a package that takes `installed_kib` when it is installed.
    pub(super) fn text(&self, installed_kib: u64) -> String {
        let Self { package: Package { name, relations, description, .. }, version, architecture, maintainer, homepage } =
            self;
        let homepage = homepage.as_ref().map_or_else(String::new, |url| format!("Homepage: {url}\n"));
        format!(
            "Package: {name}\nVersion: {version}\nArchitecture: {architecture}\nSection: net\nPriority: optional\n\
             Maintainer: {maintainer}\nInstalled-Size: {installed_kib}\n{relations}{homepage}{description}"
        )
    }

    /// The package's own changes (deb-changelog(5)), with a date in the format of e-mail.
    pub(super) fn changelog(&self, date: &str) -> String {
        let Self { package: Package { name, .. }, version, maintainer, .. } = self;
        format!(
            "{name} ({version}) unstable; urgency=medium\n\n  * A build of this version: changelog.gz has the changes.\n\n \
             -- {maintainer}  {date}\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::package::ROPEWALK;
    use super::*;

    #[test]
    fn the_control_file_has_what_apt_shows() {
        let homepage = Some("https://example.org/ropewalk".to_owned());
        let control = Control {
            package: &ROPEWALK,
            version: "0.1.0~git20261127135423.06ae08f7ab".into(),
            architecture: "amd64".into(),
            maintainer: "A Person <person@example.org>".into(),
            homepage,
        };
        let text = control.text(12_345);
        for line in [
            "Version: 0.1.0~git20261127135423.06ae08f7ab",
            "Installed-Size: 12345",
            "Recommends: nftables",
            "Maintainer: A Person <person@example.org>",
            "Homepage: https://example.org/ropewalk",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} in {text}");
        }
        assert!(!Control { homepage: None, ..control }.text(1).contains("Homepage"));
    }
}

//! The contents of each package.

use super::tree::Tree;
use crate::artefacts::archive;
use crate::shell;
use std::fs;
use std::path::Path;

/// A package. Its program has the package's name.
pub(super) struct Package {
    pub(super) name: &'static str,
    /// The section of the manual that its pages are in.
    pub(super) section: &'static str,
    /// Files with their modes, and their sources.
    pub(super) files: &'static [(&'static str, u32, &'static str)],
    /// Writes the files that are not copies.
    pub(super) write_more: fn(&Tree) -> Result<(), String>,
    /// Lines of its control file: relations to other packages.
    pub(super) relations: &'static str,
    /// Lines of its control file: one with a summary, then indented ones.
    pub(super) description: &'static str,
}

/// The list of eBPF programs that are loaded at boot, a file that administrators change.
const KERNEL_DEFAULT: &str = "etc/default/ropewalk-kernel";
const KERNEL_UNIT: &str = "usr/lib/systemd/system/ropewalk-kernel.service";
/// The folder of the objects, as `bpftool struct_ops register FILE` takes them.
const OBJECTS: &str = "usr/lib/ropewalk-kernel";
/// The object that is attached to a control group.
const GROUP: &str = "cgroup";

/// The whole program. iproute2 is not a dependency, because the daemon uses netlink. `systemd-sysusers` makes the daemon's
/// user. A server's translation of addresses is a table of nftables; a client needs none. The unit that loads eBPF programs
/// at boot is in `ropewalk-kernel`.
pub(super) const ROPEWALK: Package = Package {
    name: "ropewalk",
    section: "1",
    files: &[
        ("usr/lib/systemd/system/ropewalk@.service", 0o644, "packaging/ropewalk@.service"),
        ("usr/lib/systemd/system/ropewalk-keep@.service", 0o644, "packaging/ropewalk-keep@.service"),
        ("usr/lib/sysusers.d/ropewalk.conf", 0o644, "packaging/sysusers.conf"),
        ("usr/share/doc/ropewalk/copyright", 0o644, "packaging/copyright"),
        ("usr/share/doc/ropewalk/LICENSE-MIT", 0o644, "LICENSE-MIT"),
        ("usr/share/doc/ropewalk/examples/rw0.toml", 0o644, "packaging/rw0.toml.example"),
        ("usr/share/doc/ropewalk/examples/prometheus/alerts.yml", 0o644, "packaging/prometheus/alerts.yml"),
        ("usr/share/doc/ropewalk/examples/prometheus/grafana.json", 0o644, "packaging/prometheus/grafana.json"),
        ("usr/share/doc/ropewalk/examples/prometheus/scrape.yml", 0o644, "packaging/prometheus/scrape.yml"),
        ("DEBIAN/postinst", 0o755, "packaging/postinst"),
        ("DEBIAN/prerm", 0o755, "packaging/prerm"),
        ("DEBIAN/postrm", 0o755, "packaging/postrm"),
    ],
    write_more: |tree| tree.folder("etc/ropewalk", 0o700).map(drop),
    relations: "Depends: libc6 (>= 2.36), libgcc-s1, systemd | systemd-standalone-sysusers | systemd-sysusers\n\
                Recommends: nftables\nSuggests: ropewalk-kernel\n",
    description: "Description: several uplinks as one encrypted link\n \
                  A multipath GRE-in-UDP tunnel with congestion control on each path, striping of single\n \
                  flows, loss repair and bounded reordering; and the simulator that it was studied with.\n",
};

/// Congestion control for the kernel alone. Earlier builds of `ropewalk` had its unit and its default file. The tools are
/// for MPTCP endpoints, and for using the objects without this program.
pub(super) const KERNEL: Package = Package {
    name: "ropewalk-kernel",
    section: "8",
    files: &[
        (KERNEL_DEFAULT, 0o644, "packaging/ropewalk-kernel.default"),
        (
            "usr/lib/systemd/system/ropewalk-kernel-metrics.service",
            0o644,
            "packaging/kernel/ropewalk-kernel-metrics.service",
        ),
        (
            "usr/lib/systemd/system/ropewalk-kernel-metrics.timer",
            0o644,
            "packaging/kernel/ropewalk-kernel-metrics.timer",
        ),
        ("usr/share/doc/ropewalk-kernel/copyright", 0o644, "packaging/kernel/copyright"),
        ("usr/share/doc/ropewalk-kernel/LICENSE-MIT", 0o644, "LICENSE-MIT"),
        ("DEBIAN/postinst", 0o755, "packaging/kernel/postinst"),
        ("DEBIAN/prerm", 0o755, "packaging/kernel/prerm"),
        ("DEBIAN/postrm", 0o755, "packaging/kernel/postrm"),
    ],
    write_more: write_kernel_files,
    relations: "Depends: libc6 (>= 2.36), libgcc-s1\nRecommends: iproute2\nSuggests: bpftool, mptcpize\n\
                Breaks: ropewalk (<< 0.1.0~git20261128)\nReplaces: ropewalk (<< 0.1.0~git20261128)\n",
    description: "Description: coupled congestion control for upstream MPTCP, by eBPF\n \
                  LIA, OLIA, BALIA, wVegas and coupled BBR as congestion controls of the running kernel, and\n \
                  single-path ones that it may lack: no patch, no module, no change to an application.\n",
};

impl Package {
    /// Where its program is installed.
    pub(super) fn program(&self) -> String {
        format!("usr/bin/{}", self.name)
    }

    /// Shells, and the folders in which Debian's packages have completions for them.
    pub(super) fn completions(&self) -> [(&'static str, String); 3] {
        let name = self.name;
        [
            ("bash", format!("usr/share/bash-completion/completions/{name}")),
            ("fish", format!("usr/share/fish/vendor_completions.d/{name}.fish")),
            ("zsh", format!("usr/share/zsh/vendor-completions/_{name}")),
        ]
    }
}

fn write_kernel_files(tree: &Tree) -> Result<(), String> {
    let read = |path: &str| archive::read(&shell::root().join(path));
    let unit = String::from_utf8_lossy(&read("packaging/ropewalk-kernel.service")?).into_owned();
    tree.write(KERNEL_UNIT, 0o644, unit.replace("/usr/bin/ropewalk kernel ", "/usr/bin/ropewalk-kernel ").as_bytes())?;
    tree.write("DEBIAN/conffiles", 0o644, format!("/{KERNEL_DEFAULT}\n").as_bytes())?;
    let objects = shell::root().join("kernel/bpf/objects");
    let failed = |error: std::io::Error| format!("{}: {error}", objects.display());
    for entry in fs::read_dir(&objects).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let name = Path::new(&name).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        // This is not a congestion control: it needs its loader.
        if name == GROUP {
            continue;
        }
        tree.write(&format!("{OBJECTS}/{name}.bpf.o"), 0o644, &read(&format!("kernel/bpf/objects/{name}.o"))?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_packages_have_no_file_in_common() {
        let files = |package: &Package| {
            let installed =
                package.files.iter().map(|(path, ..)| (*path).to_owned()).filter(|path| !path.starts_with("DEBIAN"));
            installed.chain(package.completions().map(|(_, path)| path)).collect::<BTreeSet<_>>()
        };
        assert!(files(&ROPEWALK).is_disjoint(&files(&KERNEL)));
        assert_ne!(ROPEWALK.section, KERNEL.section, "`ropewalk kernel` and `ropewalk-kernel` have pages of one name");
    }

    #[test]
    fn the_unit_calls_the_program_of_its_package() {
        let tree = Tree::new(std::env::temp_dir().join(format!("ropewalk-deb-kernel-{}", std::process::id()))).unwrap();
        write_kernel_files(&tree).unwrap();
        let unit = fs::read_to_string(tree.root().join(KERNEL_UNIT)).unwrap();
        assert!(unit.contains("ExecStart=/usr/bin/ropewalk-kernel load"), "{unit}");
        assert!(!unit.contains("/usr/bin/ropewalk "), "{unit}");
        assert!(fs::exists(tree.root().join(OBJECTS).join("lia.bpf.o")).unwrap());
        fs::remove_dir_all(tree.root()).unwrap();
    }
}

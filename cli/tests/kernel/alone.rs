//! The program of the package `ropewalk-kernel`, and the objects that it installs as files.

use super::{command, free, ropewalk, turn};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use testing::{Reason, skip};

/// Runs the program by the name of the small package's.
fn alone(arguments: &[&str]) -> String {
    let output = command(arguments).arg0("/usr/bin/ropewalk-kernel").output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn called_ropewalk_kernel_it_has_these_verbs_without_the_word_kernel() {
    let _turn = turn();
    let version = ropewalk(&["--version"]).stdout;
    assert_eq!(alone(&["--version"]), version.replace("ropewalk ", "ropewalk-kernel "));
    assert_eq!(alone(&["list", "--json"]), ropewalk(&["kernel", "list", "--json"]).stdout);
    assert_eq!(
        alone(&["check"]),
        ropewalk(&["kernel", "check"]).stdout.replace("ropewalk kernel ", "ropewalk-kernel ")
    );
    assert!(alone(&["run", "--help"]).contains("Usage: ropewalk-kernel run "));
    assert!(alone(&["up"]).contains("unrecognized subcommand 'up'"), "a verb of the whole program");
}

#[test]
fn its_manual_has_a_page_for_each_verb_in_section_8() {
    let folder = super::program::folder("ropewalk-kernel-man");
    assert_eq!(alone(&["man", folder.to_str().unwrap()]), "");
    let page = std::fs::read_to_string(folder.join("ropewalk-kernel.8")).unwrap();
    assert!(page.contains(".TH ropewalk-kernel 8"), "{page}");
    for verb in ["load", "unload", "list", "status", "run", "metrics", "check"] {
        assert!(folder.join(format!("ropewalk-kernel-{verb}.8")).exists(), "{verb}");
    }
    assert!(!page.contains("keep-group"), "a verb that is not for people");
}

#[test]
fn bpftool_registers_each_object_without_this_program() {
    let Some(_turn) = turn() else { return };
    let bpftool = |arguments: &[&str]| Command::new("bpftool").arg("struct_ops").args(arguments).output();
    if bpftool(&["list"]).is_err() {
        return skip(Reason::Missing, "bpftool: apt-get install bpftool");
    }
    let objects = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernel/bpf/objects");
    for name in free() {
        let object = objects.join(format!("{}.o", name.trim_start_matches("rw_")));
        let registered = bpftool(&["register", object.to_str().unwrap()]).unwrap();
        assert!(kernel::registered().contains(name), "{name}: {registered:?}");
        let unregistered = bpftool(&["unregister", "name", name]).unwrap();
        assert!(!kernel::registered().contains(name), "{name}: {unregistered:?}");
    }
}

//! The tutorials run as written, and print what they show. `examples/plugin` runs the one on plug-ins, the tests of
//! Python the two in Python.

mod page;
#[path = "../program/mod.rs"]
mod program;

use program::folder;
use std::path::Path;
use testing::{Reason, skip};

/// Runs a script, its last argument, as root in a mount namespace, where `/run` is empty. Its processes end with it, and
/// with them its network namespaces.
const ALONE: [&str; 9] = [
    "unshare",
    "--mount",
    "--pid",
    "--fork",
    "--kill-child",
    "sh",
    "-c",
    "mount -t tmpfs tmpfs /run && mount -t proc proc /proc && exec sh -c \"$1\"",
    "sh",
];

fn run(name: &str, shell: &[&str]) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../docs/tutorials/{name}.md"));
    let program = Path::new(env!("CARGO_BIN_EXE_ropewalk")).parent().expect("it is in a folder");
    page::run(&page, &folder(&format!("tutorial-{name}")), program, shell);
}

#[test]
fn the_first_run() {
    run("1-first-run", &["sh", "-c"]);
}

#[test]
fn wifi_and_lte() {
    run("2-wifi-and-lte", &["sh", "-c"]);
}

#[test]
fn look_inside_a_run() {
    run("8-look-inside-a-run", &["sh", "-c"]);
}

#[test]
fn two_bonded_uplinks() {
    match lab::testbed::possible() {
        Ok(()) => run("5-bond-two-uplinks", &ALONE),
        Err(reason) => skip(Reason::Missing, &reason),
    }
}

/// Programs are the kernel's, not this process's: the test takes turns with the lab's runs.
#[test]
#[cfg(feature = "kernel")]
fn coupled_control_in_the_kernel() {
    let obstacles = kernel::check().into_iter().filter(kernel::Condition::is_obstacle);
    let obstacles: Vec<&str> = obstacles.map(|condition| condition.name).collect();
    match obstacles[..] {
        [] => {}
        ["capabilities"] => return skip(Reason::Missing, "needs root"),
        _ => return skip(Reason::Kernel, &format!("the kernel lacks what programs need: {}", obstacles.join(", "))),
    }
    std::fs::create_dir_all("/run/ropewalk-lab").unwrap();
    let lock =
        std::fs::File::options().write(true).create(true).truncate(false).open("/run/ropewalk-lab/lock").unwrap();
    lock.lock().unwrap();
    if kernel::registered().contains("rw_lia") {
        return skip(Reason::Kernel, "somebody else has loaded rw_lia");
    }
    run("7-coupled-control-in-your-kernel", &ALONE);
}

#[test]
fn a_page_that_shows_something_else_fails() {
    let dir = folder("tutorial-wrong");
    let check = |text: &str| {
        let page = dir.join("page.md");
        std::fs::write(&page, text).unwrap();
        std::panic::catch_unwind(|| page::run(&page, &dir, Path::new("."), &["sh", "-c"])).is_ok()
    };
    let page = |fence: &str, lines: &str| format!("# Page\n\n{fence}console\n{lines}\n```\n");
    assert!(check(&page("```", "$ printf 'one\\ntwo 2\\nthree\\n'\none\n...\nth...e")));
    assert!(!check(&page("```", "$ echo one\ntwo")));
    assert!(!check(&page("```", "$ printf 'one\\ntwo\\n'\none")));
    assert!(!check(&page("```", "$ false")));
    assert!(check(&page("```", "$ echo 'error: no'; false\nerror: no")));
    assert!(check(&page("<!-- measured -->\n\n```", "$ printf 'one 1.5\\ntwo\\n'\ntwo\n...\none 20")));
    assert!(check(&page("<!-- measured -->\n\n```", "$ echo '[ 5]   3    sent'\n[ 15]  18    sent")));
    assert!(!check(&page("<!-- measured -->\n\n```", "$ echo one\ntwo")));
    assert!(check(&format!("```toml title=\"f\"\na = 1\n```\n{}", page("```", "$ cat f\na = 1"))));
}

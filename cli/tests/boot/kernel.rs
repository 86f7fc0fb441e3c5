//! The package `ropewalk-kernel`: its unit, started, stopped, restarted with another list, and gone with the package. The kernel
//! is this machine's, so the test has the turn of the programs, and takes two that nobody has loaded.

use crate::debian::{self, BOOKWORM, Suite, TRIXIE};
use crate::machine::Machine;
use crate::package;
use crate::pair::{changes, traces};
use std::fs::{self, File};
use testing::{Reason, eventually, skip};

/// Two programs, and the lock under which others load and unload (`lab/src/programs/hold.rs`).
fn turn() -> Option<(File, [&'static str; 2])> {
    if !kernel::check().iter().all(|condition| !condition.is_obstacle()) {
        skip(Reason::Kernel, "the kernel lacks what eBPF programs need");
        return None;
    }
    fs::create_dir_all("/run/ropewalk-lab").unwrap();
    let lock = File::options().write(true).create(true).truncate(false).open("/run/ropewalk-lab/lock").unwrap();
    lock.lock().unwrap();
    let free = kernel::PROGRAMS.iter().map(|program| program.kernel_name).filter(|name| !is_loaded(name));
    let [first, second, ..] = free.collect::<Vec<_>>()[..] else {
        skip(Reason::Kernel, "somebody else has loaded the programs");
        return None;
    };
    Some((lock, [first, second]))
}

/// Whether the kernel has a program, as every container sees it.
fn is_loaded(name: &str) -> bool {
    kernel::registered().contains(name)
}

/// Has the unit load a program.
fn choose(machine: &Machine, name: &str) {
    machine.run(&format!("echo PROGRAMS={name} > /etc/default/ropewalk-kernel"));
}

fn a_life(suite: Suite) {
    let Some(root) = debian::root(suite) else { return };
    let Some((_turn, [first, second])) = turn() else { return };
    let mut machine = Machine::new("kernel", &root);
    machine.write("/srv/ropewalk-kernel.deb", fs::read(package::kernel()).unwrap());
    machine.boot(|_| ());
    let before = traces(&machine);
    machine.run("apt-get install --yes /srv/ropewalk-kernel.deb");
    machine.run("! systemctl is-enabled ropewalk-kernel");
    assert!(!is_loaded(first), "the package loads nothing by itself");

    choose(&machine, first);
    machine.run("systemctl enable --now ropewalk-kernel");
    assert!(is_loaded(first) && !is_loaded(second));
    machine.run("systemctl stop ropewalk-kernel");
    assert!(!is_loaded(first));
    machine.run("systemctl start ropewalk-kernel");
    let metrics = format!("ropewalk_kernel_program_loaded{{program=\"{first}\"}} 1");
    machine.run("mkdir -p /var/lib/prometheus/node-exporter && systemctl start ropewalk-kernel-metrics");
    let file = machine.run("cat /var/lib/prometheus/node-exporter/ropewalk_kernel.prom");
    assert!(file.contains(&metrics) && file.contains("{state=\"refused\"} 0"), "{file}");

    machine.shut_down();
    assert!(!is_loaded(first), "the unit has unloaded what it loaded");
    machine.boot(|_| ());
    assert!(is_loaded(first), "from boot on");
    choose(&machine, second);
    machine.run("systemctl restart ropewalk-kernel");
    assert!(is_loaded(second) && !is_loaded(first));

    let script = "sh -c 'grep -o ropewalk-run- /proc/self/cgroup; id -u'";
    let run = format!("systemd-run --quiet --wait --pipe ropewalk-kernel run {second} --user nobody -- {script}");
    assert_eq!(machine.run(&run), "ropewalk-run-\n65534\n");
    assert!(eventually(|| machine.run("find /sys/fs/cgroup -name 'ropewalk-run-*'").is_empty()));

    machine.run("apt-get remove --yes ropewalk-kernel");
    assert!(!is_loaded(second));
    machine.run("apt-get purge --yes ropewalk-kernel");
    // What this test has made.
    machine.run("rm -r /var/lib/prometheus /run/systemd/transient");
    let left = changes(&before, &traces(&machine));
    assert!(left.is_empty(), "{left:#?}");
}

#[test]
fn on_debian_12_the_unit_loads_and_unloads_and_a_purge_leaves_nothing() {
    a_life(BOOKWORM);
}

#[test]
fn on_debian_13_the_unit_loads_and_unloads_and_a_purge_leaves_nothing() {
    a_life(TRIXIE);
}

//! Setup, reboots, an uplink without carrier at boot, and removal.

use crate::debian::{BOOKWORM, Suite, TRIXIE};
use crate::internet::{PUBLIC_ANSWER, ROUTERS_ANSWER};
use crate::machine::Machine;
use crate::pair::{Pair, UPLINKS, changes, traces};
use crate::resolvers::assert_resolved;

/// The property of a unit.
fn property(machine: &Machine, name: &str) -> String {
    machine.run(&format!("systemctl show --property {name} --value ropewalk@rw0")).trim().to_owned()
}

/// Asserts that the daemon has what the unit confines it with, and its own list of system calls after that.
fn assert_confined(machine: &Machine) {
    let pid = property(machine, "MainPID");
    let status = machine.run(&format!("cat /proc/{pid}/status"));
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
    // CAP_NET_ADMIN is capability 12.
    assert_eq!(
        (field("CapEff:"), field("CapBnd:"), field("NoNewPrivs:")),
        ("0000000000001000", "0000000000001000", "1")
    );
    let filters: u32 = field("Seccomp_filters:").parse().unwrap();
    assert!(filters >= 3, "systemd's, at least two, and its own: {filters}");
    assert_eq!(machine.run("stat --format %U:%a /var/lib/ropewalk/rw0.history"), "ropewalk:600\n");
    let root = machine.run(&format!("grep ' / / ' /proc/{pid}/mountinfo"));
    assert!(root.split(' ').nth(5).is_some_and(|options| options.split(',').any(|option| option == "ro")), "{root}");
    assert_eq!(property(machine, "NRestarts"), "0", "it starts at once");
}

/// Asserts that the journal has the daemon's messages with priorities and fields, and each once.
fn assert_journal(machine: &Machine) {
    let entry = machine.run("journalctl --no-pager --output json --unit ropewalk@rw0 ROPEWALK_KIND=start");
    assert!(entry.lines().count() == 1 && entry.contains("\"PRIORITY\":\"6\""), "{entry}");
    let informed =
        machine.run("journalctl --no-pager --quiet --unit ropewalk@rw0 --priority warning ROPEWALK_KIND=start");
    assert_eq!(informed, "");
}

/// Asserts that what the tunnel needs of its host is kept, with no more rights than the unit gives.
fn assert_kept(machine: &Machine) {
    let property = |name: &str| {
        machine.run(&format!("systemctl show --property {name} --value ropewalk-keep@rw0")).trim().to_owned()
    };
    let status = machine.run(&format!("cat /proc/{}/status", property("MainPID")));
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
    // CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER and CAP_NET_ADMIN are capabilities 0, 1, 3 and 12.
    assert_eq!((field("CapBnd:"), field("NoNewPrivs:"), field("Seccomp:")), ("000000000000100b", "1", "2"));
    let mounts = machine.run(&format!("grep -E ' /(usr|home) ' /proc/{}/mountinfo", property("MainPID")));
    assert!(mounts.contains(" /usr ro,") && mounts.contains(" /home ro,"), "{mounts}");
    assert_eq!(property("NRestarts"), "0", "it starts at once");
    machine.run("systemctl is-enabled ropewalk-keep@rw0");
}

/// Asserts that at this boot the keeper was ready before there was a network, and before the daemon.
fn assert_kept_from_the_start(machine: &Machine) {
    let entered = |unit: &str| -> u64 {
        let line = format!("systemctl show --property ActiveEnterTimestampMonotonic --value {unit}");
        machine.run(&line).trim().parse().unwrap()
    };
    let keeper = entered("ropewalk-keep@rw0");
    assert!(keeper > 0 && keeper <= entered("network-pre.target") && keeper < entered("systemd-networkd"));
    let daemon = machine.run("systemctl show --property ExecMainStartTimestampMonotonic --value ropewalk@rw0");
    assert!(keeper < daemon.trim().parse().unwrap());
}

/// Asserts that a reload which needs a restart names systemd's command for it.
fn assert_restart_is_systemds(machine: &Machine) {
    let file = "/etc/ropewalk/rw0.toml";
    machine.run(&format!("sed -i.kept '/^.interface/a dashboard = \"127.0.0.1:9780\"' {file}"));
    let (printed, succeeds) = machine.output("ropewalk reload rw0");
    assert!(!succeeds && printed.contains("`systemctl restart ropewalk@rw0`"), "{printed}");
    machine.run(&format!("mv {file}.kept {file}"));
}

/// Installs, sets up, reboots, removes and purges on a suite of Debian.
fn a_life(suite: Suite) {
    let Some(mut pair) = Pair::new(suite, |_| ()) else { return };
    // Nothing manages it.
    pair.client.run("echo nameserver 192.168.1.1 > /etc/resolv.conf");
    assert_resolved(&pair.client, ROUTERS_ANSWER, "before the setup");
    let bare = [&pair.server, &pair.client].map(traces);
    pair.install();
    let installed = [&pair.server, &pair.client].map(traces);
    pair.set_up();
    pair.wait_for_paths(2);
    [&pair.server, &pair.client].into_iter().for_each(assert_confined);
    [&pair.server, &pair.client].into_iter().for_each(assert_journal);
    [&pair.server, &pair.client].into_iter().for_each(assert_kept);
    assert_resolved(&pair.client, PUBLIC_ANSWER, "after the setup");
    assert_restart_is_systemds(&pair.server);

    for machine in [&mut pair.server, &mut pair.client] {
        machine.shut_down();
    }
    pair.boot_server();
    pair.client.boot(|pid| {
        UPLINKS.iter().for_each(|(device, socket)| pair.internet.plug_in(pid, device, *socket));
        let (device, socket) = UPLINKS[1];
        pair.internet.set_carrier(device, socket, false);
    });
    pair.wait_for_paths(1);
    [&pair.server, &pair.client].into_iter().for_each(assert_kept_from_the_start);
    assert_resolved(&pair.client, PUBLIC_ANSWER, "after a reboot");
    // Its target waits for all links, for two minutes.
    assert!(!pair.client.succeeds("systemctl is-active network-online.target"));
    let (device, socket) = UPLINKS[1];
    pair.internet.set_carrier(device, socket, true);
    pair.wait_for_paths(2);
    for machine in [&pair.client, &pair.server] {
        machine.run("systemctl restart ropewalk@rw0");
        pair.wait_for_paths(2);
    }
    assert_resolved(&pair.client, PUBLIC_ANSWER, "after a restart");

    for ((machine, installed), bare) in [&pair.server, &pair.client].into_iter().zip(&installed).zip(&bare) {
        machine.run("ropewalk setup remove --yes");
        // The folder of sockets is systemd's, which several tunnels share.
        machine.run("rmdir /run/ropewalk");
        assert_eq!(changes(installed, &traces(machine)), [""; 0]);
        machine.run("apt-get purge --yes ropewalk");
        let left = changes(bare, &traces(machine));
        // Debian's packages leave their users: files elsewhere may belong to one, whose number another would get.
        assert!(left.iter().all(|line| line.starts_with("+ ropewalk:x:")), "{left:#?}");
    }
}

#[test]
fn a_set_up_on_debian_12_survives_reboots_and_its_removal_leaves_nothing() {
    a_life(BOOKWORM);
}

#[test]
fn a_set_up_on_debian_13_survives_reboots_and_its_removal_leaves_nothing() {
    a_life(TRIXIE);
}

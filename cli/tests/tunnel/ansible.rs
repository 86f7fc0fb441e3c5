//! The Ansible role sets a server and a client up, and a second time changes nothing.

use crate::internet::{CLIENT, Internet, SERVER};
use crate::tunnel_pair::program;
use std::path::Path;
use std::process::Command;
use testing::{Reason, eventually, skip};

/// Runs the role in a host; returns the line of its recap.
#[track_caller]
fn play(internet: &Internet, host: usize, variables: &str) -> String {
    let roles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/ansible/roles");
    let playbook = "- {hosts: all, gather_facts: false, roles: [ropewalk_tunnel]}";
    let script = format!(
        "cd /run && echo '{playbook}' > play.yml && HOME=/run ANSIBLE_ROLES_PATH={} ansible-playbook -i localhost, -c local \
         -e ropewalk_tunnel_package= -e ropewalk_tunnel_program={} {variables} play.yml",
        roles.display(),
        program()
    );
    let output = internet.run(host, &["sh", "-c", &script]);
    output.lines().rev().find(|line| line.contains("changed=")).unwrap().to_owned()
}

#[test]
fn the_ansible_role_makes_a_server_and_a_client_and_a_second_run_changes_nothing() {
    if Command::new("ansible-playbook").arg("--version").output().is_err() {
        return skip(Reason::Missing, "ansible-playbook (Debian: ansible-core)");
    }
    let Some(internet) = Internet::new() else { return };
    let server = "-e ropewalk_tunnel_role=server -e \"{ropewalk_tunnel_clients: [branch, office]}\"";
    let recap = play(&internet, SERVER, server);
    assert!(recap.contains("failed=0") && !recap.contains("changed=0"), "{recap}");
    let token = internet.run(SERVER, &["cat", "/run/tokens/branch.token"]);
    assert!(token.starts_with("rw1-"), "{token}");
    assert_eq!(internet.run(SERVER, &["stat", "-c", "%a", "/run/tokens/office.token"]), "600\n");
    let client = format!("-e ropewalk_tunnel_token={}", token.trim());
    let recap = play(&internet, CLIENT, &client);
    assert!(recap.contains("changed=1") && recap.contains("failed=0"), "{recap}");
    let is_connected =
        || internet.ropewalk(SERVER, "setup server --list").contains("enrolled, connected by 2 of 2 paths");
    assert!(eventually(is_connected), "{}", internet.ropewalk(SERVER, "setup server --list"));
    for (host, variables) in [(SERVER, server), (CLIENT, &client)] {
        let recap = play(&internet, host, variables);
        assert!(recap.contains("changed=0") && recap.contains("failed=0"), "{recap}");
    }
}

//! What brings the kernel's congestion control to many hosts: Ansible's role, the module of NixOS, Kubernetes' manifest. Each is
//! read by its own program where that is installed.

use crate::support::{is_there, run};

fn packaging(path: &str) -> String {
    format!("{}/../packaging/{path}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn their_programs_read_them() {
    if is_there("ansible-playbook") {
        for playbook in ["ansible/site.yml", "ansible/tunnel.yml"] {
            run("ansible-playbook", &["-i", "localhost,", "--syntax-check", &packaging(playbook)]);
        }
    }
    if is_there("nix-instantiate") {
        run("nix-instantiate", &["--parse", &packaging("nixos/ropewalk-kernel.nix")]);
    }
}

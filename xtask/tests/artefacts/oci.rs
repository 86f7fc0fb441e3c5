//! The image: unpacked by umoci and run by runc, as a server in a network namespace of its own.

use crate::support::{artefact, folder, is_there, run, static_program, version};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use testing::{Reason, eventually, skip};

/// The network namespaces of the two hosts.
const CLIENT: &str = "rw-oci-client";
const SERVER: &str = "rw-oci-server";
/// What a container may do that has the tunnel's device.
const CAPABILITIES: [&str; 6] =
    ["CAP_NET_ADMIN", "CAP_NET_BIND_SERVICE", "CAP_BPF", "CAP_DAC_OVERRIDE", "CAP_SETPCAP", "CAP_CHOWN"];

/// An unpacked image, as runtimes want it.
struct Bundle {
    folder: PathBuf,
    config: Value,
}

impl Bundle {
    fn unpack(image: &Path) -> Self {
        let folder = folder("oci");
        let layout = folder.join("layout");
        fs::create_dir(&layout).unwrap();
        run("tar", &["--extract", "--file", image.to_str().unwrap(), "--directory", layout.to_str().unwrap()]);
        let bundle = folder.join("bundle");
        let image = format!("{}:{}", layout.display(), version().replace(['~', '+'], "-"));
        run("umoci", &["unpack", "--image", &image, bundle.to_str().unwrap()]);
        let config = serde_json::from_slice(&fs::read(bundle.join("config.json")).unwrap()).unwrap();
        Self { folder: bundle, config }
    }

    /// The command that runs these arguments in a container named `name`; none: what the image says.
    fn command(&self, name: &str, arguments: Option<&[&str]>, edit: impl FnOnce(&mut Value)) -> Command {
        let mut config = self.config.clone();
        config["process"]["terminal"] = json!(false);
        if let Some(arguments) = arguments {
            config["process"]["args"] = json!(arguments);
        }
        edit(&mut config);
        fs::write(self.folder.join("config.json"), config.to_string()).unwrap();
        let mut command = Command::new("runc");
        command.args(["run", "--bundle", self.folder.to_str().unwrap(), name]);
        command
    }

    /// What a program in it prints.
    fn output(&self, arguments: &[&str]) -> String {
        let output = self.command("rw-oci-once", Some(arguments), |_| ()).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

/// Two hosts with one link, which are removed when the value is dropped.
struct Hosts(Vec<Child>);

impl Hosts {
    fn make() -> Self {
        remove();
        let hosts = Self(Vec::new());
        for host in [CLIENT, SERVER] {
            run("ip", &["netns", "add", host]);
        }
        run("ip", &["-n", CLIENT, "link", "add", "eth0", "type", "veth", "peer", "eth0", "netns", SERVER]);
        for (host, address) in [(CLIENT, "192.0.2.1/24"), (SERVER, "192.0.2.2/24")] {
            run("ip", &["-n", host, "address", "add", address, "dev", "eth0"]);
            run("ip", &["-n", host, "link", "set", "eth0", "up"]);
        }
        hosts
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
        remove();
    }
}

/// Removes the container and the namespaces, also those of a run that was killed.
fn remove() {
    let _ = Command::new("runc").args(["delete", "--force", "rw-oci-tunnel"]).stderr(Stdio::null()).status();
    for host in [CLIENT, SERVER] {
        let _ = Command::new("ip").args(["netns", "del", host]).stderr(Stdio::null()).status();
    }
}

#[test]
fn a_container_of_it_is_the_server_of_a_tunnel() {
    if !is_there("umoci") || !is_there("runc") {
        return;
    }
    if run("id", &["-u"]) != "0\n" {
        return skip(Reason::Missing, "root");
    }
    let Some(image) = artefact("oci") else { return };
    let bundle = Bundle::unpack(&image);
    assert!(bundle.output(&["/usr/sbin/nft", "--version"]).starts_with("nftables v"));
    let program = static_program().unwrap().to_str().unwrap();
    let keys = [CLIENT, SERVER].map(|_| bundle.output(&["/usr/bin/ropewalk", "genkey"]));
    let public = keys.each_ref().map(|key| public_key(program, key));
    let server = folder("oci-server");
    write(&server.join("rw0.key"), &keys[1]);
    write(&server.join("rw0.toml"), &config("10.77.0.2/24", &public[0], "10.77.0.1/32", ""));
    let client = folder("oci-client");
    write(&client.join("rw0.key"), &keys[0]);
    let endpoint = "endpoint = \"192.0.2.2\"\n";
    write(&client.join("rw0.toml"), &config("10.77.0.1/24", &public[1], "10.77.0.2/32", endpoint));

    let mut hosts = Hosts::make();
    let mut container = bundle.command("rw-oci-tunnel", None, |config| as_tunnel(config, &server));
    hosts.0.push(container.stdout(Stdio::null()).spawn().unwrap());
    let mut up = Command::new("ip");
    up.args(["netns", "exec", CLIENT, program, "up", client.join("rw0.toml").to_str().unwrap()]);
    hosts.0.push(up.env("ROPEWALK_RUN", &client).spawn().unwrap());
    // The server has no listener there, so its kernel refuses: an answer through the tunnel.
    let connect = ["netns", "exec", CLIENT, "timeout", "2", "bash", "-c", "exec 3<>/dev/tcp/10.77.0.2/9"];
    let answers = || {
        let output = Command::new("ip").args(connect).output().unwrap();
        String::from_utf8_lossy(&output.stderr).contains("refused")
    };
    assert!(eventually(answers), "the server in the container answers");
}

/// A container in the server's network, with the device and the privileges of a tunnel, and the configurations of a
/// folder.
fn as_tunnel(config: &mut Value, configurations: &Path) {
    for set in ["bounding", "effective", "permitted"] {
        let set = config["process"]["capabilities"][set].as_array_mut().unwrap();
        set.extend(CAPABILITIES.map(|name| json!(name)));
    }
    for namespace in config["linux"]["namespaces"].as_array_mut().unwrap() {
        if namespace["type"] == "network" {
            namespace["path"] = json!(format!("/run/netns/{SERVER}"));
        }
    }
    let tun = json!({"path": "/dev/net/tun", "type": "c", "major": 10, "minor": 200, "fileMode": 0o666});
    config["linux"]["devices"] = json!([tun]);
    let mounts = config["mounts"].as_array_mut().unwrap();
    mounts.retain(|mount| mount["destination"] != "/etc/ropewalk");
    mounts.push(json!({"destination": "/etc/ropewalk", "type": "bind", "source": configurations, "options": ["bind"]}));
    config["root"]["readonly"] = json!(false);
}

fn config(address: &str, public_key: &str, allowed: &str, endpoint: &str) -> String {
    format!(
        "[interface]\naddress = \"{address}\"\nprivate-key-file = \"rw0.key\"\n\n[[peer]]\n\
         public-key = \"{public_key}\"\nallowed-ips = \"{allowed}\"\n{endpoint}"
    )
}

fn public_key(program: &str, private_key: &str) -> String {
    let file = folder("oci-key").join("key");
    write(&file, private_key);
    let output = Command::new(program).arg("pubkey").stdin(fs::File::open(file).unwrap()).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Writes a file that only its owner may read.
fn write(file: &Path, text: &str) {
    fs::write(file, text).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

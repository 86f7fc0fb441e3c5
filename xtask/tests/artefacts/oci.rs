//! The image: run by runc and crun, unpacked by umoci, and loaded and run by podman, as a server in a network namespace of its
//! own.

use crate::support::{artefact, folder, is_there, run, static_program, version};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use testing::{Reason, eventually, skip};

/// The two hosts: a network namespace is called after the runtime and one of them.
const CLIENT: &str = "client";
const SERVER: &str = "server";
/// What a container may do that has the tunnel's device.
const CAPABILITIES: [&str; 6] =
    ["CAP_NET_ADMIN", "CAP_NET_BIND_SERVICE", "CAP_BPF", "CAP_DAC_OVERRIDE", "CAP_SETPCAP", "CAP_CHOWN"];

/// An unpacked image, as runtimes want it.
struct Bundle {
    runtime: &'static str,
    folder: PathBuf,
    config: Value,
}

impl Bundle {
    fn unpack(image: &Path, runtime: &'static str) -> Self {
        let folder = folder(&format!("oci-{runtime}"));
        let layout = folder.join("layout");
        fs::create_dir(&layout).unwrap();
        run("tar", &["--extract", "--file", image.to_str().unwrap(), "--directory", layout.to_str().unwrap()]);
        let bundle = folder.join("bundle");
        let image = format!("{}:{}", layout.display(), version().replace(['~', '+'], "-"));
        run("umoci", &["unpack", "--image", &image, bundle.to_str().unwrap()]);
        let config = serde_json::from_slice(&fs::read(bundle.join("config.json")).unwrap()).unwrap();
        Self { runtime, folder: bundle, config }
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
        let mut command = runtime(self.runtime);
        command.args(["run", "--bundle", self.folder.to_str().unwrap(), name]);
        command
    }

    /// What a program in it prints.
    fn output(&self, arguments: &[&str]) -> String {
        let output = self.command(&format!("rw-{}-once", self.runtime), Some(arguments), |_| ()).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

/// A runtime. crun refuses machines that have cgroups of both versions, and gets one version to see, and none to use.
fn runtime(name: &str) -> Command {
    if name != "crun" {
        return Command::new(name);
    }
    let mut command = with_one_cgroup_version(name);
    command.arg("--cgroup-manager=disabled");
    command
}

/// A program that sees one version of cgroups.
fn with_one_cgroup_version(program: &str) -> Command {
    let mut command = Command::new("unshare");
    let script = "umount --lazy /sys/fs/cgroup/unified 2> /dev/null; exec \"$@\"";
    command.args(["--mount", "sh", "-c", script, "sh", program]);
    command
}

/// Two hosts with one link, which are removed when the value is dropped.
struct Hosts {
    runtime: &'static str,
    processes: Vec<Child>,
}

impl Hosts {
    fn make(runtime: &'static str) -> Self {
        let hosts = Self { runtime, processes: Vec::new() };
        hosts.remove();
        let [client, server] = [CLIENT, SERVER].map(|host| hosts.namespace(host));
        for host in [&client, &server] {
            run("ip", &["netns", "add", host]);
        }
        run("ip", &["-n", &client, "link", "add", "eth0", "type", "veth", "peer", "eth0", "netns", &server]);
        for (host, address) in [(&client, "192.0.2.1/24"), (&server, "192.0.2.2/24")] {
            run("ip", &["-n", host, "address", "add", address, "dev", "eth0"]);
            run("ip", &["-n", host, "link", "set", "eth0", "up"]);
        }
        hosts
    }

    fn namespace(&self, host: &str) -> String {
        format!("rw-{}-{host}", self.runtime)
    }

    fn container(&self) -> String {
        format!("rw-{}-tunnel", self.runtime)
    }

    /// Removes the container and the namespaces, also those of a run that was killed.
    fn remove(&self) {
        let mut delete = match self.runtime {
            "podman" => podman(&["rm", "--force", "--ignore", "--time=0"]),
            name => {
                let mut command = runtime(name);
                command.args(["delete", "--force"]);
                command
            }
        };
        let _ = delete.arg(self.container()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        for host in [CLIENT, SERVER] {
            let _ = Command::new("ip").args(["netns", "del", &self.namespace(host)]).stderr(Stdio::null()).status();
        }
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.remove();
        for child in &mut self.processes {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs the tunnel's server in a container of the image, which `container` starts with a folder of configurations, and its
/// client outside. The server answers through the tunnel.
fn assert_serves(runtime: &'static str, container: impl FnOnce(&Hosts, &Path) -> Command) {
    let program = static_program().unwrap().to_str().unwrap();
    let keys = [CLIENT, SERVER].map(|_| run(program, &["genkey"]));
    let public = keys.each_ref().map(|key| public_key(program, runtime, key));
    let [server, client] = [SERVER, CLIENT].map(|host| folder(&format!("oci-{runtime}-{host}")));
    write(&server.join("rw0.key"), &keys[1]);
    write(&server.join("rw0.toml"), &config("10.77.0.2/24", &public[0], "10.77.0.1/32", ""));
    let endpoint = "endpoint = \"192.0.2.2\"\n";
    write(&client.join("rw0.key"), &keys[0]);
    write(&client.join("rw0.toml"), &config("10.77.0.1/24", &public[1], "10.77.0.2/32", endpoint));

    let mut hosts = Hosts::make(runtime);
    let mut container = container(&hosts, &server);
    hosts.processes.push(container.stdout(Stdio::null()).spawn().unwrap());
    let mut up = Command::new("ip");
    up.args(["netns", "exec", &hosts.namespace(CLIENT), program, "up", client.join("rw0.toml").to_str().unwrap()]);
    hosts.processes.push(up.env("ROPEWALK_RUN", &client).spawn().unwrap());
    let pings = || {
        let mut ping = Command::new("ip");
        ping.args(["netns", "exec", &hosts.namespace(CLIENT), "ping", "-c1", "-W2", "10.77.0.2"]);
        ping.stdout(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    assert!(eventually(pings), "the server in the container answers");
}

/// The image, for a test that needs these programs and root; otherwise the test is skipped.
fn image_for(programs: &[&str]) -> Option<PathBuf> {
    if !programs.iter().all(|program| is_there(program)) {
        return None;
    }
    if run("id", &["-u"]) != "0\n" {
        skip(Reason::Missing, "root");
        return None;
    }
    artefact("oci")
}

#[test]
fn runc_runs_it_as_the_server_of_a_tunnel() {
    serves_in_a_bundle("runc");
}

#[test]
fn crun_runs_it_as_the_server_of_a_tunnel() {
    serves_in_a_bundle("crun");
}

/// The image's bundle, run by a runtime without a manager.
fn serves_in_a_bundle(runtime: &'static str) {
    let Some(image) = image_for(&["umoci", runtime]) else { return };
    let bundle = Bundle::unpack(&image, runtime);
    assert!(bundle.output(&["/usr/sbin/nft", "--version"]).starts_with("nftables v"));
    assert_serves(runtime, |hosts, server| {
        let namespace = hosts.namespace(SERVER);
        bundle.command(&hosts.container(), None, |config| as_tunnel(config, &namespace, server))
    });
}

/// With the options that the documentation gives.
#[test]
fn podman_loads_it_and_runs_it_as_the_server_of_a_tunnel() {
    let Some(image) = image_for(&["podman"]) else { return };
    let loaded = podman(&["load", "--quiet", "--input", image.to_str().unwrap()]).output().unwrap();
    let printed = String::from_utf8_lossy(&loaded.stdout).into_owned();
    assert!(loaded.status.success(), "{}", String::from_utf8_lossy(&loaded.stderr));
    let name = printed.trim().strip_prefix("Loaded image: ").unwrap_or_else(|| panic!("{printed}")).to_owned();
    assert_eq!(name, format!("localhost/ropewalk:{}", version().replace(['~', '+'], "-")));
    assert_serves("podman", |hosts, server| {
        let network = format!("ns:/run/netns/{}", hosts.namespace(SERVER));
        let mut command = podman(&["run", "--rm", "--cap-add=NET_ADMIN", "--device=/dev/net/tun"]);
        // Its defaults are more than root in a container of this machine may have.
        command.args(["--cgroups=disabled", "--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"]);
        command.args(["--name", &hosts.container(), "--network", &network]);
        command.args(["--volume", &format!("{}:/etc/ropewalk", server.display()), &name]);
        command
    });
}

/// Podman with images and containers of this test only.
fn podman(arguments: &[&str]) -> Command {
    let store = Path::new(env!("CARGO_TARGET_TMPDIR")).join("podman");
    let [root, run] = ["root", "run"].map(|name| store.join(name).display().to_string());
    let mut command = with_one_cgroup_version("podman");
    command.args(["--root", &root, "--runroot", &run, "--storage-driver=vfs", "--events-backend=none"]);
    command.args(["--cgroup-manager=cgroupfs"]).args(arguments);
    command
}

/// A container in the server's network, with the device and the privileges of a tunnel, and the configurations of a
/// folder.
fn as_tunnel(config: &mut Value, network: &str, configurations: &Path) {
    for set in ["bounding", "effective", "permitted"] {
        let set = config["process"]["capabilities"][set].as_array_mut().unwrap();
        set.extend(CAPABILITIES.map(|name| json!(name)));
    }
    for namespace in config["linux"]["namespaces"].as_array_mut().unwrap() {
        if namespace["type"] == "network" {
            namespace["path"] = json!(format!("/run/netns/{network}"));
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

fn public_key(program: &str, runtime: &str, private_key: &str) -> String {
    let file = folder(&format!("oci-{runtime}-key")).join("key");
    write(&file, private_key);
    let output = Command::new(program).arg("pubkey").stdin(fs::File::open(file).unwrap()).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Writes a file that only its owner may read.
fn write(file: &Path, text: &str) {
    fs::write(file, text).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

//! What OpenWrt runs: the init script, netifd's protocol and LuCI's form, with stand-ins for what OpenWrt has.
//!
//! The stand-in for uci reads files of lines `SECTION TYPE OPTION VALUE`.

use crate::support::{folder, is_there, run};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use testing::{Reason, skip};

const SCRIPTS: [&str; 4] = ["ropewalk.init", "ropewalk-kernel.init", "proto.sh", "uci-defaults"];

/// OpenWrt's functions, as its /lib/functions.sh and /lib/netifd/netifd-proto.sh define them.
const FUNCTIONS: &str = r#"
config_load() { uci=$CONFIGS/$1; }
config_get() { eval "$1=\$(sed -n 's/^$2 [^ ]* $3 //p' \"\$uci\" | paste -s -d ' '); [ -n \"\$$1\" ] || $1='$4'"; }
config_get_bool() { config_get "$@"; }
config_foreach() { for section in $(grep -E "^[^ ]+ $2( |\$)" "$uci" | cut -d ' ' -f 1 | uniq); do "$1" "$section"; done; }
json_get_vars() { for name; do config_get "$name" "$INTERFACE" "$name"; done; }
json_get_values() { config_get "$1" "$INTERFACE" "$2"; }
network_get_device() { [ "$2" != wan ] || eval "$1=pppoe-wan"; }
logger() { echo "logger $*"; }
"#;
/// What changes the system is printed.
const CALLS: [&str; 12] = [
    "procd_open_instance",
    "procd_set_param",
    "procd_close_instance",
    "proto_run_command",
    "proto_init_update",
    "proto_add_ipv4_address",
    "proto_add_ipv6_address",
    "proto_send_update",
    "proto_notify_error",
    "proto_block_restart",
    "proto_kill_command",
    "seq",
];

fn source(name: &str) -> String {
    fs::read_to_string(format!("{}/../packaging/openwrt/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Runs functions of a script with these configurations; returns what they print and call.
fn call(script: &str, configs: &Path, settings: &str, line: &str) -> String {
    let calls: String = CALLS.map(|name| format!("{name}() {{ echo \"{name} $*\"; }}\n")).concat();
    let text = format!(
        "CONFIGS={}\nINCLUDE_ONLY=1\n{FUNCTIONS}{calls}{}\n{settings}\n{line}\n",
        configs.display(),
        source(script)
    );
    run("sh", &["-c", &text])
}

#[test]
fn the_scripts_are_of_the_shell_of_routers() {
    for name in SCRIPTS {
        let script = format!("{}/../packaging/openwrt/{name}", env!("CARGO_MANIFEST_DIR"));
        run("sh", &["-n", &script]);
        if is_there("busybox") {
            run("busybox", &["ash", "-n", &script]);
        }
    }
}

#[test]
fn the_init_script_runs_the_files_that_no_section_turns_off() {
    let folder = folder("openwrt-init");
    for name in ["rw0.toml", "rw0.peers.toml", "rw1.toml", "rw2.toml", "rw4.toml", "ropewalk-rw4"] {
        fs::write(folder.join(name), "").unwrap();
    }
    let tunnels = folder.display();
    let config =
        format!("rw1 tunnel enabled 0\nrw2 tunnel enabled 1\nrw2 tunnel history {tunnels}/usb\nrw3 tunnel enabled 1\n");
    fs::write(folder.join("ropewalk"), config).unwrap();
    let settings = format!("CONFIG_FOLDER={tunnels}\nINIT_FOLDER={tunnels}\nSTATE_FOLDER={tunnels}/state");
    let printed = call("ropewalk.init", &folder, &settings, "start_service");
    let lines = |start: &str| -> Vec<String> {
        printed
            .lines()
            .filter_map(|line| line.strip_prefix(start))
            .map(|line| line.replace(&tunnels.to_string(), "T"))
            .collect()
    };
    assert_eq!(lines("procd_open_instance "), ["rw2", "rw0"], "{printed}");
    let expected = ["/usr/bin/ropewalk up T/rw2.toml", "/usr/bin/ropewalk up T/rw0.toml"];
    assert_eq!(lines("procd_set_param command "), expected);
    assert_eq!(lines("procd_set_param env STATE_DIRECTORY="), ["T/usb", "T/state"]);
    assert!(lines("logger ").iter().any(|line| line.contains("T/rw3.toml is missing")), "{printed}");
}

/// Stand-ins for what loads programs without the program: bpftool, with a list of what there is.
const BPFTOOL: &str = r#"
exec 3>&1
network_get_ipaddr() { eval "$1=192.0.2.7"; }
ip() { echo "ip $*" >&3; }
sysctl() { echo "sysctl $*" >&3; }
bpftool() {
    echo "bpftool $*" >&3
    name=${3##*/}
    case $2 in register) echo "rw_${name%.bpf.o}" >> "$AVAILABLE" ;; *) sed -i "/^$4\$/d" "$AVAILABLE" ;; esac
}
"#;

#[test]
fn the_kernels_init_script_loads_what_is_not_there_and_unloads_it() {
    let folder = folder("openwrt-kernel");
    fs::create_dir_all(folder.join("lib/functions")).unwrap();
    fs::write(folder.join("lib/functions/network.sh"), "").unwrap();
    fs::write(folder.join("available"), "cubic\nrw_olia\n").unwrap();
    let config = "kernel kernel program lia\nkernel kernel program olia\nkernel kernel program coupled-bbr\n\
                  kernel kernel default lia\nwan endpoint network wan\nlte endpoint network lte\n";
    fs::write(folder.join("ropewalk-kernel"), config).unwrap();
    let path = folder.display();
    let settings = format!("IPKG_INSTROOT={path} PROGRAM=/none OBJECTS=/objects AVAILABLE={path}/available\n{BPFTOOL}");
    let started = call("ropewalk-kernel.init", &folder, &settings, "start_service");
    let expected = "bpftool struct_ops register /objects/lia.bpf.o\n\
                    bpftool struct_ops register /objects/coupled_bbr.bpf.o\n\
                    sysctl -q -w net.ipv4.tcp_congestion_control=rw_lia\n\
                    ip mptcp limits set subflows 2 add_addr_accepted 2\n\
                    ip mptcp endpoint add 192.0.2.7 dev pppoe-wan subflow\n";
    assert_eq!(started, expected);
    let stopped = call("ropewalk-kernel.init", &folder, &settings, "stop_service");
    assert_eq!(stopped.matches("unregister name rw_").count(), 3, "{stopped}");
    assert_eq!(fs::read_to_string(folder.join("available")).unwrap(), "cubic\n");
    fs::write(folder.join("available"), "cubic\n").unwrap();
    let refused = format!("{settings}bpftool() {{ return 1; }}");
    let started = call("ropewalk-kernel.init", &folder, &refused, "start_service");
    assert_eq!(started.matches("is not loaded: does this kernel have BTF?").count(), 3, "{started}");
}

#[test]
fn the_history_of_a_router_is_in_memory() {
    assert!(source("ropewalk.init").lines().any(|line| line == "STATE_FOLDER=/tmp/ropewalk"));
    let kept = source("keep");
    assert!(!kept.contains("/var") && !kept.contains("/tmp"), "{kept}");
}

/// An interface with a peer and two paths, whose name has what TOML must not take for its own.
const NETWORK: &str = "rw0 interface proto ropewalk
rw0 interface private_key oKxDqwMVw2Kh7tZ5UklDNKtEoHbkE9cR9Y1vXW5oaVk=
rw0 interface addresses 10.77.0.2/24
rw0 interface addresses fd77::2/64
rw0 interface mtu 1420
rw0 interface listen_port 0 ]
rw0 interface uplinks auto
rw0 interface routing auto
p1 ropewalk_rw0 public_key hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=
p1 ropewalk_rw0 endpoint 203.0.113.1
p1 ropewalk_rw0 endpoint [2001:db8::1]:4754
p1 ropewalk_rw0 allowed_ips 0.0.0.0/0
p1 ropewalk_rw0 allowed_ips ::/0
p2 ropewalk_rw0 disabled 1
u1 ropewalk_path_rw0 network wan
u1 ropewalk_path_rw0 quota 50GB
u2 ropewalk_path_rw0 interface ww\"an0
u2 ropewalk_path_rw0 metered 1
other ropewalk_rw1 public_key none
";
const TOML: &str = r#"# Of /etc/config/network: changes are lost.
[interface]
name = "rw0"
private-key = "oKxDqwMVw2Kh7tZ5UklDNKtEoHbkE9cR9Y1vXW5oaVk="
address = ["10.77.0.2/24", "fd77::2/64"]
mtu = 1420
uplinks = "auto"
routing = "auto"

[[peer]]
public-key = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="
endpoint = ["203.0.113.1", "[2001:db8::1]:4754"]
allowed-ips = ["0.0.0.0/0", "::/0"]

[[path]]
interface = "pppoe-wan"
quota = "50GB"

[[path]]
interface = "ww\"an0"
metered = true

[tunnel]
"#;

#[test]
fn an_interface_of_uci_becomes_a_configuration_and_the_daemon_its_command() {
    let folder = folder("openwrt-proto");
    fs::write(folder.join("network"), NETWORK).unwrap();
    let run_folder = folder.join("run");
    let settings = |program: &str| {
        format!("INTERFACE=rw0\nconfig_load network\nROPEWALK={program}\nROPEWALK_FOLDER={}", run_folder.display())
    };
    let printed = call("proto.sh", &folder, &settings("true"), "proto_ropewalk_setup rw0");
    assert_eq!(fs::read_to_string(run_folder.join("rw0.toml")).unwrap(), TOML);
    for line in [
        &*format!("proto_run_command rw0 true up {}/rw0.toml", run_folder.display()),
        "proto_init_update rw0 1",
        "proto_add_ipv4_address 10.77.0.2 24",
        "proto_add_ipv6_address fd77::2 64",
        "proto_send_update rw0",
    ] {
        assert!(printed.lines().any(|printed| printed == line), "{line} in {printed}");
    }
    // A program that refuses the configuration.
    let printed = call("proto.sh", &folder, &settings("false"), "proto_ropewalk_setup rw0 || true");
    assert!(printed.contains("proto_block_restart rw0") && !printed.contains("proto_run_command"), "{printed}");
    call("proto.sh", &folder, &settings("true"), "proto_ropewalk_teardown rw0");
    assert!(!run_folder.join("rw0.toml").exists(), "it has the private key");
}

/// Runs LuCI's form with stand-ins, and prints the options of its sections.
const RENDER: &str = r"
const option = () => ({ value() {}, subsection: null });
const section = () => ({
    option: (type, name) => (console.log(name), option()),
    taboption: (tab, type, name) => {
        if (!name.startsWith('_')) console.log(name);
        return Object.assign(option(), { subsection: section() });
    },
    tab() {}, section: 'rw0',
});
String.prototype.format = function(value) { return this.replace('%s', value); };
const form = new Proxy({}, { get: (_, name) => name });
const network = { registerErrorCode() {}, registerProtocol: (name, protocol) => protocol };
const source = require('fs').readFileSync(0, 'utf8');
new Function('form', 'network', '_', source)(form, network, text => text).renderFormOptions(section());
";

#[test]
fn the_form_of_luci_has_the_options_of_the_protocol() {
    if Command::new("node").arg("--version").output().is_err() {
        return skip(Reason::Missing, "node: apt-get install nodejs");
    }
    let file = format!("{}/../packaging/openwrt/luci.js", env!("CARGO_MANIFEST_DIR"));
    let printed = run("sh", &["-c", "node -e \"$1\" < \"$2\"", "sh", RENDER, &file]);
    let form: BTreeSet<&str> = printed.lines().collect();
    let script = source("proto.sh");
    let of_interface = script.lines().filter_map(|line| line.trim().strip_prefix("proto_config_add_"));
    let of_interface = of_interface.filter_map(|line| line.split_once(' ')).map(|(_, name)| name);
    let mut expected: BTreeSet<&str> =
        of_interface.map(|name| name.trim_matches('\'').split(':').next().unwrap()).collect();
    expected.extend(["disabled", "name", "public_key", "preshared_key", "endpoint", "allowed_ips"]);
    expected.extend(["network", "interface", "metered", "secondary", "backup", "quota", "rate"]);
    assert_eq!(form, expected);
}

//! Upgrades under traffic, a configuration that the new program refuses, and a downgrade.

use crate::debian::BOOKWORM;
use crate::internet::{Internet, WEB};
use crate::machine::Machine;
use crate::package;
use crate::pair::Pair;
use std::fs;
use std::io::Write as _;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use testing::eventually;

/// What the setup of a client by 0.1.0 wrote down of itself: nothing that is kept.
const EARLY_RECORD: &str = r#"{"interface":"rw1","is_complete":true,"server":null,"client":null,"undo":[]}"#;

/// A TCP connection from a host of the Internet to the client, which carries numbers until it is finished.
struct Stream {
    is_ending: Arc<AtomicBool>,
    sender: JoinHandle<Vec<u8>>,
    receiver: Child,
}

impl Stream {
    fn start(internet: &Internet, client: &Machine) -> Self {
        let listener = internet.listen(format!("{WEB}:7000").parse().unwrap());
        let is_ending = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&is_ending);
        let sender = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut sent = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                let line = format!("{:999}\n", sent.len());
                stream.write_all(line.as_bytes()).unwrap();
                sent.extend(line.into_bytes());
                thread::sleep(Duration::from_millis(1));
            }
            sent
        });
        let mut receiver = client.command(&format!("cat < /dev/tcp/{WEB}/7000"));
        let receiver = receiver.stdout(Stdio::piped()).spawn().unwrap();
        Self { is_ending, sender, receiver }
    }

    /// What was sent, and what has arrived.
    fn finish(self) -> (Vec<u8>, Vec<u8>) {
        self.is_ending.store(true, Ordering::Relaxed);
        let received = self.receiver.wait_with_output().unwrap().stdout;
        (self.sender.join().unwrap(), received)
    }
}

/// Installs a package of the machine's over another one.
fn install(machine: &Machine, package: &str) -> String {
    machine.run(&format!("apt-get install --yes --allow-downgrades /srv/{package}.deb"))
}

fn daemon(machine: &Machine) -> String {
    machine.run("systemctl show --property MainPID --value ropewalk@rw0").trim().to_owned()
}

/// The program of the keeper; `(deleted)` ends that of an earlier package.
fn keeper(machine: &Machine) -> String {
    machine.run("readlink /proc/$(systemctl show --property MainPID --value ropewalk-keep@rw0)/exe")
}

/// Whether the daemon runs the installed program.
fn is_current(machine: &Machine) -> bool {
    let status = machine.output("ropewalk show --json rw0").0;
    let status: serde_json::Value = serde_json::from_str(&status).unwrap_or_default();
    let version = status["program_version"].as_str().unwrap_or_default();
    machine.run("ropewalk --version") == format!("ropewalk {version}\n")
}

#[test]
fn an_upgrade_under_traffic_runs_the_new_program_and_loses_no_byte() {
    let pair = Pair::new(BOOKWORM, |machine| {
        machine.write("/srv/earlier.deb", fs::read(package::earlier()).unwrap());
    });
    let Some(pair) = pair else { return };
    let (server, client) = (&pair.server, &pair.client);
    for machine in [server, client] {
        install(machine, "earlier");
    }
    pair.set_up();
    pair.wait_for_paths(2);
    let stream = Stream::start(&pair.internet, client);
    let config = client.run("sha256sum /etc/ropewalk/*");
    client.run(&format!("echo '{EARLY_RECORD}' > /var/lib/ropewalk-setup/rw1.json"));

    let earlier_daemon = daemon(client);
    let printed = install(client, "ropewalk");
    assert!(eventually(|| is_current(client)), "{printed}");
    let told = "ropewalk: rw1 was set up by an earlier version";
    assert!(printed.contains(told) && !printed.contains("rw0 was set up by"), "{printed}");
    client.run("ropewalk setup remove --name rw1 --yes");
    assert_ne!(daemon(client), earlier_daemon);
    assert_eq!(keeper(client), "/usr/bin/ropewalk\n");
    assert!(!client.run("ropewalk show").contains("is installed"));
    pair.wait_for_paths(2);

    // The server's configuration has something that the new program does not know.
    server.run("cp -a /etc/ropewalk/rw0.toml /srv/; echo '[nonsense]' >> /etc/ropewalk/rw0.toml");
    let earlier_daemon = daemon(server);
    let printed = install(server, "ropewalk");
    assert!(printed.contains("rw0 still runs version 0.0") && printed.contains("nonsense"), "{printed}");
    assert_eq!(daemon(server), earlier_daemon);
    server.run("cp -a /srv/rw0.toml /etc/ropewalk/");
    let remedy = "`systemctl restart ropewalk@rw0`";
    for line in ["ropewalk show", "ropewalk check --live rw0"] {
        let printed = server.output(line).0;
        assert!(printed.contains("rw0 runs version 0.0") && printed.contains(remedy), "{line}: {printed}");
    }
    server.run("systemctl restart ropewalk@rw0");
    assert!(is_current(server));
    pair.wait_for_paths(2);

    let (sent, received) = stream.finish();
    assert!(!sent.is_empty() && sent == received, "{} bytes sent, {} received", sent.len(), received.len());
    assert_eq!(client.run("sha256sum /etc/ropewalk/*"), config);
    for machine in [server, client] {
        install(machine, "earlier");
        assert!(eventually(|| is_current(machine)));
    }
    pair.wait_for_paths(2);
}

//! Several data threads: two clients of different threads, a reload that takes one away and brings it back, other
//! addresses of a client, and datagrams of strangers.

use crate::second_daemon::{SecondDaemon, is_reached};
use crate::traffic::Transfer;
use crate::tunnel_pair::{DEVICE, IPV4, PORT, TunnelPair};
use daemon::keys;
use lab::testbed::{LEFT, RIGHT};
use std::fs;
use testing::eventually;

/// The addresses of both ends of the first client's tunnel.
const FIRST: [&str; 2] = ["10.77.0.1", "10.77.0.2"];
/// The addresses of both ends of the second client's tunnel.
const SECOND: [&str; 2] = ["10.77.1.1", "10.77.1.2"];

/// A second client on the left host, and the server's table for it.
fn second_client(pair: &TunnelPair) -> (SecondDaemon, String) {
    let private = keys::genkey();
    let public = keys::pubkey(&private).unwrap();
    let server = keys::pubkey(pair.private_key(RIGHT)).unwrap();
    let device = pair.testbed.device(0);
    let text = format!(
        "[interface]\naddress = \"{}/24\"\nprivate-key = \"{}\"\n[[peer]]\npublic-key = \"{server}\"\nallowed-ips = \
         \"{}/32\"\n[[path]]\nname = \"{device}\"\ninterface = \"{device}\"\nendpoint = \"{}\"\nlisten-port = {}\n",
        SECOND[0],
        *private,
        SECOND[1],
        pair.testbed.v4(0, RIGHT),
        PORT + 2
    );
    let table = format!("\n[[peer]]\npublic-key = \"{public}\"\nallowed-ips = \"{}/32\"\n", SECOND[0]);
    (SecondDaemon::start(pair, LEFT, &text), table)
}

fn assert_both_reach_each_other(pair: &TunnelPair) {
    for [left, right] in [FIRST, SECOND] {
        assert!(is_reached(pair, LEFT, [left, right]), "{right}: {:#?}", pair.status(RIGHT));
        assert!(is_reached(pair, RIGHT, [right, left]), "{left}: {:#?}", pair.status(RIGHT));
    }
}

/// A server with two data threads and two clients, each in its own thread.
fn two_clients() -> Option<(TunnelPair, SecondDaemon, String)> {
    let mut pair = TunnelPair::configured(IPV4, &[""])?;
    let (second, table) = second_client(&pair);
    pair.edit(RIGHT, |text| {
        let addresses = format!("address = [\"10.77.0.2/24\", \"{}/24\"]\nthreads = 2", SECOND[1]);
        text.replace("address = \"10.77.0.2/24\"", &addresses) + &table
    });
    pair.start(RIGHT);
    pair.start(LEFT);
    pair.wait_until_up(LEFT);
    Some((pair, second, table))
}

fn data_threads(pid: u32) -> usize {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    tasks.filter(|task| fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim() == "data")).count()
}

#[test]
fn clients_of_two_threads_are_reached_in_both_directions_through_reloads() {
    let Some((pair, _second, table)) = two_clients() else { return };
    assert_eq!(data_threads(pair.pid(RIGHT)), 2);
    assert_both_reach_each_other(&pair);
    let status = pair.status(RIGHT);
    assert_eq!(status.peers.len(), 2);
    assert!(status.peers.iter().all(|peer| peer.handshake_age_ms.is_some()), "{status:#?}");
    let public = table.split('"').nth(1).unwrap();
    let transfer = Transfer::endless(&pair, LEFT);
    let reverse_transfer = Transfer::endless(&pair, RIGHT);
    for _ in 0..2 {
        pair.edit(RIGHT, |text| text.replace(&table, ""));
        assert_eq!(pair.reload(RIGHT).unwrap(), format!("peer {public}: removed\n"));
        assert_eq!(pair.status(RIGHT).peers.len(), 1);
        transfer.wait_for(1 << 20);
        pair.edit(RIGHT, |text| text + &table);
        assert_eq!(pair.reload(RIGHT).unwrap(), format!("peer {public}: added\n"));
        let [left, right] = SECOND;
        assert!(is_reached(&pair, LEFT, [left, right]) && is_reached(&pair, RIGHT, [right, left]));
        reverse_transfer.wait_for(1 << 20);
    }
    // New sockets in both threads, at another port and back: they are opened in the order of the threads.
    for port in [PORT + 2, PORT] {
        let line = |port: u16| format!("threads = 2\nlisten-port = {port}");
        pair.edit(RIGHT, |text| match text.contains("listen-port") {
            true => text.replace(&line(PORT + 2), &line(port)),
            false => text.replace("threads = 2", &line(port)),
        });
        let changes = pair.reload(RIGHT).unwrap();
        assert!(changes.contains("added"), "{changes}");
    }
    assert_both_reach_each_other(&pair);
    assert!(transfer.stop() > 0 && reverse_transfer.stop() > 0);
}

#[test]
fn a_client_that_comes_from_another_address_and_strangers_disturb_no_thread() {
    let Some((mut pair, _second, _)) = two_clients() else { return };
    assert_both_reach_each_other(&pair);
    // Sealed datagrams and handshake messages of all threads' indices, and of threads that do not exist.
    let server = pair.testbed.v4(0, RIGHT);
    for first_byte in ["00", "10", "20", "f0"] {
        for head in [
            format!("\\x30\\x00\\x88\\xb5\\x{first_byte}"),
            format!("\\x00\\x00\\x88\\xb6\\x02\\x02\\x00\\x00\\x00\\x{first_byte}"),
        ] {
            for tail in ["", "0123456789012345678901234567890123456789"] {
                let script = format!("printf '{head}{tail}' > /dev/udp/{server}/{PORT}");
                let mut command = pair.testbed.command(LEFT, "bash");
                assert!(command.args(["-c", &script]).status().unwrap().success());
            }
        }
    }
    let refused = || pair.status(RIGHT).drops.iter().filter(|drop| drop.packets > 0).count();
    assert!(eventually(|| refused() > 0), "{:#?}", pair.status(RIGHT).drops);
    assert_both_reach_each_other(&pair);
    // The client starts again at another port: the first thread admits its initiation, whichever thread it belongs to.
    for port in [PORT + 7, PORT + 8] {
        pair.stop(LEFT);
        pair.edit(LEFT, |text| {
            let line = text.lines().find(|line| line.starts_with("listen-port")).unwrap().to_owned();
            text.replace(&line, &format!("listen-port = {port}"))
        });
        pair.start(LEFT);
        pair.wait_until_up(LEFT);
        assert_both_reach_each_other(&pair);
    }
}

#[test]
fn several_threads_with_the_relay_are_refused_with_the_reason() {
    let Some(pair) = TunnelPair::configured(IPV4, &[""]) else { return };
    pair.edit(RIGHT, |text| text.replace("[interface]", "[interface]\nthreads = 2") + "\n[tunnel]\nrelay = \"tcp\"\n");
    let file = pair.folder(RIGHT).join(format!("{DEVICE}.toml"));
    let output = pair.command(RIGHT).arg("check").arg(file).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success() && text.contains("the relay has one data thread"), "{text}");
}

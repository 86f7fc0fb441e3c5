//! A client with two servers: it moves when the one that it uses dies, and tells so. A server with two addresses.

use crate::causes::events;
use crate::second_daemon::{SecondDaemon, is_reached};
use crate::tunnel_pair::{IPV4, PORT, TunnelPair};
use daemon::event::{Event, EventKind};
use daemon::keys;
use daemon::status::PathState;
use lab::testbed::{LEFT, RIGHT};
use testing::eventually;

/// The second server's port. The one after the first server's is that of its speed tests.
const SECOND_PORT: u16 = PORT + 2;

#[test]
fn a_client_moves_to_its_second_server_when_the_first_dies() {
    let Some(mut pair) = TunnelPair::configured(IPV4, &[""]) else { return };
    let private = keys::genkey();
    let [client, second] = [keys::pubkey(pair.private_key(LEFT)), keys::pubkey(&private)].map(Result::unwrap);
    // The second server has the same inner address; the host's route is the first one's as long as that lives.
    let configuration = format!(
        "[interface]\naddress = \"10.77.0.2/24\"\nprivate-key = \"{}\"\nlisten-port = {SECOND_PORT}\nroutes = false\n\
         [[peer]]\npublic-key = \"{client}\"\nallowed-ips = \"10.77.0.1/32\"\n",
        *private
    );
    let _second = SecondDaemon::start(&pair, RIGHT, &configuration);
    let server = pair.testbed.v4(0, RIGHT);
    pair.edit(LEFT, |text| {
        let line = text.lines().find(|line| line.starts_with("endpoint")).unwrap().to_owned();
        let networks = "allowed-ips = \"10.77.0.2/32\"\n";
        let first = format!("{networks}priority = 1\nendpoint = \"{server}:{PORT}\"\n");
        let second = format!(
            "\n[[peer]]\npublic-key = \"{second}\"\n{networks}priority = 2\nendpoint = \"{server}:{SECOND_PORT}\"\n"
        );
        text.replace(&format!("{line}\n"), "").replace(networks, &first) + &second
    });
    pair.start(RIGHT);
    pair.start(LEFT);
    pair.wait_until_started(LEFT);
    let active = |pair: &TunnelPair| pair.status(LEFT).peers.iter().map(|peer| peer.active).collect::<Vec<_>>();
    let both_work = |pair: &TunnelPair| pair.status(LEFT).peers.iter().all(|peer| peer.handshake_age_ms.is_some());
    assert!(eventually(|| both_work(&pair)), "{:#?}", pair.status(LEFT));
    assert_eq!(active(&pair).len(), 2);
    assert!(is_reached(&pair, LEFT, ["10.77.0.1", "10.77.0.2"]));
    pair.kill(RIGHT);
    assert!(is_reached(&pair, LEFT, ["10.77.0.1", "10.77.0.2"]), "{:#?}", pair.status(LEFT));
    assert_eq!(active(&pair), [Some(false), Some(true)]);
    let has_moved = |event: &Event| {
        event.kind == EventKind::ServerMoved && event.peer.as_deref() == Some(second.to_string().as_str())
    };
    assert!(eventually(|| events(&pair, LEFT, 0).iter().any(has_moved)), "{:#?}", events(&pair, LEFT, 0));
}

#[test]
fn a_path_goes_on_to_the_next_address_of_its_server_when_one_does_not_answer() {
    let Some(mut pair) = TunnelPair::configured(IPV4, &[""]) else { return };
    let [v6, v4] = [pair.testbed.v6(0, RIGHT).to_string(), pair.testbed.v4(0, RIGHT).to_string()];
    let source = format!("source = \"{}\"\n", pair.testbed.v4(0, LEFT));
    pair.edit(LEFT, |text| text.replace(&source, "").replace(&format!("\"{v4}\""), &format!("[\"{v6}\", \"{v4}\"]")));
    let device = pair.testbed.device(0);
    let remote = |pair: &TunnelPair| pair.status(LEFT).peers[0].paths.last().and_then(|path| path.remote.clone());
    let is_at = |pair: &TunnelPair, remotes: &str| {
        eventually(|| remote(pair).is_some_and(|remote| remote.starts_with(remotes)) && is_up(pair))
    };
    // The first address is not there at the start.
    pair.testbed.run(RIGHT, &format!("ip -6 address del {v6}/64 dev {device}")).unwrap();
    pair.start(RIGHT);
    pair.start(LEFT);
    pair.wait_until_started(LEFT);
    assert!(is_at(&pair, &v4), "{:#?}", pair.status(LEFT));
    assert!(is_reached(&pair, LEFT, ["10.77.0.1", "10.77.0.2"]));
    // It is there again, and the other one disappears.
    pair.testbed.run(RIGHT, &format!("ip -6 address add {v6}/64 dev {device} nodad")).unwrap();
    pair.testbed.run(RIGHT, &format!("ip address del {v4}/24 dev {device}")).unwrap();
    assert!(is_at(&pair, &format!("[{v6}]")), "{:#?}", pair.status(LEFT));
    assert!(is_reached(&pair, LEFT, ["10.77.0.1", "10.77.0.2"]));
    let text = format!("path {device}: endpoint [{v6}]:{PORT} or {v4}:{PORT} is [{v6}]:{PORT} now, it was {v4}:{PORT}");
    let is_told = |event: &Event| event.kind == EventKind::Endpoint && event.message == text;
    assert!(eventually(|| events(&pair, LEFT, 0).iter().any(is_told)), "{:#?}", events(&pair, LEFT, 0));
}

fn is_up(pair: &TunnelPair) -> bool {
    pair.status(LEFT).peers[0].paths.iter().any(|path| path.state == PathState::Up)
}

//! The enrolment port of a server, and tokens whose time ends.

use crate::tunnel_pair::{IPV4, TunnelPair};
use daemon::config::unix_time;
use daemon::control_plane::{ENROLMENT_PORT, EnrolError, enrol};
use daemon::keys;
use lab::testbed::{LEFT, RIGHT};
use seal::PublicKey;
use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::fs::PermissionsExt;
use testing::{MINUTE, eventually};

/// A pair whose right end knows the left one by the one-time key of a token, which expires in `seconds`.
fn pair_with_token(seconds: u64) -> Option<TunnelPair> {
    let mut pair = TunnelPair::configured(IPV4, &["rate=10mbit"])?;
    let file = pair.folder(RIGHT).join("peers.toml");
    pair.edit(RIGHT, |text| {
        let (interface, peer) = text.split_once("[[peer]]").unwrap();
        let peer = format!("[[peer]]\nname = \"laptop\"{peer}token-expires = {}\n", unix_time() + seconds);
        let mut output = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file).unwrap();
        output.write_all(peer.as_bytes()).unwrap();
        format!("{}\npeers-file = \"peers.toml\"\n", interface.trim_end())
    });
    [RIGHT, LEFT].into_iter().for_each(|host| pair.start(host));
    Some(pair)
}

fn right_address() -> IpAddr {
    IPV4.inner_address(RIGHT)
}

/// A connection to the enrolment port, from inside the tunnel.
fn connect(pair: &TunnelPair) -> TcpStream {
    let address = SocketAddr::new(right_address(), ENROLMENT_PORT);
    let stream = pair.testbed.within(LEFT, move || Ok(TcpStream::connect_timeout(&address, MINUTE)?)).unwrap();
    stream.set_read_timeout(Some(MINUTE)).unwrap();
    stream
}

/// What the server answers to `bytes`; nothing if it closes before it has read them.
fn answer(pair: &TunnelPair, bytes: &[u8]) -> String {
    let mut stream = connect(pair);
    let _ = stream.write_all(bytes).and_then(|()| stream.shutdown(std::net::Shutdown::Write));
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

fn enrol_from_left(pair: &TunnelPair, key: PublicKey) -> Result<(), EnrolError> {
    pair.testbed.within(LEFT, move || Ok(enrol(right_address(), key, &[]).map(drop))).unwrap()
}

fn public_key(private: &str) -> PublicKey {
    keys::pubkey(private).unwrap().parse().unwrap()
}

#[test]
fn garbage_and_idle_connections_do_not_use_a_token_and_its_owner_does_once() {
    let Some(pair) = pair_with_token(3600) else { return };
    [RIGHT, LEFT].into_iter().for_each(|host| pair.wait_until_up(host));
    let file = pair.folder(RIGHT).join("peers.toml");
    let before = fs::read_to_string(&file).unwrap();
    let long = vec![b'x'; 1 << 20];
    for bytes in
        [&long[..], b"", b"\n", b"rw1 \n", b"rw2 AAAA\n", b"rw1 AAAA\n", b"GET / HTTP/1.1\r\n\r\n", &[0xff; 300]]
    {
        let answer = answer(&pair, bytes);
        assert!(answer.is_empty() || answer.starts_with("error: "), "{answer}");
    }
    let server = public_key(pair.private_key(RIGHT));
    let refused_for = |phrase: &str| enrol_from_left(&pair, server).unwrap_err().to_string().contains(phrase);
    assert!(eventually(|| refused_for("in use")));
    // The server closes an idle connection after 10 s, which a busy machine can take for the next one.
    let refused_beside_idle = || {
        let _idle = connect(&pair);
        refused_for("try again")
    };
    assert!(eventually(refused_beside_idle), "the idle connection is the only one of its peer");
    assert_eq!(fs::read_to_string(&file).unwrap(), before);

    let own = public_key(&keys::genkey());
    assert!(eventually(|| enrol_from_left(&pair, own).is_ok()));
    let after = fs::read_to_string(&file).unwrap();
    assert!(after.contains(&own.to_string()) && !after.contains("token-expires"), "{after}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let has_own_key = || pair.status(RIGHT).peers[0].public_key == Some(own.to_string());
    assert!(eventually(has_own_key), "the one-time key opens no session any more");
}

#[test]
fn the_key_of_an_expired_token_has_no_session() {
    let Some(pair) = pair_with_token(5) else { return };
    pair.wait_until_started(RIGHT);
    assert!(eventually(|| pair.status(RIGHT).peers.is_empty()), "{:?}", pair.status(RIGHT).peers);
}

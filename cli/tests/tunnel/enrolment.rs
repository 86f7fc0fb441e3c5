//! The enrolment port of a server, and tokens whose time ends.

use crate::tunnel_pair::{IPV4, TunnelPair};
use daemon::config::{ClientIdentity, unix_time};
use daemon::control_plane::{ENROLMENT_PORT, EnrolError, enrol};
use daemon::keys;
use lab::testbed::{LEFT, RIGHT};
use seal::PublicKey;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::fs::PermissionsExt;
use testing::{MINUTE, Reason, eventually, skip};

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
    let client = ClientIdentity { public_key: key, preshared_key: None, lans: Vec::new() };
    pair.testbed.within(LEFT, move || Ok(enrol(right_address(), &client).map(drop))).unwrap()
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
fn a_client_gets_a_preshared_key_of_its_own_and_one_of_an_earlier_version_keeps_the_tokens() {
    for new in [Some(keys::genpsk()), None] {
        let Some(mut pair) = pair_with_token(3600) else { return };
        [RIGHT, LEFT].into_iter().for_each(|host| pair.wait_until_up(host));
        let own = keys::genkey();
        let psk = new.as_ref().map_or_else(String::new, |psk| format!(" psk={}", **psk));
        let line = format!("rw1 {}{psk} lan=192.168.77.0/24\n", public_key(&own));
        assert_eq!(answer(&pair, line.as_bytes()), "ok lan=192.168.77.0/24\n");
        let file = fs::read_to_string(pair.folder(RIGHT).join("peers.toml")).unwrap();
        assert_eq!(file.contains("preshared-key"), new.is_some(), "the token has none");
        let previous = pair.private_key(LEFT).to_owned();
        let psk = new.as_ref().map_or_else(String::new, |psk| format!("\npreshared-key = \"{}\"", **psk));
        pair.stop(LEFT);
        pair.edit(LEFT, |text| {
            let text = text.replace(&previous, &own);
            text.replacen("\nallowed-ips", &format!("{psk}\nallowed-ips"), 1)
        });
        pair.start(LEFT);
        pair.wait_until_up(LEFT);
    }
}

/// What a server of the first versions answers to all that is not a public key alone, and to that.
#[test]
fn a_server_of_an_earlier_version_is_known_by_its_answer() {
    let address: IpAddr = "127.77.0.1".parse().unwrap();
    let Ok(server) = TcpListener::bind((address, ENROLMENT_PORT)) else {
        return skip(Reason::Disturbed, "something else listens at 127.77.0.1");
    };
    let serve = move || {
        for _ in 0..2 {
            let (mut stream, _) = server.accept().unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            let is_old = line.trim_end().split(' ').count() == 2;
            let answer = if is_old { "ok\n" } else { "error: a line is `rw1 PUBLICKEY`\n" };
            stream.write_all(answer.as_bytes()).unwrap();
        }
    };
    let serving = std::thread::spawn(serve);
    let psk = keys::genpsk().parse().unwrap();
    let client = ClientIdentity { public_key: public_key(&keys::genkey()), preshared_key: Some(psk), lans: Vec::new() };
    assert!(enrol(address, &client).unwrap_err().is_unknown_line());
    assert_eq!(enrol(address, &ClientIdentity { preshared_key: None, ..client }).unwrap(), []);
    serving.join().unwrap();
}

#[test]
fn the_key_of_an_expired_token_has_no_session() {
    let Some(pair) = pair_with_token(5) else { return };
    pair.wait_until_started(RIGHT);
    assert!(eventually(|| pair.status(RIGHT).peers.is_empty()), "{:?}", pair.status(RIGHT).peers);
}

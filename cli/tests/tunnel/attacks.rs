//! Replayed, forged, copied and random datagrams.

use crate::packet_socket::{Frame, PacketSocket};
use crate::traffic::{EchoClient, Transfer};
use crate::tunnel_pair::{DEVICE, IPV4, PORT, TunnelPair, memory};
use lab::testbed::{LEFT, RIGHT};
use nix::sys::socket::{setsockopt, sockopt};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use testing::eventually;

const LINKS: [&str; 2] = ["rate=20mbit delay=5ms", "rate=10mbit delay=10ms"];
/// Handshake messages of each kind: the burst, which fits every queue, and the number of bursts.
const FLOOD: [u64; 2] = [100, 60];

/// Packets that the tunnel delivered to a host's kernel.
fn delivered_packets(pair: &TunnelPair, host: usize) -> u64 {
    let devices = pair.testbed.run(host, "cat /proc/net/dev").unwrap();
    let line = devices.lines().find_map(|line| line.trim().strip_prefix(&format!("{DEVICE}:"))).expect("it is there");
    line.split_whitespace().nth(1).expect("bytes, then packets").parse().unwrap()
}

/// Captures sealed datagrams of the left host, all of which have arrived.
fn capture_sealed(pair: &TunnelPair, attacker: &PacketSocket) -> Vec<Frame> {
    let mut echo = EchoClient::start(pair, LEFT);
    attacker.captured();
    let mut frames: Vec<Frame> = Vec::new();
    let enough = || {
        assert!(echo.gets_answer());
        frames
            .extend(attacker.captured().into_iter().filter(|frame| frame.is_sealed() && frame.payload().len() > 1000));
        frames.len() >= 20
    };
    assert!(eventually(enough), "{} datagrams captured", frames.len());
    assert!(eventually(|| delivered_packets(pair, RIGHT) >= echo.sent_datagrams()), "all requests are delivered");
    frames
}

#[test]
fn replayed_and_forged_datagrams_are_counted_and_not_delivered() {
    let Some(pair) = TunnelPair::up(IPV4, &LINKS) else { return };
    let attacker = PacketSocket::open(&pair, LEFT, 0);
    let frames = capture_sealed(&pair, &attacker);
    let drops = || ["replayed", "authentication-failed"].map(|reason| pair.drops(RIGHT, reason));
    let ([replayed, forged], delivered) = (drops(), delivered_packets(&pair, RIGHT));
    for (k, frame) in frames.iter().enumerate() {
        attacker.send(frame);
        attacker.send(&frame.forged(997 * k));
    }
    let count = frames.len() as u64;
    let expected_drops = [replayed + count, forged + count];
    assert!(eventually(|| drops() == expected_drops), "{expected_drops:?}: {:#?}", pair.status(RIGHT).drops);
    assert_eq!(delivered_packets(&pair, RIGHT), delivered);

    let transfer = Transfer::endless(&pair, LEFT);
    for round in 0..20 {
        transfer.wait_for(256 << 10);
        frames.iter().enumerate().for_each(|(k, frame)| attacker.send(&frame.forged(31 * k + round)));
        frames.iter().for_each(|frame| attacker.send(frame));
    }
    assert!(transfer.stop() >= 5 << 20, "every byte is correct");
    // The link's queue may have dropped some of these.
    assert!(drops().iter().zip(expected_drops).all(|(drops, expected)| *drops > expected), "{:?}", drops());
}

/// A listener on the path, whose copies from an address of its own overtake what it copies.
#[test]
fn copies_from_a_listeners_address_that_come_first_move_no_path() {
    let Some(pair) = TunnelPair::up(IPV4, &["delay=100ms", ""]) else { return };
    let [target, own] = [pair.testbed.v4(0, RIGHT), std::net::Ipv4Addr::new(10, 88, 1, 99)];
    let device = pair.testbed.device(1);
    pair.testbed.run(LEFT, &format!("ip address add {own}/24 dev {device}")).unwrap();
    let listener = PacketSocket::open(&pair, LEFT, 0);
    let socket = pair.testbed.within(LEFT, move || {
        let socket = UdpSocket::bind((own, 0))?;
        setsockopt(&socket, sockopt::BindToDevice, &device.into())?;
        socket.connect((target, PORT))?;
        Ok(socket)
    });
    let socket = socket.unwrap();
    let is_over = AtomicBool::new(false);
    let replayed = pair.drops(RIGHT, "replayed");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                listener.captured().iter().filter(|frame| frame.is_sealed()).for_each(|frame| {
                    let _ = socket.send(frame.payload());
                });
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let mut echo = EchoClient::start(&pair, LEFT);
        // Then the copy was processed, and what it copies came second.
        let are_first = || echo.gets_answer() && pair.drops(RIGHT, "replayed") >= replayed + 50;
        let has_happened = eventually(are_first);
        is_over.store(true, Relaxed);
        assert!(has_happened, "{:#?}", pair.status(RIGHT).drops);
    });
    let expected = [0, 1].map(|link| Some(format!("{}:{PORT}", pair.testbed.v4(link, LEFT))));
    let paths = pair.status(RIGHT).peers.remove(0).paths;
    assert!(paths.iter().all(|path| expected.contains(&path.remote)), "{paths:#?}");
}

/// Lengths and message types of the datagrams that a socket has received.
fn answers(socket: &UdpSocket) -> Vec<(usize, u8)> {
    let mut buffer = [0; 2048];
    std::iter::from_fn(|| socket.recv(&mut buffer).ok().map(|len| (len, buffer[4]))).collect()
}

#[test]
fn a_flood_of_handshakes_neither_stops_the_tunnel_nor_fills_its_memory_nor_gets_replies() {
    let Some(mut pair) = TunnelPair::configured(IPV4, &LINKS) else { return };
    let attacker = PacketSocket::open(&pair, LEFT, 0);
    [RIGHT, LEFT].into_iter().for_each(|host| pair.start(host));
    [RIGHT, LEFT].into_iter().for_each(|host| pair.wait_until_up(host));
    let initiation = attacker.captured().into_iter().find(Frame::is_initiation).expect("the left host initiates");
    drop(attacker);
    let device = pair.testbed.device(0);
    pair.testbed.run(LEFT, &format!("ip address add 10.88.0.99/24 dev {device}")).unwrap();
    let unknown_host = pair.testbed.within(LEFT, || Ok(UdpSocket::bind("10.88.0.99:7777")?)).unwrap();
    unknown_host.connect((pair.testbed.v4(0, RIGHT), crate::tunnel_pair::PORT)).unwrap();
    unknown_host.set_nonblocking(true).unwrap();

    let mut echo = EchoClient::start(&pair, LEFT);
    assert!(echo.gets_answer());
    let prior_memory = memory(pair.pid(RIGHT));
    let mut rng = units::RngStream::named(7, "flood");
    let [count, bursts] = FLOOD;
    for burst in 1..=bursts {
        for _ in 0..count {
            let mut message = initiation.payload().to_vec();
            // The header, the type, the version and the zero byte after them are valid.
            message[9..].iter_mut().for_each(|byte| *byte = rng.bits() as u8);
            unknown_host.send(&message).unwrap();
        }
        let counted = || pair.drops(RIGHT, "invalid-mac1") == count * burst;
        assert!(eventually(counted), "after {burst} bursts of {count}: {:#?}", pair.status(RIGHT).drops);
        assert!(echo.gets_answer(), "the tunnel carries nothing");
    }
    assert_eq!(answers(&unknown_host), [], "a host that does not know the public key gets no reply");

    for _ in 0..bursts {
        (0..count)
            .for_each(|_| assert_eq!(unknown_host.send(initiation.payload()).unwrap(), initiation.payload().len()));
        assert!(echo.gets_answer(), "the tunnel carries nothing");
    }
    let answers = answers(&unknown_host);
    let cookie = |(len, kind): &(usize, u8)| *kind == 3 && *len <= initiation.payload().len();
    assert!(answers.iter().all(cookie), "a replayed initiation gets a cookie reply at most: {answers:?}");
    let growth = memory(pair.pid(RIGHT)).saturating_sub(prior_memory);
    assert!(growth < 16 << 20, "memory grew by {growth} bytes");
}

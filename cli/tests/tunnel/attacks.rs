//! Recorded, forged and senseless datagrams.

use crate::ends::{DEVICE, Ends, USUAL, memory};
use crate::traffic::{Echo, Transfer};
use crate::wire::{Frame, Wire};
use lab::testbed::{LEFT, RIGHT};
use std::net::UdpSocket;
use testing::eventually;

const LINKS: [&str; 2] = ["rate=20mbit delay=5ms", "rate=10mbit delay=10ms"];
/// Strange handshakes of each kind: so many at once, which every queue has room for, and so often.
const FLOOD: [u64; 2] = [100, 60];

/// Packets that the kernel of a host got from its tunnel.
fn came_out(ends: &Ends, host: usize) -> u64 {
    let devices = ends.testbed.run(host, "cat /proc/net/dev").unwrap();
    let line = devices.lines().find_map(|line| line.trim().strip_prefix(&format!("{DEVICE}:"))).expect("it is there");
    line.split_whitespace().nth(1).expect("bytes, then packets").parse().unwrap()
}

/// Sealed datagrams of the left host, all of which have arrived.
fn recorded(ends: &Ends, wire: &Wire) -> Vec<Frame> {
    let mut echo = Echo::start(ends, LEFT);
    wire.recorded();
    let mut frames: Vec<Frame> = Vec::new();
    let enough = || {
        assert!(echo.answers());
        frames.extend(wire.recorded().into_iter().filter(|frame| frame.is_sealed() && frame.payload().len() > 1000));
        frames.len() >= 20
    };
    assert!(eventually(enough), "{} datagrams recorded", frames.len());
    assert!(eventually(|| came_out(ends, RIGHT) >= echo.asked()), "all questions come out");
    frames
}

#[test]
fn replayed_and_forged_datagrams_are_counted_and_nothing_comes_out_of_them() {
    let Some(ends) = Ends::up(USUAL, &LINKS) else { return };
    let wire = Wire::open(&ends, LEFT, 0);
    let frames = recorded(&ends, &wire);
    let numbers = || ["replayed", "authentication-failed"].map(|reason| ends.drops(RIGHT, reason));
    let ([replayed, forged], out) = (numbers(), came_out(&ends, RIGHT));
    for (k, frame) in frames.iter().enumerate() {
        wire.send(frame);
        wire.send(&frame.forged(997 * k));
    }
    let count = frames.len() as u64;
    let wanted = [replayed + count, forged + count];
    assert!(eventually(|| numbers() == wanted), "{wanted:?}: {:#?}", ends.status(RIGHT).drops);
    assert_eq!(came_out(&ends, RIGHT), out);

    let transfer = Transfer::endless(&ends, LEFT);
    for round in 0..20 {
        transfer.wait_for(256 << 10);
        frames.iter().enumerate().for_each(|(k, frame)| wire.send(&frame.forged(31 * k + round)));
        frames.iter().for_each(|frame| wire.send(frame));
    }
    assert!(transfer.stop() >= 5 << 20, "not a byte is wrong");
    // The link's queue may have dropped some of these.
    assert!(numbers().iter().zip(wanted).all(|(now, before)| *now > before), "{:?}", numbers());
}

/// Answers that wait at a socket: their lengths and their types of message.
fn answers(socket: &UdpSocket) -> Vec<(usize, u8)> {
    let mut room = [0; 2048];
    std::iter::from_fn(|| socket.recv(&mut room).ok().map(|len| (len, room[4]))).collect()
}

#[test]
fn a_flood_of_handshakes_neither_stops_the_tunnel_nor_fills_its_memory_nor_is_answered() {
    let Some(mut ends) = Ends::prepared(USUAL, &LINKS) else { return };
    let wire = Wire::open(&ends, LEFT, 0);
    [RIGHT, LEFT].into_iter().for_each(|host| ends.start(host));
    [RIGHT, LEFT].into_iter().for_each(|host| ends.wait_until_up(host));
    let initiation = wire.recorded().into_iter().find(Frame::is_initiation).expect("the left host calls");
    drop(wire);
    let device = ends.testbed.device(0);
    ends.testbed.run(LEFT, &format!("ip address add 10.88.0.99/24 dev {device}")).unwrap();
    let stranger = ends.testbed.within(LEFT, || Ok(UdpSocket::bind("10.88.0.99:7777")?)).unwrap();
    stranger.connect((ends.testbed.v4(0, RIGHT), crate::ends::PORT)).unwrap();
    stranger.set_nonblocking(true).unwrap();

    let mut echo = Echo::start(&ends, LEFT);
    assert!(echo.answers());
    let before = memory(ends.pid(RIGHT));
    let mut random = units::RngStream::named(7, "flood");
    let [count, times] = FLOOD;
    for time in 1..=times {
        for _ in 0..count {
            let mut message = initiation.payload().to_vec();
            // Header, type, version and the zero byte behind them are right.
            message[9..].iter_mut().for_each(|byte| *byte = random.bits() as u8);
            stranger.send(&message).unwrap();
        }
        let counted = || ends.drops(RIGHT, "invalid-mac1") == count * time;
        assert!(eventually(counted), "after {time} times {count}: {:#?}", ends.status(RIGHT).drops);
        assert!(echo.answers(), "the tunnel stands still");
    }
    assert_eq!(answers(&stranger), [], "who does not know our key gets no answer");

    for _ in 0..times {
        (0..count).for_each(|_| assert_eq!(stranger.send(initiation.payload()).unwrap(), initiation.payload().len()));
        assert!(echo.answers(), "the tunnel stands still");
    }
    let answered = answers(&stranger);
    let cookie = |(len, kind): &(usize, u8)| *kind == 3 && *len <= initiation.payload().len();
    assert!(answered.iter().all(cookie), "a recorded initiation gets a demand for a cookie at most: {answered:?}");
    let grown = memory(ends.pid(RIGHT)).saturating_sub(before);
    assert!(grown < 16 << 20, "memory grew by {grown} bytes");
}

//! Recorded, forged and senseless datagrams.

use crate::ends::{DEVICE, Ends, USUAL, memory, within};
use crate::traffic::{Echo, Transfer};
use crate::wire::{Frame, Wire};
use lab::testbed::{LEFT, RIGHT};
use std::net::UdpSocket;
use std::thread::sleep;
use std::time::Duration;

const LINKS: [&str; 2] = ["rate=100mbit delay=5ms", "rate=50mbit delay=10ms"];
/// Strange handshakes in the flood of each kind.
const FLOOD: u64 = 6000;

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
    assert!((0..80).filter(|_| echo.ask()).count() > 70);
    let frames: Vec<_> =
        wire.recorded().into_iter().filter(|frame| frame.is_sealed() && frame.payload().len() > 1000).collect();
    assert!(frames.len() >= 20, "{} datagrams recorded", frames.len());
    sleep(Duration::from_millis(300));
    frames
}

#[test]
fn replayed_and_forged_datagrams_are_counted_and_nothing_comes_out_of_them() {
    let Some(ends) = Ends::up(USUAL, &LINKS) else { return };
    let wire = Wire::open(&ends, LEFT, 0);
    let frames = recorded(&ends, &wire);
    let numbers = || ["replayed", "forged"].map(|reason| ends.drops(RIGHT, reason));
    let ([replayed, forged], out) = (numbers(), came_out(&ends, RIGHT));
    for (k, frame) in frames.iter().enumerate() {
        wire.send(frame);
        wire.send(&frame.forged(997 * k));
    }
    let count = frames.len() as u64;
    let wanted = [replayed + count, forged + count];
    assert!(
        within(Duration::from_secs(3), || numbers() == wanted).is_some(),
        "{wanted:?}: {:#?}",
        ends.status(RIGHT).drops
    );
    assert_eq!(came_out(&ends, RIGHT), out);

    let transfer = Transfer::endless(&ends, LEFT);
    for round in 0..20 {
        transfer.wait_for(256 << 10);
        frames.iter().enumerate().for_each(|(k, frame)| wire.send(&frame.forged(31 * k + round)));
        frames.iter().for_each(|frame| wire.send(frame));
    }
    let gap = transfer.longest_gap();
    assert!(transfer.stop() >= 5 << 20, "not a byte is wrong");
    assert!(gap < Duration::from_secs(1), "{gap:?} without a byte");
    let [replayed, forged] = numbers();
    println!("{replayed} replayed and {forged} forged datagrams, longest silence {gap:?}");
    // The link's queue may have dropped some of these.
    assert!(replayed > wanted[0] && forged > wanted[1]);
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
    assert!(within(Duration::from_secs(1), || echo.ask()).is_some());
    let before = memory(ends.pid(RIGHT));
    let mut random = units::Stream::named(7, "flood");
    let mut asked = [0, 0];
    let mut ask = |echo: &mut Echo| {
        asked[0] += 1;
        asked[1] += u32::from(echo.ask());
    };
    for number in 0..FLOOD {
        let mut message = initiation.payload().to_vec();
        // Header, type, version and the zero byte behind them are right.
        message[9..].iter_mut().for_each(|byte| *byte = random.bits() as u8);
        let _ = stranger.send(&message);
        if number % 100 == 0 {
            ask(&mut echo);
        }
    }
    sleep(Duration::from_millis(300));
    assert_eq!(answers(&stranger), [], "who does not know our key gets no answer");
    assert!(ends.drops(RIGHT, "bad-mac") > FLOOD / 2, "{:#?}", ends.status(RIGHT).drops);

    for number in 0..FLOOD {
        let _ = stranger.send(initiation.payload());
        if number % 100 == 0 {
            ask(&mut echo);
        }
    }
    sleep(Duration::from_millis(300));
    let answered = answers(&stranger);
    let cookie = |(len, kind): &(usize, u8)| *kind == 3 && *len <= initiation.payload().len();
    assert!(answered.iter().all(cookie), "a recorded initiation gets a demand for a cookie at most: {answered:?}");
    let grown = memory(ends.pid(RIGHT)).saturating_sub(before);
    println!(
        "{} of {} echoes came, {} cookies, memory grew by {} KiB",
        asked[1],
        asked[0],
        answered.len(),
        grown >> 10
    );
    assert!(asked[1] * 10 >= asked[0] * 9, "{} of {} echoes came", asked[1], asked[0]);
    assert!(grown < 16 << 20, "memory grew by {grown} bytes");
}

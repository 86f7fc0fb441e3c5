//! A link in real time: the simulator's link model between two TAP devices.
//!
//! ```text
//! host --- TAP  ->  pipe there  ->  TAP --- host
//!               <-  pipe back   <-
//! ```
//!
//! For machines whose kernel has no `netem`. A process of its own, one a link (`agent link ...`), so that several links
//! share the cores and a link's CPU time can be told from that of what is tested. While packets are in it, it looks
//! every [`TICK`] for what has arrived and what is due, which bounds both its error and its cost; otherwise it sleeps.
//!
//! It takes [changes](Change) as lines on standard input, and ends with it, so that no link outlives its owner.

mod shape;
mod tap;

pub(crate) use shape::Change;
pub use shape::Shape;

use link::{Packet, Pipe};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::error::Error;
use std::io::Write;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tap::{ETHERNET, Tap};
use units::{Instant, Stream};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// How long it sleeps between two looks: as exact as a network card that holds back its interrupts, at a fraction of the
/// cost. The kernel's timer slack adds some 50 us.
const TICK: Duration = Duration::from_micros(200);
/// How long an empty link sleeps at most before it looks whether anybody told it something.
const IDLE_MS: u16 = 10;
/// Room for a frame.
const FRAME: usize = 1 << 16;

/// `agent link NAMESPACE DEVICE NAMESPACE DEVICE [KEY=VALUE ...] [/ KEY=VALUE ...]`: runs until standard input ends.
/// Prints `ready` when both devices are there, and an answer to every line.
pub(crate) fn main(words: &[&str]) -> Outcome<()> {
    let [left, left_device, right, right_device, shapes @ ..] = words else {
        return Err("link NAMESPACE DEVICE NAMESPACE DEVICE [KEY=VALUE ...] [/ KEY=VALUE ...]".into());
    };
    let [there, back] = both(&shapes.join(" "))?;
    let taps = [Tap::create(left, left_device)?, Tap::create(right, right_device)?];
    let seed = u64::from(std::process::id());
    let ways = [(there, "there"), (back, "back")].map(|(shape, name)| Way::new(&shape, Stream::named(seed, name)));
    say("ready")?;
    Link { taps, ways, start: std::time::Instant::now(), room: vec![0; FRAME] }.run(&told())
}

/// The shapes of both directions: `THERE / BACK`, or one for both.
pub(crate) fn both(words: &str) -> Result<[Shape; 2], String> {
    let (there, back) = words.split_once('/').unwrap_or((words, words));
    Ok([there.trim().parse()?, back.trim().parse()?])
}

/// A frame on its way, from its Ethernet header on.
#[derive(Debug)]
struct Frame(Box<[u8]>);

/// The queues here are drop-tail: they neither tell flows apart nor mark.
impl Packet for Frame {
    fn bytes(&self) -> u32 {
        self.0.len().saturating_sub(ETHERNET) as u32
    }
    fn flow(&self) -> u16 {
        0
    }
    fn ecn_capable(&self) -> bool {
        false
    }
    fn mark(&mut self) {}
}

/// One direction.
struct Way {
    pipe: Pipe<Frame>,
    mtu: Option<u32>,
}

impl Way {
    fn new(shape: &Shape, random: Stream) -> Self {
        Self { pipe: Pipe::new(&shape.pipe, random), mtu: shape.mtu }
    }

    fn offer(&mut self, now: Instant, frame: Frame) {
        if self.mtu.is_none_or(|mtu| frame.bytes() <= mtu) {
            self.pipe.offer(now, frame);
        }
    }

    /// Hands out what is due.
    fn deliver(&mut self, now: Instant, tap: &Tap) {
        while self.pipe.next() <= now {
            if let Some(frame) = self.pipe.take(now) {
                tap.send(&frame.0);
            }
        }
        while self.pipe.take_discarded().is_some() {}
    }
}

struct Link {
    taps: [Tap; 2],
    ways: [Way; 2],
    start: std::time::Instant,
    room: Vec<u8>,
}

impl Link {
    fn run(mut self, told: &Receiver<String>) -> Outcome<()> {
        loop {
            for line in told.try_iter() {
                let answer = self.obey(&line);
                say(&answer.map_or_else(|why| format!("refused: {}", why.replace('\n', "; ")), |()| "done".to_owned()))?;
            }
            self.receive()?;
            let now = self.now();
            for (way, tap) in self.ways.iter_mut().zip(self.taps.iter().rev()) {
                way.deliver(now, tap);
            }
            self.wait()?;
        }
    }

    fn receive(&mut self) -> Outcome<()> {
        for (way, tap) in self.ways.iter_mut().zip(&self.taps) {
            while let Some(bytes) = tap.receive(&mut self.room)? {
                let now = Instant(self.start.elapsed().as_nanos() as u64);
                way.offer(now, Frame(self.room[..bytes].into()));
            }
        }
        Ok(())
    }

    /// Until a packet may have come or may be due.
    fn wait(&self) -> Outcome<()> {
        if self.ways.iter().any(|way| way.pipe.next() < Instant::NEVER) {
            std::thread::sleep(TICK);
            return Ok(());
        }
        let mut sockets = self.taps.each_ref().map(|tap| PollFd::new(tap.as_fd(), PollFlags::POLLIN));
        match poll(&mut sockets, PollTimeout::from(IDLE_MS)) {
            Ok(_) | Err(nix::Error::EINTR) => Ok(()),
            Err(why) => Err(why.into()),
        }
    }

    /// `there|back|both CHANGE ...`
    fn obey(&mut self, line: &str) -> Result<(), String> {
        let (which, words) = line.trim().split_once(' ').ok_or("there|back|both CHANGE ...")?;
        let changes: Vec<Change> = words.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        let now = self.now();
        let ways = match which {
            "there" => &mut self.ways[..1],
            "back" => &mut self.ways[1..],
            "both" => &mut self.ways[..],
            _ => return Err(format!("`{which}` is no direction\nthere, back or both")),
        };
        for way in ways {
            changes.iter().for_each(|change| change.apply(now, &mut way.pipe, &mut way.mtu));
        }
        Ok(())
    }

    fn now(&self) -> Instant {
        Instant(self.start.elapsed().as_nanos() as u64)
    }
}

/// The lines of standard input, read beside; its end is ours.
fn told() -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        std::io::stdin().lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)));
        std::process::exit(0);
    });
    receiver
}

fn say(word: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{word}")?;
    out.flush()
}

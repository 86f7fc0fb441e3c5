//! A link in real time: the simulator's link model between two TAP devices.
//!
//! ```text
//! host --- TAP  ->  forward pipe  ->  TAP --- host
//!               <-  reverse pipe  <-
//! ```
//!
//! For kernels without `netem`. Each link is a process (`agent link ...`), so that links share the cores and their CPU time
//! is separate from that of the system under test. While packets are in the link it polls every [`TICK`], which bounds both
//! its error and its cost; otherwise it sleeps.
//!
//! The process reads [changes](Change) as lines on standard input, and ends with it, so that no link outlives its
//! owner.

mod frame;
mod shape;
mod tap;

pub use shape::Shape;
pub(crate) use shape::{Change, DISTRIBUTIONS};

use frame::Frame;
use link::{Packet, Pipe};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::error::Error;
use std::io::Write;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tap::Tap;
use units::{Instant, RngStream};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// The polling interval: as exact as a network card with interrupt coalescing. The kernel's timer slack adds about 50 us.
const TICK: Duration = Duration::from_micros(200);
/// The polling interval of an empty link for lines on standard input, ms.
const IDLE_MS: u16 = 10;
/// Size of the receive buffer, bytes.
const BUFFER: usize = 1 << 16;

/// `agent link NAMESPACE DEVICE NAMESPACE DEVICE [KEY=VALUE ...] [/ KEY=VALUE ...]`: runs until standard input ends.
/// Prints `ready` when both devices are there, and an answer to every line.
pub(crate) fn main(arguments: &[&str]) -> Outcome<()> {
    let [left, left_device, right, right_device, shapes @ ..] = arguments else {
        return Err("link NAMESPACE DEVICE NAMESPACE DEVICE [KEY=VALUE ...] [/ KEY=VALUE ...]".into());
    };
    let [forward, reverse] = parse_shapes(&shapes.join(" "))?;
    let taps = [Tap::create(left, left_device)?, Tap::create(right, right_device)?];
    let seed = u64::from(std::process::id());
    let pipes = [(forward, "there"), (reverse, "back")];
    let directions = pipes.map(|(shape, name)| Direction::new(&shape, RngStream::named(seed, name)));
    print_line("ready")?;
    Link { taps, directions, start: std::time::Instant::now(), buffer: vec![0; BUFFER] }.run(&stdin_lines())
}

/// Parses the shapes of both directions: `FORWARD / REVERSE`, or one for both.
pub(crate) fn parse_shapes(arguments: &str) -> Result<[Shape; 2], String> {
    let (forward, reverse) = arguments.split_once('/').unwrap_or((arguments, arguments));
    Ok([forward.trim().parse()?, reverse.trim().parse()?])
}

/// One direction of the link.
struct Direction {
    pipe: Pipe<Frame>,
    mtu: Option<u32>,
}

impl Direction {
    fn new(shape: &Shape, rng: RngStream) -> Self {
        Self { pipe: Pipe::new(&shape.pipe, rng), mtu: shape.mtu }
    }

    fn offer(&mut self, now: Instant, frame: Frame) {
        if self.mtu.is_none_or(|mtu| frame.bytes() <= mtu) {
            self.pipe.enqueue(now, frame);
        }
    }

    /// Sends the frames that are due.
    fn deliver(&mut self, now: Instant, tap: &Tap) {
        while self.pipe.next_event_at() <= now {
            if let Some(frame) = self.pipe.dequeue_arrived(now) {
                tap.send(&frame.0);
            }
        }
        while self.pipe.take_discarded().is_some() {}
    }
}

struct Link {
    taps: [Tap; 2],
    directions: [Direction; 2],
    start: std::time::Instant,
    buffer: Vec<u8>,
}

impl Link {
    fn run(mut self, lines: &Receiver<String>) -> Outcome<()> {
        loop {
            for line in lines.try_iter() {
                let answer = self.handle(&line);
                print_line(
                    &answer
                        .map_or_else(|error| format!("refused: {}", error.replace('\n', "; ")), |()| "done".to_owned()),
                )?;
            }
            self.receive()?;
            let now = self.now();
            for (direction, tap) in self.directions.iter_mut().zip(self.taps.iter().rev()) {
                direction.deliver(now, tap);
            }
            self.wait()?;
        }
    }

    fn receive(&mut self) -> Outcome<()> {
        for (direction, tap) in self.directions.iter_mut().zip(&self.taps) {
            while let Some(bytes) = tap.receive(&mut self.buffer)? {
                let now = Instant(self.start.elapsed().as_nanos() as u64);
                direction.offer(now, Frame(self.buffer[..bytes].into()));
            }
        }
        Ok(())
    }

    /// Sleeps until a frame may have arrived or may be due.
    fn wait(&self) -> Outcome<()> {
        if self.directions.iter().any(|direction| direction.pipe.next_event_at() < Instant::NEVER) {
            std::thread::sleep(TICK);
            return Ok(());
        }
        let mut sockets = self.taps.each_ref().map(|tap| PollFd::new(tap.as_fd(), PollFlags::POLLIN));
        match poll(&mut sockets, PollTimeout::from(IDLE_MS)) {
            Ok(_) | Err(nix::Error::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Handles a line `forward|reverse|both CHANGE ...`
    fn handle(&mut self, line: &str) -> Result<(), String> {
        let (direction_word, arguments) = line.trim().split_once(' ').ok_or("forward|reverse|both CHANGE ...")?;
        let changes: Vec<Change> = arguments.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        let now = self.now();
        let directions = match direction_word {
            "forward" => &mut self.directions[..1],
            "reverse" => &mut self.directions[1..],
            "both" => &mut self.directions[..],
            _ => return Err(format!("`{direction_word}` is not a direction\nforward, reverse or both")),
        };
        for direction in directions {
            changes.iter().for_each(|change| change.apply(now, &mut direction.pipe, &mut direction.mtu));
        }
        Ok(())
    }

    fn now(&self) -> Instant {
        Instant(self.start.elapsed().as_nanos() as u64)
    }
}

/// The lines of standard input, read by a thread, which ends the process with the input.
fn stdin_lines() -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        std::io::stdin().lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)));
        std::process::exit(0);
    });
    receiver
}

fn print_line(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{line}")?;
    out.flush()
}
